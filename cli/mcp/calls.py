"""How a call is carried out, so that none waits for another: looking in a thread, everything else in a process.

Rule: a verb that only looks at records answers from a worker thread with a store connection of its own, in a few
milliseconds. Problem: verbs that change something take leases, start hosts, catch signals and may take minutes, and
none of that may end because a client went away. Next rule: those run in a process of their own (`child`) that outlives
this server; the call waits for it at most `LONGEST_S` and then says that it goes on. Waiting verbs are asked again and
again in short slices, so that a cancelled call leaves its thread soon. A cancelled call ends nothing but itself.
"""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from coordinate_agents.cli.execute import answer
from coordinate_agents.cli.invocation import Invocation
from coordinate_agents.cli.mcp import resources
from coordinate_agents.cli.mcp.processes import Document, Underway, failed_document, run_apart
from coordinate_agents.cli.mcp.tools import waits_by
from coordinate_agents.graph.errors import GraphError

# Hosts cut a call at 60 s, some at 30.
LONGEST_S: Final = 25.0
# A cancelled wait leaves its thread after so long; shorter, and graph-wait could not tell that nobody drives (3 s).
SLICE_S: Final = 5.0
PROGRESS_EVERY_S: Final = 2.0
MAX_LOOKS: Final = 64
# A host that does not answer holds each look for a second: those at one Session take no more threads than this.
MAX_LOOKS_AT_ONE: Final = 8
MAX_WAITS: Final = 48
MAX_UNDERWAY: Final = 64
# Results that were ready after their call had ended, kept for whoever asks.
MAX_KEPT: Final = 32
_EVENTS: Final = "graph-events"
# Of these it can be told from an answer whether the wait came to its end.
_IN_SLICES: Final = frozenset({"graph-wait", "session-read"})

# Told now and then while a call waits: the seconds so far, and of how many.
Tell = Callable[[float, float], Awaitable[None]]


