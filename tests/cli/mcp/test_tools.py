"""The tools as they are made from the verb table: names, arguments, hints, groups. Pure."""

import json

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from coordinate_agents.cli.mcp.arguments import read
from coordinate_agents.cli.mcp.tools import DECISIONS, Tool, all_tools, decisions, tools
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.table import VERBS

SIX = tuple(f"coordinate_agents_session_{name}" for name in ("open", "status", "inspect", "write", "read", "close"))
TOOLS = {tool.name: tool for tool in all_tools(DECISIONS)}


def _names(which: str, *allowed: str) -> set[str]:
    return {tool.name for tool in tools(which, allowed)}


def test_every_verb_is_a_tool_but_those_that_need_a_terminal_or_serve_or_are_for_a_shell() -> None:
    left_out = {"session-attach", "graph-watch", "mcp", "completion"}
    assert {tool.verb.name for tool in TOOLS.values()} == {verb.name for verb in VERBS} - left_out
    assert set(SIX) <= _names("all")


def test_groups_hold_what_their_name_says_and_core_what_a_run_takes() -> None:
    assert set(SIX) <= _names("core")
    assert {"coordinate_agents_graph_run", "coordinate_agents_evidence_submit"} <= _names("core")
    for which in ("session", "graph", "task"):
        assert {name.split("_")[2] for name in _names(which)} <= {which, "recover"}
    verbs = ("create", "dispatch", "status", "inspect", "review", "resume", "stop")
    task = {f"coordinate_agents_task_{verb}" for verb in verbs} | {"coordinate_agents_recover_inspect"}
    assert _names("task", "review") == task
    assert _names("task") == task - {"coordinate_agents_task_review"}, "a decision"
    assert _names("core") | _names("session") | _names("graph") | _names("task") <= _names("all")


def test_arguments_are_called_as_the_contract_calls_them() -> None:
    def arguments(name: str) -> set[str]:
        return {each.name for each in TOOLS[f"coordinate_agents_{name}"].arguments}

    common = {"root", "maxBytes", "page"}
    assert arguments("graph_create") == {"document", "path", "as", "worktreeRoot", *common}
    assert arguments("graph_inspect") >= {"taskId", "subtaskId", "part"}
    assert arguments("session_open") >= {"taskId", "subtaskId", "agent", "say"}
    assert arguments("session_read") == {
        "sessionId", "cursor", "maxBytes", "maxLines", "wait", "raw", "root",
    }  # fmt: skip
    assert {"detach", "follow"} & {each.name for tool in TOOLS.values() for each in tool.arguments} == set()


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_a_tool_says_what_it_takes_and_what_it_does(tool: Tool) -> None:
    schema = tool.input_schema
    assert schema["additionalProperties"] is False
    assert set(schema.get("required", ())) <= set(schema["properties"])
    for name, argument in schema["properties"].items():
        assert name.isascii()
        assert argument["description"]
    assert not (tool.hints["readOnlyHint"] and tool.hints["destructiveHint"])
    if tool.verb.access == "write":
        assert not tool.hints["readOnlyHint"]
    Draft202012Validator.check_schema(schema)
    Draft202012Validator.check_schema(tool.output_schema)
    assert '"type": [' not in json.dumps([schema, tool.output_schema]), "one word, for those who have no lists there"
    with pytest.raises(GraphError, match=f"noSuch is not an argument of {tool.name}") as caught:
        read(tool, {"noSuch": 1}, root="/", allowed=DECISIONS)
    assert caught.value.code == "INVALID_USAGE"


def test_options_that_decide_are_not_offered_unless_they_are_allowed() -> None:
    assert decisions(None) == frozenset()
    assert decisions("all") == frozenset(DECISIONS)
    assert decisions("review, trust") == {"review", "trust"}
    with pytest.raises(ValueError, match="fly; decisions are review"):
        decisions("review,fly")
    assert "coordinate_agents_setup_trust" not in _names("all")
    assert "coordinate_agents_setup_trust" in _names("all", "trust")
