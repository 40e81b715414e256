"""Deliver the integrated commit to a branch that a person named: git moves the branch, then it is recorded.

The branch moves before the record: whoever is killed in between finds it as asked the next time, and records that.
"""

from collections.abc import Mapping
from typing import Any

from coordinate_agents.graph.acts.answers import Answers, no_answers
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.delivering import Delivery, delivery, squash_message
from coordinate_agents.graph.engine import Engine
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import BranchDelivered
from coordinate_agents.graph.snapshot import Delivered, Snapshot
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import INTEGRATION_SLUG, DeliveryRequest, Squash, branch_ref

PROGRAM = "coordinate-agents"


async def deliver(
    engine: Engine, asked: Mapping[str, Any], *, who: str, answers: Answers = no_answers
) -> Mapping[str, Any]:
    """Returns `{branch, commit, source, previous, isSquashed, recorded}`.

    Raises: TASK_STATE_CONFLICT (not integrated, stale), WORKTREE_CONFLICT, INVALID_USAGE; nothing was changed then.
    """
    context = engine.context
    found, branch, is_squashed = delivery(context.snapshot), str(asked["branch"]), bool(asked.get("squash"))
    request = await context.call(_request, context, found, branch, is_squashed=is_squashed)
    try:
        done = await context.call(context.worktrees.deliver, request)
    except WorktreeError as error:
        error.next = error.next or f"{PROGRAM} graph-deliver {context.graph_id} --branch NAME"
        raise
    crash_point("deliver.done")
    known = delivered_to(context.snapshot, branch)
    is_known = known is not None and (known.commit, known.source) == (done.commit, found.commit)
    told = {
        "branch": branch,
        "commit": done.commit,
        "source": found.commit,
        "previous": done.previous,
        "isSquashed": is_squashed,
        "recorded": not is_known,
    }
    if not is_known:
        event = BranchDelivered(branch, done.commit, found.commit, found.base, done.previous, is_squashed, who)
        engine.apply(event, results=answers(told))
    return told


def delivered_to(snapshot: Snapshot, branch: str) -> Delivered | None:
    """What was last delivered to the branch."""
    return next((each for each in snapshot.summary.deliveries if each.branch == branch), None)


def _request(context: Context, found: Delivery, branch: str, *, is_squashed: bool) -> DeliveryRequest:
    """Raises: TASK_STATE_CONFLICT for an integration branch that moved; DIRTY_WORKTREE never: only commits go."""
    graph, worktrees = context.graph_id, context.worktrees
    tip = worktrees.runtime_refs(graph).get(branch_ref(graph, INTEGRATION_SLUG))
    if tip is not None and tip != found.commit:
        raise GraphError(
            "TASK_STATE_CONFLICT",
            f"The integration is stale: it was verified at {found.commit[:12]}, and its branch stands at {tip[:12]}.",
            kept="every branch as it is; nothing was delivered",
            next=f"{PROGRAM} graph-integrate {graph}",
            stage="deliver",
            facts={"taskId": graph},
        )
    if not is_squashed:
        return DeliveryRequest(branch, found.commit, found.base)
    who = worktrees.user_identity()
    if who is None:
        raise GraphError(
            "TASK_STATE_CONFLICT",
            "git has no name and address to commit with (user.name, user.email).",
            kept="every branch as it is; nothing was delivered",
            next="git config user.email ADDRESS",
            stage="deliver",
            facts={"taskId": graph},
        )
    known = delivered_to(context.snapshot, branch)
    # A further squash goes on top of the last one, unless what that was built on is not in the new one.
    is_continued = known is not None and known.is_squashed and not worktrees.contains(found.commit, (known.base,))
    earlier = known.commit if known is not None and is_continued else None
    return DeliveryRequest(
        branch, found.commit, found.base, Squash(*who, squash_message(context.snapshot, found)), earlier
    )
