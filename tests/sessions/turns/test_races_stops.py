"""Races about stopping: bounded, once, and never said to be done before it is."""

import anyio
import pytest
from turn_script import NO, SPEC, T1, T2, YES, S, asks, refusal, scripted

from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionId
from coordinate_agents.sessions.turns.model import (
    CANCELLED,
    Answer,
    Completed,
    Connection,
    Permission,
    PermissionAsked,
    PermissionInvalidated,
    PermissionRequested,
    PermissionWithdrawn,
    RequestId,
    TurnCompleted,
    TurnRecord,
)
from coordinate_agents.sessions.turns.ports import Standing

pytestmark = pytest.mark.anyio
R1 = RequestId("r1")


async def test_11_a_cancel_that_raises_or_is_never_confirmed_ends_the_tree_at_the_bound() -> None:
    for problem in ([refusal("the pipe is closed")], []):
        async with scripted() as script:
            await script.turns.start_turn(S, SPEC)
            script.driver.fail["cancel"] = list(problem)
            async with anyio.create_task_group() as group:
                group.start_soon(script.turns.cancel_turn, S, T1)
                await script.settle()
                assert (await script.turns.get_state(S)).state == "cancelling"
                await script.clock.advance(9.9)
                assert "close" not in script.driver.calls
                await script.clock.advance(0.2)
            assert (script.driver.living[S], script.told()) == (0, [Completed("cancelled")])
            assert script.records.stored[S].outcome == "cancelled"


async def test_12_a_late_cancel_of_the_turn_before_sends_nothing_to_the_next_one() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.say(TurnCompleted(T1, "end_turn"))
        await script.turns.wait_for_turn(S, T1)
        await script.turns.start_turn(S, SPEC)
        assert await script.turns.cancel_turn(S, T1) is False
        await script.settle()
        assert script.driver.calls[-1] == "begin t2"
        assert (await script.turns.get_state(S)).state == "running"


async def test_13_two_cancels_are_one_message_to_the_agent() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        async with anyio.create_task_group() as group:
            group.start_soon(script.turns.cancel_turn, S, T1)
            group.start_soon(script.turns.cancel_turn, S, T1)
            group.start_soon(script.turns.abandon_turn, S, T1)
            await script.settle()
            script.driver.say(TurnCompleted(T1, "cancelled"))
        assert script.driver.calls.count("cancel t1") == 1


async def test_14_stopping_twice_and_beside_destroying_all_is_one_close_and_all_return() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.points.hold("close")
        async with anyio.create_task_group() as group:
            group.start_soon(script.turns.dispose_session, S)
            await script.driver.points.reached("close")
            group.start_soon(script.turns.dispose_session, S)
            group.start_soon(script.turns.destroy_all)
            await script.settle()
            script.driver.points.let_go("close")
        assert script.driver.calls.count("close") == 1
        assert script.told() == [Completed("cancelled")]


async def test_24_a_permission_that_was_pending_at_a_restart_is_invalidated_when_nobody_waits_for_it() -> None:
    async with scripted() as script:
        script.records.stored[S] = TurnRecord(S, 1, "awaiting-permission", T1, pending=(R1, RequestId("r2")))
        r2 = Permission(RequestId("r2"), T1, "may I?", (YES,))
        script.driver.standing = Standing(Connection(stays=True), pending=(r2,))
        view = await script.turns.get_state(S)
        assert (view.state, view.pending) == ("awaiting-permission", ("r2",))
        assert script.told() == [PermissionInvalidated(R1, "lost"), PermissionAsked(r2)]
        await script.turns.resolve_permission(S, RequestId("r2"), Answer("yes"))
        await script.settle()
        assert (script.records.stored[S].pending, script.driver.answers) == ((), [("r2", "yes")])


async def test_26_a_close_is_not_over_before_the_tree_is_gone() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.points.hold("close")
        closed: list[tuple[str, ...]] = []

        async def close() -> None:
            closed.append(await script.turns.dispose_session(S))

        async with anyio.create_task_group() as group:
            group.start_soon(close)
            await script.driver.points.reached("close")
            script.driver.exits(0)  # the root is gone, the tree is not yet
            await script.settle()
            assert (closed, (await script.turns.get_state(S)).state) == ([], "disposing")
            script.driver.points.let_go("close")
        assert closed == [()]


async def test_27_grandchildren_that_live_on_are_named_and_no_turn_starts_beside_them() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.exits(0, "4711 daemon")
        outcome = await script.turns.wait_for_turn(S, T1)
        assert outcome.end is not None and outcome.end.survivors == ("4711 daemon",)
        assert (await script.turns.get_state(S)).state == "disposed"
        with pytest.raises(SessionError, match="disposed"):
            await script.turns.start_turn(S, SPEC)
        script.driver.left = [("4711 daemon",)]
        assert await script.turns.dispose_session(S) == ("4711 daemon",)
        assert (await script.turns.get_state(S)).state == "disposed"
        assert await script.turns.dispose_session(S) == ()
        assert await script.turns.start_turn(S, SPEC) == T2


