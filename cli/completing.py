"""What a shell may complete an argument with: ids of graphs and subtasks from the store, read-only, and files.

Whatever goes wrong completes nothing: a person in the middle of a line wants no error.
"""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from coordinate_agents.graph.operations.table import Param

if TYPE_CHECKING:
    from coordinate_agents.graph.store.store import Store

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

# More than anybody reads; a graph may have 10,000 subtasks.
MAX_OFFERED: Final = 500
# Values of options that name a subtask of the graph.
_SUBTASKS: Final = frozenset({"subtask", "until", "and", "discard", "for"})


def completer(param: Param) -> Complete | None:
    """How this parameter is completed; None: as its type is."""
    if param.kind == "path" or param.takes_file:
        return _files_and_graphs if param.takes_file else _files
    if param.name == "graph" and param.kind == "text":
        return _graphs
    if param.name == "task" and param.kind == "text":
        return _tasks
    if param.name in _SUBTASKS and param.kind == "text":
        return _subtasks
    return _sessions if param.name == "session" else None


def _files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def _files_and_graphs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _graphs(ctx, param, incomplete) or _files(ctx, param, incomplete)


def _graphs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _offered(((row.id, row.title) for row in _rows(ctx)), incomplete)


def _tasks(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The graphs of one subtask."""
    return _offered(((row.id, row.title) for row in _rows(ctx) if len(list(_of(row))) == 1), incomplete)


def _subtasks(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Of the graph that was named; of every graph where click does not say which, as after an option without value."""
    given = ctx.params.get("graph")
    rows = [row for row in _rows(ctx) if given in (None, row.id)]
    return _offered((found for row in rows for found in _of(row)), incomplete)


def _sessions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _offered(((f"{row.id}/{id_}", title) for row in _rows(ctx) for id_, title in _of(row)), incomplete)


def _of(row: Any) -> Iterator[tuple[str, str]]:
    yield from ((task["id"], task["title"]) for task in json.loads(row.document)["tasks"])


def _offered(found: Iterator[tuple[str, str]], incomplete: str) -> list[CompletionItem]:
    offered: list[CompletionItem] = []
    for value, title in found:
        if value.startswith(incomplete):
            # Titles are foreign text, and go to a terminal.
            offered.append(CompletionItem(value, help=_shown(title)))
        if len(offered) >= MAX_OFFERED:
            break
    return offered


def _shown(title: str) -> str:
    from coordinate_agents.graph.text import visible

    return visible(title, limit=60)


def _rows(ctx: click.Context) -> list[Any]:
    root = ctx.params.get("root") or (ctx.parent.params.get("root") if ctx.parent else None)
    try:
        store = _store(root)
        with store:
            return [row for row in store.graphs() if not json.loads(row.summary or "{}").get("is_forgotten")]
    except Exception:
        return []


def _store(root: str | None) -> "Store":
    from coordinate_agents.cli.invocation import Invocation
    from coordinate_agents.cli.wiring import open_runtime
    from coordinate_agents.graph.operations.table import verb_named

    listing = verb_named("graph-list")
    assert listing is not None
    runtime = open_runtime(Invocation(listing, {}, root, True))
    assert runtime is not None
    return runtime.store
