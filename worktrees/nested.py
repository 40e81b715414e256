"""Repositories inside a worktree: submodules, scaffolded repositories, clones in ignored folders.

Observes whether removing the worktree could take commits or changes with it.

- A gitlink without an entry in `.gitmodules` is a pointer to nothing (`git add -A` over a scaffolder's repository).
- A submodule is judged by `submodules`; one that is not populated holds nothing.
- A repository in a folder that the base ignores (a build tool's download) is left alone while everything it has is
  what it fetched. Any other repository is reported.
"""

from collections.abc import Mapping

from coordinate_agents.worktrees.dirty import ignored_entries, is_below
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import CommitId, DirtyPath, Worktree
from coordinate_agents.worktrees.reffiles import packed_refs
from coordinate_agents.worktrees.submodules import (
    Level,
    beyond,
    commits_of,
    is_saved,
    submodule_level,
    worktree_level,
)
from coordinate_agents.worktrees.survey import Found, Survey, survey


def find(top: str) -> tuple[Found, ...]:
    """Every folder below `top` that holds a `.git` entry, sorted by path; links are not followed."""
    return survey(top).repositories


def inspect(
    judge: Judge, worktree: Worktree, commit: CommitId, *, index: str, frozen: str, around: Survey
) -> tuple[DirtyPath, ...]:
    """What is wrong with the nested repositories that a survey found and with the gitlinks of the commit.

    A folder that cannot be read counts as untracked, unless the base ignores it. `index` is a private index of the
    commit. Order: path.
    """
    top = worktree_level(judge, commit, index)
    wrong = {path: DirtyPath(path, "nested") for path in top.links if not top.declares(path)}
    asked = around.repositories or around.unreadable
    ignored = ignored_entries(judge, worktree, index, frozen=frozen) if asked else ()
    wrong |= {path: DirtyPath(path, "untracked") for path in around.unreadable if not is_below(path, ignored)}
    levels = {"": top}
    for nested in around.repositories:  # a folder comes before what is in it
        if is_below(nested.path, [f"{path}/" for path in wrong]):
            continue
        level, relative = _level_of(levels, nested.path)
        if level.declares(relative):
            if not is_saved(judge, worktree, level, nested, frozen=frozen):
                wrong[nested.path] = DirtyPath(nested.path, "submodule")
            elif any(other.path.startswith(f"{nested.path}/") for other in around.repositories):
                levels[nested.path] = submodule_level(judge, level, nested, relative)
        elif not (is_below(nested.path, ignored) and _is_as_fetched(judge, nested)):
            wrong[nested.path] = DirtyPath(nested.path, "nested")
    return tuple(wrong[path] for path in sorted(wrong))


def _level_of(levels: Mapping[str, Level], path: str) -> tuple[Level, str]:
    """The innermost level that the path is below, and the path as that level knows it."""
    fitting = ((level, relative) for level in levels.values() if (relative := level.relative(path)) is not None)
    return max(fitting, key=lambda pair: len(pair[0].path))


def _is_as_fetched(judge: Judge, nested: Found) -> bool:
    """Whether a remote's branch, or a tag that came with the clone, contains every commit that it made or checked out.

    A clone writes its tags to packed-refs, a tag made there is a file of its own: such a one proves nothing.
    """
    if nested.git_dir is None:
        return False
    own, fetched = commits_of(nested.git_dir)
    if not fetched:
        return False
    fetched |= {oid for name, oid in packed_refs(nested.git_dir).items() if name.startswith("refs/tags/")}
    return own <= fetched or not beyond(judge, nested.git_dir, own, fetched)
