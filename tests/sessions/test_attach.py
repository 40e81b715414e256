"""Terminals joined to a Session's: streams, typing, sizes, slow ones, and who answers a program's questions."""
# ruff: noqa: ASYNC110, ASYNC240

import socket
from pathlib import Path

import anyio
import pytest
from hosts import launch, shell

from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.host.queries import Queries
from coordinate_agents.sessions.model import SessionId

pytestmark = pytest.mark.anyio
ID = SessionId("s1")


async def until_seen(attachment, wanted: bytes) -> bytes:  # type: ignore[no-untyped-def]
    data = b""
    with anyio.fail_after(20):
        while wanted not in data:
            data += await attachment.__anext__()
    return data


async def test_stream_goes_both_ways_and_detaching_leaves_everything_running(hosts: SessionHosts) -> None:
    await hosts.start(shell("s1", 'echo before; while read -r line; do echo "<$line>"; done'))
    async with hosts.attach(ID, is_writing=True) as attachment:
        await until_seen(attachment, b"before")
        assert (await hosts.look(ID)).attached
        await attachment.send(b"hello\r")
        await until_seen(attachment, b"<hello>")
        await attachment.resize(90, 20)
    with anyio.fail_after(5):
        while (facts := await hosts.look(ID)).attached:
            await anyio.sleep(0.01)
    assert facts.liveness == "live"
    async with hosts.attach(ID, is_writing=False) as attachment:
        assert b"<hello>" in await until_seen(attachment, b"<hello>")
        assert not (await hosts.look(ID)).attached
    facts = await hosts.look(ID)
    assert facts.record is not None
    assert (facts.record.columns, facts.record.rows) == (90, 20)


async def test_stream_ends_with_the_session(hosts: SessionHosts) -> None:
    await hosts.start(shell("s1", "read -r x; echo last"))
    async with hosts.attach(ID, is_writing=True) as attachment:
        await attachment.send(b"\r")
        data = b"".join([piece async for piece in attachment])
    assert data.endswith(b"last\r\n")


async def test_secrets_are_masked_in_the_stream(hosts: SessionHosts) -> None:
    env = {"MY_API_TOKEN": "correct-horse-battery"}
    await hosts.start(launch("s1", "splits-secret.py", "MY_API_TOKEN", env=env))
    try:
        async with hosts.attach(ID, is_writing=False) as attachment:
            data = b"".join([piece async for piece in attachment])
    except SessionError:
        pytest.skip("it ended before we came")
    assert b"correct" not in data
    assert set(data.split(b"\r\n")) <= {b"line [redacted] end", b""}


async def test_reader_cannot_type(hosts: SessionHosts) -> None:
    await hosts.start(shell("s1", "read -r x; echo got"))
    async with hosts.attach(ID, is_writing=False) as attachment:
        await attachment.send(b"\r")
        assert (await hosts.read(ID, cursor=0, wait_ms=300)).text == ""


async def test_attachment_that_does_not_read_stops_neither_the_program_nor_others(
    hosts: SessionHosts, tmp_path: Path
) -> None:
    done = tmp_path / "done"
    script = f"read -r x; head -c 8000000 /dev/zero | tr '\\0' y; echo; touch {done}; read -r x"
    await hosts.start(shell("s1", script))
    async with hosts.attach(ID, is_writing=False) as slow, hosts.attach(ID, is_writing=True) as quick:
        await quick.send(b"\r")
        with anyio.fail_after(30):
            while not done.exists():
                await anyio.sleep(0.01)
        size = 0
        await quick.send(b"\r")
        async for piece in slow:
            size += len(piece)
    assert slow.dropped_bytes > 0
    assert size + slow.dropped_bytes >= 8_000_000


async def test_ended_session_cannot_be_attached(hosts: SessionHosts) -> None:
    await hosts.start(launch("s1", "dies-at-once.sh"))
    await hosts.wait(ID)
    with pytest.raises(SessionError) as caught:
        async with hosts.attach(ID, is_writing=True):
            pass
    assert caught.value.code == "SESSION_WRITE_FAILED"


async def test_host_answers_terminal_questions_while_nobody_types(hosts: SessionHosts) -> None:
    await hosts.start(launch("s1", "composer.py"))
    with anyio.fail_after(10):
        while "kind" not in (output := await hosts.read(ID, cursor=0, wait_ms=1000)).text:
            pass
    assert output.text == "kind 9\n> "  # ESC [ ? 6 2 ; 2 2 c


