"""The view in textual's own test driver, on real graphs with real agents: what is shown, and that keys are verbs."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from world import World

from coordinate_agents.cli.invocation import Invocation
from coordinate_agents.cli.watch.app import WatchApp
from coordinate_agents.cli.watch.dialogs import Answer, Confirm, Given, Pages
from coordinate_agents.cli.watch.lines import Lines
from coordinate_agents.cli.wiring import open_runtime
from coordinate_agents.graph.operations.table import verb_named
from coordinate_agents.graph.runtime import Runtime

# Each key starts a process, on a machine that does other things, too.
SEEN_LIMIT_S = 60.0
BODY = """
case $S in
  ask) printf 'Allow this? [y/N] '; read -r a; [ "$a" = y ] || exit 1 ;;
  loud) printf 'at [red]work[/] \\033]0;title\\007\\n'; while [ ! -e {gates}/go ]; do sleep 0.02; done ;;
esac
echo "$S" > "f-$S"; git add -A; git commit -q -m "work of $S"
"""
PLAN = """\
id: plan
title: "A [bold]title[/] \\e[31m"
subtasks:
  - {id: ask, spec: x}
  - {id: bad, spec: x, checks: [[test, -f, missing]]}
  - {id: loud, spec: x}
  - {id: next, spec: x, dependsOn: ask}
"""


def _opener(root: Path) -> Callable[[], Runtime]:
    verb = verb_named("graph-watch")
    assert verb is not None

    def opened() -> Runtime:
        runtime = open_runtime(Invocation(verb, {"graph": "plan"}, str(root), True))
        assert runtime is not None
        return runtime

    return opened


def _watch(world: World, use: Callable[["Eyes"], Awaitable[None]]) -> None:
    async def run() -> None:
        app = WatchApp(_opener(world.root), "plan")
        async with app.run_test(size=(100, 40)) as pilot:
            await use(Eyes(app, pilot))

    asyncio.run(run())


class Eyes:
    """What a person sees, and the keys they press."""

    def __init__(self, app: WatchApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    def shown(self) -> str:
        found = self.app.screen.query(Lines).first() if self.app.screen.query(Lines) else Lines()
        return "\n".join(found.render_line(y).text.rstrip() for y in range(found.size.height))

    async def sees(self, *texts: str) -> str:
        """Wait until all of it is on the screen; the screen."""
        await self.until(lambda: all(text in self.shown() for text in texts), lambda: f"{texts} in\n{self.shown()}")
        return self.shown()

    async def opens(self, kind: type[Any]) -> None:
        await self.until(lambda: isinstance(self.app.screen, kind), lambda: f"{kind} instead of {self.app.screen}")

    async def until(self, condition: Callable[[], bool], what: Callable[[], str]) -> None:
        end = asyncio.get_running_loop().time() + SEEN_LIMIT_S
        while not condition():
            assert asyncio.get_running_loop().time() < end, f"not seen: {what()}"
            await self.pilot.pause(0.05)

    async def select(self, subtask: str) -> None:
        await self.pilot.press("home")
        while self.app.view.selected != subtask:
            await self.pilot.press("down")


@pytest.fixture
def plan(world: World, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The graph file; processes that the view starts have the world's environment."""
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    world.configure({"one": (world.agent(BODY.replace("{gates}", str(world.gates))),)})
    return world.graph(PLAN)


def test_a_day_with_the_view_from_a_question_to_the_end(world: World, plan: Path) -> None:
    driver = world.start("graph-run", plan)
    world_ends = world.gates / "go"

    async def use(eyes: Eyes) -> None:
        # Foreign text is text: no markup, no control sequence.
        shown = await eyes.sees("! input ask: Allow this? [y/N]", "! failed bad: ", "at [red]work[/]", "events")
        lines = shown.splitlines()
        assert lines[0] == r"plan: RUNNING  A [bold]title[/] \x1b[31m"
        assert lines[2].startswith("! input ask")
        assert f"driven by pid {driver.pid}" in lines[1]
        await _answers(eyes)
        await _asks_before_it_acts(eyes)
        await _shows_pages(eyes)
        world_ends.touch()
        await eyes.sees("plan: FAILED", "nobody drives it", "3 succeeded, 1 failed")
        await eyes.pilot.press("q")

    _watch(world, use)
    assert driver.wait(60) == 4


