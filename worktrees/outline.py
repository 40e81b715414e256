"""What a repository looks like to a person: branch, remotes, how many branches and tags, filters and their programs.

For the doctor; nothing is judged by it. Read by GitPython, without a process, where it can (it cannot read sha256),
else by the git program. Slow to import, so never on the way of a run.
"""

import os
import shlex
import shutil
from collections.abc import Iterable
from typing import Final

from coordinate_agents.worktrees.frozen import user_config, user_environment
from coordinate_agents.worktrees.git import run
from coordinate_agents.worktrees.model import RepositoryFacts
from coordinate_agents.worktrees.values import value_class

# GitPython follows these even when it is given a path.
_MISLEADING: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_INDEX_FILE")


@value_class
class Outline:
    """`branch` None: HEAD is detached. Names sorted. `missing_filters`: configured, but the program is not found."""

    branch: str | None
    remotes: tuple[str, ...]
    branches: int
    tags: int
    filters: tuple[str, ...] = ()
    missing_filters: tuple[str, ...] = ()


def outline(facts: RepositoryFacts) -> Outline:
    """Look at the repository now. Raises: WorktreeError."""
    seen = None if facts.object_format == "sha256" else by_library(facts)
    return _with_filters(facts, seen or by_program(facts))


def by_library(facts: RepositoryFacts) -> Outline | None:
    """The same from GitPython; None when it cannot read this repository, or the environment would mislead it."""
    if any(name in os.environ for name in _MISLEADING):
        return None
    # Its import otherwise runs git, and fails where there is none.
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    import git

    try:
        with git.Repo(facts.git_dir) as repo:
            return Outline(
                branch=None if repo.head.is_detached else repo.head.ref.path.removeprefix("refs/heads/"),
                remotes=tuple(sorted(remote.name for remote in repo.remotes)),
                branches=len(repo.heads),
                tags=len(repo.tags),
            )
    except (git.GitError, ValueError, TypeError, OSError):
        return None


def by_program(facts: RepositoryFacts) -> Outline:
    """The same from the git program: three calls."""
    env = user_environment() | {"GIT_DIR": facts.git_dir, "GIT_COMMON_DIR": facts.common_dir}
    head = run(["symbolic-ref", "-q", "HEAD"], env=env, cwd=facts.common_dir, ok=(0, 1))
    listed = run(["for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags"], env=env, cwd=facts.common_dir)
    names = listed.lines()
    keys = (key.split(".") for key, _ in user_config(facts) if key.startswith("remote.") and key.endswith(".url"))
    return Outline(
        branch=head.text.removeprefix("refs/heads/") if head.code == 0 else None,
        remotes=tuple(sorted({".".join(parts[1:-1]) for parts in keys})),
        branches=sum(name.startswith("refs/heads/") for name in names),
        tags=sum(name.startswith("refs/tags/") for name in names),
    )


def _with_filters(facts: RepositoryFacts, seen: Outline) -> Outline:
    programs = {
        key.split(".", 1)[1].rsplit(".", 1)[0]: value
        for key, value in user_config(facts)
        if key.startswith("filter.") and key.endswith((".clean", ".smudge", ".process"))
    }
    missing = [name for name, command in programs.items() if not _is_found(command)]
    return Outline(
        seen.branch, seen.remotes, seen.branches, seen.tags, _names(programs), missing_filters=_names(missing)
    )


def _is_found(command: str) -> bool:
    """Whether the first word of a filter's command is a program; what only a shell understands counts as found."""
    try:
        words = shlex.split(command)
    except ValueError:
        return True
    is_plain = bool(words) and not any(sign in words[0] for sign in "$`(){}|&;<>=")
    return not is_plain or shutil.which(words[0]) is not None


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))
