"""graph-check: verify what is in a subtask's worktree now, and start nothing. A refused one ends FAILED.

From FAILED and STOPPED (after a hand fix, for a flaky test), idle with a kept worktree, and held by a person.
"""

import time
from collections.abc import Mapping
from typing import Any, Final

from coordinate_agents.graph import machine
from coordinate_agents.graph.acts.check import begin_check
from coordinate_agents.graph.engine import DriveOptions, Engine
from coordinate_agents.graph.errors import EXIT_DONE, EXIT_INTERRUPTED, EXIT_NOT_SUCCEEDED, GraphError
from coordinate_agents.graph.evidence import Waiver
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.observe import close_command
from coordinate_agents.graph.operations.asking import by_driver_or_alone
from coordinate_agents.graph.operations.driving import DriveRequest, drive_graph
from coordinate_agents.graph.operations.loading import load_snapshot, pick_subtask, require_named
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.operations.watching import Watch
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store.lease import holder
from coordinate_agents.graph.text import sentence
from coordinate_agents.worktrees.values import value_class

PROGRAM: Final = "coordinate-agents"
# Looks at the worktree and its Session come before the record.
_CHECK_WAIT_S: Final = 15.0
# A driver that dies meanwhile changes no file.
_DRIVER_LOOK_S: Final = 1.0


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """Exit code 0 when it succeeded, 4 when it was refused. Raises: as `begin_check`."""
    return check(runtime, request.graph, request.subtask, verb="graph-check")


def check(
    runtime: Runtime, graph: str | None, subtask: str | None, *, verb: str, waivers: tuple[Waiver, ...] = ()
) -> Result:
    """Begin the verification, by the driver or here, and wait for its verdict."""
    row, name = pick_subtask(runtime.store, graph, subtask)
    subtask = require_named(row, name)
    asked = {"subtask": subtask, "waivers": [[each.what, each.reason] for each in waivers]}

    told = by_driver_or_alone(runtime, row.id, "check", asked, begin_check, verb=verb, wait_s=_CHECK_WAIT_S)
    if told.get("note"):
        advice = [sentence(told["note"])]
        return Result({**status_of(runtime, row.id), "check": dict(told), "about": [subtask], "advice": advice})
    _until_judged(runtime, row.id, SubtaskId(subtask), verb)
    data = status_of(runtime, row.id)
    judged = next(each for each in data["subtasks"] if each["id"] == subtask)
    told = {"check": {"subtask": subtask}, "about": [subtask], "advice": [_verdict(judged)]}
    codes = {"SUCCEEDED": EXIT_DONE, "RUNNING": EXIT_INTERRUPTED}
    return Result({**data, **told}, codes.get(judged["state"], EXIT_NOT_SUCCEEDED))


def _verdict(judged: Mapping[str, Any]) -> str:
    subtask, failure = judged["id"], judged["failure"]
    if judged["state"] == "SUCCEEDED":
        return f"{subtask} is verified: {judged['verifiedCommit'][:12]}."
    if judged["state"] == "RUNNING":
        return f"{subtask} is not judged yet; the verification was interrupted."
    return f"{subtask} is refused: {failure['message'] if failure else judged['reason']}"


def _until_judged(runtime: Runtime, graph: str, subtask: SubtaskId, verb: str) -> None:
    """Wait for the verdict of the driver; without one, verify here."""
    watch = Watch(runtime.state_dir)
    while _is_verifying(runtime, graph, subtask):
        if holder(runtime.state_dir, graph) is not None:
            watch.wait(time.monotonic() + _DRIVER_LOOK_S)
            continue

        async def begin(engine: Engine) -> None:
            run = engine.context.run(subtask)
            if run.state == "running" and run.stage == "verify":
                # Of a verifier that died: its check would run beside the one that starts now.
                await close_command(engine.context, run.command_session, run.command_marker)
                engine.start(machine.continue_run(run))

        try:
            _, ending = drive_graph(
                runtime, graph, DriveRequest(DriveOptions(only_look=True), begin=begin, purpose=verb)
            )
        except GraphError as error:
            if error.code != "LEASE_HELD":
                raise
            continue
        if ending != "ended":
            return


def _is_verifying(runtime: Runtime, graph: str, subtask: SubtaskId) -> bool:
    run = load_snapshot(runtime.store, graph)[1].runs[subtask]
    return run.state == "running" and run.stage == "verify" and run.verified_by == "check"
