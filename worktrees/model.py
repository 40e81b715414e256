"""Values that cross the border of this package: repositories, owned worktrees, bases, merges and what git showed.

Pure. Commit ids are full lower-case hexadecimal hashes (40 or 64 digits). Paths inside a repository are `/` separated
text; bytes that are not UTF-8 are carried by surrogateescape. A `slug` is one subtask as one ref component and one
directory name; this package knows nothing else of subtasks.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal

from coordinate_agents.worktrees.values import value_class

BRANCH_PREFIX: Final = "refs/heads/coordinate-agents"
PIN_PREFIX: Final = "refs/coordinate-agents"
INTEGRATION_SLUG: Final = "integration"
# Of the worktrees in which a person merges what the base of a subtask lacks; no slug begins with "+".
RESOLVE_PREFIX: Final = "+resolve-"

PinKind = Literal["base", "verified", "kept", "discard"]
CommitId = str


def branch_name(graph: str, slug: str) -> str:
    """Short name of a Runtime branch: ``coordinate-agents/<graph>/<slug>``."""
    return f"coordinate-agents/{graph}/{slug}"


def branch_ref(graph: str, slug: str) -> str:
    return f"{BRANCH_PREFIX}/{graph}/{slug}"


def pin_ref(graph: str, slug: str, kind: PinKind, number: int) -> str:
    return f"{PIN_PREFIX}/{graph}/{slug}/{kind}-{number}"


@value_class
class RepositoryFacts:
    """One user repository. `root` is the checkout's top level (or the bare git dir), links resolved.

    `state_dir` is ``<common dir>/coordinate-agents`` or the configured local folder. `key` is short, stable for the
    common dir, and safe as a directory name. `git_version` is like "2.39.5".
    """

    root: str
    git_dir: str
    common_dir: str
    state_dir: str
    object_format: Literal["sha1", "sha256"]
    key: str
    git_version: str
    is_bare: bool = False
    is_shallow: bool = False
    is_partial: bool = False


@value_class
class Worktree:
    """One worktree that the Runtime made and owns. The database keeps it; a look compares it with the disk.

    `admin_name` is its folder under ``<common dir>/worktrees``; `nonce` stands in the lock reason of that folder.
    `device` and `inode` are those of `path` when it was made. `cone`: its folders, where the user's setup made it a
    sparse one (worktrees/cone.py); empty: every file of a commit is in it.
    """

    path: str
    admin_name: str
    branch: str
    base: CommitId
    nonce: str
    device: int
    inode: int
    cone: tuple[str, ...] = ()


@value_class
class Head:
    """A verified commit and who delivered it: `name` is the subtask id, used in merge messages and reports."""

    name: str
    commit: CommitId


@value_class
class Base:
    """The commit an attempt starts from. `reduced` are the heads that were needed; several means it was merged."""

    commit: CommitId
    reduced: tuple[Head, ...] = ()


@value_class
class MergeConflict:
    """Two heads that git cannot merge. `ours` lists what was already applied when `theirs` failed.

    `pair` names the head of `applied` that the conflict is with (found by merging it alone with `theirs`; the last
    applied one when only the combination conflicts) and the head that failed. `key` is a hash of all inputs. A merge
    commit of `ours` (what the applied heads gave) and `theirs` resolves it, once it is recorded.
    """

    pair: tuple[str, str]
    paths: tuple[str, ...]
    applied: tuple[Head, ...]
    key: str
    ours: CommitId = ""
    theirs: CommitId = ""


@value_class
class FinishedMerge:
    """The merge commit that answers the conflict. `others`: paths that it changes beside those in conflict.

    `made_by`: the person committed it, or the Runtime did from the index, in the person's name. `untracked` files are
    no part of it and stay where they are.
    """

    commit: CommitId
    made_by: Literal["person", "runtime"]
    others: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


@value_class
class MergeEnding:
    """What is asked of an end: `name` and `email` of the person; whether lines that look like markers may stay."""

    name: str
    email: str
    keeps_markers: bool = False


@value_class
class Merged:
    """An integration: `commit` contains every head. `merged` are those that needed a merge or a fast-forward."""

    commit: CommitId
    tree: str
    merged: tuple[Head, ...]
    already: tuple[Head, ...] = ()


# What of the git state can make somebody else's git run code, or lie. One entry per fact, e.g.
# "config:core.fsmonitor", "hook:post-commit", "info/attributes", "objects/info/alternates", "info/grafts", "shallow",
# "refs/replace/<oid>", each with a digest of its value.
SharedState = Mapping[str, str]


@value_class
class RefSnapshot:
    """Every ref (full name to object id, without Runtime refs) and stash entry at one moment.

    `head`: where HEAD of the user's checkout is, a full ref name or the hash of a detached one; empty: not known.
    """

    refs: Mapping[str, CommitId] = field(default_factory=dict)
    stashes: tuple[CommitId, ...] = ()
    head: str = ""


@value_class
class DirtyPath:
    """A path that differs from head, by the judge's own index. `kind` says how; `nested` is a repository inside."""

    path: str
    kind: Literal["modified", "deleted", "added", "type", "untracked", "conflict", "nested", "submodule"]


