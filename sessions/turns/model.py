"""What the turns of a Session are made of: ids, facts, events, permissions, and the record of a turn. Pure values.

A driver reports facts; the machine decides what they mean; events are what everybody else is told. A fact may come
late, twice, or from a process that is gone. An event never does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NewType

from coordinate_agents.sessions.model import Launch, SessionEnd, SessionId, TurnFacts, TurnLimits

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


@dataclass(frozen=True, slots=True)
class PermissionOption:
    """`kind` as the agent's protocol names it (allow_once, reject_once, …); empty: not said."""

    id: str
    name: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Permission:
    """What an agent asks before it goes on. `deadline_s` after it came it is answered "cancelled"; None: never."""

    request: RequestId
    turn: TurnId
    summary: str
    options: tuple[PermissionOption, ...]
    tool: str | None = None
    deadline_s: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """To a permission: one of its options, or None: cancelled."""

    option: str | None = None


CANCELLED: Final = Answer()


# --- facts: what a driver reports


@dataclass(frozen=True, slots=True)
class Printed:
    """More output. `cursor` is the absolute offset behind it; `text` may be empty where only the amount is known."""

    cursor: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Updated:
    """The agent's own words about its turn (a plan, a tool call), in a few plain fields."""

    turn: TurnId
    kind: str
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExternalSessionNamed:
    """The agent's own conversation, to be resumed later."""

    external_session: str


@dataclass(frozen=True, slots=True)
class PermissionRequested:
    permission: Permission


@dataclass(frozen=True, slots=True)
class PermissionWithdrawn:
    """The agent does not ask any more."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class TurnCompleted:
    turn: TurnId
    stop_reason: str


@dataclass(frozen=True, slots=True)
class TurnFailed:
    turn: TurnId
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ProcessExited:
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


@dataclass(frozen=True, slots=True)
class Stdout:
    cursor: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Update:
    kind: str
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExternalSession:
    external_session: str


@dataclass(frozen=True, slots=True)
class PermissionAsked:
    permission: Permission


@dataclass(frozen=True, slots=True)
class PermissionInvalidated:
    """Nobody can answer it any more; `reason`: cancelled, ended, withdrawn, overdue or lost."""

    request: RequestId
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """The turn goes on. At most one in 30 s."""

    cursor: int


@dataclass(frozen=True, slots=True)
class Completed:
    """`stop_reason`: what ended it (exit, end_turn, submitted, cancelled, …)."""

    stop_reason: str


@dataclass(frozen=True, slots=True)
class Failed:
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


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """`seq` counts from 1 in every turn, without a gap. `time` is a wall clock time."""

    session: SessionId
    turn: TurnId
    seq: int
    time: float
    event: Payload


@dataclass(frozen=True, slots=True)
class ProcessEvent:
    """A process came or went. `number` counts the processes of the Session from 1; `end` None: it started."""

    session: SessionId
    number: int
    time: float
    end: SessionEnd | None = None


# --- turns


@dataclass(frozen=True, slots=True)
class TurnSpec:
    """One turn to be started.

    `launch` starts the process where none lives (None: only a living one takes the turn). `resumed` is the same, taking
    up the conversation `resume`; where that fails before a child existed, `launch` is used, `prompt` must then say
    everything, and the record says so. `prompt` None: the launch delivers it, or it is typed later. `configuration` is
    a fingerprint of the agent's settings: a process of another one is ended first.
    """

    launch: Launch | None = None
    prompt: str | None = None
    limits: TurnLimits = field(default_factory=TurnLimits)
    configuration: str = ""
    resume: str | None = None
    resumed: Launch | None = None
    short_prompt: str | None = None


@dataclass(frozen=True, slots=True)
class TurnOutcome:
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


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """What is written of a Session's turns; the newest one counts.

    `turn` and `state` are of the present or last turn, `outcome` None while it runs. `external_sessions` stand in the
    order in which the agent named them; the last one is resumed. `pending` are the permissions nobody has answered.
    `cursor` and `transcript` are the end of the output at the last checkpoint, `progress_at` the last heartbeat.
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
