"""Cost of one transition of the frontier and of one plan at 10,000 and 100,000 subtasks.

Prints medians and maxima in CPU microseconds; a benchmark, never a test. Reach: 50 µs a transition, independent of
the size of the graph. Run it as ``python benchmarks/frontier.py``.
"""

import gc
import random
import statistics
import time
from collections.abc import Callable

from coordinate_agents.graph.frontier import Frontier
from coordinate_agents.graph.model import SubtaskId, Task
from coordinate_agents.graph.order import longest_remaining
from coordinate_agents.graph.schedule import Limits, ReadyQueue, Running, plan

SIZES = (10_000, 100_000)
ROUNDS = 7


def layered(size: int, *, seed: int = 1) -> dict[SubtaskId, tuple[SubtaskId, ...]]:
    """Layers of 100 subtasks, each with up to three prerequisites in the layer before."""
    chosen = random.Random(seed)
    names = [SubtaskId(f"t{number:06d}") for number in range(size)]
    return {
        name: tuple(chosen.sample(names[number - number % 100 - 100 : number - number % 100], 3))
        if number >= 100
        else ()
        for number, name in enumerate(names)
    }


def measure(act: Callable[[], None]) -> float:
    started = time.process_time_ns()
    act()
    return (time.process_time_ns() - started) / 1000


def run_through(size: int) -> None:
    """Drive the whole graph with 16 slots: start, succeed, unlock, plan again."""
    depends_on = layered(size)
    tasks = {name: Task(id=name, title=name, writes=(f"src/{name}/**",)) for name in depends_on}
    frontiers: list[Frontier] = []
    build_us = measure(lambda: frontiers.append(Frontier(depends_on)))
    frontier = frontiers[0]
    remaining: dict[SubtaskId, int] = {}
    longest_us = measure(lambda: remaining.update(longest_remaining(depends_on)))
    queue = ReadyQueue(tasks, remaining)
    for name in sorted(frontier.ready()):
        queue.add(name)
    limits = Limits(max_concurrency=16)
    running: dict[SubtaskId, Running] = {}
    transitions: list[float] = []
    plans: list[float] = []

    def change(name: SubtaskId, state: str) -> None:
        for changed in frontier.set(name, state):  # type: ignore[arg-type]
            if frontier.place(changed) == "ready":
                queue.add(changed)
            else:
                queue.discard(changed)

    def start() -> None:
        made = plan(queue.candidates(running), running.values(), tasks, limits)
        queue.park(made.deferred)
        for each in made.start:
            running[each.subtask] = Running(each.subtask, writes=tasks[each.subtask].writes)

    while not frontier.is_ended:
        before = set(running)
        plans.append(measure(start))
        for name in running.keys() - before:
            transitions.append(measure(lambda name=name: change(name, "running")))  # type: ignore[misc]
        ended = min(running)
        del running[ended]
        transitions.append(measure(lambda ended=ended: change(ended, "succeeded")))  # type: ignore[misc]
    assert frontier.counts()["succeeded"] == size
    print(f"{size:>7} subtasks: build {build_us / 1000:.0f} ms, longest remaining path {longest_us / 1000:.0f} ms")
    for label, figures in (("transition", transitions), ("plan", plans)):
        ordered = sorted(figures)
        print(
            f"        {label:<10} median {statistics.median(ordered):6.1f} µs"
            f"  mean {statistics.fmean(ordered):6.1f}  p99 {ordered[int(len(ordered) * 0.99)]:6.1f}"
        )


def main() -> None:
    for size in SIZES:
        gc.collect()
        gc.disable()
        run_through(size)
        gc.enable()


if __name__ == "__main__":
    main()
