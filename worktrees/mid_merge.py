"""Puts an owned worktree into the middle of one merge that git cannot finish, as `git merge` leaves it at a conflict.

Files with markers, an index with stages, MERGE_HEAD and MERGE_MSG: the user's own `git status`, `git mergetool`,
`git add` and `git commit` work there. The merge itself was made in the judge, so no configuration, driver or hook of
the user's or an agent's decides what conflicts.

Order: the worktree stands clean at one side and is noted as "making"; files, index, MERGE_HEAD; then "ready". A call
that was cut short is undone and done again. From "ready" on somebody may work there: it is left as it is.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees import create as creation
from coordinate_agents.worktrees import ownership, partial, pins
from coordinate_agents.worktrees.crashpoints import crash_point
from coordinate_agents.worktrees.files import read_regular
from coordinate_agents.worktrees.frozen import Frozen
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.layout import install_index, lay_out
from coordinate_agents.worktrees.lock import creation_lock
from coordinate_agents.worktrees.merge import merge_trees
from coordinate_agents.worktrees.model import (
    INTEGRATION_SLUG,
    CommitId,
    MergeConflict,
    RepositoryFacts,
    Worktree,
    branch_ref,
)
from coordinate_agents.worktrees.ownership import Record
from coordinate_agents.worktrees.position import locate
from coordinate_agents.worktrees.refs import read_ref
from coordinate_agents.worktrees.register import Place
from coordinate_agents.worktrees.resolutions import is_merge_of
from coordinate_agents.worktrees.rules import lines_file, rules_of
from coordinate_agents.worktrees.values import value_class

# What git keeps in the admin folder while a merge waits for its end; MERGE_HEAD is what makes it one.
_MERGE_FILES: Final = ("MERGE_MODE", "MERGE_MSG", "MERGE_HEAD")
_MAX_MARKED_BYTES: Final = 64 << 20
_SHORT: Final = 12


@value_class
class Scene:
    """One merge that stops. `tree` has the files with markers, `stages` the index entries of the paths in conflict."""

    ours: CommitId
    theirs: CommitId
    tree: str
    paths: tuple[str, ...]
    stages: tuple[str, ...]


def scene_of(judge: Judge, base: CommitId, ours: CommitId, theirs: CommitId) -> Scene:
    """The merge of the two as the judge makes it; without paths when it is clean. `base`: whose attributes count."""
    with lines_file(judge, rules_of(judge, base).attributes) as attributes:
        merged = merge_trees(judge, ours, theirs, attributes=attributes)
    return Scene(ours, theirs, merged.tree, merged.paths, merged.stages)


def open_merge(
    judge: Judge, graph: str, slug: str, base: CommitId, conflict: MergeConflict, *, root: str, frozen: str
) -> Worktree:
    """The worktree of this slug in the middle of the conflict's merge; its branch is at `conflict.ours`.

    One that stands there already, or in which somebody finished this very merge, is returned as it is.
    Raises: WORKTREE_CONFLICT, DIRTY_WORKTREE when an earlier one holds something else.
    """
    there = standing(judge, graph, slug, conflict.ours, conflict.theirs)
    if there is not None:
        return there
    # The branch may outlive worktree and record: a pin tells the next call that its tip is known.
    pins.pin(judge, graph, slug, kind="base", commit=conflict.ours)
    if slug == INTEGRATION_SLUG:
        tip = read_ref(judge.facts.common_dir, branch_ref(graph, slug))
        worktree = creation.publish_integration(judge, graph, conflict.ours, expected=tip, root=root, frozen=frozen)
    else:
        worktree = creation.create(judge, graph, slug, conflict.ours, root=root, frozen=frozen)
    place = Place(graph, slug, worktree.path)
    with creation_lock(judge.facts.state_dir, graph, slug):
        _begin(judge, place, worktree, scene_of(judge, base, conflict.ours, conflict.theirs), conflict, frozen=frozen)
    return worktree


def standing(judge: Judge, graph: str, slug: str, ours: CommitId, theirs: CommitId) -> Worktree | None:
    """The worktree if it stands in the middle of this merge or at a commit that ends it; else None."""
    record = ownership.read_record(judge.facts, graph, slug)
    if record is None or record.stage != "ready":
        return None
    position = locate(judge.facts, record.worktree)
    if position.head is None:
        return None
    if position.head == ours:
        is_there = position.operation == "merge" and merge_head(judge.facts, record.worktree) == theirs
    else:
        is_there = is_merge_of(judge, position.head, ours, theirs)
    return record.worktree if is_there else None


def merge_head(facts: RepositoryFacts, worktree: Worktree) -> CommitId | None:
    """The other side of the merge in progress; None when there is none, or it has several."""
    text = read_regular(Path(ownership.admin_dir(facts, worktree), "MERGE_HEAD"), 4096)
    words = text.decode("ascii", "replace").split() if text is not None else []
    return words[0] if len(words) == 1 else None


def forget_merge(facts: RepositoryFacts, worktree: Worktree) -> None:
    """Take back what makes git think that a merge is in progress."""
    admin = Path(ownership.admin_dir(facts, worktree))
    for name in (*reversed(_MERGE_FILES), "AUTO_MERGE"):
        (admin / name).unlink(missing_ok=True)


def _begin(
    judge: Judge, place: Place, worktree: Worktree, scene: Scene, conflict: MergeConflict, *, frozen: str
) -> None:
    facts = judge.facts
    partial.complete(judge, scene.theirs, Frozen.parse(frozen))
    making = Record(worktree, "making", before=scene.ours, target=scene.tree)
    ownership.write_record(facts, place.graph, place.slug, making)
    index = lay_out(judge, worktree, scene.tree, frozen=frozen, on_disk=scene.ours)
    crash_point("scene.laid")
    install_index(ownership.admin_dir(facts, worktree), _with_stages(judge, index, scene), worktree.path)
    names = {scene.ours: " + ".join(head.name for head in conflict.applied), scene.theirs: conflict.pair[1]}
    _name_sides(worktree, scene.paths, names)
    message = _message(scene, conflict)
    for name, text in zip(_MERGE_FILES, ("", message, f"{scene.theirs}\n"), strict=True):
        Path(ownership.admin_dir(facts, worktree), name).write_bytes(text.encode("utf-8", "surrogateescape"))
    crash_point("scene.headed")
    judge.layouts.forget(worktree)
    ownership.write_record(facts, place.graph, place.slug, Record(worktree, "ready"))


def _with_stages(judge: Judge, index: bytes, scene: Scene) -> bytes:
    """The index with the paths in conflict as unmerged entries."""
    zero = "0" * len(scene.ours)
    lines = [*(f"0 {zero}\t{path}" for path in scene.paths), *scene.stages]
    text = "".join(f"{line}\0" for line in lines).encode("utf-8", "surrogateescape")
    with judge.temporary_index() as private:
        Path(private).write_bytes(index)
        judge.git("update-index", "-z", "--index-info", stdin=text, index=private)
        return Path(private).read_bytes()


def _name_sides(worktree: Worktree, paths: Sequence[str], names: dict[CommitId, str]) -> None:
    """Write subtasks' names beside the commit ids that git puts after the markers of the two sides."""
    for path in paths:
        file = Path(worktree.path, path)
        data = read_regular(file, _MAX_MARKED_BYTES)
        if data is None:
            continue
        for marker in (b"<<<<<<<", b">>>>>>>"):
            for commit, name in names.items():
                named = f"{name} ({commit[:_SHORT]})".encode("utf-8", "surrogateescape")
                data = data.replace(b"%s %s" % (marker, commit.encode()), b"%s %s" % (marker, named))
        with contextlib.suppress(OSError):
            file.write_bytes(data)


def _message(scene: Scene, conflict: MergeConflict) -> str:
    applied = ", ".join(head.name for head in conflict.applied)
    listed = "".join(f"#\t{path!r}\n" if "\n" in path else f"#\t{path}\n" for path in scene.paths)
    return f"Merge subtask {conflict.pair[1]}\n\nAfter: {applied}\n\n# Conflicts:\n{listed}"
