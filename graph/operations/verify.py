"""graph-verify: check every certificate of a graph again, from git and from the log alone."""

from collections.abc import Iterator
from typing import Any

from coordinate_agents.graph import certificate
from coordinate_agents.graph.errors import EXIT_DONE, EXIT_NOT_SUCCEEDED, GraphError
from coordinate_agents.graph.evidence import NEVER_WAIVED
from coordinate_agents.graph.operations.loading import load_snapshot, pick_graph
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.snapshot import TaskRun
from coordinate_agents.graph.store.blobs import Blobs
from coordinate_agents.worktrees.values import value_class


@value_class
class Request:
    graph: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """Exit code 0 when every certificate holds, 4 when one does not."""
    row, snapshot = load_snapshot(runtime.store, pick_graph(runtime.store, request.graph).id)
    runtime.store.verify_chain(full=True)
    blobs = Blobs(runtime.state_dir)
    found = [run for run in snapshot.runs.values() if run.certificate is not None]
    certificates: list[certificate.Certificate] = []
    items: list[dict[str, Any]] = []
    for run in sorted(found, key=lambda run: run.id):
        problems = list(_problems(runtime, blobs, run, certificates))
        waived = [each.what for each in run.evidence.waivers] if run.evidence is not None else []
        items.append(
            {
                "subtask": run.id,
                "commit": run.verified_commit,
                "holds": not problems,
                "problems": problems,
                "waivers": waived,
            }
        )
    wrong = list(certificate.links(certificates))
    holds = not wrong and all(item["holds"] for item in items)
    data = {"graph": {"id": row.id}, "holds": holds, "certificates": items, "chain": wrong}
    return Result(data, EXIT_DONE if holds else EXIT_NOT_SUCCEEDED)


def _problems(
    runtime: Runtime, blobs: Blobs, run: TaskRun, certificates: list[certificate.Certificate]
) -> Iterator[str]:
    """What git says against this certificate, one line each."""
    assert run.certificate is not None
    try:
        text = blobs.get(run.certificate).decode("utf-8", "surrogatepass")
        statement = certificate.parse(text)
    except (GraphError, certificate.CertificateError) as error:
        yield str(error)
        return
    certificates.append(certificate.Certificate(text, run.certificate))
    yield from _unexcused(statement)
    worktrees = runtime.worktrees
    if statement.head != run.verified_commit:
        yield f"the record names {run.verified_commit}, the certificate {statement.head}"
    if worktrees.is_gone(statement.head):
        yield f"commit {statement.head} is missing from this repository"
        return
    if worktrees.contains(statement.head, [statement.base]):
        yield f"start commit {statement.base[:12]} is not an ancestor of {statement.head[:12]}, or one is gone"
        return
    missing = worktrees.contains(statement.base, [each.commit for each in statement.prerequisites])
    yield from (f"the start commit does not contain prerequisite commit {commit[:12]}" for commit in missing)
    if worktrees.tree_of(statement.head) != statement.tree:
        yield f"the tree of {statement.head[:12]} is not {statement.tree[:12]}"
    if certificate.changed_of(worktrees.changed(statement.base, statement.head)) != statement.changed:
        yield "the changed paths are not those that were certified"


def _unexcused(statement: certificate.Statement) -> Iterator[str]:
    """A failure that nobody accepted, or that nobody may accept."""
    waived = {each.what for each in statement.waivers}
    for check in statement.checks:
        if check.outcome != "passed" and f"check:{check.name}" not in waived:
            yield f"check {check.name} {check.outcome}, and nobody accepted that"
    for fact in statement.facts:
        if fact.outcome == "failed" or (fact.outcome == "waived" and fact.name in NEVER_WAIVED):
            yield f"fact {fact.name}: {fact.message}"
