"""Patterns: what they cover, when two may conflict, and that no pattern takes more than linear time."""

import re
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinate_agents.graph.scope import (
    Claim,
    ScopeIndex,
    conflict,
    covered,
    matches,
    may_conflict,
    outside,
    parse_pattern,
)

COVERED = [
    ("src", "src"),
    ("src", "src/a/b.py"),
    ("src", "lib/src/a.py"),
    ("src/", "src/a.py"),
    ("./src", "src/a.py"),
    ("src/api", "src/api/v1/x.py"),
    ("src/api/", "src/api/x.py"),
    ("*.md", "README.md"),
    ("*.md", "docs/deep/README.md"),
    ("db/**", "db/a"),
    ("db/**", "db/a/b/c"),
    ("**/tests/**", "tests/x"),
    ("**/tests/**", "a/b/tests/c/x"),
    ("a/**/b", "a/b"),
    ("a/**/b", "a/x/y/b"),
    ("a/**/b", "a/x/b/below"),
    ("a/**/b/**/c", "a/b/x/b/y/c"),
    ("**", "anything/at/all"),
    (".", "anything/at/all"),
    ("./", "x"),
    ("*", "a/b"),
    ("src/*.py", "src/a.py"),
    ("src/t?st", "src/test/below"[:8]),
    ("f[0-9].txt", "f7.txt"),
    ("f[!0-9].txt", "fx.txt"),
    ("f[^0-9].txt", "fx.txt"),
    ("[]]", "]"),
    ("[[]", "["),
    ("[a-]", "-"),
    ("[*]", "*"),
    ("./!name", "!name"),
    ("a*b*c", "aXbXc"),
    ("a*b*b", "abb"),
    ("*.tar.*", "x.tar.tar.gz"),
    ("new\nline", "new\nline"),
    ("ünï/**", "ünï/x"),
    ("a b/**", "a b/c"),
]
NOT_COVERED = [
    ("src", "srcs"),
    ("src", "src.py"),
    ("./src", "lib/src/a.py"),
    ("src/api", "lib/src/api/x.py"),
    ("src/api", "src/api2"),
    ("db/**", "db"),
    ("db/**", "x/db/a"),
    ("*.md", "README.mdx"),
    ("src/*", "src/a/b"),
    ("src/*.py", "src/a/b.py"),
    ("src/?", "src/ab"),
    ("src?api", "src/api"),
    ("src[!a]api", "src/api"),
    ("a*b*b", "ab"),
    ("a/**/b", "a/xb"),
    ("a/**/b", "a"),
    ("f[0-9].txt", "fx.txt"),
    (".github", "x.github"),
    ("*.py", "a.py\n"),
]


@pytest.mark.parametrize(("pattern", "path"), COVERED)
def test_path_that_the_pattern_describes_is_covered(pattern: str, path: str) -> None:
    assert matches(parse_pattern(pattern), path)


@pytest.mark.parametrize(("pattern", "path"), NOT_COVERED)
def test_path_beside_the_pattern_is_not_covered(pattern: str, path: str) -> None:
    assert not matches(parse_pattern(pattern), path)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", 'an empty pattern covers nothing: write "." for the whole repository'),
        ("/etc", "'/etc' is absolute: write it relative to the repository's root, './etc'"),
        ("../x", "'../x' holds \"..\": a pattern never leaves the repository"),
        ("a/../x", "'a/../x' holds \"..\": a pattern never leaves the repository"),
        ("!x", '\'!x\' begins with "!": patterns only add; a name that begins so is "./!name"'),
        ("C:/x", "'C:/x' begins with a drive letter: write it relative to the repository's root"),
        ("c:x", "'c:x' begins with a drive letter: write it relative to the repository's root"),
        ("a\\b", '\'a\\\\b\' holds a backslash: separate with "/", and match a special character as "[*]"'),
        ("a//b", "'a//b' holds an empty component, which no path has: write a single \"/\""),
        ("a/./b", "'a/./b' holds a \".\" component, which no path has: leave it out"),
        ("a[b", '"[" without "]" in \'a[b\': to match the character itself write "[[]"'),
        ("[]", "'[]' in '[]' is an empty class, which matches nothing"),
        ("[z-a]", "z-a in '[z-a]' is a range backwards: write a-z"),
        ("src/**.py", '"**" must stand alone between "/" in \'src/**.py\': write "**/*.py" instead of "**.py"'),
        ("a\0b", "'a\\x00b' holds a NUL character, which no path can hold"),
        ("x" * 513, f"pattern longer than 512 bytes: {'x' * 40!r}…"),
        ("ü" * 257, f"pattern longer than 512 bytes: {'ü' * 40!r}…"),
        ("**/" * 9 + "x", f'more than 8 "**" in {"**/" * 9 + "x"!r}'),
    ],
)
def test_malformed_pattern_is_refused_with_the_reason(pattern: str, message: str) -> None:
    with pytest.raises(ValueError) as refusal:
        parse_pattern(pattern)
    assert str(refusal.value) == message


