"""What the turns of a Session are made of: ids, facts, events, permissions, and the record of a turn. Pure values.

A driver reports facts; the machine decides what they mean; events are what everybody else is told. A fact may come
late, twice, or from a process that is gone. An event never does.

Named tuples, and not dataclasses: a run that starts would notice what forty of these cost.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, NewType

from coordinate_agents.sessions.model import Launch, SessionEnd, SessionId, TurnFacts, TurnLimits

# How long a process may be idle between two turns. A review may wait over a night; the same as the default of
# `inputTimeout`, which is also a wait for a person.
IDLE_LIFE_S: Final = 12 * 3600.0

TurnId = NewType("TurnId", str)
RequestId = NewType("RequestId", str)

# idle: no turn, with or without a process. opening: a start is being validated. starting: it is recorded as running and
# the driver is asked. running: the agent has it. awaiting-permission: it asks, and nobody has answered. cancelling:
# asked to stop. abandoning: the same, and nobody is told how it ends. finishing: its end is decided and being recorded.
# disposing: the process tree is being ended. disposed: that failed; no turn starts, and it can be tried again.
TurnState = Literal[
    "idle",
    "opening",
    "starting",
    "running",
    "awaiting-permission",
    "cancelling",
    "abandoning",
    "finishing",
    "disposing",
    "disposed",
]

# How a turn came out, as far as the agent's side says: a trigger to verify, never proof.
OutcomeKind = Literal["completed", "failed", "cancelled", "abandoned"]


class PermissionOption(NamedTuple):
    """`kind` as the agent's protocol names it (allow_once, reject_once, …); empty: not said."""

    id: str
    name: str
    kind: str = ""


class Permission(NamedTuple):
    """What an agent asks before it goes on. `deadline_s` after it came it is answered "cancelled"; None: never."""

    request: RequestId
    turn: TurnId
    summary: str
    options: tuple[PermissionOption, ...]
    tool: str | None = None
    deadline_s: float | None = None


class Answer(NamedTuple):
    """To a permission: one of its options, or None: cancelled. A screen takes `keys` or `text` instead."""

    option: str | None = None
    keys: tuple[str, ...] = ()
    text: str | None = None


CANCELLED: Final = Answer()


_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


# --- facts: what a driver reports


class Printed(NamedTuple):
    """More output. `cursor` is the absolute offset behind it; `text` may be empty where only the amount is known.

    `is_progress`: it says something new; a spinner does not.
    """

    cursor: int
    text: str = ""
    is_progress: bool = True


class Updated(NamedTuple):
    """The agent's own words about its turn (a plan, a tool call), in a few plain fields."""

    turn: TurnId
    kind: str
    fields: Mapping[str, str] = _NOTHING


class ExternalSessionNamed(NamedTuple):
    """The agent's own conversation, to be resumed later."""

    external_session: str


class PermissionRequested(NamedTuple):
    permission: Permission


class PermissionWithdrawn(NamedTuple):
    """The agent does not ask any more."""

    request: RequestId


class TurnCompleted(NamedTuple):
    turn: TurnId
    stop_reason: str


class TurnFailed(NamedTuple):
    turn: TurnId
    code: str
    message: str


class ProcessExited(NamedTuple):
    """The process is gone, with how. `end.survivors` are what is left of its tree."""

    end: SessionEnd


Fact = (
    Printed
    | Updated
    | ExternalSessionNamed
    | PermissionRequested
    | PermissionWithdrawn
    | TurnCompleted
    | TurnFailed
    | ProcessExited
)


# --- events: what everybody is told


class Stdout(NamedTuple):
    cursor: int
    text: str = ""


class Update(NamedTuple):
    kind: str
    fields: Mapping[str, str] = _NOTHING


class ExternalSession(NamedTuple):
    external_session: str


class PermissionAsked(NamedTuple):
    permission: Permission


class PermissionInvalidated(NamedTuple):
    """Nobody can answer it any more; `reason`: cancelled, ended, withdrawn, overdue or lost."""

    request: RequestId
    reason: str


class Progress(NamedTuple):
    """The turn goes on. At most one in 30 s."""

    cursor: int


