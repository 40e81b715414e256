"""What graph-resume makes ready again, decided from the record alone: one TaskReset each, or why not.

Pure. A redo takes a verified commit back, and with it everything that was built on it: each descendant that ever
started begins again from a fresh base, in the same step, so that none is left standing on a commit that counts no more.
"""

from collections.abc import Iterator

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import Keep, TaskReset
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.order import prerequisites, topological
from coordinate_agents.graph.recovery import is_interrupted
from coordinate_agents.graph.snapshot import Snapshot, TaskRun
from coordinate_agents.graph.text import listed
from coordinate_agents.worktrees.values import value_class

PROGRAM = "coordinate-agents"


@value_class
class Wanted:
    """`subtask` None: every failed, stopped, interrupted and base-conflicted one. `agent`: from now on."""

    subtask: SubtaskId | None = None
    redo: bool = False
    say: str = ""
    keep: Keep = "branch"
    agent: str | None = None
    who: str = "user"


@value_class
class Resumed:
    """`resets` in the order of the graph, prerequisites first; `notes` say why others stay as they are."""

    resets: tuple[TaskReset, ...] = ()
    notes: tuple[str, ...] = ()


def plan_resume(snapshot: Snapshot, wanted: Wanted) -> Resumed:
    """Raises: TASK_ALREADY_RUNNING, TASK_STATE_CONFLICT; then nothing is to be changed."""
    if wanted.subtask is None:
        runs = [snapshot.runs[subtask] for subtask in topological(prerequisites(snapshot.graph))]
        resets = tuple(_reset(snapshot, run, wanted) for run in runs if _has_ended_badly(run))
        return Resumed(resets, () if resets else ("nothing to do: no subtask failed, stopped or was interrupted",))
    run = snapshot.runs[wanted.subtask]
    if run.state == "running":
        raise _running(snapshot, run.id, f"Subtask {run.id} runs; there is nothing to resume.")
    asks_more = bool(wanted.say or wanted.agent or wanted.keep == "base")
    if run.state == "succeeded" and not wanted.redo:
        if asks_more:
            raise _succeeded(snapshot, run)
        note = f"nothing to do: subtask {run.id} succeeded; --redo takes its verified commit back"
        return Resumed(notes=(note,))
    if not _has_ended_badly(run) and run.state == "idle" and not asks_more:
        return Resumed(notes=(_idle_note(snapshot, run),))
    built = descendant_resets(snapshot, run.id, who=wanted.who) if run.state == "succeeded" else ()
    return Resumed((_reset(snapshot, run, wanted), *built))


def descendant_resets(snapshot: Snapshot, subtask: SubtaskId, *, who: str) -> tuple[TaskReset, ...]:
    """A fresh start for everything that was built on the subtask's commit, prerequisites first.

    Raises: TASK_ALREADY_RUNNING while one of them runs.
    """
    started = [run for each in _descendants(snapshot, subtask) if (run := snapshot.runs[each]).attempt]
    running = [run.id for run in started if run.state == "running"]
    if running:
        raise _running(snapshot, running[0], f"{listed(running)} runs and builds on subtask {subtask}.")
    reason = f"{subtask}, which it builds on, is done again"
    return tuple(TaskReset(run.id, reason, keep="base", who=who) for run in started if not _is_anew(run))


def _has_ended_badly(run: TaskRun) -> bool:
    return run.state in ("failed", "stopped") or (run.state == "idle" and run.conflict is not None)


def _is_anew(run: TaskRun) -> bool:
    """Whether it waits for a fresh start already."""
    return run.state == "idle" and (run.is_fresh or run.worktree is None)


def _reset(snapshot: Snapshot, run: TaskRun, wanted: Wanted) -> TaskReset:
    if run.state == "succeeded":
        reason = "redone on request"
    elif run.conflict is not None:
        reason = "its base is tried again"
    elif is_interrupted(run):
        reason = "resumed after an interruption"
    else:
        reason = "resumed on request"
    return TaskReset(run.id, reason, keep=wanted.keep, say=wanted.say, agent=wanted.agent, who=wanted.who)


def _descendants(snapshot: Snapshot, subtask: SubtaskId) -> Iterator[SubtaskId]:
    """Everything that builds on the subtask, directly or not, prerequisites first. Linear in the graph."""
    below = {subtask}
    for each in topological(prerequisites(snapshot.graph)):
        if not below.isdisjoint(snapshot.tasks[each].depends_on):
            below.add(each)
            yield each


def _idle_note(snapshot: Snapshot, run: TaskRun) -> str:
    place = snapshot.frontier.place(run.id)
    if place == "blocked":
        by = snapshot.frontier.blockers(run.id)
        return f"nothing to do: subtask {run.id} is blocked by {listed(by, first=3)}; resume that"
    return f"nothing to do: subtask {run.id} is {place} already"


def _running(snapshot: Snapshot, subtask: SubtaskId, message: str) -> GraphError:
    graph = snapshot.graph.id
    return GraphError(
        "TASK_ALREADY_RUNNING",
        message,
        kept="everything as it is",
        next=f"{PROGRAM} graph-stop {graph} {subtask}",
        stage="resume",
        facts={"taskId": graph, "subtaskId": subtask},
    )


def _succeeded(snapshot: Snapshot, run: TaskRun) -> GraphError:
    graph = snapshot.graph.id
    return GraphError(
        "TASK_STATE_CONFLICT",
        f"Subtask {run.id} succeeded with {(run.verified_commit or '')[:12]}; only a redo takes that back.",
        kept="its verified commit, worktree and branch, and everything built on it",
        next=f"{PROGRAM} graph-resume {graph} {run.id} --redo",
        stage="resume",
        facts={"taskId": graph, "subtaskId": run.id},
    )
