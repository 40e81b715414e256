"""Runs the user's `notify` commands when a drive meets what needs a person, and when it has ended.

Rule: at most once for an event. The process that recorded it runs the command, after it was recorded; killed in
between, nobody runs it again. One at a time, each bounded, under a host's custody; whatever becomes of it, the drive
goes on. `occasions` is pure.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import anyio

from coordinate_agents.graph.config import Notify, NotifyOn
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.events import (
    AttemptFailed,
    BaseConflicted,
    DriveEnded,
    Event,
    IntegrationConflicted,
    IntegrationFailed,
    IntegrationJudged,
    PhaseChanged,
    SharedChanged,
    TaskJudged,
)
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.snapshot import Snapshot, TaskRun
from coordinate_agents.graph.text import clipped
from coordinate_agents.graph.view import graph_attention_of, subtask_attention_of
from coordinate_agents.sessions.agent import CommandRequest
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionId
from coordinate_agents.worktrees.model import INTEGRATION_SLUG
from coordinate_agents.worktrees.values import value_class

# A command that tells somebody something; whoever wants more starts it in the background.
NOTIFY_TIMEOUT_S: Final = 10.0
# A driver that ends waits so long for those that were begun or are due.
FINISH_BOUND_S: Final = 20.0
# A hundred failures at once are one piece of news; the rest is left out and said so.
MAX_WAITING: Final = 50
MAX_QUESTION_BYTES: Final = 2048
# The person who asked for these ends knows of them, or another driver goes on.
_UNTOLD: Final = ("interrupted", "stopped", "handover")


@value_class
class Occasion:
    """`kind` and the rest are those of the attention in graph-status; of an end the kind is "ended"."""

    on: NotifyOn
    kind: str
    question: str
    next: str
    subtask: SubtaskId | None = None


def occasions(snapshot: Snapshot, event: Event) -> Iterator[Occasion]:
    """What the event, folded already, is worth telling somebody who is not there."""
    match event:
        case PhaseChanged(phase="awaiting-input" | "throttled", note=note, can_go_on=False) if note:
            yield from _of_subtask(snapshot, event.subtask)
        case BaseConflicted():
            yield from _of_subtask(snapshot, event.subtask)
        case TaskJudged(accepted=False, then="end") | AttemptFailed(then="end"):
            yield from _of_subtask(snapshot, event.subtask)
        case SharedChanged():
            yield from _of_graph(snapshot, ("shared",))
        case IntegrationConflicted() | IntegrationFailed() | IntegrationJudged(accepted=False):
            yield from (
                each for each in _of_graph(snapshot, ()) if each.kind not in ("shared", "disk", "ports", "review")
            )
        case DriveEnded(reason=reason) if reason not in _UNTOLD:
            yield from _of_graph(snapshot, ("disk", "ports"))
            yield _end(snapshot, reason)
        case _:
            return


def _end(snapshot: Snapshot, reason: str) -> Occasion:
    counts = {place: count for place, count in snapshot.frontier.counts().items() if count}
    told = ", ".join(f"{count} {place}" for place, count in counts.items())
    graph = snapshot.graph.id
    is_plain = reason == "ended"
    return Occasion(
        "ended", "ended", f"{told}{'' if is_plain else f' ({reason})'}", f"coordinate-agents graph-status {graph}"
    )


def _of_subtask(snapshot: Snapshot, subtask: SubtaskId) -> Iterator[Occasion]:
    item = subtask_attention_of(snapshot, subtask)
    if item is not None:
        yield _occasion(item)


def _of_graph(snapshot: Snapshot, kinds: tuple[str, ...]) -> Iterator[Occasion]:
    for item in graph_attention_of(snapshot):
        if not kinds or item["kind"] in kinds:
            yield _occasion(item)


def _occasion(item: dict[str, Any]) -> Occasion:
    return Occasion("attention", item["kind"], item["question"] or "", item["next"], item["subtask"])


class Notifier:
    """The commands of one drive, in the order of their events."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._waiting: deque[tuple[Notify, Occasion]] = deque()
        self._came = anyio.Event()
        self._rested = anyio.Event()
        self._left_out = 0

    def event(self, event: Event) -> None:
        """Note what is to be told of this event; never raises, waits for nothing."""
        configured = self._context.config.notify
        if not configured:
            return
        for occasion in occasions(self._context.snapshot, event):
            for each in configured:
                if occasion.on not in each.on:
                    continue
                if len(self._waiting) >= MAX_WAITING and occasion.on == "attention":
                    self._left_out += 1
                    continue
                self._waiting.append((each, occasion))
        self._came.set()

    async def work(self) -> None:
        """Run what comes until cancelled."""
        while True:
            await self._run_waiting()
            self._came = anyio.Event()
            self._rested.set()
            await self._came.wait()
            self._rested = anyio.Event()

    async def settle(self) -> None:
        """Wait, bounded, until `work` ran everything."""
        with anyio.move_on_after(FINISH_BOUND_S):
            while self._waiting or not self._rested.is_set():
                await self._rested.wait()

    async def finish(self) -> None:
        """Run, bounded, what came after `work` was cancelled; say what was left out."""
        with anyio.move_on_after(FINISH_BOUND_S):
            await self._run_waiting()
        left = self._left_out + len(self._waiting)
        if left:
            self._context.progress.notice(f"{left} notifications were left out")

    async def _run_waiting(self) -> None:
        while self._waiting:
            await self._run(*self._waiting.popleft())

    async def _run(self, notify: Notify, occasion: Occasion) -> None:
        """A failure is told whoever watches the drive, and nobody else."""
        context = self._context
        subtask = occasion.subtask
        run = context.run(subtask) if subtask is not None else TaskRun(SubtaskId(INTEGRATION_SLUG), attempt=1)
        marker = context.new_nonce()
        session = SessionId(f"{context.session_id(run, run.turn)}.notify.{marker[:8]}")
        request = CommandRequest(
            session_id=session,
            run=notify.run,
            cwd=context.worktrees.facts.root,
            identity=_variables(context, occasion),
            marker=marker,
            timeout_s=NOTIFY_TIMEOUT_S,
        )
        try:
            launch = await context.call(context.agents.command, request)
            await context.sessions.start(launch)
            end = await context.sessions.wait(session)
            problem = "" if end.exit_code == 0 else f"it ended by {end.cause}, exit code {end.exit_code}"
        except SessionError as error:
            problem = error.message
        except BaseException:
            with anyio.CancelScope(shield=True):
                await context.sessions.close(session, graceful=False)
            raise
        if problem:
            context.progress.notice(f"the notification {notify.run[0]!r} failed: {problem}")


def _variables(context: Context, occasion: Occasion) -> dict[str, str]:
    """It speaks of the graph from the user's checkout: it has no attempt, branch, slot or port of its own."""
    return {
        "COORDINATE_AGENTS_GRAPH": context.graph_id,
        "COORDINATE_AGENTS_ROOT": context.worktrees.facts.root,
        "COORDINATE_AGENTS_EVENT": occasion.on,
        "COORDINATE_AGENTS_KIND": occasion.kind,
        "COORDINATE_AGENTS_SUBTASK": occasion.subtask or "",
        "COORDINATE_AGENTS_TITLE": context.snapshot.graph.title,
        # No NUL fits into an environment, and foreign text may hold one.
        "COORDINATE_AGENTS_QUESTION": clipped(occasion.question, MAX_QUESTION_BYTES).replace("\0", "\\0"),
        "COORDINATE_AGENTS_NEXT": occasion.next,
    }
