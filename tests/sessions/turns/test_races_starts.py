"""Races about the start of a turn: one at a time, undone when it is not wanted any more, never two processes."""

from collections.abc import Callable

import anyio
import pytest
from hosts import shell
from turn_script import SPEC, T1, T2, S, Script, ScriptedDriver, end, refusal, scripted

from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import SessionId
from coordinate_agents.sessions.turns.model import Completed, ProcessExited, TurnCompleted, TurnId, TurnSpec
from coordinate_agents.sessions.turns.ports import ResumeFailed

pytestmark = pytest.mark.anyio


async def refusal_of(
    script: Script,
    codes: list[str],
    is_wanted: Callable[[], bool] = lambda: True,
    *,
    replacing: TurnId | None = None,
) -> None:
    """Start a turn; the code of what refuses it is added."""
    try:
        await script.turns.start_turn(S, SPEC, is_wanted=is_wanted, replacing=replacing)
    except SessionError as error:
        codes.append(error.code)


async def test_07_a_driver_that_raises_at_the_start_leaves_no_running_turn_and_tells_no_end() -> None:
    async with scripted() as script:
        script.driver.fail["begin"] = [refusal("it does not take prompts")]
        with pytest.raises(SessionError, match="it does not take prompts"):
            await script.turns.start_turn(S, SPEC)
        assert (await script.turns.get_state(S)).state == "idle"
        assert (script.events, script.driver.living[S]) == ([], 0)
        await script.settle()
        starting, idle = script.records.written
        assert (starting.state, idle.state, idle.outcome, idle.message) == (
            "starting",
            "idle",
            None,
            "it does not take prompts",
        )
        assert await script.turns.start_turn(S, SPEC) == T2


async def test_running_is_recorded_before_the_driver_is_asked_and_what_cannot_be_recorded_is_not_started() -> None:
    async with scripted() as script:
        script.records.points.hold("save")
        async with anyio.create_task_group() as group:
            group.start_soon(script.turns.start_turn, S, SPEC)
            await script.records.points.reached("save")
            assert script.driver.calls == ["validate"]
            script.records.points.let_go("save")
        assert script.driver.calls == ["validate", "open", "begin t1"]
        script.driver.say(TurnCompleted(T1, "end_turn"))
        await script.turns.wait_for_turn(S, T1)
        script.records.fail = [OSError("full")]
        with pytest.raises(OSError, match="full"):
            await script.turns.start_turn(S, SPEC)
        assert "begin t2" not in script.driver.calls
        assert script.driver.living[S] == 0


async def test_10_a_stop_during_the_opening_refuses_the_start_and_leaves_no_process() -> None:
    for point in ("validate", "open", "opened", "begin"):
        async with scripted() as script:
            script.driver.points.hold(point)
            refused: list[str] = []
            async with anyio.create_task_group() as group:
                group.start_soon(refusal_of, script, refused)
                await script.driver.points.reached(point)
                await script.turns.dispose_session(S)
            assert refused == ["SESSION_STATE_CONFLICT"], point
            assert (script.driver.living[S], script.events) == (0, []), point
            assert (await script.turns.get_state(S)).state == "idle"


async def test_15_a_follow_up_that_is_slow_to_validate_does_not_bring_the_old_end_back() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.points.hold("validate")
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: script.turns.start_turn(S, SPEC, replacing=T1))
            await script.driver.points.reached("validate")
            await script.settle()
            script.driver.say(TurnCompleted(T1, "end_turn"))
            await script.turns.wait_for_turn(S, T1)
            assert (await script.turns.get_state(S)).generation == 1
            script.driver.points.let_go("validate")
        await script.settle()
        assert [(each.generation, each.state) for each in script.records.written][-2:] == [
            (2, "starting"),
            (2, "running"),
        ]
        assert script.told(T1) == [Completed("end_turn")]


async def test_15_a_follow_up_that_was_found_valid_before_another_turn_came_and_went_starts_nothing() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        script.driver.points.hold("validate")
        refused: list[str] = []
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: refusal_of(script, refused, replacing=T1))
            await script.settle()
            slow = script.driver.points.hold_on("validate")
            for turn in (T1, T2):
                script.driver.say(TurnCompleted(turn, "end_turn"))
                await script.turns.wait_for_turn(S, turn)
                if turn == T1:
                    await script.turns.start_turn(S, SPEC)
            slow.set()
        view = await script.turns.get_state(S)
        assert (refused, view.state, view.generation) == (["SESSION_STATE_CONFLICT"], "idle", 2)
        assert script.driver.calls[-2:] == ["begin t2", "rest"]


async def test_a_replaced_turn_is_asked_to_stop_and_its_end_is_told_to_nobody() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC)
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: script.turns.start_turn(S, SPEC, replacing=T1))
            await script.settle()
            assert script.driver.calls[-1] == "cancel t1"
            script.driver.say(TurnCompleted(T1, "end_turn"))
        assert (script.told(), script.driver.calls[-1]) == ([], "begin t2")
        assert script.driver.calls.count("open") == 1
        # The next one does not end: its process does, before the third begins.
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: script.turns.start_turn(S, SPEC, replacing=T2))
            await script.settle()
            await script.clock.advance(10.0)
        assert script.driver.calls[-3:] == ["close", "open", "begin t3"]
        assert (script.told(), script.driver.most_living) == ([], 1)


