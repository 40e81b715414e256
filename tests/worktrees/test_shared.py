"""What can run code in somebody's git, or lie to it, is noticed; ordinary work of the user is not."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from bench import Calls
from repos import commit_file, git, make_repo

from coordinate_agents.graph.shared import differences
from coordinate_agents.worktrees.worktrees import GitWorktrees


def compare_shared(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Names of what differs, without the word that says how."""
    return tuple(sorted(line.partition(": ")[2] for line in differences(before, after)))


def config(repo: Path, *args: str) -> None:
    git(repo, "config", *args)


CONFIGURED = [
    ("core.fsmonitor", "evil"),
    ("core.hooksPath", "/tmp/x"),
    ("core.sshCommand", "evil"),
    ("core.editor", "evil"),
    ("core.pager", "evil"),
    ("core.askPass", "evil"),
    ("core.attributesFile", "/tmp/x"),
    ("core.excludesFile", "/tmp/x"),
    ("core.worktree", "/tmp/x"),
    ("sequence.editor", "evil"),
    ("pager.log", "evil"),
    ("filter.lfs.clean", "evil"),
    ("filter.a.b.process", "evil"),
    ("diff.external", "evil"),
    ("diff.pdf.command", "evil"),
    ("diff.pdf.textconv", "evil"),
    ("merge.ev.driver", "evil"),
    ("mergetool.x.cmd", "evil"),
    ("difftool.x.path", "evil"),
    ("alias.st", "!evil"),
    ("credential.helper", "!evil"),
    ("credential.https://example.org.helper", "!evil"),
    ("gpg.program", "evil"),
    ("gpg.ssh.program", "evil"),
    ("include.path", "/tmp/x"),
    ("includeIf.gitdir:/x.path", "/tmp/x"),
    ("url.ext::evil.insteadOf", "https://example.org"),
    ("remote.origin.url", "ext::sh -c evil"),
    ("remote.origin.pushurl", "fd::17"),
    ("remote.origin.uploadpack", "evil"),
    ("remote.origin.receivepack", "evil"),
    ("remote.origin.promisor", "true"),
    ("submodule.s.update", "!evil"),
    ("extensions.worktreeConfig", "true"),
    ("http.proxy", "http://evil"),
    ("protocol.ext.allow", "always"),
    ("trailer.x.cmd", "evil"),
    ("interactive.diffFilter", "evil"),
    ("lfs.customtransfer.x.path", "evil"),
]


@pytest.mark.parametrize(("key", "value"), CONFIGURED, ids=[key for key, _ in CONFIGURED])
def test_setting_that_runs_a_program_or_lies_is_noticed(repo: Path, trees: GitWorktrees, key: str, value: str) -> None:
    before = trees.shared_state()
    config(repo, key, value)
    section, _, rest = key.partition(".")
    middle, dot, last = rest.rpartition(".")
    assert compare_shared(before, trees.shared_state()) == (f"config:{section.lower()}.{middle}{dot}{last.lower()}",)


def hook(repo: Path) -> None:
    (repo / ".git/hooks/post-commit").write_text("#!/bin/sh\nevil\n")
    (repo / ".git/hooks/post-commit").chmod(0o755)


def linked_hook(repo: Path) -> None:
    (repo / ".git/hooks/pre-push").symlink_to("/bin/true")


def packed_replace(repo: Path) -> None:
    first = git(repo, "rev-parse", "HEAD")
    git(repo, "replace", commit_file(repo, "b.txt", "b\n"), first)
    git(repo, "pack-refs", "--all")


def worktree_setting(repo: Path) -> None:
    (repo / ".git/config.worktree").write_text("[core]\n\tfsmonitor = evil\n")


def continued_setting(repo: Path) -> None:
    with (repo / ".git/config").open("a") as file:
        file.write('[FILTER "x"]\n\tClean = \\\nevil ; comment\n')


def broken(repo: Path) -> None:
    with (repo / ".git/config").open("a") as file:
        file.write("[alias\n")


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (hook, ("hook:post-commit",)),
        (linked_hook, ("hook:pre-push",)),
        (lambda repo: (repo / ".git/info/attributes").write_text("* filter=x\n"), ("info/attributes",)),
        (lambda repo: (repo / ".git/info/grafts").write_text("x\n"), ("info/grafts",)),
        (lambda repo: (repo / ".git/objects/info/alternates").write_text("/x\n"), ("objects/info/alternates",)),
        (lambda repo: (repo / ".git/shallow").write_text(f"{'1' * 40}\n"), ("shallow",)),
        (worktree_setting, ("config.worktree:core.fsmonitor",)),
        (continued_setting, ("config:filter.x.clean",)),
        (broken, ("config:unreadable",)),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_file_that_runs_a_program_or_lies_is_noticed(
    repo: Path, trees: GitWorktrees, change: Callable[[Path], None], names: tuple[str, ...]
) -> None:
    before = trees.shared_state()
    change(repo)
    assert set(names) <= set(compare_shared(before, trees.shared_state()))


