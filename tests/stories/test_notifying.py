"""Coming back from lunch: a command of the user's tells what needs them, once, and never disturbs the run."""

import json
from pathlib import Path

import pytest
from world import ONE_COMMIT, World, until

pytestmark = pytest.mark.story

TELL = (
    'printf "%s|%s|%s|%s|%s\\n" "$COORDINATE_AGENTS_EVENT" "$COORDINATE_AGENTS_KIND" "$COORDINATE_AGENTS_SUBTASK"'
    ' "$COORDINATE_AGENTS_QUESTION" "$COORDINATE_AGENTS_NEXT" >> "$TOLD"'
)


def told(world: World) -> list[list[str]]:
    """[event, kind, subtask, question, next] of every notification, in order."""
    path = world.place / "told"
    return [line.split("|") for line in path.read_text().splitlines()] if path.exists() else []


def configured(world: World, agent: Path, *notify: tuple[list[str], list[str]]) -> str:
    lines = ["version: 1", "defaultAgent: one", "agents:", "  one:", "    adapter: generic", f"    command: {agent}"]
    lines += ["notify:", *(f"  - {{on: {json.dumps(on)}, run: {json.dumps(run)}}}" for on, run in notify)]
    return "\n".join(lines) + "\n"


def notified(world: World, agent: Path, body: str = TELL, on: tuple[str, ...] = ("attention", "ended")) -> Path:
    program = world.agent(body.replace('S="$COORDINATE_AGENTS_SUBTASK"\n', ""), "notify")
    world.environment["TOLD"] = str(world.place / "told")
    world.configure_text(configured(world, agent, (list(on), [str(program), "--said"])))
    return program


def test_a_failure_and_the_end_are_told_once_each_with_what_to_do_next(world: World) -> None:
    notified(world, world.agent('test "$S" != a; echo x > "f-$S"; git add -A; git commit -q -m x'))
    before = world.user_state()
    plan = "id: plan\nsubtasks: [{id: a, spec: x}, {id: b, spec: x}]\n"
    assert world.run("graph-run", world.graph(plan)).code == 4
    failed, ended = told(world)
    assert failed[:3] == ["attention", "failed", "a"]
    assert "exited 1" in failed[3]
    assert failed[4].startswith("coordinate-agents graph-inspect plan a")
    assert ended == ["ended", "ended", "", "1 succeeded, 1 failed", "coordinate-agents graph-status plan"]
    assert world.user_state() == before
    assert world.run("graph-status", "plan").code == 0
    assert len(told(world)) == 2
    world.assert_nothing_left("plan")


def test_a_question_is_told_while_the_agent_waits_and_only_to_who_asked_for_that(world: World) -> None:
    asks = world.agent(
        'printf "Overwrite f-$S? [y/n] "; read answer; echo "$answer" > "f-$S"; git add -A; git commit -q -m x'
    )
    notified(world, asks, on=("attention",))
    driver = world.start("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"))
    until(lambda: told(world) or None, "the question is told")
    assert told(world)[0][:3] == ["attention", "input", "a"]
    assert "Overwrite f-a?" in told(world)[0][3]
    assert world.run("session-answer", "plan/a", "--text", "y").code == 0
    assert driver.wait(60) == 0
    assert len(told(world)) == 1
    world.assert_nothing_left("plan")


@pytest.mark.parametrize(
    "body", ["exit 3", "kill -9 $$", 'if read line; then echo read >> "$TOLD"; fi; exec sleep 600']
)
def test_a_notification_that_fails_dies_or_hangs_changes_nothing_of_the_run(world: World, body: str) -> None:
    notified(world, ONE_COMMIT, body, on=("ended",))
    done = world.run("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"))
    assert done.code == 0, str(done)
    assert "the notification" in done.err
    assert "failed" in done.err
    assert told(world) == [], "its standard input is empty"
    world.assert_nothing_left("plan")


def test_a_program_that_is_nowhere_is_said_and_the_run_goes_on(world: World) -> None:
    world.configure_text(configured(world, ONE_COMMIT, (["ended"], ["no-such-program"])))
    done = world.run("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"))
    assert done.code == 0, str(done)
    assert "the notification 'no-such-program' failed" in done.err


def test_a_repositorys_own_notification_runs_nothing_before_it_is_trusted(world: World) -> None:
    program = world.agent(TELL, "notify")
    world.environment["TOLD"] = str(world.place / "told")
    own = world.root / ".coordinate-agents.yaml"
    own.write_text(f"version: 1\nnotify:\n  - {{on: [ended], run: [{json.dumps(str(program))}]}}\n")
    plan = world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n")
    done = world.run("graph-run", plan, "--json")
    assert done.document["error"]["code"] == "CONFIG_UNTRUSTED"
    assert told(world) == []
    assert world.run("setup-trust", "--yes").code == 0
    assert world.run("graph-run", plan).code == 0
    assert [each[:2] for each in told(world)] == [["ended", "ended"]]


def test_a_detached_driver_tells_too(world: World) -> None:
    notified(world, ONE_COMMIT)
    assert world.run("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"), "--detach").code == 0
    until(lambda: told(world) or None, "the end is told")
    assert [each[:2] for each in told(world)] == [["ended", "ended"]]
    assert world.run("graph-wait", "plan", "--timeout", "30s").code == 0
