"""The view on a real terminal: it starts, shows, is left, and the terminal is as it was before."""

import os
import signal
import sys
import termios
from collections.abc import Callable, Iterator

import pytest
from person import Person
from world import PROGRAM, World

from coordinate_agents.sessions.screen import render

PLAN = "id: plan\ntitle: Wide 测试\nsubtasks: [{id: a, spec: x}, {id: b, spec: x, dependsOn: a}]\n"
# As if the extra had not been installed.
WITHOUT = "import sys; sys.modules['textual'] = None; from coordinate_agents.cli.main import main; main()"
# A bug in what draws.
BROKEN = (
    "import coordinate_agents.cli.watch.drawing as d, sys; d._header = lambda view: 1 / 0; "
    "from coordinate_agents.cli.main import main; main()"
)
PYTHON = (sys.executable, "-P", "-c")


@pytest.fixture
def watching(world: World) -> Iterator[Callable[..., Person]]:
    """Somebody who calls graph-watch, in one way or another."""
    assert world.run("graph-create", world.graph(PLAN)).code == 0
    made: list[Person] = []

    def call(*program: str, **environment: str) -> Person:
        words = (*(program or (str(PROGRAM),)), "graph-watch", "plan")
        made.append(Person(*words, cwd=world.root, env={**world.environment, **environment}))
        return made[-1]

    yield call
    for each in made:
        each.end()


def _screen(ann: Person) -> list[str]:
    return list(render(ann.all, 80, 24).lines)


def _sees_the_view(ann: Person) -> None:
    ann.waits(lambda: "> a" in "\n".join(_screen(ann)), "the view")


def _is_as_before(ann: Person) -> bool:
    screen = render(ann.all, 80, 24)
    return termios.tcgetattr(ann.descriptor) == ann.modes and not screen.is_alternate and b"\x1b[?25h" in ann.all


def test_it_shows_the_graph_and_q_leaves_with_the_state_and_what_to_do(watching: Callable[..., Person]) -> None:
    ann = watching()
    _sees_the_view(ann)
    shown = _screen(ann)
    assert shown[0] == "plan: CREATED  Wide 测试"
    assert shown[1].startswith("1 ready, 1 waiting  nobody drives it. Next: coordinate-agents graph-run plan")
    assert [line.rstrip() for line in shown[2:4]] == [
        "> a    READY                   not started",
        "  └ b  WAITING                 waits for a",
    ]
    ann.type(b"q")
    assert ann.until_gone() == 0
    assert _is_as_before(ann)
    assert ann.shown.rstrip().endswith("Next: coordinate-agents graph-run plan")


def test_signals_and_ctrl_c_end_it_and_the_terminal_is_as_it_was(watching: Callable[..., Person]) -> None:
    ann = watching(NO_COLOR="1")
    _sees_the_view(ann)
    assert b"\x1b[32m" not in ann.all
    ann.type(b"\x03")
    assert ann.until_gone() == 0
    assert _is_as_before(ann)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        ann = watching()
        _sees_the_view(ann)
        ann.signal(number)
        assert ann.until_gone() == 130, number
        assert _is_as_before(ann), number


def test_a_bug_of_ours_restores_the_terminal_and_names_its_traceback(watching: Callable[..., Person]) -> None:
    ann = watching(*PYTHON, BROKEN)
    assert ann.until_gone() == 3
    assert _is_as_before(ann)
    assert "INTERNAL_ERROR: A bug of ours: ZeroDivisionError: division by zero." in ann.shown
    assert "report it with the traceback in " in ann.shown


def test_a_terminal_that_goes_away_ends_it(watching: Callable[..., Person]) -> None:
    ann = watching()
    _sees_the_view(ann)
    ann.hang_up()
    assert os.waitstatus_to_exitcode(os.waitpid(ann.pid, 0)[1]) != 0


def test_where_it_cannot_draw_it_says_what_to_use_instead(watching: Callable[..., Person], world: World) -> None:
    done = world.run("graph-watch", "plan")
    assert done.code == 2
    assert done.err.startswith("INVALID_USAGE: graph-watch draws on a terminal")
    assert "Next: coordinate-agents graph-status plan, or coordinate-agents graph-wait plan" in done.err
    ann = watching(TERM="dumb")
    assert ann.until_gone() == 2
    assert "graph-status plan" in ann.shown
    bob = watching(*PYTHON, WITHOUT)
    assert bob.until_gone() == 1
    assert "UNSUPPORTED_CAPABILITY: The live view needs the extra tui" in bob.shown
    assert "Next: pip install 'coordinate-agents[tui]'" in bob.shown
