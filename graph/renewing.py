"""Clear the place for a fresh start: the worktree of an earlier attempt goes, and everything that only it held is kept.

What the base's rules do not ignore is set aside as a pinned `discard-<n>` commit first; commits are pinned. A worktree
that cannot be cleared (somebody works in it, it is not as it was made) stays, and the attempt fails with the reason.
"""

from dataclasses import replace

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.events import AttemptFailed, Failure
from coordinate_agents.graph.model import slug
from coordinate_agents.graph.opened import require_none_open
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.worktrees.model import Refused, RemovalRequest, Removed, Worktree


async def clear(context: Context, run: TaskRun, worktree: Worktree) -> AttemptFailed | None:
    """None when the place is free, or already holds the new worktree. Cut short anywhere, the next call goes on."""
    await require_none_open(context, run)
    is_missing = await context.call(context.worktrees.is_missing, worktree)
    if not is_missing and await context.call(context.worktrees.is_intact, worktree) is not None:
        # Another folder stands there: the new worktree itself, or one that its creation will name.
        return None
    gone = await context.call(_remove, context, run, worktree)
    crash_point("worktree.cleared")
    if isinstance(gone, Removed):
        return None
    failure = Failure(
        "CLEANUP_REFUSED",
        f"a fresh start needs its worktree's place, and {gone.message}.",
        stage="worktree",
        kept=f"the folder {gone.stands_at or worktree.path} and branch {worktree.branch}",
        next=gone.next or f"coordinate-agents graph-inspect {context.graph_id} {run.id}",
    )
    return AttemptFailed(run.id, failure, is_final=True)


def _remove(context: Context, run: TaskRun, worktree: Worktree) -> Removed | Refused:
    """As it is when it holds nothing else; else once a commit holds everything."""
    request = RemovalRequest(
        worktree=worktree,
        graph=context.graph_id,
        slug=slug(run.id),
        frozen=context.frozen,
        baseline=run.baseline,
        copies=context.config.copy,
    )
    gone = context.worktrees.remove(request)
    if isinstance(gone, Removed) or context.worktrees.is_missing(worktree):
        return gone
    discarded = context.worktrees.set_aside(request)
    return context.worktrees.remove(replace(request, discarded=discarded))
