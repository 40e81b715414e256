"""Turns over real hosts and children: terminals, pipes, agents that speak ACP; and what a next process takes over."""

from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from hosts import AGENTS, launch, shell

from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import AcpRules, InputRules, Launch, SessionId, TurnLimits
from coordinate_agents.sessions.turns.coordinator import TurnCoordinator
from coordinate_agents.sessions.turns.folder_records import load_record
from coordinate_agents.sessions.turns.model import Answer, RequestId, TurnCompleted, TurnId, TurnSpec

pytestmark = pytest.mark.anyio

S, T1, T2 = SessionId("s1"), TurnId("t1"), TurnId("t2")
READS = "while read -r line; do echo got:$line; done"


def stays(script: str, **more: object) -> Launch:
    return replace(shell("s1", script, input=InputRules(), **more), labels={"mode": "interactive"})


def turns_of(hosts: SessionHosts) -> AbstractAsyncContextManager[TurnCoordinator]:
    return hosts.turns()


async def test_a_program_that_ends_ends_its_turn_and_the_record_says_how(hosts: SessionHosts, root: Path) -> None:
    async with turns_of(hosts) as turns:
        with anyio.fail_after(60):
            await turns.start_turn(S, TurnSpec(launch=shell("s1", "echo done; exit 3")))
            outcome = await turns.wait_for_turn(S, T1)
            assert (outcome.kind, outcome.code) == ("failed", "AGENT_EXIT_NONZERO")
            assert outcome.end is not None and (outcome.end.exit_code, outcome.end.tail.strip()) == (3, "done")
            # A Session's process is started once.
            with pytest.raises(SessionError, match="started before"):
                await turns.start_turn(S, TurnSpec(launch=shell("s1", "true")))
    record = load_record(root / "s1")
    assert record is not None and (record.turn, record.state, record.generation) == (T2, "idle", 2)
    assert "started before" in record.message


async def test_a_program_that_stays_rests_between_turns_and_a_next_process_takes_the_second_over(
    hosts: SessionHosts, root: Path
) -> None:
    with anyio.fail_after(60):
        async with turns_of(hosts) as turns:
            await turns.start_turn(S, TurnSpec(launch=stays(f"echo ready; {READS}")))
            with pytest.raises(SessionError, match="t1 is running"):
                await turns.start_turn(S, TurnSpec())
            turns.observe(S, TurnCompleted(T1, "submitted"))
            outcome = await turns.wait_for_turn(S, T1)
            assert (outcome.kind, outcome.stop_reason, outcome.facts is not None) == ("completed", "submitted", True)
            assert (await hosts.look(S)).record.state == "idle"  # type: ignore[union-attr]
            await turns.start_turn(S, TurnSpec(limits=TurnLimits(timeout_s=600.0)), turn=T2)
            assert (await turns.write_input(S, "two", submit=True)).delivered == "true"
        assert (await hosts.look(S)).record.state == "running"  # type: ignore[union-attr]
        async with turns_of(hosts) as turns:
            assert (await turns.get_state(S)).turn == T2
            # Begun before: it is not begun again, and nobody else's turn starts beside it.
            assert await turns.start_turn(S, TurnSpec(), turn=T2) == T2
            await turns.take_over(S, T2, TurnSpec())
            assert await turns.dispose_session(S) == ()
            outcome = await turns.wait_for_turn(S, T2)
    assert outcome.kind == "cancelled"
    record = load_record(root / "s1")
    assert record is not None and (record.turn, record.outcome, record.state) == (T2, "cancelled", "idle")


async def test_an_end_that_nobody_saw_is_found_by_who_takes_the_turn_over(hosts: SessionHosts) -> None:
    with anyio.fail_after(60):
        async with turns_of(hosts) as turns:
            await turns.start_turn(S, TurnSpec(launch=shell("s1", "exit 0")))
        await hosts.wait(S)
        async with turns_of(hosts) as turns:
            await turns.get_state(S)  # a look first does not lose it
            await turns.take_over(S, T1, TurnSpec())
            assert (await turns.wait_for_turn(S, T1)).kind == "completed"
        async with turns_of(hosts) as turns:
            with pytest.raises(SessionError) as unknown:
                await turns.take_over(SessionId("nobody"), T1, TurnSpec())
    assert unknown.value.code == "SESSION_NOT_FOUND"


