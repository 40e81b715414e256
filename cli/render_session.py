"""The text of the session verbs. What an agent printed passes `visible` line by line before a person sees it."""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from coordinate_agents.cli.layout import cell, cut, short, table, width
from coordinate_agents.graph.text import counted, joined_lines, visible

# A line that an agent printed is shown in full up to here.
_LINE_LIMIT: Final = 10_000
_EVENTS_SHOWN: Final = 10
_PROGRAM: Final = "coordinate-agents"


def sessions(data: Mapping[str, Any]) -> list[str]:
    """One line per Session."""
    rows: list[Sequence[object]] = []
    for each in data["sessions"]:
        whose = f"{each['taskId']}/{each['subtaskId']}" if each["taskId"] else each["cwd"]
        rows.append((each["id"], _state(each), each["agent"] or each["kind"], each["pid"], whose, each["createdAt"]))
    lines = table(rows, titles=("SESSION", "STATE", "AGENT", "PID", "FOR", "SINCE")) or ["No Session lives."]
    if data["ended"]:
        lines.append(f"{counted(data['ended'], 'Session')} ended: coordinate-agents session-list --all")
    return lines


def status(data: Mapping[str, Any]) -> list[str]:
    """The Session's facts, its subtask with what was verified of it, its question and its last line."""
    lines = list(_facts(data["session"]))
    if not data["session"].get("conversation"):  # which says it itself
        lines += _turn(data.get("turn"))
    lines += _subtask(data.get("subtask"))
    if data.get("survivors"):
        lines.append(f"survivors: {cell(', '.join(data['survivors']))}")
    lines += _question(data["session"])
    if data.get("lastLine"):
        lines += ["last line:", f"  {cell(data['lastLine'])}"]
    return lines


def inspect(data: Mapping[str, Any]) -> list[str]:
    """As `status`, with the last output or the screen below."""
    lines = status({**data, "lastLine": None})
    lines += _events(data["events"])
    screen = data["screen"]
    if screen is not None:
        edge = "-" * min(screen["columns"], 78)
        rows = [_shown(line) for line in screen["lines"]]
        while rows and not rows[-1]:
            rows.pop()
        return [*lines, edge, *rows, edge]
    return [*lines, "", *_output(data)]


def read(data: Mapping[str, Any]) -> list[str]:
    """The output alone; with `raw` and no terminal to act on, as it is."""
    if data.get("raw") and not _is_terminal():
        return [data["output"].removesuffix("\n")] if data["output"] else []
    return list(_output(data))


def opened(data: Mapping[str, Any]) -> list[str]:
    session = data["session"]
    if session["liveness"] == "ended":
        return [
            f"{cell(session['id'])} ended at once.",
            *_facts(session),
            f"Next: {_PROGRAM} session-read {session['id']}",
        ]
    what = "is healthy and used again" if data["reused"] else "was opened"
    lines = [f"{cell(session['id'])} {what}.", *_facts(session)]
    return [*lines, *_delivery(data), f"Next: coordinate-agents session-attach {session['id']}"]


def written(data: Mapping[str, Any]) -> list[str]:
    return list(_delivery(data))


def closed(data: Mapping[str, Any]) -> list[str]:
    session = data["session"]
    if data["survivors"]:
        return [f"{cell(session['id'])} did not end completely. These live on:", *map(cell, data["survivors"])]
    return [f"{cell(session['id'])} {'is closed' if data['wasLive'] else 'had ended already'}; nothing of it is left."]


def interrupted(data: Mapping[str, Any]) -> list[str]:
    return [f"{cell(data['session']['id'])} was interrupted."]


def attached(data: Mapping[str, Any]) -> list[str]:
    session = data["session"]
    if data["ended"]:
        return [f"{cell(session['id'])} ended ({_end(session)})."]
    return [f"Detached; {cell(session['id'])} runs on. Come back: coordinate-agents session-attach {session['id']}"]


def _delivery(data: Mapping[str, Any]) -> Iterator[str]:
    delivered = data.get("delivered")
    if delivered is not None:
        words = {"true": "Delivered", "false": "NOT delivered", "unknown": "Written; whether it was read is not known"}
        yield f"{words[delivered]}{': ' + cell(data['reason']) if data['reason'] else '.'}"


