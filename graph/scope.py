"""Path patterns: which paths one covers, and whether two may cover the same path. The one matcher.

Scheduler (write intents), audit (changed paths outside them), `protect` and `keep` all use this. Nothing here looks
at files. What a pattern covers:

- ``src/api`` and everything below it; a pattern without ``/`` (``src``, ``*.md``) at any depth;
- ``./src`` and ``src/**`` only at the root; ``.`` is the whole repository;
- ``*`` any text within one component, ``?`` one character of it, ``[a-z]`` and ``[!a-z]`` one of a class;
- ``**`` any number of components: ``a/**/b`` also covers ``a/b``; ``a/**`` what is below ``a``.

A pattern whose last component has a wildcard covers exactly the paths it matches (``src/*`` is not ``src/**``).

Time is linear in the path for one pattern. The problem: a translation to regular expressions backtracks
exponentially on several stars. The rule: each ``*`` takes the shortest text up to the next literal and never gives it
back (an atomic group), which is right because a later star can take whatever an earlier one left; the same between
two ``**``, component by component.

Two patterns may conflict unless their literal prefixes prove that no path is covered by both. A floating pattern has
no literal prefix, so it may conflict with everything; ``./`` in front of it anchors it.
"""

import bisect
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from coordinate_agents.worktrees.values import value_class

MAX_PATTERN_BYTES: Final = 512
MAX_DOUBLE_STARS: Final = 8

_DRIVE = re.compile(r"[A-Za-z]:")
_WILD = re.compile(r"[*?\[]")
# The pieces of one component: a run of stars, one character, a class, literal text.
_PIECES = re.compile(r"(?P<stars>\*+)|(?P<one>\?)|\[(?P<not>[!^]?)(?P<set>\]?[^\]]*)\]|(?P<text>[^*?\[]+)")


@value_class
class Pattern:
    """A parsed pattern. `prefix` starts every path it covers, when ``/`` is put behind the path; "" if floating."""

    text: str
    prefix: str
    expression: str

    @property
    def is_floating(self) -> bool:
        """Covers names at any depth."""
        return "/" not in self.text.rstrip("/") and self.text != "."


# 4096: sixteen subtasks with the most patterns allowed; each entry is a kilobyte.
@lru_cache(maxsize=4096)
def parse_pattern(text: str) -> Pattern:
    """The pattern. Raises: ValueError, whose text says what is wrong and what to write instead."""
    _refuse(text)
    is_rooted = text.startswith("./") or text == "."
    body = text[2:] if text.startswith("./") else text
    parts = [] if body in ("", ".") else body.rstrip("/").split("/")
    for part in parts:
        _refuse_component(part, text)
    if not parts:
        return Pattern(text, "", "")
    if len(parts) == 1 and not is_rooted:
        parts.insert(0, "**")
    return Pattern(text, _literal_prefix(parts), _expression(parts))


def matches(pattern: Pattern, path: str) -> bool:
    """Whether the pattern covers the repository-relative path. Linear in the length of the path."""
    return _compiled(pattern.expression).match(path) is not None


