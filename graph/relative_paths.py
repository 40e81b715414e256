"""What a path inside the repository may look like in a document, as reasons for refusal. Never touches files."""

import re
from typing import Final

MAX_PATH_BYTES: Final = 4096

_DRIVE: Final = re.compile(r"[A-Za-z]:")


def path_problem(text: str) -> str | None:
    """Why the text cannot be a path below the folder it is relative to; None for a good one."""
    if not text.strip():
        return "a path cannot be empty"
    if len(text.encode()) > MAX_PATH_BYTES:
        return f"a path has more than {MAX_PATH_BYTES} bytes"
    shown = repr(text[:60])
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        return f"path {shown} holds a control character; remove it"
    if "\\" in text:
        return f"path {shown} holds a backslash; separate components with '/'"
    if text.startswith(("/", "~")) or _DRIVE.match(text):
        return f"path {shown} is absolute; write it relative"
    if ".." in text.split("/"):
        return f"path {shown} holds '..' and may leave its folder; write it without"
    return None
