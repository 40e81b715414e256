"""Branches and worktrees of graphs that no record knows any more, such as after the state folder was deleted. Looks
only: nobody can say what of it is still wanted.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.model import BRANCH_PREFIX, RepositoryFacts
from coordinate_agents.worktrees.ownership import REASON, admin_dirs
from coordinate_agents.worktrees.reffiles import read_head, read_refs, read_small
from coordinate_agents.worktrees.values import value_class

_GIT: Final = "/.git"


@value_class
class Leftovers:
    """`branches` are short names, `worktrees` the folders that are registered with the Runtime's lock; both sorted."""

    branches: tuple[str, ...] = ()
    worktrees: tuple[str, ...] = ()


def leftovers(facts: RepositoryFacts, known: Collection[str]) -> Leftovers:
    """What is there of graphs whose id is not among `known`. A few files for each worktree; no git call."""
    common = Path(facts.common_dir)
    names = [name.removeprefix("refs/heads/") for name in read_refs(common, f"{BRANCH_PREFIX}/")]
    places = []
    for admin in admin_dirs(facts):
        if not (read_small(admin / "locked") or "").startswith(f"{REASON} "):
            continue
        place = (read_small(admin / "gitdir") or "").removesuffix("\n").removesuffix(_GIT)
        head = read_head(admin, common)
        graph = _graph_of((head.ref if head is not None else None) or "", place, facts.key)
        if place and graph not in known:
            places.append(place)
    return Leftovers(tuple(sorted(name for name in names if name.split("/")[1] not in known)), tuple(sorted(places)))


def _graph_of(ref: str, place: str, key: str) -> str:
    """By the branch that is checked out; of a detached one, by the folders that it stands in."""
    if ref.startswith(f"{BRANCH_PREFIX}/"):
        return ref.removeprefix(f"{BRANCH_PREFIX}/").partition("/")[0]
    return place.partition(f"/{key}/")[2].partition("/")[0]
