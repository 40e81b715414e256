"""Inside an agent only verbs that read work: noticed by variables, and by ancestors when the variables are gone."""

import subprocess
from pathlib import Path

import pytest
from world import PROGRAM, World

PLAN = "id: plan\nsubtasks: [{id: a, spec: x}]\n"


@pytest.mark.parametrize("words", [("create",), ("run",), ("stop",), ("integrate",), ("setup-trust",)])
def test_a_verb_that_writes_is_refused_inside_a_session(world: World, words: tuple[str, ...]) -> None:
    world.environment["COORDINATE_AGENTS_SESSION"] = "plan.a.a1"
    plan = [world.graph(PLAN)] if words[0] in ("create", "run") else []
    done = world.run(*words, *plan, "--json")
    assert done.code == 1
    error = done.document["error"]
    assert error["code"] == "AGENT_MAY_NOT"
    assert "COORDINATE_AGENTS_SESSION is set" in error["message"]
    assert not (world.root / ".git" / "coordinate-agents").exists()


@pytest.mark.parametrize("words", [("list",), ("doctor",), ("init",), ("setup-discover",)])
def test_verbs_that_read_work_inside_a_session(world: World, words: tuple[str, ...]) -> None:
    world.environment["COORDINATE_AGENTS_SESSION"] = "plan.a.a1"
    assert world.run(*words).code == 0


def test_an_agent_that_cleans_its_environment_is_known_by_its_ancestors(world: World) -> None:
    plan = world.graph(PLAN)
    clean = f"env -u COORDINATE_AGENTS_SESSION '{PROGRAM}' create '{plan}' --json; exit $?"
    done = subprocess.run(
        ["sh", "-c", clean],
        cwd=world.root,
        env=world.environment | {"COORDINATE_AGENTS_SESSION": "plan.a.a1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "belongs to a Session" in done.stdout


def test_an_agent_of_a_run_cannot_start_another_run(world: World, tmp_path: Path) -> None:
    said = tmp_path / "said"
    agent = tmp_path / "agent.sh"
    agent.write_text(f"#!/bin/sh\n'{PROGRAM}' run --spec more --json >'{said}' 2>&1\nexit 3\n")
    agent.chmod(0o755)
    world.configure({"one": (agent,)})
    assert world.run("run", world.graph(PLAN)).code == 4
    assert '"code": "AGENT_MAY_NOT"' in said.read_text()
