"""What is merged into the integration, in which order, and what an outcome means. Decides only; git is elsewhere.

The order is topological with ties by id, so the same graph gives the same merges. What is left out: a subtask without
a verified commit, one whose commit is the graph's base ("nothing to integrate" is not "integrated"), and a commit that
another subtask before it brings already. Whether a head is contained in another is asked of git at the merge
(`Merged.already`), never guessed from the edges: a redone prerequisite has commits that its dependent never saw.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from coordinate_agents.graph.evidence import CheckOutcome, check_fact, short
from coordinate_agents.graph.model import CommitId, SubtaskId, TaskGraph
from coordinate_agents.graph.order import topological
from coordinate_agents.graph.text import listed, visible
from coordinate_agents.worktrees.model import Head, MergeConflict, Merged

OutcomeState = Literal["integrated", "nothing", "conflict", "checks-failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an integration came to. `subtasks` are those that a person has to look at; `next` is a command to paste."""

    state: OutcomeState
    message: str
    code: str | None = None
    subtasks: tuple[SubtaskId, ...] = ()
    paths: tuple[str, ...] = ()
    next: str | None = None


def merge_order(graph: TaskGraph) -> tuple[SubtaskId, ...]:
    """Every subtask after its prerequisites; among those that could come next, the least id."""
    return topological({task.id: task.depends_on for task in graph.tasks})


def heads_to_merge(
    order: Iterable[SubtaskId], verified: Mapping[SubtaskId, CommitId], *, base: CommitId
) -> tuple[Head, ...]:
    """The verified commits that bring something, in merge order, each once under the first subtask that has it."""
    heads: dict[CommitId, Head] = {}
    for subtask in order:
        commit = verified.get(subtask)
        if commit is not None and commit != base:
            heads.setdefault(commit, Head(subtask, commit))
    return tuple(heads.values())


def outcome_of(graph: str, result: Merged | MergeConflict | None, checks: Sequence[CheckOutcome] = ()) -> Outcome:
    """What the merge and the checks on the merged tree mean. `result` None: there was no head to merge."""
    match result:
        case None:
            return Outcome("nothing", "nothing to integrate: no subtask changed anything")
        case MergeConflict():
            return _conflict(graph, result)
        case Merged():
            return _merged(graph, result, checks)
        case _:
            assert_never(result)


def _conflict(graph: str, conflict: MergeConflict) -> Outcome:
    first, second = conflict.pair
    paths = listed(conflict.paths, first=5)
    return Outcome(
        "conflict",
        f"conflict in {paths}: {visible(second)} does not merge with {visible(first)}; {_applied(conflict.applied)}",
        "INTEGRATION_CONFLICT",
        (SubtaskId(first), SubtaskId(second)),
        conflict.paths,
        f"coordinate-agents graph-diff {graph}",
    )


def _applied(heads: Sequence[Head]) -> str:
    if not heads:
        return "nothing was applied before it"
    return f"applied before it: {listed([head.name for head in heads], first=5)}"


def _merged(graph: str, merged: Merged, checks: Sequence[CheckOutcome]) -> Outcome:
    names = [head.name for head in merged.merged]
    fact = check_fact(checks, commit=merged.commit)
    if fact.outcome == "failed":
        # Each passed alone: what fails is how they stand together.
        return Outcome(
            "checks-failed",
            f"{fact.message}, on {listed(names, first=5)} together at {short(merged.commit)}",
            "CHECK_FAILED",
            tuple(SubtaskId(name) for name in names),
            next=f"coordinate-agents graph-inspect {graph} --part failure",
        )
    message = f"{listed(names, first=5) or 'everything'} integrated at {short(merged.commit)}"
    if merged.already:
        message += f"; contained already: {listed([head.name for head in merged.already], first=5)}"
    return Outcome("integrated", message)