@value_class
class ChangedPath:
    """One path that differs between base and head; `old` is the other side of a rename."""

    path: str
    kind: Literal["added", "modified", "deleted", "renamed", "copied", "type"]
    old: str | None = None


HeadState = Literal["on-branch", "detached", "other-branch", "damaged", "missing"]


@value_class
class Examination:
    """What the judge saw about one worktree, all about the one `head` that was read first. Decides nothing.

    head_state / head_branch: where HEAD is; `damaged` when the link files do not point at each other, `missing` when
    the folder is gone. Later fields are only meaningful when head is not None.
    operation: "merge", "rebase", "cherry-pick", "revert", "bisect" or None.
    contained_in: names of refs of the start snapshot, sibling branches or pins that already contain head.
    moved_user_refs: refs that existed at the attempt's start, moved since, and now contain a commit of base..head.
    moved_root: where HEAD of the user's checkout was at the attempt's start and is now, as (full ref name or empty,
    commit or empty); None when that is the same, or not known.
    dirty: against head, at most `dirty_limit`, with `dirty_count` the whole number.
    ignored_by_agent: paths that are ignored only by rules that the base did not have; they count as untracked and are
    also in `dirty`.
    stray_commits: commits of this attempt that are not in head (other branch, detached, reflog), newest first.
    lock: path of an index.lock that makes commits impossible, or None; lock_age_s: how old it is.
    """

    head: CommitId | None
    tree: str | None = None
    branch_tip: CommitId | None = None
    head_state: HeadState = "on-branch"
    head_branch: str | None = None
    operation: str | None = None
    base_is_ancestor: bool = False
    tree_differs: bool = False
    commit_count: int = 0
    subject: str = ""
    contained_in: tuple[str, ...] = ()
    moved_user_refs: tuple[str, ...] = ()
    moved_root: tuple[tuple[str, str], tuple[str, str]] | None = None
    dirty: tuple[DirtyPath, ...] = ()
    dirty_count: int = 0
    ignored_by_agent: tuple[str, ...] = ()
    changed: tuple[ChangedPath, ...] = ()
    stray_commits: tuple[CommitId, ...] = ()
    outside_links: tuple[str, ...] = ()
    lock: str | None = None
    lock_age_s: float | None = None


@value_class
class ExamineRequest:
    """What `examine` compares with. `first_refs` is the snapshot of the subtask's first start, `attempt_refs` that of
    this attempt's start. `baseline` are untracked paths that setup left (blamed on nobody). `frozen` is what `freeze`
    returned at graph-create. `siblings` are slugs whose branches and pins must not already contain head; None: every
    other one of the graph but the integration. A subtask that was verified before leaves out those that built on it.
    """

    worktree: Worktree
    graph: str
    slug: str
    base: CommitId
    frozen: str
    first_refs: RefSnapshot = RefSnapshot()
    attempt_refs: RefSnapshot = RefSnapshot()
    baseline: tuple[str, ...] = ()
    dirty_limit: int = 50
    siblings: tuple[str, ...] | None = None


@value_class
class CommitRequest:
    """Commit what a turn left, under the Runtime's author. `trailers` end the message in order."""

    worktree: Worktree
    frozen: str
    subject: str
    body: str = ""
    trailers: tuple[tuple[str, str], ...] = ()
    baseline: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    max_file_bytes: int = 50 << 20


@value_class
class CommitOutcome:
    """`commit` is None when there was nothing to commit, or when no commit may be made: `refused` says why.

    `left_out` are the paths not committed, with the reason.
    """

    commit: CommitId | None
    left_out: tuple[tuple[str, str], ...] = ()
    refused: str | None = None


