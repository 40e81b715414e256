"""What in a worktree differs from a commit, by an index that the judge makes itself.

Neither the worktree's own index (flags, forged stat entries, caches) nor the user's `status.*` take part: the commit's
tree is read into a new index without any stat data, so every file is compared by content. *Ignored* means ignored by
the base's rules and the frozen excludes. The agent's rules hide nothing; they are only reported.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from coordinate_agents.worktrees.cone import is_outside
from coordinate_agents.worktrees.frozen import Frozen
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import CommitId, DirtyPath, Worktree
from coordinate_agents.worktrees.position import locate
from coordinate_agents.worktrees.rules import lines_file, rules_of
from coordinate_agents.worktrees.survey import survey
from coordinate_agents.worktrees.values import value_class

DIRTY_TIMEOUT_S: Final = 300.0
MAX_LIST_BYTES: Final = 256 << 20
MAX_ASKED: Final = 10_000
_KINDS: Final[Mapping[str, Literal["modified", "deleted", "added", "type", "conflict"]]] = {
    "M": "modified",
    "D": "deleted",
    "A": "added",
    "T": "type",
    "U": "conflict",
}
_GITLINK: Final = "160000"


@value_class
class Difference:
    """Everything that differs. `untracked` has one entry per file; a nested repository is one entry ending in `/`."""

    tracked: tuple[DirtyPath, ...]
    untracked: tuple[str, ...]


@value_class
class Place:
    """A worktree seen with a private index and the recorded settings."""

    judge: Judge
    worktree: Worktree
    index: str
    frozen: str

    def fields(self, *args: str) -> list[str]:
        """The fields of a `-z` format. Raises: WorktreeError past the time or size limit: never half a list."""
        result = self.judge.git(
            *args,
            index=self.index,
            work_tree=self.worktree.path,
            frozen=self.frozen,
            timeout_s=DIRTY_TIMEOUT_S,
            max_bytes=MAX_LIST_BYTES,
        )
        return result.fields()


def untracked(judge: Judge, worktree: Worktree, frozen: str) -> tuple[str, ...]:
    """Paths that are neither in HEAD nor ignored by the base's rules or the frozen excludes, sorted."""
    return look(judge, worktree, _commit_there(judge, worktree), frozen=frozen).untracked


def tracked_changes(judge: Judge, worktree: Worktree, frozen: str) -> tuple[str, ...]:
    """Tracked paths that differ from HEAD, sorted, whatever the worktree's index says."""
    found = look(judge, worktree, _commit_there(judge, worktree), frozen=frozen)
    return tuple(entry.path for entry in found.tracked)


def look(judge: Judge, worktree: Worktree, commit: CommitId, *, frozen: str) -> Difference:
    """Compare the worktree with the commit. Two processes when it is clean, one more when tracked files differ."""
    with judge.temporary_index() as index:
        judge.git("read-tree", commit, index=index)
        return compare(judge, worktree, index, frozen=frozen, folder_links=survey(worktree.path).folder_links)


def compare(judge: Judge, worktree: Worktree, index: str, *, frozen: str, folder_links: Sequence[str]) -> Difference:
    """Compare the worktree with a private index. The index is not changed.

    `folder_links`: where the worktree has links to folders. `ls-files` looks through one that replaced a tracked folder
    (seen), so such links, unless they are untracked themselves, cost the closer look of `diff-files`.
    """
    place = Place(judge, worktree, index, frozen)
    with lines_file(judge, _excludes(place)) as excludes:
        listed = place.fields("ls-files", "-z", "-t", "-m", "-d", "-o", f"--exclude-from={excludes}")
    if worktree.cone:
        listed = _inside(worktree, listed)
    others = tuple(sorted(entry[2:] for entry in listed if entry.startswith("? ")))
    differs = len(others) < len(listed) or not set(others).issuperset(folder_links)
    return Difference(_tracked(place) if differs else (), others)


