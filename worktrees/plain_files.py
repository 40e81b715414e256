"""Writes the files of a commit into an empty worktree without git, where the bytes of a blob are those of its file.

Git starts a process, opens every object and unpacks it again for each worktree of the same repository; here contents
are remembered. Everything that could make a file differ from its blob, or that git would refuse to check out, is left
to git: filters, line endings, encodings, submodules, names that mean `.git` somewhere, a file system or settings where
names and modes are not as written. The index is the one that git would have made, byte for byte but for the times.
"""

import os
import re
import stat
import threading
from collections import OrderedDict
from collections.abc import Collection
from typing import Final

from coordinate_agents.worktrees import index_file
from coordinate_agents.worktrees.cat_file import ObjectReader
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.frozen import Frozen
from coordinate_agents.worktrees.tree_objects import GITLINK_MODE, TREE_MODE, TooLargeError, TreeReader
from coordinate_agents.worktrees.values import value_class

MAX_FILES: Final = 20_000
# All files of one commit, and what is remembered of all commits: a larger checkout is git's to write.
MAX_BYTES: Final = 64 << 20
_MAX_DEPTH: Final = 200
_MAX_KEPT_FILES: Final = 400_000
# Asked at once: together less than what is remembered, so that a large repository is noticed early.
_STEP: Final = 256
_LINK_MODE: Final = "120000"
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Every attribute that changes bytes on their way out is one of these, or a macro that names one.
_CONVERTING: Final = re.compile(rb"filter|ident|encoding|crlf", re.I)
# Git refuses `.git` also as other file systems spell it: `.git. `, `GIT~1`, `.git::$INDEX_ALLOCATION`.
_SUSPECT: Final = re.compile(rb"\.git|git~|.*\\", re.I | re.S)
_USUAL: Final = re.compile(rb"\.git[a-z_-][a-z0-9._-]*")


@value_class
class _File:
    """One file below the top: `tail` is what its index entry ends with."""

    path: bytes
    mode: str
    oid: str
    tail: bytes


@value_class
class _Part:
    """A tree as it lies at one path: folders, parents first; files in the order of the index; its cached record."""

    folders: tuple[bytes, ...]
    files: tuple[_File, ...]
    record: bytes


