"""What the core may ask the shell to do. Imperative; each ends in one event (contract of `perform`)."""

from dataclasses import dataclass

from coordinate_agents.graph.model import SubtaskId


@dataclass(frozen=True, slots=True)
class MakeBase:
    """Ends in BaseFixed, BaseConflicted or AttemptFailed."""

    subtask: SubtaskId


@dataclass(frozen=True, slots=True)
class CreateWorktree:
    """Ends in WorktreeReady or AttemptFailed."""

    subtask: SubtaskId


@dataclass(frozen=True, slots=True)
class RunSetup:
    """Ends in SetupDone or AttemptFailed."""

    subtask: SubtaskId


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Records SessionStarting first. Ends in SessionStarted or AttemptFailed. `has_tokens`: they are still its own.

    `is_told`: `feedback` is what a person said, not what a verification found.
    """

    subtask: SubtaskId
    turn: int = 0
    feedback: str = ""
    has_tokens: bool = False
    is_told: bool = False


@dataclass(frozen=True, slots=True)
class AwaitTurn:
    """Ends in TurnEnded, or not at all when the driver leaves first."""

    subtask: SubtaskId


@dataclass(frozen=True, slots=True)
class AwaitRetry:
    """The agent's service refuses: wait until it may be tried again. Ends in PhaseChanged."""

    subtask: SubtaskId


@dataclass(frozen=True, slots=True)
class ExplainExit:
    """The turn did not end well: say what is there. Ends in AttemptFailed, TaskStopped or PhaseChanged (throttled)."""

    subtask: SubtaskId


@dataclass(frozen=True, slots=True)
class Verify:
    """Records VerificationStarted (a check's stands already), CommitMade, FactsRecorded, CheckEnded.

    Ends in TaskJudged or AttemptFailed.
    """

    subtask: SubtaskId
    by: str = "turn"


@dataclass(frozen=True, slots=True)
class MergeHeads:
    """Ends in IntegrationMerged, IntegrationConflicted or IntegrationFailed."""


@dataclass(frozen=True, slots=True)
class CheckIntegration:
    """Ends in IntegrationJudged or IntegrationFailed."""


TaskEffect = MakeBase | CreateWorktree | RunSetup | OpenSession | AwaitTurn | AwaitRetry | ExplainExit | Verify
Effect = TaskEffect | MergeHeads | CheckIntegration
