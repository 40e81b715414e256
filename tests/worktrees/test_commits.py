"""Committing what a turn left: everything that counts, nothing that does not, and only on the right branch."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from bench import Bench, agent
from repos import commit_file, git

from coordinate_agents.worktrees.commits import commit_leftovers
from coordinate_agents.worktrees.model import CommitOutcome, CommitRequest, Worktree

TRAILERS = (("Coordinate-Agents-Graph", "g1"), ("Coordinate-Agents-Subtask", "a"), ("Coordinate-Agents-Attempt", "1"))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    bench.commit(".gitignore", "build/\n")
    bench.commit("f", "one\n")
    bench.commit("g", "one\n")
    yield bench
    bench.close()


def request(bench: Bench, worktree: Worktree, **changes: object) -> CommitRequest:
    made = CommitRequest(worktree, bench.frozen, subject="Add the tables", body="As asked.", trailers=TRAILERS)
    return replace(made, **changes)  # type: ignore[arg-type]


def files(bench: Bench, commit: str | None) -> list[str]:
    assert commit is not None
    return git(bench.repo, "ls-tree", "-r", "--name-only", commit).splitlines()


def test_everything_that_counts_is_committed_and_status_is_clean(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(
        worktree,
        "echo two > f; rm g; mkdir -p d build; echo n > d/new; echo > build/out; ln -s f link; echo '#!' > run;"
        " chmod +x run; printf x > 'sp ace'; git add d",
    )

    outcome = commit_leftovers(bench.judge, request(bench, worktree))

    assert outcome.left_out == ()
    assert files(bench, outcome.commit) == [".gitignore", "README.md", "d/new", "f", "link", "run", "sp ace"]
    assert git(worktree.path, "rev-parse", "HEAD", worktree.branch, "HEAD^").split() == [
        outcome.commit,
        outcome.commit,
        worktree.base,
    ]
    assert git(worktree.path, "status", "--porcelain") == ""
    modes = git(bench.repo, "ls-tree", str(outcome.commit), "link", "run").split("\n")
    assert [line.split()[0] for line in modes] == ["120000", "100755"]
    assert git(worktree.path, "symbolic-ref", "HEAD") == f"refs/heads/{worktree.branch}"
    seen = bench.examine(worktree)
    assert (seen.head, seen.dirty_count, seen.commit_count) == (outcome.commit, 0, 1)


def test_message_and_author_are_the_runtimes(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo two > f")

    outcome = commit_leftovers(bench.judge, request(bench, worktree))

    assert git(bench.repo, "show", "-s", "--format=%an <%ae>|%cn <%ce>|%B", str(outcome.commit)) == (
        "coordinate-agents <coordinate-agents@localhost>|coordinate-agents <coordinate-agents@localhost>|"
        "Add the tables\n\nAs asked.\n\n"
        "Coordinate-Agents-Graph: g1\nCoordinate-Agents-Subtask: a\nCoordinate-Agents-Attempt: 1"
    )
    trailers = git(bench.repo, "show", "-s", "--format=%(trailers:key=Coordinate-Agents-Subtask)", str(outcome.commit))
    assert trailers == "Coordinate-Agents-Subtask: a"


def test_nothing_left_commits_nothing(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "mkdir build; echo > build/out; touch f")

    assert commit_leftovers(bench.judge, request(bench, worktree)) == CommitOutcome(None)
    assert git(worktree.path, "rev-parse", "HEAD") == worktree.base


def test_second_call_commits_nothing_and_answers_the_same(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo two > f")
    made = commit_leftovers(bench.judge, request(bench, worktree))

    assert commit_leftovers(bench.judge, request(bench, worktree)) == made
    assert git(worktree.path, "rev-list", "--count", f"{worktree.base}..HEAD") == "1"


def test_what_must_not_be_committed_is_left_out_with_the_reason(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(
        worktree,
        "echo secret > .env; mkdir deps; echo > deps/a; echo > log; head -c 2000 /dev/zero > big; git init -q app;"
        " echo > app/x; mkfifo pipe; echo ok > ok",
    )

    outcome = commit_leftovers(
        bench.judge,
        request(bench, worktree, baseline=("log",), leave_out=(".env", "deps"), max_file_bytes=1000),
    )

    assert files(bench, outcome.commit) == [".gitignore", "README.md", "f", "g", "ok"]
    assert outcome.left_out == (
        (".env", "copied or linked into the worktree"),
        ("app", "a nested repository"),
        ("big", "2000 bytes, more than 1000"),
        ("deps/a", "copied or linked into the worktree"),
    )
    assert Path(worktree.path, "app", "x").exists()


def test_what_the_agents_rules_ignore_is_committed(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo out >> .gitignore; echo x > out")

    outcome = commit_leftovers(bench.judge, request(bench, worktree))

    assert "out" in files(bench, outcome.commit)


def test_hidden_changes_are_committed(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "git update-index --skip-worktree f; echo two > f; git update-index --assume-unchanged g; rm g")

    outcome = commit_leftovers(bench.judge, request(bench, worktree))

    assert files(bench, outcome.commit) == [".gitignore", "README.md", "f"]
    assert git(bench.repo, "show", f"{outcome.commit}:f") == "two"
    assert git(worktree.path, "status", "--porcelain") == ""


def test_folder_in_place_of_a_file_is_committed(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "rm f; mkdir f; echo > f/x")

    outcome = commit_leftovers(bench.judge, request(bench, worktree))

    assert files(bench, outcome.commit) == [".gitignore", "README.md", "f/x", "g"]


def test_hooks_and_signing_take_no_part(bench: Bench, tmp_path: Path) -> None:
    for name in ("pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change"):
        hook = bench.repo / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/PWN-{name}\nexit 1\n")
        hook.chmod(0o755)
    git(bench.repo, "config", "commit.gpgSign", "true")
    git(bench.repo, "config", "gpg.program", "/bin/false")
    hooks = bench.repo / ".git" / "hooks"
    hooks.rename(hooks.with_name("off"))
    worktree = bench.worktree()
    hooks.with_name("off").rename(hooks)
    agent(worktree, "echo two > f")

    outcome = commit_leftovers(bench.judge, request(bench, worktree))

    assert outcome.commit is not None
    assert sorted(path.name for path in tmp_path.glob("PWN*")) == []


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("git checkout -q --detach", "HEAD is detached instead of on coordinate-agents/g1/a"),
        ("git checkout -qb mine", "HEAD is on refs/heads/mine instead of on coordinate-agents/g1/a"),
        ("git merge -q other || true", "a merge is in progress"),
        ('touch "$(git rev-parse --git-dir)/index.lock"', "index.lock exists since 0 s"),
        ('git update-ref -d "$(git symbolic-ref HEAD)"', "branch coordinate-agents/g1/a has no readable commit"),
        ("rm .git", "HEAD is damaged instead of on coordinate-agents/g1/a"),
    ],
)
def test_where_a_commit_would_be_wrong_there_is_none(bench: Bench, script: str, why: str) -> None:
    git(bench.repo, "checkout", "-q", "-b", "other")
    bench.commit("f", "other\n")
    git(bench.repo, "checkout", "-q", "main")
    worktree = bench.worktree()
    agent(worktree, f"echo two > f; git commit -qam x; {script}; echo left > left")
    refs = git(bench.repo, "for-each-ref")

    outcome = commit_leftovers(bench.judge, request(bench, worktree))

    assert outcome.commit is None
    assert outcome.refused is not None
    assert outcome.refused.endswith(why)
    assert git(bench.repo, "for-each-ref") == refs
    assert Path(worktree.path, "left").read_text() == "left\n"


def test_branch_that_is_locked_stays_and_so_do_the_files(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo two > f")
    lock = bench.repo / ".git" / "refs" / "heads" / f"{worktree.branch}.lock"
    lock.touch()

    outcome = commit_leftovers(bench.judge, request(bench, worktree))

    assert outcome.commit is None
    assert f"branch {worktree.branch} could not be moved: " in str(outcome.refused)
    assert git(worktree.path, "rev-parse", "HEAD") == worktree.base
    assert git(worktree.path, "status", "--porcelain") == "M f"


def test_head_with_a_missing_tree_refuses_the_commit(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo two > f; git commit -qam x; echo three > f")
    tree = git(worktree.path, "rev-parse", "HEAD^{tree}")
    (bench.repo / ".git" / "objects" / tree[:2] / tree[2:]).unlink()

    outcome = commit_leftovers(bench.judge, request(bench, worktree))

    assert outcome.commit is None
    assert "git read-tree failed" in str(outcome.refused)


def test_recorded_filter_cleans_what_is_committed(bench: Bench) -> None:
    git(bench.repo, "config", "filter.up.clean", "tr a-z A-Z")
    git(bench.repo, "config", "filter.up.smudge", "tr A-Z a-z")
    bench.commit(".gitattributes", "*.up filter=up\n")
    worktree = bench.worktree()
    agent(worktree, "echo hello > x.up")

    outcome = commit_leftovers(bench.judge, request(bench, worktree))

    assert git(bench.repo, "show", f"{outcome.commit}:x.up") == "HELLO"
    assert git(worktree.path, "status", "--porcelain") == ""


def test_odd_names_are_committed_as_they_are(bench: Bench) -> None:
    worktree = bench.worktree()
    names = ["-dash", 'qu"ote', "new\nline", os.fsdecode(b"\xff"), "ünï", ":(glob)x", "*"]
    for name in names:
        Path(worktree.path, name).write_text("x")

    outcome = commit_leftovers(bench.judge, request(bench, worktree))

    listed = os.fsencode(git(bench.repo, "-c", "core.quotePath=true", "ls-tree", "-r", str(outcome.commit)))
    assert len(listed.splitlines()) == 4 + len(names)
    assert bench.examine(worktree).dirty_count == 0


def test_link_in_place_of_a_folder_is_committed(bench: Bench, tmp_path: Path) -> None:
    bench.commit("d/h", "one\n")
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "h").write_text("one\n")
    worktree = bench.worktree()
    agent(worktree, f"rm -r d; ln -s {tmp_path / 'else'} d")

    outcome = commit_leftovers(bench.judge, request(bench, worktree))

    assert git(bench.repo, "ls-tree", str(outcome.commit), "d").startswith("120000 blob ")
    assert git(worktree.path, "status", "--porcelain") == ""


def test_submodule_at_another_commit_is_left_out(bench: Bench, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q")
    commit_file(library, "x", "1")
    env = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "always"}
    git(bench.repo, "submodule", "add", "-q", str(library), "sub", env={**os.environ, **env})
    git(bench.repo, "commit", "-qm", "sub")
    worktree = bench.worktree()
    agent(worktree, "git submodule update -q --init; git -C sub commit -q --allow-empty -m mine; echo two > f", **env)

    outcome = commit_leftovers(bench.judge, request(bench, worktree))

    assert outcome.left_out == (("sub", "a submodule"),)
    assert git(bench.repo, "diff", "--name-only", worktree.base, str(outcome.commit)) == "f"


def test_file_of_setup_that_became_tracked_is_committed_when_it_changes(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo > lock; git add lock; git commit -qm lock; echo 2 > lock; echo > other")

    outcome = commit_leftovers(bench.judge, request(bench, worktree, baseline=("lock", "other")))

    assert git(bench.repo, "diff", "--name-only", f"{outcome.commit}^", str(outcome.commit)) == "lock"


def test_a_call_that_died_before_the_index_was_written_is_finished_by_the_next(bench: Bench) -> None:
    """Before, git called the new file deleted and untracked: the agent's next commit took it out again."""
    worktree = bench.worktree()
    index = Path(git(worktree.path, "rev-parse", "--absolute-git-dir"), "index")
    agent(worktree, "echo two > f; echo n > new; echo s > staged; git add staged")
    old = index.read_bytes()
    made = commit_leftovers(bench.judge, request(bench, worktree))
    index.write_bytes(old)
    assert git(worktree.path, "status", "--porcelain") != ""

    assert commit_leftovers(bench.judge, request(bench, worktree)) == made

    assert git(worktree.path, "status", "--porcelain") == ""
    assert git(worktree.path, "rev-list", "--count", f"{worktree.base}..HEAD") == "1"


def test_an_old_index_with_a_version_that_is_nowhere_else_stays_as_it_is(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo two > f")
    made = commit_leftovers(bench.judge, request(bench, worktree))
    agent(worktree, "echo only > x; git add x; rm x")

    assert commit_leftovers(bench.judge, request(bench, worktree)) == made

    assert git(worktree.path, "show", ":x") == "only"


def test_a_head_of_the_agents_own_is_not_taken_for_one_that_was_made(bench: Bench) -> None:
    worktree = bench.worktree()
    agent(worktree, "echo two > f; git commit -qam 'Add the tables'")
    assert commit_leftovers(bench.judge, request(bench, worktree)) == CommitOutcome(None)
