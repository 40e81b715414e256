"""The base's own `.gitignore` and `.gitattributes` as single lists of root-relative rules.

Git reads these files from the worktree, where the agent can write them. The judge takes them from the base commit
instead: ignore rules become one exclude file, attributes one attributes file in which only harmless names stay, so a
merge driver or filter that somebody names can never run. A line that cannot be carried over is dropped, which makes
paths untracked or text: never hidden, never run.
"""

import contextlib
import tempfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Final

from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import CommitId
from coordinate_agents.worktrees.values import value_class

MAX_RULE_BYTES: Final = 16 << 20
_REGULAR: Final = ("100644", "100755")
_GLOB: Final = frozenset("*?[\\")
# Attributes that only say how text is treated. `merge` is special: of its values only the built-in drivers stay.
_HARMLESS: Final = frozenset(["text", "eol", "crlf", "binary", "conflict-marker-size"])
_BUILT_IN_MERGES: Final = frozenset(["merge", "-merge", "!merge", "merge=union", "merge=binary", "merge=text"])

_cache: "OrderedDict[tuple[str, CommitId], Rules]" = OrderedDict()
_cache_lock: Final = Lock()
_CACHED: Final = 64


@value_class
class Rules:
    """Lines of one exclude file and one attributes file, relative to the top, weakest rule first."""

    ignores: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()


def rules_of(judge: Judge, commit: CommitId, *, env: Mapping[str, str] | None = None) -> Rules:
    """The rules of a commit. Two processes the first time (one when it has no such files), none afterwards.

    `env` adds to the environment of these calls, as for objects that only a submodule has.
    """
    key = (judge.git_dir, commit)
    with _cache_lock:
        if key in _cache:
            _cache.move_to_end(key)
            return _cache[key]
    rules = rules_from(_rule_files(judge, commit, env))
    with _cache_lock:
        _cache[key] = rules
        while len(_cache) > _CACHED:
            _cache.popitem(last=False)
    return rules


def rules_from(files: Mapping[str, str]) -> Rules:
    """The rules of these files, path to text. Shallow folders come first, so that deeper ones override them."""
    ignores: list[str] = []
    attributes: list[str] = []
    macros = {"binary"}
    for path in sorted(files, key=lambda name: (name.count("/"), name)):
        folder = PurePosixPath(path).parent.as_posix()
        folder = "" if folder == "." else folder
        lines = files[path].removeprefix("\ufeff").split("\n")
        if path.endswith(".gitignore"):
            ignores += [rule for line in lines if (rule := root_ignore(folder, line))]
        else:
            attributes += [rule for line in lines if (rule := _root_attributes(folder, line, macros))]
    return Rules(tuple(ignores), tuple(attributes))


def root_ignore(folder: str, line: str) -> str | None:
    """An ignore line of a folder as one that means the same at the top; None for a comment or an unusable line."""
    line = line.removesuffix("\r")
    if not line.strip() or line.startswith("#") or "\0" in line:
        return None
    if not folder:
        return line
    if "\n" in folder:
        return None
    bang, pattern = ("!", line[1:]) if line.startswith("!") else ("", line)
    return f"{bang}/{_escape(folder)}/{_anchored(pattern)}"


@contextlib.contextmanager
def lines_file(judge: Judge, lines: Sequence[str]) -> Iterator[str]:
    """A private file of these lines for the time of a call; /dev/null when there are none."""
    if not lines:
        yield "/dev/null"
        return
    with tempfile.TemporaryDirectory(prefix="rules-", dir=Path(judge.git_dir, "tmp")) as folder:
        path = Path(folder, "rules")
        path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
        yield str(path)


def _rule_files(judge: Judge, commit: CommitId, env: Mapping[str, str] | None) -> dict[str, str]:
    listed = judge.git("ls-tree", "-r", "-z", "--full-tree", commit, env=env).fields()
    wanted: dict[str, str] = {}
    for entry in listed:
        if not entry.endswith((".gitignore", ".gitattributes")):
            continue
        meta, _, path = entry.partition("\t")
        mode, _, oid = meta.split(" ")
        if path.rpartition("/")[2] in (".gitignore", ".gitattributes") and mode in _REGULAR:
            wanted[path] = oid
    texts = read_blobs(judge, list(wanted.values()), max_bytes=MAX_RULE_BYTES, env=env)
    return {path: texts[oid].decode("utf-8", "surrogateescape") for path, oid in wanted.items() if oid in texts}


def read_blobs(
    judge: Judge, oids: Sequence[str], *, max_bytes: int, env: Mapping[str, str] | None = None
) -> dict[str, bytes]:
    """The content of the blobs that exist. At most one process. Raises: WorktreeError past `max_bytes` together."""
    asked = list(dict.fromkeys(oids))
    if not asked:
        return {}
    stdin = "".join(f"{oid}\n" for oid in asked).encode()
    out = judge.git("cat-file", "--batch", stdin=stdin, max_bytes=max_bytes, env=env).out
    blobs: dict[str, bytes] = {}
    at = 0
    for oid in asked:
        end = out.index(b"\n", at)
        words = out[at:end].split(b" ")
        at = end + 1
        if len(words) == 3 and words[2].isdigit():
            blobs[oid] = out[at : at + int(words[2])]
            at += int(words[2]) + 1
    return blobs


def _root_attributes(folder: str, line: str, macros: set[str]) -> str | None:
    line = line.strip(" \t\r")
    if not line or line.startswith("#") or "\0" in line or "\n" in folder:
        return None
    if line.startswith("[attr]"):
        name, *rest = line[len("[attr]") :].split() or [""]
        if folder or not name:
            return None
        macros.add(name)
        return " ".join([f"[attr]{name}", *_harmless(rest, macros)])
    pattern, rest_text = _split_pattern(line)
    kept = _harmless(rest_text.split(), macros)
    if not pattern or pattern.startswith("!") or not kept:
        return None
    if folder:
        pattern = f"/{_escape(folder)}/{_anchored(pattern)}"
    return f"{_quote(pattern)} {' '.join(kept)}"


def _harmless(words: Sequence[str], macros: set[str]) -> list[str]:
    kept = []
    for word in words:
        name = word.lstrip("-!").partition("=")[0]
        if name == "merge":
            if word in _BUILT_IN_MERGES:
                kept.append(word)
        elif name in _HARMLESS or (name in macros and "=" not in word):
            kept.append(word)
    return kept


def _split_pattern(line: str) -> tuple[str, str]:
    """The pattern and the attributes of a line; a quoted pattern is unquoted. An unreadable one is empty."""
    if not line.startswith('"'):
        pattern, _, rest = line.replace("\t", " ").partition(" ")
        return pattern, rest
    text, at = [], 1
    while at < len(line) and line[at] != '"':
        if line[at] == "\\":
            at += 1
            # Octal and control escapes stand for bytes that a rule does not need: the line is dropped.
            if at >= len(line) or line[at] not in '\\"':
                return "", ""
        text.append(line[at])
        at += 1
    return "".join(text), line[at + 1 :]


def _quote(pattern: str) -> str:
    if any(char in pattern for char in ' \t"') or pattern.startswith(("#", "[attr]")):
        escaped = pattern.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return pattern


def _anchored(pattern: str) -> str:
    """The pattern as it continues after its folder: without a slash (but the last) it matches at any depth."""
    if pattern.startswith("/"):
        return pattern[1:]
    return pattern if "/" in pattern.rstrip(" ").removesuffix("/") else f"**/{pattern}"


def _escape(folder: str) -> str:
    return "".join(f"\\{char}" if char in _GLOB else char for char in folder)
