"""The files by which a Session and its agent speak of a turn: the prompt in, the submission out, and the output.

All in the Session's own folder. Read through no link and bounded, since the agent can write there.
"""

import os
import stat
from pathlib import Path
from typing import Final

from coordinate_agents.sessions import folder as folders
from coordinate_agents.sessions.appearing import appears
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionId
from coordinate_agents.sessions.prompt import MAX_PASTE_BYTES, write_prompt_file

PROMPT_NAME: Final = "prompt.md"
SUBMIT_NAME: Final = "submit"
MAX_SUMMARY_BYTES: Final = 2048
# In so much of the beginning of the output an agent names its conversation.
BEGINNING_BYTES: Final = 64 << 10
# All of it that is kept of an agent.
OUTPUT_BYTES: Final = 8 << 20


class TurnFiles:
    """The part of the port `Agents` that needs no adapter."""

    def __init__(self, sessions_root: Path) -> None:
        self._sessions_root = sessions_root

    def typed(self, session_id: SessionId) -> str:
        """The prompt of a Session whose delivery is paste: to be typed, once."""
        return _read_text(self._sessions_root / session_id / PROMPT_NAME, MAX_PASTE_BYTES)

    def next_turn(self, session_id: SessionId, prompt: str, *, turn: int) -> None:
        """Lay out the prompt of a further turn; a submit file that is there is an earlier turn's and is set aside.

        Done twice it is the same. Raises: SESSION_WRITE_FAILED; SPAWN_FAILED when the prompt is too long to be typed.
        """
        if len(prompt.encode("utf-8", "surrogateescape")) > MAX_PASTE_BYTES:
            raise SessionError("SPAWN_FAILED", f"The prompt is too long to be typed (limit {MAX_PASTE_BYTES}).")
        folder = self._sessions_root / session_id
        try:
            if os.path.lexists(folder / SUBMIT_NAME):
                (folder / SUBMIT_NAME).replace(folder / f"{SUBMIT_NAME}.before-{turn}")
            write_prompt_file(folder / PROMPT_NAME, prompt)
        except OSError as error:
            raise SessionError(
                "SESSION_WRITE_FAILED", f"Session {session_id}: its next prompt could not be written: {error.strerror}."
            ) from error

    def submit(self, session_id: SessionId, text: str) -> bool:
        """Write the submit file, whole or not at all; whether all of the text fitted. Raises: OSError."""
        data = text.encode("utf-8", "replace")
        folder = folders.open_folder(str(self._sessions_root / session_id))
        try:
            folders.write_whole(folder, SUBMIT_NAME, data[:MAX_SUMMARY_BYTES].decode("utf-8", "ignore").encode())
        finally:
            os.close(folder)
        return len(data) <= MAX_SUMMARY_BYTES

    def submitted(self, session_id: SessionId) -> str:
        """The submit file's text; empty when there is none, or it is not a regular file."""
        return _read_text(self._sessions_root / session_id / SUBMIT_NAME, MAX_SUMMARY_BYTES).strip()

    def has_submitted(self, session_id: SessionId) -> bool:
        """Whether the submit file is there, be it empty."""
        return (self._sessions_root / session_id / SUBMIT_NAME).is_file()

    async def submission(self, session_id: SessionId) -> None:
        """See the port."""
        await appears(self._sessions_root / session_id / SUBMIT_NAME)

    def _beginning(self, session_id: SessionId) -> str:
        return _read_text(self._sessions_root / session_id / folders.OUTPUT, BEGINNING_BYTES)

    def _output(self, session_id: SessionId) -> str:
        return _read_text(self._sessions_root / session_id / folders.OUTPUT, OUTPUT_BYTES)


def _read_text(path: Path, max_bytes: int) -> str:
    """The beginning of a regular file, through no link; empty when there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return file.read(max_bytes).decode(errors="replace")
