"""From the record to a graph: which one is meant, and its state as a Snapshot.

Reads only. A word that fits nothing is an error that names what there is.
"""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from coordinate_agents.graph.errors import GraphError

if TYPE_CHECKING:  # `status` reads rows and loads none of the value classes
    from coordinate_agents.graph.snapshot import Snapshot
    from coordinate_agents.graph.store.rows import GraphRow
    from coordinate_agents.graph.store.store import Store


def load_snapshot(store: "Store", graph_id: str) -> "tuple[GraphRow, Snapshot]":
    """The graph and its state from the cache rows. Raises: TASK_NOT_FOUND, which names the known ids."""
    from coordinate_agents.graph.model import from_json
    from coordinate_agents.graph.snapshot import Snapshot, run_from_row, summary_from_row

    row = store.graph(graph_id)
    if row is None:
        raise _unknown_graph(graph_id, [each.id for each in store.graphs()])
    runs = (run_from_row(each.row) for each in store.runs(graph_id))
    return row, Snapshot(from_json(row.document), runs, summary_from_row(row.summary))


def pick_graph(store: "Store", given: str | None) -> "GraphRow":
    """The graph with this id; without one the only unfinished graph, or the only graph at all.

    Raises: TASK_NOT_FOUND, INVALID_USAGE when several could be meant.
    """
    if given is not None:
        row = store.graph(given)
        if row is None:
            raise _unknown_graph(given, [each.id for each in store.graphs()])
        return row
    rows = [row for row in store.graphs() if not is_forgotten(row)]
    if not rows:
        raise GraphError(
            "TASK_NOT_FOUND",
            "There is no graph in this repository yet.",
            next="coordinate-agents graph-init > graph.yaml, then coordinate-agents graph-run graph.yaml",
        )
    if len(rows) == 1:
        return rows[0]
    open_rows = [row for row in rows if not is_finished(store, row)]
    if len(open_rows) == 1:
        return open_rows[0]
    what = "several graphs are unfinished" if open_rows else "every graph is finished"
    from coordinate_agents.graph.text import listed

    names = listed([row.id for row in reversed(open_rows or rows)], first=8)
    raise GraphError("INVALID_USAGE", f"Name the graph: {what} ({names}).", next="coordinate-agents graph-list")


def pick_subtask(store: "Store", graph: str | None, subtask: str | None) -> "tuple[GraphRow, str | None]":
    """The graph and subtask that two words mean: `GRAPH SUBTASK`, `GRAPH/SUBTASK`, `GRAPH`, or `SUBTASK` alone where
    the graph may be left out. Raises: as `pick_graph`; TASK_NOT_FOUND naming the known subtasks.
    """
    if graph is not None and subtask is None and store.graph(graph) is None:
        before, slash, after = graph.partition("/")
        if slash and store.graph(before) is not None:
            graph, subtask = before, after
        elif (row := _only_graph(store)) is not None and graph in subtask_ids(row):
            return row, graph
    row = pick_graph(store, graph)
    if subtask is not None:
        require_subtask(row, subtask)
    return row, subtask


def require_subtask(row: "GraphRow", subtask: str) -> None:
    """Raise TASK_NOT_FOUND, with the nearest or all known ids, unless the graph has the subtask."""
    known = subtask_ids(row)
    if subtask not in known:
        raise GraphError(
            "TASK_NOT_FOUND",
            f"Graph {row.id} has no subtask {subtask!r}{_known('its subtasks are', subtask, known)}",
            next=f"coordinate-agents graph-status {row.id}",
            facts={"taskId": row.id, "subtaskId": subtask},
        )


def require_named(row: "GraphRow", subtask: str | None) -> str:
    """The subtask of a verb that is about one; a graph's only one need not be named. Raises: INVALID_USAGE."""
    if subtask is None and len(only := subtask_ids(row)) == 1:
        return only[0]
    if subtask is None:
        raise GraphError(
            "INVALID_USAGE",
            "Name the subtask that is meant.",
            next=f"coordinate-agents graph-status {row.id}",
            facts={"taskId": row.id},
        )
    return subtask


def subtask_ids(row: "GraphRow") -> list[str]:
    """The ids of the graph's subtasks in the file's order."""
    return [task["id"] for task in json.loads(row.document)["tasks"]]


def is_forgotten(row: "GraphRow") -> bool:
    """Whether graph-forget was called: it is read when it is named, and otherwise left out."""
    return bool(row.summary) and bool(json.loads(row.summary).get("is_forgotten"))


def is_finished(store: "Store", row: "GraphRow") -> bool:
    """Whether nothing is left to do: every subtask succeeded and the graph, where asked, is integrated."""
    states = [json.loads(run.row).get("state", "idle") for run in store.runs(row.id)]
    return len(states) == len(subtask_ids(row)) and all(state == "succeeded" for state in states)


def _only_graph(store: "Store") -> "GraphRow | None":
    try:
        return pick_graph(store, None)
    except GraphError:
        return None


def _unknown_graph(given: str, known: Iterable[str]) -> GraphError:
    ids = list(known)
    return GraphError(
        "TASK_NOT_FOUND",
        f"There is no graph {given!r} in this repository{_known('its graphs are', given, ids)}",
        next="coordinate-agents graph-list" if ids else "coordinate-agents graph-run FILE",
        facts={"taskId": given},
    )


def _known(what: str, given: str, known: list[str]) -> str:
    import difflib

    from coordinate_agents.graph.text import listed

    near = difflib.get_close_matches(given, known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; {what} {listed(known, first=8)}." if known else "; it has none yet."