def ignored_by_agent(judge: Judge, worktree: Worktree, paths: Sequence[str], *, frozen: str) -> tuple[str, ...]:
    """Which of the first MAX_ASKED untracked paths the worktree's rules, or `info/exclude` as it is now, ignore."""
    if not paths:
        return ()
    # With "./" before it a name like ":(glob)x" is a path and no pattern.
    names = "".join(f"./{path}\0" for path in paths[:MAX_ASKED]).encode("utf-8", "surrogateescape")
    args = ["-c", f"core.excludesFile={judge.facts.common_dir}/info/exclude", "check-ignore", "--no-index", "-z"]
    with judge.temporary_index() as index:
        # Exit code 1: none is ignored; 128: a path that git will not look at, such as one below a link.
        found = judge.git(
            *args,
            "--stdin",
            stdin=names,
            ok=(0, 1, 128),
            index=index,
            work_tree=worktree.path,
            frozen=frozen,
        )
    return tuple(path.removeprefix("./") for path in found.fields())


def ignored_entries(judge: Judge, worktree: Worktree, index: str, *, frozen: str) -> tuple[str, ...]:
    """What the base's rules ignore, whole folders as one entry that ends in `/`."""
    place = Place(judge, worktree, index, frozen)
    with lines_file(judge, _excludes(place)) as excludes:
        return tuple(place.fields("ls-files", "-z", "-o", "-i", "--directory", f"--exclude-from={excludes}"))


def is_below(path: str, folders: Sequence[str]) -> bool:
    """Whether the path is one of the entries or below one that ends in `/`."""
    return any(path == entry.rstrip("/") or (entry.endswith("/") and path.startswith(entry)) for entry in folders)


def unlisted(paths: Sequence[str], baseline: Sequence[str]) -> tuple[str, ...]:
    """The paths that are not in the baseline and not below one of its folders."""
    exact = frozenset(baseline)
    folders = tuple(entry for entry in baseline if entry.endswith("/"))
    return tuple(path for path in paths if path not in exact and not (folders and is_below(path, folders)))


def _commit_there(judge: Judge, worktree: Worktree) -> CommitId:
    return locate(judge.facts, worktree).head or worktree.base


def _excludes(place: Place) -> list[str]:
    rules = rules_of(place.judge, place.worktree.base)
    return [*Frozen.parse(place.frozen).excludes.split("\n"), *rules.ignores]


def _inside(worktree: Worktree, listed: Sequence[str]) -> list[str]:
    """The entries without the files that are gone because they are outside of a sparse worktree's cone."""
    outside = is_outside(worktree.cone)
    gone = {entry[2:] for entry in listed if entry.startswith("R ") and outside(entry[2:])}
    return [entry for entry in listed if entry[0] not in "RC" or entry[2:] not in gone]


def _tracked(place: Place) -> tuple[DirtyPath, ...]:
    # diff-files trusts stat data alone, and there are none: without a refresh every link and every file that a filter
    # or line endings convert would differ. The refresh compares contents; a copy keeps the caller's index as it is.
    refreshed = replace(place, index=f"{place.index}.refreshed")
    shutil.copyfile(place.index, refreshed.index)
    refreshed.judge.git(
        "update-index",
        "-q",
        "--refresh",
        index=refreshed.index,
        work_tree=place.worktree.path,
        frozen=place.frozen,
        timeout_s=DIRTY_TIMEOUT_S,
        ok=(0, 1),
    )
    fields = iter(refreshed.fields("diff-files", "-z", "--raw", "--no-abbrev", "--ignore-submodules=dirty"))
    found = {}
    outside = is_outside(place.worktree.cone)
    for meta in fields:
        old_mode, new_mode, oid, _, letter = meta.removeprefix(":").split(" ")
        path = next(fields)
        if letter == "D" and outside(path):
            continue
        if _GITLINK in (old_mode, new_mode):
            found[path] = DirtyPath(path, "submodule" if letter != "D" else "deleted")
        elif letter != "M" or old_mode != new_mode or not _holds(Path(place.worktree.path, path), oid):
            found[path] = DirtyPath(path, _KINDS.get(letter, "modified"))
    return tuple(found[path] for path in sorted(found))


def _holds(path: Path, oid: str) -> bool:
    """Whether the file has exactly the bytes of the blob, without any conversion.

    Committed with CRLF and then declared `text`, a file that nobody touched differs from its normalised form for ever.
    """
    algorithm = "sha1" if len(oid) == 40 else "sha256"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return False
        digest = hashlib.new(algorithm, f"blob {found.st_size}\0".encode(), usedforsecurity=False)
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest() == oid
