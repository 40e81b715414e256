"""Integration: the verified commits of a graph merged onto its base, in the judge repository.

Contract sections 5 and 6. Before anything is merged every new object is copied into the judge's own store and checked
there (`index-pack --strict`): a corrupt or missing object, or one that fsck refuses, stops here. No ref of the user's
moves and no worktree is touched; the result is pinned.
"""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.crashpoints import crash_point
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.history import BASE_NAME, needed, read_complete_history
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.merge import fold
from coordinate_agents.worktrees.model import INTEGRATION_SLUG, CommitId, Head, MergeConflict, Merged
from coordinate_agents.worktrees.pins import pin

_COPY_TIMEOUT_S: Final = 600.0
_MAX_LIST_BYTES: Final = 256 << 20


def integrate(
    judge: Judge, graph: str, base: CommitId, heads: Sequence[Head], *, resolutions: Sequence[CommitId] = ()
) -> Merged | MergeConflict:
    """Merge the needed heads onto base in the given order. Everything already in base: commit is base, `merged` empty.

    Repeated with the same inputs it returns the same commit. Raises: WorktreeError when an object is missing or bad.
    """
    if heads:
        # A resolution that is gone is one that does not count.
        given = [commit for commit in resolutions if judge.exists(commit)]
        copy_strictly(judge, base, [*(head.commit for head in heads), *given])
    history = read_complete_history(judge, base, [head.commit for head in heads])
    reduced = needed(judge, history, heads) if heads else (Head(BASE_NAME, base),)
    made = fold(judge, reduced, base=base, known=history.commits, resolutions=resolutions)
    if isinstance(made, MergeConflict):
        return made
    crash_point("fold.made")
    if len(reduced) > 1:
        pin(judge, graph, INTEGRATION_SLUG, kind="kept", commit=made.commit)
    merged = tuple(head for head in reduced if (head.name, head.commit) != (BASE_NAME, base))
    return Merged(made.commit, made.tree, merged, tuple(head for head in heads if head not in merged))


def copy_strictly(judge: Judge, base: CommitId, commits: Sequence[CommitId]) -> None:
    """Copy every object of base..commits into the judge's own store, each one hashed, parsed and linked.

    The index that git makes of the copy holds the ids that the contents really have; it must name every object that was
    asked for, since an object with other content than its name is read and packed without complaint (seen).
    Raises: WorktreeError STATE_TAMPERED naming git's complaint. What is there already stays as it is.
    """
    objects = _objects(judge, base, commits)
    store = Path(judge.git_dir, "objects", "pack")
    if set(objects) <= _stored(store, judge.facts.object_format):
        return
    folder = tempfile.mkdtemp(prefix="copy-", dir=Path(judge.git_dir, "tmp"))
    try:
        start = str(Path(folder, "pack"))
        name = f"pack-{_checked(judge, objects, 'pack-objects', '--no-reuse-object', '--quiet', start)}"
        pack, index = Path(folder, f"{name}.pack"), Path(folder, f"{name}.idx")
        index.unlink()
        _checked(judge, [], "index-pack", "--strict", str(pack))
        wrong = set(objects) - _indexed(index, judge.facts.object_format)
        if wrong:
            raise _corrupt(f"object {min(wrong)} has other content than its name says")
        crash_point("copy.packed")
        # The index goes last: a pack without one is not looked at.
        pack.replace(store / pack.name)
        crash_point("copy.half")
        index.replace(store / index.name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _objects(judge: Judge, base: CommitId, commits: Sequence[CommitId]) -> list[str]:
    asked = [*commits, f"^{base}"]
    return _checked(judge, asked, "rev-list", "--objects", "--no-object-names", "--stdin").split()


def _checked(judge: Judge, lines: Sequence[str], *args: str) -> str:
    """Output of a call whose failure means a bad object."""
    stdin = "".join(f"{line}\n" for line in lines).encode()
    done = judge.git(*args, stdin=stdin, ok=(0, 1, 128), timeout_s=_COPY_TIMEOUT_S, max_bytes=_MAX_LIST_BYTES)
    if done.code != 0:
        raise _corrupt(done.said)
    return done.text


def _stored(store: Path, object_format: str) -> set[str]:
    """What was copied before: git reads it from there, and no more from the user's store."""
    copied = (index for index in sorted(store.glob("pack-*.idx")) if index.with_suffix(".pack").exists())
    return {oid for index in copied for oid in _indexed(index, object_format)}


def _indexed(index: Path, object_format: str) -> set[str]:
    """The object ids of a pack index. Source: gitformat-pack(5), version 2."""
    data = index.read_bytes()
    size = 20 if object_format == "sha1" else 32
    if data[:8] != b"\xfftOc\0\0\0\2":
        raise _corrupt("the copy has no readable index")
    count = int.from_bytes(data[8 + 255 * 4 : 8 + 256 * 4], "big")
    names = data[8 + 256 * 4 : 8 + 256 * 4 + count * size]
    return {names[at : at + size].hex() for at in range(0, len(names), size)}


def _corrupt(said: str) -> WorktreeError:
    return WorktreeError(
        "STATE_TAMPERED",
        f"The verified commits could not be copied with all their objects: {said}",
        kept="all refs and worktrees; nothing was merged",
        next="git fsck --full",
    )
