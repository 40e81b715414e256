"""Takes the end of a merge that a person finished in an owned worktree, or gives the merge up.

Decides from git alone whether what stands there answers the conflict: a commit of exactly the two sides, or an index
without a path in conflict, nothing beside it in the files, no conflict marker left. Loses nothing: what a refused or
abandoned end has stays, or is pinned.
"""

import os
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees import dirty, ownership
from coordinate_agents.worktrees.commits import move_branch
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.files import read_regular
from coordinate_agents.worktrees.git import inherited_environment, run
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.merge import write_commit
from coordinate_agents.worktrees.mid_merge import Scene, forget_merge, merge_head
from coordinate_agents.worktrees.model import CommitId, FinishedMerge, MergeEnding, RepositoryFacts, Worktree
from coordinate_agents.worktrees.position import Position, locate
from coordinate_agents.worktrees.resolutions import is_merge_of
from coordinate_agents.worktrees.reuse import require_intact

# An identity may be given for one shell.
_IDENTITY: Final = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "EMAIL")
_MAX_NAMED: Final = 5
_MAX_LISTED: Final = 50
_MAX_MESSAGE_BYTES: Final = 64 << 10
_INDEX_TIMEOUT_S: Final = 120.0
# `=======` alone may underline a heading.
_MARKERS: Final = ("^<<<<<<< ", "^>>>>>>> ", "^||||||| ")


def identity_of_user(facts: RepositoryFacts) -> tuple[str, str] | None:
    """Name and address that the user's own git would commit with; None when it would refuse."""
    told = {name: os.environ[name] for name in _IDENTITY if name in os.environ}
    env = inherited_environment() | told | {"GIT_DIR": facts.common_dir}
    said = run(["var", "GIT_AUTHOR_IDENT"], env=env, ok=range(256), timeout_s=20)
    name, _, rest = said.text.partition(" <")
    email = rest.partition(">")[0]
    return (name, email) if said.code == 0 and name and email else None


def finished_merge(
    judge: Judge, worktree: Worktree, scene: Scene, ending: MergeEnding, *, frozen: str
) -> FinishedMerge:
    """The commit that ends this merge; made from the index when the person did not commit. Moves no ref.

    Raises: WORKTREE_CONFLICT, DIRTY_WORKTREE with what is missing; nothing in the worktree was changed then.
    """
    require_intact(judge.facts, worktree)
    position = locate(judge.facts, worktree)
    _require_at_rest(worktree, position)
    assert position.head is not None
    if position.head == scene.ours:
        commit, made_by = _commit_index(judge, worktree, scene, ending), "runtime"
    else:
        _require_merge_of(judge, worktree, scene, position.head)
        commit, made_by = position.head, "person"
    seen = dirty.look(judge, worktree, commit, frozen=frozen)
    if seen.tracked:
        what, how = ("added", "git add") if made_by == "runtime" else ("committed", "git commit --amend -a")
        paths = _named([entry.path for entry in seen.tracked])
        raise _unfinished(worktree, f"what is in {paths} was not {what} ({how} would, git restore takes it back)")
    if scene.paths and not ending.keeps_markers:
        _require_no_markers(judge, worktree, scene, commit)
    return FinishedMerge(
        commit,
        "person" if made_by == "person" else "runtime",
        _others(judge, scene, commit)[:_MAX_LISTED],
        seen.untracked[:_MAX_LISTED],
    )


def conclude(judge: Judge, worktree: Worktree, ours: CommitId, commit: CommitId) -> None:
    """Leave the worktree clean on its branch at the commit that ended the merge. Repeated: no change.

    The branch first: a crash in between leaves a merge commit with a MERGE_HEAD, which the next call takes away.
    """
    if locate(judge.facts, worktree).head == ours:
        refused = move_branch(judge, worktree, old=ours, new=commit)
        if refused is not None:
            raise WorktreeError("WORKTREE_CONFLICT", f"The merge could not be finished: {refused}.", kept="the files")
    forget_merge(judge.facts, worktree)


