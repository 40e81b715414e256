"""The Windows terminal driver with its binding replaced: the same names and habits, over a real terminal and children.

What is not seen here is pywinpty itself and Windows. The signatures are those of pywinpty 3.1.2's own stub file.
"""

import ast
import inspect
import os
import pty
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from windows import split

from coordinate_agents.sessions.drivers import winpty
from coordinate_agents.sessions.drivers.base import Child, NoTerminal, Start

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


class StandIn:
    """pywinpty's PTY over a Linux terminal. `C:\\…\\NAME.exe` is /bin/NAME; a read never ends, as it may there."""

    made: "list[StandIn]"
    folder: Path

    def __init__(self, cols: int, rows: int, backend: int | None = None) -> None:
        self.size = (cols, rows)
        self.backend = backend
        self.pid: int | None = None
        self.fd: int | None = None
        self._never = threading.Event()
        self.made.append(self)

    def spawn(self, appname: str, cmdline: str | None = None, cwd: str | None = None, env: str | None = None) -> bool:
        self.line, self.cwd, self.env = f"{appname} {cmdline or ''}", cwd, env
        argv = split(self.line)
        program = f"/bin/{argv[0].rsplit(chr(92), 1)[1].removesuffix('.exe')}"
        variables = dict(each.split("=", 1) for each in (env or "").split("\0") if each)
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execve(program, argv, variables)
        self.pid, self._terminal = pid, terminal
        self.fd = os.pidfd_open(pid)
        return True

    def read(self, blocking: bool = False) -> str:
        try:
            data = os.read(self._terminal, 4096)
        except OSError:
            self._never.wait(30)
            raise RuntimeError("Standard out reached EOF") from None
        return data.decode()

    def write(self, to_write: str) -> int:
        return os.write(self._terminal, to_write.encode())

    def set_size(self, cols: int, rows: int) -> None:
        self.size = (cols, rows)

    def get_exitstatus(self) -> int | None:
        pid, status = os.waitpid(self.pid or 0, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None

    def cancel_io(self) -> bool:
        self._never.set()
        return True


def _wait_for(handle: int) -> None:
    select.select([handle], [], [])
    os.close(handle)


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[StandIn]]:
    StandIn.made, StandIn.folder = [], tmp_path
    monkeypatch.setattr(winpty, "binding", lambda: StandIn)
    monkeypatch.setattr(winpty, "wait_for_handle", _wait_for)
    yield StandIn
    for one in StandIn.made:
        one.cancel_io()


def start(*argv: str, **env: str) -> Child:
    value = Start(f"C:\\bin dir\\{argv[0]}.exe", list(argv), "C:\\work", env, None, 0o022, "")
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
    child = start("sh", "-c", 'printf "%s|" "$@" "$HUE"; test -t 0 && pwd', "name", "a b", 'q"q', "back\\", HUE="red")
    assert text_of(child) == f'a b|q"q|back\\|red|{tmp_path.resolve()}\r\n'
    (made,) = bound.made
    assert (made.size, made.backend, made.cwd, child.pid) == ((90, 30), 0, "C:\\work", made.pid)
    assert made.line.startswith('"C:\\bin dir\\sh.exe" -c ')
    assert console(child).exit_code == 0
    assert child.is_terminal and not child.is_input_open


def test_output_ends_with_the_process_although_the_binding_never_ends_it(bound: type[StandIn]) -> None:
    child = start("sh", "-c", "echo last words; exit 7")
    assert text_of(child) == "last words\r\n"
    assert console(child).exit_code == 7


def test_process_that_left_a_child_with_the_terminal_has_ended(bound: type[StandIn], tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    holder = f"(trap '' HUP; : > ready; read line < {go}) &"
    child = start("sh", "-c", f"{holder} while [ ! -e ready ]; do :; done; echo gone")
    assert text_of(child) == "gone\r\n"
    go.write_text("end\n")
    assert console(child).exit_code == 0


def test_typed_text_and_a_new_size_reach_the_console(bound: type[StandIn]) -> None:
    child = start("sh", "-c", "read line; echo got $line")
    assert console(child).write("zwölf\n".encode()) == 7
    console(child).resize(100, 20)
    assert text_of(child).endswith("got zwölf\r\n")
    assert bound.made[0].size == (100, 20)
    assert console(child).exit_code == 0


def test_prompt_on_stdin_falls_back_to_pipes(bound: type[StandIn]) -> None:
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


def test_output_is_a_descriptor_of_the_host_that_does_not_block(bound: type[StandIn]) -> None:
    child = start("sh", "-c", "read line")
    assert child.output == console(child).output.fileno()
    with pytest.raises(BlockingIOError):
        socket.socket(fileno=os.dup(child.output)).recv(1)
    console(child).write(b"\n")
    text_of(child)
    assert console(child).exit_code == 0
