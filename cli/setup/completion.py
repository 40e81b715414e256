"""completion: the script that lets a shell complete verbs, options, graphs and subtasks. To be read by the shell."""

import os
from pathlib import PurePath
from typing import Any, Final

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.worktrees.values import value_class

PROGRAM: Final = "coordinate-agents"
ALIAS: Final = "cag"
# Set by the script for each question; its name is made of the program's by click.
VARIABLE: Final = "_COORDINATE_AGENTS_COMPLETE"


@value_class
class Request:
    shell: str | None = None


def execute(runtime: Any, request: Request) -> Result:
    """`script` is click's own, for both names of the program. Raises: INVALID_USAGE, UNSUPPORTED_CAPABILITY."""
    from click.shell_completion import get_completion_class

    shell = request.shell or _own_shell()
    made = get_completion_class(shell)
    if made is None:
        raise GraphError(
            "UNSUPPORTED_CAPABILITY",
            f"The installed click cannot complete for {shell}.",
            kept="everything as it is",
            next="pip install --upgrade click",
        )
    # The command itself is needed only to answer questions, which this call is not.
    scripts = [made(None, {}, name, VARIABLE) for name in (PROGRAM, ALIAS)]  # type: ignore[arg-type]
    return Result({"shell": shell, "script": "\n".join(_source(each, shell) for each in scripts)})


def _source(script: Any, shell: str) -> str:
    # `source` of bash also asks which bash is there, and complains of an old one in place of the script.
    text: str = script.source_template % script.source_vars()
    return text.strip() + "\n"


def _own_shell() -> str:
    """The shell that the user has. Raises: INVALID_USAGE when it is none that is known."""
    name = PurePath(os.environ.get("SHELL", "")).name
    if name in ("bash", "zsh", "fish"):
        return name
    raise GraphError(
        "INVALID_USAGE",
        "Name the shell: bash, zsh, fish or powershell.",
        kept="everything as it is",
        next="coordinate-agents completion bash",
    )
