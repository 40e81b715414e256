"""The states of a Session's turns and what leads from one to another. Pure tables, and nothing else.

A trigger that a state does not list does nothing there: a request is then refused, a fact is dropped.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, get_args

from coordinate_agents.sessions.turns.model import TurnState

Trigger = Literal[
    # what is asked for
    "open",
    "validated",
    "withdrawn",
    "taken over",
    "accepted",
    "refused",
    "cancel",
    "abandon",
    "dispose",
    "answered",
    "answered the last",
    # what happens
    "permission",
    "completed",
    "failed",
    "exited",
    "overdue",
    # what comes of it
    "finished",
    "finished, tree left",
    "tree gone",
    "tree gone in a turn",
    "tree left",
    "tree left in a turn",
]

_ENDS: Final[Mapping[Trigger, TurnState]] = {"completed": "finishing", "failed": "finishing", "exited": "finishing"}
_STOPS: Final[Mapping[Trigger, TurnState]] = {
    "cancel": "cancelling",
    "abandon": "abandoning",
    "dispose": "disposing",
}

TRANSITIONS: Final[Mapping[TurnState, Mapping[Trigger, TurnState]]] = MappingProxyType(
    {
        "idle": {"open": "opening", "taken over": "running", "dispose": "disposing", "tree left": "disposed"},
        "opening": {"validated": "starting", "withdrawn": "idle", "dispose": "disposing"},
        "starting": {"accepted": "running", "refused": "disposing", **_STOPS},
        "running": {"permission": "awaiting-permission", **_STOPS, **_ENDS},
        "awaiting-permission": {
            "permission": "awaiting-permission",
            "answered": "awaiting-permission",
            "answered the last": "running",
            **_STOPS,
            **_ENDS,
        },
        "cancelling": {
            "accepted": "cancelling",
            "refused": "disposing",
            "abandon": "abandoning",
            "overdue": "disposing",
            "dispose": "disposing",
            **_ENDS,
        },
        "abandoning": {
            "accepted": "abandoning",
            "refused": "disposing",
            "overdue": "disposing",
            "dispose": "disposing",
            **_ENDS,
        },
        "finishing": {"finished": "idle", "finished, tree left": "disposed"},
        "disposing": {
            "tree gone": "idle",
            "tree gone in a turn": "finishing",
            "tree left": "disposed",
            "tree left in a turn": "finishing",
        },
        "disposed": {"dispose": "disposing"},
    }
)

# A turn exists and its end was not told yet.
ACTIVE: Final[frozenset[TurnState]] = frozenset(
    {"starting", "running", "awaiting-permission", "cancelling", "abandoning", "finishing"}
)
# Facts about the turn count.
LISTENING: Final[frozenset[TurnState]] = frozenset({"running", "awaiting-permission", "cancelling", "abandoning"})

assert set(TRANSITIONS) == set(get_args(TurnState)), "every state has its row"
