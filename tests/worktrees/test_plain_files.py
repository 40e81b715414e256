"""What is written without git is what git would have written: files, modes, links, and the index byte for byte."""

import os
import stat
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import repos
from bench import Calls
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from repos import git

from coordinate_agents.worktrees.frozen import Frozen
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.plain_files import PlainFiles
from coordinate_agents.worktrees.worktrees import GitWorktrees

# Mode and content of each file.
Files = Mapping[str, tuple[str, bytes]]

NAMES = st.sampled_from(["a", "b", "a.b", "a-b", "ab", "aa", "é", "B", "x y", ".hidden", "a\nb", "long" * 40])
CONTENT = st.one_of(st.binary(max_size=40), st.sampled_from([b"a\r\nb\n", b"$Id$\n", b"x" * 70_000]))
KINDS = st.one_of(
    st.tuples(st.sampled_from(["100644", "100755"]), CONTENT),
    st.tuples(st.just("120000"), st.sampled_from([b"a", b"../a/b", b"/nowhere", b"\xff\xfe"])),
)
TREES = st.dictionaries(st.lists(NAMES, min_size=1, max_size=4).map("/".join), KINDS, max_size=12).map(
    lambda files: {path: kind for path, kind in files.items() if not any(f.startswith(f"{path}/") for f in files)}
)


@pytest.fixture
def trees(repo: Path) -> Iterator[GitWorktrees]:
    with GitWorktrees.open(str(repo)) as opened:
        yield opened


@pytest.fixture
def judge(trees: GitWorktrees) -> Judge:
    return trees._judge


def commit(repo: Path, files: Files) -> str:
    """A commit of exactly these files."""
    parts = [b"commit refs/heads/made\ncommitter A <a@example.org> 1700000000 +0000\ndata 0\ndeleteall\n"]
    for path, (mode, data) in files.items():
        quoted = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        parts.append(f'M {mode} inline "{quoted}"\ndata {len(data)}\n'.encode() + data + b"\n")
    run = subprocess.run(["git", "fast-import", "--quiet", "--force"], cwd=repo, input=b"".join(parts), check=False)
    assert run.returncode == 0
    return git(repo, "rev-parse", "made")


def found_in(top: Path) -> dict[bytes, tuple[int, bytes]]:
    """Mode and content of everything below a folder but `.git`."""
    found: dict[bytes, tuple[int, bytes]] = {}
    for folder, names, files in os.walk(os.fsencode(top)):
        for name in names + files:
            path = os.path.join(folder, name)  # noqa: PTH118
            mode = os.lstat(path).st_mode
            is_link, is_folder = stat.S_ISLNK(mode), stat.S_ISDIR(mode)
            content = os.readlink(path) if is_link else b"" if is_folder else Path(os.fsdecode(path)).read_bytes()  # noqa: PTH115
            found[path[len(os.fsencode(top)) :]] = (mode, content)
    found.pop(b"/.git", None)
    return found


def without_times(index: bytes) -> bytes:
    """The entries and the extension, with times, device and inode of each entry as nothing."""
    assert index[:8] == b"DIRC\0\0\0\2"
    blank, at = bytearray(index[:-20]), 12
    for _ in range(int.from_bytes(index[8:12], "big")):
        blank[at : at + 24] = bytes(24)
        end = index.index(b"\0", at + 62)
        at += (end - at + 8) & ~7
    return bytes(blank)


def by_git(judge: Judge, made: str, folder: Path) -> tuple[dict[bytes, tuple[int, bytes]], bytes]:
    folder.mkdir()
    with judge.temporary_index() as index:
        judge.git("read-tree", "-u", "--reset", made, index=index, work_tree=str(folder))
        return found_in(folder), Path(index).read_bytes()


def by_us(judge: Judge, made: str, folder: Path) -> tuple[dict[bytes, tuple[int, bytes]], bytes]:
    folder.mkdir()
    (folder / ".git").write_text("link")
    index = judge.plain_files.write(str(folder), judge.tree_of(made), Frozen())
    assert index is not None
    return found_in(folder), index


