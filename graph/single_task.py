"""The state of a single Task: a graph of one subtask, under the names of work that goes to one implementer and back.

Pure, and a view: computed at every look from what the record says of the one subtask, stored nowhere, and never asked
by the engine. `docs/states.md` prints the table, which is made from this function.
"""

from typing import Literal, NamedTuple

from coordinate_agents.graph.frontier import RunState
from coordinate_agents.graph.states import Phase

SingleTaskState = Literal[
    "CREATED",
    "PLANNING",
    "SPEC_READY",
    "IMPLEMENTING",
    "WAITING_IMPLEMENTER",
    "REVIEWING",
    "CHANGES_REQUESTED",
    "APPROVED",
    "ERROR",
    "STOPPED",
]


class Standing(NamedTuple):
    """What the state is computed from. `stage` and `phase` are those of a running subtask.

    `was_dispatched`: it ever began an attempt; `is_rework`: a review asked for changes, and they were not dispatched
    yet; `is_approved`: a review approved the very commit that is verified.
    """

    run: RunState
    stage: str = ""
    phase: Phase | None = None
    was_dispatched: bool = False
    has_spec: bool = True
    is_held: bool = False
    is_rework: bool = False
    is_approved: bool = False


def single_task_state(standing: Standing) -> SingleTaskState:
    """The state: total over every combination.

    A Session that has the turn is the implementer's (WAITING_IMPLEMENTER); what comes before it (base, worktree,
    setup, its start) and after it (verification) is the Runtime's part of the same work (IMPLEMENTING).
    """
    match standing.run:
        case "running":
            is_theirs = standing.stage == "turn" and standing.phase not in ("preparing", "verifying")
            return "WAITING_IMPLEMENTER" if is_theirs else "IMPLEMENTING"
        case "succeeded":
            return "APPROVED" if standing.is_approved else "REVIEWING"
        case "failed" | "base-conflict" | "base-missing":
            return "ERROR"
        case "stopped":
            return "STOPPED"
        case _ if standing.is_rework:
            return "CHANGES_REQUESTED"
        case _ if standing.was_dispatched:
            return "SPEC_READY"
        case _ if standing.is_held:
            return "PLANNING"
        case _:
            return "SPEC_READY" if standing.has_spec else "CREATED"
