"""A turn that did not end well: what became of it, what it left behind, and whether it is tried again.

What stands in git is looked at before anything is said: a good commit behind a bad exit is named, never dropped.
"""

import time
from typing import Final

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.durations import spell
from coordinate_agents.graph.events import AttemptFailed, Event, Failure, PhaseChanged, TaskStopped, TurnEnded
from coordinate_agents.graph.examining import examine_request
from coordinate_agents.graph.model import SubtaskId, slug
from coordinate_agents.graph.snapshot import INTERRUPTED, LIMIT_CODES, TaskRun
from coordinate_agents.graph.speaking import CANCELLED
from coordinate_agents.graph.text import counted
from coordinate_agents.graph.turns import can_continue, resolve_agent

# Trying again would meet the same screen.
_FINAL_CODES = frozenset({"AUTH_REQUIRED", "AWAITING_INPUT", "QUOTA_EXHAUSTED"})
# A death by one of these came from outside (a person, the system, a shutdown), not from the agent's own fault.
_OUTSIDE_SIGNALS = frozenset({1, 2, 9, 15})
# A service that does not say when to come back is asked again after so long, doubled each time it refuses again.
FIRST_RETRY_S: Final = 60.0
LONGEST_RETRY_S: Final = 30 * 60.0


async def explain_exit(context: Context, subtask: SubtaskId) -> Event:
    """The failure, with what stands in git now: a good commit behind a bad exit is named, never dropped."""
    run = context.run(subtask)
    turn = run.turn_end
    assert turn is not None and run.worktree is not None
    # No amend, reset, stash or gc of a later attempt may lose what this one made.
    await context.call(context.worktrees.keep, context.graph_id, slug(subtask), run.worktree)
    throttled = _throttled(context, run, turn)
    if throttled is not None:
        return throttled
    if turn.cause == "not-ready" and run.is_reused and can_continue(run, resolve_agent(context, run)):
        # The process that stayed takes no prompt any more; a new one takes its conversation up, at no fix turn's cost.
        return PhaseChanged(subtask, "preparing", f"its process took no further prompt: {turn.error}"[:500])
    code, what = _cause(context, run, turn)
    message = f"{what}, {await _present(context, run)}."
    failure = Failure(
        code,
        message,
        stage="turn",
        exit_code=turn.exit_code,
        signal=turn.signal,
        tail=turn.tail,
        log_path=turn.log_path,
        kept=f"worktree {run.worktree.path} and branch {run.worktree.branch}" if run.worktree else None,
        next=f"coordinate-agents graph-inspect {context.graph_id} {subtask} --part failure",
    )
    if turn.survivors:
        return AttemptFailed(subtask, failure, is_final=True)
    if code in _FINAL_CODES:
        return AttemptFailed(subtask, failure, is_final=True)
    if turn.cause in ("close", CANCELLED):
        return TaskStopped(subtask, "stopped" if turn.cause == "close" else "its turn was cancelled", failure)
    if turn.cause == "host-lost" or (turn.cause == "exit" and turn.signal in _OUTSIDE_SIGNALS):
        return TaskStopped(subtask, f"{INTERRUPTED}: {what}", failure)
    return AttemptFailed(subtask, failure, is_final=turn.cause == "spawn-failed")


def _throttled(context: Context, run: TaskRun, turn: TurnEnded) -> PhaseChanged | None:
    """The wait for a service that refuses; None when it does not, or has for longer than a person would wait."""
    if turn.code not in LIMIT_CODES or turn.survivors:
        return None
    now = context.clock.now()
    backoff = min(FIRST_RETRY_S * 2.0 ** min(run.limits, 10), LONGEST_RETRY_S)
    retry_at = max(turn.retry_at or now + backoff, now + 1.0)
    if retry_at - (run.limited_since or now) > context.task(run.id).input_timeout_s:
        return None
    when = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(retry_at))
    note = f"{turn.code}: {turn.line}; tried again at {when}"
    return PhaseChanged(run.id, "throttled", note, retry_at=retry_at)


def _cause(context: Context, run: TaskRun, turn: TurnEnded) -> tuple[str, str]:
    """The error code and what happened, in a few words."""
    agent, task = run.agent or "agent", context.task(run.id)
    if turn.survivors:
        return "SESSION_CLOSE_FAILED", f"{agent} ended but {', '.join(turn.survivors[:3])} could not be ended"
    if turn.code == "AUTH_REQUIRED":
        return "AUTH_REQUIRED", f"{agent} needs a login: {turn.line}"
    if turn.code is not None:
        return turn.code, f"{agent}'s service refuses for longer than {spell(task.input_timeout_s)}: {turn.line}"
    match turn.cause:
        case "login":
            return "AUTH_REQUIRED", f"{agent} shows a login screen: {turn.error}"
        case "input" if context.on_input == "fail":
            return "AWAITING_INPUT", f"{agent} asked, and nobody is there to answer: {turn.error}"
        case "input":
            return (
                "AWAITING_INPUT",
                f"{agent} asked, and nobody answered in {spell(task.input_timeout_s)}: {turn.error}",
            )
        case "not-ready":
            return "SESSION_WRITE_FAILED", f"{agent} did not take its prompt: {turn.error}"
        case "timeout":
            return "AGENT_TIMEOUT", f"{agent} ran longer than its limit of {spell(task.timeout_s)} and was ended"
        case "idle":
            return "AGENT_TIMEOUT", f"{agent} printed nothing for {spell(task.idle_timeout_s)} and was ended"
        case "close":
            return "SESSION_STATE_CONFLICT", f"{agent} was stopped"
        case "cancelled":
            return "SESSION_STATE_CONFLICT", f"the turn of {agent} was cancelled"
        case "refused":
            return "AGENT_EXIT_NONZERO", f"{agent} refused the work"
        case "failed":
            return "AGENT_EXIT_NONZERO", f"the turn of {agent} failed: {turn.error}"
        case "protocol":
            return "SESSION_NOT_HEALTHY", f"{agent} could not be spoken to any more: {turn.error}"
        case "spawn-failed":
            return "SPAWN_FAILED", f"{agent} could not be started: {turn.error or 'unknown cause'}"
        case "host-lost":
            return "SESSION_NOT_HEALTHY", f"{agent}'s Session host died"
        case _ if turn.signal is not None:
            return "AGENT_EXIT_NONZERO", f"{agent} was killed by signal {turn.signal}"
        case _:
            return "AGENT_EXIT_NONZERO", f"{agent} exited {turn.exit_code}"


async def _present(context: Context, run: TaskRun) -> str:
    """What the worktree holds: a commit that nobody verified, uncommitted files, or nothing."""
    seen = await context.call(context.worktrees.examine, examine_request(context, run))
    parts = []
    if seen.head is not None and seen.head != run.base:
        parts.append(f"commit {seen.head[:12]} present, not verified")
    if seen.dirty_count:
        parts.append(f"{counted(seen.dirty_count, 'uncommitted path')} kept")
    return ", ".join(parts) or "no commit"
