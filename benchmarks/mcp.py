"""What a call over MCP costs: a Session's status and output, alone and while other calls are under way.

A client that speaks the protocol by hand asks the real server over its pipes for one living Session, and for one that
works for a subtask. Reported are p50 and p99 of the whole round trip and the server's own CPU time per call, beside
`ping` as the floor (the SDK alone).
Reach: p50 <= 2 ms, and not blocked by a running call: the last rows are measured while a close that lasts for seconds
and a wait are under way. Run it as ``python benchmarks/mcp.py``. A benchmark, never a test.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CALLS = 300
PROGRAM = Path(sys.executable).with_name("coordinate-agents")
# Ends by no polite signal, so that closing it takes its whole bound.
AGENT = "#!/bin/sh\ntrap '' INT HUP TERM QUIT\necho ready; while :; do sleep 1; done\n"


class Server:
    """One server and the only client it has."""

    def __init__(self, repo: Path, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [PROGRAM, "mcp"], cwd=repo, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._next = 0
        client = {"name": "benchmark", "version": "1"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, **params: Any) -> Any:
        return self.wait(self.send(method, **params))

    def send(self, method: str, **params: Any) -> int:
        self._next += 1
        self._write({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        return self._next

    def call(self, tool: str, **arguments: Any) -> Any:
        answer = self.ask("tools/call", name=f"coordinate_agents_{tool}", arguments=arguments)
        assert not answer["isError"], answer
        return answer["structuredContent"]["data"]

    def wait(self, request: int) -> Any:
        assert self.process.stdout is not None
        while True:
            message = json.loads(self.process.stdout.readline())
            if message.get("id") == request:
                return message["result"]

    def cpu_ms(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()


def measure(server: Server, label: str, method: str, **params: Any) -> None:
    for _ in range(20):
        server.ask(method, **params)
    times, cpu = [], server.cpu_ms()
    for _ in range(CALLS):
        begun = time.perf_counter()
        server.ask(method, **params)
        times.append((time.perf_counter() - begun) * 1000)
    times.sort()
    used = (server.cpu_ms() - cpu) / CALLS
    print(
        f"{label:42} p50 {statistics.median(times):6.2f} ms   p99 {times[int(0.99 * CALLS)]:6.2f} ms"
        f"   least {times[0]:5.2f} ms   CPU {used:5.2f} ms"
    )


def main() -> None:
    place = Path(tempfile.mkdtemp(prefix="cag-bench-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    runtime = place / "run"
    runtime.mkdir(mode=0o700)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(place),
        "XDG_CONFIG_HOME": str(place / "config"),
        "XDG_RUNTIME_DIR": str(runtime),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    try:
        repo = place / "repo"
        repo.mkdir()
        for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
            subprocess.run(["git", *words], cwd=repo, env=env, check=True)
        agent = place / "agent.sh"
        agent.write_text(AGENT)
        agent.chmod(0o755)
        config = place / "config" / "coordinate-agents" / "config.yaml"
        config.parent.mkdir(parents=True)
        agents = "".join(f"  {name}: {{adapter: generic, command: {agent}}}\n" for name in ("stays", "goes"))
        config.write_text(f"version: 1\nagents:\n{agents}")
        begun = time.perf_counter()
        server = Server(repo, env)
        print(f"{'start to the answer of initialize':42} {(time.perf_counter() - begun) * 1000:10.0f} ms")
        stays, goes = (server.call("session_open", agent=name)["session"]["id"] for name in ("stays", "goes"))
        measure(server, "ping (the SDK alone)", "ping")
        looks = {
            "session_status": {"sessionId": stays},
            "session_read": {"sessionId": stays},
            "graph_list": {},
        }
        server.call("task_create", spec="Stay.", agent="stays", **{"as": "job"})
        works = server.call("task_dispatch", taskId="job", grace=0.5)["dispatch"]["sessionId"]
        for tool in ("session_status", "session_read"):
            call = {"name": f"coordinate_agents_{tool}", "arguments": {"sessionId": works}}
            measure(server, f"{tool} of a subtask's Session", "tools/call", **call)
        for tool, arguments in looks.items():
            measure(server, tool, "tools/call", name=f"coordinate_agents_{tool}", arguments=arguments)
        close = {"name": "coordinate_agents_session_close", "arguments": {"sessionId": goes, "bound": 60}}
        read = {"name": "coordinate_agents_session_read", "arguments": {"sessionId": stays, "wait": 20}}
        server.send("tools/call", **close)
        server.send("tools/call", **read)
        for tool, arguments in looks.items():
            label = f"{tool}, a close and a wait under way"
            measure(server, label, "tools/call", name=f"coordinate_agents_{tool}", arguments=arguments)
        assert server.process.stdin is not None
        begun = time.perf_counter()
        server.process.stdin.close()
        server.process.wait()
        print(f"{'end after the end of its input':42} {(time.perf_counter() - begun) * 1000:10.0f} ms")
        subprocess.run([PROGRAM, "graph-stop", "job"], cwd=repo, env=env, check=False)
        for session in (stays, goes):
            words = [PROGRAM, "session-close", session, "--now"]
            subprocess.run(words, cwd=repo, env=env, check=False)
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
