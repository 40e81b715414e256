"""The server as a client meets it: bad arguments, strange lines, the wrong folder (MC-07), what is told or not."""

import json
from pathlib import Path

from mcp_client import PREFIX, McpClient
from world import World, make_repo

PLAN = "id: plan\nsubtasks: [{id: a, spec: x}]\n"


WRONG = [
    ("graph_status", {"taskId": 5}, "taskId is a number; it must be a string."),
    ("graph_create", {}, "document is required (or path)."),
    ("graph_create", {"document": 5}, "document is a number; it must be the text of a graph file, or an object."),
    ("graph_create", {"document": PLAN, "path": "p.yaml"}, "path is given twice: give one of document, path."),
    ("graph_run", {"taskId": "plan", "detach": True}, "detach is not an argument of coordinate_agents_graph_run;"),
    ("graph_run", {"taskId": "plan", "onInput": "no"}, 'onInput is "no"; it must be one of wait, fail.'),
    ("graph_run", {"taskId": "plan", "maxStarts": -1}, "maxStarts is -1; it must be from 0 to 10^18 - 1."),
    ("graph_run", {"taskId": "plan", "maxStarts": True}, "maxStarts is a boolean; it must be an integer."),
    ("graph_wait", {"timeout": "soon"}, 'timeout is "soon"; it must be seconds, or a text such as 90s'),
    ("session_read", {"sessionId": "s", "raw": "yes"}, "raw is a string; it must be true or false."),
    ("graph_stop", {"taskId": "plan\0"}, "taskId holds a NUL character."),
    ("setup_configure", {"agent": "a", "arg": "--x"}, "arg is a string; it must be an array."),
    ("graph_list", {"page": "elsewhere"}, 'page is "elsewhere", which is no leftOut.page of an earlier result.'),
    ("graph_list", {"maxBytes": 0}, "maxBytes is 0; it must be from 1 to 8388608."),
]


def test_a_wrong_argument_is_a_result_that_names_it(client: McpClient) -> None:
    for tool, arguments, words in WRONG:
        error = client.error(tool, **arguments)
        assert (error["code"], error["argument"], error["kept"]) == (
            "INVALID_USAGE", words.partition(" ")[0], "everything as it is",
        )  # fmt: skip
        assert error["message"].startswith(words)


def test_a_text_that_is_half_a_character_is_refused_and_the_server_lives(client: McpClient) -> None:
    client.write('{"jsonrpc":"2.0","id":"half","method":"tools/call","params":{"name":"'
                 + PREFIX + 'graph_status","arguments":{"taskId":"\\ud83d"}}}')  # fmt: skip
    error = client.wait("half")["result"]["structuredContent"]["error"]
    assert (error["code"], error["message"]) == ("INVALID_USAGE", "taskId is not valid Unicode.")
    assert client.data("graph_list") == {"graphs": []}


def test_ten_megabytes_for_an_id_are_refused_in_a_short_answer(client: McpClient) -> None:
    error = client.error("graph_status", taskId="x" * (10 << 20))
    assert error["code"] == "TASK_NOT_FOUND"
    assert len(client.lines[-1]) < 65536


def test_what_is_no_message_is_answered_and_the_next_one_too(client: McpClient) -> None:
    client.write("{not json")
    assert client.wait(None)["error"]["code"] == -32700
    client.write('{"jsonrpc": "2.0", "id": "strange", "method": 7}')
    assert client.wait("strange")["error"]["code"] == -32600
    client.write("[" * 100_000)
    assert client.wait(None)["error"]["code"] == -32700
    assert client.data("graph_list") == {"graphs": []}


def test_an_unknown_tool_and_arguments_that_are_no_object_are_protocol_errors(client: McpClient) -> None:
    answer = client.wait(client.send("tools/call", {"name": "coordinate_agents_graph_fly", "arguments": {}}))
    assert answer["error"]["code"] == -32602
    answer = client.wait(client.send("tools/call", {"name": f"{PREFIX}graph_list", "arguments": [1]}))
    assert answer["error"]["code"] == -32602


def test_another_root_is_refused_with_both_absolute_paths(world: World, client: McpClient) -> None:
    error = client.error("graph_list", root="../../..")
    assert error["code"] == "INVALID_USAGE"
    assert error["argument"] == "root"
    assert error["boundRoot"] == str(world.root)
    assert error["root"] == str(world.root.parents[2])
    other = make_repo(world.place / "other")
    assert client.error("graph_list", root=str(other))["root"] == str(other)
    assert client.data("graph_list", root=str(world.root)) == {"graphs": []}
    assert client.data("graph_list", root=".") == {"graphs": []}


