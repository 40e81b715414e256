"""What the core may ask the shell to do. Imperative; each ends in one event (contract of `perform`)."""

from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.worktrees.values import value_class


@value_class
class MakeBase:
    """Ends in BaseFixed, BaseConflicted or AttemptFailed."""

    subtask: SubtaskId


@value_class
class CreateWorktree:
    """Ends in WorktreeReady or AttemptFailed."""

    subtask: SubtaskId


@value_class
class RunSetup:
    """Ends in SetupDone or AttemptFailed."""

    subtask: SubtaskId


@value_class
class OpenSession:
    """Records SessionStarting first. Ends in SessionStarted or AttemptFailed. `has_tokens`: they are still its own.

    `is_told`: `feedback` is what a person said, not what a verification found.
    """

    subtask: SubtaskId
    turn: int = 0
    feedback: str = ""
    has_tokens: bool = False
    is_told: bool = False


@value_class
class AwaitTurn:
    """Ends in TurnEnded, or not at all when the driver leaves first."""

    subtask: SubtaskId


@value_class
class AwaitRetry:
    """The agent's service refuses: wait until it may be tried again. Ends in PhaseChanged."""

    subtask: SubtaskId


@value_class
class ExplainExit:
    """The turn did not end well: say what is there. Ends in AttemptFailed, TaskStopped or PhaseChanged (throttled)."""

    subtask: SubtaskId


@value_class
class Verify:
    """Records VerificationStarted (a check's stands already), CommitMade, FactsRecorded, CheckEnded.

    Ends in TaskJudged or AttemptFailed.
    """

    subtask: SubtaskId
    by: str = "turn"


@value_class
class MergeHeads:
    """Ends in IntegrationMerged, IntegrationConflicted or IntegrationFailed."""


@value_class
class CheckIntegration:
    """Ends in IntegrationJudged or IntegrationFailed."""


TaskEffect = MakeBase | CreateWorktree | RunSetup | OpenSession | AwaitTurn | AwaitRetry | ExplainExit | Verify
Effect = TaskEffect | MergeHeads | CheckIntegration
