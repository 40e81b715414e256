"""Why and how a driver leaves before the end: signals, a deadline, a stop that somebody asked for."""

import signal
from typing import Final, Literal

import anyio

from coordinate_agents.graph.engine import Engine
from coordinate_agents.graph.store.rows import RequestRow

Ending = Literal["ended", "interrupted", "stopped", "deadline", "handover"]

# After a first Ctrl-C a person still has this long for a second one, although the driver could have left already.
SECOND_CTRL_C_S: Final = 1.5


class Leaving:
    """Collects the reasons of one drive; the last one counts. `stops` are requests answered once all is closed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._stopped = anyio.Event()
        self._was_ctrl_c = False
        self.ending: Ending = "ended"
        self.stops: list[RequestRow] = []

    async def hear_signals(self) -> None:
        """First Ctrl-C: leave, agents live on. Second: stop them. SIGHUP: leave, a detached driver takes over."""
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for number in signals:
                if number == signal.SIGHUP:
                    self._leave("handover")
                elif number == signal.SIGINT and self._was_ctrl_c:
                    self._leave("stopped")
                elif number == signal.SIGINT:
                    self._was_ctrl_c = True
                    self._engine.context.progress.notice(
                        "Leaving; the agents go on in their Sessions. Ctrl-C again stops them."
                    )
                    self._leave("interrupted")
                else:
                    self._leave("interrupted")

    async def after(self, deadline_s: float) -> None:
        """Leave when the time is up."""
        await anyio.sleep(deadline_s)
        self._leave("deadline")

    def stop(self, row: RequestRow) -> None:
        """Leave and close every Session, because of a request."""
        self.stops.append(row)
        self._leave("stopped")

    async def wait_for_second_thought(self) -> None:
        """After a Ctrl-C, the time for a second one; returns at once in every other case."""
        if self._was_ctrl_c and self.ending == "interrupted":
            with anyio.move_on_after(SECOND_CTRL_C_S):
                await self._stopped.wait()

    def _leave(self, ending: Ending) -> None:
        # What was asked to stop is stopped, whatever is said afterwards.
        if self.ending != "stopped":
            self.ending = ending
        if ending == "stopped":
            self._stopped.set()
        self._engine.leave()
