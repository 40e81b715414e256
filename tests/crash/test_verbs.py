"""The verbs of one subtask's life end with SIGKILL at named points; the same words, said again, come to their end."""

import signal
from typing import Any

import pytest
from crashes import Dies, both_ways
from world import ONE_COMMIT, World, until

pytestmark = pytest.mark.story

ONE = "id: plan\nsubtasks: [{id: a, spec: x}]\n"
FLAKY = "id: plan\nsubtasks: [{id: a, spec: x, checks: [{name: flaky, run: ['false']}]}]\n"
# Its second attempt does the work.
SECOND = '[ "$COORDINATE_AGENTS_ATTEMPT" = 2 ]; echo x > f; git add f; git commit -qm f'
ACCEPT = ("graph-accept", "plan", "a", "--reason", "known flaky", "--waive", "flaky")


def _item(world: World) -> Any:
    return world.status("plan")["subtasks"][0]


def _events(world: World, name: str) -> list[Any]:
    return [event for event in world.run("graph-events", "plan", "--json").data["events"] if event["type"] == name]


def test_a_resume_that_died_is_done_once_by_saying_it_again(world: World) -> None:
    def story(world: World, dies: Dies) -> None:
        world.configure({"one": (world.agent(SECOND),)})
        assert world.run("graph-run", world.graph(ONE)).code == 4
        for point in ("lease.recorded", "store.append.inserted", "store.append.committed"):
            dies(point, "graph-resume", "plan", "a")
        assert world.run("graph-resume", "plan", "a").code == 0
        assert (_item(world)["state"], len(_events(world, "TaskReset"))) == ("READY", 1)
        assert world.run("graph-run", "plan").code == 0
        assert _item(world)["attempt"] == 2

    both_ways(world, story)


def test_an_acceptance_that_died_is_finished_by_saying_it_again(world: World) -> None:
    def story(world: World, dies: Dies) -> None:
        # Configured anew: its log is this world's.
        world.configure({"one": (ONE_COMMIT,)})
        assert world.run("graph-run", world.graph(FLAKY)).code == 4
        for point in ("store.append.committed", "check.ended", "verify.pinned", "verify.certified"):
            dies(point, *ACCEPT)
        done = world.run(*ACCEPT)
        assert done.code == 0, str(done)
        item = _item(world)
        assert (item["state"], item["attempt"], len(_events(world, "TaskJudged"))) == ("SUCCEEDED", 1, 2)
        assert item["evidence"]["waivers"] == [{"what": "check:flaky", "who": "user", "reason": "known flaky"}]

    both_ways(world, story)


@pytest.mark.parametrize("point", ["base.made", "worktree.created", "session.intended", "session.started"])
def test_a_dispatch_that_died_starts_one_agent_whoever_comes_next(world: World, point: str) -> None:
    def story(world: World, dies: Dies) -> None:
        assert world.run("graph-create", world.graph(ONE)).code == 0
        if dies(point, "graph-dispatch", "plan", "a"):
            again = world.run("graph-dispatch", "plan", "a", "--json")
            assert (again.code, again.document["error"]["code"]) == (1, "TASK_ALREADY_RUNNING"), str(again)
        done = world.run("graph-run", "plan")
        assert done.code == 0, str(done)
        assert [line[0] for line in world.log_lines()] == ["start", "end"]

    both_ways(world, story, name="dispatch")


def _is_held(world: World) -> bool:
    """Whether its Session's host lets its deadlines stand still."""
    return bool(world.run("session-status", "plan/a", "--json").data["session"]["held"])


@pytest.mark.parametrize("by", ["graph-hold", "graph-run"])
def test_a_hold_or_release_that_died_before_its_session_heard_of_it_is_told_by_who_comes_next(
    world: World, by: str
) -> None:
    """Saying it again, or a driver that comes; a stranger's deadline must neither run nor stand still for ever."""
    world.hold("a")
    # The agent runs, and no record says so yet.
    with world.dying_at("session.started"):
        run = world.start("graph-run", world.graph(ONE))
    world.wait_for_start("a")
    assert run.wait(30) == -signal.SIGKILL
    for verb, point, is_held in (("hold", "hold.recorded", True), ("release", "release.recorded", False)):
        world.run_dying(point, f"graph-{verb}", "plan", "a")
        assert _is_held(world) is not is_held
        if by == "graph-hold":
            assert "Nothing to do" in world.run(f"graph-{verb}", "plan", "a").out
            assert _is_held(world) is is_held
            continue
        driver = world.start("graph-run", "plan")
        until(lambda told=is_held: _is_held(world) is told or None, "the driver tells its Session")  # type: ignore[misc]
        if is_held:
            driver.kill()
            driver.wait(30)
    if by == "graph-hold":
        driver = world.start("graph-run", "plan")
    world.release("a")
    assert driver.wait(60) == 0, world.said()
    assert [line[0] for line in world.log_lines()] == ["start", "end"]
    world.assert_nothing_left("plan")


def test_a_release_whose_author_died_waiting_is_done_by_saying_it_again(world: World) -> None:
    world.hold("a")
    driver = world.start("graph-run", world.graph(ONE))
    world.wait_for_start("a")
    assert world.run("graph-hold", "plan", "a").code == 0
    world.run_dying("request.submitted", "graph-release", "plan", "a")
    assert world.run("graph-release", "plan", "a").code == 0
    assert not _is_held(world)
    world.release("a")
    assert driver.wait(60) == 0, world.said()
    world.assert_nothing_left("plan")


def test_words_that_died_with_their_author_are_said_once_to_the_next_prompt(world: World) -> None:
    prompts = world.place / "prompts"
    world.configure({"one": (world.agent(f'printf "%s\\n" "$1" >> {prompts}\n{SECOND}'),)})
    assert world.run("graph-run", world.graph(ONE)).code == 4
    world.run_dying("store.append.inserted", "graph-tell", "plan", "a", "use tabs")
    assert world.run("graph-tell", "plan", "a", "use tabs").code == 0
    assert world.run("graph-resume", "plan", "a", "--run").code == 0
    assert prompts.read_text().count("use tabs") == 1