async def test_a_persons_terminal_answers_while_it_is_attached_for_writing(hosts: SessionHosts) -> None:
    script = "read -r x; stty raw -echo; printf '\\033[6n'; dd bs=1 count=6 2>/dev/null | od -An -tx1; sleep 600"
    await hosts.start(shell("s1", script))
    async with hosts.attach(ID, is_writing=True) as attachment:
        await attachment.send(b"\r")
        await until_seen(attachment, b"\x1b[6n")
        await attachment.send(b"\x1b[9;9R")
        await until_seen(attachment, b"1b 5b 39 3b 39 52")


async def test_host_answers_for_a_persons_terminal_that_is_shown_no_questions(hosts: SessionHosts) -> None:
    script = "read -r x; stty raw -echo; printf '\\033[6n'; dd bs=1 count=6 2>/dev/null | od -An -tx1; sleep 600"
    await hosts.start(shell("s1", script))
    async with hosts.attach(ID, is_writing=True, is_answering=False) as attachment:
        await attachment.send(b"\r")
        await until_seen(attachment, b"1b 5b 32 3b 31 52")  # the echo of what was typed moved it down


@pytest.mark.parametrize("cut", range(1, 30))
def test_questions_split_over_reads_are_answered_once(cut: int) -> None:
    data = b"a\x1b[31mb\x1b[6n\x1b[>c\x1b]11;?\x1b\\\x1b[?2004h\x1b[18t"
    queries = Queries()

    def place(back: int) -> tuple[int, int]:
        return 7, 9

    answers = queries.feed(data[:cut], 40, 120, place) + queries.feed(data[cut:], 40, 120, place)
    assert answers == [
        b"\x1b[7;9R", b"\x1b[>0;10;0c", b"\x1b]11;rgb:0000/0000/0000\x1b\\", b"\x1b[8;40;120t",
    ]  # fmt: skip
    assert queries.is_bracketed


async def test_128_clients_are_told_of_output_and_the_end(hosts: SessionHosts) -> None:
    await hosts.start(shell("s1", "read -r x; echo now"))
    texts: list[str] = []

    async def client() -> None:
        output = await hosts.read(ID, cursor=0, wait_ms=25_000)
        while "now" not in output.text:
            output = await hosts.read(ID, cursor=0, wait_ms=20_000)
        texts.append(output.text)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for _ in range(128):
                group.start_soon(client)
            await anyio.sleep(0.2)
            await hosts.write(ID, "go", submit=True)
    assert texts == ["go\nnow\n"] * 128


async def test_socket_that_a_cleaner_removed_is_made_again(hosts: SessionHosts) -> None:
    record = await hosts.start(shell("s1", "echo here; sleep 600"))
    Path(str(record.socket)).unlink()
    with anyio.fail_after(20):
        while (await hosts.look(ID)).liveness != "live":
            await anyio.sleep(0.05)
    assert (await hosts.read(ID, cursor=0, wait_ms=5_000)).text == "here\n"
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(record.socket))


DRAWS = r"""
n=0
draw() { n=$((n+1)); printf '\033[H\033[2J\r\ndrawn %s times' $n; }
trap draw WINCH
printf '\033[?1049h'; head -c 300000 /dev/zero | tr '\0' x; draw
while :; do sleep 0.05; done
"""


async def test_terminal_that_is_joined_late_gets_the_screen_drawn_again(hosts: SessionHosts) -> None:
    """The switch to the alternate screen is longer ago than what a joined terminal is given."""
    await hosts.start(shell("s1", DRAWS))
    with anyio.fail_after(20):
        while "drawn 1 times" not in (await hosts.look(ID)).last_line:
            await anyio.sleep(0.02)
    async with hosts.attach(ID, is_writing=False) as attachment:
        assert (await attachment.__anext__()).startswith(b"\x1b[?1049h")
        await until_seen(attachment, b"drawn 1 times")
    async with hosts.attach(ID, is_writing=True) as attachment:
        assert (await attachment.__anext__()).startswith(b"\x1b[?1049h")
        await until_seen(attachment, b"drawn 2 times")
