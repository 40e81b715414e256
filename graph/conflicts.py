"""A conflict between two subtasks in words, and the command that shows it. Plain JSON rows in, text out.

Decides nothing: whether there is a conflict was asked of git. Neither state nor files are looked at.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

PROGRAM: Final = "coordinate-agents"
_NAMED: Final = 3
# Enough of a hash for git to know it in any repository.
_HASH_CHARACTERS: Final = 12


def named(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def conflict_words(conflict: Mapping[str, Any]) -> str:
    return f"{' and '.join(conflict['pair'])} do not merge in {named(conflict.get('paths', ()))}"


def compare(graph: str, conflict: Mapping[str, Any], runs: Mapping[str, Mapping[str, Any]]) -> str:
    """The command that shows in what the two sides differ. By commit: a branch may be gone, the pin is not."""
    commits = [(runs.get(name) or {}).get("verified_commit") for name in conflict["pair"]]
    if None in commits:
        return f"{PROGRAM} graph-diff {graph}"
    paths = [shlex.quote(path) for path in conflict.get("paths", ())[:_NAMED]]
    return " ".join(["git diff", *(str(commit)[:_HASH_CHARACTERS] for commit in commits), "--", *paths])


def base_conflict(graph: str, conflict: Mapping[str, Any], runs: Mapping[str, Mapping[str, Any]]) -> Mapping[str, str]:
    """A base conflict in the shape of a recorded failure: computed, for nothing of the subtask's own failed."""
    return {
        "code": "BASE_CONFLICT",
        "message": f"its prerequisites {conflict_words(conflict)}; let one depend on the other, in a new graph.",
        "kept": "every verified commit",
        "next": compare(graph, conflict, runs),
    }
