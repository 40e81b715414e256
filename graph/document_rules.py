"""What needs two places of the document: ids, references, cycles, resources, defaults, names of checks.

Takes the draft that `document_shape` read, records every further problem with its position, and builds the TaskGraph.
Reads no files itself: the text of a `specFile` comes from the caller's function.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from yaml.events import ScalarEvent

from coordinate_agents.graph import order
from coordinate_agents.graph.document_shape import MAX_SPEC_BYTES, CheckDraft, GraphDraft, TaskDraft, item_nodes
from coordinate_agents.graph.errors import Problem
from coordinate_agents.graph.ids import graph_id_problem, shown
from coordinate_agents.graph.model import Check, Expect, GraphId, Task, TaskGraph
from coordinate_agents.graph.reading import Broken, Findings, near
from coordinate_agents.graph.yaml_nodes import MAX_TEXT, Node
from coordinate_agents.graph.yaml_text import decode

ReadSpecFile = Callable[[str], bytes]

_MAX_NAME_CHARACTERS: Final = 60


def build(findings: Findings, draft: GraphDraft, *, stem: str | None, read_spec_file: ReadSpecFile | None) -> TaskGraph:
    """The graph that the draft means. Worth nothing when the findings are not empty afterwards."""
    graph_id = _graph_id(findings, draft, stem)
    _read_spec_files(findings, draft.tasks, read_spec_file)
    for task in draft.tasks:
        _require_words(findings, task)
        _agree_on_writes(findings, task)
    _check_references(findings, draft.tasks)
    values = draft.values
    resources: Mapping[str, int] = values.get("resources", {})
    _check_tokens(findings, draft, resources)
    checks = _checks(findings, values.get("checks", ()), taken=())
    shared = tuple(check.name for check in checks)
    return TaskGraph(
        id=GraphId(graph_id),
        title=values.get("title") or _first_line(values.get("spec", "")) or graph_id,
        tasks=tuple(_task(findings, task, values.get("defaults", {}), shared) for task in draft.tasks),
        checks=checks,
        integration_checks=_checks(findings, values.get("integration", {}).get("checks", ()), taken=shared),
        **{name: values[name] for name in _COPIED if name in values},
    )


_COPIED: Final = ("base", "spec", "max_concurrency", "max_checks", "resources", "scope_policy", "schema_version")


def _graph_id(findings: Findings, draft: GraphDraft, stem: str | None) -> str:
    if "id" in draft.values or "id" in draft.node.entries:
        return str(draft.values.get("id", ""))
    if stem is None:
        findings.add(draft.node, "id", "`id` is missing, and there is no file name to take it from; write `id: …`")
        return ""
    reason = graph_id_problem(stem)
    if reason:
        findings.add(draft.node, "id", f"the file's name gives no graph id, so write `id: …`: {reason}")
    return stem


def _read_spec_files(findings: Findings, tasks: Sequence[TaskDraft], read: ReadSpecFile | None) -> None:
    total = 0
    for task in tasks:
        name = task.values.pop("spec_file", None)
        if name is None:
            continue
        node, path = task.node.entries["specFile"][1], f"{task.path}.specFile"
        if "spec" in task.node.entries:
            findings.add(node, path, "both `spec` and `specFile`; write one of them")
        elif read is None:
            findings.add(node, path, "`specFile` cannot be read here: there is no folder; write the text as `spec`")
        else:
            text = _spec_file(findings, node, path, name=name, read=read)
            total += len(text)
            task.values["spec"] = text
            if total > MAX_TEXT:
                findings.add(node, path, f"the spec files hold more than {MAX_TEXT} characters together")
                return


def _spec_file(findings: Findings, node: Node, path: str, *, name: str, read: ReadSpecFile) -> str:
    try:
        data = read(name)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        findings.add(node, path, f"specFile {shown(name)} cannot be read: {reason}")
        return ""
    text = decode(data)
    if isinstance(text, Problem):
        findings.add(node, path, f"specFile {shown(name)}, line {text.line}: {text.message}")
        return ""
    if len(text.encode()) > MAX_SPEC_BYTES:
        findings.add(node, path, f"specFile {shown(name)} has more than {MAX_SPEC_BYTES} bytes (256 KiB)")
    return text


def _require_words(findings: Findings, task: TaskDraft) -> None:
    entries = task.node.entries
    if "id" not in entries:
        findings.add(task.node, task.path, "`id` is missing; write one that is unique in this graph")
    if not {"title", "spec", "specFile"} & entries.keys():
        findings.add(task.node, task.path, "one of `spec`, `specFile` and `title` must say what is to be done")
    elif "title" not in entries and "specFile" not in entries and not task.values.get("spec", "-").strip():
        findings.add(entries["spec"][1], f"{task.path}.spec", "spec is empty; write what is to be done, or a `title`")


def _agree_on_writes(findings: Findings, task: TaskDraft) -> None:
    writes, expect = task.values.get("writes"), task.values.get("expect")
    if "expect" not in task.node.entries or writes is None or expect is None:
        return
    node, path = task.node.entries["expect"][1], f"{task.path}.expect"
    if not writes and expect != "nothing":
        findings.add(node, path, f"`writes: []` means that nothing is written, so `expect: {expect}` cannot be met")
    if writes and expect == "nothing":
        findings.add(node, path, "`expect: nothing`, but `writes` names paths; write `writes: []` or leave one out")


def _check_references(findings: Findings, tasks: Sequence[TaskDraft]) -> None:
    """Ids unique without regard to case; dependencies known, once each, not the subtask itself, and without cycles."""
    first_by_folded: dict[str, TaskDraft] = {}
    needed: dict[str, list[str]] = {}
    for task in tasks:
        name = task.values.get("id")
        if name is None:
            continue
        first = first_by_folded.setdefault(name.lower(), task)
        if first is not task:
            _same_id(findings, task, first)
        needed.setdefault(name, [])
    # Ids that were refused are still known: a reference to one is not a second mistake.
    refused = {_written_id(task) for task in tasks if "id" not in task.values}
    for task in tasks:
        _check_dependencies(findings, task, needed, refused)
    for cycle in order.cycles(needed):
        task = first_by_folded[cycle[0].lower()]
        node = task.node.entries["dependsOn"][1]
        said = order.spell_cycle(cycle)
        findings.add(node, f"{task.path}.dependsOn", f"cycle: {said} (each depends on the next); remove one of them")


def _check_dependencies(
    findings: Findings, task: TaskDraft, needed: dict[str, list[str]], refused: set[str | None]
) -> None:
    wanted = task.values.get("depends_on", ())
    if not wanted:
        return
    own = task.values.get("id")
    nodes = item_nodes(task.node.entries["dependsOn"][1])
    seen: set[str] = set()
    for index, name in enumerate(wanted):
        message = None
        if isinstance(name, Broken):
            continue
        if name == own:
            message = f"{own} depends on itself; remove it"
        elif name in seen:
            message = f"{shown(name)} is written twice in dependsOn; write it once"
        elif name not in needed and name not in refused:
            said = near(name, tuple(needed)) if findings.wants_hints else ""
            message = f"dependsOn {shown(name)}: there is no such subtask{said}"
        elif own is not None and name in needed:
            needed[own].append(name)
        seen.add(name)
        if message is not None:
            findings.add(nodes[index], f"{task.path}.dependsOn[{index}]", message)


def _same_id(findings: Findings, task: TaskDraft, first: TaskDraft) -> None:
    node = task.node.entries["id"][1]
    line = _line(first.node.entries["id"][1])
    mine, other = task.values["id"], first.values["id"]
    if mine == other:
        message = f"id {shown(mine)} is already used on line {line}; ids are unique"
    else:
        message = (
            f"id {shown(mine)} differs from {shown(other)} on line {line} only in case, and both would be one folder "
            "on macOS and Windows; choose another"
        )
    findings.add(node, f"{task.path}.id", message)


def _written_id(task: TaskDraft) -> str | None:
    entry = task.node.entries.get("id")
    return entry[1].value if entry and isinstance(entry[1], ScalarEvent) else None


def _check_tokens(findings: Findings, draft: GraphDraft, resources: Mapping[str, int]) -> None:
    """Every token in `needs` is one of `resources`."""
    checks: list[CheckDraft] = [*draft.values.get("checks", ())]
    checks += draft.values.get("integration", {}).get("checks", ())
    for task in draft.tasks:
        _check_needs(findings, task, resources)
        checks += task.values.get("checks", ())
    for check in checks:
        _check_needs(findings, check, resources)


def _check_needs(findings: Findings, draft: Any, resources: Mapping[str, int]) -> None:
    for index, name in enumerate(draft.values.get("needs", ())):
        node = item_nodes(draft.node.entries["needs"][1])[index]
        if name not in resources:
            said = near(name, tuple(resources)) or "; add it, such as `resources: {" + name + ": 1}`"
            findings.add(node, f"{draft.path}.needs[{index}]", f"needs {shown(name)}: no such resource{said}")
        elif name in draft.values["needs"][:index]:
            findings.add(node, f"{draft.path}.needs[{index}]", f"{shown(name)} is written twice; write it once")


def _task(findings: Findings, draft: TaskDraft, defaults: Mapping[str, Any], shared: Sequence[str]) -> Task:
    values: dict[str, Any] = {"expect": "commit", "id": "", "title": "", **defaults, **draft.values}
    if draft.values.get("writes") == ():
        nothing: Expect = "nothing"
        values["expect"] = nothing
    if draft.values.get("checks"):
        values["checks"] = _checks(findings, draft.values["checks"], taken=shared)
    values["title"] = values["title"] or _first_line(values.get("spec", "")) or values["id"]
    return Task(**values)


def _checks(findings: Findings, drafts: Sequence[CheckDraft], *, taken: Sequence[str]) -> tuple[Check, ...]:
    """The checks with a name each. A written name must be new; one made from the command gets a number."""
    names = set(taken)
    made: list[Check] = []
    for draft in drafts:
        name = draft.values.get("name")
        if name in names:
            node = draft.node
            findings.add(node, f"{draft.path}.name", f"a check named {shown(name)} runs here already; choose another")
        if name is None:
            name = _new_name(_cut(shlex.join(draft.values["run"])), names)
        names.add(name)
        made.append(Check(**{**draft.values, "name": name}))
    return tuple(made)


def _new_name(name: str, names: set[str]) -> str:
    number = 2
    made = name
    while made in names:
        made = f"{name} ({number})"
        number += 1
    return made


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_NAME_CHARACTERS else line[: _MAX_NAME_CHARACTERS - 1] + "…"


def _first_line(spec: str) -> str:
    stripped = spec.strip()
    line = stripped.splitlines()[0].strip() if stripped else ""
    return line if len(line) <= 200 else line[:199] + "…"


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1
