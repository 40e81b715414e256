"""The client of the official SDK over real pipes, in both eras of the protocol; and schemas that results keep to."""

from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_client import PREFIX
from world import PROGRAM, World

PLAN: dict[str, Any] = {
    "id": "plan",
    "subtasks": [{"id": "a", "spec": "x"}, {"id": "b", "spec": "x", "dependsOn": "a"}],
}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_graph_runs_to_its_end_through_the_official_client(world: World, mode: str) -> None:
    """The client itself checks each result against the tool's output schema."""
    seen: list[float] = []

    async def story() -> None:
        async with Client(_server(world), mode=mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            annotations = tools[f"{PREFIX}graph_status"].annotations
            assert annotations is not None
            assert (annotations.read_only_hint, annotations.idempotent_hint) == (True, True)
            run = await client.call_tool(f"{PREFIX}graph_run", {"document": PLAN, "integrate": True})
            assert not run.is_error, run
            waited = await client.call_tool(f"{PREFIX}graph_wait", {"taskId": "plan"}, progress_callback=_note(seen))
            assert waited.structured_content["data"]["graph"]["state"] == "INTEGRATED"
            refused = await client.call_tool(f"{PREFIX}graph_status", {"taskId": "other"})
            assert refused.is_error
            assert refused.structured_content["error"]["code"] == "TASK_NOT_FOUND"
            uri = "coordinate-agents://graphs/plan"
            assert '"INTEGRATED"' in (await client.read_resource(uri)).contents[0].text
            with pytest.raises(MCPError):
                await client.call_tool(f"{PREFIX}nothing", {})

    anyio.run(story)
    assert world.files("coordinate-agents/plan/integration")["f-b"] == "b"


def _server(world: World) -> StdioServerParameters:
    program = str(PROGRAM.with_name("coordinate-agents-mcp"))
    return StdioServerParameters(command=program, env=world.environment, cwd=world.root)


def _note(seen: list[float]) -> Any:
    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    return note


@pytest.mark.parametrize("words", [("status",), ("list", "--json"), ("--help",), ("setup-discover",)])
def test_no_other_verb_loads_the_sdk(world: World, words: tuple[str, ...]) -> None:
    world.environment["PYTHONPROFILEIMPORTTIME"] = "1"
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in world.run(*words).err.splitlines()}
    assert "coordinate_agents" in loaded
    assert {"mcp", "mcp_types", "starlette"} & loaded == set()
