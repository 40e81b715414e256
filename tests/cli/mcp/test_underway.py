"""Calls side by side, clients that leave, and two callers at once (MC-01, MC-02, MC-03, MC-05, MC-08)."""

import contextlib
import fcntl
import json
import os
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
from pathlib import Path

import anyio
import psutil
import pytest
from mcp_client import PREFIX, McpClient
from world import FIXTURES, PROGRAM, World, until

from coordinate_agents.cli.invocation import Invocation
from coordinate_agents.cli.mcp.calls import Calls
from coordinate_agents.cli.mcp.resources import look

PLAN = "id: plan\nsubtasks: [{id: a, spec: x}]\n"
HOOKS = ("post-checkout", "post-commit", "pre-commit", "reference-transaction")


def _start(world: World, client: McpClient) -> int:
    """A graph whose only agent waits at its gate, started over MCP; the agent's process id."""
    world.hold("a")
    data = client.data("graph_run", document=PLAN)
    assert data["graph"]["id"] == "plan"
    assert data["cursor"] >= 1
    return world.wait_for_start("a")


def _ended(world: World) -> str:
    return str(world.run("graph-wait", "plan", "--json").data["graph"]["state"])


def test_every_line_is_the_protocols_whatever_agents_hooks_and_libraries_print(world: World) -> None:
    """MC-01."""
    for name in HOOKS:
        hook = world.root / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\necho hello from a hook\n")
        hook.chmod(0o755)
    agent = world.agent('echo hello; echo hello >&2; echo "$S" >"f-$S"; git add -A; git commit -qm work')
    world.configure({"one": (agent,)})
    with McpClient(world, "--allow-decisions", "all", PYTHONWARNINGS="always", GIT_TRACE="1") as client:
        client.data("graph_run", document=PLAN)
        assert client.data("graph_wait", taskId="plan")["graph"]["state"] == "SUCCEEDED"
        session = client.data("graph_status")["subtasks"][0]["session"]["id"]
        given = {"taskId": "plan", "sessionId": session, "document": PLAN, "subtaskId": "a"}
        for tool in client.result(client.send("tools/list"))["tools"]:
            known = tool["inputSchema"]["properties"]
            arguments = {name: value for name, value in given.items() if name in known}
            if tool["name"] in (f"{PREFIX}graph_run", f"{PREFIX}graph_plan"):
                del arguments["document"]
            result = client.call(tool["name"].removeprefix(PREFIX), **arguments)
            assert result["structuredContent"]["command"].replace("-", "_") == tool["name"].removeprefix(PREFIX)
            assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    messages = [json.loads(line) for line in client.lines]
    assert {message["jsonrpc"] for message in messages} == {"2.0"}


def test_no_child_eats_what_the_client_writes_next(world: World, client: McpClient) -> None:
    """MC-02."""
    for key, value in (("core.editor", "cat"), ("core.pager", "cat"), ("credential.helper", "!cat")):
        (world.home / ".gitconfig").open("a").write(f"[{key.partition('.')[0]}]\n\t{key.partition('.')[2]} = {value}\n")
    hook = world.root / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ncat\n")
    hook.chmod(0o755)
    run = client.begin("graph_run", document=PLAN)
    requests = [client.begin("graph_list") for _ in range(20)]
    assert [client.result(each)["isError"] for each in requests] == [False] * 20
    assert client.result(run)["structuredContent"]["data"]["graph"]["id"] == "plan"
    server = psutil.Process(client.process.pid)
    assert Path(f"/proc/{server.pid}/fd/0").readlink() == Path("/dev/null")
    assert _ended(world) == "SUCCEEDED"


