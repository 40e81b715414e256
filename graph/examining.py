"""The request for one look at a subtask's worktree, from what the log says about its start."""

import json

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.model import slug
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.worktrees.model import ExamineRequest, RefSnapshot


def examine_request(context: Context, run: TaskRun) -> ExamineRequest:
    """Invariant: the run has a worktree and a base."""
    assert run.worktree is not None and run.base is not None
    return ExamineRequest(
        worktree=run.worktree,
        graph=context.graph_id,
        slug=slug(run.id),
        base=run.base,
        frozen=context.frozen,
        first_refs=load_refs(context, run.first_refs_blob),
        attempt_refs=load_refs(context, run.refs_blob),
        baseline=run.baseline,
    )


def load_refs(context: Context, blob: str | None) -> RefSnapshot:
    if blob is None:
        return RefSnapshot()
    raw = json.loads(context.blobs.get(blob).decode("utf-8", "surrogateescape"))
    return RefSnapshot(refs=raw["refs"], stashes=tuple(raw["stashes"]))
