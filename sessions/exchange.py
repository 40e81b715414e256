"""What travels between a client and a host, as values; and reading the spool when there is no host.

A read is the same for both: `reading.read` over the ring in the host, or over the spool here.
"""

import base64
import os
import re
from pathlib import Path
from typing import Any, Final

from coordinate_agents.sessions import folder as folders
from coordinate_agents.sessions import reading
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import Output, OutputForm, WriteResult
from coordinate_agents.sessions.spool import Spool

MAX_TEXT_BYTES: Final = 256 << 10
# Keys have names; in text they would act on the program, or end the paste.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")


def checked_text(text: str) -> bytes:
    """The text as it is typed: line ends are LF. Raises: INVALID_USAGE for control characters, or too much of it."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    found = _CONTROLS.search(text)
    if found is not None:
        raise SessionError(
            "INVALID_USAGE",
            f"The text has the control character U+{ord(found[0]):04X} at {found.start()}; nothing was typed.",
            next="send keys by their names",
        )
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SessionError("INVALID_USAGE", "The text is not valid Unicode; nothing was typed.") from error
    if len(data) > MAX_TEXT_BYTES:
        raise SessionError(
            "INVALID_USAGE",
            f"The text has {len(data)} bytes (limit {MAX_TEXT_BYTES}); nothing was typed.",
            next="put it into a file and name the file",
        )
    return data


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def write_result(answer: dict[str, Any]) -> WriteResult:
    return WriteResult(answer["delivered"], str(answer.get("reason", "")))


def result_of(answer: dict[str, Any]) -> reading.Result:
    """A host's answer to a read."""
    result = reading.Result(base64.b64decode(answer["data"]), int(answer["cursor"]), int(answer["next_cursor"]))
    result.dropped_bytes = int(answer["dropped_bytes"])
    result.truncated = bool(answer["truncated"])
    result.ended = bool(answer["ended"])
    return result


def output_of(result: reading.Result, form: OutputForm) -> Output:
    return Output(
        result.text(form),
        result.cursor,
        result.next_cursor,
        result.dropped_bytes,
        result.truncated,
        result.ended,
    )


def read_spool(path: Path, *, cursor: int | None, max_bytes: int, max_lines: int | None, form: str) -> reading.Result:
    """One read of an ended Session, or of one whose host died. Blocks. Raises: SESSION_NOT_FOUND."""
    try:
        folder = folders.open_folder(str(path))
    except OSError as error:
        raise SessionError("SESSION_NOT_FOUND", f"The folder of Session {path.name} cannot be read.") from error
    try:
        with Spool(folder) as spool:
            return reading.read(spool, cursor=cursor, max_bytes=max_bytes, max_lines=max_lines, form=form)
    finally:
        os.close(folder)
