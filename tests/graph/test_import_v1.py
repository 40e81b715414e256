"""Task Graph v1 becomes a graph file that means the same and loses nothing."""

import json
from typing import Any

import pytest
from documents import FIXTURES, parse
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.import_v1 import to_graph_file
from coordinate_agents.graph.model import GraphId, SubtaskId, Task, TaskGraph

SHOP = FIXTURES / "task-graph-v1"


def _import(source: Any, intents: Any = None) -> str:
    return to_graph_file(json.dumps(source).encode(), None if intents is None else json.dumps(intents).encode())


def _refused(source: Any, intents: Any = None) -> list[str]:
    with pytest.raises(GraphError) as raised:
        _import(source, intents)
    assert raised.value.code == "TASK_GRAPH_INVALID"
    return [problem.message for problem in raised.value.problems]


def _graph(*subtasks: dict[str, Any], **parent: Any) -> dict[str, Any]:
    return {"schemaVersion": 1, "parentTask": {"id": "g", **parent}, "subtasks": list(subtasks)}


def test_shop_with_its_intent_map_becomes_this_file() -> None:
    text = to_graph_file((SHOP / "shop.json").read_bytes(), (SHOP / "shop.intent.json").read_bytes())
    assert text == (SHOP / "shop.yaml").read_text()
    assert parse(text) == TaskGraph(
        id=GraphId("task-shop-v1"),
        title="Shop slice",
        spec="Small shop.",
        max_concurrency=2,
        scope_policy="strict",
        tasks=(
            Task(SubtaskId("store"), "Storage", "Add the storage module.", "backend", writes=("src/store/**",)),
            Task(
                SubtaskId("routes"),
                "Add the routes.",
                "Add the routes.",
                "backend",
                (SubtaskId("store"),),
                ("src/routes/**",),
            ),
            Task(
                SubtaskId("pages"), "Add the pages.", "Add the pages.", "frontend", (SubtaskId("store"),), ("web/**",)
            ),
            Task(
                SubtaskId("smoke"),
                "Add a smoke test.",
                "Add a smoke test.",
                "backend",
                (SubtaskId("pages"), SubtaskId("routes")),
                (),
                expect="nothing",
            ),
        ),
    )


def test_without_an_intent_map_writes_are_unknown() -> None:
    graph = parse(to_graph_file((SHOP / "shop.json").read_bytes(), None))
    assert [task.writes for task in graph.tasks] == [None, None, None, None]
    assert graph.scope_policy == "warn"


def test_what_has_no_counterpart_is_kept_under_own_keys() -> None:
    text = _import(_graph({"id": "a", "spec": "p", "estimate": {"h": 2}}, planner="lead", reviewer="on"))
    assert 'x-planner: "lead"\nx-reviewer: "on"\n' in text
    assert '    x-estimate: {"h": 2}\n' in text
    parse(text)


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_every_spec_comes_back_exactly(spec: str) -> None:
    graph = parse(_import(_graph({"id": "a", "title": "t", "spec": spec})))
    assert graph.tasks[0].spec == spec


@settings(deadline=None)
@given(st.text(st.sampled_from("ab \t\n:#-|>'\"\\{}[]&*!%@`\r"), min_size=1))
def test_spec_of_characters_that_mean_something_in_yaml_comes_back_exactly(spec: str) -> None:
    graph = parse(_import(_graph({"id": "a", "title": "t", "spec": spec})))
    assert graph.tasks[0].spec == spec


@pytest.mark.parametrize("word", ["no", "1.10", "2026-01-02", "~", "null", "1e3", "0x10"])
def test_words_that_yaml_takes_for_something_else_stay_text(word: str) -> None:
    agent = word if word[0].isalnum() else "x"
    graph = parse(_import(_graph({"id": "a", "title": word, "implementer": agent})))
    assert (graph.tasks[0].title, graph.tasks[0].agent) == (word, agent)


def test_source_of_another_shape_is_refused_in_words() -> None:
    said = "parentTask: a Task Graph v1 is an object with `parentTask` and `subtasks`"
    assert _refused([]) == [said]
    assert _refused({"subtasks": []}) == [said]
    assert _refused(_graph("a", {"id": "b", "spec": "p"})) == [  # type: ignore[arg-type]
        "subtasks[0]: must be an object with `id` and `spec`"
    ]
    assert _refused({"parentTask": {"id": "g"}}) == ["subtasks: must be a list"]


def test_intent_map_of_another_graph_is_refused_with_everything_else() -> None:
    source = _graph({"id": "a", "spec": "p"})
    intents = {"parentTaskId": "h", "subtasks": [{"id": "ghost", "writeIntent": ["x"]}]}
    assert _refused(source, intents) == [
        "parentTaskId: the intent map is for 'h', the graph is 'g'",
        "intent map: names 'ghost', which is no subtask of the graph",
    ]
    assert _refused(source, {"subtasks": [{"id": "a", "writeIntent": "x"}, {"writeIntent": []}]}) == [
        "intent map.subtasks[0]: must be an object with `id` and `writeIntent`, a list of texts",
        "intent map.subtasks[1]: `id` must be a text that is used once",
    ]


def test_repeated_key_and_broken_json_are_refused() -> None:
    with pytest.raises(GraphError) as raised:
        to_graph_file(b'{"parentTask": {"id": "g", "id": "h"}, "subtasks": []}', None)
    assert raised.value.problems[0].message == "graph: key 'id' is written twice in one object; keep one"
    with pytest.raises(GraphError) as raised:
        to_graph_file(b'{"parentTask":\n x', None)
    assert (raised.value.problems[0].line, raised.value.problems[0].message) == (2, "not JSON: Expecting value")
    with pytest.raises(GraphError) as raised:
        to_graph_file(b"[" * 200_000, None)
    assert raised.value.problems[0].message == "graph: nested too deep"


def test_ids_and_references_that_are_not_allowed_here_are_refused() -> None:
    source = _graph({"id": "a b", "spec": "p"}, {"id": "c", "spec": "p", "dependsOn": ["d", "c"]})
    assert _refused(source) == [
        "id 'a b' may hold letters a-z and A-Z, digits, '.', '_' and '-', in parts joined by '/'; every part begins "
        "with a letter or digit",
        "dependsOn 'd': there is no such subtask",
        "c depends on itself; remove it",
    ]


def test_lone_surrogate_is_refused_and_ends_nothing() -> None:
    assert _refused(_graph({"id": "a", "spec": "half \ud83d"}))[0].startswith("not YAML: found invalid Unicode")
