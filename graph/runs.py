"""What became of subtasks, of the integration and of the graph: the frozen values that a `Snapshot` holds. Pure."""

import json
from dataclasses import field
from typing import Final, Literal

from coordinate_agents.graph.codec import from_plain, to_plain
from coordinate_agents.graph.events import BaseConflicted, Choice, EvidenceSummary, Failure, PhaseChanged, TurnEnded
from coordinate_agents.graph.evidence import CheckOutcome, Waiver
from coordinate_agents.graph.model import CommitId, SubtaskId
from coordinate_agents.graph.states import IntegrationState, Phase, ReviewState, TaskState
from coordinate_agents.graph.used import Used
from coordinate_agents.worktrees.model import Head, Worktree
from coordinate_agents.worktrees.values import value_class

# What an attempt has got to, so that a driver that comes back knows what to look for.
Stage = Literal["", "base", "worktree", "setup", "session", "turn", "verify"]

# Of the worktree in which a person merges a base conflict: none, intended, or there.
ConflictState = Literal["", "opening", "open"]

INTERRUPTED: Final = "interrupted"

# A service that refuses for a while; costs no attempt.
LIMIT_CODES: Final = frozenset({"RATE_LIMITED", "QUOTA_EXHAUSTED"})

_UNUSED: Final = Used()


@value_class
class Removal:
    """A worktree that was removed, or is being removed: what it takes to bring it back.

    `tip` is where its branch was, `discard` what was set aside. `nonce`: the intent to bring it back.
    """

    worktree: Worktree
    tip: CommitId | None = None
    baseline: tuple[str, ...] = ()
    discard: CommitId | None = None
    is_branch_deleted: bool = False
    nonce: str | None = None


@value_class
class TaskRun:
    """What became of one subtask.

    `attempt` counts from 1 over the whole life, `tries` since the last reset (compared with the limit), `turn` the
    fix turns of this attempt and those that a refusing service cost (`free_turns`). `stage` is the last step whose
    intent or result was recorded. `phase_since` and `started_at` are seconds since the epoch.

    `open_session` is the Session whose process stays open between turns, also after the subtask succeeded; `is_reused`:
    the present turn is a further one of its process. `external_session` is the agent's own conversation,
    `earlier_session` that of the attempt before with the same agent in the same worktree, `delivered`
    what is known of a typed prompt, `question` the kind of what it asks, `request` and `choices` its name and answers
    where it has any. `can_go_on`: it has no slot and wants one. `stalled_since`: its agent says nothing new.
    `limited_since`: its service refuses since then, `limits` times in a row; cleared once a turn got through.
    `setup_nonce`: of the worktree in which setup is done.

    What persons decided: `is_fresh`: the next attempt starts from a fresh base and branch; `say`: their words in every
    first prompt until it succeeds; `told`: words for the next prompt, whichever it is, of requests up to
    `told_request`; `is_told`: the last turn was one of those; `review`: what a review of `reviewed_commit` asked for,
    until it succeeds; `is_rework`: the next claim goes on with the same attempt; `chosen_agent`: instead of the
    document's; `is_held`: nothing starts before it is released; `verified_by` and `waivers` are of the last
    verification. `conflict_worktree`: where they merged, or merge, what its base cannot be made of.

    `used`: what its agents said that their turns took, over all attempts.

    `removing`: its worktree is on the way out; `removal`: it is gone, and the next attempt gets a new one on the kept
    branch. `discard` is the last thing that was set aside.
    """

    id: SubtaskId
    state: TaskState = "idle"
    phase: Phase | None = None
    stage: Stage = ""
    attempt: int = 0
    tries: int = 0
    turn: int = 0
    free_turns: int = 0
    agent: str | None = None
    nonce: str | None = None
    base: CommitId | None = None
    reduced: tuple[Head, ...] = ()
    first_refs_blob: str | None = None
    refs_blob: str | None = None
    worktree: Worktree | None = None
    baseline: tuple[str, ...] = ()
    setup_nonce: str | None = None
    session: str | None = None
    session_live: bool = False
    session_pid: int | None = None
    marker: str | None = None
    command: tuple[str, ...] = ()
    feedback: str = ""
    turn_end: TurnEnded | None = None
    open_session: str | None = None
    is_reused: bool = False
    external_session: str | None = None
    earlier_session: str | None = None
    delivered: str = ""
    question: str = ""
    request: str = ""
    choices: tuple[Choice, ...] = ()
    can_go_on: bool = False
    stalled_since: float | None = None
    retry_at: float | None = None
    limited_since: float | None = None
    limits: int = 0
    command_session: str | None = None
    command_marker: str | None = None
    head: CommitId | None = None
    verified_commit: CommitId | None = None
    certificate: str | None = None
    evidence: EvidenceSummary | None = None
    summary: str | None = None
    failure: Failure | None = None
    reason: str | None = None
    conflict: BaseConflicted | None = None
    started_at: float | None = None
    phase_since: float | None = None
    ended_at: float | None = None
    is_fresh: bool = False
    say: str = ""
    told: tuple[str, ...] = ()
    told_request: int = 0
    is_told: bool = False
    review: str = ""
    reviewed_commit: CommitId | None = None
    is_rework: bool = False
    slot: int = 0
    chosen_agent: str | None = None
    is_held: bool = False
    verified_by: str = ""
    waivers: tuple[Waiver, ...] = ()
    conflict_state: ConflictState = ""
    conflict_worktree: Worktree | None = None
    removing: Removal | None = None
    removal: Removal | None = None
    discard: CommitId | None = None
    used: Used = _UNUSED


