"""Input on real terminals: what was typed arrives whole, or it is said that it did not."""
# ruff: noqa: ASYNC110

import hashlib
import os
from pathlib import Path

import anyio
import pytest
from hosts import launch, shell

from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import InputRules, QuestionRule, SessionId, WriteResult

pytestmark = pytest.mark.anyio
ID = SessionId("s1")
MAX_TEXT = 256 << 10


def raise_unless_true(result: WriteResult) -> None:
    """Both ways to say that a Session ended under a writer, as one."""
    if result.delivered != "true":
        raise SessionError("SESSION_WRITE_FAILED", result.reason)


async def seen(hosts: SessionHosts, wanted: str) -> str:
    with anyio.fail_after(30):
        while wanted not in (output := await hosts.read(ID, cursor=0)).text:
            assert not output.ended, output.text
            await hosts.read(ID, cursor=output.next_cursor, wait_ms=5_000)
    return output.text


@pytest.mark.parametrize("size", [10_000, 200 << 10, MAX_TEXT])
async def test_one_long_line_waits_for_raw_mode_and_arrives_whole(hosts: SessionHosts, size: int) -> None:
    text = os.urandom(size // 2).hex()
    await hosts.start(launch("s1", "raw-reader.py", "raw", "2", str(size)))
    assert await hosts.write(ID, text) == WriteResult("true")
    await seen(hosts, hashlib.sha256(text.encode()).hexdigest())


async def test_one_long_line_for_a_program_that_stays_in_line_mode_is_not_delivered(hosts: SessionHosts) -> None:
    rules = InputRules(line_wait_s=0.2)
    await hosts.start(shell("s1", 'read -r line; echo "got ${#line}"', input=rules))
    result = await hosts.write(ID, "x" * 5000, submit=True)
    assert result.delivered == "false"
    assert "5000 bytes" in result.reason
    assert "line mode, which keeps 4095" in result.reason
    await hosts.write(ID, "x" * 4094, submit=True)
    await seen(hosts, "got 4094")


async def test_program_that_never_reads_gives_no_proof(hosts: SessionHosts) -> None:
    await hosts.start(launch("s1", "silent.sh"))
    with anyio.fail_after(30):
        result = await hosts.write(ID, "hello", submit=True)
    assert result.delivered == "unknown"
    assert "did not read it" in result.reason


async def test_writer_that_waits_stops_neither_reads_nor_the_close(hosts: SessionHosts) -> None:
    await hosts.start(shell("s1", "echo up; exec sleep 600"))

    async def write() -> None:
        with pytest.raises(SessionError) as caught:
            raise_unless_true(await hosts.write(ID, "a line\n" * 30_000))
        assert caught.value.code == "SESSION_WRITE_FAILED"

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        with anyio.fail_after(10):
            await seen(hosts, "up")
            assert await hosts.close(ID) == ()


async def test_session_without_input_says_so(hosts: SessionHosts) -> None:
    await hosts.start(launch("s1", "silent.sh", driver="pipe"))
    assert await hosts.write(ID, "x") == WriteResult("false", "the Session has no terminal and no open stdin")


@pytest.mark.parametrize(("text", "word"), [("a\x1b[201~b", "U+001B"), ("a\x03", "U+0003"), ("\ud800", "Unicode")])
async def test_text_with_control_characters_is_refused(hosts: SessionHosts, text: str, word: str) -> None:
    with pytest.raises(SessionError) as caught:
        await hosts.write(ID, text)
    assert (caught.value.code, word in caught.value.message) == ("INVALID_USAGE", True)


async def test_text_that_is_too_long_is_refused(hosts: SessionHosts) -> None:
    with pytest.raises(SessionError) as caught:
        await hosts.write(ID, "é" * (MAX_TEXT // 2) + "x")
    assert f"{MAX_TEXT + 1} bytes (limit {MAX_TEXT})" in caught.value.message


async def test_prompt_of_60_lines_is_pasted_and_submitted_once(hosts: SessionHosts) -> None:
    text = "\n".join(f"line {number}" for number in range(60))
    await hosts.start(launch("s1", "composer.py", input=InputRules(ready=(r"> \Z",))))
    result = await hosts.write(ID, text, submit=True)
    assert (await hosts.wait(ID)).exit_code == 0
    assert result.delivered in ("true", "unknown")  # it ends with its answer
    assert f"submitted 60 lines {hashlib.sha256(text.encode()).hexdigest()}" in (await hosts.read(ID, cursor=0)).text


async def test_dialog_that_comes_up_behind_a_paste_gets_no_enter(hosts: SessionHosts) -> None:
    script = (
        "stty raw -echo; printf '\\033[?2004h> '; dd bs=1 count=19 2>/dev/null | od -An -c | tr -d '\\n';"
        " printf 'Do you want to run it? (permission) '; dd bs=1 count=1 2>/dev/null | od -An -tx1; sleep 600"
    )
    rules = InputRules(ready=(r"> \Z",), pause_s=1.5, questions=(QuestionRule("permission", r"\(permission\)\s*\Z"),))
    await hosts.start(shell("s1", script, input=rules))
    result = await hosts.write(ID, "do it a", submit=True)
    assert result == WriteResult("unknown", "a permission dialog came up; it was typed and not submitted")
    assert "0d" not in (await hosts.read(ID, cursor=0)).text
    assert await hosts.keys(ID, ["n"]) == WriteResult("true")
    await seen(hosts, "6e")


async def test_prompt_that_speaks_of_a_dialog_is_submitted(hosts: SessionHosts) -> None:
    rules = InputRules(ready=(r"> \Z",), questions=(QuestionRule("trust", r"Trust this folder\?[\s\S]{0,300}\Z"),))
    script = "stty raw; printf '\\033[?2004h> '; dd bs=1 count=38 2>/dev/null | od -An -tx1; sleep 600"
    await hosts.start(shell("s1", script, input=rules))
    text = "Ask: Trust this folder? N"
    assert (len(text), (await hosts.write(ID, text, submit=True)).delivered) == (25, "true")
    await seen(hosts, "7e 0d")


async def test_program_that_is_never_ready_gets_nothing(hosts: SessionHosts) -> None:
    rules = InputRules(ready=("ready>",), ready_bound_s=0.3)
    await hosts.start(shell("s1", "cat", input=rules))
    result = await hosts.write(ID, "hello", submit=True)
    assert result == WriteResult("false", "not ready after 0.3 s; nothing was typed")
    assert (await hosts.read(ID)).text == ""


async def test_slow_starter_that_flushes_its_input_gets_the_prompt_once(hosts: SessionHosts) -> None:
    script = (
        "sleep 1; python3 -c 'import termios; termios.tcflush(0, termios.TCIFLUSH)'; printf 'ready> ';"
        ' IFS= read -r p; echo "got:$p"; sleep 600'
    )
    await hosts.start(shell("s1", script, input=InputRules(ready=(r"ready>\s*\Z",))))
    assert await hosts.write(ID, "do it", submit=True) == WriteResult("true")
    assert (await seen(hosts, "got:")).endswith("got:do it\n")


async def test_named_keys_are_typed_one_by_one(hosts: SessionHosts) -> None:
    script = "stty raw -echo; echo up; dd bs=1 count=9 2>/dev/null | od -An -tx1; sleep 600"
    await hosts.start(shell("s1", script))
    await seen(hosts, "up")
    assert await hosts.keys(ID, ["Down", "Enter", "Escape", "C-c", "y", "7", "Tab"]) == WriteResult("true")
    await seen(hosts, "1b 5b 42 0d 1b 03 79 37 09")


@pytest.mark.parametrize("names", [[], ["enter"], ["Enter"] * 65, ["C-x"]])
async def test_key_that_is_not_in_the_list_is_refused(hosts: SessionHosts, names: list[str]) -> None:
    with pytest.raises(SessionError) as caught:
        await hosts.keys(ID, names)
    assert caught.value.code == "INVALID_USAGE"


async def test_program_blocked_on_its_terminal_is_awaiting_input(hosts: SessionHosts) -> None:
    await hosts.start(shell("s1", "printf 'Name: '; read -r name; echo $name", input=InputRules(silent_s=0.5)))
    with anyio.fail_after(10):
        while (record := (await hosts.look(ID)).record) is None or record.state != "awaiting-input":
            await anyio.sleep(0.05)
    assert record.question is not None
    assert (record.question.kind, record.question.text) == ("other", "Name:")


async def test_terminal_has_a_sane_size_and_resize_reaches_the_program(hosts: SessionHosts, tmp_path: Path) -> None:
    script = f"stty size; trap 'stty size' WINCH; touch {tmp_path}/up; while :; do sleep 0.05; done"
    await hosts.start(shell("s1", script))
    await seen(hosts, "40 120")
    while not (tmp_path / "up").exists():
        await anyio.sleep(0.01)
    await hosts.resize(ID, 100, 30)
    await seen(hosts, "30 100")
    record = (await hosts.look(ID)).record
    assert record is not None
    assert (record.columns, record.rows) == (100, 30)
    with pytest.raises(SessionError):
        await hosts.resize(ID, 0, 30)


async def test_interrupt_of_a_raw_terminal_is_a_signal_and_of_an_ordinary_one_the_key(hosts: SessionHosts) -> None:
    script = "trap 'echo first; stty raw; trap \"echo second; exit 5\" INT' INT; echo up; while :; do sleep 0.05; done"
    await hosts.start(shell("s1", script))
    await seen(hosts, "up")
    await hosts.interrupt(ID)
    await seen(hosts, "first")
    await anyio.sleep(0.3)  # the shell sets the second trap and raw mode right after it printed
    await hosts.interrupt(ID)
    assert (await hosts.wait(ID)).exit_code == 5


async def test_program_that_asks_where_its_cursor_stands_is_told(hosts: SessionHosts) -> None:
    script = (
        "stty raw -echo; printf 'one\\r\\ntwo\\033[5;7Hxy\\033[6n'; answer=$(dd bs=1 count=6 2>/dev/null);"
        " printf '\\r\\n'; printf %s \"$answer\" | od -c | head -1"
    )
    await hosts.start(shell("s1", script, rows=10, columns=50))
    end = await hosts.wait(ID)
    assert end.tail.splitlines()[-1].split()[1:] == ["033", "[", "5", ";", "9", "R"]
