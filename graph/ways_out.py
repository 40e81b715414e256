"""The ways out of what did not succeed: when each is the right one, and its command to paste. Pure.

A status names the place to look at; there these are listed, the likeliest first. They are of the present record, not of
the moment at which something failed: a worktree may be gone by now, a change of shared git state accepted.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from coordinate_agents.graph.events import Failure
from coordinate_agents.graph.evidence import WAIVABLE_FACTS
from coordinate_agents.graph.snapshot import GraphSummary, Snapshot, TaskRun
from coordinate_agents.worktrees.values import value_class

PROGRAM: Final = "coordinate-agents"
# What to settle before another attempt, by the code of the failure.
_BEFORE: Final = {
    "AUTH_REQUIRED": "after a login of its agent",
    "AWAITING_INPUT": "another attempt; answer it this time",
    "DISK_FULL": "when there is space again",
    "DISK_LOW": "when there is space again",
    "EXECUTABLE_NOT_FOUND": "when the program is in its place",
    "EXECUTABLE_NOT_RUNNABLE": "when the program can be run",
    "QUOTA_EXHAUSTED": "when the limit is over",
    "RATE_LIMITED": "when the limit is over",
}
# Another agent may do what this one could not.
_OF_AGENT: Final = frozenset(_BEFORE) - {"DISK_FULL", "DISK_LOW"} | {"SPAWN_FAILED", "INVALID_ADAPTER_CONFIG"}
# What an agent's command is stands in the configuration, which is frozen until the graph is amended.
_OF_PROGRAM: Final = frozenset({"EXECUTABLE_NOT_FOUND", "EXECUTABLE_NOT_RUNNABLE", "INVALID_ADAPTER_CONFIG"})
# Refused because of one fact that a person may accept.
_FACT_OF_CODE: Final = {"INTENT_SCOPE_DRIFT": "scope", "SHARED_STATE_CHANGED": "shared"}
# What reads like a command: its first word names a program.
_COMMAND: Final = re.compile(r"(?:coordinate-agents|git|chmod|ls|mv|kill) ")


@value_class
class Way:
    when: str
    command: str


def ways_of_subtask(snapshot: Snapshot, run: TaskRun, *, agents: Sequence[str]) -> tuple[Way, ...]:
    """For one that failed or was stopped; empty for any other. `agents`: those of the graph's configuration."""
    if run.state not in ("failed", "stopped"):
        return ()
    graph, failure, code = snapshot.graph.id, run.failure, run.failure.code if run.failure else ""
    found = [*_own(failure, graph)]
    found.append(Way(_BEFORE.get(code, "another attempt"), f"{PROGRAM} graph-resume {graph} {run.id} --run"))
    if code == "AGENT_TIMEOUT":
        found.append(Way("with a longer limit in the graph file, before that", f"{PROGRAM} graph-amend {graph} FILE"))
    if code in _OF_PROGRAM:
        found.append(Way("when the configuration names another one", f"{PROGRAM} graph-amend {graph} FILE"))
    if code in _OF_AGENT:
        others = [name for name in agents if name != run.agent]
        found += [
            Way(f"with agent {name}", f"{PROGRAM} graph-resume {graph} {run.id} --agent {shlex.quote(name)} --run")
            for name in others[:1]
        ]
    if run.worktree is None and run.removal is not None:
        found.append(Way("to have its worktree back", f"{PROGRAM} graph-undo {graph} {run.id}"))
    elif run.worktree is not None and run.base is not None and not run.is_fresh:
        found.append(Way("after a change by hand in its worktree", f"{PROGRAM} graph-check {graph} {run.id}"))
        accepted = _waivable(failure)
        if accepted is not None:
            waived = f"--waive {shlex.quote(accepted)} --reason TEXT"
            found.append(Way("to accept it as it is", f"{PROGRAM} graph-accept {graph} {run.id} {waived}"))
    return tuple(found)


