"""Agents that ask, start slowly, echo, or spin: what a person sees, and that nothing is answered by itself."""

import subprocess
from typing import Any

import pytest
from world import World, git, until

pytestmark = pytest.mark.story

COMMIT = 'echo "$S" > "f-$S"; git add -A; git commit -q -m "work of $S"'
# SE-01. What it reads is written down, so that a test sees what was typed.
ASKS = (
    'printf \'Do you trust this folder? [y/N] \'; read a; echo "$a" >> {place}/answers; [ "$a" = y ] || exit 1\n'
    + COMMIT
)


def only(data: Any) -> Any:
    (subtask,) = data["subtasks"]
    return subtask


def by_id(data: Any) -> Any:
    return {subtask["id"]: subtask for subtask in data["subtasks"]}


def configure(world: World, body: str, *more: str, adapter: str = "generic") -> None:
    program = world.agent(body)
    lines = ["version: 1", "agents:", "  one:", f"    adapter: {adapter}", f"    command: {program}", *more]
    world.configure_text("\n".join(lines) + "\n")


def phases(world: World, graph: str) -> list[Any]:
    found = world.run("graph-events", graph, "--json").data["events"]
    return [event["data"] for event in found if event["type"] == "PhaseChanged"]


def wait_for_phase(world: World, graph: str, subtask: str, phase: str) -> Any:
    def look() -> Any:
        done = world.run("graph-status", graph, "--json")
        if done.code not in (0, 4, 5) or not done.document["ok"]:
            return None
        found = by_id(done.data)[subtask]
        return done.data if found["phase"] == phase else None

    return until(look, f"{subtask} is {phase}")


def test_a_trust_question_is_shown_and_answered_by_a_person_alone(world: World) -> None:
    configure(world, ASKS.format(place=world.place))
    plan = world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n")
    driver = world.start("graph-run", plan)
    data = wait_for_phase(world, "plan", "a", "awaiting-input")
    subtask = only(data)
    assert (subtask["state"], subtask["session"]["state"]) == ("RUNNING", "awaiting-input")
    (item,) = data["attention"]
    assert (item["subtask"], item["kind"]) == ("a", "input")
    assert item["question"].endswith("Do you trust this folder? [y/N]")
    # What the attention names shows the screen, and what leads on from there.
    looked = world.run(*item["next"].split()[1:]).out.splitlines()
    assert looked[0] == "Do you trust this folder? [y/N]"
    assert "    coordinate-agents session-attach plan/a" in looked
    assert not (world.place / "answers").exists()
    written = world.run("session-write", "plan/a", "--keys", "y Enter", "--json")
    assert written.code == 0, str(written)
    assert driver.wait(60) == 0
    assert (world.place / "answers").read_text() == "y\n"
    assert only(world.status("plan"))["state"] == "SUCCEEDED"
    seen = [each["phase"] for each in phases(world, "plan")]
    assert (seen[0], seen[-1]) == ("awaiting-input", "working")
    world.assert_nothing_left("plan")


def test_a_question_that_nobody_answers_ends_at_its_deadline(world: World) -> None:
    configure(world, ASKS.format(place=world.place))
    plan = world.graph("subtasks: [{id: a, spec: x, inputTimeout: 1s, attempts: 3}]\n")
    done = world.run("graph-run", plan, "--json")
    assert done.code == 5, str(done)
    failure = only(done.data)["failure"]
    assert failure["code"] == "AWAITING_INPUT"
    assert "nobody answered in 1s" in failure["message"]
    assert "Do you trust this folder? [y/N]" in failure["message"]
    assert [item["kind"] for item in done.data["attention"]] == ["input"]
    assert not (world.place / "answers").exists()
    assert only(done.data)["attempt"] == 1
    world.assert_nothing_left("plan")


def test_the_time_to_answer_can_be_amended_while_a_question_stands(world: World) -> None:
    configure(world, ASKS.format(place=world.place))
    text = "id: plan\nsubtasks: [{id: a, spec: x}]\n"
    driver = world.start("graph-run", world.graph(text))
    wait_for_phase(world, "plan", "a", "awaiting-input")
    assert world.run("graph-amend", "plan", world.graph(text.replace("spec: x", "spec: x, inputTimeout: 1s"))).code == 0
    assert driver.wait(60) == 5
    assert "nobody answered in 1s" in only(world.status("plan"))["failure"]["message"]


