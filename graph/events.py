"""What can have happened to a graph, one frozen dataclass each; to and from a store row.

Events are facts in the past tense. Their names and fields are the log's format: fields may be added with a default,
never renamed. Large values (ref snapshots, certificates) stand in the store's blobs, an event carries their digest.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

from coordinate_agents.graph.codec import from_plain, to_plain
from coordinate_agents.graph.evidence import CheckOutcome, Waiver
from coordinate_agents.graph.model import CommitId, SubtaskId
from coordinate_agents.graph.states import Phase
from coordinate_agents.sessions.model import Usage
from coordinate_agents.worktrees.model import Head, Worktree
from coordinate_agents.worktrees.values import value_class

# What follows a refusal: the same Session gets the facts, a next attempt is due, or nothing more.
Then = Literal["fix-turn", "retry", "end"]
# What a review decides. Nothing else is a decision: not an exit code, not an agent's words.
Decision = Literal["REVIEW_APPROVED", "CHANGES_REQUESTED"]
# What a reset subtask starts from: its kept worktree and branch, or a fresh base on a fresh branch.
Keep = Literal["branch", "base"]


@value_class
class EvidenceSummary:
    """What was seen of one head, as status shows it. `paths_first` are at most 20 of `paths_count` changed paths."""

    commit: CommitId | None
    base: CommitId
    paths_count: int = 0
    paths_first: tuple[str, ...] = ()
    checks: tuple[CheckOutcome, ...] = ()
    outside_scope: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    waivers: tuple[Waiver, ...] = ()


@value_class
class Failure:
    """Why an attempt or an integration did not succeed. `next` is a command to paste."""

    code: str
    message: str
    stage: str = ""
    check: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    tail: str = ""
    log_path: str | None = None
    kept: str | None = None
    next: str | None = None


@value_class
class GraphCreated:
    """`branch`: the full name of the branch that the base was named by; empty when it was none."""

    base: CommitId
    subtasks: int
    branch: str = ""


@value_class
class DriveStarted:
    pid: int
    who: str = "user"


@value_class
class DriveEnded:
    reason: str


@value_class
class SharedRecorded:
    """The shared git state that later looks are compared with. `blob` holds it."""

    blob: str


@value_class
class SharedChanged:
    changes: tuple[str, ...]
    fingerprint: str
    candidates: tuple[str, ...] = ()


@value_class
class SharedAccepted:
    """A person accepted exactly the state of this fingerprint. `blob` holds it: the new reference."""

    fingerprint: str
    blob: str
    who: str = "user"


@value_class
class ResolutionRecorded:
    """A person's merge of two commits, used in every later base and integration where these two meet.

    `made_by`: the person committed it, or the Runtime did from their index. `others`: paths that it changes beside
    those in conflict, at most 50.
    """

    ours: CommitId
    theirs: CommitId
    commit: CommitId
    made_by: Literal["person", "runtime"] = "person"
    others: tuple[str, ...] = ()
    who: str = "user"


@value_class
class ReviewOpened:
    """A person looks at the integrated commit."""

    commit: CommitId
    who: str = "user"


@value_class
class ReviewDecided:
    """A person's decision about exactly this commit: the integrated one, or (`about` one) that subtask's verified one.

    `about` are the subtasks that are asked for changes, in the order of the graph.
    """

    decision: Decision
    commit: CommitId
    about: tuple[SubtaskId, ...] = ()
    feedback: str = ""
    who: str = "user"


@value_class
class BranchDelivered:
    """A branch of the user's, named by them, holds `commit`: the integrated `source` itself, or it squashed.

    `base` is what the source was built on; `previous` is where the branch stood, None when it was made.
    """

    branch: str
    commit: CommitId
    source: CommitId
    base: CommitId
    previous: CommitId | None = None
    is_squashed: bool = False
    who: str = "user"


@value_class
class GraphAmended:
    """From here on `revision` of the document holds; the store keeps every one. `base`: moved there, None: as it was.

    `branch`: as of GraphCreated, of the new base. `lines` are the differences in words, at most 40.
    """

    revision: int
    added: tuple[SubtaskId, ...] = ()
    changed: tuple[SubtaskId, ...] = ()
    dropped: tuple[SubtaskId, ...] = ()
    base: CommitId | None = None
    branch: str = ""
    lines: tuple[str, ...] = ()
    who: str = "user"


@value_class
class GraphForgotten:
    """The graph is over: what its Sessions printed goes, and with `pins` what only its pins held. The log stays."""

    pins: bool = False
    who: str = "user"


@value_class
class TaskClaimed:
    """A slot was taken; the intent to start attempt `attempt`. `nonce` will mark the worktree if one is made.

    `slot`: the number that its agent, setup and checks are told, from which ports follow.
    """

    subtask: SubtaskId
    attempt: int
    agent: str
    nonce: str
    slot: int = 0


@value_class
class BaseFixed:
    """`refs_blob` is the snapshot of user refs at this attempt's start."""

    subtask: SubtaskId
    base: CommitId
    refs_blob: str
    reduced: tuple[Head, ...] = ()


