"""Output and input of every driver with every rude agent: one contract, real children, real terminals."""

import hashlib
import os
import signal
from pathlib import Path

import anyio
import pytest
from hosts import AGENTS, launch, lives, shell, text_of, until

from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import Driver, InputRules, Output, QuestionRule, SessionId, WriteResult

pytestmark = pytest.mark.anyio
ID = SessionId("s1")


async def followed(hosts: SessionHosts, *, form: str = "plain") -> tuple[str, int]:
    """Everything that a follower gets until the end, and how many bytes it missed."""
    text, cursor, dropped = "", 0, 0
    with anyio.fail_after(60):
        while True:
            piece = await hosts.read(ID, cursor=cursor, wait_ms=10_000, form=form)  # type: ignore[arg-type]
            text, cursor, dropped = text + piece.text, piece.next_cursor, dropped + piece.dropped_bytes
            if piece.ended:
                return text, dropped


async def seen(hosts: SessionHosts, wanted: str) -> Output:
    """The output once it has the text."""
    with anyio.fail_after(20):
        while wanted not in (output := await hosts.read(ID, cursor=0)).text:
            await hosts.read(ID, cursor=output.next_cursor, wait_ms=5_000)
    return output


async def kill_host(hosts: SessionHosts) -> None:
    record = (await hosts.look(ID)).record
    assert record is not None
    assert record.host is not None
    pid = record.host.pid
    os.kill(pid, signal.SIGKILL)
    until(lambda: not lives(pid))


async def test_agent_that_dies_at_once_can_be_read_afterwards(hosts: SessionHosts, driver: Driver) -> None:
    await hosts.start(launch("s1", "dies-at-once.sh", driver=driver))
    await hosts.wait(ID)
    assert await hosts.read(ID) == Output("last words", 0, 10, 0, False, True)
    assert await hosts.read(ID, cursor=5) == Output("words", 5, 10, 0, False, True)
    assert await hosts.read(ID, cursor=99) == Output("", 99, 99, 0, False, True)


async def test_silent_agent_gives_an_empty_read_after_the_wait(hosts: SessionHosts, driver: Driver) -> None:
    await hosts.start(launch("s1", "silent.sh", driver=driver))
    assert await hosts.read(ID, wait_ms=100) == Output("", 0, 0, 0, False, False)


async def test_waiting_read_is_woken_by_output(hosts: SessionHosts, driver: Driver, tmp_path: Path) -> None:
    go = tmp_path / "go"
    await hosts.start(shell("s1", f"while [ ! -e {go} ]; do sleep 0.02; done; echo now; sleep 600", driver=driver))
    with anyio.fail_after(15):
        async with anyio.create_task_group() as group:
            results: list[Output] = []

            async def wait() -> None:
                results.append(await hosts.read(ID, cursor=0, wait_ms=25_000))

            for _ in range(3):
                group.start_soon(wait)
            go.touch()
    assert {result.text for result in results} == {"now\n"}


async def test_waiting_read_is_woken_by_the_end(hosts: SessionHosts, driver: Driver) -> None:
    await hosts.start(launch("s1", "silent.sh", driver=driver))
    async with anyio.create_task_group() as group:

        async def wait() -> None:
            with anyio.fail_after(15):
                assert (await hosts.read(ID, cursor=0, wait_ms=25_000)).ended

        group.start_soon(wait)
        await hosts.close(ID)


async def test_flood_is_followed_and_what_was_missed_is_counted(hosts: SessionHosts, driver: Driver) -> None:
    size = 50 << 20
    await hosts.start(launch("s1", "noisy.py", str(size), driver=driver, ring_bytes=64 << 10, log_bytes=256 << 10))
    text, dropped = await followed(hosts, form="raw")
    assert text.endswith(("the end\n", "the end\r\n"))
    end = await hosts.wait(ID)
    assert len(text.encode()) + dropped == end.output_bytes >= size


async def test_characters_of_an_agent_that_splits_them_are_whole(hosts: SessionHosts, driver: Driver) -> None:
    await hosts.start(launch("s1", "invalid-utf8.sh", driver=driver))
    text, dropped = await followed(hosts)
    assert (text, dropped) == ("caf\ufffd \ufffd\ufffd ✓ 🙂\nred plain\n", 0)


async def test_characters_printed_byte_by_byte_are_exact(hosts: SessionHosts, driver: Driver) -> None:
    script = 'for b in 342 234 223 360 237 231 202 303 251; do printf "\\\\$b"; sleep 0.02; done'
    await hosts.start(shell("s1", script, driver=driver))
    assert await followed(hosts) == ("✓🙂é", 0)


async def test_secret_split_over_writes_is_masked_for_followers_live_and_afterwards(
    hosts: SessionHosts, driver: Driver
) -> None:
    secret = "correct-horse-battery"
    await hosts.start(launch("s1", "splits-secret.py", "MY_API_TOKEN", driver=driver, env={"MY_API_TOKEN": secret}))
    wanted = "line [redacted] end\n" * (len(secret) - 1)
    assert await followed(hosts) == (wanted, 0)
    await hosts.wait(ID)
    assert (await hosts.read(ID, cursor=0)).text == wanted


