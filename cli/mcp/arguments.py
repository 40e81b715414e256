"""From a call's arguments to the values of a verb: the input rules of the command line, and errors that name the field.

Pure but for resolving paths. Nothing is guessed: an unknown argument, a wrong type or text that is not Unicode is
refused; a relative path is one of the bound repository, never of the server's own folder.
"""

import json
import os
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from coordinate_agents.cli.discover import discover
from coordinate_agents.cli.invocation import MAX_DIGITS, left_out
from coordinate_agents.cli.mcp.paging import DEFAULT_BYTES, MOST_BYTES, Page
from coordinate_agents.cli.mcp.tools import DOCUMENT, MAX_BYTES, PAGE, PATH, ROOT, TASK, Argument, Tool, decision_of
from coordinate_agents.graph import durations
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.table import Param

_FILE_ENDINGS: Final = (".yaml", ".yml", ".json")
_STANDARD_INPUT: Final = "-"


class Given(NamedTuple):
    """What a call asks for. `values` are complete, by Request field; `stdin` is what the verb reads there, if it does.

    `page`: which part of the result, and how large.
    """

    values: Mapping[str, Any]
    stdin: bytes | None
    page: Page


def read(tool: Tool, arguments: Mapping[str, Any], *, root: str, allowed: Collection[str]) -> Given:
    """The values of the verb. Raises: INVALID_USAGE, AGENT_MAY_NOT for a decision that is not allowed."""
    known = {each.name: each for each in tool.arguments}
    _require_known(tool, arguments, known, allowed)
    for name, value in arguments.items():
        _require_unicode(name, value)
    _require_bound(arguments.get(ROOT), root)
    values: dict[str, Any] = {param.field: left_out(param) for param in tool.verb.params}
    stdin: bytes | None = None
    for name, argument in known.items():
        param, value = argument.param, arguments.get(name)
        if param is None or value is None:
            continue
        found, text = _value(name, argument, value, root=root)
        if text is not None:
            if stdin is not None:
                raise _bad(name, "is one text too many for one call")
            stdin = text
        if name in (DOCUMENT, PATH) and values[param.field] is not None:
            raise _bad(
                name, f"is given twice: give one of {', '.join(n for n, a in known.items() if a.param is param)}"
            )
        values[param.field] = found
    _join_subtask(known, arguments, values)
    for param in tool.verb.params:
        if param.required and values[param.field] is None:
            names = [name for name, argument in known.items() if argument.param is param]
            raise _bad(names[0], f"is required{f' (or {names[1]})' if len(names) > 1 else ''}")
    if "detach" in values:
        values["detach"] = True
    return Given(values, stdin, _page(tool, arguments, values))


def _require_known(
    tool: Tool, arguments: Mapping[str, Any], known: Mapping[str, Argument], allowed: Collection[str]
) -> None:
    for name in arguments:
        if name in known:
            continue
        for param in tool.verb.params:
            decides = decision_of(param)
            if decides and decides not in allowed and name == _camel(param.name):
                raise not_allowed(tool.name, decides)
        raise _bad(name, f"is not an argument of {tool.name}; its arguments are {', '.join(known)}")


def not_allowed(what: str, decision: str) -> GraphError:
    """A decision that this server leaves to a person."""
    return GraphError(
        "AGENT_MAY_NOT",
        f"{what}: {decision} is a decision, and this server was not started with --allow-decisions {decision}.",
        kept="everything as it is",
        next="ask the person who owns the repository to decide on a command line",
        recoverable=False,
        facts={"decision": decision},
    )


def _value(name: str, argument: Argument, value: Any, *, root: str) -> tuple[Any, bytes | None]:
    """The value for the Request, and what has to stand on the verb's standard input."""
    param = argument.param
    assert param is not None
    if name == DOCUMENT:
        if not isinstance(value, str | dict):
            raise _bad(name, f"is {_kind(value)}; it must be the text of a graph file, or an object")
        text = value if isinstance(value, str) else json.dumps(value)
        return _STANDARD_INPUT, text.encode()
    if name == PATH or (param.kind == "path"):
        return _absolute(name, value, root), None
    if param.takes_file and isinstance(value, str) and ("/" in value or value.endswith(_FILE_ENDINGS)):
        return _absolute(name, value, root), None
    if param.multiple:
        if not isinstance(value, list):
            raise _bad(name, f"is {_kind(value)}; it must be an array")
        return tuple(_single(f"{name}[{index}]", param, each) for index, each in enumerate(value)), None
    found = _single(name, param, value)
    if found == _STANDARD_INPUT and param.kind == "text":
        # A verb that takes its text from standard input there finds exactly this text.
        return found, _STANDARD_INPUT.encode()
    return found, None