class Completed(NamedTuple):
    """`stop_reason`: what ended it (exit, end_turn, submitted, cancelled, …)."""

    stop_reason: str


class Failed(NamedTuple):
    code: str
    message: str


Payload = (
    Stdout | Update | ExternalSession | PermissionAsked | PermissionInvalidated | Progress | Completed | Failed
)  # fmt: skip
TERMINAL: Final = (Completed, Failed)

NAMES: Final[Mapping[type, str]] = {
    Stdout: "stdout",
    Update: "update",
    ExternalSession: "external_session_id",
    PermissionAsked: "permission_requested",
    PermissionInvalidated: "permission_invalidated",
    Progress: "progress",
    Completed: "completed",
    Failed: "failed",
}


class TurnEvent(NamedTuple):
    """`seq` counts from 1 in every turn, without a gap. `time` is a wall clock time."""

    session: SessionId
    turn: TurnId
    seq: int
    time: float
    event: Payload


class ProcessEvent(NamedTuple):
    """A process came or went. `number` counts the processes of the Session from 1; `end` None: it started."""

    session: SessionId
    number: int
    time: float
    end: SessionEnd | None = None


class Noted(NamedTuple):
    """An event as it is kept: `words` say the rest of it.

    `number` is its place in its turn; of a process (`turn` empty) which one of the Session it is.
    """

    turn: str
    number: int
    time: float
    name: str
    words: str = ""


# --- turns


class TurnSpec(NamedTuple):
    """One turn to be started.

    `launch` starts the process where none lives (None: only a living one takes the turn). `resumed` is the same, taking
    up the conversation `resume`; where that fails before a child existed, `launch` is used, `prompt` must then say
    everything, and the record says so. `prompt` None: the launch delivers it, or it is typed later. `configuration` is
    a fingerprint of the agent's settings: a process of another one is ended first.
    """

    launch: Launch | None = None
    prompt: str | None = None
    limits: TurnLimits = TurnLimits()
    configuration: str = ""
    resume: str | None = None
    resumed: Launch | None = None
    short_prompt: str | None = None


class TurnOutcome(NamedTuple):
    """How a turn ended. `end`: its process ended with it, or before; `facts`: it stays.

    `stop_reason` is set for completed ones, `code` and `message` for failed ones.
    """

    turn: TurnId
    kind: OutcomeKind
    stop_reason: str = ""
    code: str = ""
    message: str = ""
    end: SessionEnd | None = None
    facts: TurnFacts | None = None


class TurnRecord(NamedTuple):
    """What is written of a Session's turns; the newest one counts.

    `turn` and `state` are of the present or last turn, `outcome` None while it runs. `external_sessions` stand in the
    order in which the agent named them; the last one is resumed. `pending` are the permissions nobody has answered.
    `cursor` and `transcript` are the end of the output at the last checkpoint, `progress_at` the last heartbeat.
    `events` are the last ones that were told, of this and earlier turns, without output.
    """

    session: SessionId
    generation: int = 0
    state: TurnState = "idle"
    turn: TurnId | None = None
    outcome: OutcomeKind | None = None
    stop_reason: str = ""
    code: str = ""
    message: str = ""
    external_sessions: tuple[str, ...] = ()
    pending: tuple[RequestId, ...] = ()
    resumed: bool = False
    reason: str = ""
    configuration: str = ""
    cursor: int = 0
    transcript: str = ""
    progress_at: float = 0.0
    events: tuple[Noted, ...] = ()


class Connection(NamedTuple):
    """A living process. `stays`: it outlives its turns. `exit_completes`: exit code 0 in a turn is the turn's end, as
    of a program that does one thing; otherwise only a word of the agent is. `configuration`: see TurnSpec.
    """

    stays: bool = False
    exit_completes: bool = True
    pid: int | None = None
    host_pid: int | None = None
    configuration: str = ""


class TurnsView(NamedTuple):
    """A Session's turns at one moment. `silent_s`: for how long nothing came, waits for a person left out."""

    state: TurnState
    turn: TurnId | None
    generation: int
    pending: tuple[RequestId, ...]
    external_session: str | None
    outcome: TurnOutcome | None
    silent_s: float
    connection: Connection | None = None
