"""Loading a graph of 10,000 subtasks against bare `yaml.load(CSafeLoader)`: the ratio of CPU times.

Loading means parse, validate, references, cycle check. Both run in this process, alternating, so that a busy machine
slows both; the figure is the median of the paired ratios. Run: python benchmarks/load_graph.py [SUBTASKS]
"""

import gc
import statistics
import sys
import time
from collections.abc import Callable
from typing import Final

import yaml

from coordinate_agents.graph.document import parse

_ROUNDS: Final = 7


def document(subtasks: int) -> bytes:
    """A layered graph with two prerequisites each, as a program would write it."""
    lines = ["schemaVersion: 1", "id: large", 'checks: ["pytest -q"]', "subtasks:"]
    for number in range(subtasks):
        needed = ", ".join(f'"n{other:05}"' for other in {number - 7, number - 31} if other >= 0)
        lines.append(f'  - id: "n{number:05}"')
        lines.append(f'    title: "Unit {number}"')
        lines.append("    agent: coder")
        lines.append(f'    spec: "Unit {number}. Commit the result on the current branch."')
        lines.append(f"    dependsOn: [{needed}]")
        lines.append(f'    writes: ["src/unit{number}/**"]')
    return ("\n".join(lines) + "\n").encode()


def cpu_s(act: Callable[[], object]) -> float:
    gc.collect()
    before = time.process_time()
    act()
    return time.process_time() - before


def main() -> None:
    subtasks = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    text = document(subtasks)
    floors, loads = [], []
    for _ in range(_ROUNDS):
        floors.append(cpu_s(lambda: yaml.load(text, yaml.CSafeLoader)))
        loads.append(cpu_s(lambda: parse(text, name="large.yaml", stem="large", read_spec_file=None)))
    ratios = [load / floor for load, floor in zip(loads, floors, strict=True)]
    print(f"subtasks {subtasks}, bytes {len(text)}")
    print(f"bare yaml.load(CSafeLoader)  {statistics.median(floors):.3f} s CPU")
    print(f"document.parse               {statistics.median(loads):.3f} s CPU")
    print(f"ratio                        {statistics.median(ratios):.2f} (reach <= 1.30)")


if __name__ == "__main__":
    main()
