"""Orders, cycles, paths and edges of a dependency graph, against small graphs worked out by hand and random ones."""

import subprocess
import sys

import networkx as nx
import pytest
from dags import task_graphs
from documents import fixtures, parse, read
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinate_agents.graph import dag, order
from coordinate_agents.graph.model import SubtaskId, TaskGraph

# a <- b <- d, a <- c <- d, and d also needs a; e stands alone.
DIAMOND = parse(
    "subtasks:\n"
    "  - {id: d, spec: p, dependsOn: [c, b, a]}\n"
    "  - {id: c, spec: p, dependsOn: a}\n"
    "  - {id: b, spec: p, dependsOn: a}\n"
    "  - {id: a, spec: p}\n"
    "  - {id: e, spec: p}\n"
)


def test_topological_order_takes_the_least_id_that_can_come_next() -> None:
    assert dag.topological_order(DIAMOND) == ("a", "b", "c", "d", "e")


def test_longest_remaining_counts_subtasks_to_the_end() -> None:
    assert order.longest_remaining(order.prerequisites(DIAMOND)) == {"a": 3, "b": 2, "c": 2, "d": 1, "e": 1}


def test_layers_need_only_earlier_layers() -> None:
    assert dag.layers(DIAMOND) == (("a", "e"), ("b", "c"), ("d",))


def test_edges_that_a_longer_way_says_already_are_left_out() -> None:
    assert dag.reduced_edges(DIAMOND) == (("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"))


def test_descendants_and_ancestors() -> None:
    assert dag.descendants(DIAMOND, [SubtaskId("b"), SubtaskId("c")]) == {"d"}
    assert dag.descendants(DIAMOND, [SubtaskId("a")]) == {"b", "c", "d"}
    assert dag.ancestors(DIAMOND, [SubtaskId("d")]) == {"a", "b", "c"}
    assert dag.descendants(DIAMOND, []) == frozenset()


def test_critical_path_takes_the_least_ids_of_equal_ones() -> None:
    assert dag.critical_path(DIAMOND) == ("a", "b", "d")
    weights = {SubtaskId("c"): 5.0, SubtaskId("a"): 1.0}
    assert dag.critical_path(DIAMOND, weights=weights) == ("a", "c", "d")
    assert dag.critical_path(DIAMOND, weights={SubtaskId("e"): 9.0}) == ("e",)


def test_sample_graphs_have_their_depths() -> None:
    depths = {path.stem: len(dag.layers(read(path).graph)) for path in fixtures("graphs")}
    assert depths["16-chain-200"] == 200
    assert depths["21-dense-30"] == 2
    assert depths["17-layered-300"] == 10
    assert depths["09-fan-out-fan-in-53"] == 4


@settings(deadline=None)
@given(task_graphs())
def test_light_orders_agree_with_the_graph_library(graph: TaskGraph) -> None:
    made = dag.build(graph)
    assert order.topological(order.prerequisites(graph)) == tuple(nx.lexicographical_topological_sort(made))
    assert len(dag.critical_path(graph)) == nx.dag_longest_path_length(made) + 1
    longest = order.longest_remaining(order.prerequisites(graph))
    assert max(longest.values()) == len(dag.critical_path(graph))
    for before, after in made.edges:
        assert longest[before] > longest[after]


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=4)))
def test_cycles_are_real_and_every_group_of_mutual_dependents_has_one(edges: dict[str, list[str]]) -> None:
    needed = {name: edges.get(name, []) for name in "abcdefgh"}
    made = nx.DiGraph([(name, before) for name, all_before in needed.items() for before in all_before])
    found = order.cycles(needed)
    for cycle in found:
        assert cycle[0] == min(cycle)
        assert len(set(cycle)) == len(cycle)
        assert all(after in needed[before] for before, after in zip(cycle, (*cycle[1:], cycle[0]), strict=True))
    groups = [group for group in nx.strongly_connected_components(made) if len(group) > 1]
    groups += [{name} for name in needed if name in needed[name]]
    if len(found) < order.MAX_CYCLES:
        for group in groups:
            assert any(set(cycle) <= group for cycle in found), group
    assert bool(found) == bool(groups)


def test_two_cycles_that_share_a_subtask_are_both_named() -> None:
    needed = {"a": ["b", "c"], "b": ["a"], "c": ["a"], "x": ["a"]}
    assert order.cycles(needed) == (("a", "b"), ("a", "c"))
    assert order.spell_cycle(("a", "b")) == "a -> b -> a"


def test_same_cycles_whatever_the_hash_seed() -> None:
    code = (
        "from coordinate_agents.graph.order import cycles\n"
        "names=[f's{n}' for n in range(12)]\n"
        "print(cycles({n: [m for m in names if m != n] for n in names}))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True, text=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("module", ["document", "order", "config", "config_document", "schema", "import_v1"])
def test_loading_a_graph_imports_no_heavy_library(module: str) -> None:
    code = (
        f"import sys, coordinate_agents.graph.{module}\n"
        "print([n for n in ('networkx', 'pydantic', 'git', 'rich', 'anyio', 'sqlite3') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "[]\n"


def test_configuration_values_are_read_without_yaml() -> None:
    code = "import sys, coordinate_agents.graph.config, coordinate_agents.graph.model\nprint('yaml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "False\n"
