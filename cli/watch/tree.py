"""Lays a graph out as a tree of lines: every subtask below one of its prerequisites, the others named. Pure.

A DAG is no tree. Rule: a subtask stands below the prerequisite that is deepest itself (the first by id of several), so
that whatever it needs stands above it or is named beside it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

# A long chain would push the ids out of the screen; deeper lines are cut on their left.
MAX_GUIDE: Final = 14


class Node(NamedTuple):
    """One line. `guide` is drawn before the id; `also`: the prerequisites that it does not stand below."""

    id: str
    guide: str
    also: tuple[str, ...]


def tree(needs: Mapping[str, Sequence[str]]) -> tuple[Node, ...]:
    """Every subtask once, in the order of drawing. `needs`: id to prerequisites, all of them keys, without a cycle."""
    depths = _depths(needs)
    parents = {name: min(needs[name], key=lambda each: (-depths[each], each)) for name in needs if needs[name]}
    children: dict[str | None, list[str]] = {}
    for name in sorted(needs):
        children.setdefault(parents.get(name), []).append(name)
    return tuple(_lines(needs, parents, children))


def _lines(
    needs: Mapping[str, Sequence[str]], parents: Mapping[str, str], children: Mapping[str | None, Sequence[str]]
) -> Iterator[Node]:
    """Depth first, without recursion: a chain may be thousands long."""
    open_lines = [(name, "", "") for name in reversed(children.get(None, ()))]
    while open_lines:
        name, guide, below = open_lines.pop()
        also = tuple(sorted(other for other in needs[name] if other != parents.get(name)))
        yield Node(name, guide if len(guide) <= MAX_GUIDE else f"…{guide[1 - MAX_GUIDE :]}", also)
        last = len(children.get(name, ())) - 1
        # What is cut off on the left need not be kept either.
        below = below[-2 * MAX_GUIDE :]
        for index, child in reversed(list(enumerate(children.get(name, ())))):
            corner, rest = ("└ ", "  ") if index == last else ("├ ", "│ ")
            open_lines.append((child, below + corner, below + rest))


def _depths(needs: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The length of the longest way to each."""
    depths: dict[str, int] = {}
    for start in needs:
        waiting = [start]
        while waiting:
            name = waiting[-1]
            missing = [other for other in needs[name] if other not in depths]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            depths[name] = 1 + max((depths[other] for other in needs[name]), default=-1)
    return depths
