"""Why a subtask stands where it stands: the facts behind its state, each followed by what it rests on. Pure.

Works on the state and on the last event of each kind; what it says is read from them, never guessed. The order is
causal: a fact stands before those that brought it about, which have a greater depth.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from coordinate_agents.graph.codec import to_plain
from coordinate_agents.graph.conflicts import PROGRAM, conflict_words, named, resolve_command
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.planner import WITHOUT_SLOT
from coordinate_agents.graph.runs import TaskRun
from coordinate_agents.graph.schedule import Deferred
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.graph.store.rows import EventRow

# A chain is read by people; a subtask that waits for thousands names the first ones.
MAX_FACTS: Final = 60
_MAX_CAUSES: Final = 8


class Fact(NamedTuple):
    """`event` is what recorded it, None for what follows from the plan; `following` a command to paste."""

    depth: int
    subtask: SubtaskId
    text: str
    following: str
    event: EventRow | None = None


class Known(NamedTuple):
    """`last`: of a subtask, the last event of each type, and by `event_key`.

    `deferred`: why ready ones do not start; those that would are not in it.
    """

    snapshot: Snapshot
    is_driven: bool
    last: Callable[[SubtaskId], Mapping[str, EventRow]]
    deferred: Mapping[SubtaskId, Deferred]


def event_key(event: EventRow) -> str:
    """The type; of a check with its name, since several end in one verification."""
    return f"{event.type} {event.data['result']['name']}" if event.type == "CheckEnded" else event.type


def explain(known: Known, subtask: SubtaskId) -> tuple[Fact, ...]:
    """The facts, at most MAX_FACTS, the subtask's own state first. Each subtask is explained once."""
    found: list[Fact] = []
    told = {subtask}
    for fact in _of(known, subtask, 0, told):
        if len(found) == MAX_FACTS:
            break
        found.append(fact)
    return tuple(found)


def _of(known: Known, subtask: SubtaskId, depth: int, told: set[SubtaskId]) -> Iterator[Fact]:
    run, place = known.snapshot.runs[subtask], known.snapshot.frontier.place(subtask)
    match place:
        case "blocked" if run.conflict is not None:
            words = conflict_words(to_plain(run.conflict))
            following = resolve_command(known.snapshot.graph.id, subtask, is_open=run.conflict_state == "open")
            yield _fact(known, depth, subtask, f"is BLOCKED: {words}", "BaseConflicted", following)
        case "blocked" if run.state == "failed":
            yield from _failed(known, run, depth, "is BLOCKED")
        case "blocked":
            blockers = known.snapshot.frontier.blockers(subtask)
            yield _fact(known, depth, subtask, f"is BLOCKED by {named(blockers)}")
            yield from _causes(known, blockers, depth + 1, told)
        case "waiting":
            frontier = known.snapshot.frontier
            missing = [each for each in known.snapshot.tasks[subtask].depends_on if frontier.state(each) != "succeeded"]
            yield _fact(known, depth, subtask, f"is WAITING for {named(missing)}")
            yield from _causes(known, missing, depth + 1, told)
        case "ready":
            yield from _ready(known, run, depth, told)
        case "running":
            yield from _running(known, run, depth)
        case "failed":
            yield from _failed(known, run, depth)
        case "stopped":
            reason = run.reason or "no reason was given"
            following = f"{PROGRAM} graph-resume {known.snapshot.graph.id} {subtask}"
            yield _fact(known, depth, subtask, f"is STOPPED: {reason}", "TaskStopped", following)
        case "succeeded":
            text = f"SUCCEEDED: {(run.verified_commit or '')[:12]} was verified"
            yield _fact(known, depth, subtask, text, "TaskJudged")


def _causes(
    known: Known, subtasks: "list[SubtaskId] | tuple[SubtaskId, ...]", depth: int, told: set[SubtaskId]
) -> Iterator[Fact]:
    for each in [each for each in subtasks if each not in told][:_MAX_CAUSES]:
        told.add(each)
        yield from _of(known, each, depth, told)


def _ready(known: Known, run: TaskRun, depth: int, told: set[SubtaskId]) -> Iterator[Fact]:
    graph = known.snapshot.graph.id
    if run.is_held:
        following = f"{PROGRAM} graph-release {graph} {run.id}"
        yield _fact(known, depth, run.id, "is READY, and held: a person works in its worktree", "TaskHeld", following)
        return
    last = next((each for each in ("TaskReset", "AttemptFailed", "TaskJudged") if each in known.last(run.id)), "")
    deferred = known.deferred.get(run.id)
    if deferred is None:
        text = "is READY, and starts next" if known.is_driven else "is READY, and nobody drives the graph"
        following = f"{PROGRAM} graph-status {graph}" if known.is_driven else f"{PROGRAM} graph-run {graph}"
        yield _fact(known, depth, run.id, text, last, following)
        return
    yield _fact(known, depth, run.id, f"is READY, and waits: {deferred.reason}: {deferred.detail}", last)
    yield from _causes(known, _in_the_way(known, run, deferred), depth + 1, told)


