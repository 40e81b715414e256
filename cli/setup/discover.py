"""setup-discover: the agents that are configured or found on this machine, and what would be started for each."""

from dataclasses import asdict
from pathlib import Path

from coordinate_agents.cli import config
from coordinate_agents.cli.setup.agents import fields_json, look_at_agents, with_found
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.worktrees.values import value_class


@value_class
class Request:
    pass


def execute(runtime: Runtime | None, request: Request) -> Result:
    """`agents`: every configured one, and of the others those whose program is there. Starts nothing."""
    root = runtime.root if runtime is not None else Path.cwd()
    loaded = config.load(root)
    found = [each for each in look_at_agents(loaded.config, root) if each.configured or each.command is not None]
    return Result(
        {
            "agents": [{**asdict(each), "fields": fields_json(each)} for each in found],
            "defaultAgent": with_found(loaded.config, root).only_agent(),
            "sources": dict(loaded.sources),
            "userFile": str(loaded.user_path),
            "projectFile": str(loaded.project_path),
            "untrusted": list(loaded.inert),
        }
    )