async def test_16_of_two_sends_at_once_one_is_refused_and_changes_nothing() -> None:
    async with scripted() as script:
        refused: list[str] = []
        async with anyio.create_task_group() as group:
            group.start_soon(refusal_of, script, refused)
            group.start_soon(refusal_of, script, refused)
        assert refused == ["SESSION_STATE_CONFLICT"]
        assert script.driver.calls == ["validate", "open", "begin t1"]
        with pytest.raises(SessionError, match="t1 is running"):
            await script.turns.start_turn(S, SPEC)
        script.driver.say(TurnCompleted(T1, "end_turn"))
        assert (await script.turns.wait_for_turn(S, T1)).kind == "completed"


async def test_17_two_opens_at_once_make_one_process() -> None:
    async with scripted() as script:
        script.driver.points.hold("open")
        refused: list[str] = []
        async with anyio.create_task_group() as group:
            group.start_soon(refusal_of, script, refused)
            await script.driver.points.reached("open")
            group.start_soon(refusal_of, script, refused)
            await script.settle()
            script.driver.points.let_go("open")
        assert (refused, script.turns.has_active_turn(S)) == (["SESSION_STATE_CONFLICT"], True)
        assert (script.driver.calls.count("open"), script.driver.most_living) == (1, 1)


async def test_18_a_process_of_other_settings_is_ended_before_the_next_one_starts() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC._replace(configuration="old"))
        script.driver.say(TurnCompleted(T1, "end_turn"))
        await script.turns.wait_for_turn(S, T1)
        await script.turns.start_turn(S, SPEC._replace(configuration="new"))
        assert script.driver.calls[-4:] == ["validate", "close", "open", "begin t2"]
        assert script.driver.most_living == 1
        script.driver.say(TurnCompleted(T2, "end_turn"))
        await script.turns.wait_for_turn(S, T2)
        await script.turns.start_turn(S, SPEC._replace(configuration="new"))
        assert script.driver.calls.count("open") == 2


async def test_19_a_graph_that_is_stopped_while_a_start_prepares_gets_no_agent() -> None:
    for point in ("validate", "open", "opened", "begin"):
        async with scripted() as script:
            wanted = [True]
            script.driver.points.hold(point)
            refused: list[str] = []
            async with anyio.create_task_group() as group:
                group.start_soon(refusal_of, script, refused, lambda wanted=wanted: wanted[0])
                await script.driver.points.reached(point)
                wanted[0] = False
                script.driver.points.let_go(point)
            assert refused == ["SESSION_STATE_CONFLICT"], point
            assert (script.driver.living[S], script.events) == (0, []), point


async def test_20_a_failed_resume_makes_no_second_child() -> None:
    again = TurnSpec(
        launch=shell("s", "true"), prompt="everything", resume="conversation-1", resumed=shell("s", "true")
    )
    driver = ScriptedDriver()
    async with scripted(driver=driver) as script:
        driver.fail["resume"] = [ResumeFailed("unknown conversation", child_existed=True)]
        with pytest.raises(SessionError, match="unknown conversation"):
            await script.turns.start_turn(S, again)
        assert (driver.calls.count("open"), driver.living[S]) == (0, 0)
        # Without a child it goes on with a fresh conversation, and says so.
        driver.fail["resume"] = [ResumeFailed("unknown conversation", child_existed=False)]
        await script.turns.start_turn(S, again)
        await script.settle()
        record = script.records.stored[S]
        assert (record.resumed, record.reason) == (False, "unknown conversation")
        assert (driver.most_living, driver.calls[-2:]) == (1, ["open", "begin t2"])


async def test_23_what_a_stale_process_says_after_a_reconnect_is_ignored() -> None:
    async with scripted() as script:
        await script.turns.start_turn(S, SPEC._replace(configuration="old"))
        script.driver.say(TurnCompleted(T1, "end_turn"))
        await script.turns.wait_for_turn(S, T1)
        await script.turns.start_turn(S, SPEC._replace(configuration="new"))
        script.driver.say(TurnCompleted(T2, "end_turn"), process=1)
        script.driver.say(ProcessExited(end(9)), process=1)
        assert script.turns.has_active_turn(S)
        script.driver.say(TurnCompleted(T2, "end_turn"))
        assert (await script.turns.wait_for_turn(S, T2)).kind == "completed"


async def test_two_sessions_do_not_stand_in_each_others_way() -> None:
    async with scripted() as script:
        other = SessionId("other")
        script.driver.points.hold("validate")
        async with anyio.create_task_group() as group:
            group.start_soon(script.turns.start_turn, S, SPEC)
            await script.driver.points.reached("validate")
            group.start_soon(script.turns.start_turn, other, SPEC)
            await script.settle()
            script.driver.points.let_go("validate")
            # Whoever came second was held at the same point.
        assert (script.turns.has_active_turn(S), script.turns.has_active_turn(other)) == (True, True)
        script.driver.say(TurnCompleted(T1, "end_turn"))
        await script.turns.wait_for_turn(S, T1)
        assert (script.turns.has_active_turn(S), script.turns.has_active_turn(other)) == (False, True)
