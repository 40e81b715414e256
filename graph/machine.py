"""step(snapshot, event) -> effects: what follows from what happened. The only reader of the transition tables.

Pure. The order in the shell is: `decide` completes the event, `step` folds it and says what to do, the store appends
event and cache row, and only then does an effect start. An event that is illegal in the present state raises before
anything changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from coordinate_agents.graph.effects import (
    AwaitRetry,
    AwaitTurn,
    CheckIntegration,
    CreateWorktree,
    Effect,
    ExplainExit,
    MakeBase,
    MergeHeads,
    OpenSession,
    RunSetup,
    Verify,
)
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import (
    AttemptFailed,
    BaseFixed,
    Event,
    GraphAmended,
    IntegrationMerged,
    IntegrationStarted,
    PhaseChanged,
    SessionAdopted,
    SessionStarted,
    SetupDone,
    TaskClaimed,
    TaskJudged,
    TurnEnded,
    VerificationStarted,
    WorktreeReady,
    event_type,
    subtask_of,
)
from coordinate_agents.graph.model import SubtaskId, TaskGraph
from coordinate_agents.graph.snapshot import GraphSummary, Snapshot, TaskRun
from coordinate_agents.graph.states import GRAPH_EVENTS, INTEGRATION_EVENTS, TASK_EVENTS
from coordinate_agents.worktrees.model import INTEGRATION_SLUG

# How the turn of a program that stays ends well: it said so, or waits for the next prompt.
TURN_OVER: Final = frozenset({"submitted", "idle-prompt", "turn-ended"})
# Fix turns get at most this much of the failing facts; agents take long prompts badly.
MAX_FEEDBACK_BYTES: Final = 16 * 1024


def decide(snapshot: Snapshot, event: Event) -> Event:
    """The event with its consequence filled in: fix turn, next attempt, or the end."""
    match event:
        case TaskJudged() | AttemptFailed() if snapshot.runs[event.subtask].verified_by == "check":
            # A person asked whether what is there now is good: the answer is the end of it.
            return replace(event, then="end")
        case TaskJudged(accepted=False):
            run, task = snapshot.runs[event.subtask], snapshot.tasks[event.subtask]
            if event.can_continue and run.turn - run.free_turns < task.fix_turns:
                return replace(event, then="fix-turn")
            return replace(event, then="retry" if run.tries < task.attempts else "end")
        case AttemptFailed(is_final=False):
            run, task = snapshot.runs[event.subtask], snapshot.tasks[event.subtask]
            return replace(event, then="retry" if run.tries < task.attempts else "end")
        case _:
            return event


def step(snapshot: Snapshot, event: Event, *, time: float) -> tuple[TaskRun | GraphSummary, tuple[Effect, ...]]:
    """Fold the event; return the value that changed and the effects to start.

    Raises: GraphError TASK_STATE_CONFLICT, naming state and event, when the event is illegal; nothing changed then.
    """
    _require_legal(snapshot, event)
    changed = snapshot.fold(event, time=time)
    return changed, _effects_of(snapshot, event)


def still_due(effects: Sequence[Effect], events: Sequence[Event]) -> list[Effect]:
    """Those of the effects of these events that none of them is the end of already."""
    done = {event.subtask for event in events if isinstance(event, SetupDone)}
    return [effect for effect in effects if not (isinstance(effect, RunSetup) and effect.subtask in done)]


def amend(snapshot: Snapshot, event: GraphAmended, graph: TaskGraph) -> tuple[TaskRun, ...]:
    """Go over to a new revision, legal in every state (`amending` decided about it); the runs that are new or changed.

    Starts nothing by itself: what is ready by it is found by the next plan.
    """
    return snapshot.amend(event, graph)


def _require_legal(snapshot: Snapshot, event: Event) -> None:
    name, subtask = event_type(event), subtask_of(event)
    if name in GRAPH_EVENTS:
        return
    if subtask is None or subtask == INTEGRATION_SLUG:
        _require(INTEGRATION_EVENTS, name, snapshot.summary.integration.state, "the integration")
        return
    run = snapshot.runs.get(subtask)
    if run is None:
        raise GraphError("TASK_NOT_FOUND", f"graph {snapshot.graph.id} has no subtask {subtask}.")
    _require(TASK_EVENTS, name, run.state, f"subtask {subtask}")
    if name == "TaskClaimed":
        _require_ready(snapshot, subtask)
    if isinstance(event, VerificationStarted) and event.by != "check":
        _require({name: frozenset({"running"})}, name, run.state, f"subtask {subtask}")


def _require(table: Mapping[str, frozenset[str]], name: str, state: str, what: str) -> None:
    if state not in table[name]:
        raise GraphError("TASK_STATE_CONFLICT", f"{name} is not possible: {what} is {state}.", stage="transition")


def _require_ready(snapshot: Snapshot, subtask: SubtaskId) -> None:
    """A claim is legal only when the frontier says READY: every prerequisite succeeded."""
    place = "held" if snapshot.runs[subtask].is_held else str(snapshot.frontier.place(subtask))
    if place != "ready":
        raise GraphError(
            "TASK_STATE_CONFLICT", f"TaskClaimed is not possible: subtask {subtask} is {place}.", stage="transition"
        )


def _effects_of(snapshot: Snapshot, event: Event) -> tuple[Effect, ...]:
    match event:
        case TaskClaimed(subtask=subtask):
            return (MakeBase(subtask),)
        case BaseFixed(subtask=subtask):
            return (CreateWorktree(subtask),)
        case WorktreeReady(subtask=subtask):
            return (RunSetup(subtask),)
        case SetupDone(subtask=subtask):
            return (_first_turn(snapshot.runs[subtask]),)
        case SessionStarted(subtask=subtask) | SessionAdopted(subtask=subtask):
            return (AwaitTurn(subtask),)
        case PhaseChanged(phase="throttled", can_go_on=False, subtask=subtask):
            return (AwaitRetry(subtask),)
        case PhaseChanged(phase="preparing", subtask=subtask):
            return (_try_again(snapshot.runs[subtask]),)
        case VerificationStarted(by="check", subtask=subtask):
            return (Verify(subtask, by="check"),)
        case TurnEnded(subtask=subtask):
            return (after_turn(snapshot.runs[subtask], event),)
        case TaskJudged(then="fix-turn", subtask=subtask):
            run = snapshot.runs[subtask]
            return (OpenSession(subtask, turn=run.turn + 1, feedback=feedback_of(event)),)
        case IntegrationStarted():
            return (MergeHeads(),)
        case IntegrationMerged():
            return (CheckIntegration(),)
        case _:
            return ()


def after_turn(run: TaskRun, event: TurnEnded) -> Effect:
    """Exit 0 with nothing left alive is the trigger to look, or a program that stays and says it is done.

    What a person said meanwhile is the next turn, before anything is verified.
    """
    is_over = event.cause in TURN_OVER or (event.cause == "exit" and event.exit_code == 0)
    is_refused = event.code is not None  # it stopped where its service refused, whatever its exit code says
    if not is_over or event.survivors or is_refused:
        return ExplainExit(event.subtask)
    if run.told:
        return OpenSession(run.id, turn=run.turn + 1, feedback="\n\n".join(run.told), has_tokens=True, is_told=True)
    return Verify(event.subtask)


def _first_turn(run: TaskRun) -> OpenSession:
    """The first of an attempt, or of a rework: then the next one of the same attempt, with what was said."""
    if not run.is_rework:
        return OpenSession(run.id)
    return OpenSession(run.id, turn=run.turn + 1, feedback="\n\n".join(run.told), has_tokens=True, is_told=True)


def _try_again(run: TaskRun) -> OpenSession:
    """The refused turn once more, as the next one; it costs no fix turn."""
    return OpenSession(run.id, turn=run.turn + 1, feedback=run.feedback, has_tokens=True, is_told=run.is_told)


def continue_run(run: TaskRun) -> Effect:
    """The effect that goes on with a running subtask whose driver went away before the step's outcome.

    The Session stages need a look at the world first (`recovery`); they are not decided here.
    """
    match run.stage:
        case "":
            return MakeBase(run.id)
        case "base":
            return CreateWorktree(run.id)
        case "worktree":
            return RunSetup(run.id)
        case "setup":
            return _first_turn(run)
        case "session":
            return OpenSession(run.id, turn=run.turn, feedback=run.feedback, is_told=run.is_told)
        case "turn" if run.turn_end is not None and run.phase == "throttled":
            return AwaitRetry(run.id)
        case "turn" if run.turn_end is not None and run.phase == "preparing":
            return _try_again(run)
        case "turn":
            return after_turn(run, run.turn_end) if run.turn_end else AwaitTurn(run.id)
        case "verify" if run.verified_by == "check":
            return Verify(run.id, by="check")
        case "verify":
            return Verify(run.id, by="recover")


def feedback_of(event: TaskJudged) -> str:
    """The failing facts as text for the agent's next turn."""
    failure = event.failure
    if failure is None:
        return ""
    lines = [failure.message]
    for check in event.evidence.checks:
        if check.outcome != "passed":
            lines.append(f"check {check.name} ({' '.join(check.run)}): {check.outcome}, exit code {check.exit_code}")
            lines.append(check.tail)
    return "\n".join(lines).encode()[-MAX_FEEDBACK_BYTES:].decode(errors="ignore")
