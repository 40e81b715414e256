"""States of a subtask, of the integration and of a graph, and the tables that say what may follow what.

Stored: the state of a subtask and of the integration. WAITING, READY and BLOCKED are computed (`frontier`), and so is
the state of the graph. An event that its table does not list changes nothing and is an error that names both.
"""

from collections.abc import Mapping
from typing import Final, Literal

TaskState = Literal["idle", "running", "succeeded", "failed", "stopped"]
Phase = Literal["preparing", "working", "awaiting-input", "throttled", "held", "verifying"]
ShownState = Literal["WAITING", "READY", "BLOCKED", "RUNNING", "SUCCEEDED", "FAILED", "STOPPED"]
IntegrationState = Literal["none", "merging", "conflict", "checking", "failed", "integrated"]
ReviewState = Literal["none", "open", "changes", "approved"]
GraphState = Literal[
    "CREATED",
    "RUNNING",
    "SUCCEEDED",
    "INTEGRATED",
    "REVIEWING",
    "CHANGES_REQUESTED",
    "APPROVED",
    "FAILED",
    "STOPPED",
]

# What happens to the worktree of a subtask that does not run, or of the integration.
REMOVAL_EVENTS: Final = (
    "TeardownEnded",
    "DiscardMade",
    "RemovalStarted",
    "WorktreeRemoved",
    "RemovalRefused",
    "BranchDeleted",
    "UndoStarted",
    "Undone",
)

# Those by which a subtask that begins anew clears its place, after it took its slot.
_CLEARING: Final = ("TeardownEnded", "DiscardMade", "RemovalStarted", "WorktreeRemoved", "RemovalRefused")

# Event type -> stored states in which it is legal. The machine is the only reader.
TASK_EVENTS: Final[Mapping[str, frozenset[TaskState]]] = {
    "TaskClaimed": frozenset({"idle"}),
    "BaseFixed": frozenset({"running"}),
    "BaseConflicted": frozenset({"running"}),
    "ConflictOpening": frozenset({"idle"}),
    "ConflictOpened": frozenset({"idle"}),
    "ConflictClosed": frozenset({"idle"}),
    "ConflictWorktreeRemoved": frozenset({"idle", "running", "succeeded", "failed", "stopped"}),
    "WorktreeReady": frozenset({"running"}),
    "SetupDone": frozenset({"running"}),
    "SessionStarting": frozenset({"running"}),
    "SessionStarted": frozenset({"running"}),
    "SessionOpened": frozenset({"idle", "succeeded", "failed", "stopped"}),
    "SessionAdopted": frozenset({"failed", "stopped"}),
    "PhaseChanged": frozenset({"running"}),
    "TurnStalled": frozenset({"running"}),
    "TurnWentOn": frozenset({"running"}),
    "TurnEnded": frozenset({"running"}),
    "SessionClosed": frozenset({"idle", "running", "succeeded", "failed", "stopped"}),
    "CommitMade": frozenset({"running"}),
    # Only a person's check starts from elsewhere than running.
    "VerificationStarted": frozenset({"idle", "running", "failed", "stopped"}),
    # Teardown commands run in the worktree of a subtask that ended.
    "CommandStarting": frozenset({"idle", "running", "succeeded", "failed", "stopped"}),
    "BaselineExtended": frozenset({"running"}),
    "FactsRecorded": frozenset({"running"}),
    "CheckEnded": frozenset({"running"}),
    "TaskJudged": frozenset({"running"}),
    # Of one that ended, because a new attempt is refused: its last Session may still live.
    "AttemptFailed": frozenset({"running", "failed", "stopped"}),
    "TaskStopped": frozenset({"running"}),
    "TaskReset": frozenset({"idle", "succeeded", "failed", "stopped"}),
    "ReworkRequested": frozenset({"succeeded"}),
    "TaskTold": frozenset({"idle", "running", "failed", "stopped"}),
    "TaskHeld": frozenset({"idle", "running", "failed", "stopped"}),
    "TaskReleased": frozenset({"idle", "running", "succeeded", "failed", "stopped"}),
    **dict.fromkeys(REMOVAL_EVENTS, frozenset[TaskState]({"idle", "succeeded", "failed", "stopped"})),
    **dict.fromkeys(_CLEARING, frozenset[TaskState]({"idle", "running", "succeeded", "failed", "stopped"})),
}

INTEGRATION_EVENTS: Final[Mapping[str, frozenset[IntegrationState]]] = {
    "IntegrationStarted": frozenset({"none", "merging", "conflict", "checking", "failed", "integrated"}),
    "IntegrationConflicted": frozenset({"merging"}),
    "IntegrationMerged": frozenset({"merging"}),
    # Teardown commands run in its worktree, whatever became of it.
    "IntegrationCommandStarting": frozenset({"none", "conflict", "checking", "failed", "integrated"}),
    "IntegrationJudged": frozenset({"checking"}),
    "IntegrationFailed": frozenset({"merging", "checking"}),
    "IntegrationAborting": frozenset({"none", "conflict", "failed", "integrated"}),
    "IntegrationAborted": frozenset({"none", "conflict", "failed", "integrated"}),
    **dict.fromkeys(REMOVAL_EVENTS, frozenset[IntegrationState]({"none", "conflict", "failed", "integrated"})),
}

# Events of the graph itself are legal in every state.
GRAPH_EVENTS: Final = frozenset(
    {
        "GraphCreated",
        "GraphAmended",
        "GraphForgotten",
        "DriveStarted",
        "DriveEnded",
        "SharedRecorded",
        "SharedChanged",
        "SharedAccepted",
        "ResolutionRecorded",
        "ReviewOpened",
        "ReviewDecided",
        "BranchDelivered",
    }
)


_REVIEWED: Final[Mapping[ReviewState, GraphState]] = {"open": "REVIEWING", "approved": "APPROVED"}


def graph_state(
    *,
    places: Mapping[str, int],
    integration: IntegrationState,
    review: ReviewState = "none",
    is_driven: bool,
    was_started: bool,
) -> GraphState:
    """The state of a graph: total over every combination.

    `places` counts subtasks by frontier place (waiting, ready, blocked, running, succeeded, failed, stopped).
    `integration` is that of the present verified commits ("none" when it is of earlier ones); `review` is "open" or
    "approved" only for the present integrated commit.

    1. somebody drives it, or a subtask is running       -> RUNNING
    2. every subtask succeeded                           -> by integration: integrated INTEGRATED, or by its review
                                                            REVIEWING or APPROVED; conflict or failed FAILED; otherwise
                                                            SUCCEEDED
    3. nothing was ever started                          -> CREATED
    4. a subtask failed, or has no base                  -> FAILED
    5. a review asked for changes, nothing is stopped    -> CHANGES_REQUESTED
    6. otherwise                                         -> STOPPED
    """
    if is_driven or places.get("running", 0):
        return "RUNNING"
    unfinished = sum(count for place, count in places.items() if place != "succeeded")
    if unfinished == 0 and places:
        if integration == "integrated":
            return _REVIEWED.get(review, "INTEGRATED")
        return "FAILED" if integration in ("conflict", "failed") else "SUCCEEDED"
    if not was_started:
        return "CREATED"
    # A blocked subtask without any failed or stopped one is blocked by its own base.
    if places.get("failed", 0) or (places.get("blocked", 0) and not places.get("stopped", 0)):
        return "FAILED"
    if review == "changes" and not places.get("stopped", 0):
        return "CHANGES_REQUESTED"
    return "STOPPED"