def test_replace_refs_are_noticed_loose_and_packed_alike(repo: Path, trees: GitWorktrees) -> None:
    first = git(repo, "rev-parse", "HEAD")
    second = commit_file(repo, "b.txt", "b\n")
    before = trees.shared_state()
    git(repo, "replace", second, first)
    loose = trees.shared_state()
    assert compare_shared(before, loose) == (f"refs/replace/{second}",)
    git(repo, "pack-refs", "--all")
    assert compare_shared(loose, trees.shared_state()) == ()


def test_change_of_a_hook_or_setting_is_noticed_and_its_undoing_too(repo: Path, trees: GitWorktrees) -> None:
    hook(repo)
    config(repo, "alias.st", "status")
    before = trees.shared_state()
    (repo / ".git/hooks/post-commit").write_text("#!/bin/sh\nother\n")
    config(repo, "alias.st", "!evil")
    assert compare_shared(before, trees.shared_state()) == ("config:alias.st", "hook:post-commit")
    (repo / ".git/hooks/post-commit").chmod(0o644)
    config(repo, "--unset", "alias.st")
    assert compare_shared(before, trees.shared_state()) == ("config:alias.st", "hook:post-commit")


def test_setting_in_another_worktree_is_noticed(repo: Path, root: str, trees: GitWorktrees) -> None:
    config(repo, "extensions.worktreeConfig", "true")
    made = trees.create("g1", "api", git(repo, "rev-parse", "HEAD"), root=root)
    before = trees.shared_state()
    git(made.path, "config", "--worktree", "core.fsmonitor", "evil")
    assert compare_shared(before, trees.shared_state()) == ("worktrees/api/config.worktree:core.fsmonitor",)


def test_settings_that_a_new_worktree_copies_from_the_root_are_no_change(
    repo: Path, root: str, trees: GitWorktrees
) -> None:
    config(repo, "extensions.worktreeConfig", "true")
    git(repo, "config", "--worktree", "core.editor", "vi")
    before = trees.shared_state()
    trees.create("g1", "api", git(repo, "rev-parse", "HEAD"), root=root)
    assert compare_shared(before, trees.shared_state()) == ()


def test_setting_and_hook_of_a_submodule_are_noticed_but_its_adding_is_not(repo: Path, tmp_path: Path) -> None:
    other = make_repo(tmp_path / "other")
    with GitWorktrees.open(str(repo)) as trees:
        before = trees.shared_state()
        git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
        assert compare_shared(before, trees.shared_state()) == ()
        config(repo / "sub", "core.fsmonitor", "evil")
        hooks = repo / ".git/modules/sub/hooks"
        (hooks / "post-checkout").write_text("#!/bin/sh\n")
        (hooks / "post-checkout").chmod(0o755)
        names = ("modules/sub/config:core.fsmonitor", "modules/sub/hook:post-checkout")
        assert compare_shared(before, trees.shared_state()) == names


def test_ordinary_work_of_the_user_is_no_change(repo: Path, root: str, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repo), "origin.git")
    with GitWorktrees.open(str(repo)) as trees:
        before = trees.shared_state()
        git(repo, "remote", "add", "origin", str(tmp_path / "origin.git"))
        git(repo, "checkout", "-q", "-b", "topic")
        commit_file(repo, "b.txt", "b\n")
        git(repo, "push", "-q", "-u", "origin", "topic")
        git(repo, "fetch", "-q")
        (repo / "README.md").write_text("x")
        git(repo, "stash", "push", "-q")
        git(repo, "tag", "v1")
        git(repo, "gc", "-q")
        config(repo, "user.email", "other@example.org")
        trees.create("g1", "api", git(repo, "rev-parse", "HEAD"), root=root)
        assert compare_shared(before, trees.shared_state()) == ()


def test_values_do_not_leave_as_text(repo: Path, trees: GitWorktrees) -> None:
    config(repo, "credential.helper", "!echo password=hunter2")
    assert "hunter2" not in str(trees.shared_state())


def test_unchanged_state_costs_no_process(
    repo: Path, trees: GitWorktrees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = trees.shared_state()
    calls = Calls(tmp_path, monkeypatch)
    assert trees.shared_state() == first
    assert calls.lines() == []


def test_comparison_names_added_removed_and_changed_sorted() -> None:
    before, after = {"a": "1", "b": "1", "c": "1"}, {"c": "2", "a": "1", "d": "1"}
    assert differences(before, after) == ("added: d", "changed: c", "removed: b")
