"""Agents that speak the Agent Client Protocol, in their hosts: real children, most of them rude."""

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from hosts import AGENTS, launch, lives, until

from coordinate_agents.sessions import asking
from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import (
    AcpRules,
    AgentTurn,
    Launch,
    Question,
    SessionId,
    SessionRecord,
    TurnLimits,
)

pytestmark = pytest.mark.anyio
ID = SessionId("s1")
ONE = "allow_once", "reject_once"


def acp(script: str, *, name: str = "s1", env: dict[str, str] | None = None, rules: Any = None, **more: Any) -> Launch:
    """The rude agent with this script for its turns."""
    rules = rules or AcpRules(idle_life_s=60.0)
    return launch(name, AGENTS / "speaks.py", script, driver="acp", env=env, acp=rules, **more)


async def turned(hosts: SessionHosts, turn: str = "t1", text: str = "do it", **limits: Any) -> AgentTurn:
    with anyio.fail_after(30):
        await hosts.prompt(ID, turn, TurnLimits(**limits), text=text)
        return await hosts.turn_end(ID, turn)


async def record_of(hosts: SessionHosts) -> SessionRecord:
    record = (await hosts.look(ID)).record
    assert record is not None
    return record


async def question(hosts: SessionHosts, known: Question | None = None) -> Question:
    with anyio.fail_after(30):
        asked = await hosts.question_change(ID, known)
    assert asked is not None
    return asked


async def test_turns_go_to_one_process_and_end_as_the_agent_says(hosts: SessionHosts) -> None:
    script = """
say(f"turn {turn}: {prompt}\\n")
update(sessionUpdate="tool_call", toolCallId="c1", title="make it", status="in_progress")
update(sessionUpdate="tool_call_update", toolCallId="c1", status="completed",
       content=[{"type": "content", "content": {"type": "text", "text": "made\\x1b[2J it"}}])
update(sessionUpdate="plan", entries=[{"content": "one", "status": "completed"}, {"content": "two"}])
"""
    await hosts.start(acp(script))
    first = await turned(hosts, "t1", "hello")
    assert (first.state, first.stop_reason, first.was_cancelled) == ("ended", "end_turn", False)
    record = await record_of(hosts)
    assert record.state == "idle"
    assert record.conversation is not None
    assert record.child is not None
    assert (record.conversation.peer, record.conversation.is_ready) == ("rude 1", True)
    assert record.conversation.external_session == f"session-{record.child.pid}"
    assert await turned(hosts, "t1") == first, "the same turn again starts nothing"
    assert (await turned(hosts, "t2", "again")).state == "ended"
    said = (
        "turn {0}: {1}\n[tool] make it: in_progress\n[tool] make it: completed\n  made it\n[plan]\n  [x] one\n  [ ] two"
    )
    output = (await hosts.read(ID, cursor=0)).text
    assert output == f"[turn t1]\n{said.format(1, 'hello')}\n[turn t2]\n{said.format(2, 'again')}\n"
    assert first.tail == f"[turn t1]\n{said.format(1, 'hello')}"
    assert (await hosts.look(ID)).last_line == "[ ] two"
    assert await hosts.close(ID) == ()


async def test_a_second_prompt_is_refused_and_leaves_the_running_turn_alone(hosts: SessionHosts) -> None:
    await hosts.start(acp("wait_for_cancel(); stop = 'cancelled'"))
    await hosts.prompt(ID, "t1", text="one")
    with pytest.raises(SessionError) as refused:
        await hosts.prompt(ID, "t2", text="two")
    assert refused.value.code == "SESSION_STATE_CONFLICT"
    assert "turn t1 runs" in refused.value.message
    written = await hosts.write(ID, "three", submit=True)
    assert (written.delivered, written.reason) == ("false", "turn t1 runs")
    assert await hosts.cancel(ID, "t1")
    with anyio.fail_after(30):
        assert (await hosts.turn_end(ID, "t1")).was_cancelled


async def test_cancel_is_sent_once_and_never_for_another_turn(hosts: SessionHosts, tmp_path: Path) -> None:
    log = tmp_path / "log"
    # The end of a cancelled turn lies.
    await hosts.start(acp("wait_for_cancel()", env={"FAKE_LOG": str(log)}))
    await hosts.prompt(ID, "t1", text="one")
    await opened(hosts)
    assert not await hosts.cancel(ID, "t0"), "a late cancel of an earlier turn"
    assert not log.exists()
    assert await hosts.cancel(ID, "t1")
    with anyio.fail_after(30):
        end = await hosts.turn_end(ID, "t1")
    assert (end.state, end.stop_reason, end.was_cancelled) == ("ended", "end_turn", True)
    assert not await hosts.cancel(ID, "t1")
    assert log.read_text() == "cancel\n"


