"""What one Session's turns are, what can happen to them, and what follows: the values of `machine.step`. Pure.

An input says which turn and which process it is about, where that matters, so that what comes late is seen to be late.
Effects are carried out by `carrying`.
"""

from typing import NamedTuple

from coordinate_agents.sessions.model import SessionEnd, TurnFacts
from coordinate_agents.sessions.turns.model import (
    Answer,
    Fact,
    Payload,
    Permission,
    Progress,
    RequestId,
    TurnId,
    TurnOutcome,
    TurnState,
)
from coordinate_agents.sessions.turns.states import Trigger


class Illegal(Exception):
    """The state does not allow what was asked for; nothing changed."""

    def __init__(self, state: TurnState, trigger: Trigger) -> None:
        super().__init__(f"{trigger} is not possible while {state}")
        self.state = state
        self.trigger = trigger


class Turns(NamedTuple):
    """One Session's turns. `generation` counts the turns that were validated; `seq` the events of the present one.

    `process` is the number of the living process, 0 for none, out of `processes` that there were. `pending` are the
    permissions nobody has answered, `settled` those of this turn that need no answer any more. `has_begun`: the driver
    has the turn. `is_replaced`: nobody is told how it ends. `held`: facts from before it began. `outcome` is how the
    present turn ends, as soon as that is decided, or how the last one did. `end` is how the process ended since the
    turn was validated. `is_tree_left`: something of it may live, which no close has ended; no turn starts.
    """

    state: TurnState = "idle"
    generation: int = 0
    turn: TurnId | None = None
    seq: int = 0
    process: int = 0
    processes: int = 0
    stays: bool = False
    exit_completes: bool = True
    pending: tuple[Permission, ...] = ()
    settled: frozenset[RequestId] = frozenset()
    has_begun: bool = False
    is_replaced: bool = False
    held: tuple[Fact, ...] = ()
    outcome: TurnOutcome | None = None
    end: SessionEnd | None = None
    external_sessions: tuple[str, ...] = ()
    is_tree_left: bool = False


# --- inputs


class Opened(NamedTuple):
    """A start was asked for."""


class Validated(NamedTuple):
    turn: TurnId


class Withdrawn(NamedTuple):
    """The start was refused before anything was recorded."""


class ProcessWanted(NamedTuple):
    """The driver is about to be asked for a process: whatever an earlier one says from now on is ignored."""


class ProcessKnown(NamedTuple):
    """What the living process is like."""

    stays: bool
    exit_completes: bool


class ProcessGone(NamedTuple):
    """The process of before was ended, to make room for another."""


class TakenOver(NamedTuple):
    """Somebody began this turn before this coordinator was there, and nobody saw its end."""

    turn: TurnId


class Lost(NamedTuple):
    """A permission that was pending when an earlier coordinator went, and is not any more."""

    request: RequestId


class Beat(NamedTuple):
    """Time to say that the turn goes on."""

    progress: Progress


class Accepted(NamedTuple):
    """The driver has taken the turn."""


class Refused(NamedTuple):
    """The driver has not."""


class Cancel(NamedTuple):
    turn: TurnId


class Abandon(NamedTuple):
    turn: TurnId


class Overdue(NamedTuple):
    """A turn that was asked to stop has not, within the bound."""

    turn: TurnId


class Dispose(NamedTuple):
    pass


class Closed(NamedTuple):
    """The tree is gone, or what is left of it is named. `is_sure`: whether the close said anything at all."""

    survivors: tuple[str, ...] = ()
    is_sure: bool = True


class Resolve(NamedTuple):
    """Somebody is about to answer it."""

    request: RequestId


class PermissionOverdue(NamedTuple):
    """Nobody answered in time."""

    request: RequestId


class Reported(NamedTuple):
    """A fact, from the process with that number."""

    process: int
    fact: Fact


class Finished(NamedTuple):
    """What the present turn came to is recorded. `facts`: of a process that stays."""

    facts: TurnFacts | None = None


Input = (
    Opened
    | Validated
    | Withdrawn
    | ProcessWanted
    | ProcessKnown
    | ProcessGone
    | TakenOver
    | Lost
    | Beat
    | Accepted
    | Refused
    | Cancel
    | Abandon
    | Overdue
    | Dispose
    | Closed
    | Resolve
    | PermissionOverdue
    | Reported
    | Finished
)


# --- effects


class Tell(NamedTuple):
    """Publish it as number `seq` of the turn."""

    turn: TurnId
    seq: int
    event: Payload


class TellExit(NamedTuple):
    process: int
    end: SessionEnd


class SendAnswer(NamedTuple):
    request: RequestId
    answer: Answer


class SendCancel(NamedTuple):
    turn: TurnId


class Close(NamedTuple):
    """End the tree."""


class Finish(NamedTuple):
    """Record how the turn ended, then say `Finished`."""


class Reap(NamedTuple):
    """The turn is over and its process should end by itself soon."""

    process: int


class Record(NamedTuple):
    """Something changed that is to be on disk; at once, or at the next checkpoint."""

    at_once: bool = True


Effect = Tell | TellExit | SendAnswer | SendCancel | Close | Finish | Reap | Record
Step = tuple[Turns, tuple[Effect, ...]]
