"""The text of graph-deliver: where the branch stands, and the commands that a person may paste."""

from collections.abc import Mapping
from typing import Any

from coordinate_agents.cli.layout import cell, short


def delivered(data: Mapping[str, Any]) -> list[str]:
    done = data["delivered"]
    branch, commit = cell(done["branch"]), short(done["commit"])
    if done["previous"] == done["commit"]:
        said = f"Branch {branch} holds {commit} already."
    elif done["previous"]:
        said = f"Branch {branch} moved forward from {short(done['previous'])} to {commit}."
    else:
        said = f"New branch {branch} at {commit}."
    what = f"one commit of {short(done['source'])}" if done["isSquashed"] else "the integrated commit itself"
    return [
        f"{said} It is {what}; nothing was pushed.",
        "",
        "To publish it:",
        *(f"  {cell(line)}" for line in data["publish"][:1]),
        "and then one of:",
        *(f"  {cell(line)}" for line in data["publish"][1:]),
        "",
        f"Worktrees that are not needed any more: coordinate-agents graph-cleanup {data['graph']} --all",
    ]
