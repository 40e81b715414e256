"""The completion scripts work in their shells, and offer what the store holds without changing it."""

import shutil
import subprocess
from pathlib import Path

import pytest
from world import World

SHELLS = ("bash", "zsh", "fish", "powershell")


@pytest.fixture
def world(tmp_path: Path, isolation: Path) -> World:
    told = World(tmp_path, isolation)
    text = "id: plan\nsubtasks: [{id: api, spec: Do it.}, {id: apt, spec: x}, {id: ui, spec: x}]\n"
    assert told.run("graph-create", told.graph(text)).code == 0
    return told


def completed(world: World, *words: str) -> list[str]:
    """What bash offers for the last word."""
    script = world.run("completion", "bash")
    assert script.code == 0, str(script)
    quoted = " ".join(f"'{word}'" for word in words)
    ask = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _coordinate_agents_completion coordinate-agents"
    done = subprocess.run(
        ["bash", "-c", f'eval "$1"; {ask}; printf "%s\\n" "${{COMPREPLY[@]}}"', "-", script.out],
        cwd=world.root,
        env=world.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.split()


def test_verbs_options_choices_and_ids_are_offered(world: World) -> None:
    before = (world.root / ".git" / "coordinate-agents" / "state.db").read_bytes()
    assert completed(world, "cag", "graph-st") == ["graph-stop", "graph-status"]
    assert completed(world, "cag", "status", "") == ["plan"]
    assert completed(world, "cag", "inspect", "plan", "ap") == ["api", "apt"]
    assert completed(world, "cag", "inspect", "plan", "--part", "s") == ["screen"]
    assert completed(world, "cag", "session-read", "plan/u") == ["plan/ui"]
    assert completed(world, "cag", "run", "plan", "--until", "u") == ["ui"]
    assert (world.root / ".git" / "coordinate-agents" / "state.db").read_bytes() == before


def test_where_there_is_nothing_to_offer_there_is_no_error(world: World) -> None:
    assert completed(world, "cag", "status", "nothing") == []
    assert completed(world, "cag", "--root", "/", "status", "") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_has_a_script_for_both_names_that_it_can_read(world: World, shell: str) -> None:
    done = world.run("completion", shell)
    assert done.code == 0, str(done)
    assert "coordinate-agents" in done.out
    assert "cag" in done.out
    program = shutil.which({"powershell": "pwsh"}.get(shell, shell))
    if program is not None and shell != "powershell":
        subprocess.run([program, "-n"], input=done.out, text=True, check=True, timeout=60)


def test_a_shell_that_is_not_known_is_bad_usage(world: World) -> None:
    assert world.run("completion", "tcsh").code == 2
    world.environment["SHELL"] = "/bin/tcsh"
    assert world.run("completion").code == 2
    world.environment["SHELL"] = "/bin/bash"
    assert world.run("completion").out.startswith("_coordinate_agents_completion()")
