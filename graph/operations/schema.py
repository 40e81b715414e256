"""graph-schema: the JSON Schema of graph files, for editors and for programs that write one."""

from dataclasses import dataclass

from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.schema import json_schema


@dataclass(frozen=True, slots=True)
class Request:
    pass


def execute(runtime: None, request: Request) -> Result:
    """`data` is the schema itself."""
    return Result(json_schema())
