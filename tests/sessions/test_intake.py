"""How output comes into the ring, by copies and by reads in place, and in what rounds. Real descriptors."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinate_agents.sessions import folder as folders
from coordinate_agents.sessions.drivers.base import Child
from coordinate_agents.sessions.host import intake as intakes
from coordinate_agents.sessions.host.intake import Intake
from coordinate_agents.sessions.host.output import Output
from coordinate_agents.sessions.host.ring import MIN_BYTES, Ring
from coordinate_agents.sessions.redact import MAX_MATCH, Redactor

TEXT = bytes(number * number % 251 for number in range(500_000))


def reader(data: bytes, piece: int):  # type: ignore[no-untyped-def]
    """Gives the data in pieces, then says that there is nothing now."""
    at = 0

    def read(place: memoryview) -> int | None:
        nonlocal at
        size = min(piece, len(place), len(data) - at)
        place[:size] = data[at : at + size]
        at += size
        return size or None

    return read


@settings(max_examples=30, deadline=None)
@given(
    parts=st.lists(
        st.tuples(st.sampled_from([0, 1, 4095, 20_000, MIN_BYTES, 150_000]), st.sampled_from([0, 1000, 4095, 65536])),
        max_size=6,
    )
)
def test_ring_filled_by_copies_and_by_reads_keeps_the_last_bytes_by_their_offset(parts: list[tuple[int, int]]) -> None:
    ring, printed = Ring(0, Redactor()), b""
    for size, piece in parts:
        data = TEXT[len(printed) % 1000 :][:size]
        if piece:
            data = data[:MIN_BYTES]  # what one round may bring
            ring.fill(reader(data, piece), MIN_BYTES)
        else:
            ring.add(data)
        printed += data
        total = len(printed)
        assert (ring.total, ring.parts()) == (total, [(total - min(total, MIN_BYTES), total)])
        first = max(0, total - MIN_BYTES - MAX_MATCH)
        assert ring.raw(first, total) == printed[first:]
        assert ring.raw(total - 5000, total - 100) == printed[max(0, total - 5000) : max(0, total - 100)]
        assert ring.has(b"\xfa", total - 100) == (b"\xfa" in printed[-100:])
        assert ring.last(70) == printed[-70:]


def test_ring_whose_reading_fails_keeps_what_came_before() -> None:
    ring = Ring(0, Redactor())
    read = reader(b"x" * 30_000, 4095)

    def failing(place: memoryview) -> int | None:
        size = read(place)
        if size is None:
            raise OSError(5, "the terminal is closed")
        return size

    with suppress(OSError):
        ring.fill(failing, MIN_BYTES)
    assert ring.last(MIN_BYTES) == b"x" * 30_000


@contextmanager
def output_in(path: Path) -> Iterator[Output]:
    folder = folders.open_folder(str(path))
    output = Output(folder, folders.OUTPUT, ring_bytes=MIN_BYTES, log_bytes=1 << 20, redactor=Redactor())
    try:
        yield output
    finally:
        output.finish()
        os.close(folder)


def test_round_takes_what_is_there_and_says_when_there_is_no_more_to_come(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    try:
        with output_in(tmp_path) as output:
            intake = Intake(Child(1, reading, -1), output)
            assert (intake.take(), output.total) == (True, 0)
            os.write(writing, b"a line\n")
            assert (intake.take(), output.recent(100)) == (True, b"a line\n")
            assert (tmp_path / folders.OUTPUT).read_bytes() == b"a line\n"
            os.write(writing, b"y" * 50_000)  # as much as a flood, and then it pauses
            assert (intake.take(), output.total) == (True, 50_007)
            os.write(writing, b"end\n")
            os.close(writing)
            assert intake.wait(5.0)
            assert (intake.pieces(), intake.take(), output.total) == ((b"end\n", False), False, 50_007)
    finally:
        os.close(reading)


def test_round_of_an_endless_flood_ends_with_what_the_ring_can_keep(tmp_path: Path) -> None:
    endless = os.open("/dev/zero", os.O_RDONLY)
    try:
        with output_in(tmp_path) as output:
            intake = Intake(Child(1, endless, -1), output)
            assert (intake.take(), output.total) == (True, MIN_BYTES)
            assert (intake.take(), output.total) == (True, 2 * MIN_BYTES)
            data, is_open = intake.pieces()
            assert (set(data), is_open) == ({0}, True)
        assert (tmp_path / folders.OUTPUT).read_bytes() == bytes(2 * MIN_BYTES)
    finally:
        os.close(endless)


def test_round_of_a_flood_that_paused_ends_when_somebody_else_wants_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intakes, "_PAUSE_S", 60.0)
    monkeypatch.setattr(intakes, "_ROUND_S", 60.0)
    (reading, writing), (asked, asks) = os.pipe(), os.pipe()
    os.set_blocking(reading, False)
    try:
        with output_in(tmp_path) as output:
            intake = Intake(Child(1, reading, -1), output, asked)
            os.write(writing, b"y" * 50_000)
            os.write(asks, b"x")
            begun = time.monotonic()
            assert (intake.take(), output.total) == (True, 50_000)
            assert time.monotonic() - begun < 30  # the pause is twice as long
    finally:
        for descriptor in (reading, writing, asked, asks):
            os.close(descriptor)
