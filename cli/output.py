"""Writes what a command says: one JSON document or plain lines on stdout, everything else on stderr.

A reader that went away (`| head -1`) ends the writing quietly; any other failure to write is OUTPUT_FAILED. Text that
the terminal's encoding lacks is replaced, never an error. Decides nothing about what is said.
"""

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from coordinate_agents.graph.errors import GraphError


class ReaderGone(Exception):
    """Nobody reads stdout any more. Not an error: the command ends with the exit code it has."""


def prepare_streams() -> None:
    """Make stdout and stderr replace what they cannot encode. Called once, before anything is written."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def write_document(document: dict[str, Any]) -> None:
    """One JSON document: indented for a person at a terminal, one line for a program.

    ASCII escapes keep it the same under every encoding, and carry the bytes of a path that is not UTF-8.
    """
    stream = _stdout()
    indent = 2 if stream.isatty() else None
    _write(json.dumps(document, indent=indent, allow_nan=False) + "\n")


def write_line(document: dict[str, Any]) -> None:
    """One JSON object as one line, for streams of objects."""
    _write(json.dumps(document, allow_nan=False) + "\n")


def write_lines(lines: Iterable[str], *, ends_line: bool = True) -> None:
    text = "\n".join(lines)
    if text:
        _write(text + "\n" if ends_line else text)


def complain(lines: Iterable[str]) -> None:
    """Write to stderr; when that fails too there is nobody left to tell."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write("\n".join(lines) + "\n")
        sys.stderr.flush()


def flush() -> None:
    """Write what is still buffered; whatever failed to be written was told before."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


@contextlib.contextmanager
def stdout_reserved() -> Iterator[None]:
    """Inside the block whatever a library prints goes to stderr: stdout holds one document."""
    before = sys.stdout
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = before


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Turn a failed write to stdout into ReaderGone or OUTPUT_FAILED. Raises: both."""
    try:
        yield
    except BrokenPipeError:
        _drop_stdout()
        raise ReaderGone from None
    except OSError as error:
        _drop_stdout()
        raise GraphError("OUTPUT_FAILED", f"cannot write output: {error.strerror or error}.") from error


def _write(text: str) -> None:
    stream = _stdout()
    with writing():
        stream.write(text)
        stream.flush()


def _stdout() -> TextIO:
    if sys.stdout is None or sys.stdout.closed:
        raise GraphError("OUTPUT_FAILED", "cannot write output: standard output is closed.")
    return sys.stdout


def _drop_stdout() -> None:
    """Send what is still buffered nowhere, so that the interpreter's last flush does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