def test_a_look_is_answered_while_a_wait_and_a_close_are_under_way(world: World, client: McpClient) -> None:
    """MC-03: by order, not by time. The close lasts until its bound: the agent ignores every polite signal."""
    agent = world.place / "stays.sh"
    agent.write_text("#!/bin/sh\ntrap '' INT HUP TERM QUIT\nwhile :; do sleep 0.1; done\n")
    agent.chmod(0o755)
    world.configure({"one": (world.agent("exec sleep 60"),), "stays": (agent,)})
    client.data("graph_run", document=PLAN)
    until(lambda: world.status("plan")["subtasks"][0]["phase"] == "working" or None, "its agent works")
    session = client.data("session_open", agent="stays")["session"]["id"]
    close = client.send(
        "tools/call",
        {
            "name": f"{PREFIX}session_close",
            "arguments": {"sessionId": session, "bound": 10},
            "_meta": {"progressToken": "closing"},
        },
    )
    wait = client.begin("graph_wait", taskId="plan")
    for _ in range(5):
        assert client.data("session_status", sessionId=session)["session"]["id"] == session
        client.data("session_read", sessionId=session)
        assert client.data("graph_status", taskId="plan")["graph"]["id"] == "plan"
    assert not client.has_answered(wait)
    assert not client.has_answered(close)
    stopped = client.data("graph_stop", taskId="plan")
    assert stopped["graph"]["state"] == "STOPPED", stopped
    assert client.result(wait)["structuredContent"]["exitCode"] == 4
    assert client.result(close)["structuredContent"]["data"]["survivors"] == []
    told = [each["params"] for each in client.told if each["method"] == "notifications/progress"]
    assert {each["progressToken"] for each in told} == {"closing"}
    assert {each["message"] for each in told} == {"session-close is under way"}


def test_a_look_finds_a_thread_however_many_calls_wait(world: World, client: McpClient) -> None:
    _start(world, client)
    waits = [client.begin("graph_wait", taskId="plan") for _ in range(60)]
    assert client.data("graph_status", taskId="plan")["graph"]["state"] == "RUNNING"
    assert not any(client.has_answered(each) for each in waits)
    world.release("a")
    assert {client.result(each)["structuredContent"]["data"]["graph"]["state"] for each in waits} == {"SUCCEEDED"}


def test_looks_at_a_host_that_does_not_answer_hold_up_no_other(world: World, client: McpClient) -> None:
    """Each of them takes a thread for a second, and there are more of them than threads."""
    stays = ("/bin/sh", "-c", "exec sleep 600")
    world.configure({"silent": stays, "other": stays}, default="other")
    silent, other = (client.data("session_open", agent=name)["session"] for name in ("silent", "other"))
    os.kill(silent["hostPid"], signal.SIGSTOP)
    try:
        looks = [client.begin("session_status", sessionId=silent["id"]) for _ in range(80)]
        assert client.data("session_status", sessionId=other["id"])["session"]["liveness"] == "live"
        assert client.data("graph_list") == {"graphs": []}
        answered = [each for each in looks if client.has_answered(each)]
        assert len(answered) < len(looks) // 2
    finally:
        os.kill(silent["hostPid"], signal.SIGCONT)
    assert {client.result(each)["structuredContent"]["data"]["session"]["id"] for each in looks} == {silent["id"]}
    for session in (silent, other):
        client.data("session_close", sessionId=session["id"], now=True)


def test_the_server_ends_with_its_input_though_its_client_reads_nothing(world: World) -> None:
    """Neither an answer that was cut in the middle nor requests that nobody takes any more keep it."""
    message = {"jsonrpc": "2.0", "method": "tools/list", "params": {}}
    with subprocess.Popen(
        [PROGRAM.with_name("coordinate-agents-mcp")],
        cwd=world.root,
        env=world.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "deaf", "version": "1"}}
        begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client}
        lines = [begin, *({**message, "id": number} for number in range(1, 200)), "no message", *["{}"] * 200]
        server.stdin.write("".join(f"{json.dumps(line)}\n" for line in lines).encode())
        server.stdin.flush()
        out = server.stdout.fileno()
        size = fcntl.fcntl(out, fcntl.F_GETPIPE_SZ)
        until(lambda: _unread(out) > size - select.PIPE_BUF or None, "the pipe is full")
        server.stdin.close()
        assert server.wait(30) == 0


def _unread(descriptor: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4))[0])


def test_a_cancelled_call_ends_alone_and_its_session_lives(world: World, client: McpClient) -> None:
    """MC-03: a client's time-out."""
    _start(world, client)
    wait = client.begin("graph_wait", taskId="plan", timeout=20)
    client.notify("notifications/cancelled", {"requestId": wait, "reason": "timed out"})
    subtask = client.data("graph_status", taskId="plan")["subtasks"][0]
    assert (subtask["state"], subtask["session"]["state"]) == ("RUNNING", "busy")
    assert client.data("session_status", sessionId="plan/a")["session"]["liveness"] == "live"
    world.release("a")
    assert client.data("graph_wait", taskId="plan")["graph"]["state"] == "SUCCEEDED"
    assert not client.has_answered(wait)


