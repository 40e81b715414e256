"""A person's terminal joined to a Session's: the test plays the person, on a real terminal."""

import os
import select
import signal
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from person import WAIT_S, Person

from coordinate_agents.cli.attach import detach_sequences
from coordinate_agents.graph.errors import GraphError

JOINED = Path(__file__).parents[1] / "support" / "joined.py"
# Says what is typed, each key in <>; `s` says the size, `q` ends it.
ECHO = """
stty raw -echo
printf up.
while read -r -n 1 key; do
  case $key in s) stty size ;; q) exit ;; *) printf '<%s>' "$key" ;; esac
done
"""


@pytest.fixture
def person() -> Iterator[Callable[..., Person]]:
    made: list[Person] = []

    def make(*words: str) -> Person:
        made.append(Person(sys.executable, str(JOINED), *words))
        return made[-1]

    yield make
    for each in made:
        each.end()


def test_typing_goes_to_the_session_and_its_output_comes_back(person: Callable[..., Person]) -> None:
    ann = person("bash", "-c", ECHO)
    assert "Joined to s1 (typing goes to it); C-] leaves it running.\r\n" in ann.sees("up.")
    assert ann.is_raw()
    ann.type(b"a\x01b")
    ann.sees("<a><><b>")  # the key came, and its echo was filtered
    ann.type(b"\x1d")
    assert ann.until_gone() == 0
    assert ann.shown.endswith("joined: left\r\n")
    assert termios.tcgetattr(ann.descriptor) == ann.modes


def test_ctrl_c_and_ctrl_z_are_keys_of_the_session(person: Callable[..., Person]) -> None:
    ann = person("bash", "-c", "trap 'exit 7' INT; printf up.; while :; do sleep 0.05; done")
    ann.sees("up.")
    ann.type(b"\x1a\x03")
    assert ann.until_gone() == 0
    assert ann.shown.endswith("joined: ended\r\n")


def test_what_follows_the_detach_key_is_not_sent(person: Callable[..., Person]) -> None:
    ann = person("bash", "-c", ECHO)
    ann.sees("up.")
    ann.type(b"a\x1dq")
    assert ann.until_gone() == 0
    assert "joined: left" in ann.shown


def test_another_key_can_be_chosen(person: Callable[..., Person]) -> None:
    ann = person("--key", "C-t", "bash", "-c", ECHO)
    ann.sees("up.")
    ann.type(b"\x1d")
    ann.sees("<")
    ann.type(b"\x14")
    assert ann.until_gone() == 0
    assert "joined: left" in ann.shown


def test_read_only_sends_nothing_and_is_left_by_ctrl_c(person: Callable[..., Person]) -> None:
    ann = person("--read-only", "bash", "-c", ECHO)
    assert "read-only" in ann.sees("up.")
    ann.type(b"aq")
    ann.type(b"\x03")
    assert ann.until_gone() == 0
    assert "<a>" not in ann.shown
    assert "joined: left" in ann.shown


def test_end_of_the_session_ends_the_visit(person: Callable[..., Person]) -> None:
    ann = person("bash", "-c", ECHO)
    ann.sees("up.")
    ann.type(b"q")
    assert ann.until_gone() == 0
    assert ann.shown.endswith("joined: ended\r\n")
    assert termios.tcgetattr(ann.descriptor) == ann.modes


def test_size_is_passed_on_at_once_and_when_it_changes(person: Callable[..., Person]) -> None:
    ann = person("bash", "-c", ECHO)
    ann.sees("up.")
    ann.type(b"s")
    ann.sees("24 80")
    ann.resize(101, 33)

    def has_new_size() -> bool:
        ann.type(b"s")
        return "33 101" in ann.shown

    ann.waits(has_new_size, "33 101")
    ann.type(b"\x1d")
    assert ann.until_gone() == 0


def test_only_what_draws_reaches_the_terminal_and_modes_are_taken_back(person: Callable[..., Person]) -> None:
    printed = r"\033]52;c;QUJD\007\033[6n\033[?1000h\033[?1049h\033[?25l\033[31mred\033]0;t\007."
    ann = person("bash", "-c", f"printf '{printed}'; read -r -n 1 x")
    assert ann.sees("red.").endswith("\x1b[?1049h\x1b[?25l\x1b[31mred.")
    ann.type(b"\x1d")
    assert ann.until_gone() == 0
    left = ann.shown
    assert "\x1b[?25h" in left
    assert "\x1b[m" in left
    assert left.index("\x1b[?1049l") < left.index("joined: left")