@pytest.mark.parametrize("way", ["option", "CI"])
def test_a_question_ends_the_subtask_at_once_where_nobody_is_there(world: World, way: str) -> None:
    configure(world, ASKS.format(place=world.place))
    plan = world.graph("subtasks: [{id: a, spec: x}]\n")
    if way == "CI":
        world.environment["CI"] = "true"
    done = world.run("graph-run", plan, "--json", *(["--on-input", "fail"] if way == "option" else []))
    assert done.code == 5, str(done)
    assert only(done.data)["failure"]["code"] == "AWAITING_INPUT"
    assert "nobody is there to answer" in only(done.data)["failure"]["message"]


def test_a_login_screen_is_a_missing_login(world: World) -> None:
    configure(world, f"echo $S >> {world.place}/started; printf 'Username for service: '; read a; exit 1")
    plan = world.graph("subtasks: [{id: a, spec: x, attempts: 3}]\n")
    done = world.run("graph-run", plan, "--json")
    assert done.code == 5, str(done)
    failure = only(done.data)["failure"]
    assert (failure["code"], "Username for service:" in failure["message"]) == ("AUTH_REQUIRED", True)
    assert [item["kind"] for item in done.data["attention"]] == ["auth"]
    assert (world.place / "started").read_text() == "a\n"


def test_a_waiting_agent_gives_its_slot_to_another_and_goes_on_when_one_is_free(world: World) -> None:
    asks = ASKS.format(place=world.place)
    configure(
        world,
        f"if [ $S = a ]; then {asks}\nelse : > {world.place}/$S-runs; "
        f"while [ ! -e {world.gates}/$S ]; do sleep 0.02; done; {COMMIT}; fi",
    )
    plan = world.graph(
        "id: plan\nmaxConcurrency: 1\nsubtasks: [{id: a, spec: x, priority: 5}, {id: b, spec: x}, {id: c, spec: x}]\n"
    )
    driver = world.start("graph-run", plan)
    until(lambda: (world.place / "b-runs").exists() or None, "b has the slot that a gave back")
    assert by_id(world.status("plan"))["a"]["phase"] == "awaiting-input"
    assert world.run("session-write", "plan/a", "--keys", "y Enter").code == 0
    until(lambda: (world.place / "answers").exists() or None, "a was answered")
    until(lambda: any(each.get("can_go_on") for each in phases(world, "plan")) or None, "a wants its slot back")
    assert by_id(world.status("plan"))["a"]["phase"] == "awaiting-input", "b has the only slot"
    (world.gates / "b").touch()
    until(lambda: by_id(world.status("plan"))["a"]["state"] == "SUCCEEDED" or None, "a goes before c")
    (world.gates / "c").touch()
    assert driver.wait(60) == 0
    order = [
        (event["type"], event["subtaskId"])
        for event in world.run("graph-events", "plan", "--json").data["events"]
        if event["type"] in ("TaskJudged", "TaskClaimed")
    ]
    assert order.index(("TaskJudged", "a")) > order.index(("TaskJudged", "b"))
    assert order.index(("TaskClaimed", "c")) > order.index(("TaskJudged", "a"))


def test_a_driver_that_comes_back_still_shows_the_question(world: World) -> None:
    configure(world, ASKS.format(place=world.place))
    plan = world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n")
    driver = world.start("graph-run", plan)
    wait_for_phase(world, "plan", "a", "awaiting-input")
    driver.kill()
    driver.wait()
    again = world.start("graph-run", "plan")
    until(lambda: world.status("plan")["graph"]["driver"], "it is driven again")
    assert only(wait_for_phase(world, "plan", "a", "awaiting-input"))["attempt"] == 1
    assert world.run("session-write", "plan/a", "--keys", "y Enter").code == 0
    assert again.wait(60) == 0
    assert (world.place / "answers").read_text() == "y\n"


def test_words_of_completion_in_the_prompt_complete_nothing(world: World) -> None:
    # SE-05: the terminal echoes the prompt.
    configure(world, "cat > /dev/null & sleep 30", "    mode: interactive")
    plan = world.graph(
        "id: plan\nsubtasks: [{id: a, spec: When finished print the line SUBTASK_COMPLETE, timeout: 4s}]\n"
    )
    done = world.run("graph-run", plan, "--json")
    assert done.code == 4, str(done)
    assert only(done.data)["failure"]["code"] == "AGENT_TIMEOUT"


