"""Makes or moves forward one branch of the user's, which the user named: the one place where a ref of theirs moves.

The branch is new, or contained in what is delivered and checked out nowhere; it moves by compare-and-swap. The same
request again finds the branch where it left it: a squashed commit depends on nothing but the request and its parent.
"""

import os
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees import ownership, reffiles
from coordinate_agents.worktrees.base import contains
from coordinate_agents.worktrees.crashpoints import crash_point
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.merge import write_commit
from coordinate_agents.worktrees.model import CommitId, Delivered, DeliveryRequest, RepositoryFacts
from coordinate_agents.worktrees.refs import RefChange, is_runtime_ref, move_user_branch
from coordinate_agents.worktrees.resolutions import parents_of
from coordinate_agents.worktrees.reuse import checked_out_in

_HEADS: Final = "refs/heads/"
# Files in which an operation in progress names the branch that it will move when it ends. Source: git's wt-status.c.
_IN_PROGRESS: Final = ("rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs", "BISECT_START")
_MAX_LISTED_BYTES: Final = 4 << 20


def deliver(judge: Judge, request: DeliveryRequest) -> Delivered:
    """Let the branch hold what is delivered; `previous` is where it stood, None when it is new.

    Raises: INVALID_USAGE for a name that is none, WORKTREE_CONFLICT when the branch cannot be made or moved; nothing
    was changed then.
    """
    name = _full_name(judge, request.branch)
    tip = _tip(judge.facts, name, request.branch)
    commit, parent = _wanted(judge, request, tip)
    if tip == commit:
        return Delivered(commit, tip, parent, is_moved=False)
    _require_free(judge.facts, name, request.branch)
    crash_point("deliver.decided")
    refused = move_user_branch(judge, RefChange(name, commit, tip or ""))
    if refused is not None:
        raise _conflict(request.branch, f"it could not be set: {refused}")
    crash_point("deliver.moved")
    return Delivered(commit, tip, parent, is_moved=True)


def tip_of_branch(judge: Judge, branch: str) -> CommitId | None:
    """Where a local branch stands; None when there is none."""
    return reffiles.read_ref(Path(judge.facts.common_dir), f"{_HEADS}{branch}")


def subjects(judge: Judge, base: CommitId, head: CommitId, *, limit: int) -> tuple[tuple[CommitId, str], ...]:
    """Commits that head has and base has not, without merges, oldest first: id and subject. At most `limit`."""
    found = judge.git(
        "log", "--no-merges", "--reverse", "--topo-order", "-z", "--format=%H %s", head, f"^{base}",
        max_bytes=_MAX_LISTED_BYTES,
    ).fields()  # fmt: skip
    return tuple((oid, subject) for oid, _, subject in (line.partition(" ") for line in found[:limit]))


def remotes(judge: Judge) -> tuple[str, ...]:
    """Names of the remotes, as the repository's own configuration has them."""
    said = judge.user_git("config", "--local", "--name-only", "-z", "--get-regexp", r"^remote\..*\.url$", ok=(0, 1))
    return tuple(dict.fromkeys(key.removeprefix("remote.").removesuffix(".url") for key in said.fields() if key))


def _full_name(judge: Judge, branch: str) -> str:
    name = f"{_HEADS}{branch}"
    is_name = not branch.startswith(("-", "refs/")) and branch not in ("", "HEAD", "@")
    if not is_name or judge.git("check-ref-format", name, ok=(0, 1)).code != 0:
        raise WorktreeError(
            "INVALID_USAGE",
            f"{branch!r} is no name of a branch.",
            kept="everything as it is; nothing was delivered",
            next="git help check-ref-format",
        )
    if is_runtime_ref(name) or is_runtime_ref(f"{name}/x"):
        raise WorktreeError(
            "INVALID_USAGE",
            f"Branches below {branch.partition('/')[0]}/ are the Runtime's own; name one of yours.",
            kept="everything as it is; nothing was delivered",
        )
    return name


