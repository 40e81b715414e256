"""The Windows terminal driver with its binding replaced: the same names and habits, over a real terminal and children.

What is not seen here is pywinpty itself and Windows. The signatures are those of pywinpty 3.1.2's own stub file.
"""

import ast
import inspect
import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts import shell
from winpty_stand_in import StandIn, on_windows, wait_for_handle

from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.drivers import winpty
from coordinate_agents.sessions.drivers.base import Child, NoTerminal, Start
from coordinate_agents.sessions.model import Driver, SessionId

ID = SessionId("s1")
STUB = """
class PTY:
    def __init__(self, cols, rows, backend=None, mouse_mode=0, timeout=30000, agent_config=4): ...
    def spawn(self, appname, cmdline=None, cwd=None, env=None): ...
    def set_size(self, cols, rows): ...
    def read(self, blocking=False): ...
    def write(self, to_write): ...
    def isalive(self): ...
    def get_exitstatus(self): ...
    def iseof(self): ...
    def cancel_io(self): ...
    @property
    def pid(self): ...
    @property
    def fd(self): ...
"""


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[StandIn]]:
    monkeypatch.setattr(StandIn, "made", [])
    monkeypatch.setattr(winpty, "binding", lambda: StandIn)
    monkeypatch.setattr(winpty, "wait_for_handle", wait_for_handle)
    yield StandIn
    for one in StandIn.made:
        one.end()


def start(folder: Path, *argv: str, **env: str) -> Child:
    """A program of /bin, under a name with a blank in it."""
    (folder / "bin dir").mkdir()
    (folder / "bin dir" / argv[0]).symlink_to(f"/bin/{argv[0]}")
    program = on_windows(f"{folder}/bin dir/{argv[0]}.exe")
    value = Start(program, list(argv), on_windows(str(folder)), env, None, 0o022, "")
    value.size = (30, 90)
    return winpty.spawn(value)


def console(child: Child) -> winpty.Console:
    assert isinstance(child.keep, winpty.Console)
    return child.keep


def text_of(child: Child) -> str:
    """Everything printed up to the end, which must come although the binding never says so."""
    output = console(child).output
    found = b""
    while select.select([output], [], [], 20)[0]:
        piece = output.recv(65536)
        if not piece:
            return found.decode()
        found += piece
    raise AssertionError(f"the output did not end: {found!r}")


def test_what_is_used_of_the_binding_is_what_pywinpty_has() -> None:
    (stub,) = ast.parse(STUB).body
    assert isinstance(stub, ast.ClassDef)
    there = {each.name: [arg.arg for arg in each.args.args] for each in stub.body if isinstance(each, ast.FunctionDef)}
    for name, member in vars(winpty.Binding).items():
        if inspect.isfunction(member) and member.__module__ == winpty.__name__:
            wanted = list(inspect.signature(member).parameters)
            assert there[name][: len(wanted)] == wanted, name
        elif isinstance(member, property):
            assert name in there


def test_program_gets_its_arguments_environment_and_terminal(bound: type[StandIn], tmp_path: Path) -> None:
    script = 'printf "%s|" "$@" "$HUE"; test -t 0 && pwd'
    child = start(tmp_path, "sh", "-c", script, "name", "a b", 'q"q', "back\\", HUE="red")
    assert text_of(child) == f'a b|q"q|back\\|red|{tmp_path.resolve()}\r\n'
    (made,) = bound.made
    assert (made.size, made.backend, made.cwd, child.pid) == ((90, 30), 0, on_windows(str(tmp_path)), made.pid)
    assert made.line.startswith(f'"{on_windows(str(tmp_path))}\\bin dir\\sh.exe" -c ')
    assert console(child).exit_code == 0
    assert child.is_terminal and not child.is_input_open


def test_output_ends_with_the_process_although_the_binding_never_ends_it(bound: type[StandIn], tmp_path: Path) -> None:
    child = start(tmp_path, "sh", "-c", "echo last words; exit 7")
    assert text_of(child) == "last words\r\n"
    assert console(child).exit_code == 7


