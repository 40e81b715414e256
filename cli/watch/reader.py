"""Reads the record again when it changed, in a thread of its own, and tells what it found.

Nothing is polled at a high rate: the size and time of two files are looked at five times a second (`Watch`), the lease
once a second, since a driver's death changes no file; the record is read when one of them changed, and every ten
seconds. While nobody drives the graph and something of it lives, that is looked at every few seconds, and what ended
is verified by graph-recover. A record that cannot be read (busy, gone, of a newer version) is said and tried again.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from coordinate_agents.cli.progress_words import describe
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import UnknownEvent, from_row
from coordinate_agents.graph.operations.loading import pick_graph
from coordinate_agents.graph.operations.undriven import UNDRIVEN_S, Undriven
from coordinate_agents.graph.operations.watching import Watch
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store.lease import Holder, holder
from coordinate_agents.graph.store.rows import EventRow
from coordinate_agents.graph.store.store import Store
from coordinate_agents.graph.view import status_of_rows

LOOK_S: Final = 1.0
# Should a change ever be missed, it is late and not lost.
_READ_S: Final = 10.0
# A look at what lives asks every host of the graph.
UNDRIVEN_LOOK_S: Final = 5.0
MAX_EVENTS: Final = 40
# The first look goes so far back in the log, which all graphs of the repository share.
_EVENTS_BEFORE: Final = 400


class Told(NamedTuple):
    """An event worth a line: seconds since the epoch, and what it says."""

    time: float
    line: str


class Look(NamedTuple):
    """`status`: data of graph-status, None before the first that could be read. `at`: when that was read.

    `problem`: why it cannot be read now, else empty. `lives`: nobody drives it, and something of it goes on.
    """

    status: Mapping[str, Any] | None = None
    events: tuple[Told, ...] = ()
    at: float = 0.0
    problem: str = ""
    lives: bool = False


class Reader:
    """Use `start` once and `stop` once. `tell` is called in the reader's thread, for every look that differs."""

    def __init__(self, open_runtime: Callable[[], Runtime], graph: str, tell: Callable[[Look], None]) -> None:
        self._open_runtime = open_runtime
        self._graph = graph
        self._tell = tell
        self._over = threading.Event()
        # It may be in a look when the view ends; nothing waits for it then.
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Tell nothing any more. Does not wait for the thread."""
        self._over.set()

    def _run(self) -> None:
        runtime = self._open_runtime()
        try:
            self._watch(runtime)
        except Exception as error:
            # A bug of ours; the view stays and says so.
            self._told(Look(problem=f"{type(error).__name__}: {error}; nothing is read any more"))
        finally:
            runtime.close()

    def _watch(self, runtime: Runtime) -> None:
        watch = Watch(runtime.state_dir)
        looking = Looking(runtime, self._graph)
        changed = True
        while not self._over.is_set():
            look = looking.look(changed=changed)
            if look is not None:
                self._told(look)
            changed = watch.wait(time.monotonic() + LOOK_S)

    def _told(self, look: Look) -> None:
        if not self._over.is_set():
            self._tell(look)


class Looking:
    """What was read last, and what has to be read again."""

    def __init__(self, runtime: Runtime, graph: str) -> None:
        self._runtime = runtime
        self._graph = graph
        self._undriven = Undriven(runtime, graph)
        self._last = Look()
        self._driver: Holder | None = None
        self._driven_at = self._lives_at = time.monotonic()
        self._read_at = 0.0
        self._lives_now = self._is_quiet = False
        self._cursor: int | None = None
        self._events: deque[Told] = deque(maxlen=MAX_EVENTS)

    def look(self, *, changed: bool) -> Look | None:
        """The new look; None when nothing is new. `changed`: the database may hold something new."""
        last = self._last
        try:
            # The lease first, as in graph-status.
            driver = holder(self._runtime.state_dir, self._graph)
            is_new = changed or last.problem or last.status is None or driver != self._driver
            if is_new or time.monotonic() - self._read_at >= _READ_S:
                self._last = self._read(driver)
                self._read_at = time.monotonic()
                self._is_quiet = self._is_quiet and not is_new
            self._driver = driver
            self._last = self._last._replace(lives=self._lives(driver))
        except GraphError as error:
            self._last = last._replace(problem=f"{error.code}: {error.message}")
        except OSError as error:
            self._last = last._replace(problem=f"the record cannot be read: {error.strerror or error}")
        return self._last if self._last != last else None

    def _read(self, driver: Holder | None) -> Look:
        now = self._runtime.clock.now()
        with Store.open_readonly(self._runtime.state_dir) as store:
            row = pick_graph(store, self._graph)
            after = max(0, row.last_seq - _EVENTS_BEFORE) if self._cursor is None else self._cursor
            for event in store.events(self._graph, after=after):
                self._cursor = event.seq
                if (line := _line(event)) is not None:
                    self._events.append(Told(event.time, line))
            status = status_of_rows(row, store.runs(self._graph), driver=driver, now=now)
        return Look(status, tuple(self._events), now)

    def _lives(self, driver: Holder | None) -> bool:
        """Whether something of it goes on though nobody drives; what ended is given to graph-recover."""
        now = time.monotonic()
        if driver is not None:
            self._driven_at = now
            self._lives_now = False
        elif not (self._is_quiet or now - self._driven_at < UNDRIVEN_S or now - self._lives_at < UNDRIVEN_LOOK_S):
            self._lives_at = now
            self._lives_now = self._undriven.may_change()
            self._is_quiet = not self._lives_now  # nothing changes by itself any more, until the record does
        return self._lives_now


def _line(event: EventRow) -> str | None:
    try:
        return describe(None, from_row(event.type, event.subtask_id, event.data))
    except (UnknownEvent, LookupError, TypeError, ValueError):
        return None