@value_class
class BaseConflicted:
    """`ours` (what the applied heads gave) and `theirs` do not merge; a commit that merges both resolves it."""

    subtask: SubtaskId
    pair: tuple[str, str]
    paths: tuple[str, ...]
    key: str
    applied: tuple[Head, ...] = ()
    ours: CommitId = ""
    theirs: CommitId = ""


@value_class
class ConflictOpening:
    """The intent to open a worktree in the middle of this merge, as the base of the subtask needs it now."""

    subtask: SubtaskId
    conflict: BaseConflicted
    who: str = "user"


@value_class
class ConflictOpened:
    subtask: SubtaskId
    worktree: Worktree


@value_class
class ConflictWorktreeRemoved:
    """The worktree in which a person merged is gone; the merge stays. `tip`: its branch was deleted there."""

    subtask: SubtaskId
    tip: CommitId | None = None
    who: str = "user"


@value_class
class ConflictClosed:
    """The base of the subtask can be made now, or (given-up) the merge was taken back and the conflict stays.

    `kept` holds everything that stood in the worktree of a merge that was given up.
    """

    subtask: SubtaskId
    outcome: Literal["resolved", "gone", "given-up"]
    kept: CommitId | None = None
    who: str = "user"


@value_class
class WorktreeReady:
    subtask: SubtaskId
    worktree: Worktree
    reused: bool = False


@value_class
class SetupDone:
    """`baseline` are untracked paths that setup, copy and link left; they are blamed on nobody.

    `cone`: the worktree's folders, where setup made it a sparse one.
    """

    subtask: SubtaskId
    baseline: tuple[str, ...] = ()
    cone: tuple[str, ...] = ()


@value_class
class SessionStarting:
    """The intent to start a turn, before any process exists, or (`reused`) in the process of the turn before.

    `is_told`: `feedback` is what a person said. `why`: what kept a process that had stayed from being used.
    """

    subtask: SubtaskId
    session: str
    turn: int
    marker: str
    command: tuple[str, ...] = ()
    feedback: str = ""
    is_told: bool = False
    reused: bool = False
    why: str = ""


@value_class
class SessionStarted:
    subtask: SubtaskId
    session: str
    pid: int | None = None
    host_pid: int | None = None


@value_class
class SessionOpened:
    """A person opened a terminal in the worktree: nobody's attempt. What becomes of it is its own record's."""

    subtask: SubtaskId
    session: str
    agent: str
    who: str = "user"


@value_class
class SessionAdopted:
    """The attempt had ended on the record, and its Session lives in the right worktree: it goes on."""

    subtask: SubtaskId
    session: str
    pid: int | None = None
    host_pid: int | None = None
    who: str = "user"


@value_class
class Choice:
    """One answer that an agent offers; `id` names it to session-answer."""

    id: str
    name: str


