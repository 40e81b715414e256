"""Review what is integrated, or one subtask's work: open it, approve it, or ask for changes.

The record decides what may be reviewed (`reviewing`); here git is asked, at this moment, whether the branches and the
integration's worktree still are what the record says. Only a decision of the closed list is one; everything else opens
the review and decides nothing.
"""

from collections.abc import Mapping
from typing import Any, get_args

from coordinate_agents.graph.acts.answers import Answers, no_answers
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.engine import Engine
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import Decision, ReviewDecided
from coordinate_agents.graph.model import CommitId, SubtaskId, slug
from coordinate_agents.graph.reviewing import Asked, Reviewed, decide, reviewed
from coordinate_agents.graph.staying import close_idle
from coordinate_agents.graph.text import counted
from coordinate_agents.worktrees.model import INTEGRATION_SLUG, Worktree, branch_ref

PROGRAM = "coordinate-agents"


async def review(
    engine: Engine, asked: Mapping[str, Any], *, who: str, answers: Answers = no_answers
) -> Mapping[str, Any]:
    """Record what was decided, all of it or nothing. Returns `{commit, decision, recorded, rework, again}`.

    After an approval of the graph its idle Sessions are closed; decided so before, that is only finished. Raises:
    TASK_STATE_CONFLICT (stale, moved), DIRTY_WORKTREE, TASK_ALREADY_RUNNING, INVALID_USAGE; nothing was changed then.
    """
    context = engine.context
    wanted = _wanted(asked, who)
    await context.call(_require_as_recorded, context, reviewed(context.snapshot, wanted))
    # Decided only now, after the last wait: meanwhile the driver went on.
    found, events = reviewed(context.snapshot, wanted), decide(context.snapshot, wanted)
    about = {subtask for event in events if isinstance(event, ReviewDecided) for subtask in event.about}
    touched = [subtask for event in events if (subtask := getattr(event, "subtask", None)) is not None]
    told = {
        "commit": found.commit,
        "decision": wanted.decision,
        "recorded": bool(events),
        "rework": [subtask for subtask in touched if subtask in about],
        "again": [subtask for subtask in touched if subtask not in about],
    }
    is_approval = wanted.decision == "REVIEW_APPROVED" and found.is_graph
    if events:
        engine.apply_all(events, results=() if is_approval else answers(told))
    crash_point("review.recorded")
    if is_approval:
        await close_idle(context, "the graph is approved")
    return told


def _wanted(asked: Mapping[str, Any], who: str) -> Asked:
    """Raises: INVALID_USAGE for a decision that is none, or changes without a word on which."""
    decision: Decision | None = asked.get("decision") or None
    if decision is not None and decision not in get_args(Decision):
        raise GraphError(
            "INVALID_USAGE",
            f"{decision!r} is no decision; it is {' or '.join(get_args(Decision))}.",
            kept="everything as it is; nothing was decided",
        )
    feedback = str(asked.get("feedback") or "")
    if decision == "CHANGES_REQUESTED" and not feedback.strip():
        raise GraphError(
            "INVALID_USAGE",
            "Say which changes are requested: --feedback TEXT, or --feedback-file FILE.",
            kept="everything as it is; nothing was decided",
        )
    subtasks = tuple(SubtaskId(str(each)) for each in asked.get("subtasks") or ())
    return Asked(subtasks, decision, asked.get("commit"), feedback, who)


def _require_as_recorded(context: Context, found: Reviewed) -> None:
    """What git says now. Raises: TASK_STATE_CONFLICT for what moved, DIRTY_WORKTREE."""
    worktrees, graph = context.worktrees, context.graph_id
    refs = worktrees.runtime_refs(graph)
    for subtask in found.subtasks:
        run = context.run(subtask)
        verified, tip = run.verified_commit, refs.get(branch_ref(graph, slug(subtask)))
        if tip is None and run.worktree is not None:
            # Somebody deleted it below its worktree: it comes back, and then stands where it must or does not.
            tip = worktrees.restore_branch(graph, slug(subtask), run.worktree, known=verified)
        if tip is not None and tip != verified:
            raise _moved(context, f"subtask {subtask}", f"its branch stands at {tip[:12]}", verified, subtask)
    if found.is_graph:
        _require_integration(context, refs.get(branch_ref(graph, INTEGRATION_SLUG)))
        return
    for subtask in found.subtasks:
        run = context.run(subtask)
        if run.worktree is not None:
            _require_clean(context, run.worktree, run.verified_commit, f"subtask {subtask}", run.baseline, subtask)


def _require_integration(context: Context, tip: CommitId | None) -> None:
    integration = context.snapshot.summary.integration
    if tip != integration.commit:
        where = f"its branch stands at {tip[:12]}" if tip else "its branch is gone"
        raise _moved(context, "the integration", where, integration.commit)
    worktree = integration.worktree
    if worktree is None:
        return
    # Untracked files are left by checks; they are in no commit.
    left = context.worktrees.untracked(worktree, context.frozen) if _is_there(context, worktree) else ()
    _require_clean(context, worktree, integration.commit, "the integration", left)


def _require_clean(
    context: Context,
    worktree: Worktree,
    commit: CommitId | None,
    whose: str,
    baseline: tuple[str, ...],
    subtask: SubtaskId | None = None,
) -> None:
    """A worktree that was cleaned up holds nothing that could differ."""
    worktrees = context.worktrees
    if not _is_there(context, worktree):
        return
    damage = worktrees.is_intact(worktree)
    if damage is not None:
        raise _moved(context, whose, f"its worktree is not as it was made ({damage})", commit, subtask)
    head = worktrees.head_of(worktree)
    if head != commit:
        where = f"its worktree stands at {head[:12]}" if head else "its worktree is not on its branch"
        raise _moved(context, whose, where, commit, subtask)
    dirty = [*worktrees.tracked_changes(worktree, context.frozen)]
    dirty += sorted(set(worktrees.untracked(worktree, context.frozen)) - set(baseline))
    if dirty:
        raise GraphError(
            "DIRTY_WORKTREE",
            f"The worktree of {whose} has {counted(len(dirty), 'uncommitted file')}, which no verification saw:"
            f" {', '.join(dirty[:5])}.",
            kept="everything as it is; nothing was decided",
            next=f"git -C {worktree.path} status",
            stage="review",
            facts=_facts(context, subtask),
        )


def _is_there(context: Context, worktree: Worktree) -> bool:
    return not context.worktrees.is_missing(worktree)


def _moved(
    context: Context, whose: str, where: str, commit: CommitId | None, subtask: SubtaskId | None = None
) -> GraphError:
    graph = context.graph_id
    again = f"graph-resume {graph} {subtask} --redo" if subtask else f"graph-integrate {graph}"
    return GraphError(
        "TASK_STATE_CONFLICT",
        f"The review is stale: {whose} was verified at {(commit or 'none')[:12]}, and {where}.",
        kept="everything as it is; nothing was decided",
        next=f"{PROGRAM} {again}",
        stage="review",
        facts=_facts(context, subtask),
    )


def _facts(context: Context, subtask: SubtaskId | None) -> dict[str, str]:
    return {"taskId": context.graph_id, **({"subtaskId": subtask} if subtask else {})}
