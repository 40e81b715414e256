"""Reads and writes one loose object of the user's store as a file: a tenth of what a question to a kept git costs.

What an agent committed a moment ago is loose. Content is believed only when its hash is the name that was asked for;
anything else (packed, damaged, too large, no file) is left to git, which knows every place an object can be in.

An object is written as git writes it: whole under a `tmp_obj_` name, which `git prune` knows, then renamed.
Source: git's object-file.c, `write_loose_object`.
"""

import contextlib
import hashlib
import os
import re
import secrets
import zlib
from typing import Final

from coordinate_agents.worktrees.crashpoints import crash_point
from coordinate_agents.worktrees.files import read_regular

_HEADER = re.compile(rb"(commit|tree|blob|tag) (\d{1,12})\0")
_HEADER_BYTES = 32
# git's own level for loose objects.
_LEVEL: Final = 1
_TRIES: Final = 3
_MAX_COMMIT_BYTES: Final = 1 << 20


def loose_content(objects: str, oid: str, type_: str, *, max_bytes: int) -> bytes | None:
    """The bytes of an object below the folder `objects`; None: git must be asked."""
    packed = read_regular(f"{objects}/{oid[:2]}/{oid[2:]}", max_bytes)
    if packed is None:
        return None
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(packed, max_bytes + _HEADER_BYTES)
    except zlib.error:
        return None
    header = _HEADER.match(text)
    if header is None or header[1].decode() != type_ or len(text) - header.end() != int(header[2]):
        return None
    if not reader.eof or reader.unused_data:  # cut, or with more behind its end, which git takes for damage
        return None
    algorithm = "sha1" if len(oid) == 40 else "sha256"
    digest = hashlib.new(algorithm, text, usedforsecurity=False).hexdigest()
    return text[header.end() :] if digest == oid else None


def is_loose_commit(objects: str, oid: str) -> bool:
    """Whether the commit stands whole in a file of its own; False: git must be asked."""
    return loose_content(objects, oid, "commit", max_bytes=_MAX_COMMIT_BYTES) is not None


def write_loose(objects: str, object_format: str, type_: str, text: bytes) -> str:
    """Write an object below the folder `objects` and sync it; its id. It may be there already. Raises: OSError."""
    whole = b"%s %d\0%s" % (type_.encode(), len(text), text)
    oid = hashlib.new(object_format, whole, usedforsecurity=False).hexdigest()
    packed = zlib.compress(whole, _LEVEL)
    for tries_left in range(_TRIES - 1, -1, -1):
        try:
            _store(f"{objects}/{oid[:2]}", oid[2:], packed)
            break
        except FileNotFoundError:  # a `git prune` took the folder, empty until now, or the draft
            if not tries_left:
                raise
    crash_point("commit.written")
    return oid


def _store(folder: str, name: str, packed: bytes) -> None:
    if not os.path.isdir(folder):  # noqa: PTH112
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)  # noqa: PTH102
    draft = f"{folder}/tmp_obj_{secrets.token_hex(8)}"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o444)
    try:
        try:
            rest = memoryview(packed)
            while rest:
                rest = rest[os.write(fd, rest) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        crash_point("commit.file")
        # Over one that is there: it holds the same, and is now too young to be pruned before it is pinned.
        os.rename(draft, f"{folder}/{name}")  # noqa: PTH104
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)  # noqa: PTH108
        raise
