"""graph-import: a graph file made from a Task Graph v1 JSON file and its companion intent map. Needs no repository."""

from coordinate_agents.graph.import_v1 import to_graph_file
from coordinate_agents.graph.operations.sources import read_source
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.worktrees.values import value_class


@value_class
class Request:
    file: str
    intent_map: str | None = None


def execute(runtime: None, request: Request) -> Result:
    """`document` is the text of the graph file. Raises: TASK_GRAPH_INVALID."""
    source = read_source(request.file)
    intents = read_source(request.intent_map) if request.intent_map is not None else None
    return Result({"document": to_graph_file(source.text, intents.text if intents else None)})
