"""The dependency graph as a networkx DiGraph, for what is asked rarely: reports, plans, pictures.

Importing networkx costs 144 ms, so what every load and every run needs (cycles, topological order, longest remaining
path) stands in `order` without it. Edges go from a prerequisite to what depends on it. Every order is by id.
"""

from collections.abc import Iterable, Mapping

import networkx as nx

from coordinate_agents.graph import order
from coordinate_agents.graph.model import SubtaskId, TaskGraph


def build(graph: TaskGraph) -> "nx.DiGraph[SubtaskId]":
    """The DiGraph of the subtasks, nodes in id order."""
    made: nx.DiGraph[SubtaskId] = nx.DiGraph()
    made.add_nodes_from(sorted(task.id for task in graph.tasks))
    made.add_edges_from((before, task.id) for task in graph.tasks for before in task.depends_on)
    return made


def topological_order(graph: TaskGraph) -> tuple[SubtaskId, ...]:
    """Every subtask after its prerequisites; among those that could come next, the least id."""
    return order.topological(order.prerequisites(graph))


def descendants(graph: TaskGraph, of: Iterable[SubtaskId]) -> frozenset[SubtaskId]:
    """What depends on any of the subtasks, directly or not; without themselves unless one depends on another."""
    dag = build(graph)
    return frozenset().union(*(nx.descendants(dag, each) for each in of))


def ancestors(graph: TaskGraph, of: Iterable[SubtaskId]) -> frozenset[SubtaskId]:
    """What any of the subtasks depends on, directly or not."""
    dag = build(graph)
    return frozenset().union(*(nx.ancestors(dag, each) for each in of))


def layers(graph: TaskGraph) -> tuple[tuple[SubtaskId, ...], ...]:
    """The subtasks by their distance from a start: a layer needs only earlier ones. Each in id order."""
    return tuple(tuple(sorted(layer)) for layer in nx.topological_generations(build(graph)))


def reduced_edges(graph: TaskGraph) -> tuple[tuple[SubtaskId, SubtaskId], ...]:
    """The edges (prerequisite, dependent) that no longer way says already, sorted."""
    return tuple(sorted(nx.transitive_reduction(build(graph)).edges))


def critical_path(graph: TaskGraph, *, weights: Mapping[SubtaskId, float] | None = None) -> tuple[SubtaskId, ...]:
    """The heaviest way from a start to an end; without weights every subtask counts 1. Of several the least ids."""
    needed = order.prerequisites(graph)
    after = order.dependents(needed)
    cost: dict[SubtaskId, float] = {}
    following: dict[SubtaskId, SubtaskId | None] = {}
    for each in reversed(order.topological(needed)):
        best = min(after[each], key=lambda one: (-cost[one], one), default=None)
        own = 1.0 if weights is None else weights.get(each, 0.0)
        cost[each] = own + (cost[best] if best is not None else 0.0)
        following[each] = best
    path: list[SubtaskId] = []
    step = min(cost, key=lambda each: (-cost[each], each), default=None)
    while step is not None:
        path.append(step)
        step = following[step]
    return tuple(path)
