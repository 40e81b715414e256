"""The graph document: YAML text to TaskGraph, or every problem found, each with line and column.

One look: bytes → text (`yaml_text`) → nodes (`yaml_nodes`) → drafts (`document_shape`) → graph (`document_rules`). What
one step finds does not keep the next from looking, as long as there is something to look at. Reads no files; the text
of a `specFile` comes from the caller's function.
"""

import gc
import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from coordinate_agents.graph import commands, yaml_nodes
from coordinate_agents.graph.document_rules import ReadSpecFile, build
from coordinate_agents.graph.document_shape import CheckDraft, GraphDraft, read_graph
from coordinate_agents.graph.errors import GraphError, Problem
from coordinate_agents.graph.model import TaskGraph
from coordinate_agents.graph.reading import Findings
from coordinate_agents.graph.yaml_text import decode
from coordinate_agents.worktrees.values import value_class

_EXAMPLE: Final = "write at least `subtasks: [{id: first, spec: What is to be done.}]`"


@value_class
class Document:
    """A valid document. `warnings` have positions and forbid nothing.

    `canonical` is the content as written, before defaults, as JSON: key order, comments, quoting, anchors, `x-` keys
    and the id play no part in it, the text of a `specFile` does. Equal contents give equal text.
    """

    graph: TaskGraph
    canonical: str
    warnings: tuple[Problem, ...]


def parse(text: bytes, *, name: str, stem: str | None, read_spec_file: ReadSpecFile | None) -> TaskGraph:
    """The graph of the document. `name` is the file in messages, `stem` the default of `id`.

    `read_spec_file` returns the bytes of a path relative to the document; it raises OSError or ValueError, whose text
    becomes the problem. None: there is no folder, and `specFile` is a problem.

    Raises: GraphError(TASK_GRAPH_INVALID) with all problems.
    """
    findings = Findings()
    with _without_collection():
        _, graph = _look(findings, text, stem=stem, read_spec_file=read_spec_file)
    return _valid(findings, graph, name)


def parse_document(text: bytes, *, name: str, stem: str | None, read_spec_file: ReadSpecFile | None) -> Document:
    """As `parse`, with the canonical content and the warnings. Raises: GraphError(TASK_GRAPH_INVALID)."""
    findings = Findings()
    with _without_collection():
        draft, graph = _look(findings, text, stem=stem, read_spec_file=read_spec_file)
    valid = _valid(findings, graph, name)
    assert draft is not None
    return Document(valid, _canonical(draft), _warnings(draft))


def canonical(text: bytes, *, name: str, stem: str | None, read_spec_file: ReadSpecFile | None) -> str:
    """`Document.canonical` of the text. Raises: GraphError(TASK_GRAPH_INVALID)."""
    return parse_document(text, name=name, stem=stem, read_spec_file=read_spec_file).canonical


def problem_line(name: str, problem: Problem) -> str:
    """`file:line:column: what is wrong, and what would be right`."""
    return f"{name}:{problem.line}:{problem.column}: {problem.message}"


def warnings(graph: TaskGraph) -> tuple[Problem, ...]:
    """What `Document.warnings` says, for a graph without its text: positions are 0."""
    found: list[Problem] = []
    groups = [("checks", graph.checks), ("integration.checks", graph.integration_checks)]
    groups += [(f"{task.id}.checks", task.checks) for task in graph.tasks if task.checks]
    for path, checks in groups:
        for check in checks:
            for said in commands.warnings(check.run, was_string=False):
                found.append(Problem(0, 0, path, f"check {check.name!r}: {said}"))
    return tuple(found)


def _look(
    findings: Findings, data: bytes, *, stem: str | None, read_spec_file: ReadSpecFile | None
) -> tuple[GraphDraft | None, TaskGraph | None]:
    text = decode(data)
    if isinstance(text, Problem):
        findings.record(text)
        return None, None
    loaded = yaml_nodes.load(text)
    for problem in loaded.problems:
        findings.record(problem)
    if loaded.root is None:
        if not loaded.problems:
            findings.record(Problem(1, 1, "", f"the file is empty; {_EXAMPLE}"))
        return None, None
    draft = read_graph(findings, loaded.root)
    if draft is None:
        return None, None
    return draft, build(findings, draft, stem=stem, read_spec_file=read_spec_file)


def _valid(findings: Findings, graph: TaskGraph | None, name: str) -> TaskGraph:
    problems = findings.sorted()
    if graph is not None and not problems:
        return graph
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    raise GraphError(
        "TASK_GRAPH_INVALID",
        f"{problem_line(name, problems[0])}{more}",
        kept="Nothing was created.",
        # What came from no file ("<stdin>", "--spec") cannot be looked at again.
        next=None if name.startswith(("<", "-")) else f"coordinate-agents graph-validate {shlex.quote(name)}",
        stage="validate",
        problems=problems,
        facts={"file": name},
    )


def _warnings(draft: GraphDraft) -> tuple[Problem, ...]:
    checks: list[CheckDraft] = [*draft.values.get("checks", ())]
    checks += draft.values.get("integration", {}).get("checks", ())
    for task in draft.tasks:
        checks += task.values.get("checks", ())
    found = []
    for check in checks:
        mark: Any = check.node.start_mark
        for said in commands.warnings(check.values["run"], was_string=check.was_string):
            found.append(Problem(mark.line + 1, mark.column + 1, check.path, said))
    return tuple(found)


# Lists whose order means nothing.
_UNORDERED: Final = frozenset(["depends_on", "needs", "writes", "protect"])


def _canonical(draft: GraphDraft) -> str:
    content = {name: _content(name, value) for name, value in draft.values.items() if name != "id"}
    tasks = sorted(draft.tasks, key=lambda task: str(task.values["id"]))
    content["subtasks"] = [_content("", task.values) for task in tasks]
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _content(name: str, value: Any) -> Any:
    if isinstance(value, CheckDraft):
        return _content("", value.values)
    if isinstance(value, tuple):
        return sorted(value) if name in _UNORDERED else [_content("", each) for each in value]
    if hasattr(value, "items"):
        return {key: _content(key, each) for key, each in value.items()}
    return value


@contextmanager
def _without_collection() -> Iterator[None]:
    """No cyclic garbage collection meanwhile: a load makes half a million objects that are all in use, and looking
    through them again and again costs more than making them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
