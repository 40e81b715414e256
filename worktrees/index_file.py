"""Builds the bytes of an index of version 2 with its cache of trees, as `git read-tree` leaves it, and reads one. Pure.

Source: gitformat-index(5). Times, inode and size are those of files that were just written, so git's next look at the
worktree reads none of them; the cache of trees saves the next commit from making every tree again.
"""

import hashlib
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

_HEADER: Final = struct.Struct(">4sII")
# Times, device, inode, mode, owners, size; then come the object id, the flags and the path.
_STAT: Final = struct.Struct(">10I")
_FLAGS: Final = struct.Struct(">H")
_INODE: Final = 5
_MODE: Final = 6
_EXTENDED: Final = 0x4000
_LOW: Final = 0xFFFFFFFF
_MAX_NAME: Final = 0xFFF
_BILLION: Final = 1_000_000_000


def entry_tail(path: bytes, oid: bytes) -> bytes:
    """What follows the stat data of an entry: id, flags, path, and 1 to 8 NULs up to a multiple of eight."""
    length = _STAT.size + len(oid) + _FLAGS.size + len(path)
    flags = _FLAGS.pack(min(len(path), _MAX_NAME))
    return oid + flags + path + b"\0" * (8 - length % 8)


def entry(mode: int, found: os.stat_result, tail: bytes) -> bytes:
    """One entry; `tail` is that of its path and id."""
    return stat_data(mode, found) + tail


def stat_data(mode: int, found: os.stat_result) -> bytes:
    """What an entry notes of a file: its times, inode, owners and size, and the mode that git gives it."""
    changed, modified = found.st_ctime_ns, found.st_mtime_ns
    return _STAT.pack(
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


def parse_index(data: bytes, *, id_size: int) -> dict[bytes, bytes] | None:
    """What each entry of an index of version 2 notes of its file (`stat_data`, then the id), by path.

    None for any other index, or one with flags.
    """
    if len(data) < _HEADER.size:
        return None
    signature, version, count = _HEADER.unpack_from(data)
    if (signature, version) != (b"DIRC", 2):
        return None
    found: dict[bytes, bytes] = {}
    at = _HEADER.size
    flags_at = _STAT.size + id_size
    path_at = flags_at + _FLAGS.size
    for _ in range(count):
        if data[at + flags_at] & 0xF0:
            return None
        end = data.index(b"\0", at + path_at)
        found[data[at + path_at : end]] = data[at : at + flags_at]
        at += (end - at + 8) & ~7  # entries are padded with 1 to 8 NULs
    return found


def mode_and_id(noted: bytes) -> tuple[str, str]:
    """Of what `parse_index` gives for an entry."""
    return f"{_STAT.unpack_from(noted)[_MODE]:06o}", noted[_STAT.size :].hex()


def noted_inodes(data: bytes, *, id_size: int) -> Iterator[tuple[bytes, int]]:
    """Path and inode (low bits; 0: not noted) of each entry, of version 2, 3 or 4. Ends early where it is damaged."""
    if len(data) < _HEADER.size or data[:4] != b"DIRC":
        return
    _, version, count = _HEADER.unpack_from(data)
    at, path = _HEADER.size, b""
    for _ in range(count if version in (2, 3, 4) else 0):
        start = at + _STAT.size + id_size + _FLAGS.size
        if start > len(data):
            return
        (flags,) = _FLAGS.unpack_from(data, start - _FLAGS.size)
        start += _FLAGS.size if flags & _EXTENDED else 0
        kept = 0
        if version == 4:  # the path begins as the one before it, without so many bytes of its end
            cut, start = _offset(data, start)
            kept = max(0, len(path) - cut)
        end = data.find(b"\0", start)
        if end < 0:
            return
        path = path[:kept] + data[start:end]
        yield path, _STAT.unpack_from(data, at)[_INODE]
        at = end + 1 if version == 4 else end + 8 - (end - at) % 8


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """A number as in an OFS_DELTA, and where it ends."""
    value = -1
    while at < len(data):
        value = (value + 1) << 7 | data[at] & 0x7F
        at += 1
        if not data[at - 1] & 0x80:
            break
    return max(0, value), at