def _tip(facts: RepositoryFacts, name: str, branch: str) -> CommitId | None:
    common = Path(facts.common_dir)
    tip = reffiles.read_direct(common, name)
    path = common / name
    if tip is None and os.path.lexists(path) and not path.is_dir():
        raise _conflict(branch, "it is a symbolic or broken ref", next=f"git symbolic-ref {name}")
    return tip


def _wanted(judge: Judge, request: DeliveryRequest, tip: CommitId | None) -> tuple[CommitId, CommitId | None]:
    """What the branch shall hold, and the parent of a squashed commit. Raises: WORKTREE_CONFLICT, not forward."""
    if request.squash is None:
        if tip is not None and contains(judge, request.commit, [tip]):
            raise _not_forward(judge, request, tip)
        return request.commit, None
    if tip is None:
        return _squashed(judge, request, request.base), request.base
    # The branch may hold exactly this already, from a call that was killed before it was recorded.
    before = parents_of(judge, tip)
    if len(before) == 1 and not contains(judge, request.commit, before) and judge.tree_of(tip) == _tree(judge, request):
        made = _squashed(judge, request, before[0])
        if made == tip:
            return tip, before[0]
    if tip != request.earlier and contains(judge, request.commit, [tip]):
        raise _not_forward(judge, request, tip)
    if judge.tree_of(tip) == _tree(judge, request):
        return tip, None
    return _squashed(judge, request, tip), tip


def _tree(judge: Judge, request: DeliveryRequest) -> str:
    return judge.tree_of(request.commit)


def _squashed(judge: Judge, request: DeliveryRequest, parent: CommitId) -> CommitId:
    """One commit with everything on the parent, in the user's name and at the time of what was integrated.

    Nothing pins it before the branch does: killed in between, the same call makes the same commit again.
    """
    squash, known = request.squash, judge.commits.read(request.commit)
    assert squash is not None
    when = known.committed_at if known is not None else 0
    tree, author = _tree(judge, request), (squash.name, squash.email)
    return write_commit(judge, tree, (parent,), date=when, message=squash.message, author=author)


def _require_free(facts: RepositoryFacts, name: str, branch: str) -> None:
    holder = _holder(facts, name)
    if holder is not None:
        raise _conflict(branch, f"it is checked out in {holder}, whose files would not follow")


def _holder(facts: RepositoryFacts, name: str) -> str | None:
    """The checkout, the main one or a linked one, that is on the branch or will be when what it does has ended."""
    git_dir = checked_out_in(facts, name, "")
    if git_dir is not None:
        return _checkout(facts, Path(git_dir))
    short = name.removeprefix(_HEADS)
    for admin in (Path(facts.common_dir), *ownership.admin_dirs(facts)):
        said = [line for file in _IN_PROGRESS for line in (reffiles.read_small(admin / file) or "").splitlines()]
        if name in said or short in said:
            return _checkout(facts, admin)
    return None


def _checkout(facts: RepositoryFacts, git_dir: Path) -> str:
    if str(git_dir) == facts.common_dir:
        return str(git_dir.parent if git_dir.name == ".git" else git_dir)
    return (reffiles.read_small(git_dir / "gitdir") or str(git_dir)).strip().removesuffix("/.git")


def _not_forward(judge: Judge, request: DeliveryRequest, tip: CommitId) -> WorktreeError:
    more = len(subjects(judge, request.commit, tip, limit=1000))
    has = f"it has {more} commit{'s' if more != 1 else ''} of its own" if more else "it has a history of its own"
    return _conflict(
        request.branch,
        f"it stands at {tip[:12]}, which {request.commit[:12]} does not contain ({has}), so it would not move forward",
        next=f"git log --oneline {request.commit[:12]}..{request.branch}",
    )


def _conflict(branch: str, why: str, next: str | None = None) -> WorktreeError:
    return WorktreeError(
        "WORKTREE_CONFLICT",
        f"Branch {branch} was not delivered to: {why}.",
        kept="every branch and checkout as it is",
        next=next,
    )