def test_a_program_that_stays_gets_its_prompt_once_and_is_idle_when_it_submitted(world: World) -> None:
    # SE-03: nothing is typed before it reads lines; what was typed before is thrown away.
    configure(
        world,
        'python3 -c "import time, termios, sys; time.sleep(1); termios.tcflush(0, termios.TCIFLUSH)"\n'
        f"IFS= read -r first; printf '%s\\n' \"$first\" > {world.place}/first\n"
        f"{COMMIT}; echo 'made the file' > \"$COORDINATE_AGENTS_SUBMIT_FILE\"; echo submitted\n"
        "cat > /dev/null",
        "    mode: interactive",
    )
    plan = world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n")
    done = world.run("graph-run", plan, "--json")
    assert done.code == 0, str(done)
    assert git(world.root, "show", f"{only(done.data)['verifiedCommit']}:f-a") == "a"
    assert (world.place / "first").read_text().strip()
    assert only(done.data)["session"]["state"] == "idle"
    assert world.run("graph-stop", "plan").code == 0
    world.assert_nothing_left("plan")


@pytest.mark.parametrize("question", ["Update now? [y/N] ", "Do you trust this folder? [y/N] "])
def test_a_prompt_is_no_answer_to_what_a_program_that_stays_asks_first(world: World, question: str) -> None:
    configure(
        world,
        f"printf '{question}'; IFS= read -r a; printf '%s\\n' \"$a\" > {world.place}/answer\n"
        f"printf '> '; IFS= read -r first; printf '%s\\n' \"$first\" > {world.place}/first\n"
        f'{COMMIT}; : > "$COORDINATE_AGENTS_SUBMIT_FILE"; cat > /dev/null',
        "    mode: interactive",
    )
    driver = world.start("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"))
    wait_for_phase(world, "plan", "a", "awaiting-input")
    # Longer than a program that is silent is waited for before its prompt is typed.
    with pytest.raises(subprocess.TimeoutExpired):
        driver.wait(4)
    assert not (world.place / "answer").exists()
    assert world.run("session-answer", "plan/a", "--text", "n").code == 0
    assert driver.wait(60) == 0, world.said()
    assert (world.place / "answer").read_text() == "n\n"
    assert (world.place / "first").read_text().strip()
    assert world.run("graph-stop", "plan").code == 0
    world.assert_nothing_left("plan")


def test_a_spinner_without_progress_is_shown_as_stalled_and_not_ended(world: World) -> None:
    # SE-15.
    spins = "while [ ! -e $FAKE_GATES/{} ]; do printf '\\r⠋ 0 tokens'; sleep 0.1; done; "
    configure(world, f"{spins.format('go')} echo 'it goes on'; {spins.format('end')} {COMMIT}")
    plan = world.graph("id: plan\nsubtasks: [{id: a, spec: x, idleTimeout: 1s}]\n")
    driver = world.start("graph-run", plan)

    def seen(word: str) -> Any:
        done = world.run("graph-events", "plan", "--json")
        return (done.code == 0 and word in [event["type"] for event in done.data["events"]]) or None

    until(lambda: seen("TurnStalled"), "the graph knows that it is stalled")
    subtask = only(world.status("plan"))
    assert (subtask["state"], subtask["reason"][:43]) == ("RUNNING", "stalled: its agent has said nothing new, se")
    assert world.run("session-status", "plan/a", "--json").data["session"]["stalled"] is True
    assert "stalled" in world.run("graph-why", "plan", "a").out
    (world.gates / "go").touch()
    until(lambda: seen("TurnWentOn"), "the graph knows that it goes on")
    (world.gates / "end").touch()
    assert driver.wait(60) == 0


@pytest.mark.parametrize(
    ("spec", "said"),
    [("x" * 140_000, "prompt too long for argument delivery (limit 131071)")],
)
def test_a_prompt_that_cannot_arrive_whole_starts_nothing_and_frees_the_slot(
    world: World, spec: str, said: str
) -> None:
    # SE-13.
    configure(world, COMMIT, '    args: ["-p", "{prompt}"]')
    plan = world.graph(f"maxConcurrency: 1\nsubtasks: [{{id: a, spec: {spec}, priority: 1}}, {{id: b, spec: y}}]\n")
    done = world.run("graph-run", plan, "--json")
    found = by_id(done.data)
    assert found["a"]["failure"]["code"] == "SPAWN_FAILED"
    assert said in found["a"]["failure"]["message"]
    assert found["b"]["state"] == "SUCCEEDED"
