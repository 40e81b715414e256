"""What graph-cleanup makes of one worktree: whether it may go, in which words it stays, and its line of the answer.

Pure. What a worktree holds was looked at by `worktrees`; that it can be lost without losing anything is decided there
too, and again in the act. Added here: what the configuration's `keep` protects, and states that are not for removal.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.scope import matches, parse_pattern
from coordinate_agents.graph.states import IntegrationState, TaskState
from coordinate_agents.worktrees.model import INTEGRATION_SLUG, CommitId, Contents, HeldFile, Refused, Worktree
from coordinate_agents.worktrees.values import value_class

PROGRAM: Final = "coordinate-agents"
MAX_SHOWN_FILES: Final = 50
# What may only go when it was set aside before.
_SET_ASIDE: Final = frozenset(
    {"dirty", "untracked", "ignored-by-agent", "staged", "copied", "kept", "detached", "other-branch"}
)

Outcome = Literal["removed", "kept", "refused", "absent"]


@value_class
class Item:
    """One line of the answer. "kept": nobody asked for it to go, or it waits for a word; "refused": it cannot go.

    `files` are what goes or went beside the commit, `count` of them with `bytes` together; `pinned` are commits that
    only it held; `discard` holds what was set aside, `token` names it before. `branch_gone`: its branch was deleted.
    """

    subtask: str
    outcome: Outcome
    reason: str = ""
    message: str = ""
    next: str = ""
    worktree: str | None = None
    branch: str | None = None
    bytes: int = 0
    files: tuple[HeldFile, ...] = ()
    count: int = 0
    pinned: tuple[CommitId, ...] = ()
    discard: CommitId | None = None
    token: str | None = None
    branch_gone: bool = False

    @property
    def is_refused(self) -> bool:
        return self.outcome == "refused"


def item_json(item: Item) -> dict[str, Any]:
    """The item as contract section 13 names it; fields that say nothing are null."""
    return {
        "subtask": item.subtask,
        "outcome": item.outcome,
        "reason": item.reason or None,
        "code": "CLEANUP_REFUSED" if item.is_refused else None,
        "message": item.message or None,
        "next": item.next or None,
        "worktree": item.worktree,
        "branch": item.branch,
        "bytes": item.bytes,
        "files": [{"path": file.path, "bytes": file.bytes} for file in item.files[:MAX_SHOWN_FILES]],
        "fileCount": item.count,
        "pinned": list(item.pinned),
        "discard": item.discard,
        "token": item.token,
        "branchDeleted": item.branch_gone,
    }


def unfinished(graph: str, subtask: str, state: TaskState | IntegrationState) -> tuple[str, str] | None:
    """Why a worktree is not asked to go at all, and what would come first; None when its owner ended."""
    match state:
        case "running":
            return "it runs", f"{PROGRAM} graph-stop {graph} {subtask}"
        case "idle":
            return "it waits for its next attempt", f"{PROGRAM} graph-cleanup {graph} --discard {subtask}"
        case "merging" | "checking":
            return "it is being made", f"{PROGRAM} graph-wait {graph}"
        case _:
            return None


def kept_files(contents: Contents, patterns: Sequence[str]) -> Refused | None:
    """The refusal for files that the configuration's `keep` protects; None when there are none."""
    parsed = [parse_pattern(text) for text in patterns]
    found = [file.path for file in contents.extra if any(matches(each, file.path.rstrip("/")) for each in parsed)]
    if not found:
        return None
    shown = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    # The reasons of `worktrees` are a closed list: this one is ours.
    return Refused("copied", f"files that `keep` protects: {shown}", "", tuple(found[:MAX_SHOWN_FILES]), len(found))


def refused_item(graph: str, subtask: SubtaskId, worktree: Worktree, refused: Refused, *, reason: str = "") -> Item:
    """The line of a worktree that cannot go."""
    reason = reason or refused.reason
    following = refused.next
    if not following:
        is_held = reason in _SET_ASIDE
        following = f"{PROGRAM} graph-cleanup {graph} {'--discard ' if is_held else ''}{subtask}"
        if subtask == INTEGRATION_SLUG and not is_held:
            following = f"{PROGRAM} graph-cleanup {graph} --all"
    return Item(
        subtask,
        "refused",
        reason,
        refused.message,
        following,
        refused.stands_at or worktree.path,
        worktree.branch,
        count=refused.count,
        files=tuple(HeldFile(path, 0) for path in refused.paths),
    )


def discard_preview(graph: str, subtask: SubtaskId, worktree: Worktree, contents: Contents) -> Item:
    """The first step of a discard: what is there, and the token that names it."""
    held = (*contents.unsaved, *contents.extra)
    why = contents.refusal.message if contents.refusal is not None else "everything in it is committed"
    return Item(
        subtask,
        "kept",
        "confirm",
        f"it would be set aside as a commit, then removed; {why}",
        f"{PROGRAM} graph-cleanup {graph} --discard {subtask} --confirm {contents.fingerprint}",
        worktree.path,
        worktree.branch,
        bytes=sum(file.bytes for file in held),
        files=held,
        count=len(held),
        token=contents.fingerprint,
    )
