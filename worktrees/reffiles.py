"""Reads refs, HEAD and reflogs of a user's git dir as files: no process, no configuration, no caches.

Files backend only (reftable is refused when a repository is opened). A value is taken only from a regular file; a link,
an oversized file or a strange text counts as nothing. Never writes. A loose ref is always read before packed-refs: git
packs a ref first and removes the loose file afterwards, so the other order could miss one.
"""

import functools
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from coordinate_agents.worktrees.files import open_regular
from coordinate_agents.worktrees.model import CommitId
from coordinate_agents.worktrees.values import value_class

MAX_REF_BYTES: Final = 4096
MAX_PACKED_BYTES: Final = 256 << 20
# The end of a reflog that is looked at: 4 MiB hold more than 20,000 entries.
MAX_REFLOG_BYTES: Final = 4 << 20
_MAX_SYMREFS: Final = 5
_MAX_VALUES: Final = 200_000
# Longer than a step of the clock by which file systems stamp (4 to 10 ms on common kernels; 2 s nowhere we run).
_SETTLED_NS: Final = 100_000_000
_Mark = tuple[int, int, int, int]
_values: dict[str, tuple[_Mark, CommitId]] = {}
_folders: dict[str, tuple[_Mark, tuple[tuple[str, bool], ...]]] = {}
_OID: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ODD: Final = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{")


@value_class
class Resolved:
    """Where a symbolic name leads: the last ref name (None: detached) and its commit (None: there is no such ref)."""

    ref: str | None
    commit: CommitId | None


def read_small(path: Path | str, limit: int = MAX_REF_BYTES) -> str | None:
    """The text of a regular file of at most `limit` bytes; None when it is anything else."""
    data = _read(path, limit + 1)
    return None if data is None or len(data) > limit else os.fsdecode(data)


def read_head(admin: Path | str, common: Path | str) -> Resolved | None:
    """Where the HEAD of a worktree leads; None when the file is no HEAD."""
    text = read_small(f"{admin}/HEAD")
    return None if text is None else _follow(common, text.strip())


def read_ref(common: Path | str, name: str) -> CommitId | None:
    """The object that a full ref name holds, through symbolic refs; None when there is none."""
    found = _follow(common, f"ref: {name}")
    return None if found is None else found.commit


def read_direct(common: Path | str, name: str) -> CommitId | None:
    """The object that a full ref name holds itself; None when there is none, or the ref is symbolic or broken."""
    path = f"{common}/{name}"
    text = read_small(path)
    if text is None:
        is_something = os.path.lexists(path) and not os.path.isdir(path)  # noqa: PTH112
        return None if is_something else packed_refs(common).get(name)
    return text.strip() if _OID.fullmatch(text.strip()) else None


def read_refs(common: Path | str, prefix: str, *, without: Collection[str] = ()) -> dict[str, CommitId]:
    """Every direct ref below the prefix (which ends in `/`): full name to object id. None below the names in `without`.

    A symbolic or broken loose ref hides a packed one of its name, as it does for git.
    """
    loose = dict(_loose_refs(common, prefix, without))
    hidden = tuple(f"{name}/" for name in without)
    packed = packed_below(common, prefix).items()
    found = {name: oid for name, oid in packed if not name.startswith(hidden)} | loose
    return {name: oid for name, oid in found.items() if oid}


def packed_refs(common: Path | str) -> Mapping[str, CommitId]:
    """Everything in packed-refs. Kept until the file is another: git replaces it by rename."""
    return _parse_packed(str(common), _packed_mark(common))


def packed_below(common: Path | str, prefix: str) -> Mapping[str, CommitId]:
    """Those of the packed refs whose names begin with the prefix; sought once, since there may be very many others."""
    return _parse_below(str(common), _packed_mark(common), prefix)


def _packed_mark(common: Path | str) -> tuple[int, int, int]:
    try:
        found = os.stat(f"{common}/packed-refs")  # noqa: PTH116
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def read_all(common: Path | str, *, without: Collection[str]) -> dict[str, CommitId] | None:
    """Every ref of the repository as `git for-each-ref` lists it, but none below the names in `without`.

    A symbolic ref has the value of what it leads to; one that leads nowhere is left out, as git does. None when there
    is something that only git can judge: a broken ref, a link, a name that git would not make.
    """
    found: dict[str, CommitId | None] = {}
    for name, oid in _loose_refs(common, "refs/", frozenset(without)):
        found[name] = oid
        if not oid:
            text = read_small(f"{common}/{name}")
            if text is None or not text.startswith("ref: "):
                return None
            found[name] = read_ref(common, name)
    hidden = tuple(f"{name}/" for name in without)
    packed = {name: oid for name, oid in packed_refs(common).items() if not name.startswith(hidden)}
    refs = {name: oid for name, oid in sorted((packed | found).items()) if oid is not None}
    return None if any(_is_odd(name) or not oid.strip("0") for name, oid in refs.items()) else refs


@functools.lru_cache(maxsize=4)
def _parse_packed(common: str, _fingerprint: tuple[int, int, int]) -> Mapping[str, CommitId]:
    data = _read(f"{common}/packed-refs", MAX_PACKED_BYTES) if _fingerprint[0] else None
    if not data:
        return {}
    refs = {}
    for line in os.fsdecode(data).split("\n"):
        oid, _, name = line.partition(" ")
        if name and _OID.fullmatch(oid):
            refs[name] = oid
    return MappingProxyType(refs)


@functools.lru_cache(maxsize=64)
def _parse_below(common: str, mark: tuple[int, int, int], prefix: str) -> Mapping[str, CommitId]:
    found = {name: oid for name, oid in _parse_packed(common, mark).items() if name.startswith(prefix)}
    return MappingProxyType(found)


def reflog_commits(log: Path | str) -> tuple[CommitId, ...]:
    """Every object id that the end of a reflog names, newest first, without repetition and without the null id."""
    data = _read_end(log)
    found: dict[CommitId, None] = {}
    for line in reversed(data.split(b"\n")):
        old, _, rest = line.partition(b" ")
        new = rest.partition(b" ")[0]
        for oid in (os.fsdecode(new), os.fsdecode(old)):
            if _OID.fullmatch(oid) and oid.strip("0"):
                found.setdefault(oid)
    return tuple(found)


def _follow(common: Path | str, text: str) -> Resolved | None:
    name: str | None = None
    for _ in range(_MAX_SYMREFS):
        if _OID.fullmatch(text):
            return Resolved(name, text)
        if not text.startswith("ref: "):
            return None
        name = text[len("ref: ") :].strip()
        if not _is_plain(name):
            return None
        loose = read_small(f"{common}/{name}")
        if loose is None:
            return Resolved(name, packed_refs(common).get(name))
        text = loose.strip()
    return None


def _is_plain(name: str) -> bool:
    """Whether a ref name stays below `refs/`."""
    parts = name.split("/")
    return parts[0] == "refs" and len(parts) > 1 and not any(part in ("", ".", "..") for part in parts)


def _is_odd(name: str) -> bool:
    """Whether git might refuse the name, or was made to accept it. Source: git-check-ref-format(1)."""
    if _ODD.search(name):
        return True
    return any(not part or part.startswith(".") or part.endswith((".", ".lock")) for part in name.split("/"))


def _loose_refs(common: Path | str, prefix: str, without: Collection[str] = ()) -> Iterator[tuple[str, CommitId]]:
    """Loose refs below the prefix; the value of a symbolic or broken one is empty.

    Asked for several times a subtask, with several refs for each subtask: a folder or file that is the same by inode,
    size and both times is not read again, and no path objects are made.
    """
    top = str(common)
    folders = [prefix.rstrip("/")]
    while folders:
        folder = folders.pop()
        for entry, is_folder in _listed(f"{top}/{folder}"):
            name = f"{folder}/{entry}"
            if is_folder:
                if name not in without:
                    folders.append(name)
            elif not entry.endswith(".lock") and (value := _loose_value(f"{top}/{name}")) is not None:
                yield name, value


def _listed(folder: str) -> tuple[tuple[str, bool], ...]:
    """Names in a folder, and whether each is a folder itself. Empty when it was removed with its last ref."""
    try:
        now = os.stat(folder)  # noqa: PTH116
        mark = (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
        known = _folders.get(folder)
        if known is not None and known[0] == mark:
            return known[1]
        with os.scandir(folder) as listed:
            names = tuple((entry.name, entry.is_dir(follow_symlinks=False)) for entry in listed)
    except OSError:
        return ()
    # A name that comes or goes changes the folder's times; a file that is written in place is seen by its own.
    if time.time_ns() - now.st_ctime_ns > _SETTLED_NS:
        if len(_folders) >= _MAX_VALUES:
            _folders.clear()
        _folders[folder] = (mark, names)
    return names


def _loose_value(path: str) -> CommitId | None:
    """What a loose ref's file holds, empty when it is no object id; None when the file is gone (packed or deleted)."""
    try:
        now = os.lstat(path)
    except OSError:
        return None
    mark = (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
    known = _values.get(path)
    if known is not None and known[0] == mark:
        return known[1]
    text = (read_small(path) or "").strip()
    if not text and not os.path.lexists(path):
        return None
    value = text if _OID.fullmatch(text) else ""
    # A file that changed a moment ago may change again within the clock's step and look the same.
    if time.time_ns() - now.st_ctime_ns > _SETTLED_NS:
        if len(_values) >= _MAX_VALUES:
            _values.clear()
        _values[path] = (mark, value)
    return value


def _read(path: Path | str, limit: int) -> bytes | None:
    opened = open_regular(path)
    if opened is None:
        return None
    fd, _ = opened
    try:
        return _read_all(fd, limit)
    except OSError:
        return None
    finally:
        os.close(fd)


def _read_end(path: Path | str) -> bytes:
    opened = open_regular(path)
    if opened is None:
        return b""
    fd, size = opened
    try:
        os.lseek(fd, max(0, size - MAX_REFLOG_BYTES), os.SEEK_SET)
        return _read_all(fd, MAX_REFLOG_BYTES)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _read_all(fd: int, limit: int) -> bytes:
    chunks = []
    while limit > 0 and (chunk := os.read(fd, min(limit, 1 << 20))):
        chunks.append(chunk)
        limit -= len(chunk)
    return b"".join(chunks)
