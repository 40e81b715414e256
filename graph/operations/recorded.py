"""The frozen part of a graph's record: configuration, git settings and worktree root, as they were at graph-create."""

import json
import os
from pathlib import Path

from coordinate_agents.graph import config as configuration
from coordinate_agents.graph.config import Config
from coordinate_agents.graph.store.rows import GraphRow

_ROOT_VARIABLE = "COORDINATE_AGENTS_WORKTREES"


def recorded_text(config: Config, *, frozen: str, worktree_root: str) -> str:
    """What `create_graph` stores as the graph's configuration."""
    record = {"config": json.loads(configuration.to_json(config)), "git": frozen, "worktreeRoot": worktree_root}
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def recorded_config(row: GraphRow) -> tuple[Config, str, str]:
    """(configuration, frozen git settings, worktree root) of a graph."""
    record = json.loads(row.config)
    return configuration.from_json(json.dumps(record["config"])), record["git"], record["worktreeRoot"]


def worktree_root(config: Config, option: str | None) -> Path:
    """The folder for worktrees: option, configuration, environment, then the user's state folder. Absolute."""
    chosen = option or config.worktree_root or os.environ.get(_ROOT_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "coordinate-agents" / "worktrees"