def _in_the_way(known: Known, run: TaskRun, deferred: Deferred) -> list[SubtaskId]:
    """The subtasks that hold what it waits for, in id order."""
    if deferred.other is not None:
        return [deferred.other]
    tasks = known.snapshot.tasks
    running = sorted(known.snapshot.frontier.members("running"))
    match deferred.reason:
        case "SLOTS":
            return [each for each in running if known.snapshot.runs[each].phase not in WITHOUT_SLOT]
        case "RESOURCE":
            return [each for each in running if not set(tasks[each].needs).isdisjoint(tasks[run.id].needs)]
        case "AGENT_PAUSED":
            return [each for each in running if known.snapshot.runs[each].limited_since is not None]
        case _:
            return []


def _running(known: Known, run: TaskRun, depth: int) -> Iterator[Fact]:
    graph = known.snapshot.graph.id
    text = f"is RUNNING ({run.phase}), attempt {run.attempt} with {run.agent}"
    note = f": {run.reason}" if run.reason else ""
    if not known.is_driven:
        following = f"{PROGRAM} graph-run {graph}"
        yield _fact(known, depth, run.id, f"{text}{note}; nobody drives the graph", "TaskClaimed", following)
        return
    inspect = f"{PROGRAM} graph-inspect {graph} {run.id}"
    match run.phase:
        case "awaiting-input":
            yield _fact(known, depth, run.id, f"{text}{note}", "PhaseChanged", f"{inspect} --part screen")
        case "held" if run.is_held:
            yield _fact(known, depth, run.id, text, "TaskHeld", f"{PROGRAM} graph-release {graph} {run.id}")
        case "throttled":
            yield _fact(known, depth, run.id, f"{text}{note}", "PhaseChanged", inspect)
        case "verifying":
            yield _fact(known, depth, run.id, text, "VerificationStarted", inspect)
        case "working" if run.stalled_since is not None:
            text += ", stalled: its agent has said nothing new"
            yield _fact(known, depth, run.id, text, "TurnStalled", f"{inspect} --part screen")
        case _:
            yield _fact(known, depth, run.id, text, "TaskClaimed", f"{inspect} --part screen")


def _failed(known: Known, run: TaskRun, depth: int, how: str = "FAILED") -> Iterator[Fact]:
    """The verdict or the end of the attempt, then the checks, the facts and the turn that it rests on."""
    graph, last, failure = known.snapshot.graph.id, known.last(run.id), run.failure
    ends = [last[each] for each in ("TaskJudged", "AttemptFailed") if each in last]
    ended = max(ends, key=lambda event: event.seq, default=None)
    code = f"{failure.code}: " if failure is not None else ""
    following = (failure.next if failure else None) or f"{PROGRAM} graph-resume {graph} {run.id}"
    text = f"{how}, attempt {run.attempt}: {code}{run.reason or 'no reason was given'}"
    yield Fact(depth, run.id, text, following, ended)
    inspect = f"{PROGRAM} graph-inspect {graph} {run.id} --part failure"
    begun = last["VerificationStarted"].seq if "VerificationStarted" in last else 0
    if ended is not None and ended.type == "TaskJudged":
        for check in run.evidence.checks if run.evidence else ():
            if check.outcome not in ("passed", "not-run"):
                text = f"check {check.name} ({' '.join(check.run)}) {check.outcome}, exit code {check.exit_code}"
                yield Fact(depth + 1, run.id, text, inspect, last.get(f"CheckEnded {check.name}"))
        facts = last.get("FactsRecorded")
        for line in facts.data.get("facts", ()) if facts is not None and facts.seq > begun else ():
            if ": ok" not in line:
                yield Fact(depth + 1, run.id, f"fact {line}", inspect, facts)
    turn = run.turn_end
    if turn is not None:
        how = f"signal {turn.signal}" if turn.signal is not None else f"exit code {turn.exit_code}"
        yield Fact(depth + 1, run.id, f"its turn ended: {turn.cause}, {how}", inspect, last.get("TurnEnded"))


def _fact(
    known: Known, depth: int, subtask: SubtaskId, text: str, event: str = "", following: str | None = None
) -> Fact:
    inspect = f"{PROGRAM} graph-inspect {known.snapshot.graph.id} {subtask}"
    return Fact(depth, subtask, text, following or inspect, known.last(subtask).get(event))
