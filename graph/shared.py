"""Compare the shared git state and the Runtime's own refs with what the record says (contract section 6, fact 5).

Config, hooks, attributes and the like belong to all worktrees at once: what one agent writes there runs or lies in
everybody's git. A change is a fact about the graph, shown at once; it blocks integration until a person accepts it.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from coordinate_agents.graph.context import Context
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.events import SharedAccepted, SharedChanged, SharedRecorded
from coordinate_agents.graph.model import CommitId, SubtaskId, slug
from coordinate_agents.worktrees.model import branch_ref

# From these on an attempt's agent is there, or was; a check runs what it wrote.
_WITH_AGENT: Final = ("session", "turn", "verify")


def record_shared(context: Context, after: Mapping[str, str]) -> None:
    """Record SharedChanged when the state seen differs from the recorded one in a way not recorded yet."""
    blob = context.snapshot.summary.shared_blob
    if blob is None:
        return
    before: Mapping[str, str] = json.loads(context.blobs.get(blob))
    if before == after and not context.snapshot.summary.shared_changes:
        return
    changes = differences(before, after)
    fingerprint = fingerprint_of(changes, after)
    if changes and fingerprint != context.snapshot.summary.shared_fingerprint:
        running = tuple(run.id for run in context.snapshot.runs.values() if run.state == "running")
        context.record(SharedChanged(changes, fingerprint, running[:20]))
    elif not changes and context.snapshot.summary.shared_changes:
        context.record(SharedChanged((), ""))


def quiet(context: Context, subtask: SubtaskId) -> tuple[str | None, ...] | None:
    """None while an agent of another subtask may be at work. Two marks that are the same: none began between them."""
    others = [run for name, run in context.snapshot.runs.items() if name != subtask]
    if any(run.open_session or (run.state == "running" and run.stage in _WITH_AGENT) for run in others):
        return None
    return tuple(run.session for run in others)


def adopt_setup(
    context: Context,
    subtask: SubtaskId,
    *,
    before: Mapping[str, str],
    after: Mapping[str, str],
    mark: tuple[str | None, ...] | None,
) -> None:
    """Let what the user's own setup commands changed be the state that later looks are compared with.

    `before`, and the mark, are from when they began. Only where no agent can have had a part in it, and from the
    recorded state: `husky`, for one, sets `core.hooksPath` when packages are installed. Else it is left to be reported.
    """
    blob = context.snapshot.summary.shared_blob
    if before == after or blob is None or mark is None or mark != quiet(context, subtask):
        return
    if json.loads(context.blobs.get(blob)) == before:
        context.record(SharedRecorded(context.blobs.put(json.dumps(dict(after), sort_keys=True).encode())))


async def acceptance(context: Context, fingerprint: str, *, who: str) -> SharedAccepted:
    """The acceptance of exactly the change that this fingerprint names, as it is now.

    Raises: SHARED_STATE_CHANGED when it is another one by now (recorded then), TASK_STATE_CONFLICT when there is none.
    """
    after = await context.call(context.worktrees.shared_state)
    record_shared(context, after)
    graph, summary = context.graph_id, context.snapshot.summary
    if summary.shared_fingerprint is None or not summary.shared_changes:
        raise GraphError(
            "TASK_STATE_CONFLICT",
            f"The shared git state of graph {graph} is as it was recorded; there is nothing to accept.",
            kept="everything as it is",
            next=f"coordinate-agents graph-status {graph}",
            facts={"taskId": graph},
        )
    if fingerprint != summary.shared_fingerprint:
        raise GraphError(
            "SHARED_STATE_CHANGED",
            f"{fingerprint} does not name what changed by now: {'; '.join(summary.shared_changes[:5])}"
            f" ({summary.shared_fingerprint}).",
            kept="everything as it is; nothing was accepted",
            next=f"coordinate-agents graph-inspect {graph}",
            facts={"taskId": graph, "fingerprint": summary.shared_fingerprint},
        )
    blob = context.blobs.put(json.dumps(dict(after), sort_keys=True).encode(), durable=True)
    return SharedAccepted(fingerprint, blob, who)


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Readable lines, sorted: what was added, removed or changed."""
    lines = [f"added: {name}" for name in after.keys() - before.keys()]
    lines += [f"removed: {name}" for name in before.keys() - after.keys()]
    lines += [f"changed: {name}" for name in before.keys() & after.keys() if before[name] != after[name]]
    return tuple(sorted(lines)[:100])


def fingerprint_of(changes: tuple[str, ...], after: Mapping[str, str]) -> str:
    """Names exactly this difference, so that accepting it accepts nothing that comes later."""
    text = json.dumps([changes, sorted(after.items())])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def recorded_refs(context: Context) -> Mapping[str, CommitId]:
    """What the Runtime's branches of finished subtasks must be."""
    wanted: dict[str, CommitId] = {}
    for run in context.snapshot.runs.values():
        is_deleted = run.removal is not None and run.removal.is_branch_deleted
        if run.state == "succeeded" and run.verified_commit is not None and not is_deleted:
            wanted[branch_ref(context.graph_id, slug(run.id))] = run.verified_commit
    return wanted


async def settle_refs(context: Context) -> tuple[str, ...]:
    """Set back the branches of finished subtasks that were deleted or rewritten while nobody drove; their names.

    Before anything starts: it would be blamed on whoever is verified next. Strange tips are kept by pins.
    """
    wanted = recorded_refs(context)
    if not wanted:
        return ()
    found = await context.call(context.worktrees.runtime_branches, context.graph_id)
    changed = await _set_back(context, wanted, found)
    for name in changed:
        was = f"; {found[name][:12]}, where it stood, is kept by a pin" if name in found else ""
        branch = name.removeprefix("refs/heads/")
        context.progress.notice(f"branch {branch} is set back to its verified commit {wanted[name][:12]}{was}")
    return changed


async def repair_refs(context: Context, subtask: SubtaskId, found: Mapping[str, CommitId]) -> tuple[str, ...]:
    """Restore Runtime refs of other finished subtasks; returns the names that `subtask` is to be blamed for.

    `found` is what the Runtime's branches are now. Blame falls on the subtask only when no other one was running.
    """
    changed = await _set_back(context, recorded_refs(context), found)
    if not changed:
        return ()
    others = [run.id for run in context.snapshot.runs.values() if run.state == "running" and run.id != subtask]
    lines = tuple(f"restored: {name}" for name in changed)
    if others:
        running = (subtask, *others)
        context.record(SharedChanged(lines[:100], fingerprint_of(lines, {}), tuple(running[:20])))
        return ()
    return changed


async def _set_back(context: Context, wanted: Mapping[str, CommitId], found: Mapping[str, CommitId]) -> tuple[str, ...]:
    """Set back the branches that were deleted or rewritten, their strange tips kept; the names that were changed.

    One that moved forward holds more work and is left: the verified commit is what counts.
    """
    damaged = {}
    for name, commit in wanted.items():
        tip = found.get(name)
        if tip == commit:
            continue
        # No branch can stand at a commit that is gone. What builds on it fails and names it; the rest goes on.
        if await context.call(context.worktrees.is_gone, commit):
            continue
        if tip is None or len(await context.call(context.worktrees.contains, tip, [commit])):
            damaged[name] = commit
    return await context.call(context.worktrees.restore_refs, damaged) if damaged else ()