async def test_a_verb_interrupts_and_answers_without_writing_the_record(hosts: SessionHosts, root: Path) -> None:
    asks = "trap 'echo interrupted; exit 0' INT; echo 'Continue? [y/n]'; read -r line; echo got:$line; sleep 600 & wait"
    with anyio.fail_after(60):
        async with turns_of(hosts) as turns:
            await turns.start_turn(S, TurnSpec(launch=replace(stays(asks), input=InputRules(silent_s=0.2))))
        asked = await hosts.question_change(S, None)
        assert asked is not None
        written = (root / "s1" / "turns.json").read_bytes()
        async with hosts.turns(read_only=True) as turns:
            assert turns.is_awaiting_permission(S) is False  # not looked at yet
            assert (await turns.get_state(S)).pending == (asked.id,)
            result = await turns.resolve_permission(S, RequestId(asked.id), Answer(keys=("y", "Enter")))
            with pytest.raises(SessionError) as late:
                await turns.resolve_permission(S, RequestId(asked.id), Answer(keys=("n",)))
            assert (result.delivered, late.value.code) == ("true", "SESSION_STATE_CONFLICT")
            read = await hosts.read(S, cursor=0, wait_ms=5000)
            while "got:y" not in read.text:
                read = await hosts.read(S, cursor=0, wait_ms=5000)
            await turns.interrupt(S)
        assert "interrupted" in (await hosts.wait(S)).tail
    assert (root / "s1" / "turns.json").read_bytes() == written


SPEAKS = """
if turn == 2:
    update(sessionUpdate="tool_call", toolCallId="c", title="cargo test\\n--all", status="pending")
    permission("late", "allow_once", "reject_once")
    say(repr(answers()))
    wait_for_cancel()
    stop = "end_turn"
"""


async def test_an_agent_that_speaks_has_its_turns_ids_and_permissions_coordinated(
    hosts: SessionHosts, root: Path
) -> None:
    speaks = launch("s1", AGENTS / "speaks.py", SPEAKS, driver="acp", acp=AcpRules(idle_life_s=60.0))
    with anyio.fail_after(60):
        async with turns_of(hosts) as turns:
            await turns.start_turn(S, TurnSpec(launch=speaks, prompt="say hello"))
            outcome = await turns.wait_for_turn(S, T1)
            assert (outcome.kind, outcome.stop_reason, outcome.facts is not None) == ("completed", "end_turn", True)
            record = await hosts.record(S)
            assert record is not None and record.conversation is not None
            conversation = record.conversation.external_session
            assert (await turns.get_state(S)).external_session == conversation != ""
            await turns.start_turn(S, TurnSpec(prompt="ask me"), turn=T2)
            asked = await hosts.question_change(S, None)
            assert asked is not None
            live = turns._carrier.lives[S]
            while not {"update", "permission_requested"} <= {each.name for each in live.events if each.turn == T2}:
                await live.next_change()
            record = await hosts.record(S)
            assert record is not None and record.turn is not None and record.turn.doing == "cargo test"
            async with hosts.turns(read_only=True) as verb:
                await verb.resolve_permission(S, RequestId(asked.id), Answer("allow_once"))
                with pytest.raises(SessionError) as late:
                    await verb.resolve_permission(S, RequestId(asked.id), Answer("reject_once"))
            assert late.value.code == "SESSION_STATE_CONFLICT"
            read = await hosts.read(S, cursor=0, wait_ms=5000)
            while "allow_once')" not in read.text:
                read = await hosts.read(S, cursor=0, wait_ms=5000)
            # It says end_turn, and was asked to stop before.
            assert await turns.cancel_turn(S, T2) is True
            assert (await turns.wait_for_turn(S, T2)).kind == "cancelled"
            assert (await turns.get_state(S)).pending == ()
            await turns.dispose_session(S)
    stored = load_record(root / "s1")
    assert stored is not None and (stored.outcome, stored.external_sessions) == ("cancelled", (conversation,))
    told = [(each.turn, each.name, each.words) for each in stored.events]
    assert told[:3] == [
        ("", "process_started", ""),
        (T1, "external_session_id", conversation),
        (T1, "completed", "end_turn"),
    ]
    # That it calls a tool is told beside what it asks; no two of them wait for each other.
    assert set(told[3:]) >= {
        (T2, "update", "tool_call cargo test"),
        (T2, "permission_requested", f"{asked.id}: late [allow_once, reject_once]"),
        (T2, "permission_invalidated", f"{asked.id}: withdrawn"),
        (T2, "completed", "cancelled"),
    }
    numbers = [each.number for each in stored.events if each.turn == T2]
    assert numbers == sorted(numbers)
