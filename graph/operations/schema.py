"""graph-schema: the JSON Schema of graph files, for editors and for programs that write one."""

from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.schema import json_schema
from coordinate_agents.worktrees.values import value_class


@value_class
class Request:
    pass


def execute(runtime: None, request: Request) -> Result:
    """`data` is the schema itself."""
    return Result(json_schema())