def test_process_that_left_a_child_with_the_terminal_has_ended(bound: type[StandIn], tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    holder = f"(trap '' HUP; : > ready; read line < {go}) &"
    child = start(tmp_path, "sh", "-c", f"{holder} while [ ! -e ready ]; do :; done; echo gone")
    assert text_of(child) == "gone\r\n"
    go.write_text("end\n")
    assert console(child).exit_code == 0


def test_typed_text_and_a_new_size_reach_the_console(bound: type[StandIn], tmp_path: Path) -> None:
    child = start(tmp_path, "sh", "-c", "read line; echo got $line")
    text = "zwölf\n".encode()
    assert [console(child).write(piece) for piece in (text[:3], text[3:])] == [3, 4]
    console(child).resize(100, 20)
    assert text_of(child).endswith("got zwölf\r\n")
    assert bound.made[0].size == (100, 20)
    assert console(child).exit_code == 0


def test_prompt_on_stdin_falls_back_to_pipes(bound: type[StandIn], tmp_path: Path) -> None:
    value = Start("C:\\a.exe", ["a"], "C:\\work", {}, b"prompt", 0o022, "")
    with pytest.raises(NoTerminal):
        winpty.spawn(value)
    assert bound.made == []


@pytest.mark.parametrize(
    ("program", "argument", "cwd"),
    [
        ("C:\\a.cmd", "two\nlines", "C:\\work"),
        ("C:\\a", "x", "C:\\work"),
        ("C:\\a.exe", "x", "work"),
        ("C:\\a.exe", "x", "C:\\" + "x" * 300),
    ],
)
def test_what_cannot_be_started_safely_is_a_failed_start(
    bound: type[StandIn], program: str, argument: str, cwd: str
) -> None:
    with pytest.raises(OSError) as caught:
        winpty.spawn(Start(program, ["a", argument], cwd, {}, None, 0o022, ""))
    assert not isinstance(caught.value, NoTerminal)
    assert bound.made == []


def test_binding_that_cannot_make_a_console_is_a_missing_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("no ConPTY")

    monkeypatch.setattr(winpty, "binding", lambda: refuse)
    with pytest.raises(NoTerminal, match="no ConPTY"):
        winpty.spawn(Start("C:\\a.exe", ["a"], "C:\\work", {}, None, 0o022, ""))


def test_output_is_a_descriptor_of_the_host_that_does_not_block(bound: type[StandIn], tmp_path: Path) -> None:
    child = start(tmp_path, "sh", "-c", "read line")
    assert child.output == console(child).output.fileno()
    with pytest.raises(BlockingIOError):
        socket.socket(fileno=os.dup(child.output)).recv(1)
    console(child).write(b"\n")
    text_of(child)
    assert console(child).exit_code == 0


@pytest.mark.anyio
@pytest.mark.parametrize("driver", ["winpty"], indirect=True)
async def test_host_types_into_resizes_and_interrupts_a_console(hosts: SessionHosts, driver: Driver) -> None:
    script = "trap 'stty size; exit 3' INT; read line; echo got $line; while :; do sleep 0.05; done"
    record = await hosts.start(shell("s1", script, driver=driver, is_input_open=True))
    assert (record.driver, record.degraded) == ("pty", False)
    assert record.host is not None
    assert len(os.listdir(f"/proc/{record.host.pid}/task")) == 4  # noqa: PTH208 (the loop, and those of a console)
    written = await hosts.write(ID, "zwölf", submit=True)
    assert written.delivered in ("true", "unknown")
    while "got zwölf" not in (output := await hosts.read(ID, cursor=0)).text:
        await hosts.read(ID, cursor=output.next_cursor, wait_ms=5_000)
    await hosts.resize(ID, columns=91, rows=27)
    await hosts.interrupt(ID)
    end = await hosts.wait(ID)
    assert (end.exit_code, end.tail.endswith("27 91")) == (3, True)
    assert await hosts.close(ID) == ()
