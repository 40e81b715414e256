"""A Session as the JSON that every session verb answers with (contract section 13).

Pure: facts in, plain JSON out. Where agent, adapter and command come from is written on the Session itself when it is
started, as labels, so that a Session says the same after its configuration changed. Text stays as recorded: the edge
makes it safe for a terminal.
"""

from typing import Any

from coordinate_agents.graph.operations.session_target import Subtask, Target
from coordinate_agents.graph.view import evidence_json, failure_json, iso
from coordinate_agents.sessions.model import AgentTurn, Question, SessionFacts, SessionRecord
from coordinate_agents.sessions.turns.model import TurnRecord


def session_json(target: Target) -> dict[str, Any]:
    """`data.session`. Fields that nobody recorded are null."""
    record = target.facts.record
    if record is None:
        return {"id": target.id, "state": "failed", "liveness": target.facts.liveness}
    return {**record_json(target.facts, record), **_parents(record, target.subtask)}


def record_json(facts: SessionFacts, record: SessionRecord) -> dict[str, Any]:
    """The Session alone, for lists: its labels say what it belongs to."""
    labels, end = record.labels, record.end
    return {
        "id": record.id,
        "state": state_of(facts, record),
        "liveness": facts.liveness,
        "kind": record.kind,
        "driver": record.driver,
        "degraded": record.degraded,
        "agent": labels.get("agent"),
        "adapter": labels.get("adapter"),
        "command": labels.get("command") or (record.command[0] if record.command else None),
        "resolvedCommand": labels.get("resolvedCommand") or (record.command[0] if record.command else None),
        "commandSource": labels.get("commandSource"),
        "args": list(record.command[1:]),
        "cwd": record.cwd,
        "pid": record.child.pid if record.child is not None else None,
        "hostPid": record.host.pid if record.host is not None else None,
        "createdAt": iso(record.created_at),
        "lastActivityAt": iso(record.last_activity_at),
        "exitCode": end.exit_code if end is not None else None,
        "signal": end.signal if end is not None else None,
        "error": end.error if end is not None else None,
        "taskId": labels.get("taskId"),
        "subtaskId": labels.get("subtaskId"),
        "resumed": labels.get("resumed") == "true" if record.conversation is None else record.conversation.resumed,
        "conversation": _conversation(record),
        "stalled": record.stalled,
        "attached": facts.attached,
        "held": facts.held,
        "question": question_json(record),
    }


def _conversation(record: SessionRecord) -> dict[str, Any] | None:
    """The agent's own session and its last turn; None for one that is not spoken to."""
    found, turn = record.conversation, record.turn
    if found is None:
        return None
    return {
        "id": found.external_session or None,
        "peer": found.peer or None,
        "notResumed": found.reason or None,
        "error": found.error or None,
        "turn": None if turn is None else _agent_turn(turn),
    }


def _agent_turn(turn: AgentTurn) -> dict[str, Any]:
    """`doing`: the last tool that it called in a turn that runs."""
    return {
        "id": turn.id,
        "state": turn.state,
        "stopReason": turn.stop_reason or None,
        "doing": turn.doing or None,
    }


def turn_json(turn: TurnRecord | None) -> dict[str, Any] | None:
    """The present or last turn as it was last written; None for a Session that never had one."""
    if turn is None or turn.turn is None:
        return None
    return {
        "id": turn.turn,
        "number": turn.generation,
        "state": turn.state,
        "outcome": turn.outcome,
        "stopReason": turn.stop_reason or None,
        "code": turn.code or None,
        "message": turn.message or None,
        "externalSession": turn.external_sessions[-1] if turn.external_sessions else None,
        "pending": list(turn.pending),
        "progressAt": iso(turn.progress_at) if turn.progress_at else None,
    }


def turn_events_json(turn: TurnRecord | None) -> list[dict[str, Any]]:
    """The last events of the Session's turns and processes as they were last written, oldest first; output is none."""
    if turn is None:
        return []
    return [
        {
            "sessionId": turn.session,
            "turnId": each.turn or None,
            "seq": each.number,
            "time": iso(each.time),
            "event": each.name,
            "text": each.words,
        }
        for each in turn.events
    ]


def state_of(facts: SessionFacts, record: SessionRecord) -> str:
    """The state of contract section 2. A host that died without a last word leaves a failed Session."""
    if facts.liveness == "lost":
        return "failed"
    if facts.liveness == "live" and record.state == "running":
        if record.question is not None:
            return "awaiting-input"
        if record.turn is not None and not record.turn.is_over:
            return "busy"
        if record.labels.get("mode") == "oneshot" and record.conversation is None:
            return "busy"
    return record.state


def question_json(record: SessionRecord) -> dict[str, Any] | None:
    """What the Session asks a person; `request` names this very question to session-answer."""
    question = record.question
    if question is None:
        return None
    return {
        "request": question.id,
        "kind": question.kind,
        "text": question.text,
        "since": iso(question.since),
        "answers": _answers(question),
        "options": [{"id": option.id, "name": option.name, "kind": option.kind} for option in question.options],
    }


def _answers(question: Question) -> list[str]:
    """Which of --allow and --deny have a meaning here."""
    kinds = {option.kind for option in question.options}
    known = {"allow": question.allow or "allow_once" in kinds, "deny": question.deny or "reject_once" in kinds}
    return [name for name, is_known in known.items() if is_known]


def subtask_json(subtask: Subtask | None) -> dict[str, Any] | None:
    """The subtask that the Session works for, with what was verified of it; None for a Session of no graph."""
    if subtask is None:
        return None
    run = subtask.run
    worktree = run.get("worktree") or {}
    return {
        "graph": subtask.graph,
        "id": subtask.id,
        "state": run.get("state", "idle"),
        "phase": run.get("phase"),
        "attempt": run.get("attempt", 0),
        "agent": run.get("agent"),
        "worktree": worktree.get("path"),
        "branch": worktree.get("branch"),
        "head": run.get("head"),
        "verifiedCommit": run.get("verified_commit"),
        "evidence": evidence_json(run.get("evidence")),
        "failure": failure_json(run.get("failure")),
    }


def _parents(record: SessionRecord, subtask: Subtask | None) -> dict[str, Any]:
    """Whose it is, from the subtask's row for a Session that an earlier version started without labels."""
    if subtask is None:
        return {}
    found: dict[str, Any] = {"taskId": subtask.graph, "subtaskId": subtask.id}
    if not record.labels.get("agent"):
        found["agent"] = subtask.run.get("agent")
    return found