@value_class
class PhaseChanged:
    """A running subtask waits, or goes on. `note`: the question, or what the service said; `kind`: of the question.

    `request` names the question to session-answer where it has `choices`, the least lasting first.
    `can_go_on`: what it waited for came, and it takes the next slot. `retry_at`: when a refused turn is tried again.
    `delivered`: of a typed prompt; "unknown" is recorded before it is typed.
    """

    subtask: SubtaskId
    phase: Phase
    note: str = ""
    kind: str = ""
    can_go_on: bool = False
    retry_at: float | None = None
    delivered: str = ""
    request: str = ""
    choices: tuple[Choice, ...] = ()


@value_class
class TurnStalled:
    """The agent has said nothing new for as long as its `idleTimeout`, and nobody is asked anything. It goes on."""

    subtask: SubtaskId
    session: str


@value_class
class TurnWentOn:
    """The agent of a stalled turn said something new."""

    subtask: SubtaskId
    session: str


@value_class
class TurnEnded:
    """The turn ended. `kept`: commits that were pinned; `summary`: what the agent said it delivered.

    `stays`: its process lives on, idle, and can take another turn; else it ended. `cause` beside those of a Session's
    end: submitted, idle-prompt, turn-ended (the turn of a program that stays is over); cancelled, refused, failed (of
    an agent that says so itself); input (nobody answered), login, not-ready.
    `code`: RATE_LIMITED, QUOTA_EXHAUSTED, AUTH_REQUIRED, as read from the output, with the line and the time at which
    to come back. `usage`: what the agent says that this turn took.
    """

    subtask: SubtaskId
    session: str
    cause: str
    exit_code: int | None = None
    signal: int | None = None
    tail: str = ""
    log_path: str | None = None
    duration_ms: int = 0
    survivors: tuple[str, ...] = ()
    error: str | None = None
    kept: tuple[CommitId, ...] = ()
    summary: str = ""
    external_session: str | None = None
    code: str | None = None
    line: str = ""
    retry_at: float | None = None
    stays: bool = False
    usage: Usage | None = None


@value_class
class SessionClosed:
    """A Session that had stayed open after its turn is closed, or was found ended.

    While `survivors` of its tree are left it counts as open.
    """

    subtask: SubtaskId
    session: str
    reason: str
    survivors: tuple[str, ...] = ()


@value_class
class CommitMade:
    subtask: SubtaskId
    commit: CommitId
    left_out: tuple[str, ...] = ()


@value_class
class VerificationStarted:
    """`by` says what triggered the look: turn, recover, check. Of a check, `who` asked for it and waived what.

    `slot`: the number that it takes, None: the subtask has one.
    """

    subtask: SubtaskId
    by: str = "turn"
    waivers: tuple[Waiver, ...] = ()
    who: str = ""
    slot: int | None = None


@value_class
class CommandStarting:
    """The intent to run one of the Runtime's own commands (setup, check) in a Session of its own."""

    subtask: SubtaskId
    session: str
    marker: str
    name: str


@value_class
class BaselineExtended:
    """Untracked paths that checks left in the worktree; they are blamed on nobody from now on."""

    subtask: SubtaskId
    paths: tuple[str, ...]


@value_class
class FactsRecorded:
    """Facts 1 to 6 about `head`, each "number name: outcome message"."""

    subtask: SubtaskId
    head: CommitId | None
    facts: tuple[str, ...]


@value_class
class CheckEnded:
    subtask: SubtaskId
    head: CommitId
    result: CheckOutcome


@value_class
class TaskJudged:
    """The verdict about one head. `certificate` is a blob digest, set when accepted.

    `can_continue`: the agent's Session can take the failing facts as a next turn. `then` is set by the machine.
    """

    subtask: SubtaskId
    accepted: bool
    commit: CommitId | None
    evidence: EvidenceSummary
    certificate: str | None = None
    failure: Failure | None = None
    can_continue: bool = False
    then: Then = "end"


@value_class
class AttemptFailed:
    """The attempt ended without a verdict. `is_final`: trying again would meet the same, so no attempt follows."""

    subtask: SubtaskId
    failure: Failure
    is_final: bool = False
    then: Then = "end"


@value_class
class TaskStopped:
    """`stays`: its Session was left at work; nobody watches it any more."""

    subtask: SubtaskId
    reason: str
    failure: Failure | None = None
    stays: bool = False


