"""Agents that speak the Agent Client Protocol: one process over all turns, and nothing they say is proof."""

import json
import os
import shlex
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from world import FIXTURES, World, git, until

pytestmark = pytest.mark.story

SPEAKS = FIXTURES / "agents" / "speaks.py"
NOTE = "S = os.environ.get('COORDINATE_AGENTS_SUBTASK', '-'); note('turn', S, turn, os.getpid(), len(history))\n"
# Each turn adds a line of its own; the check wants two.
ADDS = "shell(f\"echo 'turn {turn}' >> f-{S}; git add -A; git commit -qm 'turn {turn}'\"); say('added')"
WANTS_TWO = "checks: [[sh, -c, \"grep -q 'turn 2' f-*\"]]\n"


@pytest.fixture
def world(world: World) -> Iterator[World]:
    """The world, in which whatever an agent left idle is stopped afterwards."""
    yield world
    world.run("graph-stop", "plan")
    world.assert_nothing_left("plan")


def configure(world: World, body: str, **env: str) -> None:
    store = world.place / "store"
    store.mkdir(exist_ok=True)
    env = {"ACP_STORE": str(store), "ACP_SCRIPT": NOTE + body, **env}
    agent = {"adapter": "acp", "command": str(SPEAKS), "env": env}
    world.configure_text(json.dumps({"version": 1, "agents": {"one": agent}}))


def only(data: Any) -> Any:
    (subtask,) = data["subtasks"]
    return subtask


def turns(world: World) -> list[list[str]]:
    """What the agents noted: [subtask, turn of its process, pid, earlier prompts of its session]."""
    return [line[1:] for line in world.log_lines() if line[0] == "turn"]


def session_state(world: World) -> Any:
    return world.run("session-status", "plan/a", "--json").data["session"]["state"]


def events(world: World, *types: str) -> list[Any]:
    found = world.run("graph-events", "plan", "--json").data["events"]
    return [event["data"] for event in found if event["type"] in types]


def test_a_fix_turn_goes_to_the_same_process_which_is_idle_afterwards(world: World) -> None:
    configure(world, ADDS)
    plan = world.graph(f"id: plan\n{WANTS_TWO}subtasks: [{{id: a, spec: Add the lines.}}]\n")
    done = world.run("graph-run", plan, "--json")
    assert done.code == 0, str(done)
    subtask = only(done.data)
    assert (subtask["state"], subtask["attempt"]) == ("SUCCEEDED", 1)
    assert git(world.root, "show", f"{subtask['verifiedCommit']}:f-a") == "turn 1\nturn 2"
    first, second = turns(world)
    assert (first[:2], second[:2], first[2]) == (["a", "1"], ["a", "2"], second[2])
    ended = events(world, "TurnEnded")
    assert [(each["cause"], each["stays"]) for each in ended] == [("turn-ended", True)] * 2
    assert {each["external_session"] for each in ended} == {f"session-{first[2]}"}
    session = world.run("session-status", "plan/a", "--json").data["session"]
    assert (session["state"], session["driver"]) == ("idle", "acp")
    assert session["conversation"]["turn"] == {"id": "t1", "state": "ended", "stopReason": "end_turn", "doing": None}
    inspected = world.run("session-inspect", "plan/a", "--json").data
    assert [(each["turnId"], each["event"], each["text"]) for each in inspected["events"]] == [
        (None, "process_started", ""),
        ("t0", "external_session_id", f"session-{first[2]}"),
        ("t0", "completed", "end_turn"),
        ("t1", "completed", "end_turn"),
    ]
    assert (inspected["turn"]["id"], inspected["turn"]["pending"]) == ("t1", [])
    assert "t1 completed end_turn" in world.run("session-inspect", "plan/a").out
    assert "added" in world.run("session-read", "plan/a").out
    # Configured anew, another process gets the next turn, and takes the session of the first one up.
    configure(world, f"note('alive', os.path.exists('/proc/{first[2]}'))\n{ADDS}", LEVEL="2")
    assert world.run("graph-amend", "plan", plan).code == 0
    review = ("graph-review", "plan", "a", "--decision", "CHANGES_REQUESTED", "--feedback", "One line more.")
    assert world.run(*review).code == 0
    done = world.run("graph-run", "plan", "--json")
    assert only(done.data)["state"] == "SUCCEEDED", str(done)
    third = turns(world)[2]
    assert (third[0], third[1], third[3]) == ("a", "1", "2")
    assert [line for line in world.log_lines() if line[0] == "alive"] == [["alive", "False"]], "two at once"
    assert events(world, "SessionStarting")[-1]["why"] == "one is configured anew"
    assert [each["session"] for each in events(world, "SessionClosed")] == [session["id"]]


