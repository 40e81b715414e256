"""setup-trust: show what the project's configuration may run, and record that the user trusts this version of it.

Trust is never taken for granted: without `yes` the answer says what would be trusted, and the command line asks.
"""

from typing import Any

from coordinate_agents.cli import config
from coordinate_agents.graph.errors import EXIT_DONE, EXIT_NEEDS_PERSON, GraphError
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.worktrees.values import value_class


@value_class
class Request:
    yes: bool = False
    digest: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`asks` are the lines of the file that would run something. Raises: INVALID_AGENT_CONFIG, CONFIG_UNTRUSTED when
    the file is not the version of `digest`."""
    loaded = config.load(runtime.root)
    if loaded.project_digest is None:
        raise GraphError(
            "INVALID_AGENT_CONFIG",
            f"There is no {config.PROJECT_FILE} in {loaded.root}, so there is nothing to trust.",
            kept="everything as it is",
        )
    if not loaded.is_trusted and request.yes:
        loaded = config.trust(runtime.root, digest=request.digest or loaded.project_digest)
    answer: dict[str, Any] = {
        "file": str(loaded.project_path),
        "digest": loaded.project_digest,
        "trusted": loaded.is_trusted,
        "asks": list(config.trust_lines(loaded)),
    }
    return Result(answer, EXIT_DONE if loaded.is_trusted else EXIT_NEEDS_PERSON)
