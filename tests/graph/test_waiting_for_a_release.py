"""What waits for a person to release a subtask ends with the driver: it must not keep a Ctrl-C waiting."""

from types import SimpleNamespace

import anyio
import pytest

from coordinate_agents.graph.bell import Bell
from coordinate_agents.graph.context import Context, Leaving
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.snapshot import TaskRun

A = SubtaskId("a")


@pytest.mark.parametrize("by", ["the driver leaves", "release"])
def test_who_waits_for_a_release_goes_on_with_it_or_ends_with_the_driver(by: str) -> None:
    anyio.run(_waits_until, by)


async def _waits_until(by: str) -> None:
    context, changed, ends = object.__new__(Context), Bell(), []
    context.snapshot = SimpleNamespace(runs={A: TaskRun(A)})  # type: ignore[assignment]
    context.holds, context.next_change, context.is_leaving = {A}, changed.wait, lambda: False

    async def wait() -> None:
        try:
            await context.until_released(A)
            ends.append("release")
        except Leaving:
            ends.append("the driver leaves")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            changed.ring()  # something else happened
            await anyio.wait_all_tasks_blocked()
            assert ends == []
            if by == "release":
                context.holds.discard(A)
            else:
                context.is_leaving = lambda: True
            changed.ring()
    assert ends == [by]
