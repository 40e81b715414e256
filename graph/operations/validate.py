"""graph-validate: is this file a graph? Every problem at once, or the graph in one line. Needs no repository."""

from coordinate_agents.graph import document
from coordinate_agents.graph.operations.sources import read_source
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.worktrees.values import value_class


@value_class
class Request:
    file: str


def execute(runtime: None, request: Request) -> Result:
    """Raises: TASK_GRAPH_INVALID with every problem."""
    source = read_source(request.file)
    found = document.parse_document(
        source.text, name=source.name, stem=source.stem, read_spec_file=source.read_spec_file
    )
    graph = found.graph
    return Result(
        {
            "valid": True,
            "graph": {
                "id": graph.id,
                "title": graph.title,
                "subtasks": len(graph.tasks),
                "edges": graph.edge_count,
                "maxConcurrency": graph.max_concurrency,
            },
            "warnings": [
                {"line": each.line, "column": each.column, "path": each.path, "message": each.message}
                for each in found.warnings
            ],
        }
    )
