"""Programs that an agent can plant in the shared git dir: plain git runs them, the judge does not (SY-04)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from bench import GRAPH, Bench, agent
from repos import git

from coordinate_agents.worktrees.base import make_base
from coordinate_agents.worktrees.commits import commit_leftovers
from coordinate_agents.worktrees.diff import diff, restore_paths
from coordinate_agents.worktrees.dirty import tracked_changes, untracked
from coordinate_agents.worktrees.integrate import integrate
from coordinate_agents.worktrees.model import CommitRequest, Head, Worktree


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    bench.commit("f", "".join(f"{n}\n" for n in range(20)))
    yield bench
    bench.close()


@dataclass(frozen=True)
class Plant:
    """A program that leaves a mark when it runs: how it is planted, and how plain git is made to run it."""

    plant: str
    provoke: str


PLANTS = {
    "clean filter": Plant(
        "git config filter.ev.clean 'sh -c \"touch $MARK; cat\"'; echo '* filter=ev' > .gitattributes",
        "touch f; git status --porcelain",
    ),
    "process filter": Plant(
        "git config filter.ev.process 'touch $MARK'; echo '* filter=ev' > .gitattributes",
        "touch f; git status --porcelain",
    ),
    "smudge filter": Plant(
        "git config filter.ev.smudge 'sh -c \"touch $MARK; cat\"'; echo '* filter=ev' > .gitattributes",
        "rm f; git checkout f",
    ),
    "fsmonitor": Plant("git config core.fsmonitor 'touch $MARK; false'", "git status --porcelain"),
    "hook": Plant(
        'H="$(git rev-parse --git-path hooks)"; mkdir -p "$H"; for n in post-commit post-checkout post-index-change'
        ' reference-transaction pre-commit; do printf "#!/bin/sh\\ntouch $MARK\\n" > "$H/$n"; chmod +x "$H/$n"; done',
        "git commit -q --allow-empty -m x; git reset -q --hard HEAD~1",
    ),
    "hooks path": Plant(
        'mkdir "$PLACE/hooks"; printf "#!/bin/sh\\ntouch $MARK\\n" > "$PLACE/hooks/post-index-change";'
        ' chmod +x "$PLACE/hooks/post-index-change"; git config core.hooksPath "$PLACE/hooks"',
        "git read-tree HEAD",
    ),
    "external diff": Plant("git config diff.external 'touch $MARK;true'", "echo >> f; git diff; git checkout -q f"),
    "merge driver": Plant(
        "git config merge.ev.driver 'touch $MARK; false'; echo '* merge=ev' > .gitattributes;"
        " echo '* merge=ev' > \"$(git rev-parse --git-common-dir)/info/attributes\"",
        "git reset -q --hard; git checkout -q --detach $LEFT && git merge -q $RIGHT; git reset -q --hard",
    ),
    "configuration of the worktree": Plant(
        "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor 'touch $MARK; false'",
        "git status --porcelain",
    ),
    "gpg program": Plant(
        "printf '#!/bin/sh\\ntouch $MARK\\nexit 1\\n' > $PLACE/gpg; chmod +x $PLACE/gpg;"
        " git config gpg.program $PLACE/gpg; git config commit.gpgSign true",
        "git commit -q --allow-empty -m x; true",
    ),
}


@pytest.mark.parametrize("name", PLANTS)
def test_planted_program_runs_in_plain_git_and_never_in_the_judge(bench: Bench, tmp_path: Path, name: str) -> None:
    base = bench.head()
    text = (bench.repo / "f").read_text()
    left = bench.head_of("l", base, {"f": text.replace("1\n", "one\n", 1)})
    right = bench.head_of("r", base, {"f": text + "more\n"})
    worktree = bench.worktree()
    mark = tmp_path / "PWN"
    env = {"MARK": str(mark), "PLACE": str(tmp_path), "LEFT": left.commit, "RIGHT": right.commit}

    agent(worktree, f"{PLANTS[name].plant.replace('$MARK', str(mark)).replace('$PLACE', str(tmp_path))}; true", **env)
    mark.unlink(missing_ok=True)
    for act in everything(bench, worktree, base, left, right):
        act()
        assert not mark.exists(), "the judge ran it"

    agent(worktree, f"{PLANTS[name].provoke}; true", **env)
    assert mark.exists(), "plain git did not run it: the plant is no plant"


def everything(bench: Bench, worktree: Worktree, base: str, left: Head, right: Head) -> list[Callable[[], object]]:
    """Every public function of the judging half, on a worktree with a change to commit."""
    judge, frozen = bench.judge, bench.frozen
    Path(worktree.path, "f").write_text("changed\n")
    return [
        lambda: bench.examine(worktree),
        lambda: untracked(judge, worktree, frozen),
        lambda: tracked_changes(judge, worktree, frozen),
        lambda: commit_leftovers(judge, CommitRequest(worktree, frozen, "x")),
        lambda: bench.examine(worktree),
        lambda: make_base(judge, GRAPH, "d", base, [left, right]),
        lambda: integrate(judge, GRAPH, base, [left, right]),
        lambda: diff(judge, base, left.commit, stat=False, max_bytes=1000),
        lambda: restore_paths(judge, worktree, base, ["f"], frozen=frozen),
    ]


def test_merge_driver_that_the_base_names_does_not_run_either(bench: Bench, tmp_path: Path) -> None:
    text = (bench.repo / "f").read_text()
    base = bench.commit(".gitattributes", "f merge=ev\n")
    git(bench.repo, "config", "merge.ev.driver", f"touch {tmp_path}/PWN; false")
    left = bench.head_of("l", base, {"f": text.replace("1\n", "one\n", 1)})
    right = bench.head_of("r", base, {"f": text + "more\n"})

    made = make_base(bench.judge, GRAPH, "d", base, [left, right])

    assert "more" in git(bench.repo, "show", f"{getattr(made, 'commit', None)}:f")
    assert not (tmp_path / "PWN").exists()


def test_remote_that_is_a_command_is_not_asked_for_a_missing_object(bench: Bench, tmp_path: Path) -> None:
    worktree = bench.worktree()
    mark = tmp_path / "PWN"
    agent(worktree, "echo lost > lost; git add lost; git commit -qm x")
    blob = git(worktree.path, "rev-parse", "HEAD:lost")
    (bench.repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    agent(
        worktree,
        f"git config remote.origin.url 'ext::touch {mark}'; git config remote.origin.promisor true;"
        " git config remote.origin.partialCloneFilter blob:none; git config extensions.partialClone origin;"
        " git config protocol.ext.allow always",
    )

    bench.examine(worktree)
    assert not mark.exists()

    agent(worktree, f"git cat-file -p {blob}; true")
    assert mark.exists(), "plain git did not run it: the plant is no plant"
