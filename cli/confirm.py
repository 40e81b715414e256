"""Asks the one question that a verb may end with, on a terminal only. A program gets the answer without a question."""

import sys

from coordinate_agents.cli.invocation import Invocation
from coordinate_agents.graph.operations.table import Result

_VERB = "setup-trust"


def asks(invocation: Invocation, result: Result) -> bool:
    """Whether a person should be asked now: trust is missing, was not given, and somebody sits at a terminal."""
    return (
        invocation.verb.name == _VERB
        and not invocation.as_json
        and not invocation.values.get("yes")
        and not result.data["trusted"]
        and all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    )


def answer(invocation: Invocation, result: Result) -> Invocation | None:
    """Ask; the invocation that carries the yes out, for exactly the version that was shown. None: no."""
    sys.stderr.write("Trust this version of the file? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        return None
    return invocation._replace(values={**invocation.values, "yes": True, "digest": result.data["digest"]})
