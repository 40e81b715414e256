"""An agent's service refuses: no attempt is spent, only that agent waits, and its conversation is taken up again."""

from typing import Any

import pytest
from world import World, git, until

pytestmark = pytest.mark.story

COMMIT = 'echo "$S" > "f-$S"; git add -A; git commit -q -m "work of $S"'


def configure(world: World, body: str, *more: str) -> None:
    """`limited` is a claude whose program is this shell text; `free` commits at once."""
    limited = world.agent(body, "limited")
    free = world.agent(f"{COMMIT}\n: > {world.place}/free-done", "free")
    world.configure_text(
        "\n".join(
            [
                "version: 1",
                "agents:",
                f"  limited: {{adapter: claude, command: {limited}}}",
                f"  free: {{adapter: generic, command: {free}}}",
                *more,
            ]
        )
    )


def by_id(data: Any) -> Any:
    return {subtask["id"]: subtask for subtask in data["subtasks"]}


def events(world: World, graph: str, kind: str) -> list[Any]:
    return [event for event in world.run("graph-events", graph, "--json").data["events"] if event["type"] == kind]


@pytest.mark.parametrize("exit_code", [1, 0])
def test_a_limit_costs_no_attempt_and_the_turn_is_opened_again_when_its_time_has_come(
    world: World, exit_code: int
) -> None:
    configure(
        world,
        f'echo "$@" >> {world.place}/calls-$S; cat > /dev/null\n'
        f"if [ ! -e {world.place}/was-$S ]; then : > {world.place}/was-$S\n"
        'echo "Claude AI usage limit reached|$(($(date +%s) + 2))"; '
        f"exit {exit_code}; fi\n"
        f"{COMMIT}",
    )
    plan = world.graph("subtasks: [{id: a, spec: x, agent: limited}, {id: b, spec: x, agent: free}]\n")
    done = world.run("graph-run", plan, "--json")
    assert done.code == 0, str(done)
    found = by_id(done.data)
    assert (found["a"]["state"], found["a"]["attempt"]) == ("SUCCEEDED", 1)
    first, second = (world.place / "calls-a").read_text().splitlines()
    assert first.split()[:-1] == ["-p", "--permission-mode", "acceptEdits", "--session-id"]
    assert second.split()[:-1] == ["-p", "--permission-mode", "acceptEdits", "--resume"]
    assert first.split()[-1] == second.split()[-1]
    phases = [event["data"] for event in events(world, "plan", "PhaseChanged")]
    assert [(each["phase"], each.get("can_go_on", False)) for each in phases] == [
        ("throttled", False),
        ("throttled", True),
        ("preparing", False),
    ]
    assert phases[0]["note"].startswith("QUOTA_EXHAUSTED: Claude AI usage limit reached|")


SCREEN = r"""
draw() { printf '\n\342\235\257 \n'; for n in 1 2 3 4 5 6 7 8 9 10 11 12; do printf '\342\224\200'; done
  printf '\n  ? for shortcuts\n'; }
prompt() { dd bs=1 count=1 > /dev/null 2>&1; timeout --foreground 1.5 cat > /dev/null || :; }
stty -icanon -echo; draw; prompt
if [ ! -e PLACE/was ]; then
  : > PLACE/was; printf "\n\342\227\217 You've hit your session limit \302\267 resets in 1s\n"; draw; prompt
fi
COMMIT; : > "$COORDINATE_AGENTS_SUBMIT_FILE"; draw; sleep 600
"""


def test_a_limit_that_a_program_that_stays_shows_on_its_screen_costs_no_attempt_either(world: World) -> None:
    program = world.agent(SCREEN.replace("PLACE", str(world.place)).replace("COMMIT", COMMIT), "stays")
    world.configure_text(f"version: 1\nagents: {{stays: {{adapter: claude, command: {program}, mode: interactive}}}}\n")
    done = world.run("graph-run", world.graph("subtasks: [{id: a, spec: x, agent: stays}]\n"), "--json")
    assert done.code == 0, str(done)
    assert by_id(done.data)["a"]["attempt"] == 1
    notes = [event["data"].get("note", "") for event in events(world, "plan", "PhaseChanged")]
    refused = [note for note in notes if note.startswith("QUOTA_EXHAUSTED: You've hit your session limit")]
    assert len(refused) == 1, notes
    assert git(world.root, "log", "--format=%s", "-1", "coordinate-agents/plan/a") == "work of a"
    # It stays for a next turn until its graph is cleaned up.
    assert world.run("session-close", "plan/a", "--now").code == 0