def _facts(session: Mapping[str, Any]) -> Iterator[str]:
    yield f"{cell(session['id'])}: {_state(session)}"
    if "cwd" not in session:
        return
    agent = f"{cell(session['agent'])} ({cell(session['adapter'])})" if session["adapter"] else cell(session["agent"])
    if session["agent"]:
        yield f"  agent     {agent}"
    source = f" (named by {cell(session['commandSource'])})" if session["commandSource"] else ""
    yield f"  command   {cell(session['resolvedCommand'])}{source}"
    yield f"  folder    {cell(session['cwd'])}"
    yield f"  driver    {session['driver']}{', degraded: no terminal could be made' if session['degraded'] else ''}"
    yield from _conversation(session.get("conversation"))
    yield f"  process   {session['pid'] or '-'}, host {session['hostPid'] or '-'}"
    yield f"  since     {session['createdAt']}, last output {session['lastActivityAt']}"
    if session["exitCode"] is not None or session["signal"] is not None or session["error"]:
        yield f"  ended     {_end(session)}"


def _conversation(found: Mapping[str, Any] | None) -> Iterator[str]:
    """The agent's own session, of an agent that is spoken to."""
    if found is None:
        return
    yield f"  speaks    {cell(found['peer'] or '-')}, its session {cell(found['id'] or '-')}"
    if found["notResumed"]:
        yield f"  afresh    {cell(found['notResumed'])}"
    if found["error"]:
        yield f"  broken    {cell(found['error'])}"
    if found["turn"]:
        how = found["turn"]["stopReason"] or found["turn"]["state"]
        how += f", {found['turn']['doing']}" if found["turn"].get("doing") else ""
        yield f"  turn      {cell(found['turn']['id'])}: {cell(how)}"


def _turn(turn: Mapping[str, Any] | None) -> Iterator[str]:
    if turn is None:
        return
    how = turn["outcome"] or turn["state"]
    why = turn["message"] or turn["stopReason"]
    yield f"  turn      {cell(turn['id'])}: {how}{f' ({cell(why)})' if why else ''}"


def _events(events: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The last ones; --json has some more."""
    if events:
        yield "events:"
    for each in events[-_EVENTS_SHOWN:]:
        turn = f" {cell(each['turnId'])}" if each["turnId"] else ""
        yield cut(f"  {each['time'][11:19]}{turn} {each['event']} {cell(joined_lines(each['text']))}".rstrip(), width())


def _subtask(subtask: Mapping[str, Any] | None) -> Iterator[str]:
    if subtask is None:
        return
    phase = f", {subtask['phase']}" if subtask["phase"] else ""
    yield f"  subtask   {cell(subtask['graph'])}/{cell(subtask['id'])}: {subtask['state']}{phase}"
    if subtask["worktree"]:
        yield f"  worktree  {cell(subtask['worktree'])}"
    if subtask["verifiedCommit"]:
        yield f"  verified  {short(subtask['verifiedCommit'])} on {cell(subtask['branch'])}"
    if subtask["failure"]:
        yield f"  failure   {subtask['failure']['code']}: {cell(subtask['failure']['message'])}"


def _question(session: Mapping[str, Any]) -> Iterator[str]:
    question = session.get("question")
    if question is None:
        return
    yield f"asks ({question['kind']}, {question['request']}):"
    yield from (f"  {_shown(line)}" for line in question["text"].splitlines())
    answer = f"{_PROGRAM} session-answer {session['id']} --request {question['request']}"
    if question.get("options"):
        words = [f"option {shlex.quote(each['id'])}" for each in question["options"]]
    else:
        words = question["answers"] or ["option KEYS"]
    yield from (f"Next: {cell(f'{answer} --{word}')}" for word in words)


def _output(data: Mapping[str, Any]) -> Iterator[str]:
    if data["droppedBytes"]:
        yield f"… {counted(data['droppedBytes'], 'byte')} dropped"
    yield from (_shown(line) for line in data["output"].splitlines())


def _shown(line: str) -> str:
    # A no-break space is drawn as a space; programs pad their screens with it.
    return visible(line.replace("\t", "    ").replace("\xa0", " "), limit=_LINE_LIMIT)


def _state(session: Mapping[str, Any]) -> str:
    liveness = session["liveness"]
    stalled = ", stalled" if session.get("stalled") and liveness == "live" else ""
    return f"{session['state']}{stalled}" if liveness in ("live", "ended") else f"{session['state']} ({liveness})"


def _end(session: Mapping[str, Any]) -> str:
    if session["error"]:
        return cell(session["error"])
    return f"signal {session['signal']}" if session["signal"] is not None else f"exit code {session['exitCode']}"


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()
