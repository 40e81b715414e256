"""What was told of a Session's turns, as its record keeps it: the last events in a few plain words. Pure.

Output is kept elsewhere, and of the signs that a turn goes on the last one says all: neither ever displaces an event
that somebody may look for.
"""

from typing import Final, assert_never

from coordinate_agents.sessions.turns.model import (
    NAMES,
    Completed,
    ExternalSession,
    Failed,
    Noted,
    Payload,
    PermissionAsked,
    PermissionInvalidated,
    ProcessEvent,
    Progress,
    Stdout,
    TurnEvent,
    Update,
)

# Of several turns of one Session; a record is written whole each time.
MAX_NOTED: Final = 32
_MAX_WORDS: Final = 300


def noted(event: TurnEvent | ProcessEvent) -> Noted | None:
    """None for output, which is not kept here."""
    match event:
        case TurnEvent(_, _, _, _, Stdout()):
            return None
        case TurnEvent(_, turn, seq, time, payload):
            return Noted(turn, seq, time, NAMES[type(payload)], _words(payload)[:_MAX_WORDS])
        case ProcessEvent(_, number, time, None):
            return Noted("", number, time, "process_started")
        case ProcessEvent(_, number, time, end):
            assert end is not None
            how = end.error or (f"signal {end.signal}" if end.signal is not None else f"exit code {end.exit_code}")
            left = f"; left: {', '.join(end.survivors)}" if end.survivors else ""
            return Noted("", number, time, "process_exited", f"{how}{left}"[:_MAX_WORDS])
        case _:
            assert_never(event)


def added(kept: tuple[Noted, ...], new: Noted | None) -> tuple[Noted, ...]:
    """The events that are kept when this one is told, too, oldest first."""
    if new is None:
        return kept
    if new.name == "progress":
        kept = tuple(each for each in kept if each.name != "progress")
    return (*kept, new)[-MAX_NOTED:]


def _words(event: Payload) -> str:
    match event:
        case Stdout() | Progress():
            return ""
        case Update(kind, fields):
            return " ".join([kind, *fields.values()])
        case ExternalSession(external_session):
            return external_session
        case PermissionAsked(permission):
            options = ", ".join(each.id for each in permission.options)
            first = permission.summary.split("\n", 1)[0]
            return f"{permission.request}: {first[:200]} [{options}]"
        case PermissionInvalidated(request, reason):
            return f"{request}: {reason}"
        case Completed(stop_reason):
            return stop_reason
        case Failed(code, message):
            return f"{code}: {message}"
        case _:
            assert_never(event)