def test_a_limit_holds_only_its_agent_and_shows_when_it_goes_on(world: World) -> None:
    configure(
        world,
        "cat > /dev/null\n"
        f"echo $S >> {world.place}/started\n"
        f"[ -e {world.place}/open ] || {{ echo 'API Error: 429 rate_limit_error, retry after 3600'; exit 1; }}\n"
        f"{COMMIT}",
    )
    plan = world.graph(
        "maxConcurrency: 1\n"
        "subtasks: [{id: a, spec: x, agent: limited, priority: 5}, {id: b, spec: x, agent: limited},"
        " {id: c, spec: x, agent: free}]\n"
    )
    driver = world.start("graph-run", plan)
    try:
        until(lambda: (world.place / "free-done").exists() or None, "the free agent works meanwhile")
        until(lambda: by_id(world.status("plan"))["c"]["state"] == "SUCCEEDED" or None, "its work is verified")
        data = world.status("plan")
        found = by_id(data)
        assert (found["a"]["state"], found["a"]["phase"]) == ("RUNNING", "throttled")
        assert found["a"]["retryAt"] is not None
        assert "RATE_LIMITED: API Error: 429" in found["a"]["reason"]
        assert (found["b"]["state"], found["b"]["attempt"]) == ("READY", 0)
        assert [(item["subtask"], item["kind"]) for item in data["attention"]] == [("a", "quota")]
        assert (world.place / "started").read_text() == "a\n"
    finally:
        assert world.run("graph-stop", "plan").code == 0
        driver.wait(30)
    assert by_id(world.status("plan"))["a"]["state"] == "STOPPED"
    world.assert_nothing_left("plan")


def test_a_driver_that_comes_back_keeps_waiting_for_the_service(world: World) -> None:
    configure(
        world,
        "cat > /dev/null\n"
        f"echo $S >> {world.place}/started\n"
        f"if [ ! -e {world.place}/open ]; then : > {world.place}/open\n"
        "echo '429 rate_limit_error retry after 6'; exit 1; fi\n"
        f"{COMMIT}",
    )
    plan = world.graph("subtasks: [{id: a, spec: x, agent: limited}]\n")
    driver = world.start("graph-run", plan)
    until(lambda: (world.place / "open").exists() or None, "the agent ran")
    until(lambda: by_id(world.status("plan"))["a"]["phase"] == "throttled" or None, "it is throttled")
    driver.kill()
    driver.wait()
    done = world.run("graph-run", "plan", "--json")
    assert done.code == 0, str(done)
    assert (world.place / "started").read_text() == "a\na\n"
    assert by_id(done.data)["a"]["attempt"] == 1


def test_a_limit_that_lasts_longer_than_a_person_would_wait_ends_the_subtask(world: World) -> None:
    configure(world, "cat > /dev/null; echo 'API Error: 429 rate_limit_error, retry after 86400'; exit 1")
    plan = world.graph("subtasks: [{id: a, spec: x, agent: limited, inputTimeout: 1h, attempts: 3}]\n")
    done = world.run("graph-run", plan, "--json")
    assert done.code == 5, str(done)
    failure = by_id(done.data)["a"]["failure"]
    assert failure["code"] == "RATE_LIMITED"
    assert "refuses for longer than 1h: API Error: 429" in failure["message"]
    assert [item["kind"] for item in done.data["attention"]] == ["quota"]


def test_a_missing_login_is_told_as_such_and_not_tried_again(world: World) -> None:
    configure(
        world, f"cat > /dev/null; echo $S >> {world.place}/started; echo 'Not logged in · Please run /login'; exit 1"
    )
    plan = world.graph("subtasks: [{id: a, spec: x, agent: limited, attempts: 3}]\n")
    done = world.run("graph-run", plan, "--json")
    assert done.code == 5, str(done)
    failure = by_id(done.data)["a"]["failure"]
    assert failure["code"] == "AUTH_REQUIRED"
    assert "limited needs a login: Not logged in · Please run /login" in failure["message"]
    assert (world.place / "started").read_text() == "a\n"
    assert [item["kind"] for item in done.data["attention"]] == ["auth"]


def test_a_fix_turn_takes_up_the_agents_own_conversation(world: World) -> None:
    configure(
        world,
        f'echo "$@" >> {world.place}/calls; cat > /dev/null\n'
        'case "$*" in *--resume*) echo good > mark;; *) echo bad > mark;; esac; git add -A; git commit -qm turn',
    )
    plan = world.graph('checks: ["grep -q good mark"]\nsubtasks: [{id: a, spec: x, agent: limited}]\n')
    done = world.run("graph-run", plan, "--json")
    assert done.code == 0, str(done)
    first, second = (line.split() for line in (world.place / "calls").read_text().splitlines())
    assert (first[-2], second[-2]) == ("--session-id", "--resume")
    assert first[-1] == second[-1]
    branch = git(world.root, "log", "--format=%s", "coordinate-agents/plan/a", "-2")
    assert branch.splitlines() == ["turn", "turn"]
