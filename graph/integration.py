"""What is merged into the integration, and in which order. Decides only; git is elsewhere.

The order is topological with ties by id, so the same graph gives the same merges. What is left out: a subtask without
a verified commit, one whose commit is the graph's base ("nothing to integrate" is not "integrated"), and a commit that
another subtask before it brings already. Whether a head is contained in another is asked of git at the merge
(`Merged.already`), never guessed from the edges: a redone prerequisite has commits that its dependent never saw.
"""

from collections.abc import Iterable, Mapping

from coordinate_agents.graph.model import CommitId, SubtaskId, TaskGraph
from coordinate_agents.graph.order import topological
from coordinate_agents.worktrees.model import Head


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
