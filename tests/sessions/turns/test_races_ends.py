"""Races about how a turn ends: once, with the first word, and with nothing lost."""

import anyio
import pytest
from turn_script import SPEC, T1, T2, S, asks, end, scripted

from coordinate_agents.sessions.turns.model import (
    Completed,
    ExternalSessionNamed,
    Failed,
    PermissionAsked,
    PermissionInvalidated,
    Printed,
    ProcessExited,
    RequestId,
    Stdout,
    TurnCompleted,
    TurnFailed,
)

pytestmark = pytest.mark.anyio


async def test_01_a_child_that_dies_between_spawn_and_attach_is_not_running_for_ever() -> None:
    async with scripted(stays=False) as script:
        script.driver.points.hold("opened")
        async with anyio.create_task_group() as group:
            group.start_soon(script.turns.start_turn, S, SPEC)
            await script.driver.points.reached("opened")
            script.driver.say(Printed(6, "boom!\n"))
            script.driver.exits(3)
            script.driver.points.let_go("opened")
        outcome = await script.turns.wait_for_turn(S, T1)
        assert (outcome.kind, outcome.code, outcome.end) == ("failed", "AGENT_EXIT_NONZERO", end(3))
        assert script.told()[:1] == [Stdout(6, "boom!\n")]
        assert not script.turns.has_active_turn(S)


async def test_02_a_process_that_lingers_after_its_last_word_does_not_keep_the_turn_open() -> None:
    async with scripted(stays=False) as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.say(TurnCompleted(T1, "end_turn"))
        outcome = await script.turns.wait_for_turn(S, T1)
        assert (outcome.kind, script.driver.living[S]) == ("completed", 1)
        await script.clock.advance(4.9)
        assert "close" not in script.driver.calls
        await script.clock.advance(0.2)
        assert (script.driver.calls[-1], script.driver.living[S]) == ("close", 0)
        assert (await script.turns.get_state(S)).outcome == outcome


async def test_03_exit_code_0_after_turn_failed_does_not_make_it_a_success() -> None:
    async with scripted(stays=False) as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.say(TurnFailed(T1, "AUTH_REQUIRED", "log in"))
        script.driver.exits(0)
        assert (await script.turns.wait_for_turn(S, T1)).kind == "failed"
        assert script.told() == [Failed("AUTH_REQUIRED", "log in")]
        assert [each.end for each in script.processes] == [None, end(0)]


async def test_04_completed_twice_and_then_an_exit_are_one_end() -> None:
    async with scripted(stays=False) as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.say(TurnCompleted(T1, "end_turn"))
        script.driver.say(TurnCompleted(T1, "end_turn"))
        script.driver.exits(0)
        await script.turns.wait_for_turn(S, T1)
        await script.settle()
        assert script.told() == [Completed("end_turn")]


async def test_05_an_event_after_the_end_of_the_turn_is_dropped() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.say(TurnCompleted(T1, "end_turn"))
        script.driver.say(Printed(4, "late"))
        await script.turns.wait_for_turn(S, T1)
        script.driver.say(Printed(9, "later"))
        script.driver.say(TurnFailed(T1, "X", "late"))
        assert script.told() == [Completed("end_turn")]
        await script.turns.start_turn(S, SPEC)
        script.driver.say(TurnCompleted(T1, "of the turn before"))
        assert (script.told(T2), script.turns.has_active_turn(S)) == ([], True)


async def test_06_a_last_line_without_an_end_appears_exactly_once() -> None:
    async with scripted(stays=False) as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.say(Printed(9, "one\nlast "))
        script.driver.say(Printed(13, "line"))
        script.driver.exits(0)
        await script.turns.wait_for_turn(S, T1)
        text = "".join(each.text for each in script.told() if isinstance(each, Stdout))
        assert text == "one\nlast line"
        assert script.records.stored[S].transcript == "one\nlast line"
        assert [each.seq for each in script.events] == list(range(1, len(script.events) + 1))


async def test_08_a_stop_while_the_end_is_being_recorded_keeps_how_it_ended_and_ends_the_idle_process() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        script.records.points.hold("save")
        script.driver.say(TurnCompleted(T1, "end_turn"))
        async with anyio.create_task_group() as group:
            group.start_soon(script.turns.dispose_session, S)
            await script.settle()
            assert "close" not in script.driver.calls
            script.records.points.let_go("save")
        assert script.told() == [Completed("end_turn")]
        assert (script.driver.living[S], script.records.stored[S].outcome) == (0, "completed")


async def test_09_completed_after_a_stop_was_decided_stays_cancelled() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.points.hold("close")
        async with anyio.create_task_group() as group:
            group.start_soon(script.turns.dispose_session, S)
            await script.driver.points.reached("close")
            script.driver.say(TurnCompleted(T1, "end_turn"))
            script.driver.points.let_go("close")
        assert (await script.turns.wait_for_turn(S, T1)).kind == "cancelled"
        assert script.told() == [Completed("cancelled")]


async def test_22_a_permission_that_is_pending_at_the_end_is_answered_and_invalidated_once() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.say(asks("r1"))
        assert script.turns.is_awaiting_permission(S)
        script.driver.say(TurnCompleted(T1, "end_turn"))
        await script.turns.wait_for_turn(S, T1)
        await script.settle()
        assert script.driver.answers == [("r1", None)]
        asked, gone, over = script.told()
        assert isinstance(asked, PermissionAsked)
        assert (gone, over) == (PermissionInvalidated(RequestId("r1"), "ended"), Completed("end_turn"))
        assert (await script.turns.get_state(S)).pending == ()

        await script.turns.start_turn(S, SPEC)
        script.driver.say(asks("r2", T2))
        async with anyio.create_task_group() as group:
            group.start_soon(script.turns.cancel_turn, S, T2)
            await script.settle()
            script.driver.say(asks("r3", T2))  # it comes too late: never shown
            script.driver.say(TurnCompleted(T2, "end_turn"))
        assert script.driver.answers[1:] == [("r2", None), ("r3", None)]
        assert script.told(T2)[1:] == [PermissionInvalidated(RequestId("r2"), "cancelled"), Completed("cancelled")]


async def test_25_an_exit_before_the_start_was_recorded_is_not_lost_nor_given_to_the_next_process() -> None:
    async with scripted(stays=False) as script:
        script.driver.points.hold("begin")
        async with anyio.create_task_group() as group:
            group.start_soon(script.turns.start_turn, S, SPEC)
            await script.driver.points.reached("begin")
            script.driver.exits(0)
            script.driver.points.let_go("begin")
        assert (await script.turns.wait_for_turn(S, T1)).kind == "completed"
        await script.turns.start_turn(S, SPEC)
        script.driver.say(ProcessExited(end(7)), process=1)
        assert (script.turns.has_active_turn(S), script.told(T2)) == (True, [])
        script.driver.exits(0)
        assert (await script.turns.wait_for_turn(S, T2)).end == end(0)


async def test_21_the_conversation_ends_at_the_last_id_however_slow_the_first_write_is() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        await script.settle()
        script.records.points.hold("save")
        script.driver.say(ExternalSessionNamed("X"))
        await script.settle()
        script.driver.say(ExternalSessionNamed("Y"))
        script.records.fail = [OSError("full")]
        script.records.points.let_go("save")
        await script.settle()
        script.driver.say(TurnCompleted(T1, "end_turn"))
        await script.turns.wait_for_turn(S, T1)
        assert script.records.stored[S].external_sessions == ("X", "Y")
        script.driver.say(ExternalSessionNamed("Z"))  # and then everything is left at once
    assert script.records.stored[S].external_sessions == ("X", "Y", "Z")