async def test_output_is_read_after_the_death_of_the_host(hosts: SessionHosts, driver: Driver, root: Path) -> None:
    await hosts.start(shell("s1", "echo a line; printf 'a question? '; sleep 600", driver=driver))
    await seen(hosts, "question")
    until(lambda: "question" in (root / "s1" / "output.log").read_text())
    await kill_host(hosts)
    output = await hosts.read(ID, cursor=0)
    assert (output.text, output.ended) == ("a line\na question? ", True)


async def test_stopped_host_is_said_to_be_silent_and_goes_on(hosts: SessionHosts, driver: Driver) -> None:
    await hosts.start(shell("s1", "echo here; sleep 600", driver=driver))
    await seen(hosts, "here")
    record = (await hosts.look(ID)).record
    assert record is not None
    assert record.host is not None
    os.kill(record.host.pid, signal.SIGSTOP)
    try:
        assert (await hosts.look(ID)).liveness == "unreachable"
        for call in (hosts.read(ID), hosts.write(ID, "x"), hosts.interrupt(ID)):
            with pytest.raises(SessionError) as caught:
                await call
            assert caught.value.code == "SESSION_NOT_HEALTHY"
    finally:
        os.kill(record.host.pid, signal.SIGCONT)
    assert (await seen(hosts, "here")).text == "here\n"


async def test_text_of_200_kib_arrives_whole_at_a_reader_that_is_two_seconds_late(
    hosts: SessionHosts, driver: Driver
) -> None:
    lines = [os.urandom(40).hex() for _ in range(2500)]
    text = "\n".join(lines) + "\n"
    size, digest = len(text), hashlib.sha256(text.encode()).hexdigest()
    how = "lines" if driver == "pty" else "pipe"
    script = f"{AGENTS}/raw-reader.py lines 2 {size}" if how == "lines" else f"sleep 2; head -c {size} | sha256sum"
    await hosts.start(shell("s1", script, driver=driver, is_input_open=True))
    assert (await hosts.write(ID, text)).delivered in ("true", "unknown")
    await seen(hosts, digest)


async def test_question_is_a_fact_until_it_is_answered(hosts: SessionHosts, driver: Driver) -> None:
    rules = InputRules(questions=(QuestionRule("trust", r"Do you trust .*\[y/N\]\s*\Z"),))
    await hosts.start(launch("s1", "asks.sh", driver=driver, input=rules))
    await anyio.to_thread.run_sync(until, lambda: _state(hosts) == "awaiting-input")
    record = (await hosts.look(ID)).record
    assert record is not None
    assert record.question is not None
    assert (record.question.kind, record.question.text) == ("trust", "Do you trust this folder? [y/N]")
    for text, submit in (("y", True), ("go\non", False)):
        assert await hosts.write(ID, text, submit=submit) == WriteResult(
            "false", "it shows a trust dialog, which this would answer blindly"
        )
    assert (await hosts.write(ID, "y", submit=True, is_answer=True)).delivered in ("true", "unknown")
    end = await hosts.wait(ID)
    assert (end.exit_code, "trusted" in end.tail) == (0, True)


async def test_deadline_stands_still_while_a_question_waits(hosts: SessionHosts, driver: Driver) -> None:
    rules = InputRules(questions=(QuestionRule("yes-no", r"\[y/N\]\s*\Z"),))
    await hosts.start(launch("s1", "asks.sh", driver=driver, input=rules, timeout_s=1.0))
    await anyio.to_thread.run_sync(until, lambda: _state(hosts) == "awaiting-input")
    await anyio.sleep(1.2)  # longer than the deadline
    assert (await hosts.look(ID)).liveness == "live"


async def test_write_to_an_ended_session_is_refused(hosts: SessionHosts, driver: Driver) -> None:
    await hosts.start(launch("s1", "dies-at-once.sh", driver=driver))
    await hosts.wait(ID)
    with pytest.raises(SessionError) as caught:
        await hosts.write(ID, "x")
    assert caught.value.code == "SESSION_WRITE_FAILED"


async def test_interrupt_reaches_the_program(hosts: SessionHosts, driver: Driver, tmp_path: Path) -> None:
    script = f"trap 'echo interrupted; exit 8' INT; touch {tmp_path}/up; while :; do sleep 0.05; done"
    await hosts.start(shell("s1", script, driver=driver, is_input_open=True))
    until((tmp_path / "up").exists)
    await hosts.interrupt(ID)
    end = await hosts.wait(ID)
    assert (end.exit_code, "interrupted" in end.tail) == (8, True)


@pytest.mark.parametrize("agent", ["removes-cwd.sh", "holds-terminal.sh", "closes-terminal.sh", "ignores-signals.sh"])
async def test_rude_agent_is_read_and_closed_completely(
    hosts: SessionHosts, driver: Driver, tmp_path: Path, agent: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    await hosts.start(launch("s1", agent, tmp_path / "one", tmp_path / "two", driver=driver, cwd=work))
    if agent == "ignores-signals.sh":
        text_of(tmp_path / "one")
    else:
        said = {"removes-cwd.sh": "removed", "holds-terminal.sh": "bye", "closes-terminal.sh": "closing"}[agent]
        assert (await seen(hosts, said)).text == f"{said}\n"
    with anyio.fail_after(10):
        assert await hosts.close(ID) == ()
    assert (await hosts.read(ID)).ended


def _state(hosts: SessionHosts) -> str:
    from coordinate_agents.sessions import custodian

    record = custodian.see(hosts._root / "s1").record
    return record.state if record else ""