def outside(paths: Iterable[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """The paths that no pattern covers, in the order given. Without patterns: all of them. Raises: ValueError."""
    union = _union(tuple(dict.fromkeys(patterns)))
    return tuple(path for path in paths if union is None or union.match(path) is None)


def covered(paths: Iterable[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """The paths that some pattern covers, in the order given. Raises: ValueError."""
    union = _union(tuple(dict.fromkeys(patterns)))
    return tuple(path for path in paths if union is not None and union.match(path) is not None)


def may_conflict(first: Pattern, second: Pattern) -> bool:
    """False only when no path can be covered by both."""
    return first.prefix.startswith(second.prefix) or second.prefix.startswith(first.prefix)


def conflict(first: Sequence[str] | None, second: Sequence[str] | None) -> tuple[str, str] | None:
    """The first pair of patterns that may conflict, in the order written. None (unknown) conflicts with nothing."""
    if not first or not second:
        return None
    others = [parse_pattern(text) for text in second]
    for text in first:
        pattern = parse_pattern(text)
        for other in others:
            if may_conflict(pattern, other):
                return (pattern.text, other.text)
    return None


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    """One pattern that a subtask holds."""

    owner: str
    pattern: str


class ScopeIndex:
    """The write intents of the running subtasks, kept so that a candidate is compared with all of them at once.

    Two prefixes conflict when one starts the other. All that start with the candidate's stand together in the sorted
    list; all that the candidate's starts with are looked up by their lengths. So a question costs the lengths in use
    and a binary search, not the number of patterns held. Invariant: the answer depends on the claims held, never on
    the order in which they came.
    """

    def __init__(self) -> None:
        self._prefixes: list[str] = []
        self._claims: dict[str, list[Claim]] = {}
        self._owned: dict[str, tuple[Pattern, ...]] = {}
        self._lengths: dict[int, int] = {}

    def add(self, owner: str, writes: Sequence[str] | None) -> None:
        """Hold these patterns for the owner, instead of any it held. None and empty hold nothing."""
        self.remove(owner)
        patterns = tuple(parse_pattern(text) for text in dict.fromkeys(writes or ()))
        self._owned[owner] = patterns
        for pattern in patterns:
            claims = self._claims.get(pattern.prefix)
            if claims is None:
                claims = self._claims[pattern.prefix] = []
                bisect.insort(self._prefixes, pattern.prefix)
                self._lengths[len(pattern.prefix)] = self._lengths.get(len(pattern.prefix), 0) + 1
            bisect.insort(claims, Claim(owner, pattern.text))

    def remove(self, owner: str) -> None:
        """Let go of what the owner holds; nothing when it holds nothing."""
        for pattern in self._owned.pop(owner, ()):
            claims = self._claims[pattern.prefix]
            claims.remove(Claim(owner, pattern.text))
            if not claims:
                self._forget(pattern.prefix)

    def find(self, writes: Sequence[str] | None, *, but_not: str = "") -> tuple[str, Claim] | None:
        """The first of the patterns that may conflict with somebody else's, and that claim. None: no conflict."""
        for text in writes or ():
            claim = self._first(parse_pattern(text).prefix, but_not)
            if claim is not None:
                return (text, claim)
        return None

    def _first(self, prefix: str, but_not: str) -> Claim | None:
        for length in sorted(self._lengths):
            if length >= len(prefix):
                break
            claim = _other(self._claims.get(prefix[:length], ()), but_not)
            if claim is not None:
                return claim
        position = bisect.bisect_left(self._prefixes, prefix)
        while position < len(self._prefixes) and self._prefixes[position].startswith(prefix):
            claim = _other(self._claims[self._prefixes[position]], but_not)
            if claim is not None:
                return claim
            position += 1
        return None

    def _forget(self, prefix: str) -> None:
        del self._claims[prefix]
        del self._prefixes[bisect.bisect_left(self._prefixes, prefix)]
        self._lengths[len(prefix)] -= 1
        if not self._lengths[len(prefix)]:
            del self._lengths[len(prefix)]


def _other(claims: Iterable[Claim], but_not: str) -> Claim | None:
    return next((claim for claim in claims if claim.owner != but_not), None)


def _refuse(text: str) -> None:
    if not text:
        raise ValueError('an empty pattern covers nothing: write "." for the whole repository')
    if len(text.encode("utf-8", "surrogatepass")) > MAX_PATTERN_BYTES:
        raise ValueError(f"pattern longer than {MAX_PATTERN_BYTES} bytes: {text[:40]!r}…")
    if "\0" in text:
        raise ValueError(f"{text!r} holds a NUL character, which no path can hold")
    if text.startswith("!"):
        raise ValueError(f'{text!r} begins with "!": patterns only add; a name that begins so is "./!name"')
    if text.startswith("/"):
        raise ValueError(f"{text!r} is absolute: write it relative to the repository's root, {'.' + text!r}")
    if _DRIVE.match(text):
        raise ValueError(f"{text!r} begins with a drive letter: write it relative to the repository's root")
    if "\\" in text:
        raise ValueError(f'{text!r} holds a backslash: separate with "/", and match a special character as "[*]"')
    if text.count("**") > MAX_DOUBLE_STARS:
        raise ValueError(f'more than {MAX_DOUBLE_STARS} "**" in {text!r}')


def _refuse_component(part: str, text: str) -> None:
    if part == "..":
        raise ValueError(f'{text!r} holds "..": a pattern never leaves the repository')
    if part == ".":
        raise ValueError(f'{text!r} holds a "." component, which no path has: leave it out')
    if not part:
        raise ValueError(f'{text!r} holds an empty component, which no path has: write a single "/"')
    if "**" in part and part != "**":
        raise ValueError(f'"**" must stand alone between "/" in {text!r}: write "**/*.py" instead of "**.py"')
    position = 0
    while position < len(part):
        piece = _PIECES.match(part, position)
        if piece is None:
            raise ValueError(f'"[" without "]" in {text!r}: to match the character itself write "[[]"')
        if piece["set"] is not None:
            _refuse_class(piece, text)
        position = piece.end()


def _refuse_class(piece: re.Match[str], text: str) -> None:
    if not piece["set"]:
        raise ValueError(f"{piece[0]!r} in {text!r} is an empty class, which matches nothing")
    for low, high in _ranges(piece["set"]):
        if low > high:
            raise ValueError(f"{low}-{high} in {text!r} is a range backwards: write {high}-{low}")


def _literal_prefix(parts: Sequence[str]) -> str:
    """Text that starts path + "/" for every path covered."""
    literal: list[str] = []
    for part in parts:
        wild = _WILD.search(part)
        if wild is not None:
            return "".join(literal) + part[: wild.start()]
        literal.append(part + "/")
    return "".join(literal)


@lru_cache(maxsize=4096)
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.DOTALL)


# A commit may change 100,000 paths: one expression for all patterns asks each path once.
@lru_cache(maxsize=64)
def _union(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    """What covers the same as all of the patterns; None when there are none. Raises: ValueError."""
    if not patterns:
        return None
    return _compiled("|".join(f"(?:{parse_pattern(text).expression})" for text in patterns))


def _expression(parts: Sequence[str]) -> str:
    """The components as a regular expression without backtracking over stars; see the module's text."""
    if parts[-1] == "**":  # what is below: the same as one more component, whatever is below that
        parts = [*parts[:-1], "*"]
        end = r"(?:/|\Z)"
    else:
        end = r"\Z" if _WILD.search(parts[-1]) else r"(?:/|\Z)"
    runs: list[list[str]] = [[]]
    for part in parts:
        if part != "**":
            runs[-1].append(_component(part))
        elif runs[-1] or len(runs) == 1:
            runs.append([])
    first, *floating = ["/".join(run) for run in runs]
    if not floating:
        return first + end
    *middle, last = floating
    # Leftmost is right for a run between two "**": what it leaves, the second "**" can take.
    body = "".join(rf"(?>(?:[^/]++/)*?{run}/)" for run in middle)
    return (first + "/" if first else "") + body + rf"(?:[^/]++/)*?{last}{end}"


def _component(part: str) -> str:
    """One component: literal pieces joined by stars; every star but the last takes the shortest text, for good."""
    runs = [""]
    for piece in _PIECES.finditer(part):
        if piece["stars"] is not None:
            runs.append("")
        elif piece["one"] is not None:
            runs[-1] += "[^/]"
        elif piece["set"] is not None:
            runs[-1] += _class(piece)
        else:
            runs[-1] += re.escape(piece["text"])
    first, *rest = runs
    if not rest:
        return first
    *middle, last = rest
    # The last run must end the component: its star may give back, at most once for each character.
    return first + "".join(f"(?>[^/]*?{run})" for run in middle) + rf"(?>[^/]*?{last}(?=/|\Z))"


def _class(piece: re.Match[str]) -> str:
    inner = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in _ranges(piece["set"]))
    return f"(?!/)[{'^' if piece['not'] else ''}{inner}]"


def _ranges(inside: str) -> Iterator[tuple[str, str]]:
    """The ranges of a class; a single character is a range of one. A "-" at either end is itself."""
    position = 0
    while position < len(inside):
        low = inside[position]
        if inside[position + 1 : position + 2] == "-" and position + 2 < len(inside):
            yield low, inside[position + 2]
            position += 3
        else:
            yield low, low
            position += 1
