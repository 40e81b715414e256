"""A clock that is set while a driver waits: nothing is waited for longer than was said, and nobody has less time."""

from types import SimpleNamespace
from typing import Any

import anyio

from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.questioning import Questions
from coordinate_agents.graph.turns import await_retry

DAY_S = 86_400.0


class _SetClock:
    def __init__(self, now: float) -> None:
        self.time = now

    def now(self) -> float:
        return self.time


def _context(clock: _SetClock, **run: float) -> Any:
    task = SimpleNamespace(input_timeout_s=3600.0)
    return SimpleNamespace(run=lambda _: SimpleNamespace(**run), task=lambda _: task, clock=clock)


def test_a_refused_turn_is_tried_again_after_the_time_that_was_said() -> None:
    async def wait() -> Any:
        with anyio.fail_after(30):
            return await await_retry(context, SubtaskId("a"))

    context = _context(_SetClock(DAY_S), phase_since=2 * DAY_S, retry_at=2 * DAY_S + 0.05)
    assert anyio.run(wait).can_go_on


def test_a_question_has_its_time_whatever_becomes_of_the_clock() -> None:
    async def left() -> list[float]:
        clock = _SetClock(2 * DAY_S)
        context = _context(clock, phase_since=2 * DAY_S - 600.0)
        watched: Any = SimpleNamespace(context=context, subtask="a", session="s")
        questions, found = Questions(watched, composer), []
        for days in (2, 3, 1):
            clock.time = days * DAY_S
            found.append(questions._left_to_answer())
        return found

    composer: Any = None
    assert [round(each, -1) for each in anyio.run(left)] == [3000.0, 3000.0, 3000.0]