# What an agent does -> the code of its subtask's failure, and what its message says.
USELESS = {
    "refuses": ("stop = 'refusal'", "AGENT_EXIT_NONZERO", "one refused the work, no commit"),
    "boasts": ("say('I did it all.')", "EVIDENCE_REJECTED", ""),
    "login": (
        "error = {'code': -32000, 'message': 'log in first'}",
        "AUTH_REQUIRED",
        "one needs a login: log in first",
    ),
    "asks": ("say('Invalid API key · Please run /login')", "AUTH_REQUIRED", "Please run /login"),
    # As some do after a "no" to what they asked; nobody stopped it.
    "gives-up": ("stop = 'cancelled'", "EVIDENCE_REJECTED", ""),
    "leaves": ("sys.exit(0)", "AGENT_EXIT_NONZERO", "the turn of one failed: the agent ended with exit code 0"),
    "floods": ("say('x' * 17_000_000)", "SESSION_NOT_HEALTHY", "a line of more than 16 MiB"),
}


# It says the same as one that was refused, but it worked; of the tokens nobody knows what they are of.
WORKS = """\
shell('echo x > f')
update(sessionUpdate='usage_update', used=1, size=2, cost={'amount': 0.25, 'currency': 'USD'})
say('Please run /login')
more = {'usage': {'inputTokens': 1, 'outputTokens': 2}}
"""


def test_no_end_of_a_turn_is_success_without_work(world: World) -> None:
    script = "".join(f"\nif S == {name!r}:\n    {body}" for name, (body, _, _) in USELESS.items())
    configure(world, f"{script}\nif S == 'works':\n" + "".join(f"    {line}\n" for line in WORKS.splitlines()))
    subtasks = [{"id": name, "spec": "x", "fixTurns": 0} for name in ("works", *USELESS)]
    plan = world.graph(json.dumps({"id": "plan", "maxConcurrency": len(subtasks), "subtasks": subtasks}))
    assert world.run("graph-run", plan).code == 5
    found = {each["id"]: each for each in world.status("plan")["subtasks"]}
    assert found["works"]["state"] == "SUCCEEDED"
    assert found["works"]["usage"]["costUsd"] == 0.25
    assert found["works"]["usage"]["inputTokens"] is None
    failures = {name: found[name]["failure"] for name in USELESS}
    assert {name: failure["code"] for name, failure in failures.items()} == {
        name: code for name, (_, code, _) in USELESS.items()
    }
    for name, (_, _, said) in USELESS.items():
        assert said in failures[name]["message"]


def test_a_permission_is_shown_answered_and_seen_by_the_agent_while_nobody_drives(world: World) -> None:
    configure(world, "permission('git commit', 'allow_once', 'reject_once')\nsay(str(answers()))\n" + ADDS)
    plan = world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n")
    run = world.start("graph-run", plan)
    try:

        def asked() -> Any:
            found = world.run("session-status", "plan/a", "--json")
            return (found.code == 0 and found.data["session"]["question"]) or None

        question = until(asked, "it asks")
        options = [each["id"] for each in question["options"]]
        assert (options, question["answers"]) == (["allow_once", "reject_once"], ["allow", "deny"])
        until(lambda: world.status("plan")["attention"] or None, "the graph knows")
        status = world.status("plan")
        assert (only(status)["phase"], status["attention"][0]["kind"]) == ("awaiting-input", "input")
        asked_words = "git commit [allow_once (allow once), reject_once (reject once)]"
        assert status["attention"][0]["question"] == asked_words
        run.kill()
        run.wait()
        wrong = world.run("session-answer", "plan/a", "--option", "perhaps", "--json")
        assert wrong.document["error"]["code"] == "UNSUPPORTED_CAPABILITY"
        program, *answer = [*shlex.split(status["attention"][0]["ways"][1]["command"]), "--json"]
        assert (program, question["request"] in answer) == ("coordinate-agents", True)
        assert world.run(*answer).data["delivered"] == "true"
        assert world.run(*answer).document["error"]["code"] == "SESSION_STATE_CONFLICT"
    finally:
        run.kill()
    until(lambda: session_state(world) == "idle" or None, "its turn is over")
    assert "'reject_once')]" in world.run("session-read", "plan/a").out
    # The next driver sees the end of the turn, and begins none.
    assert world.run("graph-recover", "plan").code == 0
    assert only(world.status("plan"))["state"] == "SUCCEEDED"
    assert len(turns(world)) == 1


