"""How many bytes a checkout of the user's files takes, from git's index: sizes as they were when git last looked.

An estimate for a plan. Reads one file and runs nothing. Source: gitformat-index(5), versions 2 to 4.
"""

import struct
from pathlib import Path
from typing import Final

_HEADER: Final = struct.Struct(">4sII")
_SIZE: Final = struct.Struct(">I")
# Ten 32-bit fields stand before the object id; the file's size is the last of them.
_STAT_BYTES: Final = 40
_EXTENDED: Final = 0x4000
_MAX_INDEX_BYTES: Final = 256 << 20


def checkout_bytes(root: Path) -> int | None:
    """The sum of the sizes of all files in the index; None when there is no index, or none that is understood."""
    path = _index_path(root)
    try:
        if path is None or path.stat().st_size > _MAX_INDEX_BYTES:
            return None
        data = path.read_bytes()
        for hash_bytes in (20, 32):
            total = _sum(data, hash_bytes)
            if total is not None:
                return total
    except (OSError, struct.error, ValueError, IndexError):
        return None
    return None


def _index_path(root: Path) -> Path | None:
    dot_git = root / ".git"
    if dot_git.is_dir():
        return dot_git / "index"
    try:
        line = dot_git.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return root / "index" if (root / "HEAD").is_file() else None
    return root / line.removeprefix("gitdir:").strip() / "index"


def _sum(data: bytes, hash_bytes: int) -> int | None:
    """The sum when every entry fits this hash size; None when one does not."""
    magic, version, count = _HEADER.unpack_from(data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        return None
    position, total = _HEADER.size, 0
    for _ in range(count):
        start = position
        total += _SIZE.unpack_from(data, start + _STAT_BYTES - 4)[0]
        position += _STAT_BYTES + hash_bytes
        flags = int.from_bytes(data[position : position + 2], "big")
        position += 4 if flags & _EXTENDED else 2
        if version == 4:
            while data[position] & 0x80:  # how much of the name before is kept
                position += 1
            position += 1
        name_end = data.index(b"\0", position)
        if version == 4:
            position = name_end + 1
        else:
            if flags & 0xFFF != min(0xFFF, name_end - position):
                return None
            position = start + (name_end - start + 8) // 8 * 8
    return total
