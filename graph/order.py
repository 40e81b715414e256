"""Orders and cycles of a dependency graph, without a graph library, since every load and every run needs them.

Works on a plain mapping from id to prerequisites. All results depend only on the ids and edges, never on the order of
the file. `dag` has what is asked for more rarely.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar

from coordinate_agents.graph.model import SubtaskId, TaskGraph

# Cycles that one report names: with more, one mistake is usually behind them all.
MAX_CYCLES: Final = 20
# Ways back that are looked at: many of them may be the same cycle, and each costs a walk over it.
_MAX_CLOSED_PATHS: Final = 200

Id = TypeVar("Id", bound=str)


def prerequisites(graph: TaskGraph) -> dict[SubtaskId, tuple[SubtaskId, ...]]:
    """What each subtask depends on, in file order."""
    return {task.id: task.depends_on for task in graph.tasks}


def dependents(needed: Mapping[Id, Sequence[Id]]) -> dict[Id, list[Id]]:
    """The edges turned round: what depends on each id."""
    found: dict[Id, list[Id]] = {each: [] for each in needed}
    for each, before in needed.items():
        for one in before:
            found[one].append(each)
    return found


def topological(needed: Mapping[Id, Sequence[Id]]) -> tuple[Id, ...]:
    """Every id after its prerequisites; among those that could come next, the least id. Ids on cycles are left out."""
    after = dependents(needed)
    missing = {each: len(before) for each, before in needed.items()}
    ready = [each for each, count in missing.items() if count == 0]
    heapq.heapify(ready)
    found: list[Id] = []
    while ready:
        each = heapq.heappop(ready)
        found.append(each)
        for dependent in after[each]:
            missing[dependent] -= 1
            if missing[dependent] == 0:
                heapq.heappush(ready, dependent)
    return tuple(found)


def longest_remaining(needed: Mapping[Id, Sequence[Id]]) -> dict[Id, int]:
    """Ids on the longest way from each one to an end, itself counted. Linear.

    Raises: ValueError when the edges form a cycle. KeyError when an edge names no key.
    """
    waiting_for = dict.fromkeys(needed, 0)
    for before in needed.values():
        for other in before:
            waiting_for[other] += 1
    longest = dict.fromkeys(needed, 1)
    free = [each for each, count in waiting_for.items() if not count]
    done = 0
    while free:
        each = free.pop()
        done += 1
        for other in needed[each]:
            longest[other] = max(longest[other], longest[each] + 1)
            waiting_for[other] -= 1
            if not waiting_for[other]:
                free.append(other)
    if done < len(longest):
        raise ValueError("the dependencies form a cycle")
    return longest


def cycles(needed: Mapping[Id, Sequence[Id]]) -> tuple[tuple[Id, ...], ...]:
    """Cycles, at most MAX_CYCLES, each from its least id on, each depending on the next; empty when there is none.

    Complete in this sense: every group of ids that depend on each other is represented, up to the bound, since every
    cycle has an edge back to something above it in a depth-first walk, and each such edge is reported.
    """
    left = _on_or_behind_cycles(needed)
    if not left:
        return ()
    found: set[tuple[Id, ...]] = set()
    for path in islice(_closed_paths(needed, sorted(left)), _MAX_CLOSED_PATHS):
        found.add(_from_least(_shortened(needed, path)))
        if len(found) >= MAX_CYCLES:
            break
    return tuple(sorted(found))


def spell_cycle(cycle: Sequence[str]) -> str:
    """`a -> b -> a`; of a long one the first eight and the last."""
    if len(cycle) > 10:
        return " -> ".join([*cycle[:8], f"… {len(cycle) - 9} more …", cycle[-1], cycle[0]])
    return " -> ".join([*cycle, cycle[0]])


def _on_or_behind_cycles(needed: Mapping[Id, Sequence[Id]]) -> set[Id]:
    after = dependents(needed)
    missing = {each: len(before) for each, before in needed.items()}
    ready = [each for each, count in missing.items() if count == 0]
    while ready:
        each = ready.pop()
        del missing[each]
        for dependent in after[each]:
            missing[dependent] -= 1
            if missing[dependent] == 0:
                ready.append(dependent)
    return set(missing)


def _closed_paths(needed: Mapping[Id, Sequence[Id]], starts: Iterable[Id]) -> Iterator[list[Id]]:
    """For each edge back to the path of a depth-first walk: the path from that id on."""
    done: set[Id] = set()
    for start in starts:
        if start in done:
            continue
        path: dict[Id, None] = {start: None}
        stack = [iter(sorted(needed[start]))]
        while stack:
            following = next(stack[-1], None)
            if following is None:
                stack.pop()
                done.add(path.popitem()[0])
            elif following in path:
                walked = list(path)
                yield walked[walked.index(following) :]
            elif following not in done:
                path[following] = None
                stack.append(iter(sorted(needed[following])))


def _shortened(needed: Mapping[Id, Sequence[Id]], path: list[Id]) -> list[Id]:
    """The shortest way from the first to the last of the path over its own ids: still a cycle, without detours."""
    allowed = set(path)
    came_from: dict[Id, Id | None] = {path[0]: None}
    queue = deque([path[0]])
    while queue and path[-1] not in came_from:
        each = queue.popleft()
        for following in sorted(needed[each]):
            if following in allowed and following not in came_from:
                came_from[following] = each
                queue.append(following)
    way: list[Id] = []
    step: Id | None = path[-1]
    while step is not None:
        way.append(step)
        step = came_from[step]
    return way[::-1]


def _from_least(cycle: list[Id]) -> tuple[Id, ...]:
    start = cycle.index(min(cycle))
    return (*cycle[start:], *cycle[:start])
