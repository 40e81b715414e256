"""Come back to a single Task that does not run: to the Session that a stop left to itself, else make it ready again.

What such a Session did meanwhile counts: its turn is taken up where it is, at work, over, or ended with its process,
and is verified like every other one. Records; starts nothing.
"""

from collections.abc import Mapping
from typing import Any

from coordinate_agents.graph.acts.answers import Answers, no_answers
from coordinate_agents.graph.acts.resume import resume
from coordinate_agents.graph.engine import Engine
from coordinate_agents.graph.events import SessionAdopted
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.sessions.model import SessionId


async def resume_task(
    engine: Engine, asked: Mapping[str, Any], *, who: str, answers: Answers = no_answers
) -> Mapping[str, Any]:
    """As `resume` of the one subtask. `asked["living"]`: only a Session that lives is gone back to. Raises: as it."""
    context, subtask = engine.context, SubtaskId(str(asked["subtask"]))
    run = context.run(subtask)
    asks_more = asked.get("say") or asked.get("agent") or asked.get("from") == "base"
    event = None if asks_more else await _taken_up(engine, run, who=who, is_living=bool(asked.get("living")))
    if event is None or context.run(subtask) != run:
        return await resume(engine, asked, who=who, answers=answers)
    told: Mapping[str, Any] = {"reset": [], "adopted": [subtask], "accepted": None, "notes": []}
    engine.apply(event, results=answers(told))
    return told


async def _taken_up(engine: Engine, run: TaskRun, *, who: str, is_living: bool) -> SessionAdopted | None:
    """The turn of the Session that `stop_task` left, in a worktree that is as it was; None: there is none."""
    context = engine.context
    if run.state != "stopped" or run.session is None or run.open_session != run.session or run.turn_end is not None:
        return None
    facts = await context.sessions.look(SessionId(run.session))
    if facts.liveness not in (("live",) if is_living else ("live", "ended")) or facts.record is None:
        return None
    if run.worktree is None or await context.call(context.worktrees.is_intact, run.worktree) is not None:
        return None
    child, host = facts.record.child, facts.record.host
    return SessionAdopted(
        run.id, run.session, pid=child.pid if child else None, host_pid=host.pid if host else None, who=who
    )
