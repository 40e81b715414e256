"""setup-configure writes a whole, valid file that starts what was asked for, or leaves the old one as it was."""

import os
from pathlib import Path

import pytest
from repos import make_repo

from coordinate_agents.cli import config
from coordinate_agents.cli.setup import configure
from coordinate_agents.cli.setup.configure import Request
from coordinate_agents.cli.wiring import scratch_runtime
from coordinate_agents.graph.config import Config
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.runtime import Runtime

KEPT = "# mine\nversion: 1\nagents:\n  old: {command: /bin/true}  # stays\n"


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    return scratch_runtime(make_repo(tmp_path / "checkout"), Config())


def _user_file(text: str) -> Path:
    path = config.user_config_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_an_agent_is_written_and_would_be_started(runtime: Runtime) -> None:
    path = _user_file(KEPT)
    path.chmod(0o640)
    data = configure.execute(
        runtime, Request(agent="shell", adapter="generic", command="/bin/sh", arg=("-c", "true"), env=("LEVEL=2",))
    ).data
    assert path.read_text() == KEPT + (
        '  shell:\n    adapter: generic\n    command: /bin/sh\n    args: ["-c", "true"]\n    env: {LEVEL: "2"}\n'
    )
    assert path.stat().st_mode & 0o777 == 0o640
    assert (data["changed"], data["commentsKept"], data["trusted"]) == (True, True, True)
    assert data["agent"]["command"] == os.path.realpath("/bin/sh")
    assert {name: field["source"] for name, field in data["agent"]["fields"].items()} == {
        "adapter": "user",
        "command": "user",
        "args": "user",
        "mode": "adapter generic",
        "delivery": "adapter generic",
        "driver": "adapter generic",
        "permissions": "adapter generic",
        "commit": "adapter generic",
        "env": "user",
    }


def test_a_program_that_is_not_there_rolls_the_file_back(runtime: Runtime) -> None:
    path = _user_file(KEPT)
    with pytest.raises(GraphError) as raised:
        configure.execute(runtime, Request(agent="new", command="/nowhere/agent"))
    assert raised.value.code == "EXECUTABLE_NOT_FOUND"
    assert raised.value.kept == f"{path} as it was: the change was rolled back"
    assert path.read_text() == KEPT
    assert list(path.parent.iterdir()) == [path]


def test_a_first_file_that_fails_is_not_left_behind(runtime: Runtime) -> None:
    with pytest.raises(GraphError):
        configure.execute(runtime, Request(agent="new", command="/nowhere/agent"))
    assert list(config.user_config_path().parent.iterdir()) == []


def test_what_would_not_be_valid_is_refused_before_anything_is_written(runtime: Runtime) -> None:
    path = _user_file(KEPT)
    before = path.stat()
    with pytest.raises(GraphError) as raised:
        configure.execute(runtime, Request(agent="new", command="/bin/true", arg=("{nonsense}",)))
    assert raised.value.code in ("INVALID_AGENT_CONFIG", "INVALID_ADAPTER_CONFIG")
    assert path.read_text() == KEPT
    assert path.stat().st_ino == before.st_ino or path.read_text() == KEPT


def test_a_broken_file_is_told_and_left_alone(runtime: Runtime) -> None:
    path = _user_file("version: 1\nagents: [\n")
    with pytest.raises(GraphError) as raised:
        configure.execute(runtime, Request(agent="new", command="/bin/true"))
    assert raised.value.code == "INVALID_AGENT_CONFIG"
    assert path.read_text() == "version: 1\nagents: [\n"


def test_a_dry_run_shows_the_change_and_makes_none(runtime: Runtime) -> None:
    path = _user_file(KEPT)
    data = configure.execute(runtime, Request(agent="new", command="/nowhere/agent", dry_run=True)).data
    assert data["diff"][3:] == [" version: 1", " agents:", "   old: {command: /bin/true}  # stays",
                                "+  new:", "+    command: /nowhere/agent"]  # fmt: skip
    assert (data["changed"], path.read_text()) == (False, KEPT)


def test_a_secret_in_the_environment_is_written_and_not_shown(runtime: Runtime) -> None:
    path = _user_file(KEPT)
    secret = "hunter2-very-secret"
    data = configure.execute(runtime, Request(agent="old", env=(f"API_TOKEN={secret}",))).data
    assert secret in path.read_text()
    assert secret not in str(data)


def test_a_link_to_the_file_stays_a_link(runtime: Runtime, tmp_path: Path) -> None:
    path = _user_file("")
    path.unlink()
    real = tmp_path / "dotfiles.yaml"
    real.write_text(KEPT)
    path.symlink_to(real)
    configure.execute(runtime, Request(agent="old", permissions="deny"))
    assert path.is_symlink()
    assert "permissions: deny" in real.read_text()


def test_the_project_s_file_stays_trusted_when_it_was(runtime: Runtime) -> None:
    data = configure.execute(runtime, Request(agent="mine", command="/bin/true", project=True)).data
    assert data["file"] == str(runtime.root / ".coordinate-agents.yaml")
    assert config.load(runtime.root).is_trusted
    assert data["agent"]["fields"]["command"] == {"value": "/bin/true", "source": "project"}


def test_a_project_s_file_that_was_not_trusted_does_not_become_so(runtime: Runtime) -> None:
    (runtime.root / ".coordinate-agents.yaml").write_text("version: 1\nagents: {evil: {command: /bin/false}}\n")
    data = configure.execute(runtime, Request(agent="mine", command="/bin/true", project=True)).data
    assert (data["changed"], data["trusted"]) == (True, False)
    assert not config.load(runtime.root).is_trusted


def test_an_agent_is_removed(runtime: Runtime) -> None:
    path = _user_file(KEPT)
    data = configure.execute(runtime, Request(agent="old", remove=True)).data
    assert (path.read_text(), data["agent"]) == ("# mine\nversion: 1\nagents:\n", None)


def test_a_default_agent_that_nobody_knows_is_rolled_back(runtime: Runtime) -> None:
    path = _user_file(KEPT)
    with pytest.raises(GraphError) as raised:
        configure.execute(runtime, Request(default_agent="nobody"))
    assert raised.value.code == "INVALID_AGENT_CONFIG"
    assert path.read_text() == KEPT


@pytest.mark.parametrize(
    "request_",
    [
        Request(),
        Request(command="/bin/true"),
        Request(agent="a"),
        Request(agent="a", remove=True, command="b"),
        Request(agent="a", command="b", project=True, user=True),
        Request(agent="a", env=("NO_VALUE",)),
    ],
)
def test_words_that_do_not_fit_together_are_refused(runtime: Runtime, request_: Request) -> None:
    with pytest.raises(GraphError) as raised:
        configure.execute(runtime, request_)
    assert raised.value.code == "INVALID_USAGE"
    assert not config.user_config_path().exists()


def test_outside_a_repository_there_is_only_the_user_s_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GraphError) as raised:
        configure.execute(None, Request(agent="a", command="/bin/true", project=True))
    assert raised.value.code == "NOT_A_REPOSITORY"
    assert configure.execute(None, Request(agent="a", command="/bin/true")).data["changed"]


def test_inside_an_agent_nothing_is_configured(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COORDINATE_AGENTS_SESSION", "x.y.a1")
    with pytest.raises(GraphError) as raised:
        configure.execute(runtime, Request(agent="a", command="/bin/true"))
    assert raised.value.code == "AGENT_MAY_NOT"
