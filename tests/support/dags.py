"""Random graphs for property tests."""

from hypothesis import strategies as st

from coordinate_agents.graph.model import GraphId, SubtaskId, Task, TaskGraph


@st.composite
def task_graphs(draw: st.DrawFn, *, max_size: int = 14) -> TaskGraph:
    """A graph whose edges all point to earlier tasks, with random limits, intents, tokens and attempts."""
    size = draw(st.integers(1, max_size))
    tasks = []
    for number in range(size):
        earlier = [f"t{other}" for other in range(number)]
        needed = draw(st.lists(st.sampled_from(earlier), unique=True, max_size=3)) if earlier else []
        tasks.append(
            Task(
                id=SubtaskId(f"t{number}"),
                title=f"task {number}",
                depends_on=tuple(SubtaskId(other) for other in needed),
                writes=draw(st.sampled_from([None, (), ("a/**",), ("b/**",), ("a/x", "c/**")])),
                needs=draw(st.sampled_from([(), (), ("db",)])),
                priority=draw(st.integers(-1, 1)),
                attempts=draw(st.integers(1, 3)),
                fix_turns=draw(st.integers(0, 2)),
            )
        )
    return TaskGraph(
        id=GraphId("g"),
        title="g",
        tasks=tuple(tasks),
        max_concurrency=draw(st.integers(1, 4)),
        resources={"db": draw(st.integers(1, 2))},
    )
