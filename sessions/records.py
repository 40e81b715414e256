"""`record.json` as values: what the host wrote, read back; and the fields a starter gives it.

A record that cannot be read (cut short, another version) is no record: the Session then counts as lost, never as ended.
"""

import functools
import json
from dataclasses import asdict
from typing import Any

from coordinate_agents.sessions import folder as folders
from coordinate_agents.sessions.model import (
    AgentTurn,
    Conversation,
    Launch,
    Option,
    ProcessIdentity,
    Question,
    SessionEnd,
    SessionId,
    SessionRecord,
    Usage,
)

VERSION = 1


def initial(launch: Launch, *, command: tuple[str, ...], socket: str, token_sha256: str, now: float) -> dict[str, Any]:
    """The fields before the host exists. Never the environment; of the token only its hash."""
    return {
        "v": VERSION,
        "id": launch.session_id,
        "kind": launch.kind,
        "state": "starting",
        "driver": launch.driver,
        "command": list(command),
        "cwd": launch.cwd,
        "created_at": now,
        "last_activity_at": now,
        "host": None,
        "child": None,
        "socket": socket,
        "end": None,
        "stalled": False,
        "degraded": False,
        "question": None,
        "columns": launch.columns,
        "rows": launch.rows,
        "labels": dict(launch.labels),
        "marker": launch.marker,
        "close_bound_s": launch.close_bound_s,
        "token_sha256": token_sha256,
    }


def read(folder: int) -> SessionRecord | None:
    """The record of the folder, or None when there is none that can be understood."""
    try:
        data = folders.read_whole(folder, folders.RECORD, folders.MAX_RECORD_BYTES)
        return None if data is None else _parsed(data)
    except (OSError, ValueError, KeyError, TypeError):
        return None


@functools.lru_cache(maxsize=128)
def _parsed(data: bytes) -> SessionRecord:
    """Kept by its text: whoever waits for a Session reads the same record several times."""
    return parse(json.loads(data))


def parse(raw: dict[str, Any]) -> SessionRecord:
    """Raises: KeyError, TypeError, ValueError when the fields are not those of a record."""
    if raw["v"] != VERSION:
        raise ValueError(f"record version {raw['v']!r}")
    return SessionRecord(
        id=SessionId(raw["id"]),
        kind=raw["kind"],
        state=raw["state"],
        driver=raw["driver"],
        command=tuple(raw["command"]),
        cwd=raw["cwd"],
        created_at=raw["created_at"],
        last_activity_at=raw["last_activity_at"],
        host=_identity(raw["host"]),
        child=_identity(raw["child"]),
        socket=raw["socket"],
        end=None if raw["end"] is None else end_of(raw["end"]),
        stalled=raw["stalled"],
        degraded=raw["degraded"],
        labels=dict(raw["labels"]),
        marker=raw["marker"],
        close_bound_s=raw["close_bound_s"],
        question=question_of(raw.get("question")),
        columns=raw.get("columns", 120),
        rows=raw.get("rows", 40),
        cgroup=raw.get("cgroup", ""),
        conversation=Conversation(**raw["conversation"]) if raw.get("conversation") else None,
        turn=_turn_of(raw["turn"]) if raw.get("turn") else None,
        turns=tuple(_turn_of(each) for each in raw.get("turns", ())),
    )


def _turn_of(raw: dict[str, Any]) -> AgentTurn:
    return AgentTurn(**{**raw, "usage": Usage(**raw["usage"]) if raw.get("usage") else None})


def question_of(raw: dict[str, Any] | None) -> Question | None:
    if raw is None:
        return None
    allow, deny = tuple(raw.get("allow", ())), tuple(raw.get("deny", ()))
    options = tuple(Option(*each) for each in raw.get("options", ()))
    return Question(raw["kind"], raw["text"], raw["since"], allow, deny, raw.get("request", ""), options)


def end_of(raw: dict[str, Any]) -> SessionEnd:
    return SessionEnd(**{**raw, "survivors": tuple(raw.get("survivors", ()))})


def with_end(folder: int, end: SessionEnd, *, session_id: str) -> None:
    """Make the record final in place of a host that died. The caller holds the folder's lock. Raises: OSError."""
    try:
        raw = json.loads(folders.read_whole(folder, folders.RECORD, folders.MAX_RECORD_BYTES) or b"")
        parse(raw)
    except (ValueError, KeyError, TypeError):
        nothing = Launch(session_id=SessionId(session_id), kind="agent", argv=(), cwd="/", env={})
        raw = initial(nothing, command=(), socket="", token_sha256="", now=0.0)
    if raw["end"] is None:
        folders.write_json(folder, folders.RECORD, {**raw, "state": "failed", "end": asdict(end)})


def _identity(raw: dict[str, Any] | None) -> ProcessIdentity | None:
    return None if raw is None else ProcessIdentity(**raw)
