"""Results are bounded, say what was left out, and lead on to it (MC-06)."""

import json
import sys
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_client import McpClient
from world import FIXTURES, World

from coordinate_agents.cli.mcp.paging import Page, bounded

# What a client that reads with asyncio's default takes as one line.
READ_AT_ONCE = 64 << 10
SPARSE = FIXTURES / "documents" / "graphs" / "18-random-sparse-500.yaml"


def test_a_status_of_500_subtasks_comes_in_pages_that_hold_all_of_them(world: World, client: McpClient) -> None:
    """MC-06."""
    done = world.run("create", SPARSE, "--json")
    assert done.code == 0, str(done)
    graph = client.data("graph_list")["graphs"][0]["id"]
    first = client.call("graph_status", taskId=graph)["structuredContent"]
    assert first["leftOut"]["lists"][0] == {
        "list": "data.subtasks", "first": 0, "shown": len(first["data"]["subtasks"]), "of": 500,
    }  # fmt: skip
    assert sum(first["data"]["frontier"].values()) == 500
    found, page, pages = [], first["leftOut"]["page"], 1
    found += first["data"]["subtasks"]
    while page is not None:
        answer = client.call("graph_status", taskId=graph, page=page, maxBytes=100_000)["structuredContent"]
        found += answer["data"]["subtasks"]
        page, pages = answer["leftOut"]["page"], pages + 1
    assert found == world.status(graph)["subtasks"]
    assert pages > 2
    whole = client.call("graph_status", taskId=graph, maxBytes=8 << 20)["structuredContent"]
    assert "leftOut" not in whole
    assert whole["data"]["subtasks"] == found


def test_no_line_is_longer_than_what_clients_read_at_once_unless_they_asked_for_more(
    world: World, client: McpClient
) -> None:
    """MC-06: a log of a megabyte, events, an export; valid UTF-8 whatever the agent printed."""
    print_it = "import sys; sys.stdout.buffer.write(('é日\\x1b[1m\"\\\\' * 150_000).encode() + bytes(range(256)))"
    agent = world.agent(f"{sys.executable} -c '{print_it}'; echo x > f; git add f; git commit -qm f")
    world.configure({"one": (agent,)})
    many = ", ".join(f"{{id: s{n}, spec: {'word ' * 50}}}" for n in range(6))
    client.data("graph_run", document=f"id: plan\nsubtasks: [{many}]\n")
    client.data("graph_wait", taskId="plan")
    for tool, arguments in (
        ("session_read", {"sessionId": "plan/s0"}),
        ("session_read", {"sessionId": "plan/s0", "cursor": 0, "raw": True}),
        ("session_inspect", {"sessionId": "plan/s0", "screen": True}),
        ("graph_inspect", {"taskId": "plan"}),
        ("graph_inspect", {"taskId": "plan", "subtaskId": "s0"}),
        ("graph_events", {"taskId": "plan", "after": 0}),
        ("graph_export", {"taskId": "plan"}),
        ("graph_schema", {}),
    ):
        client.call(tool, **arguments)
    assert max(len(line) for line in client.lines[1:]) < READ_AT_ONCE
    read = client.data("session_read", sessionId="plan/s0", cursor=0)
    again = client.data("session_read", sessionId="plan/s0", cursor=read["nextCursor"])
    assert again["cursor"] == read["nextCursor"] > 0
    events = client.call("graph_events", taskId="plan", after=0, limit=1000)["structuredContent"]
    seen = events["data"]["events"]
    while events.get("leftOut"):
        events = client.call("graph_events", taskId="plan", after=events["data"]["cursor"], limit=1000)
        events = events["structuredContent"]
        seen += events["data"]["events"]
    assert seen == world.run("events", "plan", "--after", "0", "--json").data["events"]


_TEXT = st.text(max_size=40) | st.integers(0, 400).map(lambda n: "x" * n)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXT,
    lambda below: st.lists(below, max_size=8) | st.dictionaries(st.text(max_size=8), below, max_size=5),
    max_leaves=60,
)


@settings(max_examples=50)
@given(st.dictionaries(st.text(min_size=1, max_size=5), _VALUES, max_size=6), st.integers(600, 4000))
def test_a_result_stays_json_keeps_its_keys_and_what_fits_is_untouched(data: dict[str, Any], limit: int) -> None:
    document = {"ok": True, "command": "graph-status", "data": data}
    found = bounded(document, Page(limit))
    size = len(json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode())
    assert set(found["data"]) == set(data)
    if "leftOut" not in found:
        assert found == document
        assert size <= limit
    else:
        assert found["leftOut"]["page"] is None or found["leftOut"]["page"].rpartition(":")[0]


@settings(max_examples=50)
@given(st.lists(st.text(max_size=300), min_size=1, max_size=60), st.integers(700, 3000))
def test_the_pages_of_a_list_are_the_list(entries: list[str], limit: int) -> None:
    document = {"ok": True, "command": "graph-list", "data": {"graphs": [{"id": each} for each in entries]}}
    found, token = [], None
    for _ in range(len(entries) + 1):
        page = Page.parse(limit, token)
        assert page is not None
        answer = bounded(document, page)
        found += [each["id"] for each in answer["data"]["graphs"]]
        token = answer.get("leftOut", {}).get("page")
        if token is None:
            break
    assert found == entries


def test_a_path_that_is_no_text_is_shown_with_its_bytes() -> None:
    document = {"ok": True, "command": "graph-path", "data": {"path": "/a/\udcff\udc80b"}}
    assert bounded(document, Page())["data"] == {"path": "/a/\\udcff\\udc80b"}


def test_a_token_that_no_result_had_is_none() -> None:
    for token in ("", "x", ":3", "data.subtasks:-1", "data.subtasks:1.5", "data.subtasks:9999999999", "a:٣"):
        assert Page.parse(1000, token) is None
