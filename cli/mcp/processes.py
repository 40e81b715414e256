"""Starts the process that carries a call out (`child`) and waits for what it answers. Blocks; runs in a worker thread.

Its files have no names, so nothing is left whoever dies; its standard input is the null device or exactly the text that
was meant for it; it is the leader of a session of its own, so that no signal for this server reaches it.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import IO, Any, Final

import anyio

from coordinate_agents.cli.invocation import Invocation
from coordinate_agents.cli.mcp.child import request_bytes
from coordinate_agents.graph.errors import GraphError

_TAIL_BYTES: Final = 2000

Document = dict[str, Any]


@dataclass(slots=True)
class Underway:
    """A call in a process of its own. `outcome` is set with `ended`: its document and exit code."""

    id: str
    invocation: Invocation
    ended: anyio.Event = field(default_factory=anyio.Event)
    outcome: tuple[Document, int] | None = None
    process: subprocess.Popen[bytes] | None = None


def run_apart(call: Underway, stdin: bytes | None, folder: str) -> tuple[Document, int]:
    """The document and exit code of the call. Raises: OSError when no process could be started."""
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        asked.write(request_bytes(call.invocation))
        asked.seek(0)
        number = asked.fileno()
        with _standard_input(stdin) as source:
            call.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "coordinate_agents.cli.mcp.child", str(number)],
                stdin=source,
                stdout=out,
                stderr=err,
                cwd=folder,
                env={**os.environ, "PWD": folder},
                pass_fds=(number,),
                start_new_session=True,
            )
        code = call.process.wait()
        out.seek(0)
        try:
            answered = json.load(out)
        except ValueError:
            return _no_answer(call.invocation, code, err)
    return answered["document"], answered["code"]


def _standard_input(text: bytes | None) -> IO[bytes]:
    if text is None:
        return open(os.devnull, "rb")  # noqa: PTH123 (a device)
    file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by the caller)
    file.write(text)
    file.seek(0)
    return file


def _no_answer(invocation: Invocation, code: int, err: IO[bytes]) -> tuple[Document, int]:
    err.seek(max(0, err.seek(0, os.SEEK_END) - _TAIL_BYTES))
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    error = GraphError(
        "INTERNAL_ERROR",
        f"The process that carried {invocation.verb.name} out ended with {how} before it answered.",
        kept="everything recorded before",
        next="coordinate-agents graph-status",
        facts={"tail": err.read().decode("utf-8", "replace")},
    )
    return failed_document(error, invocation.verb.name)


def failed_document(error: GraphError, command: str) -> tuple[Document, int]:
    """The error as every call answers it."""
    from coordinate_agents.cli import failures

    error = failures.with_all_sentences(error, command=command)
    return {"ok": False, "command": command, "error": failures.to_json(error)}, error.exit_code