def _require_at_rest(worktree: Worktree, position: Position) -> None:
    if position.lock is not None:
        raise _unfinished(worktree, f"{position.lock} is in the way, so a git command is at work or was killed")
    if position.state != "on-branch" or position.head is None:
        where = f"on {position.branch}" if position.branch else position.state
        raise _unfinished(worktree, f"its HEAD is {where} instead of on {worktree.branch}", f"switch {worktree.branch}")
    if position.operation not in (None, "merge"):
        raise _unfinished(worktree, f"a {position.operation} is in progress there")


def _commit_index(judge: Judge, worktree: Worktree, scene: Scene, ending: MergeEnding) -> CommitId:
    """A merge commit of the worktree's own index: what the person added is what they decided."""
    if not (ending.name and ending.email):
        why = "git has no name and address to commit it with (user.name, user.email)"
        raise _unfinished(worktree, why, "config user.email")
    if merge_head(judge.facts, worktree) != scene.theirs:
        raise _unfinished(worktree, "the merge was taken back or replaced by another one; open it again")
    admin = ownership.admin_dir(judge.facts, worktree)
    listed = judge.user_git("ls-files", "-u", "-z", git_dir=admin, timeout_s=_INDEX_TIMEOUT_S).fields()
    open_paths = sorted({entry.partition("\t")[2] for entry in listed})
    if open_paths:
        raise _unfinished(worktree, f"{_named(open_paths)} {'is' if len(open_paths) == 1 else 'are'} not resolved yet")
    tree = judge.user_git("write-tree", git_dir=admin, timeout_s=_INDEX_TIMEOUT_S).text
    return write_commit(
        judge,
        tree,
        (scene.ours, scene.theirs),
        date=int(time.time()),
        message=_message(Path(admin)),
        author=(ending.name, ending.email),
    )


def _message(admin: Path) -> str:
    """The prepared message, as the person left it, without the lines that git would leave out."""
    text = (read_regular(admin / "MERGE_MSG", _MAX_MESSAGE_BYTES) or b"").decode("utf-8", "surrogateescape")
    lines = [line.rstrip() for line in text.replace("\0", "").splitlines() if not line.startswith("#")]
    return ("\n".join(lines).strip() or "Merge by hand") + "\n"


def _require_merge_of(judge: Judge, worktree: Worktree, scene: Scene, head: CommitId) -> None:
    if is_merge_of(judge, head, scene.ours, scene.theirs):
        return
    sides = f"{scene.ours[:12]} and {scene.theirs[:12]}"
    raise _unfinished(worktree, f"its commit {head[:12]} is not the one merge of {sides} that is asked for")


def _require_no_markers(judge: Judge, worktree: Worktree, scene: Scene, commit: CommitId) -> None:
    patterns = [word for marker in _MARKERS for word in ("-e", marker)]
    # Exit code 1: found nothing. Names of paths that the commit does not have are no error.
    found = judge.git(
        "--literal-pathspecs", "grep", "-l", "-z", "-I", *patterns, commit, "--", *scene.paths, ok=(0, 1)
    ).fields()
    marked = sorted(entry.partition(":")[2] for entry in found if entry)
    if marked:
        raise _unfinished(worktree, f"{_named(marked)} still {'has' if len(marked) == 1 else 'have'} conflict markers")


def _others(judge: Judge, scene: Scene, commit: CommitId) -> tuple[str, ...]:
    names = judge.git("diff-tree", "-r", "-z", "--no-renames", "--name-only", scene.tree, judge.tree_of(commit))
    return tuple(sorted(path for path in set(names.fields()) - set(scene.paths) if path))


def _unfinished(worktree: Worktree, why: str, command: str = "status") -> WorktreeError:
    return WorktreeError(
        "DIRTY_WORKTREE",
        f"The merge in {worktree.path} is not finished: {why}.",
        kept="everything in it as it is; nothing was recorded",
        next=f"git -C {shlex.quote(worktree.path)} {command}",
    )


def _named(paths: Sequence[str]) -> str:
    shown = ", ".join(repr(path) if "\n" in path else path for path in paths[:_MAX_NAMED])
    return shown if len(paths) <= _MAX_NAMED else f"{shown} and {len(paths) - _MAX_NAMED} more"
