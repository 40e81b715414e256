"""evidence-submit: taken from inside the Session whose work it is, and from nowhere else."""

import json
import subprocess
import sys

from world import FIXTURES, PROGRAM, World, until

PLAN = "id: plan\nsubtasks: [{id: a, spec: x}]\n"
COMMIT = 'echo "$S" >"f-$S"; git add -A; git commit -qm "work of $S"\n'


def test_an_agent_submits_from_its_session_and_its_words_are_kept_as_unverified(world: World) -> None:
    said = world.place / "said"
    agent = world.agent(f"{COMMIT}'{PROGRAM}' evidence-submit 'Added the file.' --json >'{said}'")
    world.configure({"one": (agent,)})
    run = world.start("run", world.graph(PLAN))
    assert run.wait(60) == 0
    answer = json.loads(said.read_text())
    session = world.status("plan")["subtasks"][0]["session"]["id"]
    assert answer == {
        "ok": True,
        "command": "evidence-submit",
        "data": {
            "taskId": "plan", "subtaskId": "a", "attempt": 1, "sessionId": session,
            "submitted": True, "summaryCut": False, "driver": run.pid,
        },
    }  # fmt: skip
    assert world.status("plan")["subtasks"][0]["summary"] == "Added the file."


def test_a_long_summary_is_cut_and_the_answer_says_so(world: World) -> None:
    said = world.place / "said"
    agent = world.agent(
        f"{COMMIT}'{PROGRAM}' evidence-submit \"$(head -c 5000 /dev/zero | tr '\\0' w)\" --json >'{said}'"
    )
    world.configure({"one": (agent,)})
    assert world.run("run", world.graph(PLAN)).code == 0
    assert json.loads(said.read_text())["data"]["summaryCut"] is True
    assert world.status("plan")["subtasks"][0]["summary"] == "w" * 2048


def test_an_agent_submits_over_mcp_though_its_server_got_none_of_its_variables(world: World) -> None:
    program = PROGRAM.with_name("coordinate-agents-mcp")
    agent = FIXTURES / "mcp" / "submitting_agent.py"
    world.configure({"one": (sys.executable, agent, program, json.dumps({"summary": "Over MCP."}))})
    done = world.run("run", world.graph(PLAN), "--json")
    assert done.code == 0, str(done)
    assert done.data["subtasks"][0]["summary"] == "Over MCP."


def test_an_agent_that_submits_for_another_subtask_or_attempt_may_not(world: World) -> None:
    said = world.place / "said"
    tries = "".join(
        f"'{PROGRAM}' evidence-submit done {words} --json >>'{said}' || true\n"
        for words in ("--graph other", "--subtask b", "--attempt 2")
    )
    world.configure({"one": (world.agent(tries + COMMIT),)})
    assert world.run("run", world.graph(PLAN)).code == 0
    errors = [json.loads(line)["error"] for line in said.read_text().splitlines()]
    session = world.status("plan")["subtasks"][0]["session"]["id"]
    works = f"Session {session} works for attempt 1 of plan/a, not for"
    assert [error["code"] for error in errors] == ["AGENT_MAY_NOT"] * 3
    for error, what in zip(errors, ("graph other", "subtask b", "attempt 2"), strict=True):
        assert f"{works} {what}" in error["message"]
    assert world.status("plan")["subtasks"][0]["summary"] is None


def test_variables_of_a_session_are_worth_nothing_outside_its_process_tree(world: World) -> None:
    stolen = world.place / "stolen"
    gate = world.gates / "go"
    world.configure({"one": (world.agent(f"env >'{stolen}.new'; mv '{stolen}.new' '{stolen}'\n"
                                         f"until [ -e '{gate}' ]; do sleep 0.05; done\n{COMMIT}"),)})  # fmt: skip
    run = world.start("run", world.graph(PLAN))
    until(lambda: stolen.exists() or None, "the agent runs")
    pairs = dict(line.split("=", 1) for line in stolen.read_text().splitlines() if "=" in line)
    ours = {name: value for name, value in pairs.items() if name.startswith("COORDINATE_AGENTS_")}
    done = subprocess.run(
        [PROGRAM, "evidence-submit", "stolen", "--json"],
        cwd=world.root, env=world.environment | ours, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "AGENT_MAY_NOT"
    gate.touch()
    assert run.wait(timeout=60) == 0
    assert world.status("plan")["subtasks"][0]["summary"] is None


def test_a_session_that_works_for_no_subtask_has_nothing_to_submit(world: World) -> None:
    said = world.place / "said"
    words = f"'{PROGRAM}' evidence-submit done --json >'{said}.new'; mv '{said}.new' '{said}'"
    world.configure({"one": ("/bin/sh", "-c", words)})
    world.run("session-open")
    until(lambda: said.exists() or None, "it answered")
    error = json.loads(said.read_text())["error"]
    assert error["code"] == "AGENT_MAY_NOT"
    assert "works for no subtask of a graph" in error["message"]


def test_outside_every_session_nothing_is_submitted(world: World) -> None:
    done = world.run("evidence-submit", "done", "--json")
    assert done.code == 1
    error = done.document["error"]
    assert error["code"] == "AGENT_MAY_NOT"
    assert "COORDINATE_AGENTS_SUBMIT_FILE" in error["next"]


def test_a_program_that_stays_ends_each_of_its_turns_by_submitting(world: World) -> None:
    """The second turn is the fix turn of the same process; what it submits is the summary."""
    script = world.place / "stays.sh"
    script.write_text(
        'S="$COORDINATE_AGENTS_SUBTASK"\n'
        'echo "turn $TURN" >>"f-$S"; git add -A; git commit -qm "turn $TURN"\n'
        f"'{PROGRAM}' evidence-submit \"turn $TURN is done\"\n"
    )
    world.configure_text(
        "version: 1\nagents:\n  one:\n    adapter: generic\n"
        f"    command: {FIXTURES / 'agents' / 'stays.py'}\n    mode: interactive\n    args: [{script}]\n"
    )
    plan = world.graph(PLAN + "checks: [[sh, -c, \"grep -q 'turn 2' f-a\"]]\n")
    assert world.run("run", plan).code == 0
    subtask = world.status("plan")["subtasks"][0]
    assert (subtask["state"], subtask["attempt"], subtask["summary"]) == ("SUCCEEDED", 1, "turn 2 is done")
    world.run("graph-stop", "plan")
    world.assert_nothing_left("plan")
