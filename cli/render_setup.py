"""The text of the verbs around a run: starter and imported files, validation, creation, paths, the doctor."""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from coordinate_agents.cli.layout import cell, short, size, table
from coordinate_agents.graph.text import counted

_MARKS: Final = {"ok": "ok   ", "warn": "WARN ", "error": "ERROR"}


def as_json(data: Mapping[str, Any]) -> list[str]:
    return [json.dumps(data, indent=2)]


def document(data: Mapping[str, Any]) -> list[str]:
    """The text of a graph file as it is, to be written to one."""
    return [data["document"].removesuffix("\n")]


def script(data: Mapping[str, Any]) -> list[str]:
    """The script as it is, for `eval` or a file."""
    return [data["script"].removesuffix("\n")]


def export(data: Mapping[str, Any]) -> list[str]:
    return [data["text"]] if "text" in data else as_json(data)


def report(data: Mapping[str, Any]) -> list[str]:
    """The text as it is, or where it was written."""
    if "lines" in data:
        return list(data["lines"])
    return [f"wrote {cell(data['file'])} ({size(data['bytes'])}), as of event {data['seq']}"]


def path(data: Mapping[str, Any]) -> list[str]:
    """The path alone, as it is: it is read by `cd "$(…)"`."""
    return [data["path"]]


def validated(data: Mapping[str, Any]) -> list[str]:
    graph = data["graph"]
    lines = [
        f"{graph['id']} is valid: {counted(graph['subtasks'], 'subtask')}, "
        f"{counted(graph['edges'], 'dependency').replace('dependencys', 'dependencies')}, "
        f"at most {graph['maxConcurrency']} at a time"
    ]
    for each in data.get("warnings", ()):
        lines.append(f"warning: {each['line']}:{each['column']}: {cell(each['message'])}")
    return lines


def amended(data: Mapping[str, Any]) -> list[str]:
    """What an amendment changed, or would change, one line each, and what follows."""
    told, graph = data["amend"], data["graph"]
    lines = [f"  {cell(line)}" for line in told["differences"]]
    if not lines and not told["amended"]:
        return [f"{graph['id']}: nothing to do: it is the same as revision {told['revision']}"]
    if told["dryRun"]:
        return [f"{graph['id']}: would change revision {told['revision']}:", *lines]
    follows = "its driver goes on with it" if graph["driver"] else f"next: coordinate-agents graph-run {graph['id']}"
    return [f"{graph['id']}: revision {told['revision']}:", *lines, follows]


def created(data: Mapping[str, Any]) -> list[str]:
    graph = data["graph"]
    if data.get("created") is False:
        what = "was recorded before, with the same content"
    else:
        what = f"recorded on base {short(graph.get('baseCommit'))}"
    return [f"{graph['id']}: {what}", f"Next: coordinate-agents graph-run {graph['id']}"]


def verified(data: Mapping[str, Any]) -> list[str]:
    """One line per certificate, and what speaks against it."""
    lines = []
    for each in data["certificates"]:
        lines.append(
            f"{cell(each['subtask'])}: {short(each['commit'])} {'holds' if each['holds'] else 'DOES NOT HOLD'}"
        )
        lines += [f"  {cell(problem)}" for problem in each["problems"]]
    lines += [f"chain: {cell(wrong)}" for wrong in data["chain"]]
    if not data["certificates"]:
        return [*lines, "No subtask has a certificate yet."]
    return [*lines, "", "Every certificate holds." if data["holds"] else "Not every certificate holds."]


def trust(data: Mapping[str, Any]) -> list[str]:
    """What the file would run, and whether it may."""
    lines = [f"{cell(data['file'])} sets:", *(f"  {cell(line)}" for line in data["asks"])] if data["asks"] else []
    if data["trusted"]:
        return [*lines, f"{cell(data['file'])} is trusted as it is now ({data['digest'][:12]})."]
    return [*lines, f"Not trusted. To trust it: coordinate-agents setup-trust --yes --digest {data['digest']}"]


def agents(data: Mapping[str, Any]) -> list[str]:
    """One line per agent: what would be started, or why it cannot be."""
    rows: list[Sequence[object]] = []
    for each in data["agents"]:
        note = each["error"] or f"named by {each['source']}{'' if each['configured'] else ', not configured'}"
        default = " (default)" if each["agent"] == data["defaultAgent"] else ""
        rows.append((f"{each['agent']}{default}", each["adapter"], each["command"], note))
    lines = table(rows, titles=("AGENT", "ADAPTER", "COMMAND", "")) or ["No agent is configured or found."]
    if data["untrusted"]:
        lines.append(f"{cell(data['projectFile'])} is not trusted: coordinate-agents setup-trust")
    return lines


def configured(data: Mapping[str, Any]) -> list[str]:
    """The change of the file, and the agent as it would be started, each setting with its source."""
    if not data["diff"]:
        lines = [f"{cell(data['file'])} says so already; nothing was changed."]
    else:
        lines = [*map(cell, data["diff"]), ""]
        lines.append(f"{cell(data['file'])} {'was written' if data['changed'] else 'would be written so'}.")
    if not data["commentsKept"]:
        lines.append("Its layout could not be edited in place: comments are not in the new file.")
    if not data["trusted"]:
        lines.append("The file is not trusted: coordinate-agents setup-trust")
    agent = data["agent"]
    if agent is not None:
        lines.append(f"{cell(agent['agent'])} would start {cell(agent['command'])}:")
        rows = [(name, _setting(field["value"]), field["source"]) for name, field in agent["fields"].items()]
        lines += table(rows, indent="  ")
    return lines


def _setting(value: object) -> str:
    return shlex.join(map(str, value)) if isinstance(value, list) else str(value)


def doctor(data: Mapping[str, Any]) -> list[str]:
    """Errors and warnings with their next step; what is fine in one line each."""
    lines = []
    for finding in data["findings"]:
        lines.append(f"{_MARKS[finding['level']]}  {cell(finding['what'])}: {cell(finding['said'])}")
        if finding["next"]:
            lines.append(f"       Next: {cell(finding['next'])}")
    counts = data["counts"]
    lines.append("")
    lines.append(f"{counts['ok']} ok, {counted(counts['warn'], 'warning')}, {counted(counts['error'], 'error')}")
    return lines