async def _answers(eyes: Eyes) -> None:
    await eyes.select("ask")
    await eyes.pilot.press("r")
    await eyes.opens(Answer)
    await eyes.sees("  Allow this? [y/N]", "y: allow")
    await eyes.pilot.press("y")
    await eyes.sees("ask: verified", "next: verified")
    await eyes.pilot.press("r")
    await eyes.sees("asks nothing")


async def _asks_before_it_acts(eyes: Eyes) -> None:
    await eyes.select("bad")
    await eyes.pilot.press("s")
    await eyes.opens(Confirm)
    await eyes.sees("coordinate-agents graph-stop plan bad")
    await eyes.pilot.press("q")  # anything but y is no, and not taken for the view's own key
    await eyes.sees("plan: RUNNING")
    await eyes.select("next")
    await eyes.pilot.press("h")
    await eyes.opens(Confirm)
    await eyes.pilot.press("y")
    await eyes.sees("TASK_STATE_CONFLICT: ")  # the same refusal as on the command line
    await eyes.select("loud")
    await eyes.pilot.press("h")
    await eyes.opens(Confirm)
    await eyes.pilot.press("y")
    await eyes.sees("Held: nothing starts", "[held by a person]")
    await eyes.pilot.press("l")
    await eyes.opens(Confirm)
    await eyes.pilot.press("y")
    await eyes.until(lambda: "[held by a person]" not in eyes.shown(), eyes.shown)


async def _shows_pages(eyes: Eyes) -> None:
    await eyes.pilot.press("f")
    shown = await eyes.sees("[attention: 1 of 4]")
    assert ("> bad" in shown, "loud  " in shown) == (True, False)
    await eyes.pilot.press("i")
    await eyes.opens(Pages)
    await eyes.sees("graph-resume plan bad")
    await eyes.pilot.press("q", "/", *"loud", "enter")
    await eyes.sees("> loud", "[loud: 1 of 4]")
    await eyes.pilot.press("question_mark")
    await eyes.sees("graph-hold")
    await eyes.pilot.resize_terminal(40, 12)
    await eyes.pilot.press("escape", "escape")
    await eyes.sees("> loud", "plan: RUNNING")


def test_a_driver_that_dies_is_shown_and_what_its_agent_leaves_is_verified(world: World, plan: Path) -> None:
    world.graph("id: plan\nsubtasks: [{id: loud, spec: x}]\n")
    driver = world.start("graph-run", plan)

    async def use(eyes: Eyes) -> None:
        await eyes.sees("working", "at [red]work[/]")
        driver.kill()
        driver.wait()
        await eyes.sees("nobody drives it; what ends is verified, nothing new starts (g drives on)")
        (world.gates / "go").touch()
        await eyes.sees("plan: SUCCEEDED", "loud: verified")

    _watch(world, use)


def test_a_record_that_goes_away_is_said_and_comes_back(world: World, plan: Path) -> None:
    assert world.run("graph-create", plan).code == 0
    state = world.root / ".git" / "coordinate-agents"

    async def use(eyes: Eyes) -> None:
        await eyes.sees("> ask", "plan: CREATED")
        state.rename(state.with_name("away"))
        await eyes.sees("> ask", "! not up to date: TASK_NOT_FOUND: ")
        state.with_name("away").rename(state)
        await eyes.sees("nobody drives it. Next: coordinate-agents graph-run plan")

    _watch(world, use)


@pytest.mark.parametrize(
    ("options", "answers", "keys", "given"),
    [
        ([], [], "y2", Given("option", "2")),  # a yes that nobody knows is no key here
        ([], ["allow", "deny"], "n", Given("deny", True)),
        ([], [], "t", Given("text", None)),
        ([("o-9", "Always"), ("o-7", "[b]Once[/b]")], [], "t92", Given("option", "o-7")),
    ],
)
def test_a_question_is_answered_with_what_it_offers(
    options: list[tuple[str, str]], answers: list[str], keys: str, given: Given
) -> None:
    offered = [{"id": id, "name": name, "kind": "other"} for id, name in options]
    question = {"kind": "permission", "text": "Run\n\nrm -rf?", "answers": answers, "options": offered}
    found: list[Given | None] = []

    async def run() -> None:
        app: App[None] = App()
        async with app.run_test(size=(60, 20)) as pilot:
            app.push_screen(Answer(question), found.append)
            await pilot.press(*keys)
            await pilot.pause()

    asyncio.run(run())
    assert found == [given]
