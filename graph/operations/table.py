"""The verbs: names, parameters and the module that carries each out. CLI and MCP are both made from this table.

Modules are named by string and imported only when their verb is chosen: a read verb loads neither networkx nor
pydantic. Each module has a frozen dataclass `Request` whose fields are the parameters below (snake_case), and
`execute(runtime, request)` which returns a `Result`. A verb without a repository gets None for the runtime.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

_OPERATIONS: Final = "coordinate_agents.graph.operations"


@dataclass(frozen=True, slots=True)
class Param:
    """One argument or option. `name` is the field of Request; a positional one has no leading dashes in the CLI.

    kind: text, path (a file to read), flag, integer, duration (seconds), choice (see `choices`).
    """

    name: str
    help: str
    kind: Literal["text", "path", "flag", "integer", "duration", "choice"] = "text"
    positional: bool = False
    required: bool = False
    multiple: bool = False
    choices: tuple[str, ...] = ()
    default: Any = None


@dataclass(frozen=True, slots=True)
class Verb:
    """`access`: none (no repository), read (database opened read-only), write."""

    name: str
    summary: str
    access: Literal["none", "read", "write"]
    params: tuple[Param, ...] = ()

    @property
    def module(self) -> str:
        return f"{_OPERATIONS}.{self.name.removeprefix('graph-').replace('-', '_')}"


@dataclass(frozen=True, slots=True)
class Result:
    """What a verb answers. `data` is the JSON document's data (contract section 13)."""

    data: dict[str, Any]
    exit_code: int = 0


GRAPH: Final = Param("graph", "graph id; may be left out when exactly one is unfinished", positional=True)
SUBTASK: Final = Param("subtask", "subtask id", positional=True)
FILE: Final = Param("file", "graph file", kind="path", positional=True, required=True)
