"""Remembers how the files of fresh worktrees were written: the index of each layout, and when it was over.

The memory belongs to this process. What is in it was taken from the judge's private folder before anybody could work
in the worktree, so nobody's later index or settings are in it. It decides nothing.
"""

import stat
import struct
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.model import CommitId, Worktree

MAX_REMEMBERED_BYTES: Final = 64 << 20
_HEADER: Final = struct.Struct(">4sII")
# Times, device, inode, mode, owners, size; then come the object id, the flags and the path.
_STAT: Final = struct.Struct(">10I")
_FLAGS: Final = struct.Struct(">H")


@dataclass(frozen=True, slots=True)
class Written:
    """One file as git wrote it: change and modification time, inode (low bits), size; None when only content counts."""

    mode: str
    oid: str
    seen: tuple[int, int, int, int] | None


@dataclass(frozen=True, slots=True)
class Layout:
    """The index that wrote the files of a commit, and the time when all were written."""

    commit: CommitId
    index: bytes
    done_ns: int


class Layouts:
    """What is remembered of fresh worktrees of this process, the oldest forgotten first. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], Layout] = OrderedDict()

    def remember(self, worktree: Worktree, commit: CommitId, index: bytes) -> None:
        """Call when a new folder's files are written and before anybody works there."""
        # The file system's own clock: what is changed from now on has this time or a later one.
        top = Path(worktree.path)
        top.chmod(stat.S_IMODE(top.lstat().st_mode))
        done = top.lstat().st_ctime_ns
        with self._lock:
            self._known[_key(worktree)] = Layout(commit, index, done)
            while sum(len(layout.index) for layout in self._known.values()) > MAX_REMEMBERED_BYTES:
                self._known.popitem(last=False)

    def forget(self, worktree: Worktree) -> None:
        with self._lock:
            self._known.pop(_key(worktree), None)

    def get(self, worktree: Worktree) -> Layout | None:
        with self._lock:
            return self._known.get(_key(worktree))


def parse_index(data: bytes, done_ns: int, *, id_size: int) -> dict[bytes, Written] | None:
    """The entries of an index of version 2; None for any other, or one with flags. Source: gitformat-index(5)."""
    if len(data) < _HEADER.size:
        return None
    signature, version, count = _HEADER.unpack_from(data)
    if (signature, version) != (b"DIRC", 2):
        return None
    found: dict[bytes, Written] = {}
    at = _HEADER.size
    flags_at = _STAT.size + id_size
    for _ in range(count):
        c_s, c_ns, m_s, m_ns, _, inode, mode, _, _, size = _STAT.unpack_from(data, at)
        (flags,) = _FLAGS.unpack_from(data, at + flags_at)
        start = at + flags_at + _FLAGS.size
        end = data.index(b"\0", start)
        if flags & 0xF000:
            return None
        changed = c_s * 1_000_000_000 + c_ns
        seen = (changed, m_s * 1_000_000_000 + m_ns, inode, size) if changed < done_ns else None
        oid = data[at + _STAT.size : at + flags_at].hex()
        found[data[start:end]] = Written(f"{mode:06o}", oid, seen)
        at += (end - at + 8) & ~7  # entries are padded with 1 to 8 NULs
    return found


def _key(worktree: Worktree) -> tuple[str, str]:
    return worktree.path, worktree.nonce
