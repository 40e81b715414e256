"""The request for one look at a subtask's worktree, from what the log says about its start."""

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.model import slug
from coordinate_agents.graph.ref_snapshots import load_refs
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.worktrees.model import ExamineRequest


def examine_request(context: Context, run: TaskRun) -> ExamineRequest:
    """Invariant: the run has a worktree and a base."""
    assert run.worktree is not None and run.base is not None
    return ExamineRequest(
        worktree=run.worktree,
        graph=context.graph_id,
        slug=slug(run.id),
        base=run.base,
        frozen=context.frozen,
        first_refs=load_refs(context.blobs, run.first_refs_blob),
        attempt_refs=load_refs(context.blobs, run.refs_blob),
        baseline=run.baseline,
    )