@pytest.mark.parametrize("way", ["the end of input", "kill -9 of the client"])
def test_a_run_goes_on_when_the_client_is_gone_and_the_server_ends(world: World, way: str) -> None:
    """MC-05."""
    pid_file = world.place / "server.pid"
    through = (sys.executable, FIXTURES / "mcp" / "forwarder.py")
    client = McpClient(world, through=through, SERVER_PID_FILE=str(pid_file))
    agent = _start(world, client)
    server = psutil.Process(int(pid_file.read_text()))
    if way == "the end of input":
        client.close()
    else:
        client.process.kill()
        client.process.wait()
    psutil.wait_procs([server], timeout=10)
    assert not server.is_running()
    assert psutil.pid_exists(agent)
    assert world.status("plan")["graph"]["state"] == "RUNNING"
    world.release("a")
    assert _ended(world) == "SUCCEEDED"
    world.assert_nothing_left("plan")


def test_what_was_begun_is_finished_when_the_client_leaves_in_the_middle_of_a_call(world: World) -> None:
    client = McpClient(world)
    client.data("graph_create", document=PLAN)
    world.hold("a")
    client.data("graph_run", taskId="plan")
    agent = world.wait_for_start("a")
    os.kill(agent, signal.SIGSTOP)  # it dies by SIGKILL only, at the end of the close's bound
    client.begin("graph_stop", taskId="plan")
    until(lambda: _requests(world) or None, "the request is recorded")
    client.close()
    until(lambda: world.status("plan")["graph"]["state"] == "STOPPED" or None, "the graph is stopped")
    world.assert_nothing_left("plan")
    world.release("a")


def test_two_callers_meet_one_truth(world: World, client: McpClient) -> None:
    """MC-08."""
    _start(world, client)
    refused = client.error("graph_run", taskId="plan")
    assert refused["code"] == "LEASE_HELD"
    driver = world.status("plan")["graph"]["driver"]["pid"]
    assert str(driver) in refused["message"]
    assert world.run("graph-stop", "plan").code == 0
    assert client.data("graph_status", taskId="plan")["graph"]["state"] == "STOPPED"
    assert client.data("graph_status", taskId="plan")["subtasks"] == world.status("plan")["subtasks"]
    world.release("a")


def test_a_request_records_the_client_by_the_name_that_it_gave(world: World) -> None:
    with McpClient(world, name="some client\x1b[31m") as client:
        _start(world, client)
        client.data("graph_stop", taskId="plan")
    assert _requests(world) == [("stop", "mcp:some client\\x1b[31m")]
    world.release("a")


def test_a_call_that_takes_longer_says_so_and_its_result_is_kept(world: World) -> None:
    world.hold("a")
    run = world.start("run", world.graph(PLAN))
    world.wait_for_start("a")
    told: list[tuple[float, float]] = []

    async def story() -> None:
        async def tell(waited: float, whole: float) -> None:
            told.append((waited, whole))

        def invocation(name: str, **values: object) -> Invocation:
            found = look(name, values)
            assert found.verb is not None
            return Invocation(found.verb, found.values, str(world.root), True)

        async with anyio.create_task_group() as group:
            calls = Calls(group, str(world.root), longest_s=0.2)
            document, code = await calls.carry_out(invocation("graph-wait", graph="plan"), None, tell)
            assert (code, document["ok"], document["data"]["stillRunning"]) == (0, True, True)
            assert document["data"]["graph"] == {"id": "plan"}
            assert document["data"]["cursor"] >= 1
            short = invocation("graph-wait", graph="plan", timeout=0.1)
            document, code = await calls.carry_out(short, None, tell)
            assert (code, document["error"]["code"]) == (6, "WAIT_TIMED_OUT")
            assert "within 0.1 s" in document["error"]["message"]
            assert told == []
            # An interpreter alone takes longer than a hundredth of a second to start.
            calls = Calls(group, str(world.root), longest_s=0.01)
            document, code = await calls.carry_out(invocation("graph-validate", file="-"), PLAN.encode(), tell)
            assert (code, document["data"]["stillRunning"]) == (0, True)
            call = calls.underway[document["data"]["call"]]
            assert document["data"]["next"].endswith(f"coordinate-agents://calls/{call.id}")
            await call.ended.wait()
            assert call.outcome is not None
            assert call.outcome[0]["data"]["valid"] is True

    anyio.run(story)
    world.release("a")
    assert run.wait(timeout=30) == 0


def _requests(world: World) -> list[tuple[str, str]]:
    path = world.root / ".git" / "coordinate-agents" / "state.db"
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT kind, who FROM requests ORDER BY id").fetchall()
