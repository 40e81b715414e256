"""Trust, the list of agents, and the doctor."""

import os
import pty
import subprocess
from pathlib import Path

from world import ONE_COMMIT, PROGRAM, World

PLAN = "id: plan\nsubtasks: [{id: a, spec: x, agent: local}]\n"
CONFIG = f"version: 1\nagents: {{local: {{adapter: generic, command: {ONE_COMMIT}}}}}\n"


def _untrusted(world: World) -> World:
    (world.root / ".coordinate-agents.yaml").write_text(CONFIG)
    return world


def test_a_repository_s_configuration_runs_nothing_until_it_is_trusted(world: World) -> None:
    _untrusted(world)
    done = world.run("run", world.graph(PLAN), "--json")
    assert (done.code, done.document["error"]["code"]) == (1, "CONFIG_UNTRUSTED")
    asked = world.run("setup-trust", "--json")
    assert (asked.code, asked.data["trusted"]) == (5, False)
    assert asked.data["asks"] == ["agents.local.adapter: generic", f"agents.local.command: {ONE_COMMIT}"]
    again = world.run("setup-trust", "--yes", "--digest", asked.data["digest"], "--json")
    assert (again.code, again.data["trusted"]) == (0, True)
    assert world.run("run", world.graph(PLAN)).code == 0


def test_trust_is_for_the_version_that_was_shown(world: World) -> None:
    _untrusted(world)
    shown = world.run("setup-trust", "--json").data["digest"]
    (world.root / ".coordinate-agents.yaml").write_text(CONFIG + "# changed\n")
    done = world.run("setup-trust", "--yes", "--digest", shown, "--json")
    assert (done.code, done.document["error"]["code"]) == (1, "CONFIG_UNTRUSTED")
    assert world.run("setup-trust", "--json").data["trusted"] is False


def test_on_a_terminal_the_question_is_asked_and_a_yes_trusts(world: World) -> None:
    _untrusted(world)
    assert "Not trusted" in _answered(world, b"n\n")
    assert world.run("setup-trust", "--json").data["trusted"] is False
    assert "is trusted as it is now" in _answered(world, b"y\n")
    assert world.run("setup-trust", "--json").data["trusted"] is True


def test_a_repository_without_configuration_has_nothing_to_trust(world: World) -> None:
    done = world.run("setup-trust")
    assert (done.code, done.err.splitlines()[0]) == (
        2,
        f"INVALID_AGENT_CONFIG: There is no .coordinate-agents.yaml in {world.root}, so there is nothing to trust.",
    )


def test_agents_are_listed_with_what_would_be_started(world: World) -> None:
    world.configure({"one": (ONE_COMMIT,), "lost": ("/nowhere/agent",)})
    data = world.run("setup-discover", "--json").data
    found = {each["agent"]: (each["command"], each["source"], each["configured"]) for each in data["agents"]}
    assert found["one"] == (str(ONE_COMMIT), "user", True)
    assert found["lost"] == (None, None, True)
    assert data["defaultAgent"] == "one"


def test_the_doctor_finds_nothing_wrong_in_a_good_place(world: World) -> None:
    done = world.run("doctor", "--json")
    assert done.code == 0, str(done)
    looked = {each["what"]: each["level"] for each in done.data["findings"]}
    wanted = ("git", "Python", "terminals", "open files", "sockets", "repository", "state folder", "state database")
    assert {name: looked[name] for name in wanted} == dict.fromkeys(wanted, "ok")
    assert looked["agent one"] == "ok"


def test_the_doctor_names_an_agent_that_cannot_be_started_and_fails(world: World) -> None:
    world.configure({"one": ("/nowhere/agent",)})
    done = world.run("doctor")
    assert done.code == 1
    assert "ERROR  agent one: " in done.out
    assert done.out.splitlines()[-1].endswith("1 error")


def test_the_doctor_tells_untrusted_configuration_and_lost_worktrees(world: World) -> None:
    plan = world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n")
    assert world.run("run", plan).code == 0
    worktree = Path(world.run("path", "plan", "a").out.strip())
    worktree.rename(worktree.with_name("elsewhere"))
    _untrusted(world)
    done = world.run("doctor", "--json")
    warned = {each["what"]: each["said"] for each in done.data["findings"] if each["level"] == "warn"}
    assert warned["worktrees"] == "1 recorded ones are gone (plan/a)"
    assert warned["trust"].startswith(".coordinate-agents.yaml sets agents.local.adapter")


def test_the_doctor_works_outside_a_repository(world: World, tmp_path: Path) -> None:
    done = subprocess.run(
        [PROGRAM, "doctor"], cwd=tmp_path, env=world.environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout
    assert f"WARN   repository: {tmp_path} is not inside one" in done.stdout


def test_a_damaged_database_is_an_error_of_the_doctor(world: World) -> None:
    world.run("create", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"))
    database = world.root / ".git" / "coordinate-agents" / "state.db"
    database.write_bytes(database.read_bytes()[:100])
    done = world.run("doctor", "--json")
    found = {each["what"]: each["level"] for each in done.data["findings"]}
    assert (done.code, found["state database"]) == (1, "error")


def _answered(world: World, answer: bytes) -> str:
    """What setup-trust shows on a terminal where this answer is typed."""
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [PROGRAM, "setup-trust"], cwd=world.root, env=world.environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(ours, 4096)
    os.write(ours, answer)
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:  # Linux: EIO when the other side closed
        pass
    done.wait(30)
    os.close(ours)
    return shown.decode()