def test_pattern_at_the_limits_is_accepted() -> None:
    assert matches(parse_pattern("x" * 512), "x" * 512)
    assert matches(parse_pattern("**/" * 8 + "x"), "a/b/x")


def test_paths_outside_keep_their_order() -> None:
    paths = ("z.py", "db/a", "docs/x.md", "a.py")
    assert outside(paths, ["db/**", "*.md"]) == ("z.py", "a.py")
    assert covered(paths, ["db/**", "*.md"]) == ("db/a", "docs/x.md")
    assert outside(paths, []) == paths


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("src/**", "docs/**", False),
        ("src/a", "src/ab", False),
        ("src/a*", "src/ab", True),
        ("src/a", "src/a/b", True),
        ("src/**", "src/api/**", True),
        ("./src", "./docs", False),
        ("src", "docs/**", True),  # docs/src is covered by both
        ("*.py", "src/**", True),
        (".", "docs/**", True),
        ("src/*.py", "src/*.md", True),  # only prefixes count as proof
    ],
)
def test_two_patterns_conflict_unless_prefixes_part(first: str, second: str, expected: bool) -> None:
    assert may_conflict(parse_pattern(first), parse_pattern(second)) is expected
    assert may_conflict(parse_pattern(second), parse_pattern(first)) is expected


def test_conflict_names_the_first_pair_as_written() -> None:
    assert conflict(["docs/**", "src/a/**"], ["lib/**", "src/**"]) == ("src/a/**", "src/**")


@pytest.mark.parametrize(("first", "second"), [(None, ["."]), (["."], None), ([], ["."]), (["a/b"], ["a/c"])])
def test_unknown_empty_and_disjoint_intents_do_not_conflict(
    first: Sequence[str] | None, second: Sequence[str] | None
) -> None:
    assert conflict(first, second) is None


def test_index_answers_with_the_claim_that_stands_in_the_way() -> None:
    index = ScopeIndex()
    index.add("api", ["src/api/**", "docs/api.md"])
    index.add("ui", ["src/ui/**"])
    index.add("unknown", None)
    assert index.find(["lib/**", "src/**"]) == ("src/**", Claim("api", "src/api/**"))
    assert index.find(["src/ui/form.ts"]) == ("src/ui/form.ts", Claim("ui", "src/ui/**"))
    assert index.find(["src/**"], but_not="api") == ("src/**", Claim("ui", "src/ui/**"))
    assert index.find(["lib/**"]) is None
    assert index.find(None) is None
    index.remove("api")
    index.remove("api")
    assert index.find(["src/api/**"]) is None
    index.add("ui", ["lib"])
    assert index.find(["src/ui/**"]) == ("src/ui/**", Claim("ui", "lib"))


# --- against a naive reference ---------------------------------------------------------------------------------------

_NAMES = st.sampled_from(["a", "b", "ab", "a.b", "ba", "aab", "-"])
_PARTS = st.sampled_from(
    ["a", "b", "ab", "*", "a*", "*b", "?", "a?", "[ab]", "[!a]*", "**", "*a*b", "**", "a*a*b", "[-a]"]
)
PATHS = st.lists(_NAMES, min_size=1, max_size=5).map("/".join)
PATTERNS = st.builds(
    lambda root, parts: root + "/".join(parts),
    st.sampled_from(["", "", "./"]),
    st.lists(_PARTS, min_size=1, max_size=4),
)


def naive(pattern: str, path: str) -> bool:
    """The same meaning, by trying everything."""
    rooted = pattern.startswith("./")
    parts = pattern.removeprefix("./").split("/")
    if len(parts) == 1 and not rooted:
        parts = ["**", *parts]
    components = path.split("/")
    if parts[-1] == "**":
        return any(_all(parts[:-1], components[:end]) for end in range(len(components)))
    if re.search(r"[*?\[]", parts[-1]):
        return _all(parts, components)
    return any(_all(parts, components[: end + 1]) for end in range(len(components)))


