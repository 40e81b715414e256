"""One repository with a judge, and worktrees in which a fake agent (a shell text) works: for tests of judging.

The worktrees are made with plain git, so that these tests depend on nothing but the functions that they test.
"""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from repos import commit_file, git, make_repo

from coordinate_agents.worktrees import git as runner
from coordinate_agents.worktrees.examine import examine
from coordinate_agents.worktrees.frozen import freeze
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import (
    CommitId,
    Examination,
    ExamineRequest,
    Head,
    RefSnapshot,
    Worktree,
    branch_name,
)
from coordinate_agents.worktrees.ownership import lock_reason
from coordinate_agents.worktrees.refs import snapshot
from coordinate_agents.worktrees.repository import open_repository

GRAPH = "g1"
# A fixed time, so that two runs of a test make the same commits.
DATE = "2024-03-01T12:00:00Z"


class Bench:
    """`repo` is the user's checkout on `main`. Making a worktree settles: settings are frozen and refs noted."""

    def __init__(self, place: Path, *, object_format: str = "sha1", repo: Path | None = None) -> None:
        self.place = place
        self.repo = repo or make_repo(place / "repo", object_format=object_format)
        self._judge: Judge | None = None
        self._frozen: str | None = None
        self._before: RefSnapshot | None = None

    def settle(self) -> None:
        """The moment of graph-create and of an attempt's start: later settings do not count, later refs are new."""
        if self._judge is None:
            self._judge = Judge.open(open_repository(str(self.repo)))
        self._frozen = freeze(self._judge.facts).to_json()
        self._before = snapshot(self._judge)

    @property
    def judge(self) -> Judge:
        if self._judge is None:
            self.settle()
        assert self._judge is not None
        return self._judge

    @property
    def frozen(self) -> str:
        assert self.judge
        assert self._frozen is not None
        return self._frozen

    @property
    def before(self) -> RefSnapshot:
        assert self.judge
        assert self._before is not None
        return self._before

    def close(self) -> None:
        if self._judge is not None:
            self._judge.close()

    def head(self, revision: str = "HEAD") -> CommitId:
        return git(self.repo, "rev-parse", revision)

    def commit(self, name: str, text: str) -> CommitId:
        """A commit on the user's branch."""
        return commit_file(self.repo, name, text)

    def worktree(self, slug: str = "a", base: CommitId | None = None) -> Worktree:
        """A worktree at base on the Runtime's branch, made with plain git; then `settle`."""
        base = base or self.head()
        path = self.place / "trees" / slug
        path.parent.mkdir(exist_ok=True)
        nonce = f"nonce-{slug}"
        args = ["--lock", "--reason", lock_reason(nonce), "-b", branch_name(GRAPH, slug), str(path), base]
        git(self.repo, "worktree", "add", "-q", *args)
        admin = Path((path / ".git").read_text().removeprefix("gitdir: ").strip()).name
        found = path.lstat()
        real = os.path.realpath(path)
        self.settle()
        return Worktree(real, admin, branch_name(GRAPH, slug), base, nonce, found.st_dev, found.st_ino)

    def request(self, worktree: Worktree, slug: str = "a", **changes: object) -> ExamineRequest:
        request = ExamineRequest(
            worktree=worktree,
            graph=GRAPH,
            slug=slug,
            base=worktree.base,
            frozen=self.frozen,
            first_refs=self.before,
            attempt_refs=self.before,
        )
        return replace(request, **changes)  # type: ignore[arg-type]

    def examine(self, worktree: Worktree, slug: str = "a", **changes: object) -> Examination:
        return examine(self.judge, self.request(worktree, slug, **changes))

    def head_of(self, slug: str, base: CommitId, files: dict[str, str]) -> Head:
        """A verified commit of a subtask: one commit on base that writes these files, without a worktree."""
        env = {**os.environ, "GIT_INDEX_FILE": str(self.place / f"index-{slug}")}
        git(self.repo, "read-tree", base, env=env)
        for name, text in files.items():
            blob = git(self.repo, "hash-object", "-w", "--stdin", input=text)
            git(self.repo, "update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", env=env)
        tree = git(self.repo, "write-tree", env=env)
        dated = {**os.environ, "GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE}
        return Head(slug, git(self.repo, "commit-tree", tree, "-p", base, "-m", f"work of {slug}", env=dated))


def agent(worktree: Worktree | Path, script: str, **env: str) -> str:
    """Run a fake agent in the worktree; its output. Raises: CalledProcessError when its last command fails."""
    where = worktree if isinstance(worktree, Path) else Path(worktree.path)
    done = subprocess.run(
        ["sh", "-c", script], cwd=where, env={**os.environ, **env}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


class Calls:
    """Notes the git processes that the product starts from now on: the program is wrapped in a script."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.log = folder / "calls.log"
        program = folder / "counting" / "git"
        program.parent.mkdir()
        real = runner.git_program()
        program.write_text(f'#!/bin/sh\necho "$@" >> "{self.log}"\nexec "{real}" "$@"\n')
        program.chmod(0o755)
        patch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        patch.setattr(runner, "git_program", lambda: str(program))

    def clear(self) -> None:
        self.log.unlink(missing_ok=True)

    def lines(self) -> list[str]:
        """The arguments of each process, in order of their start."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def verbs(self) -> list[str]:
        """The git command of each process."""
        return [_verb(line.split()) for line in self.lines()]


def _verb(words: list[str]) -> str:
    while words[0] == "-c":
        words = words[2:]
    return words[0]
