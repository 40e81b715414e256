"""graph-list: every graph of this repository but the forgotten ones, newest last, with its state and counts."""

from typing import NamedTuple

from coordinate_agents.graph.operations.loading import is_forgotten
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.store.lease import holder
from coordinate_agents.graph.view import graph_overview


class Request(NamedTuple):
    pass


def execute(runtime: Runtime, request: Request) -> Result:
    store = runtime.store
    graphs = [
        graph_overview(row, store.runs(row.id), driver=holder(runtime.state_dir, row.id))
        for row in store.graphs()
        if not is_forgotten(row)
    ]
    return Result({"graphs": graphs})
