"""What a Session's child asks, as its host recorded it, and the wait for a change of that or of its turn.

The host decides what is a question (`InputRules.questions`) and writes it into its record before it tells its clients;
here the record is read again whenever the host says something. Decides nothing, answers nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import anyio

from coordinate_agents.sessions import custodian
from coordinate_agents.sessions.connection import HostConnection, HostGone, read_token
from coordinate_agents.sessions.model import Question, SessionRecord

# A record is also read again this often, should an event be missed or the host be busy for a while.
_LOOK_AGAIN_S: Final = 30.0
_RETRY_S: Final = 1.0
# What a host tells after it changed its record.
WORDS: Final = ("question", "turn", "conversation", "stalled")


class Words:
    """What hosts say of questions to those who wait for the end of their Sessions, passed on within one event loop.

    Whoever drives a subtask waits for both; a second connection would cost as much as the first, here and in the host.
    """

    def __init__(self) -> None:
        self._next: dict[Path, anyio.Event] = {}

    @contextmanager
    def passed_on(self, path: Path) -> Iterator[Callable[[], None]]:
        """Inside the block the caller is going to hear this Session's host; the function says that there was a word.

        To be called first when the host began to tell: what it recorded before that was told to nobody. Left with an
        exception, whoever waits is told to look for themselves. A second one beside the first passes nothing on.
        """
        if path in self._next:
            yield lambda: None
            return
        self._next[path] = anyio.Event()

        def tell() -> None:
            self._next[path].set()
            self._next[path] = anyio.Event()

        try:
            yield tell
        except BaseException:
            self._next[path].set()
            raise
        finally:
            del self._next[path]

    def next_of(self, path: Path) -> anyio.Event | None:
        """Set at the next word; None when nobody here hears the host."""
        return self._next.get(path)


def question(path: Path) -> Question | None:
    """What the child of this Session folder asks; None when nothing, or when it has ended."""
    record = custodian.see(path).record
    return _asked(record)


async def change(path: Path, known: Question | None, words: Words) -> Question | None:
    """Wait until the question is another one than `known`. Of a Session that ended it never returns."""
    record = await until(path, lambda record: _asked(record) != known, words)
    return _asked(record)


async def until(path: Path, is_found: Callable[[SessionRecord | None], bool], words: Words) -> SessionRecord | None:
    """The record once it is as wanted; looked at whenever its host has a word. A final one never changes any more."""
    while True:
        record = custodian.see(path).record
        if is_found(record):
            return record
        if record is not None and record.end is not None:
            await anyio.sleep_forever()
        word = words.next_of(path)
        if word is not None:
            with anyio.move_on_after(_LOOK_AGAIN_S):
                await word.wait()
            continue
        try:
            await _hear(path, record, is_found)
        except HostGone:
            await anyio.sleep(_RETRY_S)


async def _hear(path: Path, record: SessionRecord | None, is_found: Callable[[SessionRecord | None], bool]) -> None:
    """Return at the host's next word about this, or after a while. Raises: HostGone."""
    if record is None or record.socket is None:
        raise HostGone("no socket")
    async with HostConnection(record.socket, read_token(path)) as host:
        await host.ask("hello")
        # It may have been recorded between the look and the connection; later ones are told.
        while not is_found(custodian.see(path).record):
            with anyio.move_on_after(_LOOK_AGAIN_S):
                while (await host.event()).get("event") not in (*WORDS, "ended"):
                    pass


def _asked(record: SessionRecord | None) -> Question | None:
    return None if record is None or record.end is not None else record.question
