"""mcp: serve the verbs as MCP tools until the client goes away.

The SDK is loaded here and nowhere else: no other verb pays for it, and none needs it.
"""

import gc
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from coordinate_agents.cli.mcp.tools import decisions
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.worktrees.values import value_class

_NEEDED: Final = (2, 3)
_INSTALL: Final = "pip install 'coordinate-agents[mcp]'"


@value_class
class Request:
    tools: str = "all"
    allow_decisions: str | None = None


def execute(runtime: Runtime | None, request: Request) -> Result:
    """Never returns: the process ends with its standard input. Raises: UNSUPPORTED_CAPABILITY, INVALID_USAGE."""
    try:
        allowed = decisions(request.allow_decisions)
    except ValueError as error:
        raise GraphError("INVALID_USAGE", f"--allow-decisions: there is no decision {error}.") from None
    _require_sdk()
    gc.disable()  # what is loaded now stays: looking through it again and again would cost a sixth of the start
    from coordinate_agents.cli.mcp.server import serve

    folder = str(runtime.root if runtime is not None else Path.cwd())
    serve(folder, which=request.tools, allowed=allowed)
    return Result({})


def _require_sdk() -> None:
    try:
        found = version("mcp")
        numbers = tuple(int(part) for part in found.split(".")[:2])
    except PackageNotFoundError:
        raise _missing("the package mcp is not installed") from None
    except ValueError:
        return  # a version that is no release: its owner knows
    if numbers < _NEEDED:
        raise _missing(f"the package mcp is version {found}, and {'.'.join(map(str, _NEEDED))} is needed")


def _missing(why: str) -> GraphError:
    return GraphError(
        "UNSUPPORTED_CAPABILITY",
        f"The MCP server needs the extra mcp: {why}.",
        kept="everything as it is",
        next=_INSTALL,
    )