@value_class
class Resolution:
    """A person's merge of two commits."""

    ours: CommitId
    theirs: CommitId
    commit: CommitId


@value_class
class Good:
    """What the last integration that passed was: what a later one that is given up goes back to."""

    heads: tuple[Head, ...]
    commit: CommitId
    tree: str
    onto: CommitId | None = None
    onto_name: str = ""
    checks: tuple[CheckOutcome, ...] = ()


@value_class
class Integration:
    """`onto`: what the merge begins with, None: the graph's base. `ours` and `theirs` do not merge, in `worktree`."""

    state: IntegrationState = "none"
    heads: tuple[Head, ...] = ()
    commit: CommitId | None = None
    tree: str | None = None
    worktree: Worktree | None = None
    pair: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    applied: tuple[Head, ...] = ()
    checks: tuple[CheckOutcome, ...] = ()
    failure: Failure | None = None
    command_session: str | None = None
    command_marker: str | None = None
    baseline: tuple[str, ...] = ()
    removing: Removal | None = None
    removal: Removal | None = None
    discard: CommitId | None = None
    onto: CommitId | None = None
    onto_name: str = ""
    ours: CommitId = ""
    theirs: CommitId = ""
    is_aborting: bool = False
    good: Good | None = None


@value_class
class Review:
    """The last review of the graph. It counts for `commit` alone; `about` and `feedback` are of requested changes."""

    state: ReviewState = "none"
    commit: CommitId | None = None
    about: tuple[SubtaskId, ...] = ()
    feedback: str = ""
    who: str = ""
    since: float | None = None


@value_class
class Approval:
    """A review approved this very commit of the subtask."""

    subtask: SubtaskId
    commit: CommitId
    who: str = ""
    since: float | None = None


@value_class
class Delivered:
    """What a branch of the user's was given last, as `BranchDelivered` says it."""

    branch: str
    commit: CommitId
    source: CommitId
    base: CommitId
    is_squashed: bool = False
    who: str = ""
    at: float | None = None


@value_class
class GraphSummary:
    """Graph-level state. `shared_changes` is what somebody did to the shared git state since `shared_blob`.

    `is_forgotten`: it is over, and no verb changes it any more. `resolutions`: of the same two commits only the last
    one; `deliveries`: to the same branch only the last one; `approvals`: of the same subtask only the last one.
    """

    base: CommitId | None = None
    base_branch: str = ""
    was_started: bool = False
    driver_pid: int | None = None
    driven_since: float | None = None
    ended_reason: str | None = None
    shared_blob: str | None = None
    shared_changes: tuple[str, ...] = ()
    shared_fingerprint: str | None = None
    shared_since: float | None = None
    integration: Integration = field(default_factory=Integration)
    resolutions: tuple[Resolution, ...] = ()
    review: Review = field(default_factory=Review)
    is_forgotten: bool = False
    deliveries: tuple[Delivered, ...] = ()
    approvals: tuple[Approval, ...] = ()


def run_to_row(run: TaskRun) -> str:
    return json.dumps(to_plain(run), separators=(",", ":"))


def run_from_row(row: str) -> TaskRun:
    return from_plain(TaskRun, json.loads(row))


def summary_to_row(summary: GraphSummary) -> str:
    return json.dumps(to_plain(summary), separators=(",", ":"))


def summary_from_row(row: str) -> GraphSummary:
    return from_plain(GraphSummary, json.loads(row)) if row else GraphSummary()


def still_asked(run: TaskRun) -> PhaseChanged:
    """The subtask waits for a person again, for the answer that it waited for before."""
    return PhaseChanged(
        run.id, "awaiting-input", run.reason or "", kind=run.question, request=run.request, choices=run.choices
    )
