"""What an agent writes into the shared git state changes nothing that the judge says, and runs nothing."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from repos import commit_file, git, make_repo

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.frozen import Frozen, freeze
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.repository import open_repository


@pytest.fixture
def judge(repo: Path) -> Iterator[Judge]:
    with Judge.open(open_repository(str(repo))) as opened:
        yield opened


def head(repo: Path) -> str:
    return git(repo, "rev-parse", "HEAD")


def orphan(repo: Path) -> str:
    """A commit that has nothing to do with main."""
    tree = git(repo, "mktree", input="")
    return git(repo, "commit-tree", tree, "-m", "orphan")


def test_sees_the_objects_of_the_user(repo: Path, judge: Judge) -> None:
    assert judge.exists(head(repo))
    assert judge.tree_of(head(repo)) == git(repo, "rev-parse", "HEAD^{tree}")
    assert judge.commit(head(repo)) == head(repo)
    assert judge.commit(judge.tree_of(head(repo))) is None
    assert not judge.exists("0" * 40)


def test_sees_objects_that_were_made_after_it_was_opened(repo: Path, judge: Judge) -> None:
    assert judge.exists(head(repo))
    later = commit_file(repo, "b.txt", "b\n")
    git(repo, "gc", "-q")
    assert judge.exists(later)


def test_objects_are_written_into_the_users_store_only_when_asked(repo: Path, judge: Judge) -> None:
    kept = judge.git("hash-object", "-w", "--stdin", stdin=b"mine", write_objects=True).text
    private = judge.git("hash-object", "-w", "--stdin", stdin=b"private").text
    assert git(repo, "cat-file", "-p", kept) == "mine"
    assert git(repo, "cat-file", "-t", kept) == "blob"
    with pytest.raises(Exception, match="cat-file"):
        git(repo, "cat-file", "-p", private)
    assert judge.exists(private)


def test_state_folder_is_private_and_invisible(repo: Path, judge: Judge) -> None:
    state = repo / ".git" / "coordinate-agents"
    assert state.stat().st_mode & 0o777 == 0o700
    assert Path(judge.git_dir).parent == state
    assert git(repo, "status", "--porcelain", "--ignored") == ""


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_path_with_newline_colon_and_quote_works(tmp_path: Path, object_format: str) -> None:
    repo = make_repo(tmp_path / 'nl\nx: "ü"', object_format=object_format)
    with Judge.open(open_repository(str(repo))) as judge:
        assert judge.tree_of(head(repo)) == git(repo, "rev-parse", "HEAD^{tree}")
        made = judge.git("commit-tree", judge.tree_of(head(repo)), "-m", "m", write_objects=True).text
    assert git(repo, "cat-file", "-t", made) == "commit"


def test_alternates_of_a_shared_clone_are_followed(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--shared", str(repo), "shared")
    alternates = tmp_path / "shared/.git/objects/info/alternates"
    alternates.write_text("../../../repo/.git/objects\n")
    with Judge.open(open_repository(str(tmp_path / "shared"))) as judge:
        assert judge.tree_of(head(repo)) == git(repo, "rev-parse", "HEAD^{tree}")


def test_replace_ref_does_not_make_an_orphan_a_descendant(repo: Path, judge: Judge) -> None:
    alone = orphan(repo)
    with_parent = git(repo, "commit-tree", git(repo, "mktree", input=""), "-p", head(repo), "-m", "lie")
    git(repo, "replace", alone, with_parent)
    assert git(repo, "merge-base", head(repo), alone) == head(repo)

    assert not judge.is_ancestor(head(repo), alone)


def test_graft_does_not_make_an_orphan_a_descendant(repo: Path, judge: Judge) -> None:
    alone = orphan(repo)
    (repo / ".git/info/grafts").write_text(f"{alone} {head(repo)}\n")
    assert git(repo, "merge-base", head(repo), alone) == head(repo)

    assert not judge.is_ancestor(head(repo), alone)


def test_forged_commit_graph_does_not_make_an_orphan_a_descendant(repo: Path, judge: Judge) -> None:
    first = head(repo)
    alone = orphan(repo)
    child = git(repo, "commit-tree", git(repo, "mktree", input=""), "-p", first, "-m", "child")
    top = git(repo, "commit-tree", git(repo, "mktree", input=""), "-p", alone, "-m", "top")
    for name, oid in (("top", top), ("child", child)):
        git(repo, "update-ref", f"refs/heads/{name}", oid)
    git(repo, "-c", "commitGraph.generationVersion=1", "commit-graph", "write", "--reachable")
    forge_parent(repo / ".git/objects/info/commit-graph", alone, child)
    assert git(repo, "merge-base", first, top) == first

    assert not judge.is_ancestor(first, top)


def test_shallow_file_that_an_agent_forged_hides_no_history(repo: Path, judge: Judge) -> None:
    first = head(repo)
    second = commit_file(repo, "b.txt", "b\n")
    (repo / ".git/shallow").write_text(f"{second}\n")
    assert git(repo, "rev-list", "--count", second) == "1"

    assert judge.is_ancestor(first, second)
    assert judge.git("rev-list", "--count", second).text == "2"


def test_shallow_boundary_of_the_user_is_honoured(repo: Path, tmp_path: Path) -> None:
    commit_file(repo, "b.txt", "b\n")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repo}", "shallow")
    clone = tmp_path / "shallow"
    facts = open_repository(str(clone))
    with Judge.open(facts) as judge:
        assert facts.is_shallow
        assert judge.git("rev-list", "--count", head(clone)).text == "1"
        frozen = freeze(facts).to_json()
        (clone / ".git/shallow").write_text("")
        assert judge.git("rev-list", "--count", head(clone), frozen=frozen).text == "1"


def test_configuration_of_the_repository_is_not_read(repo: Path, judge: Judge) -> None:
    git(repo, "config", "user.name", "Evil")
    git(repo, "config", "merge.renames", "false")
    read = dict(line.split("\n", 1) for line in judge.git("config", "--list", "-z").fields() if "\n" in line)
    assert "user.name" not in read
    assert read["merge.renames"] == "true"
    assert read["core.hookspath"] == "/dev/null"


def test_inherited_variables_do_not_matter(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = make_repo(tmp_path / "other")
    before = {path: path.read_bytes() for path in other.rglob("*") if path.is_file()}
    for name, value in {
        "GIT_DIR": other / ".git",
        "GIT_WORK_TREE": other,
        "GIT_INDEX_FILE": other / ".git/index",
        "GIT_OBJECT_DIRECTORY": other / ".git/objects",
        "GIT_COMMON_DIR": other / ".git",
        "GIT_CONFIG_PARAMETERS": "'core.bare=true'",
        "GIT_CONFIG_COUNT": 1,
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": tmp_path,
        "GIT_TRACE": tmp_path / "trace",
        "GIT_EXEC_PATH": tmp_path,
        "GIT_NAMESPACE": "x",
        "GIT_CEILING_DIRECTORIES": tmp_path,
    }.items():
        monkeypatch.setenv(name, str(value))

    facts = open_repository(str(repo))
    with Judge.open(facts) as judge:
        assert facts.root == str(repo)
        judge.user_git("update-ref", "refs/coordinate-agents/g/x/kept-1", tip_of_main(repo))
        with judge.temporary_index() as index:
            judge.git("read-tree", tip_of_main(repo), index=index)

    assert (repo / ".git/refs/coordinate-agents/g/x/kept-1").exists()
    assert not (tmp_path / "trace").exists()
    assert {path: path.read_bytes() for path in other.rglob("*") if path.is_file()} == before


def tip_of_main(repo: Path) -> str:
    return (repo / ".git/refs/heads/main").read_text().strip()


def test_clean_filter_that_an_agent_configured_does_not_run(repo: Path, judge: Judge, tmp_path: Path) -> None:
    frozen = freeze(judge.facts).to_json()
    git(repo, "config", "filter.evil.clean", f"touch {tmp_path}/ran; cat")
    (repo / ".gitattributes").write_text("* filter=evil\n")
    (repo / "README.md").write_text("changed\n")

    with judge.temporary_index() as index:
        judge.git("read-tree", head(repo), index=index)
        found = judge.git("diff-files", "--name-only", "-z", index=index, work_tree=str(repo), frozen=frozen)

    assert found.fields() == ["README.md"]
    assert not (tmp_path / "ran").exists()


def test_fsmonitor_and_hooks_do_not_run(repo: Path, judge: Judge, tmp_path: Path) -> None:
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o755)
    git(repo, "config", "core.fsmonitor", str(evil))
    for name in ("reference-transaction", "post-index-change", "pre-auto-gc"):
        (repo / ".git/hooks" / name).write_text(evil.read_text())
        (repo / ".git/hooks" / name).chmod(0o755)

    with judge.temporary_index() as index:
        judge.git("read-tree", head(repo), index=index)
        judge.git("ls-files", "-m", "-o", index=index, work_tree=str(repo))
        judge.git("update-index", "-q", "--refresh", index=index, work_tree=str(repo), ok=(0, 1))
    judge.user_git("update-ref", "refs/coordinate-agents/g/x/kept-1", head(repo))

    assert not (tmp_path / "ran").exists()


def test_lazy_fetch_runs_nothing(repo: Path, judge: Judge, tmp_path: Path) -> None:
    git(repo, "config", "remote.evil.url", f"ext::sh -c 'touch {tmp_path}/ran'")
    git(repo, "config", "remote.evil.promisor", "true")
    git(repo, "config", "extensions.partialClone", "evil")
    git(repo, "config", "core.repositoryFormatVersion", "1")
    git(repo, "config", "protocol.ext.allow", "always")
    missing = "12" * 20

    assert not judge.exists(missing)
    assert judge.git("cat-file", "-p", missing, ok=(128,)).code == 128
    assert judge.user_git("cat-file", "-p", missing, ok=(128,)).code == 128
    assert judge.git("rev-list", "--objects", missing, ok=(128,)).code == 128

    assert not (tmp_path / "ran").exists()


def test_fetch_from_a_helper_transport_runs_nothing(judge: Judge, tmp_path: Path) -> None:
    address = f"ext::sh -c 'touch {tmp_path}/ran'"
    assert judge.git("fetch", address, ok=(128,)).code == 128
    assert judge.user_git("fetch", address, ok=(128,)).code == 128
    assert not (tmp_path / "ran").exists()


def test_replaced_git_file_leads_nowhere(repo: Path, judge: Judge, tmp_path: Path) -> None:
    other = make_repo(tmp_path / "other")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/.git").write_text(f"gitdir: {other}/.git\n")

    with judge.temporary_index() as index:
        judge.git("read-tree", head(repo), index=index)
        listed = judge.git("ls-files", "-d", "-z", index=index, work_tree=str(tmp_path / "tree"))

    assert listed.fields() == ["README.md"]


def test_configuration_of_the_judge_that_was_changed_is_written_again(judge: Judge, tmp_path: Path) -> None:
    config = Path(judge.git_dir, "config")
    before = config.read_bytes()
    with config.open("a") as file:
        file.write('[alias]\n\tversion2 = !true\n[core]\n\tfsmonitor = "touch ran"\n')
    Path(judge.git_dir, "info/attributes").write_text("* text\n")

    assert "alias.version2" not in judge.git("config", "--list").text
    assert config.read_bytes() == before
    assert not Path(judge.git_dir, "info/attributes").exists()


def test_link_in_place_of_the_configuration_is_replaced_and_its_target_kept(judge: Judge, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("mine")
    config = Path(judge.git_dir, "config")
    config.unlink()
    config.symlink_to(target)

    judge.git("rev-parse", "--git-dir")

    assert target.read_text() == "mine"
    assert not config.is_symlink()


def test_many_open_the_judge_of_a_new_repository_at_once(repo: Path) -> None:
    facts = open_repository(str(repo))
    wrong: list[BaseException] = []

    def work() -> None:
        try:
            with Judge.open(facts) as judge:
                assert judge.exists(tip_of_main(repo))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert [path.name for path in Path(facts.state_dir).iterdir()] == ["judge"]


def test_temporary_indexes_are_removed_and_stale_ones_swept(judge: Judge) -> None:
    with judge.temporary_index() as index:
        assert not Path(index).exists()
        Path(index).write_text("x")
    assert not Path(index).parent.exists()
    stale = Path(judge.git_dir, "tmp", "index-old")
    stale.mkdir()
    os.utime(stale, (0, 0))
    Judge.open(judge.facts).close()
    assert not stale.exists()


def test_kept_reader_answers_again_after_it_was_killed(repo: Path, judge: Judge) -> None:
    assert judge.exists(head(repo))
    child = judge._reader._kept.child
    assert child is not None
    child.kill()
    child.wait()
    assert judge.exists(head(repo))


def test_strange_questions_to_the_kept_reader_name_nothing(judge: Judge) -> None:
    assert [judge.look_up(text) for text in ("", "a\nb", "\0", "HEAD", "--batch-all-objects", ":/x")] == [None] * 6


def test_excludes_of_the_user_are_those_of_freeze(repo: Path, judge: Judge, isolation: Path) -> None:
    (isolation / ".config/git").mkdir(parents=True)
    (isolation / ".config/git/ignore").write_text("*.global\n")
    (repo / ".git/info/exclude").write_text("*.private\n!keep.global\n")
    frozen = freeze(judge.facts).to_json()
    (repo / ".git/info/exclude").write_text("*\n")
    for name in ("a.global", "keep.global", "a.private", "other"):
        (repo / name).write_text("x")

    with judge.temporary_index() as index:
        judge.git("read-tree", head(repo), index=index)
        listed = judge.git("ls-files", "-o", "--exclude-standard", index=index, work_tree=str(repo), frozen=frozen)

    assert listed.lines() == ["keep.global", "other"]


def test_freeze_records_filters_and_no_secret(repo: Path, judge: Judge) -> None:
    git(repo, "config", "filter.lfs.clean", "git-lfs clean -- %f")
    git(repo, "config", "remote.origin.url", "https://me:secret@example.org/x.git")
    git(repo, "config", "core.eol", "lf")
    git(repo, "config", "core.fsmonitor", "evil")
    frozen = freeze(judge.facts)

    assert frozen == Frozen.parse(frozen.to_json())
    assert frozen.filters() == ("lfs",)
    assert ("core.eol", "lf") in frozen.settings
    assert ("remote.origin.url", "https://me@example.org/x.git") in frozen.settings
    assert "secret" not in frozen.to_json()
    assert "evil" not in frozen.to_json()


def test_lfs_objects_go_beside_the_users_repository(judge: Judge) -> None:
    frozen = Frozen(settings=(("filter.lfs.clean", "git-lfs clean"),)).to_json()
    assert judge.git("config", "lfs.storage", frozen=frozen).text == f"{judge.facts.common_dir}/lfs"


def test_unreadable_record_is_an_error(judge: Judge) -> None:
    with pytest.raises(WorktreeError) as raised:
        judge.git("rev-parse", frozen='{"version": 2}')
    assert raised.value.code == "STATE_TAMPERED"


def forge_parent(graph: Path, commit: str, like: str) -> None:
    """Give `commit` the parents and the generation of `like` in the file. Source: gitformat-commit-graph(5)."""
    data = bytearray(graph.read_bytes())
    chunks = {}
    for number in range(data[6]):
        entry = data[8 + 12 * number : 20 + 12 * number]
        chunks[bytes(entry[:4])] = int.from_bytes(entry[4:], "big")
    end_of_fan = chunks[b"OIDF"] + 256 * 4
    count = int.from_bytes(data[end_of_fan - 4 : end_of_fan], "big")
    start = chunks[b"OIDL"]
    oids = [data[start + 20 * i : start + 20 * (i + 1)].hex() for i in range(count)]
    target, source = (chunks[b"CDAT"] + oids.index(oid) * 36 for oid in (commit, like))
    data[target + 20 : target + 36] = data[source + 20 : source + 36]
    graph.chmod(0o644)
    graph.write_bytes(data)
