"""A client that speaks the protocol by hand over the server's real pipes, so that every line of its output is seen.

Nothing of the SDK is used: what the server says is judged by its bytes. Every result of a tool is held against the
output schema with which the tool is listed, whatever the test is about.
"""

import contextlib
import json
import queue
import subprocess
import threading
import time
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from world import PROGRAM, World

from coordinate_agents.cli.mcp.tools import DECISIONS, all_tools

ANSWER_LIMIT_S = 60.0
PREFIX = "coordinate_agents_"


class McpClient:
    """One server for the world's checkout. `lines` are all that it wrote to stdout, in order, as bytes.

    `through`: a program that starts the server and stands between; `told`: notifications that came.
    """

    def __init__(
        self,
        world: World,
        *options: str,
        name: str = "tester",
        folder: Path | None = None,
        through: tuple[str | Path, ...] = (),
        **environment: str,
    ) -> None:
        self.lines: list[bytes] = []
        self.errors = world.place / "server.err"
        self._answers: dict[Any, dict[str, Any]] = {}
        self._came: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.told: list[dict[str, Any]] = []
        self._next = 0
        self._called: dict[int, str] = {}
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [*through, PROGRAM.with_name("coordinate-agents-mcp"), *options],
                cwd=folder or world.root,
                env=world.environment | environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        threading.Thread(target=self._read, daemon=True).start()
        client = {"name": name, "version": "1"}
        begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        self.hello = self.wait(self.send("initialize", begin))["result"]
        self.notify("notifications/initialized")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of one tool, by its name without the prefix."""
        return self.result(self.begin(tool, **arguments))

    def data(self, tool: str, **arguments: Any) -> Any:
        """The data of a call that succeeds."""
        result = self.call(tool, **arguments)
        assert not result["isError"], result
        return result["structuredContent"]["data"]

    def error(self, tool: str, **arguments: Any) -> Any:
        """The error object of a call that is refused."""
        result = self.call(tool, **arguments)
        assert result["isError"], result
        return result["structuredContent"]["error"]

    def begin(self, tool: str, **arguments: Any) -> int:
        """Send the call and do not wait; its id."""
        request = self.send("tools/call", {"name": PREFIX + tool, "arguments": arguments})
        self._called[request] = PREFIX + tool
        return request

    def result(self, request: int) -> dict[str, Any]:
        answer = self.wait(request)
        assert "result" in answer, answer
        found: dict[str, Any] = answer["result"]
        tool = self._called.pop(request, None)
        if tool is not None:
            _output_schemas()[tool].validate(found["structuredContent"])
            assert json.loads(found["content"][0]["text"]) == found["structuredContent"]
        return found

    def send(self, method: str, params: dict[str, Any] | None = None) -> int:
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method}
        self.write(json.dumps(message if params is None else {**message, "params": params}))
        return self._next

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        self.write(json.dumps(message if params is None else {**message, "params": params}))

    def write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def wait(self, request: Any) -> dict[str, Any]:
        """The answer to this request, in whatever order answers come."""
        deadline = time.monotonic() + ANSWER_LIMIT_S
        while request not in self._answers:
            try:
                message = self._came.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no answer to {request}; {self.errors.read_text()[-2000:]}") from None
            assert message is not None, f"the server ended; {self.errors.read_text()[-2000:]}"
            if "method" in message:
                self.told.append(message)
            else:
                self._answers[message["id"]] = message
        return self._answers.pop(request)

    def has_answered(self, request: Any) -> bool:
        return request in self._answers or any(json.loads(line).get("id") == request for line in list(self.lines))

    def close(self) -> float:
        """End its standard input and wait for its end; how many seconds that took."""
        begun = time.monotonic()
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(timeout=30)
        return time.monotonic() - begun

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            with contextlib.suppress(ValueError):  # a test that looks at `lines` finds it
                self._came.put(json.loads(line))
        self._came.put(None)


@cache
def _output_schemas() -> dict[str, Draft202012Validator]:
    return {tool.name: Draft202012Validator(tool.output_schema) for tool in all_tools(DECISIONS)}
