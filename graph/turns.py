"""One agent turn: start it in the process that stayed or in a new one, and wait for its end."""

from dataclasses import replace
from typing import Final

import anyio

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.effects import OpenSession
from coordinate_agents.graph.events import (
    Event,
    PhaseChanged,
    SessionStarted,
    SessionStarting,
    TurnEnded,
)
from coordinate_agents.graph.examining import examine_request
from coordinate_agents.graph.machine import TURN_OVER
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.printed import turn_output
from coordinate_agents.graph.prompting import commit_by_of, found_words, prompt_of
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.graph.speaking import FAILED, REFUSED, cause_of_exit, is_spoken, turn_id
from coordinate_agents.graph.staying import can_take_turn, require_closed
from coordinate_agents.graph.watching import Watch, limits_of
from coordinate_agents.sessions.agent import ResolvedAgent, TurnReading, TurnRequest
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionFacts, SessionId, TurnFacts
from coordinate_agents.sessions.turns.model import IDLE_LIFE_S, TurnSpec

# One sleep on the way to a retry: a machine that was suspended meanwhile notices by the clock.
_NAP_S: Final = 60.0


def can_continue(run: TaskRun, agent: ResolvedAgent) -> bool:
    """Whether a further turn would know this one: the agent can take it up, and its conversation is known."""
    return agent.can_continue and (run.external_session is not None or not agent.needs_session)


def resolve_agent(context: Context, run: TaskRun) -> ResolvedAgent:
    """The run's agent, resolved once in a drive; the file is checked again just before every start.

    Raises: SessionError EXECUTABLE_*, GraphError INVALID_AGENT_CONFIG.
    """
    name = run.agent or ""
    found = context.resolved.get(name)
    if found is None:
        found = context.resolved[name] = context.agents.resolve(context.config.settings_of(name))
    return found


async def takes_turn(context: Context, run: TaskRun, agent: ResolvedAgent) -> bool:
    """Whether a further turn would know this one: in the process that stayed, or because it can be taken up."""
    if run.open_session is None:
        return can_continue(run, agent)
    facts = await context.sessions.look(SessionId(run.open_session))
    return can_take_turn(facts) or can_continue(await _with_conversation(context, run, agent, facts), agent)


async def open_session(context: Context, effect: OpenSession) -> Event:
    """The next turn in the process that stayed, where it is healthy; else in a new one, which takes the old one up."""
    run = context.run(effect.subtask)
    agent = resolve_agent(context, run)
    why = ""
    if run.open_session is not None and effect.turn > 0:
        facts = await context.sessions.look(SessionId(run.open_session))
        if facts.record is not None and not context.agents.is_same(agent, facts.record):
            why = f"{run.agent} is configured anew"
        elif can_take_turn(facts):
            try:
                return await _next_turn(context, effect, agent, facts)
            except SessionError as error:
                facts, why = await context.sessions.look(SessionId(run.open_session)), error.message
        why = why or f"its process is gone ({facts.liveness})"
        run = await _with_conversation(context, run, agent, facts)
    await require_closed(context, effect.subtask, why or "another process takes its turn")
    return await _new_process(context, effect, run, agent, why)


async def _next_turn(context: Context, effect: OpenSession, agent: ResolvedAgent, facts: SessionFacts) -> Event:
    """Everything but the typing, which the watch does. Raises: SessionError when the process cannot take a turn."""
    run, task = context.run(effect.subtask), context.task(effect.subtask)
    assert run.open_session is not None and facts.record is not None
    session = SessionId(run.open_session)
    context.record(
        SessionStarting(
            run.id,
            session,
            effect.turn,
            run.marker or "",
            run.command,
            effect.feedback,
            is_told=effect.is_told,
            reused=True,
        )
    )
    crash_point("stay.intended")
    prompt = prompt_of(
        context,
        context.run(run.id),
        commit_by=commit_by_of(context, run, agent.commit_by),
        nonce=context.new_nonce()[:12],
        continues=True,
    )
    await context.call(context.agents.next_turn, session, prompt, turn=effect.turn)
    spec = TurnSpec(limits=limits_of(task))
    await context.turns.start_turn(
        session, spec, turn=turn_id(effect.turn), is_wanted=lambda: _is_wanted(context, run.id, session)
    )
    crash_point("stay.begun")
    child, host = facts.record.child, facts.record.host
    return SessionStarted(run.id, session, pid=child.pid if child else None, host_pid=host.pid if host else None)