class Calls:
    """`folder` is where the processes stand: relative names are meant from there. No call takes over `longest_s`."""

    def __init__(self, group: TaskGroup, folder: str, *, longest_s: float = LONGEST_S) -> None:
        self._group = group
        self._folder = folder
        self._longest_s = longest_s
        self._looks = anyio.CapacityLimiter(MAX_LOOKS)
        # Of their own: however many calls wait, a look finds a thread.
        self._waits = anyio.CapacityLimiter(MAX_WAITS)
        self._processes = anyio.CapacityLimiter(MAX_UNDERWAY)
        self._at_one: WeakValueDictionary[str, anyio.CapacityLimiter] = WeakValueDictionary()
        self._count = 0
        self.underway: dict[str, Underway] = {}

    async def carry_out(self, invocation: Invocation, stdin: bytes | None, tell: Tell) -> tuple[Document, int]:
        """The document of `--json` and its exit code; after `LONGEST_S` one that says what goes on."""
        if not invocation.verb.is_quick or stdin is not None:
            return await self._apart(invocation, stdin, tell)
        if waits_by(invocation.verb) is None:
            return await self.look(invocation)
        return await self._in_slices(invocation, tell)

    async def look(self, invocation: Invocation, threads: anyio.CapacityLimiter | None = None) -> tuple[Document, int]:
        """The answer from a worker thread; `threads`: those that may be used, by default those for looking."""
        session = invocation.values.get("session")
        if threads is not None or session is None:
            return await self._answer(invocation, threads or self._looks)
        at_one = self._at_one.get(session)
        if at_one is None:
            self._at_one[session] = at_one = anyio.CapacityLimiter(MAX_LOOKS_AT_ONE)
        async with at_one:
            return await self._answer(invocation, self._looks)

    async def _answer(self, invocation: Invocation, threads: anyio.CapacityLimiter) -> tuple[Document, int]:
        return await anyio.to_thread.run_sync(answer, invocation, abandon_on_cancel=True, limiter=threads)

    # --- waiting

    async def _in_slices(self, invocation: Invocation, tell: Tell) -> tuple[Document, int]:
        wait = waits_by(invocation.verb)
        assert wait is not None
        # Without a limit of its own a wait goes on for ever; reading without one does not wait at all.
        asked = invocation.values[wait.field]
        if asked is None and wait.name == "timeout":
            asked = float("inf")
        if asked is None or (wait.name == "wait" and asked > self._longest_s):
            return await self.look(invocation)
        if invocation.verb.name not in _IN_SLICES:
            return await self.look(_with(invocation, wait.field, min(asked, self._longest_s)), self._waits)
        begun = time.monotonic()
        whole = min(asked, self._longest_s)
        while True:
            left = max(0.0, whole - (time.monotonic() - begun))
            document, code = await self.look(_with(invocation, wait.field, min(left, SLICE_S)), self._waits)
            waited = time.monotonic() - begun
            if _is_answered(document) or waited >= whole:
                break
            await tell(waited, whole)
        if asked > self._longest_s and not _is_answered(document):
            return await self.still_running(invocation, {}), 0
        if not _is_answered(document) and not document["ok"]:
            # In the words of the call, not of its last slice.
            document["error"]["message"] = document["error"]["message"].replace(
                f"{min(left, SLICE_S):g} s", f"{asked:g} s"
            )
        return document, code

    # --- processes

    async def _apart(self, invocation: Invocation, stdin: bytes | None, tell: Tell) -> tuple[Document, int]:
        if self._processes.available_tokens < 1:
            raise GraphError(
                "TASK_STATE_CONFLICT",
                f"{MAX_UNDERWAY} calls are under way in processes of their own, and no more are begun.",
                kept="everything as it is",
                next="coordinate-agents graph-status",
            )
        self._count += 1
        call = Underway(str(self._count), invocation)
        self._remember(call)
        self._group.start_soon(self._run, call, stdin)
        begun = time.monotonic()
        try:
            while not call.ended.is_set() and (waited := time.monotonic() - begun) < self._longest_s:
                with anyio.move_on_after(min(PROGRESS_EVERY_S, self._longest_s - waited)):
                    await call.ended.wait()
                if not call.ended.is_set():
                    await tell(time.monotonic() - begun, self._longest_s)
        except anyio.get_cancelled_exc_class():
            # What only looks is of no use to anybody now; what changes something is finished.
            if invocation.verb.access in ("none", "read") and call.process is not None:
                call.process.terminate()
            raise
        if call.outcome is None:
            return await self.still_running(invocation, {"call": call.id}), 0
        del self.underway[call.id]
        return call.outcome

    async def _run(self, call: Underway, stdin: bytes | None) -> None:
        work = partial(run_apart, call, stdin, self._folder)
        try:
            call.outcome = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._processes)
        except OSError as error:
            failed = GraphError("SPAWN_FAILED", f"A process for the call could not be started: {error.strerror}.")
            call.outcome = failed_document(failed, call.invocation.verb.name)
        call.ended.set()

    def _remember(self, call: Underway) -> None:
        """Keep it, and drop the oldest that ended and that nobody asked for."""
        ended = [each.id for each in self.underway.values() if each.outcome is not None]
        for old in ended[: max(0, len(ended) - MAX_KEPT + 1)]:
            del self.underway[old]
        self.underway[call.id] = call

    async def still_running(self, invocation: Invocation, more: Document) -> Document:
        """What is said of a call that goes on: the cursor from which `graph-events` tells the rest."""
        asked = invocation.values.get("graph") or invocation.values.get("task")
        look = resources.look(_EVENTS, {"graph": asked, "limit": 1})
        assert look.verb is not None
        events, _ = await self.look(Invocation(look.verb, look.values, invocation.root, True, invocation.who))
        cursor = events["data"]["cursor"] if events["ok"] else None
        graph = events["data"]["graph"] if events["ok"] else asked
        advice = f"it goes on; ask again with coordinate_agents_{invocation.verb.name.replace('-', '_')}"
        if more:
            advice = (
                f"it goes on; look with coordinate_agents_graph_status, "
                f"its result will be coordinate-agents://calls/{more['call']}"
            )
        data = {"stillRunning": True, "graph": {"id": graph}, "cursor": cursor, **more, "next": advice}
        return {"ok": True, "command": invocation.verb.name, "data": data}


def _with(invocation: Invocation, name: str, value: Any) -> Invocation:
    return invocation._replace(values={**invocation.values, name: value})


def _is_answered(document: Document) -> bool:
    """Whether what was waited for came, or never will."""
    if not document["ok"]:
        return bool(document["error"]["code"] != "WAIT_TIMED_OUT")
    data = document["data"]
    return "nextCursor" not in data or bool(data["output"] or data["ended"] or data["droppedBytes"])
