"""Builds the bytes of an index of version 2 with its cache of trees, as `git read-tree` leaves it. Pure.

Source: gitformat-index(5). Times, inode and size are those of files that were just written, so git's next look at the
worktree reads none of them; the cache of trees saves the next commit from making every tree again.
"""

import hashlib
import os
import struct
from collections.abc import Iterable, Sequence
from typing import Final

_HEADER: Final = struct.Struct(">4sII")
_STAT: Final = struct.Struct(">10I")
_LOW: Final = 0xFFFFFFFF
_MAX_NAME: Final = 0xFFF
_BILLION: Final = 1_000_000_000


def entry_tail(path: bytes, oid: bytes) -> bytes:
    """What follows the stat data of an entry: id, flags, path, and 1 to 8 NULs up to a multiple of eight."""
    length = _STAT.size + len(oid) + 2 + len(path)
    flags = min(len(path), _MAX_NAME).to_bytes(2, "big")
    return oid + flags + path + b"\0" * (8 - length % 8)


def entry(mode: int, found: os.stat_result, tail: bytes) -> bytes:
    """One entry; `tail` is that of its path and id."""
    changed, modified = found.st_ctime_ns, found.st_mtime_ns
    head = _STAT.pack(
        changed // _BILLION & _LOW,
        changed % _BILLION,
        modified // _BILLION & _LOW,
        modified % _BILLION,
        found.st_dev & _LOW,
        found.st_ino & _LOW,
        mode,
        found.st_uid & _LOW,
        found.st_gid & _LOW,
        found.st_size & _LOW,
    )
    return head + tail


def tree_record(oid: bytes, count: int, below: Sequence[tuple[bytes, bytes]]) -> bytes:
    """A tree in the cache of trees, without its name: how many entries it covers, and the trees `below` it by name."""
    # Not as git sorts trees: shorter names come first.
    ordered = sorted(below, key=lambda named: (len(named[0]), named[0]))
    start = b"%d %d\n" % (count, len(ordered)) + oid
    return start + b"".join(name + b"\0" + record for name, record in ordered)


def index_of(entries: Iterable[bytes], tree: bytes, *, id_size: int) -> bytes:
    """The whole file: entries in the order of their paths, the record of the top tree, the hash over both."""
    made = list(entries)
    extension = b"\0" + tree
    body = b"".join([_HEADER.pack(b"DIRC", 2, len(made)), *made, b"TREE", len(extension).to_bytes(4, "big"), extension])
    return body + hashlib.new("sha1" if id_size == 20 else "sha256", body, usedforsecurity=False).digest()