async def _with_conversation(context: Context, run: TaskRun, agent: ResolvedAgent, facts: SessionFacts) -> TaskRun:
    """The run with the conversation that the process named as it ended, where nobody knew it before."""
    if run.external_session is not None or run.open_session is None or facts.record is None or not facts.record.end:
        return run
    stayed = replace(run, session=run.open_session)
    reading = await _reading(context, stayed, agent, facts.record.end.tail, has_failed=False)
    return replace(run, external_session=reading.external_session)


async def _new_process(context: Context, effect: OpenSession, run: TaskRun, agent: ResolvedAgent, why: str) -> Event:
    """Write the prompt, record the intent, start the host."""
    task, worktree = context.task(effect.subtask), run.worktree
    assert worktree is not None
    continues = effect.turn > 0 and can_continue(run, agent)
    if why and not continues and not effect.is_told:
        raise SessionError(
            "SESSION_NOT_HEALTHY",
            f"{run.agent} could not be given the next turn: {why}, and its conversation cannot be taken up.",
            kept=f"worktree {worktree.path} and branch {worktree.branch}",
            next=f"coordinate-agents graph-inspect {context.graph_id} {run.id}",
        )
    session, marker = context.session_id(run, effect.turn), context.new_nonce()
    command = (agent.executable.path, *(agent.resume_args if continues and agent.resume_args else agent.args))
    context.record(
        SessionStarting(
            run.id, session, effect.turn, marker, command, effect.feedback, is_told=effect.is_told, why=why[:500]
        )
    )
    crash_point("session.intended")
    request = TurnRequest(
        session_id=session,
        agent=agent,
        prompt=prompt_of(
            context,
            context.run(run.id),
            commit_by=commit_by_of(context, run, agent.commit_by),
            nonce=marker[:12],
            # Whether it can be taken up is only known when it was asked to: then the prompt must stand alone.
            continues=continues and not is_spoken(agent),
            found=await found_words(context, run) if effect.turn == 0 else "",
            is_alone=is_spoken(agent),
        ),
        cwd=worktree.path,
        root=context.worktrees.facts.root,
        graph=context.graph_id,
        subtask=run.id,
        identity=context.identity(run, path=worktree.path),
        marker=marker,
        is_continuation=continues,
        external_session=run.external_session or (run.earlier_session if is_spoken(agent) else None),
        input_timeout_s=task.input_timeout_s,
        idle_life_s=IDLE_LIFE_S,
        timeout_s=task.timeout_s,
        idle_timeout_s=task.idle_timeout_s,
        on_idle=task.on_idle,
    )
    launch = await context.call(context.agents.turn, request)
    launch = replace(launch, ports=context.slots.held_ports(run.slot))
    spec = TurnSpec(launch=launch, limits=limits_of(task))
    await context.turns.start_turn(
        session, spec, turn=turn_id(effect.turn), is_wanted=lambda: _is_wanted(context, run.id, session)
    )
    crash_point("session.started")
    process = (await context.turns.get_state(session)).connection
    assert process is not None
    return SessionStarted(run.id, session, pid=process.pid, host_pid=process.host_pid)


def _is_wanted(context: Context, subtask: SubtaskId, session: SessionId) -> bool:
    """Whether the record still says that this Session is to have a turn."""
    run = context.snapshot.runs.get(subtask)
    return run is not None and run.state == "running" and run.session == session


