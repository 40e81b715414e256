"""What a review's decision changes, decided from the record alone: the events, or why it cannot be decided.

Pure. Rule: a decision is about one commit, and about the present one. The problem this causes: between the look and the
decision the work may have moved. Next rule: whoever decides names the commit, or has it from the review that was
opened; any other integrated commit by now is stale. Requested changes go to the subtasks that are named. Each gets one
more turn of the same attempt, on the same branch; what was built on one of them begins again from a fresh base, in the
same step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coordinate_agents.graph.engine import verified_heads
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import Decision, Event, ReviewDecided, ReviewOpened, ReworkRequested, TaskReset
from coordinate_agents.graph.model import CommitId, SubtaskId
from coordinate_agents.graph.order import dependents, prerequisites, topological
from coordinate_agents.graph.resuming import PROGRAM, descendant_resets
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.graph.text import listed
from coordinate_agents.worktrees.values import value_class


@value_class
class Asked:
    """`subtasks` empty: about the graph. `decision` None: the review is opened. `commit` None: the present one."""

    subtasks: tuple[SubtaskId, ...] = ()
    decision: Decision | None = None
    commit: str | None = None
    feedback: str = ""
    who: str = "user"


@value_class
class Reviewed:
    """What is reviewed: the commit, and the subtasks of whose commits it consists."""

    commit: CommitId
    subtasks: tuple[SubtaskId, ...]
    is_graph: bool


def reviewed(snapshot: Snapshot, asked: Asked) -> Reviewed:
    """Raises: TASK_STATE_CONFLICT when there is nothing whole to review, or something else than the reviewer saw."""
    if asked.subtasks:
        commits = [_verified(snapshot, subtask) for subtask in asked.subtasks]
        found = Reviewed(commits[0], asked.subtasks, is_graph=False)
    else:
        found = Reviewed(integrated_commit(snapshot, "review"), tuple(snapshot.runs), is_graph=True)
    if asked.commit is not None and not (len(asked.commit) >= 7 and found.commit.startswith(asked.commit)):
        raise _stale(snapshot, f"the decision is about {asked.commit[:12]}", found)
    review = snapshot.summary.review
    if found.is_graph and asked.decision and review.state == "open" and review.commit != found.commit:
        raise _stale(snapshot, f"the review was opened on {(review.commit or '')[:12]}", found)
    return found


def decide(snapshot: Snapshot, asked: Asked) -> tuple[Event, ...]:
    """All events of the decision, to be recorded together; none when it was decided so before. Raises as `reviewed`.

    Also TASK_ALREADY_RUNNING while something runs that was built on a subtask that is asked for changes, and
    INVALID_USAGE when nothing says who is asked.
    """
    found, review = reviewed(snapshot, asked), snapshot.summary.review
    is_same = found.is_graph and review.commit == found.commit
    if asked.decision is None:
        is_known = not found.is_graph or (is_same and review.state in ("open", "approved"))
        return () if is_known else (ReviewOpened(found.commit, asked.who),)
    if asked.decision == "REVIEW_APPROVED":
        if (is_same and review.state == "approved") or _is_approved(snapshot, found):
            return ()
        return (ReviewDecided("REVIEW_APPROVED", found.commit, asked.subtasks, asked.feedback, asked.who),)
    about = asked.subtasks or (_only_last(snapshot),)
    return _changes(snapshot, found, about, asked)


def _is_approved(snapshot: Snapshot, found: Reviewed) -> bool:
    """Whether the commit of one subtask was approved before."""
    known = {(each.subtask, each.commit) for each in snapshot.summary.approvals}
    return not found.is_graph and len(found.subtasks) == 1 and (found.subtasks[0], found.commit) in known


def _changes(snapshot: Snapshot, found: Reviewed, about: Sequence[SubtaskId], asked: Asked) -> tuple[Event, ...]:
    again: dict[SubtaskId, TaskReset] = {}
    for subtask in about:
        again.update({reset.subtask: reset for reset in descendant_resets(snapshot, subtask, who=asked.who)})
    ordered = [subtask for subtask in topological(prerequisites(snapshot.graph)) if subtask in {*about, *again}]
    events: list[Event] = [
        ReviewDecided(
            "CHANGES_REQUESTED",
            found.commit,
            tuple(subtask for subtask in ordered if subtask in about),
            asked.feedback,
            asked.who,
        )
    ]
    for subtask in ordered:
        if subtask not in again:
            events.append(ReworkRequested(subtask, asked.feedback, asked.who))
        elif subtask in about:
            # What it builds on changes too: it begins again from there, with the reviewer's words.
            events.append(replace(again[subtask], say=asked.feedback))
        else:
            events.append(again[subtask])
    return tuple(events)


def _verified(snapshot: Snapshot, subtask: SubtaskId) -> CommitId:
    run = snapshot.runs[subtask]
    if run.state != "succeeded" or run.verified_commit is None:
        raise _conflict(
            snapshot,
            f"Subtask {subtask} has nothing to review: it is {snapshot.frontier.place(subtask)}.",
            next=f"{PROGRAM} graph-status {snapshot.graph.id}",
            facts={"subtaskId": subtask},
        )
    return run.verified_commit


def integrated_commit(snapshot: Snapshot, purpose: str) -> CommitId:
    """The commit that holds all there is. Raises: TASK_STATE_CONFLICT when there is nothing whole for this purpose."""
    integration, graph = snapshot.summary.integration, snapshot.graph.id
    open_ones = [run.id for run in snapshot.runs.values() if run.state != "succeeded"]
    if open_ones:
        which = listed(sorted(open_ones), first=5)
        raise _conflict(
            snapshot,
            f"Graph {graph} has nothing whole to {purpose}: {which} did not succeed yet.",
            next=f"{PROGRAM} graph-status {graph}",
            stage=purpose,
        )
    is_present = integration.state == "integrated" and set(integration.heads) == set(verified_heads(snapshot))
    if not is_present or integration.commit is None:
        was = "its integration is of earlier commits" if integration.state == "integrated" else "it is not integrated"
        raise _conflict(
            snapshot,
            f"Graph {graph} has nothing whole to {purpose}: {was}.",
            next=f"{PROGRAM} graph-integrate {graph}",
            stage=purpose,
        )
    return integration.commit


def _only_last(snapshot: Snapshot) -> SubtaskId:
    """The one subtask on which nothing depends: what the whole ends with. Raises: INVALID_USAGE for several."""
    last = [subtask for subtask, found in dependents(prerequisites(snapshot.graph)).items() if not found]
    if len(last) == 1:
        return last[0]
    graph = snapshot.graph.id
    raise GraphError(
        "INVALID_USAGE",
        f"Name the subtasks that are asked for changes: graph {graph} ends with {listed(sorted(last), first=8)}, and"
        " the same feedback to several would be carried out several times.",
        kept="everything as it is; nothing was decided",
        next=f"{PROGRAM} graph-review {graph} {sorted(last)[0]} --decision CHANGES_REQUESTED",
        stage="review",
        facts={"taskId": graph},
    )


def _stale(snapshot: Snapshot, saw: str, found: Reviewed) -> GraphError:
    words = " ".join([snapshot.graph.id, *found.subtasks[:1]] if not found.is_graph else [snapshot.graph.id])
    return _conflict(
        snapshot,
        f"The review is stale: {saw}, and {found.commit[:12]} stands now.",
        next=f"{PROGRAM} graph-review {words}",
    )


def _conflict(
    snapshot: Snapshot, message: str, *, next: str, stage: str = "review", facts: Mapping[str, str] | None = None
) -> GraphError:
    return GraphError(
        "TASK_STATE_CONFLICT",
        message,
        kept=f"everything as it is; nothing was {'decided' if stage == 'review' else f'{stage}ed'}",
        next=next,
        stage=stage,
        facts={"taskId": snapshot.graph.id, **(facts or {})},
    )
