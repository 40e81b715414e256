"""When records are written: races about slow and failing disks, bursts and streams, heartbeats."""

import anyio
import pytest
from turn_script import SPEC, T1, S, asks, scripted

from coordinate_agents.sessions.turns.model import Answer, Printed, Progress, RequestId, TurnCompleted
from coordinate_agents.sessions.turns.progress import Pulse

pytestmark = pytest.mark.anyio


async def test_28_a_burst_of_output_is_one_checkpoint_and_a_constant_stream_has_checkpoints_too() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.say(Printed(1, "x"))  # with it goes the first sign of life
        await script.settle()
        before = len(script.records.written)
        for number in range(1000):
            script.driver.say(Printed(2 + number, "x"))
        await script.clock.advance(15.0)
        assert len(script.records.written) == before + 1
        assert script.records.stored[S].cursor == 1001
        for second in range(60):
            script.driver.say(Printed(2000 + second, "y"))
            await script.clock.advance(1.0)
        # Every 15 s, and in between a sign of life at most every 30 s.
        assert 4 <= len(script.records.written) - before - 1 <= 6
        unchanged = len(script.records.written)
        await script.clock.advance(45.0)
        assert len(script.records.written) <= unchanged + 1
        script.driver.say(TurnCompleted(T1, "end_turn"))
        await script.turns.wait_for_turn(S, T1)
        written = len(script.records.written)
        await script.clock.advance(3600.0)
        assert len(script.records.written) == written


async def test_what_was_only_told_again_is_not_written_again() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.say(Printed(5, "hello"))
        await script.clock.advance(15.0)
        written = len(script.records.written)
        script.driver.say(Printed(5, "", is_progress=False))
        await script.clock.advance(15.0)
        assert len(script.records.written) == written


async def test_29_a_write_that_fails_is_made_up_for_by_what_is_so_then() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        await script.settle()
        script.records.points.hold("save")
        script.records.fail = [OSError("full"), OSError("full")]
        script.driver.say(asks("r1"))
        await script.records.points.reached("save")
        await script.settle()
        script.driver.say(TurnCompleted(T1, "end_turn"))
        script.records.points.let_go("save")
        assert (await script.turns.wait_for_turn(S, T1)).kind == "completed"
        await script.clock.advance(15.0)
        record = script.records.stored[S]
        assert (record.state, record.outcome, record.pending) == ("idle", "completed", ())
        assert script.records.written[-1] == record


async def test_the_end_of_a_turn_is_on_disk_at_once_with_its_last_output() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.say(Printed(5, "hello"))
        script.driver.say(TurnCompleted(T1, "end_turn"))
        await script.turns.wait_for_turn(S, T1)
        record = script.records.stored[S]
        assert (record.outcome, record.stop_reason, record.transcript) == ("completed", "end_turn", "hello")


async def test_a_turn_says_at_most_every_30_s_that_it_goes_on_and_our_own_words_are_no_progress() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        for second in range(61):
            script.driver.say(Printed(second + 1, "x"))
            await script.clock.advance(1.0)
        assert [each.time for each in script.events if isinstance(each.event, Progress)] == [1000.0, 1030.0, 1060.0]
        await script.clock.advance(40.0)
        script.driver.say(Printed(99, "a spinner", is_progress=False))
        await script.turns.write_input(S, "go on", submit=True)
        await script.clock.advance(1.0)
        assert len([each for each in script.told() if isinstance(each, Progress)]) == 3
        assert (await script.turns.get_state(S)).silent_s == 42.0


async def test_waiting_for_a_person_is_no_silence() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        await script.clock.advance(10.0)
        script.driver.say(asks("r1"))
        await script.clock.advance(3600.0)
        assert (await script.turns.get_state(S)).silent_s == 10.0
        await script.turns.resolve_permission(S, RequestId("r1"), Answer("yes"))
        await script.clock.advance(5.0)
        assert (await script.turns.get_state(S)).silent_s == 15.0


async def test_a_slow_write_keeps_nobody_from_cancelling() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        await script.settle()
        script.records.points.hold("save")
        script.driver.say(asks("r1"))
        await script.records.points.reached("save")
        async with anyio.create_task_group() as group:
            group.start_soon(script.turns.cancel_turn, S, T1)
            await script.settle()
            assert script.driver.calls[-2:] == ["answer r1 None", "cancel t1"]
            script.driver.say(TurnCompleted(T1, "cancelled"))
            script.records.points.let_go("save")
    assert script.records.stored[S].outcome == "cancelled"


def test_a_pulse_counts_each_silence_once() -> None:
    pulse, is_due = Pulse(0.0).progressed(5.0)
    assert (is_due, pulse.silent_s(8.0)) == (True, 3.0)
    pulse = pulse.waiting(10.0, is_waiting=True).waiting(12.0, is_waiting=True)
    assert pulse.silent_s(100.0) == 5.0
    pulse = pulse.waiting(110.0, is_waiting=False)
    assert pulse.silent_s(111.0) == 6.0
    assert pulse.progressed(34.9)[1] is False
    assert pulse.begun(200.0).silent_s(201.0) == 1.0