def ways_of_question(graph: str, subtask: str, question: Mapping[str, Any] | None) -> tuple[Way, ...]:
    """For one that waits for a person. `question`: as session-status tells it; None when it is not known any more."""
    answer, found = f"{PROGRAM} session-answer {graph}/{subtask}", []
    if question is not None:
        answer += f" --request {question['request']}"
        found += [Way(f"to {word} it", f"{answer} --{word}") for word in question["answers"]]
        found += [
            Way(f"to choose: {option['name']}", f"{answer} --option {shlex.quote(option['id'])}")
            for option in question["options"]
        ]
        if not question["options"] and question["kind"] != "login":
            found.append(Way("to answer with words", f"{answer} --text TEXT"))
    found.append(Way("to sit at its terminal; C-] leaves it", f"{PROGRAM} session-attach {graph}/{subtask}"))
    if question is None:
        found.append(Way("to tell it to go on", f"{PROGRAM} graph-tell {graph} {subtask} TEXT"))
    return (*found, Way("to stop it", f"{PROGRAM} graph-stop {graph} {subtask}"))


def ways_of_limit(snapshot: Snapshot, run: TaskRun, *, agents: Sequence[str]) -> tuple[Way, ...]:
    """For one whose agent's service refuses: it is tried again by itself. `agents`: as in `ways_of_subtask`."""
    graph = snapshot.graph.id
    found = [Way("to wait: it is tried again by itself", f"{PROGRAM} graph-wait {graph} --for {run.id}")]
    for name in [name for name in agents if name != run.agent][:1]:
        resume = f"{PROGRAM} graph-resume {graph} {run.id} --agent {shlex.quote(name)} --run"
        found.append(Way("not to wait: stop it", f"{PROGRAM} graph-stop {graph} {run.id}"))
        found.append(Way(f"and go on with agent {name}", resume))
    return tuple(found)


def ways_of_integration(snapshot: Snapshot) -> tuple[Way, ...]:
    """For one that failed; empty for any other. A conflict names its own command."""
    graph, summary = snapshot.graph.id, snapshot.summary
    integration, failure = summary.integration, summary.integration.failure
    if integration.state != "failed":
        return ()
    if failure is not None and failure.code == "SHARED_STATE_CHANGED":
        return () if summary.shared_changes else (Way("now that it is settled", _integrate(graph)),)
    found = [*_own(failure, graph), Way("again, when the cause is settled", _integrate(graph))]
    if integration.worktree is not None and integration.commit is not None:
        if all(integration.commit != head.commit for head in integration.heads):
            found.append(Way("after a commit by hand in its worktree", f"{_integrate(graph)} --continue"))
        last = integration.heads[-1].name
        changed = f"{PROGRAM} graph-resume {graph} {last} --redo --say TEXT"
        found.append(Way(f"to have it mended in a subtask, such as {last}", changed))
    return tuple(found)


def ways_of_shared_state(graph: str, summary: GraphSummary) -> tuple[Way, ...]:
    """For shared git state that changed and was not accepted yet."""
    if not summary.shared_changes or summary.shared_fingerprint is None:
        return ()
    goes_on = _integrate(graph) if summary.integration.state == "failed" else f"{PROGRAM} graph-run {graph}"
    accept = f"{PROGRAM} graph-resume {graph} --accept-shared {summary.shared_fingerprint}"
    return (Way("when all of it is meant to be so", accept), Way("when it was put back", goes_on))


def _integrate(graph: str) -> str:
    return f"{PROGRAM} graph-integrate {graph}"


def _own(failure: Failure | None, graph: str) -> Sequence[Way]:
    """The command that the failure itself names, unless it only says where to look."""
    following = failure.next if failure is not None else None
    looks = (f"{PROGRAM} graph-inspect {graph}", f"{PROGRAM} setup-discover")
    if not following or following.startswith(looks) or not _COMMAND.match(following):
        return ()
    return (Way("first", following),)


def _waivable(failure: Failure | None) -> str | None:
    """The check or fact that alone was in the way and may be accepted."""
    if failure is None:
        return None
    if failure.check is not None:
        return failure.check
    fact = _FACT_OF_CODE.get(failure.code)
    return fact if fact in WAIVABLE_FACTS else None