@value_class
class TaskReset:
    """Made ready again. Attempts are counted afresh against the limit; the attempt number goes on.

    Of a succeeded one (a redo) the verified commit counts no more. `say`: a person's words for the next prompt, empty:
    those of an earlier reset stay; `agent`: from now on, None: as before.
    """

    subtask: SubtaskId
    reason: str
    keep: Keep = "branch"
    say: str = ""
    agent: str | None = None
    who: str = ""


@value_class
class ReworkRequested:
    """A review asks for changes: the verified commit counts no more, and the same attempt gets one more turn."""

    subtask: SubtaskId
    feedback: str
    who: str = "user"


@value_class
class TaskTold:
    """A person's words. `now`: they are typed into the Session; else they are given with the next prompt.

    `request`: of the process that asked; it is recorded before anything is typed, so that a driver that comes back
    types nothing twice.
    """

    subtask: SubtaskId
    text: str
    now: bool = False
    who: str = "user"
    request: int = 0


@value_class
class TaskHeld:
    """A person works in the worktree: no prompt, start or verification before TaskReleased."""

    subtask: SubtaskId
    who: str = "user"


@value_class
class TaskReleased:
    subtask: SubtaskId
    who: str = "user"


@value_class
class TeardownEnded:
    """A teardown command ran in the worktree before it goes. `cause` as of a Session's end."""

    subtask: SubtaskId
    name: str
    cause: str
    exit_code: int | None = None
    log_path: str | None = None


@value_class
class DiscardMade:
    """Everything in the worktree was set aside as this pinned commit."""

    subtask: SubtaskId
    commit: CommitId
    who: str = "user"


@value_class
class RemovalStarted:
    """The intent to remove the worktree. `discard`: what was set aside of it."""

    subtask: SubtaskId
    discard: CommitId | None = None
    who: str = "user"


@value_class
class WorktreeRemoved:
    """The worktree is gone; its branch stays at `tip`. `kept`: commits that were pinned since only it held them."""

    subtask: SubtaskId
    tip: CommitId | None
    kept: tuple[CommitId, ...] = ()
    bytes: int = 0
    was_missing: bool = False


@value_class
class RemovalRefused:
    """The worktree stays in its place."""

    subtask: SubtaskId
    reason: str
    message: str = ""


@value_class
class BranchDeleted:
    """The branch of a removed worktree was deleted; a pin or another ref holds `commit`."""

    subtask: SubtaskId
    branch: str
    commit: CommitId
    who: str = "user"


@value_class
class UndoStarted:
    """The intent to bring a removed worktree back. `nonce` will mark it."""

    subtask: SubtaskId
    nonce: str
    who: str = "user"


@value_class
class Undone:
    """The worktree is back, with what `discard` held; `lost` says in words what is not as it was."""

    subtask: SubtaskId
    worktree: Worktree
    discard: CommitId | None = None
    lost: tuple[str, ...] = ()


@value_class
class IntegrationStarted:
    """`onto`: the commit that the merge begins with, None: the graph's base; `onto_name` is how the person named it."""

    heads: tuple[Head, ...]
    onto: CommitId | None = None
    onto_name: str = ""


@value_class
class IntegrationConflicted:
    """`worktree` stands in the middle of the merge of `ours` and `theirs`."""

    pair: tuple[str, str]
    paths: tuple[str, ...]
    applied: tuple[Head, ...]
    ours: CommitId = ""
    theirs: CommitId = ""
    worktree: Worktree | None = None


@value_class
class IntegrationMerged:
    commit: CommitId
    tree: str
    worktree: Worktree
    merged: tuple[Head, ...] = ()


@value_class
class IntegrationCommandStarting:
    """As CommandStarting, for a check on the integration."""

    session: str
    marker: str
    name: str


@value_class
class IntegrationJudged:
    """`left`: untracked files that setup and the checks left in its worktree; nobody's. `cone`: as in SetupDone."""

    commit: CommitId
    accepted: bool
    checks: tuple[CheckOutcome, ...] = ()
    failure: Failure | None = None
    left: tuple[str, ...] = ()
    cone: tuple[str, ...] = ()


