"""What to do with a subtask that was running when its driver went away: snapshot x observed facts -> one decision.

Pure. The world was looked at by `observe`; nothing here guesses. In doubt the subtask stays as it is, with a reason.
"""

from coordinate_agents.graph.effects import (
    AwaitTurn,
    CheckIntegration,
    Effect,
    ExplainExit,
    MergeHeads,
    OpenSession,
    RunSetup,
    Verify,
)
from coordinate_agents.graph.events import Event, SessionStarted, TaskReset, TaskStopped
from coordinate_agents.graph.machine import continue_run
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.snapshot import INTERRUPTED, Snapshot, TaskRun
from coordinate_agents.sessions.model import SessionFacts
from coordinate_agents.worktrees.values import value_class


@value_class
class GoOn:
    """Start this effect."""

    effect: Effect


@value_class
class Record:
    """Append this event; the machine says what follows."""

    event: Event


@value_class
class Leave:
    """Change nothing: what lives cannot be proved ended. It keeps its slot."""

    reason: str


Decision = GoOn | Record | Leave


def needs_look(run: TaskRun) -> bool:
    """Whether the decision depends on a Session that may live."""
    return run.state == "running" and run.stage in ("session", "turn") and run.turn_end is None


def decide(run: TaskRun, facts: SessionFacts | None) -> Decision:
    """`facts` are those of the run's Session; None where `needs_look` is false."""
    if not needs_look(run) or facts is None:
        return GoOn(continue_run(run))
    record = facts.record
    match facts.liveness:
        case "absent" if run.stage == "session" and not run.is_reused:
            # The intent was recorded, no host was made: the start is simply done now.
            return GoOn(continue_run(run))
        case "absent" if not run.is_reused or run.stage == "turn":
            return Record(TaskStopped(run.id, f"{INTERRUPTED}: its Session's record is gone"))
        case "foreign":
            return Leave("its Session was started on another machine")
        case "unreachable" if run.stage == "session" and run.is_reused:
            return Leave("its Session's host does not answer")
        case _ if run.stage == "session" and run.is_reused:
            # Nobody knows how far the start of the further turn came: it is begun anew, in that process or another.
            return GoOn(continue_run(run))
        case _ if run.stage == "session" and run.session is not None:
            child = record.child.pid if record and record.child else None
            host = record.host.pid if record and record.host else None
            return Record(SessionStarted(run.id, run.session, pid=child, host_pid=host))
        case _:
            return GoOn(AwaitTurn(run.id))


def decide_record(run: TaskRun, facts: SessionFacts | None) -> Decision:
    """What a record that starts nothing can settle: an end that came, a start that never was.

    What lives, waits for a person or would have to start something is left as it is, with the words for it.
    """
    if run.is_held and run.verified_by != "check":
        return Leave("it is held")
    if facts is not None and facts.liveness in ("live", "unreachable"):
        pid = facts.record.child.pid if facts.record and facts.record.child else None
        return Leave(f"its agent runs (pid {pid})" if facts.liveness == "live" else "its host does not answer")
    decision = decide(run, facts)
    if not isinstance(decision, GoOn):
        return decision
    match decision.effect:
        case Verify() if run.failure is not None and run.verified_by != "check":
            return Leave("it was refused, and its next turn is due")
        case AwaitTurn() | Verify() | ExplainExit():
            return decision
        case OpenSession() | RunSetup() if run.worktree is not None and run.turn == 0 and run.turn_end is None:
            return Record(TaskStopped(run.id, f"{INTERRUPTED}: its driver ended before its agent started"))
        case _:
            return Leave("its next step is a start, which graph-run does")


def resets(snapshot: Snapshot, *, retry_failed: bool) -> tuple[TaskReset, ...]:
    """The subtasks that a new graph-run makes ready again: interrupted ones; failed and stopped ones when asked."""
    found = []
    for run in snapshot.runs.values():
        if (reset := reset_if_interrupted(run)) is not None:
            found.append(reset)
        elif retry_failed and (run.state in ("failed", "stopped") or run.conflict is not None):
            found.append(TaskReset(run.id, "retried on request"))
    return tuple(found)


def reset_if_interrupted(run: TaskRun) -> TaskReset | None:
    return TaskReset(run.id, "resumed after an interruption") if is_interrupted(run) else None


def is_interrupted(run: TaskRun) -> bool:
    return run.state == "stopped" and (run.reason or "").startswith(INTERRUPTED)


def unfinished(snapshot: Snapshot) -> tuple[SubtaskId, ...]:
    return tuple(run.id for run in snapshot.runs.values() if run.state == "running")


def continue_integration(snapshot: Snapshot) -> Effect | None:
    """The effect of an integration whose driver went away in the middle; None when there is none."""
    match snapshot.summary.integration.state:
        case "merging":
            return MergeHeads()
        case "checking":
            return CheckIntegration()
        case _:
            return None