def _all(parts: Sequence[str], components: Sequence[str]) -> bool:
    if not parts:
        return not components
    if parts[0] == "**":
        return any(_all(parts[1:], components[skip:]) for skip in range(len(components) + 1))
    return bool(components) and _one(parts[0], components[0]) and _all(parts[1:], components[1:])


def _one(part: str, name: str) -> bool:
    if not part:
        return not name
    if part[0] == "*":
        return any(_one(part[1:], name[skip:]) for skip in range(len(name) + 1))
    if not name:
        return False
    if part[0] == "?":
        return _one(part[1:], name[1:])
    if part[0] == "[":
        end = part.index("]")
        inside = part[1:end]
        held = name[0] not in inside[1:] if inside[0] == "!" else name[0] in inside
        return held and _one(part[end + 1 :], name[1:])
    return part[0] == name[0] and _one(part[1:], name[1:])


@given(pattern=PATTERNS, path=PATHS)
def test_matcher_agrees_with_the_naive_reference(pattern: str, path: str) -> None:
    assert matches(parse_pattern(pattern), path) is naive(pattern, path)


@given(patterns=st.lists(PATTERNS, max_size=5), paths=st.lists(PATHS, max_size=5))
def test_several_patterns_cover_what_one_of_them_covers(patterns: list[str], paths: list[str]) -> None:
    expected = tuple(path for path in paths if any(naive(pattern, path) for pattern in patterns))
    assert covered(paths, patterns) == expected
    assert outside(paths, patterns) == tuple(path for path in paths if path not in expected)


@given(first=PATTERNS, second=PATTERNS, path=PATHS)
def test_patterns_that_cover_one_path_may_conflict(first: str, second: str, path: str) -> None:
    one, two = parse_pattern(first), parse_pattern(second)
    if matches(one, path) and matches(two, path):
        assert may_conflict(one, two)
        assert may_conflict(two, one)


@given(text=st.text(alphabet="ab/*?[]!-.\\", max_size=12))
def test_any_text_is_a_pattern_or_is_refused_with_a_reason(text: str) -> None:
    try:
        pattern = parse_pattern(text)
    except ValueError as refusal:
        assert str(refusal)
    else:
        assert matches(pattern, "a/b") in (True, False)


@given(
    intents=st.dictionaries(st.sampled_from("pqrs"), st.lists(PATTERNS, max_size=3), max_size=4),
    removed=st.sampled_from("pqrs"),
    candidate=st.lists(PATTERNS, max_size=3),
)
def test_index_agrees_with_comparing_all_pairs(
    intents: dict[str, list[str]], removed: str, candidate: list[str]
) -> None:
    index, reversed_index = ScopeIndex(), ScopeIndex()
    for owner, writes in intents.items():
        index.add(owner, writes)
    for owner, writes in reversed(intents.items()):
        reversed_index.add(owner, writes)
    for each in (index, reversed_index):
        each.remove(removed)
    held = {owner: writes for owner, writes in intents.items() if owner != removed}
    expected = next((text for text in candidate if any(conflict([text], writes) for writes in held.values())), None)
    found = index.find(candidate)
    assert (found and found[0]) == expected
    assert found == reversed_index.find(candidate)
    if found:
        assert conflict([found[0]], [found[1].pattern]) is not None
        assert found[1].pattern in held[found[1].owner]


# --- time ------------------------------------------------------------------------------------------------------------

ADVERSARIAL = [
    ("*a" * 60 + "b", "a"),
    ("**/" * 8 + "*a*a*a*a*b", "a/"),
    ("**/*a/**/*a/**/*a/**/*a/**/*a/**/*b", "aaaa/"),
    ("a/" * 20 + "**/" + "a/" * 40 + "b", "a/"),
    ("[!b]*" * 40 + "b", "a"),
    ("?*" * 60 + "b", "a"),
]


@pytest.mark.parametrize(("pattern", "unit"), ADVERSARIAL)
def test_time_grows_no_faster_than_the_path(pattern: str, unit: str) -> None:
    parsed = parse_pattern(pattern)
    short, long = (unit * 2000).rstrip("/"), (unit * 32000).rstrip("/")
    assert not matches(parsed, short)
    growth = _cpu_s(parsed, long) / max(_cpu_s(parsed, short), 20e-6)
    # 16 times the path: linear is 16, quadratic 256.
    assert growth < 80, growth


def _cpu_s(pattern: object, path: str) -> float:
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        matches(pattern, path)  # type: ignore[arg-type]
        best = min(best, time.process_time() - started)
    return best