async def opened(hosts: SessionHosts) -> None:
    """Wait until the agent's session is open."""

    def is_ready(record: SessionRecord | None) -> bool:
        return record is not None and record.conversation is not None and record.conversation.is_ready

    with anyio.fail_after(30):
        await asking.until(hosts._path(ID), is_ready, asking.Words())


async def test_an_agent_that_ignores_a_cancel_is_ended_at_its_bound(hosts: SessionHosts) -> None:
    await hosts.start(acp("while True: read()"))
    await hosts.prompt(ID, "t1", text="one")
    await opened(hosts)
    with anyio.fail_after(30):
        assert await hosts.cancel(ID, bound_s=0.2)
        end = await hosts.turn_end(ID, "t1")
        assert (end.state, end.was_cancelled) == ("failed", True)
        assert (await hosts.wait(ID)).cause == "protocol"


async def test_two_permissions_are_answered_each_once_under_its_own_id(hosts: SessionHosts) -> None:
    script = """
permission("number", "allow_once", "reject_once", id=7)
permission("text", "allow_once", "reject_once", id="7")
say(repr(answers(2)))
"""
    await hosts.start(acp(script, timeout_s=2.0))
    await hosts.prompt(ID, "t1", TurnLimits(timeout_s=2.0), text="one")
    first = await question(hosts)
    assert (first.kind, first.text) == (
        "permission",
        "number\n  allow_once: allow once\n  reject_once: reject once",
    )
    assert [(each.id, each.kind) for each in first.options] == [(each, each) for each in ONE]
    record = await record_of(hosts)
    assert record.state == "awaiting-input"
    for request, option in ((first.request, "perhaps"), ("p9", "allow_once")):
        with pytest.raises(SessionError) as refused:
            await hosts.answer(ID, request, option)
        assert refused.value.code == "SESSION_STATE_CONFLICT"
    await hosts.answer(ID, first.request, "reject_once")
    with pytest.raises(SessionError):
        await hosts.answer(ID, first.request, "allow_once")
    second = await question(hosts, first)
    assert second.text.startswith("text")
    await hosts.answer(ID, second.request, "allow_once")
    with anyio.fail_after(30):
        end = await hosts.turn_end(ID, "t1")
    assert end.tail.splitlines()[-1] == "[(7, 'reject_once'), ('7', 'allow_once')]"
    assert await hosts.question(ID) is None


async def test_permission_that_nobody_answers_is_cancelled_and_one_of_a_cancelled_turn_too(hosts: SessionHosts) -> None:
    script = """
permission("late", "allow_once")
say(repr(answers()))
permission("dropped", "allow_once")
say(repr(answers()))
wait_for_cancel()
permission("never shown", "allow_once")
say(repr(answers()))
"""
    await hosts.start(acp(script, rules=AcpRules(permission_timeout_s=0.3)))
    await hosts.prompt(ID, "t1", text="one")
    late = await question(hosts)
    with anyio.fail_after(30):
        dropped = await hosts.question_change(ID, late)
        if dropped is None:
            dropped = await question(hosts)
        assert await hosts.cancel(ID)
        end = await hosts.turn_end(ID, "t1")
    assert dropped.text.startswith("dropped")
    assert end.tail.count("'cancelled')]") == 3
    assert "never shown" not in end.tail


async def test_long_lines_are_heard(hosts: SessionHosts) -> None:
    await hosts.start(acp("say('x' * 70_000 + ' one\\n'); say('y' * 1_000_000 + ' two')"))
    end = await turned(hosts)
    assert (end.state, end.tail.endswith("yyy two")) == ("ended", True)
    assert "xxx one\n" in (await hosts.read(ID, cursor=0, max_bytes=100_000)).text


async def test_a_line_beyond_the_limit_fails_the_turn_with_the_limit(hosts: SessionHosts) -> None:
    await hosts.start(acp("say('x' * 64_000_000)"))
    end = await turned(hosts)
    assert (end.state, end.error) == ("failed", "the agent wrote a line of more than 16 MiB")
    with anyio.fail_after(30):
        ended = await hosts.wait(ID)
    assert (ended.cause, ended.error) == ("protocol", "the agent wrote a line of more than 16 MiB")