@given(first=TREES, second=TREES)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_trees_are_written_as_git_writes_them(
    repo: Path, judge: Judge, tmp_path_factory: pytest.TempPathFactory, first: Files, second: Files
) -> None:
    # Two in a row: the second is made of what is remembered of the first.
    for files in (first, {**first, **second}):
        whole = {path: kind for path, kind in files.items() if not any(f.startswith(f"{path}/") for f in files)}
        made = commit(repo, whole)
        place = tmp_path_factory.mktemp("written")

        ours, our_index = by_us(judge, made, place / "ours")
        theirs, their_index = by_git(judge, made, place / "theirs")

        assert ours == theirs
        assert without_times(our_index) == without_times(their_index)


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_umask_counts_as_it_does_for_git(repo: Path, judge: Judge, tmp_path: Path, umask: int) -> None:
    made = commit(repo, {"run": ("100755", b"#!/bin/sh\n"), "d/text": ("100644", b"x\n")})
    before = os.umask(umask)
    try:
        assert by_us(judge, made, tmp_path / "ours")[0] == by_git(judge, made, tmp_path / "theirs")[0]
    finally:
        os.umask(before)


def test_sha256_and_an_empty_commit_are_written_as_git_writes_them(tmp_path: Path) -> None:
    repo = repos.make_repo(tmp_path / "repo", object_format="sha256")
    git(repo, "rm", "-q", "README.md")
    git(repo, "commit", "-q", "-m", "nothing is left")
    with GitWorktrees.open(str(repo)) as trees:
        judge, made = trees._judge, git(repo, "rev-parse", "HEAD")
        assert by_us(judge, made, tmp_path / "ours") == by_git(judge, made, tmp_path / "theirs")
        first = trees.create("g1", "a", git(repo, "rev-parse", "HEAD~"), root=str(tmp_path / "trees"))
    assert git(first.path, "diff-files") == ""
    assert git(first.path, "status", "--porcelain") == ""


def test_new_worktree_needs_no_second_look_at_its_files_and_no_new_trees(
    repo: Path, root: str, trees: GitWorktrees
) -> None:
    made = commit(repo, {f"d{n % 3}/f{n}": ("100644", b"text\n") for n in range(30)})

    worktree = trees.create("g1", "a", made, root=root, frozen=trees.freeze())

    # Without a refresh every file whose times are not those of the index would be listed.
    assert git(worktree.path, "diff-files") == ""
    assert git(worktree.path, "status", "--porcelain") == ""
    assert git(worktree.path, "write-tree") == git(repo, "rev-parse", f"{made}^{{tree}}")
    assert git(repo, "fsck", "--strict") == ""


ATTRIBUTES = ["* ident", "*.txt eol=crlf", "[attr]mine filter=x\n* mine", "* working-tree-encoding=UTF-16"]


@pytest.mark.parametrize("attributes", ATTRIBUTES)
def test_files_that_git_would_convert_are_left_to_git(
    repo: Path, root: str, trees: GitWorktrees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attributes: str
) -> None:
    plain = commit(
        repo, {"d/.gitattributes": ("100644", b"*.sh text eol=lf\n*.png -text -diff\n"), "a": ("100644", b"")}
    )
    made = commit(repo, {"d/.gitattributes": ("100644", attributes.encode()), "d/a.txt": ("100644", b"$Id$\n")})
    calls = Calls(tmp_path, monkeypatch)

    trees.create("g1", "a", plain, root=root)
    assert not [line for line in calls.lines() if "read-tree" in line]
    trees.create("g1", "b", made, root=root)
    assert [line for line in calls.lines() if "read-tree" in line]


