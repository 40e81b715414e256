"""Graphs, subtasks, Sessions and calls under way as resources: the same documents that the tools answer.

`coordinate-agents://graphs`, `…//graphs/TASK`, `…//graphs/TASK/subtasks/SUBTASK`, `…//sessions/SESSION`, `…//calls/ID`.
Ids stand percent-encoded. Pure: which verb looks, with which values.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from coordinate_agents.cli.invocation import left_out
from coordinate_agents.graph.operations.table import Verb, verb_named

SCHEME: Final = "coordinate-agents://"
MIME_TYPE: Final = "application/json"
TEMPLATES: Final[Mapping[str, str]] = {
    "graphs/{taskId}": "a graph: where every subtask stands, what needs a person first",
    "graphs/{taskId}/subtasks/{subtaskId}": "everything known of one subtask",
    "sessions/{sessionId}": "a Session with its last output, its question and its subtask's evidence",
    "calls/{call}": "the result of a call that was still running when it answered",
}


class Look(NamedTuple):
    """The verb that answers and its values, by Request field; of a call its id instead."""

    verb: Verb | None
    values: Mapping[str, Any]
    call: str = ""


def look_of(uri: str) -> Look | None:
    """None for what is no resource of ours."""
    if not uri.startswith(SCHEME):
        return None
    match [unquote(part) for part in uri.removeprefix(SCHEME).split("/")]:
        case ["graphs"]:
            return look("graph-list", {})
        case ["graphs", graph]:
            return look("graph-status", {"graph": graph})
        case ["graphs", graph, "subtasks", subtask]:
            return look("graph-inspect", {"graph": graph, "subtask": subtask})
        case ["sessions", session]:
            return look("session-inspect", {"session": session})
        case ["calls", call]:
            return Look(None, {}, call)
        case _:
            return None


def graph_uri(graph: str) -> str:
    return f"{SCHEME}graphs/{quote(graph, safe='')}"


def session_uri(session: str) -> str:
    return f"{SCHEME}sessions/{quote(session, safe='')}"


def look(name: str, values: Mapping[str, Any]) -> Look:
    """The verb with these values, and defaults for the rest."""
    verb = verb_named(name)
    assert verb is not None
    return Look(verb, {**{param.field: left_out(param) for param in verb.params}, **values})
