"""Gather what one turn's prompt says, from the record; `prompt` writes the text."""

from dataclasses import replace

from coordinate_agents.graph.agents import agent_for
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.examining import examine_request
from coordinate_agents.graph.model import CommitBy, slug
from coordinate_agents.graph.prompt import (
    Assignment,
    Delivered,
    Rework,
    first_prompt,
    fix_prompt,
    review_prompt,
    told_prompt,
)
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.graph.text import counted
from coordinate_agents.worktrees.model import branch_name


def prompt_of(
    context: Context,
    run: TaskRun,
    *,
    commit_by: CommitBy,
    nonce: str,
    continues: bool,
    found: str = "",
    is_alone: bool = False,
) -> str:
    """The prompt of the turn that was recorded last: the assignment, the turn after a refusal, or a person's words.

    `continues`: the agent knows the turns before; else a person's words come with the whole assignment, and with what
    was `found` in the worktree. `is_alone`: nobody knows yet, so the assignment comes first in any case.
    """
    assignment, feedback = replace(assignment_of(context, run, commit_by), found=found), run.feedback
    if run.is_told and continues:
        tell = review_prompt if run.review and run.review in feedback else told_prompt
        return tell(assignment, feedback, nonce=nonce)
    if not feedback or run.is_told:
        rework = Rework(run.review, run.reviewed_commit or "", run.summary or "") if run.review else None
        told = feedback if rework is None else feedback.replace(run.review, "", 1).strip()
        said = "\n\n".join(words for words in (run.say, told) if words)
        return first_prompt(assignment, nonce=nonce, said=said, rework=rework)
    first = f"{first_prompt(assignment, nonce=nonce, said=run.say)}\n" if is_alone else ""
    if run.evidence is None or not run.evidence.reasons:
        return first + fix_prompt(assignment, feedback.splitlines(), nonce=nonce)
    return first + fix_prompt(assignment, run.evidence.reasons, run.evidence.checks, nonce=nonce)


async def found_words(context: Context, run: TaskRun) -> str:
    """What an earlier attempt, or a person, left in the worktree: nothing of it was removed. Empty for nothing."""
    if run.attempt <= 1 or run.worktree is None:
        return ""
    seen = await context.call(context.worktrees.examine, examine_request(context, run))
    parts = []
    if seen.commit_count and seen.head != run.base:
        parts.append(f"{counted(seen.commit_count, 'commit')} of an earlier attempt")
    if seen.dirty_count:
        parts.append(f"{counted(seen.dirty_count, 'path')} with changes that nobody committed")
    return f"It already holds {' and '.join(parts)}: look at them first, and lose none of it unseen." if parts else ""


def assignment_of(context: Context, run: TaskRun, commit_by: CommitBy) -> Assignment:
    graph, task = context.snapshot.graph, context.task(run.id)
    return Assignment(
        graph=graph,
        task=task,
        branch=branch_name(context.graph_id, slug(run.id)),
        base=run.base or "",
        commit_by=commit_by,
        checks=(*graph.checks, *task.checks),
        delivered=tuple(_delivered(context, context.run(needed)) for needed in task.depends_on),
    )


def commit_by_of(context: Context, run: TaskRun, adapter_default: CommitBy) -> CommitBy:
    """Who commits: the subtask's choice, else the agent's configuration, else the adapter's default."""
    task = context.task(run.id)
    configured = context.config.agent(run.agent or agent_for(context.config, task.agent, subtask=run.id))
    return task.commit or (configured.commit if configured else None) or adapter_default


def _delivered(context: Context, run: TaskRun) -> Delivered:
    return Delivered(run.id, context.task(run.id).title, run.verified_commit or "", run.summary or "")
