"""A planning agent's way with a single Task: the tools for it alone, polled with a cursor, decided where allowed."""

from typing import Any

from mcp_client import PREFIX, McpClient
from world import World


def test_a_task_is_created_dispatched_polled_and_reviewed_over_mcp(world: World) -> None:
    world.hold("task")
    with McpClient(world, "--tools", "task", "--allow-decisions", "review") as client:
        names = {tool["name"].removeprefix(PREFIX) for tool in client.result(client.send("tools/list"))["tools"]}
        assert names == {
            "recover_inspect",
            *(f"task_{verb}" for verb in ("create", "dispatch", "status", "inspect", "review", "resume", "stop")),
        }
        made = client.data("task_create", spec="Add a line.", **{"as": "job"})
        assert (made["task"]["id"], made["created"]) == ("job", True)
        sent = client.data("task_dispatch", taskId="job", grace="1ms")
        assert (sent["task"]["state"], sent["dispatch"]["sent"]) == ("WAITING_IMPLEMENTER", "IMPLEMENT")
        assert client.error("task_dispatch", taskId="job")["code"] == "TASK_ALREADY_RUNNING"

        world.wait_for_start("task")
        told = client.data("task_status", taskId="job", brief=True)
        world.release("task")
        while told["task"]["state"] != "REVIEWING":
            told = _changed(client, told["cursor"])
        assert set(told["task"]) == {"id", "state", "phase", "sessionId", "next"}

        assert client.data("task_review", taskId="job", decision="REVIEW_APPROVED")["task"]["state"] == "APPROVED"
    world.assert_nothing_left("job")


def _changed(client: McpClient, cursor: int) -> Any:
    """The next answer that says something new."""
    while True:
        told = client.data("task_status", taskId="job", since=cursor, wait=20)
        if told["changed"]:
            return told
        assert set(told["task"]) == {"id", "state"}
