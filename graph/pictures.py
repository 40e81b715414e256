"""A graph as DOT or Mermaid text: nodes with a label, edges, and a heavier way through it. Pure.

Labels hold foreign text: in DOT they are quoted, in Mermaid everything but plain words is a numeric entity.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from coordinate_agents.graph.text import visible

# A title, which callers cut to this before they put words around it.
MAX_LABEL: Final = 60
_MAX_LINE: Final = 240


class Picture(NamedTuple):
    """`labels`: id to the lines of its label, in drawing order. `path`: ids of the heavier way. `clashes`: pairs."""

    name: str
    labels: Mapping[str, Sequence[str]]
    edges: Sequence[tuple[str, str]]
    path: Sequence[str] = ()
    clashes: Sequence[tuple[str, str]] = ()


def dot(picture: Picture) -> Iterator[str]:
    """Graphviz; source: the DOT language, quoted ids (only a double quote and a backslash need an escape)."""
    heavy = _steps(picture)
    yield f"digraph {_quoted(picture.name)} {{"
    yield "  rankdir=LR; node [shape=box];"
    for name, lines in picture.labels.items():
        label = "\n".join(visible(line, limit=_MAX_LINE) for line in lines)
        style = ", penwidth=3" if name in picture.path else ""
        yield f"  {_quoted(name)} [label={_quoted(label)}{style}];"
    for before, after in picture.edges:
        style = " [penwidth=3]" if (before, after) in heavy else ""
        yield f"  {_quoted(before)} -> {_quoted(after)}{style};"
    for first, second in picture.clashes:
        yield f"  {_quoted(first)} -> {_quoted(second)} [dir=none, style=dotted, constraint=false];"
    yield "}"


def mermaid(picture: Picture) -> Iterator[str]:
    """Mermaid flowchart; nodes are numbered, since its ids allow less than ours (`end` is a keyword)."""
    heavy = _steps(picture)
    numbers = {name: f"n{index}" for index, name in enumerate(picture.labels)}
    yield "flowchart LR"
    for name, lines in picture.labels.items():
        label = "<br/>".join(_entities(visible(line, limit=_MAX_LINE)) for line in lines)
        yield f'  {numbers[name]}["{label}"]'
    for before, after in picture.edges:
        arrow = "==>" if (before, after) in heavy else "-->"
        yield f"  {numbers[before]} {arrow} {numbers[after]}"
    for first, second in picture.clashes:
        yield f"  {numbers[first]} -.- {numbers[second]}"
    if picture.path:
        yield "  classDef critical stroke-width:3px"
        yield f"  class {','.join(numbers[name] for name in picture.path)} critical"


def _steps(picture: Picture) -> Collection[tuple[str, str]]:
    return set(zip(picture.path, picture.path[1:], strict=False))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _entities(text: str) -> str:
    """Everything but plain words as a numeric entity, which Mermaid shows and never takes for markup."""
    return "".join(char if char.isalnum() or char in " .,:()/+_-" else f"#{ord(char)};" for char in text)