# "cut" is cancelled and lies about it; "dead" is killed; both only in their first turn.
INTERRUPTED = """
first = not (Path(os.environ['FAKE_LOG']).parent / S).exists()
(Path(os.environ['FAKE_LOG']).parent / S).touch()
if first and S == 'cut':
    wait_for_cancel()
elif first:
    time.sleep(600)
"""


def test_a_cancelled_turn_and_a_killed_agent_are_gone_on_with_in_their_own_sessions(world: World) -> None:
    configure(world, INTERRUPTED + ADDS)
    plan = world.graph("id: plan\nsubtasks: [{id: cut, spec: All of it.}, {id: dead, spec: All of it.}]\n")
    run = world.start("graph-run", plan)
    try:
        began = until(
            lambda: {each[0]: each for each in turns(world)} if len(turns(world)) == 2 else None, "both begin"
        )
        until(lambda: (world.place / "dead").exists() or None, "it sleeps")
        assert world.run("session-interrupt", "plan/cut").code == 0
        os.kill(int(began["dead"][2]), signal.SIGKILL)
        assert run.wait(timeout=60) == 4, world.said()
    finally:
        run.kill()
    found = {each["id"]: each for each in world.status("plan")["subtasks"]}
    # It committed after it was cancelled, and said end_turn.
    cut = found["cut"]
    assert (cut["state"], cut["reason"], cut["verifiedCommit"]) == ("STOPPED", "its turn was cancelled", None)
    assert found["dead"]["reason"] == "interrupted: one was killed by signal 9"
    assert sorted(each["cause"] for each in events(world, "TurnEnded")) == ["cancelled", "exit"]
    assert world.run("graph-resume", "plan", "cut").code == 0
    done = world.run("graph-run", "plan", "--json")
    assert done.code == 0, str(done)
    sessions = {name: world.run("session-status", f"plan/{name}", "--json").data["session"] for name in ("cut", "dead")}
    assert sessions["cut"]["resumed"] is True
    assert [each[3] for each in turns(world) if each[0] == "cut"] == ["0", "1"], "its session was not loaded"
    # The other one never answered, so it stored nothing: it begins afresh, visibly, and its prompt stands alone.
    assert (sessions["dead"]["resumed"], sessions["dead"]["conversation"]["notResumed"]) == (
        False,
        "the agent could not take it up: no such session",
    )


def test_a_driver_that_an_agent_cannot_have_is_refused_when_the_graph_is_created(world: World) -> None:
    world.configure_text(json.dumps({"version": 1, "agents": {"one": {"adapter": "aider", "driver": "acp"}}}))
    plan = world.graph("id: plan\nsubtasks: [{id: a, spec: x, agent: one}]\n")
    refused = world.run("graph-create", plan, "--json")
    assert refused.document["error"]["code"] == "UNSUPPORTED_CAPABILITY", str(refused)
    opened = world.run("session-open", "--agent", "one", "--json")
    assert opened.document["error"]["code"] == "UNSUPPORTED_CAPABILITY"
    configure(world, "say('you said ' + prompt)")
    assert world.run("graph-create", plan).code == 0
    # A Session that is opened by hand takes whole prompts.
    opened = world.run("session-open", "--agent", "one", "--say", "hello", "--json").data
    session = opened["session"]["id"]
    read = world.run("session-read", session, "--wait", "5s")
    until(lambda: "you said hello" in world.run("session-read", session).out or None, f"it answers: {read}")
    assert world.run("session-open", "--agent", "one", "--json").data["reused"] is True
    assert world.run("session-close", session).code == 0
