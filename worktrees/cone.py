"""The cone of a sparse worktree: the folders whose files are there, as the user's own setup narrowed it.

Read once, right after setup, when no agent was there yet, and recorded; what an agent narrows later hides nothing.
Only git's cone mode: it names folders, so that what is outside can be told without git. Source: git-sparse-checkout(1),
"Internals: Cone mode handling".
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees import ownership
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.files import read_regular
from coordinate_agents.worktrees.git import inherited_environment, run
from coordinate_agents.worktrees.model import RepositoryFacts, Worktree

_MAX_BYTES: Final = 1 << 20
_FOLDER: Final = re.compile(r"/((?:[^*?\[\\]|\\[*?\[\\])+)/")


def read_cone(facts: RepositoryFacts, worktree: Worktree) -> tuple[str, ...]:
    """The cone as `folders` of a Worktree: empty when the worktree is whole.

    Raises: SETUP_FAILED for patterns that are no cone.
    """
    admin = Path(ownership.admin_dir(facts, worktree))
    settings = read_regular(admin / "config.worktree", _MAX_BYTES)
    patterns = read_regular(admin / "info" / "sparse-checkout", _MAX_BYTES)
    if settings is None or patterns is None or not _is_sparse(settings):
        return ()
    folders = parse_cone(os.fsdecode(patterns).splitlines())
    if folders is None:
        raise WorktreeError(
            "SETUP_FAILED",
            "setup made a sparse checkout of patterns; only one of folders can be judged (git sparse-checkout set"
            " --cone DIR).",
            kept=worktree.path,
        )
    return folders


def note_cone(facts: RepositoryFacts, graph: str, slug: str, worktree: Worktree) -> Worktree:
    """The worktree with the cone that it has now, which is recorded with it. Raises: as `read_cone`."""
    cone = read_cone(facts, worktree)
    if cone == worktree.cone:
        return worktree
    record = ownership.read_record(facts, graph, slug)
    if record is not None:
        noted = replace(record, worktree=replace(record.worktree, cone=cone))
        ownership.write_record(facts, graph, slug, noted)
    return replace(worktree, cone=cone)


def parse_cone(lines: Sequence[str]) -> tuple[str, ...] | None:
    """The recursive folders as `a/b`, their parents as `a/`, and `/` for the root, sorted; None when it is no cone."""
    if not lines or lines[0] != "/*":
        return None
    if lines == ["/*"]:
        return ()
    found: dict[str, bool] = {}
    if len(lines) < 2 or lines[1] != "!/*/":
        return None
    for line in lines[2:]:
        is_parent = line.startswith("!") and line.endswith("/*/")
        matched = _FOLDER.fullmatch(line[1:-2] if is_parent else line)
        if matched is None:
            return None
        name = re.sub(r"\\(.)", r"\1", matched[1])
        if is_parent and name not in found:
            return None
        found[name] = is_parent
    return tuple(sorted(["/", *(f"{name}/" if is_parent else name for name, is_parent in found.items())]))


def is_outside(cone: Sequence[str]) -> Callable[[str], bool]:
    """Whether a path is outside of the cone; nothing is outside of an empty one."""
    recursive = frozenset(name for name in cone if not name.endswith("/"))
    parents = frozenset(name[:-1] for name in cone if name.endswith("/"))

    @cache
    def is_folder_inside(folder: str) -> bool:
        return folder in parents or is_below(folder)

    @cache
    def is_below(folder: str) -> bool:
        return folder in recursive or (folder != "" and is_below(folder.rpartition("/")[0]))

    return lambda path: bool(cone) and not is_folder_inside(path.rpartition("/")[0])


def _is_sparse(settings: bytes) -> bool:
    args = ["config", "--file", "-", "--no-includes", "--type=bool", "--get", "core.sparseCheckout"]
    said = run(args, env=inherited_environment(), stdin=settings, timeout_s=20, ok=range(256))
    return said.text.strip() == "true"