def test_raw_passes_everything_and_takes_more_back(person: Callable[..., Person]) -> None:
    ann = person("--raw", "bash", "-c", r"printf '\033]0;t\007\033[?1000h.'; read -r -n 1 x")
    assert ann.sees("\x1b[?1000h.").endswith("\x1b]0;t\x07\x1b[?1000h.")
    ann.type(b"\x1b[93;5u")
    assert ann.until_gone() == 0
    assert "\x1b[?1000l" in ann.shown


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_terminal_is_restored_when_the_program_is_ended(person: Callable[..., Person], number: signal.Signals) -> None:
    ann = person("bash", "-c", r"printf '\033[?1049hup.'; read -r x")
    ann.sees("up.")
    assert ann.is_raw()
    ann.signal(number)
    assert ann.until_gone() == 3
    assert "\x1b[?1049l" in ann.shown
    assert "raised: KeyboardInterrupt" in ann.shown
    assert termios.tcgetattr(ann.descriptor) == ann.modes


def test_terminal_is_restored_when_the_session_breaks(person: Callable[..., Person]) -> None:
    ann = person("--fail", "bash", "-c", r"printf '\033[?1049hup.'; read -r -n 1 x; echo fail; read -r x")
    ann.sees("up.")
    ann.type(b"x")
    assert ann.until_gone() == 3
    assert "\x1b[?1049l" in ann.shown
    assert "raised: SessionError SESSION_NOT_HEALTHY" in ann.shown
    assert termios.tcgetattr(ann.descriptor) == ann.modes


def test_stopped_program_gives_the_terminal_back_and_takes_it_again(person: Callable[..., Person]) -> None:
    ann = person("bash", "-c", ECHO)
    ann.sees("up.")
    ann.signal(signal.SIGTSTP)
    ann.until_stopped()
    assert termios.tcgetattr(ann.descriptor) == ann.modes
    ann.resize(90, 30)
    ann.signal(signal.SIGCONT)
    ann.waits(ann.is_raw, "raw mode")

    def has_new_size() -> bool:
        ann.type(b"s")
        return "30 90" in ann.shown

    ann.waits(has_new_size, "30 90")
    ann.type(b"\x1d")
    assert ann.until_gone() == 0


def test_terminal_that_goes_away_ends_the_visit(person: Callable[..., Person]) -> None:
    ann = person("bash", "-c", ECHO)
    ann.sees("up.")
    ann.hang_up()
    assert os.waitstatus_to_exitcode(os.waitpid(ann.pid, 0)[1]) != 0


def test_output_held_by_ctrl_s_does_not_keep_the_program(person: Callable[..., Person]) -> None:
    ann = person("bash", "-c", "stty raw -echo; printf up.; yes | head -c 3000000; read -r x")
    ann.sees("up.")
    ann.signal(signal.SIGTERM)  # nobody reads: the terminal is full
    assert _ends(ann.pid)


def _ends(pid: int) -> bool:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
        select.select([], [], [], 0.02)
    return False


@pytest.mark.parametrize(
    ("name", "byte"), [("C-]", b"\x1d"), ("C-a", b"\x01"), ("c-Z", b"\x1a"), ("C-\\", b"\x1c"), ("C-_", b"\x1f")]
)
def test_detach_key_is_named_by_its_letter(name: str, byte: bytes) -> None:
    assert detach_sequences(name)[0] == byte


@pytest.mark.parametrize("name", ["", "x", "C-", "C-i", "C-m", "C-j", "C-[", "C-ab", "F1", "M-x", "\x1b[2J", "C-é"])
def test_keys_that_are_other_keys_are_refused(name: str) -> None:
    with pytest.raises(GraphError) as raised:
        detach_sequences(name)
    assert raised.value.code == "INVALID_USAGE"
    assert "\x1b" not in str(raised.value)