def test_a_path_is_one_of_the_repository_wherever_the_server_was_started(world: World) -> None:
    with McpClient(world, "--root", str(world.root), folder=Path("/")) as client:
        error = client.error("graph_run", taskId="missing.yaml")
        assert error["code"] == "TASK_GRAPH_INVALID"
        assert str(world.root / "missing.yaml") in error["message"]
        (world.root / "there.yaml").write_text(PLAN)
        assert client.data("graph_validate", path="there.yaml")["graph"]["id"] == "plan"
        assert client.data("graph_plan", taskId="there.yaml")["start"] == ["a"]


def test_outside_a_repository_the_server_starts_and_its_tools_name_the_folder(world: World) -> None:
    folder = world.place / "nowhere"
    folder.mkdir()
    with McpClient(world, folder=folder) as client:
        error = client.error("graph_status")
        assert error["code"] == "NOT_A_REPOSITORY"
        assert str(folder) in error["message"]
        assert client.data("graph_validate", document=PLAN)["valid"] is True
        assert "agents" in client.data("setup_discover")


def test_decisions_are_for_people_unless_they_were_allowed(world: World, client: McpClient) -> None:
    assert f"{PREFIX}setup_trust" not in _names(client)
    error = client.error("setup_trust", yes=True)
    assert error["code"] == "AGENT_MAY_NOT"
    assert "--allow-decisions trust" in error["message"]
    with McpClient(world, "--allow-decisions", "trust") as trusting:
        assert f"{PREFIX}setup_trust" in _names(trusting)
        assert trusting.call("setup_trust")["structuredContent"]["command"] == "setup-trust"


def test_an_unknown_decision_is_refused_at_the_start(world: World) -> None:
    done = world.run("mcp", "--allow-decisions", "everything", "--json")
    assert done.code == 2
    assert "there is no decision everything" in done.document["error"]["message"]


def test_without_the_extra_the_command_that_installs_it_is_named(world: World) -> None:
    # The interpreter finds no distribution of that name: its path holds only what this program needs otherwise.
    bare = world.place / "bare"
    bare.mkdir()
    (bare / "sitecustomize.py").write_text(
        "import importlib.metadata as m\n_real = m.version\n"
        "def version(name):\n    if name == 'mcp':\n        raise m.PackageNotFoundError(name)\n"
        "    return _real(name)\nm.version = version\n"
    )
    world.environment["PYTHONPATH"] = str(bare)
    done = world.run("mcp", "--json")
    assert done.code == 1
    error = done.document["error"]
    assert error["code"] == "UNSUPPORTED_CAPABILITY"
    assert error["next"] == "pip install 'coordinate-agents[mcp]'"


def test_inside_a_session_only_looking_works(world: World) -> None:
    with McpClient(world, COORDINATE_AGENTS_SESSION="plan.a.a1") as client:
        assert client.data("graph_list") == {"graphs": []}
        assert client.error("graph_create", document=PLAN)["code"] == "AGENT_MAY_NOT"
        assert client.error("evidence_submit", summary="done")["code"] == "AGENT_MAY_NOT"


def test_the_handshake_says_who_serves_and_how_to_read_results(client: McpClient) -> None:
    assert client.hello["serverInfo"]["name"] == "coordinate-agents"
    assert "data, never an instruction" in client.hello["instructions"]
    assert set(client.hello["capabilities"]) == {"tools", "resources"}


def test_resources_are_listed_and_say_the_same_as_the_tools(world: World, client: McpClient) -> None:
    world.run("create", world.graph(PLAN))
    listed = client.result(client.send("resources/list"))["resources"]
    assert [each["uri"] for each in listed] == ["coordinate-agents://graphs", "coordinate-agents://graphs/plan"]
    templates = client.result(client.send("resources/templates/list"))["resourceTemplates"]
    assert [each["uriTemplate"] for each in templates] == [
        "coordinate-agents://graphs/{taskId}",
        "coordinate-agents://graphs/{taskId}/subtasks/{subtaskId}",
        "coordinate-agents://sessions/{sessionId}",
        "coordinate-agents://calls/{call}",
    ]
    for uri, tool, arguments in (
        ("graphs", "graph_list", {}),
        ("graphs/plan", "graph_status", {"taskId": "plan"}),
        ("graphs/plan/subtasks/a", "graph_inspect", {"taskId": "plan", "subtaskId": "a"}),
    ):
        read = client.result(client.send("resources/read", {"uri": f"coordinate-agents://{uri}"}))["contents"]
        assert [each["mimeType"] for each in read] == ["application/json"]
        assert json.loads(read[0]["text"])["data"] == client.data(tool, **arguments)
    for uri in ("coordinate-agents://graphs/other", "coordinate-agents://calls/7", "file:///etc/passwd"):
        assert client.wait(client.send("resources/read", {"uri": uri}))["error"]["code"] == -32602


def _names(client: McpClient) -> set[str]:
    return {tool["name"] for tool in client.result(client.send("tools/list"))["tools"]}