async def test_a_close_that_fails_keeps_turns_out_and_can_be_tried_again() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.fail["close"] = [SessionError("SESSION_CLOSE_FAILED", "the host is silent")]
        with pytest.raises(SessionError, match="silent"):
            await script.turns.dispose_session(S)
        assert script.told() == [Completed("cancelled")]
        with pytest.raises(SessionError, match="disposed"):
            await script.turns.start_turn(S, SPEC)
        assert await script.turns.dispose_session(S) == ()


async def test_a_session_that_never_had_a_turn_is_closed_without_a_record() -> None:
    async with scripted() as script:
        assert await script.turns.dispose_session(S) == ()
        await script.settle()
        assert (script.driver.calls, script.records.written, script.told()) == (["close"], [], [])


async def test_a_session_that_cannot_be_heard_any_more_releases_who_waits_for_it() -> None:
    async with scripted() as script:
        script.driver.fail["follow"] = [OSError("too many open files")]
        await script.turns.start_turn(S, SPEC)
        with pytest.raises(OSError, match="too many"):
            await script.turns.wait_for_turn(S, T1)
        # It is looked at anew by who takes it over.
        script.driver.standing = Standing(Connection(stays=True))
        await script.turns.take_over(S, T1, SPEC)
        await script.settle()
        script.driver.say(TurnCompleted(T1, "end_turn"))
        assert (await script.turns.wait_for_turn(S, T1)).kind == "completed"


async def test_30_whoever_waits_during_a_shutdown_is_released_with_an_error() -> None:
    released: list[str] = []
    async with anyio.create_task_group() as group:
        async with scripted() as script:

            async def wait() -> None:
                try:
                    await script.turns.wait_for_turn(S, T1)
                except SessionError as error:
                    released.append(error.code)

            await script.turns.start_turn(S, SPEC)
            group.start_soon(wait)
            await script.settle()
            script.driver.points.hold("close")
            group.start_soon(script.turns.destroy_all)
            await script.settle()
            assert released == ["SESSION_STATE_CONFLICT"]
            with pytest.raises(SessionError, match="not wanted"):
                await script.turns.start_turn(SessionId("other"), SPEC)
            script.driver.points.let_go("close")
            await script.settle()
            assert script.driver.living[S] == 0
        assert script.records.stored[S].outcome == "cancelled"


async def test_leaving_the_block_ends_no_agent_and_releases_who_waits() -> None:
    released: list[str] = []
    async with anyio.create_task_group() as group, scripted() as script:

        async def wait() -> None:
            try:
                await script.turns.wait_for_turn(S, T1)
            except SessionError as error:
                released.append(error.code)

        await script.turns.start_turn(S, SPEC)
        group.start_soon(wait)
        await script.settle()
    assert (released, script.driver.living[S], script.told()) == (["SESSION_STATE_CONFLICT"], 1, [])
    assert script.records.stored[S].state == "running"


async def test_the_first_answer_to_a_permission_counts_and_every_other_is_an_error() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.say(asks("r1", T1, YES, NO))
        script.driver.say(asks("r1", T1, YES, NO))
        await script.turns.resolve_permission(S, R1, Answer("yes"))
        for request in ("r1", "r9"):
            with pytest.raises(SessionError) as late:
                await script.turns.resolve_permission(S, RequestId(request), Answer("no"))
            assert late.value.code == "SESSION_STATE_CONFLICT"
        await script.settle()
        assert script.driver.answers == [("r1", "yes")]
        assert [type(each) for each in script.told()] == [PermissionAsked]


async def test_a_permission_that_nobody_can_answer_is_cancelled_at_once() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.say(PermissionRequested(Permission(R1, T1, "nothing to choose", ())))
        script.driver.say(asks("r2", T2))
        script.driver.say(TurnCompleted(T1, "end_turn"))
        await script.turns.wait_for_turn(S, T1)
        script.driver.say(asks("r3"))
        await script.settle()
        assert (script.driver.answers, script.told()) == (
            [("r1", None), ("r2", None), ("r3", None)],
            [Completed("end_turn")],
        )


async def test_a_permission_has_a_deadline_and_can_be_taken_back_by_the_agent() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.say(asks("r1", deadline_s=60.0))
        script.driver.say(asks("r2", deadline_s=60.0))
        script.driver.say(PermissionWithdrawn(RequestId("r2")))
        await script.settle()
        await script.clock.advance(59.0)
        assert script.driver.answers == []
        await script.clock.advance(2.0)
        assert script.driver.answers == [("r1", CANCELLED.option)]
        assert script.told()[2:] == [
            PermissionInvalidated(RequestId("r2"), "withdrawn"),
            PermissionInvalidated(R1, "overdue"),
        ]
        assert (await script.turns.get_state(S)).state == "running"
