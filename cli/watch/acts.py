"""What the keys do: each is a verb of the command line, carried out in a process of its own, with the same refusals.

`run` blocks. What was begun is finished whatever becomes of the view.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from coordinate_agents.cli.invocation import Invocation
from coordinate_agents.cli.mcp.processes import Underway, run_apart
from coordinate_agents.cli.render import render
from coordinate_agents.graph.operations.table import verb_named
from coordinate_agents.graph.text import visible

PROGRAM: Final = "coordinate-agents"


class Act(NamedTuple):
    """`key` in the view; `verb` it stands for; `help` of one line. `asks`: the question before it is carried out.

    `shows`: its whole answer is shown, page by page. `is_whole`: it is about the graph, not the selected subtask.
    """

    key: str
    verb: str
    help: str
    asks: str = ""
    shows: bool = False
    is_whole: bool = False
    given: Mapping[str, Any] = {}


ACTS: Final = (
    Act("i", "graph-inspect", "everything known of it, with the ways on", shows=True),
    Act("w", "graph-why", "the chain of facts behind where it stands", shows=True),
    Act("d", "graph-diff", "what it changed, against its own base", shows=True),
    Act("D", "graph-diff", "what every subtask changed, one line each", shows=True, is_whole=True),
    Act("s", "graph-stop", "stop it", "Stop {subtask} of {graph}? Its agent is closed; its worktree and branch stay."),
    Act("S", "graph-stop", "stop the graph", "Stop all of {graph}? Every agent is closed; everything stays.",
        is_whole=True),
    Act("h", "graph-hold", "hold it while you work in its worktree",
        "Hold {subtask}? Nothing starts, types or verifies there until you release it."),
    Act("l", "graph-release", "release it again", "Release {subtask}? What stood still goes on."),
    Act("c", "graph-check", "verify what is in its worktree now",
        "Verify what is in the worktree of {subtask} now? Nothing is started."),
    Act("R", "graph-resume", "make it ready again", "Make {subtask} ready again, in its kept worktree?"),
    Act("g", "graph-run", "drive the graph on, in the background",
        "Drive {graph} on in the background? What is ready is started.", is_whole=True, given={"detach": True}),
)  # fmt: skip
BY_KEY: Final = {act.key: act for act in ACTS}


def values_of(act: Act, graph: str, subtask: str | None) -> dict[str, Any]:
    """The values that the act gives to its verb."""
    return {"graph": graph, **({} if act.is_whole else {"subtask": subtask}), **act.given}


def command(verb: str, values: Mapping[str, Any]) -> str:
    """The same as a line to paste."""
    found = verb_named(verb)
    assert found is not None
    words = [PROGRAM, verb]
    for param in found.params:
        value = values.get(param.field)
        if value and param.positional:
            words.append(str(value))
        elif value:
            words.append(f"--{param.name}" if value is True else f"--{param.name} {value}")
    return " ".join(words)


def run(verb: str, values: Mapping[str, Any], root: str, *, stdin: str | None = None) -> dict[str, Any]:
    """The document that the verb answers with `--json`; an error is one, too. Raises: OSError without a process."""
    found = verb_named(verb)
    assert found is not None
    defaults = {param.field: param.default or (False if param.kind == "flag" else None) for param in found.params}
    invocation = Invocation(found, {**defaults, **values}, root, True)
    text = None if stdin is None else stdin.encode("utf-8", "surrogateescape")
    return run_apart(Underway("", invocation), text, root)[0]


def answer_lines(document: Mapping[str, Any]) -> list[str]:
    """What came of an act, in a few lines."""
    if not document["ok"]:
        return error_lines(document["error"])
    data, verb = document["data"], document["command"]
    if verb == "session-answer":
        return list(render(verb, data))
    advice = [line for line in data.get("advice", ()) if line]
    return advice or [f"Done: {verb}."]


def page_lines(document: Mapping[str, Any]) -> list[str]:
    """The whole answer as the command line prints it."""
    return list(render(document["command"], document["data"])) if document["ok"] else error_lines(document["error"])


def error_lines(error: Mapping[str, Any]) -> list[str]:
    lines = [f"{error['code']}: {visible(error['message'])}"]
    lines += [
        f"{title}: {visible(error[name])}" for title, name in (("Kept", "kept"), ("Next", "next")) if error.get(name)
    ]
    return lines


def help_lines(more: Sequence[tuple[str, str]]) -> list[str]:
    """`more`: keys that are no verb's, with what they do."""
    rows = [*more, *((act.key, f"{act.help}  ({act.verb})") for act in ACTS)]
    return [f"  {key:<15} {text}" for key, text in rows]
