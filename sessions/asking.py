"""What a Session's child asks, as its host recorded it, and the wait for a change of that.

The host decides what is a question (`InputRules.questions`) and writes it into its record before it tells its clients;
here the record is read again whenever the host says something. Decides nothing, answers nothing.
"""

from pathlib import Path
from typing import Final

import anyio

from coordinate_agents.sessions import custodian
from coordinate_agents.sessions.connection import HostConnection, HostGone, read_token
from coordinate_agents.sessions.model import Question, SessionRecord

# A record is also read again this often, should an event be missed or the host be busy for a while.
_LOOK_AGAIN_S: Final = 30.0
_RETRY_S: Final = 1.0


def question(path: Path) -> Question | None:
    """What the child of this Session folder asks; None when nothing, or when it has ended."""
    record = custodian.see(path).record
    return _asked(record)


async def change(path: Path, known: Question | None) -> Question | None:
    """Wait until the question is another one than `known`. Of a Session that ended it never returns."""
    while True:
        record = custodian.see(path).record
        if _asked(record) != known:
            return _asked(record)
        if record is not None and record.end is not None:
            await anyio.sleep_forever()
        try:
            await _hear(path, record, known)
        except HostGone:
            await anyio.sleep(_RETRY_S)


async def _hear(path: Path, record: SessionRecord | None, known: Question | None) -> None:
    """Return at the host's next word about a question, or after a while. Raises: HostGone."""
    if record is None or record.socket is None:
        raise HostGone("no socket")
    async with HostConnection(record.socket, read_token(path)) as host:
        await host.ask("hello")
        # It may have been recorded between the look and the connection; later ones are told.
        while _asked(custodian.see(path).record) == known:
            with anyio.move_on_after(_LOOK_AGAIN_S):
                while (await host.event()).get("event") not in ("question", "ended"):
                    pass


def _asked(record: SessionRecord | None) -> Question | None:
    return None if record is None or record.end is not None else record.question