def _single(name: str, param: Param, value: Any) -> Any:
    match param.kind:
        case "flag":
            if not isinstance(value, bool):
                raise _bad(name, f"is {_kind(value)}; it must be true or false")
        case "integer":
            if isinstance(value, bool) or not isinstance(value, int):
                raise _bad(name, f"is {_kind(value)}; it must be an integer")
            if not 0 <= value < 10**MAX_DIGITS:
                raise _bad(name, f"is {value}; it must be from 0 to 10^{MAX_DIGITS} - 1")
        case "duration":
            return _seconds(name, value)
        case "choice":
            if value not in param.choices:
                raise _bad(name, f"is {_shown(value)}; it must be one of {', '.join(param.choices)}")
        case _:
            if not isinstance(value, str):
                raise _bad(name, f"is {_kind(value)}; it must be a string")
            if "\0" in value:
                raise _bad(name, "holds a NUL character")
    return value


def _seconds(name: str, value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    found = durations.seconds(str(value)) if is_number or isinstance(value, str) else None
    if found is None:
        raise _bad(name, f"is {_shown(value)}; it must be seconds, or a text such as 90s, 45m, 2h, at most a year")
    return found


def _absolute(name: str, value: Any, root: str) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise _bad(name, f"is {_shown(value)}; it must be a path")
    return os.path.normpath(os.path.join(root, value))  # noqa: PTH118 (joined as text: nothing is looked at)


def _require_bound(given: Any, root: str) -> None:
    """Raise unless the folder is the bound one, or leads to the same repository."""
    if given is None:
        return
    if not isinstance(given, str) or "\0" in given:
        raise _bad(ROOT, f"is {_kind(given)}; it must be a path")
    wanted = os.path.realpath(os.path.join(root, given))  # noqa: PTH118
    if wanted == os.path.realpath(root):
        return
    try:
        if discover(wanted).root == discover(root).root:
            return
    except GraphError:
        pass
    raise GraphError(
        "INVALID_USAGE",
        f"root {_shown(given)} is {wanted}; this server is bound to {root} and works on nothing else.",
        kept="everything as it is",
        next="leave root out, or start another server with --root there",
        facts={"argument": ROOT, "root": wanted, "boundRoot": root},
    )


def _join_subtask(known: Mapping[str, Argument], arguments: Mapping[str, Any], values: dict[str, Any]) -> None:
    """A verb that takes GRAPH/SUBTASK as one word may be given both apart."""
    task = arguments.get(TASK)
    if task is None or known[TASK].param is not None:
        return
    if not isinstance(task, str):
        raise _bad(TASK, f"is {_kind(task)}; it must be a string")
    if values.get("subtask") is None:
        raise _bad(TASK, "needs subtaskId beside it")
    values["subtask"] = f"{task}/{values['subtask']}"


def _page(tool: Tool, arguments: Mapping[str, Any], values: dict[str, Any]) -> Page:
    limit = arguments.get(MAX_BYTES, DEFAULT_BYTES)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_BYTES:
        raise _bad(MAX_BYTES, f"is {_shown(limit)}; it must be from 1 to {MOST_BYTES}")
    token = arguments.get(PAGE)
    if token is not None and not isinstance(token, str):
        raise _bad(PAGE, f"is {_kind(token)}; it must be a string")
    if tool.verb.name == "session-read":
        # The verb itself reads so much and no more; its JSON has room for the rest of the answer and for escapes.
        if values["max_bytes"] is None:
            values["max_bytes"] = DEFAULT_BYTES // 2
        return Page(max(6 * limit, DEFAULT_BYTES) + 4096)
    page = Page.parse(limit, token)
    if page is None:
        raise _bad(PAGE, f"is {_shown(token)}, which is no leftOut.page of an earlier result")
    return page


def _require_unicode(name: str, value: Any) -> None:
    """Raise where a text, however deep, holds half of a surrogate pair: it can be stored and shown nowhere."""
    stack = [value, name]
    while stack:
        match stack.pop():
            case str() as text:
                try:
                    text.encode()
                except UnicodeEncodeError:
                    raise _bad(name.encode("ascii", "replace").decode(), "is not valid Unicode") from None
            case list() as items:
                stack.extend(items)
            case dict() as items:
                stack.extend(items)
                stack.extend(items.values())


def _bad(name: str, what: str) -> GraphError:
    return GraphError(
        "INVALID_USAGE", f"{name} {what}.", kept="everything as it is", next="call it again with that argument right",
        facts={"argument": name[:200]},
    )  # fmt: skip


def _kind(value: Any) -> str:
    names = {
        dict: "an object",
        list: "an array",
        str: "a string",
        bool: "a boolean",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), "null")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def _camel(name: str) -> str:
    first, *rest = name.split("-")
    return first + "".join(word.capitalize() for word in rest)
