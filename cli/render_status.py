"""The text of graph-status and graph-list: what needs a person first, then one line per subtask, bounded."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from coordinate_agents.cli.layout import cell, cut, short, span, table, width
from coordinate_agents.graph.text import counted, joined_lines
from coordinate_agents.sessions.turns.model import IDLE_LIFE_S

PROGRAM: Final = "coordinate-agents"
# Up to so many subtasks each gets a line; in a larger graph the quiet ones are only counted.
MAX_ROWS: Final = 60
MAX_ATTENTION: Final = 8
_TITLES: Final = ("SUBTASK", "STATE", "PHASE", "AGENT", "TRY", "TIME", "REASON")
# Which subtasks of a large graph are worth a line, most wanted first.
_WORTH: Final = ("FAILED", "RUNNING", "STOPPED", "READY", "BLOCKED", "WAITING", "SUCCEEDED")


def status(data: Mapping[str, Any]) -> list[str]:
    """A graph: headline, attention with the commands to paste, subtasks, counts, integration, what to do next."""
    graph = data["graph"]
    if "changed" in data:
        return _brief(data)
    lines = [*_headline(graph)]
    if data.get("about"):
        return [*lines, *_about(data)]
    if data.get("attention"):
        lines += ["", *attention(data["attention"])]
    if data.get("subtasks"):
        lines += ["", *_subtasks(data["subtasks"])]
    if data.get("frontier"):
        lines += ["", _counts(data["frontier"])]
    lines += _integration(data.get("integration"))
    lines += _idle_sessions(graph["id"], data.get("subtasks") or ())
    lines += following(data)
    if data.get("artefacts"):
        lines += _artefacts(data["artefacts"])
    if data.get("again"):
        lines += ["Everything in it was done before. Once more, as a graph of its own:", f"  {cell(data['again'])}"]
    return lines


def _artefacts(written: Mapping[str, Any]) -> list[str]:
    """Where they are, and what is missing there."""
    problems = [f"  missing: {cell(problem)}" for problem in written["problems"]]
    return ["", f"artefacts: {counted(written['files'], 'file')} in {cell(written['folder'])}", *problems]


def _about(data: Mapping[str, Any]) -> list[str]:
    """After an act on some subtasks: these alone; of what else needs a person only how much it is."""
    names = data["about"]
    own = [item for item in data["attention"] if item["subtask"] in names]
    lines = ["", *attention(own)] if own else []
    lines += ["", *_subtasks([each for each in data["subtasks"] if each["id"] in names]), "", _counts(data["frontier"])]
    others = len(data["attention"]) - len(own)
    if others:
        lines.append(f"{counted(others, 'more matter')} for a person: {PROGRAM} graph-status {data['graph']['id']}")
    lines += following(data)
    if not any(PROGRAM in line for line in data["advice"]):
        lines += following({**data, "advice": None})[1:]
    return lines


def left(data: Mapping[str, Any]) -> list[str]:
    """The last word of a live view: the headline, the counts, what needs a person, how to go on."""
    lines = [*_headline(data["graph"]), _counts(data["frontier"])]
    if data["attention"]:
        lines += ["", *attention(data["attention"])]
    if data["graph"]["driver"]:
        return [*lines, "", f"It goes on. Back to it: {PROGRAM} graph-watch {data['graph']['id']}"]
    return [*lines, *following(data)]


def graphs(data: Mapping[str, Any]) -> list[str]:
    """One line per graph."""
    if not data["graphs"]:
        return [f"No graph yet. Begin with: {PROGRAM} graph-init > graph.yaml"]
    rows: list[Sequence[object]] = []
    for graph in data["graphs"]:
        done = f"{graph['frontier']['succeeded']}/{graph['subtasks']}"
        driver = f"pid {graph['driver']['pid']}" if graph["driver"] else ""
        created = graph["createdAt"][:16].replace("T", " ")
        rows.append((graph["id"], graph["state"], done, created, driver, graph["title"]))
    return table(rows, titles=("GRAPH", "STATE", "DONE", "CREATED", "DRIVER", "TITLE"))


def attention(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each with what it asks and the command that would settle it."""
    lines = ["Needs a person:"]
    for item in items[:MAX_ATTENTION]:
        who = f" {cell(item['subtask'])}" if item["subtask"] else ""
        lines.append(
            cut(f"  {item['kind']}{who}: {cell(joined_lines(item['question'] or 'no reason was given'))}", width())
        )
        commands = [way["command"] for way in item.get("ways") or ()] or [item["next"]]
        lines += [f"    {cell(command)}" for command in commands if command]
    if len(items) > MAX_ATTENTION:
        lines.append(f"  … and {len(items) - MAX_ATTENTION} more")
    return lines


def _brief(data: Mapping[str, Any]) -> list[str]:
    """A line for the graph, one for each subtask that changed, and what needs a person."""
    graph = data["graph"]
    lines = [f"{graph['id']}: {graph['state']}, cursor {data['cursor']}{'' if data['changed'] else ', no change'}"]
    for each in data.get("subtasks", ()):
        words = [str(word) for word in (each["state"], each["phase"], each["reason"]) if word]
        lines.append(cut(f"  {each['id']}: {cell(', '.join(words))}", width()))
    if data.get("left"):
        lines.append(f"  … and {data['left']} more")
    return [*lines, *(attention(data["attention"]) if data.get("attention") else [])]


