"""Gather what the certificate of an accepted verdict says, from the record; `certificate` writes the text."""

from collections.abc import Sequence

from coordinate_agents.graph import certificate, evidence
from coordinate_agents.graph.context import Context
from coordinate_agents.graph.evidence import CheckOutcome
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.worktrees.model import Examination


def certificate_text(
    context: Context,
    run: TaskRun,
    seen: Examination,
    outcomes: Sequence[CheckOutcome],
    verdict: evidence.Verdict,
    waivers: Sequence[evidence.Waiver] = (),
) -> bytes:
    """The certificate of this verdict; it names the event before by its hash, so it is written right after it."""
    task = context.task(run.id)
    assert run.base is not None and seen.tree is not None
    statement = certificate.statement_of(
        verdict,
        graph=context.graph_id,
        subtask=run.id,
        attempt=run.attempt,
        base=run.base,
        tree=seen.tree,
        expect=task.expect,
        changed=evidence.changed_paths(seen.changed),
        checks=(*context.snapshot.graph.checks, *task.checks),
        outcomes=outcomes,
        waivers=waivers,
        prerequisites=[_prerequisite(context.run(needed)) for needed in task.depends_on],
        git_version=context.worktrees.facts.git_version,
        previous_event=context.store.last_event_hash(),
    )
    return certificate.certificate(statement).text.encode("utf-8", "surrogatepass")


def _prerequisite(run: TaskRun) -> certificate.Prerequisite:
    assert run.verified_commit is not None and run.certificate is not None
    return certificate.Prerequisite(run.id, run.verified_commit, run.certificate)