async def await_turn(context: Context, subtask: SubtaskId) -> Event:
    """Watch until the agent's end. What it left is pinned by the step that follows: kept, or the verified commit."""
    run = context.run(subtask)
    assert run.session is not None and run.worktree is not None
    agent = _known_agent(context, run)
    watch = Watch(context, subtask, agent, turn_id(run.turn))
    end = await watch.until_end()
    crash_point("turn.seen")
    if isinstance(end, TurnFacts):
        return await _stays(context, run, agent, watch, end)
    # Only between two turns does a host close what is unused: this one was over, and its driver died before it said so.
    cause, error = watch.cause or ("submitted" if end.cause == "unused" else end.cause), watch.detail or end.error
    if watch.cause is None and is_spoken(agent):
        cause, error = await cause_of_exit(context, run, end)
    has_failed = cause not in TURN_OVER and (cause != "exit" or end.exit_code != 0)
    if not has_failed:
        await watch.take_slot()
    since = None if run.is_reused else 0
    reading = await _reading(context, run, agent, end.tail, has_failed=has_failed, since=since)
    return TurnEnded(
        subtask,
        run.session,
        cause=cause,
        exit_code=end.exit_code,
        signal=end.signal,
        tail=end.tail[-2000:],
        log_path=end.log_path,
        duration_ms=end.duration_ms,
        survivors=end.survivors[:20],
        error=error,
        summary=context.agents.submitted(SessionId(run.session)),
        external_session=reading.external_session,
        code=reading.code,
        line=reading.line,
        retry_at=reading.retry_at,
        usage=reading.usage,
    )


async def _stays(
    context: Context, run: TaskRun, agent: ResolvedAgent | None, watch: Watch, facts: TurnFacts
) -> TurnEnded:
    """The turn is over and its process is idle."""
    assert run.session is not None and watch.cause is not None
    await watch.take_slot()
    has_failed = watch.cause in (REFUSED, FAILED)
    reading = await _reading(context, run, agent, facts.tail, has_failed=has_failed, since=facts.since)
    return TurnEnded(
        run.id,
        run.session,
        cause=watch.cause,
        tail=facts.tail[-2000:],
        log_path=facts.log_path,
        duration_ms=facts.duration_ms,
        error=watch.detail or None,
        summary=context.agents.submitted(SessionId(run.session)),
        external_session=reading.external_session,
        code=reading.code,
        line=reading.line,
        retry_at=reading.retry_at,
        usage=reading.usage,
        stays=True,
    )


async def await_retry(context: Context, subtask: SubtaskId) -> Event:
    """Wait until the refusing service may be asked again; no longer than was said, if the clock was set back since."""
    run = context.run(subtask)
    retry_at = run.retry_at or 0.0
    latest = anyio.current_time() + retry_at - (run.phase_since or 0.0)
    while True:
        left = min(retry_at - context.clock.now(), latest - anyio.current_time())
        if left <= 0:
            break
        await anyio.sleep(min(left, _NAP_S))
    return PhaseChanged(subtask, "throttled", can_go_on=True, retry_at=run.retry_at)


def _known_agent(context: Context, run: TaskRun) -> ResolvedAgent | None:
    """None when its program is gone since it was started: then its end is only waited for."""
    try:
        return resolve_agent(context, run)
    except SessionError:
        return None


async def _reading(
    context: Context,
    run: TaskRun,
    agent: ResolvedAgent | None,
    tail: str,
    *,
    has_failed: bool,
    since: int | None = None,
) -> TurnReading:
    """What the turn says; `since`: the cursor at which its output began, in a process that stays."""
    if agent is None or run.session is None:
        return TurnReading()
    session = SessionId(run.session)
    output = await turn_output(context, session, since) if agent.mode == "interactive" else None
    reading = await context.call(
        context.agents.reading,
        agent,
        session,
        marker=run.marker or "",
        known=run.external_session,
        tail=tail,
        has_failed=has_failed,
        now=context.clock.now(),
        turn=turn_id(run.turn),
        output=output,
    )
    return await _believed(context, run, reading)


async def _believed(context: Context, run: TaskRun, reading: TurnReading) -> TurnReading:
    """Of a refusal that is only supposed: not where the turn left something, be it uncommitted."""
    if reading.is_certain or reading.code is None:
        return reading
    seen = await context.call(context.worktrees.examine, examine_request(context, run))
    has_left = seen.dirty_count > 0 or seen.head not in (None, run.head or run.base)
    return replace(reading, code=None, line="", retry_at=None) if has_left else reading