def _headline(graph: Mapping[str, Any]) -> Iterator[str]:
    title = f"  {cell(graph['title'])}" if graph["title"] != graph["id"] else ""
    yield cut(f"{graph['id']}: {graph['state']}{title}", width())
    parts = [f"base {short(graph['baseCommit'])}"]
    if graph.get("baseBehind"):
        parts.append(f"{counted(graph['baseBehind'], 'commit')} behind {cell(graph['baseBranch'])}")
    if graph["revision"] > 1:
        parts.append(f"revision {graph['revision']}")
    driver = graph["driver"]
    if driver:
        stopped = ", stopped" if driver.get("life") == "stopped" else ""
        parts.append(f"driven by pid {driver['pid']} since {driver['since'][:19].replace('T', ' ')} UTC{stopped}")
    yield ", ".join(parts)


def _subtasks(subtasks: Sequence[Mapping[str, Any]]) -> list[str]:
    shown = subtasks
    if len(subtasks) > MAX_ROWS:
        by_worth = sorted(subtasks, key=lambda each: (_WORTH.index(each["state"]), each["id"]))
        shown = sorted(by_worth[:MAX_ROWS], key=lambda each: str(each["id"]))
    lines = table([_row(each) for each in shown], titles=_TITLES)
    if len(shown) < len(subtasks):
        left = len(subtasks) - len(shown)
        lines.append(f"… and {counted(left, 'more subtask')}; --json lists them all")
    return lines


def _row(subtask: Mapping[str, Any]) -> Sequence[object]:
    reason = subtask["reason"]
    if reason is None and subtask["verifiedCommit"]:
        reason = f"verified {short(subtask['verifiedCommit'])}"
    return (
        subtask["id"],
        subtask["state"],
        subtask["phase"],
        subtask["agent"],
        subtask["attempt"] or "",
        span(subtask["elapsedS"]),
        joined_lines(reason or ""),
    )


def _counts(frontier: Mapping[str, int]) -> str:
    total = sum(frontier.values())
    parts = [f"{count} {place}" for place, count in frontier.items() if count]
    return f"{counted(total, 'subtask')}: {', '.join(parts)}"


def _integration(integration: Mapping[str, Any] | None) -> list[str]:
    if not integration:
        return []
    line = f"integration: {integration['state']}"
    if not integration.get("current", True):
        line += " (of earlier commits)"
    if integration["commit"]:
        line += f" {short(integration['commit'])}"
    if integration["onto"]:
        line += f" onto {cell(integration['ontoName'] or 'commit')} {short(integration['onto'])}"
    if integration["branch"]:
        line += f" on {cell(integration['branch'])}"
    lines = [line]
    if integration["worktree"]:
        lines.append(f"  {cell(integration['worktree'])}")
    return lines


def _after_approval(graph: str, data: Mapping[str, Any]) -> list[str]:
    """Deliver, then clean up; nothing once that was done."""
    commit = data["integration"]["commit"] if data["integration"] else None
    branches = [each["branch"] for each in data.get("deliveries") or () if each["source"] == commit]
    if not branches:
        return ["", f"Next, to have it on a branch of yours: {PROGRAM} graph-deliver {graph} --branch NAME"]
    lines = ["", f"Delivered to {cell(', '.join(branches))}."]
    if any(each["worktree"] for each in (*data["subtasks"], data["integration"])):
        lines.append(f"Next, when nothing is to be changed any more: {PROGRAM} graph-cleanup {graph} --all")
    return lines


def _idle_sessions(graph: str, subtasks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Agents whose process stayed after its turn, and how to close them."""
    names = [str(each["id"]) for each in subtasks if (each.get("session") or {}).get("state") == "idle"]
    if not names:
        return []
    who = cell(", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else ""))
    life = f"each ends by itself after {IDLE_LIFE_S / 3600:g} h"
    return [f"idle, kept for rework: {who}; {life}. Close: {PROGRAM} graph-stop {graph}"]


def following(data: Mapping[str, Any]) -> list[str]:
    """What the verb advises; else what a person would do next, where the state alone says it."""
    graph, state = data["graph"]["id"], data["graph"]["state"]
    if data.get("advice"):
        return ["", *(cell(line) for line in data["advice"])]
    if "cursor" in data:  # graph-run --detach
        return ["", f"Driven in the background. Wait for its end: {PROGRAM} graph-wait {graph}"]
    if data["graph"]["driver"]:
        return []
    frontier = data.get("frontier", {})
    running = frontier.get("running", 0)
    if state == "CHANGES_REQUESTED":
        return ["", f"Next: {PROGRAM} graph-run {graph} --integrate"]
    if state == "CREATED" or running or (state == "STOPPED" and frontier["ready"]):
        return ["", f"Next: {PROGRAM} graph-run {graph}"]
    if state == "SUCCEEDED" and all(each["verifiedCommit"] == data["graph"]["baseCommit"] for each in data["subtasks"]):
        return ["", "Nothing to integrate: no subtask changed anything."]
    if state == "SUCCEEDED":
        lines = ["", f"Next: {PROGRAM} graph-integrate {graph}"]
        if data["graph"].get("baseBehind"):
            onto = shlex.quote(data["graph"]["baseBranch"])
            lines.append(
                f"or on top of {cell(onto)} as it is now: {PROGRAM} graph-integrate {graph} --onto {cell(onto)}"
            )
        return lines
    if state == "INTEGRATED":
        return ["", f"Next: {PROGRAM} graph-review {graph}"]
    if state == "APPROVED":
        return _after_approval(graph, data)
    if state in ("FAILED", "STOPPED") and (frontier["failed"] or frontier["stopped"]):
        return ["", f"Next, when the cause is settled: {PROGRAM} graph-run {graph} --retry-failed"]
    return []  # the attention names the command
