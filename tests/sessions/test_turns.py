"""A child that stays over several turns: each has deadlines of its own, and between two of them it may be idle."""

import anyio
import anyio.lowlevel
import pytest
from hosts import shell

from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import InputRules, Question, SessionId, TurnLimits

pytestmark = pytest.mark.anyio

ID = SessionId("s1")
# It reads lines for ever, and says what it read.
READS = "while read -r line; do echo got:$line; done"


async def _state(hosts: SessionHosts) -> str:
    record = (await hosts.look(ID)).record
    assert record is not None
    return record.state


async def test_the_deadline_of_a_turn_that_is_over_counts_no_more(hosts: SessionHosts) -> None:
    await hosts.start(shell("s1", f"echo ready; {READS}", timeout_s=1.0, idle_timeout_s=1.0, on_idle="stop"))
    with anyio.fail_after(30):
        facts = await hosts.end_turn(ID, idle_life_s=60.0)
        assert await _state(hosts) == "idle"
        # The time itself is what this is about.
        await anyio.sleep(1.5)
        assert (await hosts.look(ID)).liveness == "live"
        await hosts.begin_turn(ID, TurnLimits(timeout_s=0.5))
        assert await _state(hosts) == "running"
        end = await hosts.wait(ID)
    assert (end.cause, facts.duration_ms < 1000) == ("timeout", True)
    assert facts.log_path == end.log_path


async def test_a_child_that_nobody_gives_another_turn_ends_after_its_idle_life(hosts: SessionHosts) -> None:
    await hosts.start(shell("s1", READS))
    with anyio.fail_after(30):
        await hosts.end_turn(ID, idle_life_s=0.2)
        assert (await hosts.wait(ID)).cause == "unused"


async def test_a_turn_in_a_child_that_ended_is_refused(hosts: SessionHosts) -> None:
    await hosts.start(shell("s1", "exit 3"))
    with anyio.fail_after(30):
        await hosts.wait(ID)
        with pytest.raises(SessionError) as refused:
            await hosts.begin_turn(ID, TurnLimits())
    assert refused.value.code == "SESSION_WRITE_FAILED"


async def test_who_waits_for_the_next_turn_asks_nothing_and_asks_again_in_it(hosts: SessionHosts) -> None:
    await hosts.start(shell("s1", READS, input=InputRules(silent_s=0.2)))
    with anyio.fail_after(30):
        asked = await hosts.question_change(ID, None)
        assert asked is not None
        await hosts.end_turn(ID, idle_life_s=60.0)
        assert await hosts.question_change(ID, asked) is None
        await anyio.sleep(1.0)
        assert (await hosts.question(ID), await _state(hosts)) == (None, "idle")
        await hosts.begin_turn(ID, TurnLimits())
        assert await hosts.question_change(ID, None) is not None


async def test_the_next_prompt_is_typed_although_the_first_screen_is_gone(hosts: SessionHosts) -> None:
    rules = InputRules(ready=("COMPOSER",), ready_bound_s=0.2)
    await hosts.start(shell("s1", f"echo working; {READS}", input=rules))
    with anyio.fail_after(30):
        assert (await hosts.write(ID, "one", submit=True)).delivered == "false"
        await hosts.end_turn(ID, idle_life_s=60.0)
        await hosts.begin_turn(ID, TurnLimits())
        assert (await hosts.write(ID, "two", submit=True)).delivered == "true"
        read = await hosts.read(ID, cursor=0, wait_ms=5000)
        while "got:two" not in read.text:
            read = await hosts.read(ID, cursor=0, wait_ms=5000)
    assert "got:one" not in read.text


async def test_a_question_is_heard_beside_a_wait_for_the_end_and_also_when_that_wait_is_left(
    hosts: SessionHosts,
) -> None:
    await hosts.start(shell("s1", READS, input=InputRules(silent_s=0.2)))
    left, answers = anyio.CancelScope(), []

    async def wait() -> None:
        with left:
            await hosts.wait(ID)

    async def wait_for_answer(asked: Question) -> None:
        answers.append(await hosts.question_change(ID, asked))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.lowlevel.checkpoint()
            asked = await hosts.question_change(ID, None)
            assert asked is not None
            group.start_soon(wait_for_answer, asked)
            await anyio.lowlevel.checkpoint()
            left.cancel()
            await hosts.end_turn(ID, idle_life_s=60.0)
        await hosts.close(ID)
    assert answers == [None]