@value_class
class IntegrationFailed:
    failure: Failure


@value_class
class IntegrationAborting:
    """The intent to take the integration's worktree back to `target`; everything in it is kept first."""

    target: CommitId
    who: str = "user"


@value_class
class IntegrationAborted:
    """`kept` holds everything that stood in the worktree; None when it was as it had been left."""

    kept: CommitId | None = None
    worktree: Worktree | None = None


# These are about a worktree; of the integration's they carry its reserved name as the subtask.
RemovalEvent = (
    TeardownEnded
    | DiscardMade
    | RemovalStarted
    | WorktreeRemoved
    | RemovalRefused
    | BranchDeleted
    | UndoStarted
    | Undone
)
TaskEvent = (
    TaskClaimed
    | BaseFixed
    | BaseConflicted
    | ConflictOpening
    | ConflictOpened
    | ConflictClosed
    | ConflictWorktreeRemoved
    | WorktreeReady
    | SetupDone
    | SessionStarting
    | SessionStarted
    | SessionOpened
    | SessionAdopted
    | PhaseChanged
    | TurnStalled
    | TurnWentOn
    | TurnEnded
    | SessionClosed
    | CommitMade
    | VerificationStarted
    | CommandStarting
    | BaselineExtended
    | FactsRecorded
    | CheckEnded
    | TaskJudged
    | AttemptFailed
    | TaskStopped
    | TaskReset
    | ReworkRequested
    | TaskTold
    | TaskHeld
    | TaskReleased
    | RemovalEvent
)
IntegrationEvent = (
    IntegrationStarted
    | IntegrationConflicted
    | IntegrationMerged
    | IntegrationCommandStarting
    | IntegrationJudged
    | IntegrationFailed
    | IntegrationAborting
    | IntegrationAborted
)
GraphEvent = (
    GraphCreated
    | DriveStarted
    | DriveEnded
    | SharedRecorded
    | SharedChanged
    | SharedAccepted
    | ResolutionRecorded
    | ReviewOpened
    | ReviewDecided
    | BranchDelivered
    | GraphAmended
    | GraphForgotten
)
# What these say is folded into the summary of the graph.
SummaryEvent = IntegrationEvent | GraphEvent
Event = TaskEvent | SummaryEvent

_CLASSES: Final[Mapping[str, type[Any]]] = {cls.__name__: cls for cls in Event.__args__}

# An outside act depends on these: they are on disk before the act (contract section 8).
DURABLE: Final = frozenset(
    {
        "GraphCreated",
        "GraphAmended",
        "GraphForgotten",
        "TaskClaimed",
        "BaseFixed",
        "SessionStarting",
        "TaskJudged",
        "IntegrationMerged",
        "IntegrationJudged",
        "SharedRecorded",
        "SharedAccepted",
        "ConflictOpening",
        "ResolutionRecorded",
        "IntegrationAborting",
        "TaskReset",
        "TaskHeld",
        "DiscardMade",
        "RemovalStarted",
        "WorktreeRemoved",
        "BranchDeleted",
        "UndoStarted",
        "ReviewOpened",
        "ReviewDecided",
        "ReworkRequested",
    }
)


class UnknownEvent(ValueError):
    """A row whose type this version does not know."""

    type: ClassVar[str] = "UnknownEvent"


def event_type(event: Event) -> str:
    return type(event).__name__


def subtask_of(event: Event) -> SubtaskId | None:
    return getattr(event, "subtask", None)


def to_data(event: Event) -> dict[str, Any]:
    """The row's data; the subtask stands in a column of its own."""
    plain: dict[str, Any] = to_plain(event)
    plain.pop("subtask", None)
    return plain


def from_row(type_name: str, subtask: str | None, data: Mapping[str, Any]) -> Event:
    """The event of a stored row. Raises: UnknownEvent."""
    cls = _CLASSES.get(type_name)
    if cls is None:
        raise UnknownEvent(f"the log holds an event of type {type_name!r}, which this version does not know")
    plain = data if subtask is None else {**data, "subtask": subtask}
    event: Event = from_plain(cls, plain)
    return event