# Why a worktree stays. Each has its own sentence and its own next step (`refusals`).
RefusalReason = Literal[
    "dirty", "untracked", "ignored-by-agent", "staged", "operation", "detached", "other-branch", "nested", "unreadable",
    "copied", "changed", "too-much", "in-use", "mounted", "foreign", "moved", "linked", "locked", "reappeared",
    "undeletable", "busy", "checked-out", "only-here",
]  # fmt: skip


@value_class
class HeldFile:
    """A file, or a repository (its path ends in `/`), that goes with its worktree, and its size on the disk."""

    path: str
    bytes: int


@value_class
class RemovalRequest:
    """Which worktree shall go, and what may go with it.

    `baseline` are untracked paths that setup and checks left. `copies` were copied from the user's checkout; one that
    differs from it now stays. `ignored`: exactly the files that may go beside those of the head (what `contents`
    listed); one that came since keeps the worktree. None: every one that the base ignores. `discarded`: a commit of
    `set_aside`; everything that it holds may go, and nothing else. `lost_tip`: its branch is gone and would be made
    again here; only `contents` looks at the worktree as if it were.
    """

    worktree: Worktree
    graph: str
    slug: str
    frozen: str
    baseline: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    ignored: tuple[str, ...] | None = None
    discarded: CommitId | None = None
    lost_tip: CommitId | None = None


@value_class
class Refused:
    """The worktree stays. `message` is a sentence without its subject, `next` a command to paste; empty: one of the
    caller's verbs, which sets the contents aside, or tries again.

    `paths` are at most 50 of the `count` paths concerned. `stands_at`: where the folder is when it could not go back
    to its place.
    """

    reason: RefusalReason
    message: str
    next: str
    paths: tuple[str, ...] = ()
    count: int = 0
    stands_at: str | None = None


@value_class
class Contents:
    """What a worktree holds that would go with it. `refusal`: why it would stay; None: it could go.

    `extra`: the files that the head does not have and that would go, in path order, with `bytes` together; `unsaved`:
    those that keep it, changed or untracked. `fingerprint` names everything
    that is there exactly: head, index, and every file that differs from head or is not in it. `is_missing`: there is no
    folder any more.
    """

    head: CommitId | None = None
    refusal: Refused | None = None
    extra: tuple[HeldFile, ...] = ()
    bytes: int = 0
    unsaved: tuple[HeldFile, ...] = ()
    fingerprint: str = ""
    is_missing: bool = False
    users: tuple[str, ...] = ()


@value_class
class Removed:
    """The worktree is gone. `tip`: where its branch is (None: there is none); `head`: what it stood on.

    `kept`: commits that were pinned because only this worktree held them. `was_missing`: its folder was gone before.
    """

    head: CommitId | None
    tip: CommitId | None
    kept: tuple[CommitId, ...] = ()
    bytes: int = 0
    was_missing: bool = False


@value_class
class BringBackRequest:
    """A removed worktree that shall be there again: `tip` is where its branch was, `discarded` what was set aside.

    `nonce` was recorded before, as for `create`.
    """

    graph: str
    slug: str
    base: CommitId
    tip: CommitId
    nonce: str
    discarded: CommitId | None = None


@value_class
class BroughtBack:
    """The worktree again; `lost` says in words what is not as it was."""

    worktree: Worktree
    lost: tuple[str, ...] = ()


@value_class
class BranchGone:
    """A branch that was deleted, where it was, and the ref that holds its commits."""

    branch: str
    tip: CommitId
    held_by: str


@value_class
class PinsDropped:
    """How many pins there were, and how many commits no other ref holds."""

    pins: int
    only_here: int


@value_class
class Squash:
    """One commit in the user's name with this message, instead of the history."""

    name: str
    email: str
    message: str


@value_class
class DeliveryRequest:
    """Let a branch of the user's hold the commit. `earlier`: what was delivered squashed to it before, if it was.

    `base` is the parent of a squashed commit on a new branch.
    """

    branch: str
    commit: CommitId
    base: CommitId
    squash: Squash | None = None
    earlier: CommitId | None = None


@value_class
class Delivered:
    """What the branch holds now; `previous` is where it stood, `parent` that of a squashed commit."""

    commit: CommitId
    previous: CommitId | None
    parent: CommitId | None
    is_moved: bool
