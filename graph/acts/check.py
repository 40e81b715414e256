"""Begin the verification of what is in a subtask's worktree now, because a person asked. Starts no agent."""

from collections.abc import Mapping
from typing import Any, Final

from coordinate_agents.graph.acts.answers import Answers, no_answers
from coordinate_agents.graph.branches import restore_branch
from coordinate_agents.graph.engine import Engine
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import VerificationStarted
from coordinate_agents.graph.evidence import Waiver
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.opened import open_in
from coordinate_agents.graph.snapshot import TaskRun, heads_of
from coordinate_agents.sessions.model import SessionId

PROGRAM: Final = "coordinate-agents"


async def begin_check(
    engine: Engine, asked: Mapping[str, Any], *, who: str, answers: Answers = no_answers
) -> Mapping[str, Any]:
    """Record that the verification starts; `note` says why nothing is to be verified.

    Raises: TASK_ALREADY_RUNNING, TASK_STATE_CONFLICT, WORKTREE_CONFLICT, SESSION_STATE_CONFLICT; then nothing changed.
    """
    context, subtask = engine.context, SubtaskId(str(asked["subtask"]))
    while True:
        run = context.run(subtask)
        note = await _require_checkable(engine, run)
        if note is not None:
            return {"subtask": subtask, "note": note}
        if run.state == "running":
            await engine.halt(subtask)  # a held one's step, which waits for its release
        if context.run(subtask) == run:
            break
    waivers = tuple(Waiver(str(what), who, str(reason)) for what, reason in asked.get("waivers", ()))
    told = {"subtask": subtask}
    is_running = context.run(subtask).state == "running"
    slot = None if is_running else context.slots.take(wanted=context.run(subtask).slot)
    engine.apply(VerificationStarted(subtask, "check", waivers, who, slot), results=answers(told))
    return told


async def _require_checkable(engine: Engine, run: TaskRun) -> str | None:
    """Why there is nothing to verify, None when there is. Raises: as `begin_check`."""
    context = engine.context
    if run.state == "succeeded":
        return await _unchanged(engine, run)
    # One whose verifier died is begun anew by whoever asks; who drives has it at work.
    is_left = run.stage == "verify" and not engine.is_at_work(run.id)
    if run.state == "running" and not run.is_held and not is_left:
        doing = "is being verified already" if run.phase == "verifying" else "runs"
        following = "graph-wait" if run.phase == "verifying" else "graph-stop"
        options = f"{context.graph_id} --for {run.id}" if following == "graph-wait" else f"{context.graph_id} {run.id}"
        raise _error(
            engine, run, "TASK_ALREADY_RUNNING", f"Subtask {run.id} {doing}.", f"{PROGRAM} {following} {options}"
        )
    if run.worktree is None and run.removal is not None and not run.is_fresh:
        message = f"The worktree of subtask {run.id} was removed: there is nothing to verify."
        following = f"{PROGRAM} graph-undo {context.graph_id} {run.id}"
        raise _error(engine, run, "TASK_STATE_CONFLICT", message, following)
    if run.worktree is None or run.base is None or run.is_fresh:
        why = "begins again from a fresh base" if run.is_fresh else "was never started"
        message = f"Subtask {run.id} {why}: there is nothing to verify."
        raise _error(engine, run, "TASK_STATE_CONFLICT", message, f"{PROGRAM} graph-run {context.graph_id}")
    await _require_quiet(engine, run)
    damage = await context.call(context.worktrees.is_intact, run.worktree)
    if damage is not None:
        message = f"The worktree of subtask {run.id} is not as the Runtime made it: {damage}."
        following = f"{PROGRAM} graph-resume {context.graph_id} {run.id}"
        if not context.worktrees.is_missing(run.worktree):
            following = context.worktrees.mending(run.worktree, damage)
        raise _error(engine, run, "WORKTREE_CONFLICT", message, following)
    # Somebody may have deleted it since: without it nothing could be verified.
    await restore_branch(context, run.id, run)
    await _require_based(engine, run)
    return None


async def _unchanged(engine: Engine, run: TaskRun) -> str:
    context = engine.context
    assert run.verified_commit is not None
    if run.worktree is None:
        # Cleaned up since: nothing can differ from what was verified.
        return f"nothing to do: subtask {run.id} succeeded with {run.verified_commit[:12]}; its worktree was removed"
    head = await context.call(context.worktrees.head_of, run.worktree)
    if head in (None, run.verified_commit):
        return f"nothing to do: subtask {run.id} succeeded with {run.verified_commit[:12]}"
    message = (
        f"Subtask {run.id} succeeded with {run.verified_commit[:12]}, and its worktree is at {str(head)[:12]} now."
    )
    following = f"{PROGRAM} graph-resume {context.graph_id} {run.id} --redo"
    raise _error(engine, run, "TASK_STATE_CONFLICT", f"{message} Only a redo takes a verdict back.", following)


async def _require_quiet(engine: Engine, run: TaskRun) -> None:
    """Nobody may change the worktree while it is verified: its agent has ended, or waits for its next turn."""
    name = await open_in(engine.context, run.id)
    if name is not None:
        message = f"Session {name}, which a person opened, lives in the worktree of subtask {run.id} and may change it."
        raise _error(engine, run, "SESSION_STATE_CONFLICT", message, f"{PROGRAM} session-close {name}")
    if run.session is None:
        return
    facts = await engine.context.sessions.look(SessionId(run.session))
    if facts.liveness not in ("live", "unreachable") or (facts.record is not None and facts.record.state == "idle"):
        return
    message = f"Session {run.session} of subtask {run.id} lives and may change its worktree."
    following = f"{PROGRAM} graph-stop {engine.context.graph_id} {run.id}"
    raise _error(engine, run, "SESSION_STATE_CONFLICT", message, following)


async def _require_based(engine: Engine, run: TaskRun) -> None:
    """Its base must contain the verified commit of every prerequisite, as they stand now."""
    context = engine.context
    needed = context.task(run.id).depends_on
    missing = [each for each in needed if context.run(each).state != "succeeded"]
    if missing:
        message = f"Subtask {run.id} builds on {missing[0]}, which has no verified commit now."
        following = f"{PROGRAM} graph-status {context.graph_id}"
        raise _error(engine, run, "TASK_STATE_CONFLICT", message, following)
    heads = heads_of(context.snapshot, needed)
    assert run.base is not None
    lacking = await context.call(context.worktrees.contains, run.base, [head.commit for head in heads])
    if lacking:
        message = f"Subtask {run.id} started from {run.base[:12]}, which lacks {lacking[0][:12]} of a prerequisite."
        following = f"{PROGRAM} graph-resume {context.graph_id} {run.id} --from base"
        raise _error(engine, run, "TASK_STATE_CONFLICT", message, following)


def _error(engine: Engine, run: TaskRun, code: str, message: str, following: str) -> GraphError:
    facts = {"taskId": engine.context.graph_id, "subtaskId": run.id}
    return GraphError(code, message, kept="everything as it is", next=following, stage="check", facts=facts)
