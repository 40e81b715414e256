"""Reads one loose object of the user's store as a file: 0.05 ms instead of 0.2 for a question to a kept git.

What an agent committed a moment ago is loose. Content is believed only when its hash is the name that was asked for;
anything else (packed, damaged, too large, no file) is left to git, which knows every place an object can be in.
"""

import hashlib
import re
import zlib

from coordinate_agents.worktrees.files import read_regular

_HEADER = re.compile(rb"(commit|tree|blob|tag) (\d{1,12})\0")
_HEADER_BYTES = 32


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
    if header is None or not reader.eof or header[1].decode() != type_ or len(text) - header.end() != int(header[2]):
        return None
    algorithm = "sha1" if len(oid) == 40 else "sha256"
    digest = hashlib.new(algorithm, text, usedforsecurity=False).hexdigest()
    return text[header.end() :] if digest == oid else None
