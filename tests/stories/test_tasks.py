"""The single Task: work that goes to an agent, comes back, is reviewed, and goes to the same agent again."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from world import FIXTURES, PROGRAM, Done, World, git, until

pytestmark = pytest.mark.story

STAYS = FIXTURES / "agents" / "stays.py"
SUBMIT = f"'{PROGRAM}' evidence-submit 'added turn $TURN'"
ADDS = f'echo "turn $TURN" >> f; git add -A; git commit -q -m "turn $TURN"; {SUBMIT}'
LONG, AT_ONCE = "60s", "1ms"


@pytest.fixture
def world(world: World) -> Iterator[World]:
    """The world, whose Sessions are closed afterwards, whatever became of their Tasks."""
    yield world
    names = [graph["id"] for graph in world.run("graph-list", "--json").data["graphs"]]
    for name in names:
        world.run("graph-stop", name)
    world.assert_nothing_left(*names)


def stays(world: World, body: str, *more: str) -> None:
    """The agent is a program that stays, and runs the body in each turn; `$GATES` is where it waits."""
    script = world.place / "stays.sh"
    script.write_text(f"GATES={world.gates}\n{body}\n")
    lines = ["version: 1", "agents:", "  one:", "    adapter: generic", f"    command: {STAYS}"]
    world.configure_text("\n".join([*lines, "    mode: interactive", f"    args: [{script}]", *more]) + "\n")


def task(done: Done, code: int = 0) -> Any:
    assert done.code == code, str(done)
    return done.data["task"]


def create(world: World, *more: str, name: str = "job") -> Any:
    return task(world.run("task-create", "Add a line.", "--as", name, *more, "--json"))


def dispatch(world: World, name: str = "job", *, grace: str = LONG, code: int = 0) -> Any:
    done = world.run("task-dispatch", name, "--grace", grace, "--json")
    assert done.code == code, str(done)
    return done.data


def status(world: World, name: str = "job") -> Any:
    return task(world.run("task-status", name, "--json"))


def wait_for(world: World, state: str, name: str = "job") -> Any:
    """Wait for the end of what the driver in the background awaits."""
    waited = world.run("graph-wait", name, "--for", "task")
    found = status(world, name)
    assert found["state"] == state, str(waited)
    return found


def turns(world: World) -> list[tuple[str, str]]:
    """Turn of its process, and its pid, as the agent noted them."""
    return [(line[2], line[3]) for line in world.log_lines() if line[0] == "turn"]


def events(world: World, name: str = "job") -> list[str]:
    return [each["type"] for each in world.run("graph-events", name, "--json").data["events"]]


def test_a_task_goes_to_its_agent_and_back_twice_in_the_same_process(world: World) -> None:
    stays(world, ADDS)
    made = create(world, "--check", "test -f f")
    assert (made["state"], made["isolation"], made["sessionId"]) == ("SPEC_READY", "worktree", None)
    before = world.user_state()

    sent = dispatch(world)
    first = sent["task"]
    assert (first["state"], first["session"]["state"]) == ("REVIEWING", "idle")
    assert sent["dispatch"] == {
        "sent": "IMPLEMENT", "sessionId": "job.task.a1", "attempt": 1, "turn": 0, "reused": False, "adopted": False,
        "delivered": "true",
    }  # fmt: skip
    assert git(world.root, "show", f"{first['verifiedCommit']}:f") == "turn 1"

    shown = world.run("task-inspect", "job")
    assert (shown.code, "check test -f f: passed" in shown.out) == (0, True), str(shown)
    inspected = world.run("task-inspect", "job", "--json").data
    assert inspected["task"]["verifiedCommit"] == first["verifiedCommit"]
    assert inspected["document"]["spec"] == "Add a line."

    asked = world.run("task-review", "job", "--decision", "CHANGES_REQUESTED", "--feedback", "One more.", "--json")
    assert (task(asked)["state"], asked.data["decided"]["recorded"]) == ("CHANGES_REQUESTED", True)
    assert len(turns(world)) == 1, "a review writes nothing"

    again = dispatch(world)
    assert (again["dispatch"]["sent"], again["dispatch"]["reused"]) == ("CHANGES_REQUESTED", True)
    assert again["task"]["sessionId"] == first["sessionId"]
    assert [turn for turn, _ in turns(world)] == ["1", "2"]
    assert len({pid for _, pid in turns(world)}) == 1, "another process"

    approved = world.run("task-review", "job", "--decision", "REVIEW_APPROVED", "--json")
    assert (task(approved)["state"], approved.data["task"]["session"]["state"]) == ("APPROVED", "idle")
    assert approved.data["task"]["review"]["commit"] == again["task"]["verifiedCommit"]
    assert psutil.pid_exists(int(turns(world)[0][1])), "a review closes nothing"
    assert not world.run("task-review", "job", "--decision", "REVIEW_APPROVED", "--json").data["decided"]["recorded"]

    # The same store: the graph verbs see one succeeded subtask, and go on with it.
    assert world.run("graph-integrate", "job", "--json").data["graph"]["state"] == "INTEGRATED"
    assert status(world)["state"] == "APPROVED"
    refused = world.run("task-dispatch", "job", "--json")
    assert (refused.code, refused.document["error"]["code"]) == (1, "TASK_STATE_CONFLICT")
    assert world.user_state() == before


def test_a_dispatch_that_does_not_end_at_once_leaves_a_session_that_is_awaited_and_verified_by_itself(
    world: World,
) -> None:
    """The submission wakes who waits; a second dispatch is refused; two Tasks have a Session each."""
    stays(world, f'while [ ! -e "$GATES/go" ]; do sleep 0.02; done\n{ADDS}')
    create(world)
    sent = dispatch(world, grace=AT_ONCE)
    waiting = sent["task"]
    assert (waiting["state"], waiting["session"]["state"]) == ("WAITING_IMPLEMENTER", "busy")
    assert waiting["driver"] is not None
    assert "session-inspect job.task.a1" in waiting["next"]
    assert world.run("session-inspect", "job", "--json").data["session"]["id"] == waiting["sessionId"]
    refused = world.run("task-dispatch", "job", "--json")
    assert refused.document["error"]["code"] == "TASK_ALREADY_RUNNING"

    create(world, name="other")
    other = dispatch(world, "other", grace=AT_ONCE)["task"]
    assert other["sessionId"] != waiting["sessionId"]
    assert other["worktree"] != waiting["worktree"]

    (world.gates / "go").touch()
    assert wait_for(world, "REVIEWING")["verifiedCommit"]
    assert wait_for(world, "REVIEWING", "other")["verifiedCommit"]
    assert len(turns(world)) == 2


def test_a_stop_leaves_the_session_at_work_and_a_resume_awaits_it_again(world: World) -> None:
    stays(world, f'while [ ! -e "$GATES/go" ]; do sleep 0.02; done\n{ADDS}')
    create(world)
    dispatch(world, grace=AT_ONCE)
    until(lambda: turns(world) or None, "the agent has its prompt")
    done = world.run("task-stop", "job", "--reason", "lunch", "--json")
    stopped = task(done)
    assert done.data["stop"] == {"stopped": True, "session": "job.task.a1", "left": True}
    assert (stopped["state"], stopped["session"]["state"]) == ("STOPPED", "running")
    pid = int(turns(world)[0][1])
    assert psutil.pid_exists(pid)
    assert world.run("task-stop", "job", "--json").data["stop"]["stopped"] is False

    facts = world.run("recover-inspect", "job", "--json").data["graphs"][0]
    number = len(events(world))
    assert (facts["isTask"], facts["subtasks"][0]["session"]["liveness"]) == (True, "live")
    assert len(events(world)) == number, "facts only"

    resumed = world.run("task-resume", "job", "--json")
    assert (task(resumed)["state"], resumed.data["resume"]["adopted"]) == ("WAITING_IMPLEMENTER", True)
    (world.gates / "go").touch()
    assert wait_for(world, "REVIEWING")["sessionId"] == "job.task.a1"
    assert [turn for turn, _ in turns(world)] == ["1"]

    # Stopped for good: the graph verb closes what was left.
    assert task(world.run("task-stop", "job", "--json"))["state"] == "REVIEWING"
    assert psutil.pid_exists(pid)
    world.run("graph-stop", "job")
    until(lambda: not psutil.pid_exists(pid) or None, "the agent ends")
    assert status(world)["session"]["state"] == "exited"


def test_what_a_session_finished_after_a_stop_is_verified_by_the_resume(world: World) -> None:
    world.hold("task")
    create(world)
    dispatch(world, grace=AT_ONCE)
    world.wait_for_start("task")
    assert task(world.run("task-stop", "job", "--json"))["session"]["state"] == "running"
    world.release("task")
    until(lambda: status(world)["session"]["state"] == "exited" or None, "its end is seen")
    assert status(world)["state"] == "STOPPED"
    resumed = world.run("task-resume", "job", "--json")
    assert (task(resumed)["state"], resumed.data["resume"]["recorded"]) == ("REVIEWING", True)
    assert (resumed.data["task"]["sessionId"], resumed.data["task"]["attempt"]) == ("job.task.a1", 1)


def test_an_agent_that_exits_or_dies_is_a_fact_and_only_another_dispatch_replaces_it(world: World) -> None:
    agent = world.agent(
        'n=$(grep -c tried "$FAKE_LOG" || true); echo tried >> "$FAKE_LOG"\n'
        '[ "$n" = 0 ] && exit 7\n[ "$n" = 1 ] && kill -9 $$\necho x > f; git add -A; git commit -qm x\n'
    )
    world.configure({"one": (agent,)})
    create(world)
    failed = dispatch(world, code=4)["task"]
    assert (failed["state"], failed["failure"]["code"]) == ("ERROR", "AGENT_EXIT_NONZERO")
    assert failed["session"]["state"] == "exited"
    assert "task-inspect" in failed["next"]
    killed = dispatch(world, code=4)
    assert (killed["task"]["state"], killed["dispatch"]["attempt"]) == ("STOPPED", 2)
    assert task(world.run("task-resume", "job", "--json"))["state"] == "SPEC_READY"
    assert world.log.read_text().count("tried") == 2, "nothing was started"
    done = dispatch(world)
    assert (done["task"]["state"], done["dispatch"]["attempt"]) == ("REVIEWING", 3)


def test_a_driver_that_died_is_followed_by_another_one_on_resume(world: World) -> None:
    stays(world, f'while [ ! -e "$GATES/go" ]; do sleep 0.02; done\n{ADDS}')
    create(world, "--writes", "f", "--writes", "g/**")
    driver = dispatch(world, grace=AT_ONCE)["task"]["driver"]
    until(lambda: turns(world) or None, "the agent has its prompt")
    agent = psutil.Process(int(turns(world)[0][1])).environ()
    assert agent["COORDINATE_AGENTS_SCOPE"] == "f\ng/**"
    assert agent["COORDINATE_AGENTS_BRANCH"] == "coordinate-agents/job/task"
    os.kill(driver["pid"], signal.SIGKILL)
    until(lambda: status(world)["driver"] is None or None, "its driver is gone")
    assert "task-resume job" in status(world)["next"]
    resumed = world.run("task-resume", "job", "--json")
    assert (task(resumed)["state"], resumed.data["resume"]["watched"]) == ("WAITING_IMPLEMENTER", True)
    (world.gates / "go").touch()
    wait_for(world, "REVIEWING")
    assert len(turns(world)) == 1


def test_a_dispatch_that_died_is_recorded_as_an_interruption_and_dispatched_anew(world: World) -> None:
    create(world)
    world.run_dying("session.intended", "task-dispatch", "job")
    assert (status(world)["state"], status(world)["driver"]) == ("IMPLEMENTING", None)
    resumed = world.run("task-resume", "job", "--json")
    assert (task(resumed)["state"], resumed.data["resume"]["recorded"]) == ("STOPPED", True)
    assert world.log.read_text() == "", "nothing was started"
    done = dispatch(world)
    assert (done["task"]["state"], done["dispatch"]["attempt"]) == ("REVIEWING", 2)


def test_changes_reach_another_process_when_the_first_one_is_gone(world: World) -> None:
    stays(world, ADDS)
    create(world)
    first = dispatch(world)["task"]
    psutil.Process(int(turns(world)[0][1])).kill()
    until(lambda: status(world)["session"]["state"] == "exited" or None, "its end is seen")
    asked = world.run("task-review", "job", "--decision", "CHANGES_REQUESTED", "--feedback", "One more.", "--json")
    assert (task(asked)["state"], asked.data["task"]["session"]["state"]) == ("CHANGES_REQUESTED", "exited")
    again = dispatch(world)
    assert again["dispatch"]["reused"] is False
    assert again["task"]["sessionId"] != first["sessionId"]
    assert git(world.root, "show", f"{again['task']['verifiedCommit']}:f") == "turn 1\nturn 1"


def test_what_is_no_task_is_refused_and_what_can_do_it_is_named(world: World) -> None:
    world.configure({"one": (world.place / "missing",)})
    assert world.run("task-status", "--json").document["error"]["code"] == "TASK_NOT_FOUND"
    checkout = world.run("task-create", "x", "--isolation", "checkout", "--json")
    assert (checkout.code, checkout.document["error"]["code"]) == (1, "UNSUPPORTED_CAPABILITY")
    assert "nobody can tell an agent's changes from yours" in checkout.document["error"]["message"]
    assert world.run("graph-list", "--json").data["graphs"] == []

    world.run("create", world.graph("id: plan\nsubtasks: [{id: a, spec: x}, {id: b, spec: x}]\n"))
    for verb, instead in (("dispatch", "graph-run"), ("inspect", "graph-inspect"), ("stop", "graph-stop")):
        error = world.run(f"task-{verb}", "plan", "--json").document["error"]
        assert (error["code"], error["next"]) == ("TASK_STATE_CONFLICT", f"coordinate-agents {instead} plan")

    # A graph file with one subtask is a Task, whoever recorded it; its program is not there.
    world.run("create", world.graph("id: single\nsubtasks: [{id: only, title: Later}]\n", "single.yaml"))
    number = len(events(world, "single"))
    refused = world.run("task-dispatch", "--json")
    assert (refused.code, refused.document["error"]["code"]) == (1, "EXECUTABLE_NOT_FOUND")
    assert (status(world, "single")["state"], len(events(world, "single"))) == ("CREATED", number)
    world.run("graph-hold", "single")
    assert status(world, "single")["state"] == "PLANNING"