async def test_stray_lines_are_shown_and_stderr_is_drained_and_shown_where_something_fails(hosts: SessionHosts) -> None:
    script = """# from the start
if turn == 0:
    write("a banner\\n{ not json\\n")
else:
    write("stray {text}\\n[1]\\n\\n")
    sys.stderr.write("noise\\n" * 200_000 + "the reason\\n")
    sys.stderr.flush()
    if turn == 2:
        error = {"code": -32603, "message": "Internal error", "data": {"details": "the model is away"}}
"""
    await hosts.start(acp(script))
    first = await turned(hosts)
    assert first.state == "ended"
    text = (await hosts.read(ID, cursor=0)).text
    assert "a banner\n{ not json\n" in text
    assert "stray {text}\n[1]\n\n" in text
    assert "noise" not in first.tail
    second = await turned(hosts, "t2")
    assert (second.state, second.code) == ("failed", "")
    assert second.error == 'Internal error ({"details": "the model is away"})'
    assert second.tail.endswith("[stderr] noise\n[stderr] the reason")
    assert (await turned(hosts, "t3")).state == "ended", "the next turn is not the failed one's"


@pytest.mark.parametrize(
    ("script", "code", "error"),
    [
        (
            "send({'id': 0, 'result': {'protocolVersion': 1}}); read(); read(); "
            "send({'id': 1, 'error': {'code': -32000, 'message': 'log in first'}})",
            "AUTH_REQUIRED",
            "it opens no session: log in first",
        ),
        ("os.close(1)", "", "the agent closed its stdout"),
        ("sys.stderr.write('no licence'); sys.exit(3)", "", "the agent ended with exit code 3"),
    ],
)
async def test_an_agent_that_opens_no_session_fails_its_turn_with_the_reason(
    hosts: SessionHosts, script: str, code: str, error: str
) -> None:
    await hosts.start(acp(f"# from the start\n{script}\nread()\ntime.sleep(600)"))
    try:
        end = await turned(hosts)
    except SessionError:  # it was over before the prompt came
        with anyio.fail_after(30):
            end = await hosts.turn_end(ID, "t1")
    record = await record_of(hosts)
    assert record.conversation is not None
    assert (record.conversation.code, record.conversation.error) == (code, error)
    assert end.state == "failed"
    with anyio.fail_after(30):
        ended = await hosts.wait(ID)
    assert "no licence" not in script or ended.tail.endswith("[stderr] no licence")


async def test_an_exit_in_the_middle_of_a_turn_is_a_failed_turn_whatever_its_code(hosts: SessionHosts) -> None:
    await hosts.start(acp("write('half a line'); sys.exit(0)"))
    end = await turned(hosts)
    assert (end.state, end.error) == ("failed", "the agent ended with exit code 0")
    with anyio.fail_after(30):
        ended = await hosts.wait(ID)
    assert (ended.cause, ended.exit_code) == ("exit", 0)
    assert ended.tail.count("half a line") == 1


async def test_a_turn_that_ends_before_the_exit_has_ended(hosts: SessionHosts) -> None:
    await hosts.start(acp("send({'id': 2, 'result': {'stopReason': 'end_turn'}}); sys.exit(1)"))
    end = await turned(hosts)
    assert (end.state, end.stop_reason) == ("ended", "end_turn")
    with anyio.fail_after(30):
        assert (await hosts.wait(ID)).exit_code == 1


async def test_a_session_is_taken_up_by_another_process_or_visibly_not(hosts: SessionHosts, tmp_path: Path) -> None:
    env = {"ACP_STORE": str(tmp_path)}
    await hosts.start(acp("say(str(history))", env=env))
    await turned(hosts, "t1", "remember")
    record = await record_of(hosts)
    assert record.conversation is not None
    await hosts.close(ID)
    again = SessionId("s2")
    rules = AcpRules(load=record.conversation.external_session)
    await hosts.start(acp("say(str(history))", name="s2", env=env, rules=rules))
    with anyio.fail_after(30):
        await hosts.prompt(again, "t2", text="go on")
        end = await hosts.turn_end(again, "t2")
    # The history that comes with loading is not said again.
    assert end.tail == "[turn t2]\n['remember']"
    taken = (await hosts.look(again)).record
    assert taken is not None
    assert taken.conversation is not None
    assert (taken.conversation.resumed, taken.conversation.external_session) == (True, rules.load)
    third = SessionId("s3")
    await hosts.start(acp("say(str(history))", name="s3", env=env, rules=AcpRules(load="session-gone")))
    with anyio.fail_after(30):
        await hosts.prompt(third, "t3", text="all of it")
        end = await hosts.turn_end(third, "t3")
    assert end.tail.endswith("[]")
    fresh = (await hosts.look(third)).record
    assert fresh is not None
    assert fresh.conversation is not None
    assert (fresh.conversation.resumed, fresh.conversation.reason) == (
        False,
        "the agent could not take it up: no such session",
    )