class PlainFiles:
    """Writes checkouts, and remembers blobs and trees for the next one. Thread-safe, bounded."""

    def __init__(self, objects: ObjectReader, trees: TreeReader) -> None:
        self._objects = objects
        self._trees = trees
        self._lock = threading.Lock()
        self._blobs: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0
        self._parts: OrderedDict[tuple[bytes, str], _Part] = OrderedDict()
        self._kept_files = 0
        self._is_too_much = False

    def write(self, top: str, tree: str, settings: Frozen) -> bytes | None:
        """Write every file of the tree into the folder, which holds only its `.git`; the index of them.

        None: git must do it, and may find some of the files there.
        """
        if self._is_too_much or not _is_plain(settings):
            return None
        try:
            if os.listdir(top) != [".git"]:  # noqa: PTH208
                return None
            with self._lock:
                part = self._part(b"", tree, 0)
                blobs = self._contents({file.oid for file in part.files})
            if blobs is None or _may_convert(part, blobs):
                return None
            return _written(os.fsencode(top), part, blobs, id_size=len(tree) // 2)
        except (TooLargeError, WorktreeError, OSError, ValueError):
            return None  # whatever is wrong (a link to nowhere, a full disk), git says it better

    def _part(self, prefix: bytes, oid: str, depth: int) -> _Part:
        """Call under the lock. Raises: TooLargeError for what git must judge."""
        known = self._parts.get((prefix, oid))
        if known is not None:
            self._parts.move_to_end((prefix, oid))
            return known
        if depth > _MAX_DEPTH:
            raise TooLargeError
        folders: list[bytes] = []
        files: list[_File] = []
        below: list[tuple[bytes, bytes]] = []
        for name, (mode, child) in self._trees.read(oid).items():
            path = prefix + name
            _require_usual(name, mode)
            if mode == TREE_MODE:
                part = self._part(path + b"/", child, depth + 1)
                folders += [path, *part.folders]
                files += part.files
                below.append((name, part.record))
            else:
                files.append(_File(path, mode, child, index_file.entry_tail(path, bytes.fromhex(child))))
            if len(files) > MAX_FILES:
                raise TooLargeError
        record = index_file.tree_record(bytes.fromhex(oid), len(files), below)
        made = _Part(tuple(folders), tuple(files), record)
        if prefix:  # the top differs from commit to commit
            self._parts[prefix, oid] = made
            self._kept_files += len(files)
            while self._kept_files > _MAX_KEPT_FILES:
                self._kept_files -= len(self._parts.popitem(last=False)[1].files)
        return made

    def _contents(self, oids: Collection[str]) -> dict[str, bytes] | None:
        """The blobs by id; None when they are too many bytes, or one cannot be read. Call under the lock."""
        missing = [oid for oid in oids if oid not in self._blobs]
        size = 0
        for at in range(0, len(missing), _STEP):
            asked = missing[at : at + _STEP]
            for oid, data in zip(asked, self._objects.contents(asked, "blob"), strict=True):
                if data is None:
                    return None
                self._blobs[oid] = data
                size += len(data)
            if size > MAX_BYTES:
                break
        self._bytes += size
        found = {oid: self._blobs[oid] for oid in oids if oid in self._blobs}
        self._is_too_much = sum(map(len, found.values())) > MAX_BYTES
        for oid in found:
            self._blobs.move_to_end(oid)
        while self._bytes > MAX_BYTES:
            self._bytes -= len(self._blobs.popitem(last=False)[1])
        return None if self._is_too_much else found


def _is_plain(settings: Frozen) -> bool:
    """Whether no setting changes what is written. Filters act only where an attribute names one."""
    if not settings.is_as_on_disk() or _CONVERTING.search(os.fsencode(settings.attributes)):
        return False
    last = dict(settings.settings)
    is_kept = last.get("core.autocrlf", "false").lower() in ("false", "no", "off", "0", "", "input")
    return is_kept and last.get("core.eol", "lf").lower() in ("lf", "native")


def _require_usual(name: bytes, mode: str) -> None:
    if mode == GITLINK_MODE:
        raise TooLargeError
    if _SUSPECT.match(name) and (mode == _LINK_MODE or not _USUAL.fullmatch(name)):
        raise TooLargeError


def _may_convert(part: _Part, blobs: dict[str, bytes]) -> bool:
    named = (file for file in part.files if file.path.endswith(b".gitattributes"))
    return any(_CONVERTING.search(blobs[file.oid]) for file in named)


def _written(top: bytes, part: _Part, blobs: dict[str, bytes], *, id_size: int) -> bytes:
    """Write folders and files; the index. Raises: OSError when something is in the way."""
    for folder in part.folders:
        os.mkdir(top + b"/" + folder)  # noqa: PTH102
    entries = [
        index_file.entry(int(file.mode, 8), _write(top + b"/" + file.path, file.mode, blobs[file.oid]), file.tail)
        for file in part.files
    ]
    return index_file.index_of(entries, part.record, id_size=id_size)


def _write(path: bytes, mode: str, data: bytes) -> os.stat_result:
    if mode == _LINK_MODE:
        os.symlink(data, path)  # noqa: PTH211
        return os.lstat(path)
    fd = os.open(path, _FLAGS, 0o777 if mode == "100755" else 0o666)
    try:
        written = os.write(fd, data) if data else 0
        while written < len(data):
            written += os.write(fd, memoryview(data)[written:])
        found = os.fstat(fd)
    finally:
        os.close(fd)
    # Some file systems have no executable files: git shall say what it makes of them.
    if mode == "100755" and not found.st_mode & stat.S_IXUSR:
        raise OSError("the file is not executable")
    return found