@pytest.mark.parametrize(
    ("setting", "is_left"),
    [
        (("core.autocrlf", "true"), True),
        (("core.autocrlf", "input"), False),
        (("core.eol", "crlf"), True),
        (("core.symlinks", "false"), True),
        (("core.filemode", "false"), True),
        (("core.ignorecase", "true"), True),
        (("filter.lfs.smudge", "false"), False),
    ],
)
def test_settings_that_change_files_leave_them_to_git(
    repo: Path, judge: Judge, tmp_path: Path, setting: tuple[str, str], is_left: bool
) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w/.git").touch()
    tree = judge.tree_of(git(repo, "rev-parse", "HEAD"))
    wrote = judge.plain_files.write(str(tmp_path / "w"), tree, Frozen(settings=(setting,)))
    assert (wrote is None, list(found_in(tmp_path / "w"))) == ((True, []) if is_left else (False, [b"/README.md"]))
    attributes = replace(Frozen(), attributes="*.c ident\n")
    assert judge.plain_files.write(str(tmp_path / "w"), tree, attributes) is None


@pytest.mark.parametrize("name", [".git. ", "GIT~1", ".Git::$INDEX_ALLOCATION", "a\\.git", ".gitmodules"])
def test_names_that_git_may_refuse_are_left_to_it(repo: Path, judge: Judge, tmp_path: Path, name: str) -> None:
    oid = git(repo, "hash-object", "-w", "--stdin", input="a")
    mode = "120000" if name == ".gitmodules" else "100644"
    tree = git(repo, "mktree", "-z", input=f"{mode} blob {oid}\t{name}\0")
    (tmp_path / "w").mkdir()
    (tmp_path / "w/.git").touch()
    assert judge.plain_files.write(str(tmp_path / "w"), tree, Frozen()) is None
    assert found_in(tmp_path / "w") == {}


def test_submodule_is_left_to_git(repo: Path, judge: Judge, tmp_path: Path) -> None:
    tree = git(repo, "mktree", input=f"160000 commit {git(repo, 'rev-parse', 'HEAD')}\tsub\n")
    (tmp_path / "w").mkdir()
    (tmp_path / "w/.git").touch()
    assert judge.plain_files.write(str(tmp_path / "w"), tree, Frozen()) is None


def test_failure_in_the_middle_lets_git_write_all(repo: Path, root: str, trees: GitWorktrees) -> None:
    # No system call takes this name of a target; git cuts it.
    made = commit(repo, {"a": ("100755", b"first\n"), "d/b": ("100644", b"x"), "z": ("120000", b"to\0nowhere")})

    worktree = trees.create("g1", "a", made, root=root)

    assert {name: kind[1] for name, kind in found_in(Path(worktree.path)).items()} == {
        b"/a": b"first\n", b"/d": b"", b"/d/b": b"x", b"/z": b"to",
    }  # fmt: skip


def test_more_bytes_than_are_remembered_are_left_to_git(
    repo: Path, root: str, trees: GitWorktrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coordinate_agents.worktrees.plain_files.MAX_BYTES", 10_000)
    small = commit(repo, {"a": ("100644", b"a" * 6_000)})
    other = commit(repo, {"b": ("100644", b"b" * 6_000)})
    large = commit(repo, {"a": ("100644", b"a" * 6_000), "c": ("100644", b"c" * 6_000)})
    plain: PlainFiles = trees._judge.plain_files

    trees.create("g1", "a", small, root=root)
    trees.create("g1", "b", other, root=root)
    assert plain._bytes == sum(map(len, plain._blobs.values())) == 6_000
    worktree = trees.create("g1", "c", large, root=root)
    assert plain._bytes == sum(map(len, plain._blobs.values())) <= 10_000
    assert git(worktree.path, "status", "--porcelain") == ""


def test_object_of_another_content_is_not_written(repo: Path, root: str, trees: GitWorktrees) -> None:
    made = commit(repo, {"a": ("100644", b"true\n")})
    good, bad = (git(repo, "hash-object", "-w", "--stdin", input=text) for text in ("right\n", "wrong\n"))
    objects = repo / ".git/objects"
    (objects / good[:2] / good[2:]).unlink()
    (objects / bad[:2] / bad[2:]).rename(objects / good[:2] / good[2:])
    tree = git(repo, "mktree", input=f"100644 blob {good}\ta\n")
    folder = Path(root)
    folder.mkdir()
    (folder / ".git").touch()

    assert trees._judge.plain_files.write(root, tree, Frozen()) is None
    assert trees._judge.plain_files.write(root, trees._judge.tree_of(made), Frozen()) is not None