async def test_an_agent_that_stays_after_its_stdin_ended_is_ended_with_its_tree(
    hosts: SessionHosts, tmp_path: Path
) -> None:
    script = f"""
child = subprocess.Popen(["sh", "-c", "trap '' TERM HUP INT; while :; do sleep 1; done"], start_new_session=True)
Path({str(tmp_path / "pid")!r}).write_text(str(child.pid))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
try:
    wait_for_cancel()
finally:
    time.sleep(600)
"""
    await hosts.start(acp(script, close_bound_s=2.0))
    await hosts.prompt(ID, "t1", text="one")
    until((tmp_path / "pid").exists)
    pid = int(until((tmp_path / "pid").read_text))
    with anyio.fail_after(30):
        assert await hosts.close(ID) == ()
        end = await hosts.turn_end(ID, "t1")
    assert (end.state, end.was_cancelled, lives(pid)) == ("failed", True, False)


async def test_the_host_keeps_the_deadlines_of_a_turn_and_the_idle_life_between_two(hosts: SessionHosts) -> None:
    await hosts.start(acp("time.sleep(600 if turn == 2 else 0)", rules=AcpRules(idle_life_s=60.0)))
    assert (await turned(hosts, "t1", timeout_s=20.0)).state == "ended"
    end = await turned(hosts, "t2", timeout_s=0.3)
    assert end.state == "failed"
    with anyio.fail_after(30):
        assert (await hosts.wait(ID)).cause == "timeout"


async def test_text_that_is_submitted_is_a_turn_and_nothing_else_can_be_typed(hosts: SessionHosts) -> None:
    await hosts.start(acp("say(prompt)"))
    assert (await hosts.write(ID, "hello there", submit=True)).delivered in ("true", "unknown")
    with anyio.fail_after(30):
        end = await hosts.turn_end(ID, "w1")
    assert end.tail == "[turn w1]\nhello there"
    assert (await hosts.write(ID, "hello")).delivered == "false"
    assert (await hosts.keys(ID, ["Enter"])).delivered == "false"
    with pytest.raises(SessionError):
        await hosts.interrupt(ID)


async def test_the_protocols_own_library_understands_every_message_of_a_host(hosts: SessionHosts) -> None:
    pytest.importorskip("acp", reason="agent-client-protocol, of the extra dev, is not installed")
    agent = launch("s1", sys.executable, AGENTS / "speaks_by_sdk.py", driver="acp", acp=AcpRules(load="another"))
    await hosts.start(agent)
    await hosts.prompt(ID, "t1", text="begin")
    asked = await question(hosts)
    assert [(each.id, each.name, each.kind) for each in asked.options] == [
        ("yes", "Do it", "allow_once"),
        ("no", "Leave it", "reject_once"),
    ]
    await hosts.answer(ID, asked.request, "no")
    with anyio.fail_after(30):
        await hosts.turn_end(ID, "t1")
    output = (await hosts.read(ID, cursor=0)).text
    assert output[output.index("[thinks]") :].splitlines() == [
        "[thinks] hm",
        "I begin. ",
        "[tool] make it: pending",
        "[permission] make it",
        "[permission]   yes: Do it",
        "[permission]   no: Leave it",
        "[permission] answered: no",
        "[tool] make it: completed",
        "  edits a.txt",
        "[plan]",
        "  [>] look again",
        "read: -32601. answer: selected no",
    ]
    await hosts.prompt(ID, "t2", text="wait")
    await said(hosts, "I begin. ", 2)
    assert await hosts.cancel(ID, "t2")
    with anyio.fail_after(30):
        assert (await hosts.turn_end(ID, "t2")).stop_reason == "cancelled"
    record = await record_of(hosts)
    assert record.conversation is not None
    assert (record.conversation.peer, record.conversation.external_session) == ("polite 2", "polite at /")
    assert record.conversation.reason.startswith("the agent could not take it up: ")
    await hosts.close(ID)
    ended = (await record_of(hosts)).conversation
    assert ended is not None
    assert ended.error == "", "it did nothing wrong"


async def said(hosts: SessionHosts, text: str, count: int) -> None:
    """Wait until it was said so often."""
    with anyio.fail_after(30):
        while (output := await hosts.read(ID, cursor=0)).text.count(text) < count:
            await hosts.read(ID, cursor=output.next_cursor, wait_ms=5_000)
