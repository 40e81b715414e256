"""Which file says what, and that a repository's configuration does nothing before its user trusts it."""

import os
from pathlib import Path

import pytest

from coordinate_agents.cli import config, trust_store
from coordinate_agents.graph.config import Command
from coordinate_agents.graph.errors import GraphError

PROJECT = """\
defaultAgent: backend
agents:
  backend: {command: ./tools/agent.sh, env: {KEY: "hidden value"}}
  harmless: {mode: interactive}
setup: [[npm, ci]]
worktreeRoot: ../trees
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "repo"
    made.mkdir()
    return made


def _write_user(text: str) -> Path:
    path = config.user_config_path()
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_without_files_everything_is_default_and_trusted(root: Path) -> None:
    loaded = config.load(root)
    assert (loaded.config.agents, loaded.sources, loaded.project_digest, loaded.is_trusted) == ((), {}, None, True)
    config.require_trust(loaded)


def test_untrusted_project_names_programs_that_are_not_used(root: Path) -> None:
    (root / ".coordinate-agents.yaml").write_text(PROJECT)
    _write_user("agents: {backend: {command: /usr/bin/mine}}\n")
    loaded = config.load(root)
    assert loaded.inert == ("agents.backend.command", "agents.backend.env", "setup", "worktreeRoot")
    assert loaded.config.setup == ()
    assert loaded.config.worktree_root is None
    backend = loaded.config.agent("backend")
    assert backend is not None
    assert (backend.command, backend.env) == ("/usr/bin/mine", None)
    assert loaded.config.default_agent == "backend"
    with pytest.raises(GraphError) as raised:
        config.require_trust(loaded)
    assert raised.value.code == "CONFIG_UNTRUSTED"
    assert raised.value.next == f"coordinate-agents setup-trust --root {root}"
    assert str(raised.value) == (
        ".coordinate-agents.yaml sets agents.backend.command, agents.backend.env, setup, worktreeRoot, and this "
        "version of the file is not trusted. A repository's configuration runs nothing until its user has looked at it."
    )


def test_trusted_project_is_in_force_with_paths_against_the_root(root: Path) -> None:
    project = root / ".coordinate-agents.yaml"
    project.write_text(PROJECT)
    user = _write_user("agents: {backend: {command: /usr/bin/mine, args: [x]}}\ncopy: [.env]\n")
    loaded = config.trust(root)
    config.require_trust(loaded)
    assert loaded == config.load(root)
    backend = loaded.config.agent("backend")
    assert backend is not None
    assert (backend.command, backend.args) == (f"{root}/tools/agent.sh", ("x",))
    assert loaded.config.setup == (Command(("npm", "ci")),)
    assert loaded.config.worktree_root == str(root.parent / "trees")
    assert loaded.sources == {
        "agents.backend.args": str(user),
        "agents.backend.command": str(project),
        "agents.backend.env": str(project),
        "agents.harmless.mode": str(project),
        "copy": str(user),
        "defaultAgent": str(project),
        "setup": str(project),
        "worktreeRoot": str(project),
    }


def test_changed_file_loses_its_trust_and_gets_it_back_with_its_content(root: Path) -> None:
    path = root / ".coordinate-agents.yaml"
    path.write_text(PROJECT)
    config.trust(root)
    path.write_text(PROJECT + "# a comment\n")
    assert not config.load(root).is_trusted
    path.write_text(PROJECT)
    assert config.load(root).is_trusted


def test_same_file_in_another_repository_is_not_trusted(root: Path, tmp_path: Path) -> None:
    (root / ".coordinate-agents.yaml").write_text(PROJECT)
    config.trust(root)
    other = tmp_path / "other"
    other.mkdir()
    (other / ".coordinate-agents.yaml").write_text(PROJECT)
    assert not config.load(other).is_trusted


def test_root_through_a_symbolic_link_is_the_same_root(root: Path, tmp_path: Path) -> None:
    (root / ".coordinate-agents.yaml").write_text(PROJECT)
    config.trust(root)
    (tmp_path / "link").symlink_to(root)
    assert config.load(tmp_path / "link").is_trusted


def test_file_that_changed_after_it_was_shown_is_not_trusted(root: Path) -> None:
    path = root / ".coordinate-agents.yaml"
    path.write_text(PROJECT)
    shown = config.load(root)
    path.write_text(PROJECT + "teardown: [[rm, -r, x]]\n")
    with pytest.raises(GraphError) as raised:
        config.trust(root, digest=shown.project_digest)
    assert raised.value.code == "CONFIG_UNTRUSTED"
    assert not config.load(root).is_trusted


def test_trust_without_a_file_says_so(root: Path) -> None:
    with pytest.raises(GraphError) as raised:
        config.trust(root)
    assert raised.value.code == "INVALID_AGENT_CONFIG"


def test_project_of_harmless_keys_needs_no_trust(root: Path) -> None:
    (root / ".coordinate-agents.yaml").write_text("defaultAgent: codex\nports: {base: 3000, size: 5}\n")
    config.require_trust(config.load(root))


def test_what_is_to_be_trusted_is_shown_without_values_of_variables(root: Path) -> None:
    (root / ".coordinate-agents.yaml").write_text(PROJECT)
    assert config.trust_lines(config.load(root)) == (
        f"agents.backend.command: {root}/tools/agent.sh",
        "agents.backend.env: KEY",
        "setup: [npm ci]",
        f"worktreeRoot: {root.parent}/trees",
    )


def test_invalid_project_file_is_named_with_line_and_column(root: Path) -> None:
    (root / ".coordinate-agents.yaml").write_text("agents:\n  a: {comand: x}\n")
    with pytest.raises(GraphError) as raised:
        config.load(root)
    assert str(raised.value) == (
        ".coordinate-agents.yaml:2:7: unknown key 'comand': did you mean 'command'? "
        "(a key of your own begins with 'x-')"
    )


@pytest.mark.parametrize("kind", ["folder", "pipe", "unreadable"])
def test_file_that_cannot_be_read_is_an_error_and_never_ignored(root: Path, kind: str) -> None:
    path = root / ".coordinate-agents.yaml"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path)
    with pytest.raises(GraphError) as raised:
        config.load(root)
    assert raised.value.code == "INVALID_AGENT_CONFIG"
    assert str(path) in str(raised.value)


def test_trust_store_is_private_and_outside_the_repository(root: Path) -> None:
    (root / ".coordinate-agents.yaml").write_text(PROJECT)
    config.trust(root)
    config.trust(root)
    folder = trust_store.trust_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(list(folder.iterdir())) == 1
    assert [path.name for path in root.iterdir()] == [".coordinate-agents.yaml"]


def test_trust_that_cannot_be_recorded_is_an_error(root: Path) -> None:
    (root / ".coordinate-agents.yaml").write_text(PROJECT)
    folder = trust_store.trust_folder()
    folder.parent.mkdir(parents=True)
    folder.write_text("in the way")
    with pytest.raises(GraphError) as raised:
        config.trust(root)
    assert raised.value.code == "CONFIG_UNTRUSTED"
    assert not config.load(root).is_trusted


def test_relative_xdg_folders_are_ignored(monkeypatch: pytest.MonkeyPatch, isolation: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "here")
    monkeypatch.setenv("XDG_STATE_HOME", "here")
    assert config.user_config_path() == isolation / ".config" / "coordinate-agents" / "config.yaml"
    assert trust_store.trust_folder() == isolation / ".local" / "state" / "coordinate-agents" / "trust"
