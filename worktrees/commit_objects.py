"""Commits as values, read through the kept git process and remembered: a commit never changes.

Walks over a few parents are done here, without a process. A walk that is not exact within its bound says so (None), and
the caller asks `rev-list`. Strange commits (other encodings, odd headers, what git reads leniently) are not read here.
"""

import heapq
import re
import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import Final

from coordinate_agents.worktrees.cat_file import ObjectReader
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import CommitId
from coordinate_agents.worktrees.values import value_class

MAX_WALKED: Final = 256
_MAX_KEPT: Final = 8192
_HEADERS: Final = re.compile(
    rb"tree ([0-9a-f]{40}(?:[0-9a-f]{24})?)\n((?:parent [0-9a-f]{40}(?:[0-9a-f]{24})?\n)*)"
    rb"author [^\n]*\ncommitter [^\n]*> (\d{1,12}) [+-]\d{4}\n"
)
# Stricter than what is read: a commit that the Runtime writes, as `git fsck --strict` wants it.
# Its date may be that of a commit of an agent, which may count in milliseconds; 2 ** 53 is the latest.
_WHO: Final = rb"[^<>\n\0]* <[^<>\n\0]*> (?:0|[1-9]\d{0,15}) [+-]\d{4}\n"
WRITTEN_COMMIT: Final = re.compile(
    rb"tree (?:[0-9a-f]{40}|[0-9a-f]{64})\n(?:parent (?:[0-9a-f]{40}|[0-9a-f]{64})\n)*"
    rb"author " + _WHO + rb"committer " + _WHO + rb"\n[^\0]*"
)
# What `%s` leaves out at the end of a line.
_BLANK: Final = b" \t\n\r"


@value_class
class Commit:
    """One commit object. `committed_at` is seconds since the epoch, 0 when the object has none."""

    id: CommitId
    tree: str
    committed_at: int
    parents: tuple[CommitId, ...]
    subject: str


class CommitReader:
    """Reads commits through the kept process of the judge. Thread-safe, bounded."""

    def __init__(self, objects: ObjectReader) -> None:
        self._objects = objects
        self._lock = threading.Lock()
        self._known: OrderedDict[CommitId, Commit] = OrderedDict()

    def read(self, oid: CommitId) -> Commit | None:
        """The commit; None when it is missing, damaged or strange. It may be gone since it was read first."""
        with self._lock:
            known = self._known.get(oid)
            if known is not None:
                self._known.move_to_end(oid)
                return known
        try:
            data = self._objects.content(oid, "commit")
        except WorktreeError:
            return None
        return None if data is None else self.learn(oid, data)

    def learn(self, oid: CommitId, data: bytes) -> Commit | None:
        """The commit with these bytes, which git has read or written under this name; it is not asked for again."""
        commit = parse(oid, data)
        if commit is not None:
            with self._lock:
                self._known[oid] = commit
                while len(self._known) > _MAX_KEPT:
                    self._known.popitem(last=False)
        return commit

    def between(self, base: CommitId, heads: Sequence[CommitId]) -> tuple[Commit, ...] | None:
        """What the heads contain and base does not, newest first, as `rev-list` lists it; None: it must be asked.

        Exact because every way down ends at base: what base contains has a way down that never meets it.
        """
        found: dict[CommitId, Commit] = {}
        seen = {base}
        todo: list[tuple[int, int, CommitId]] = []
        if not self._push(todo, seen, heads):
            return None
        while todo:
            commit = self.read(heapq.heappop(todo)[2])
            if commit is None or not commit.parents or len(found) >= MAX_WALKED:
                return None
            found[commit.id] = commit
            if not self._push(todo, seen, commit.parents):
                return None
        return tuple(found.values())

    def contains(self, tips: Collection[CommitId], commit: CommitId, *, above: CommitId) -> bool | None:
        """Whether a tip contains the commit, which itself contains `above`; None: it must be asked."""
        todo = list(dict.fromkeys(tips))
        seen = {above}
        while todo:
            oid = todo.pop()
            if oid == commit:
                return True
            if oid in seen:
                continue
            seen.add(oid)
            found = self.read(oid)
            if found is None or len(seen) > MAX_WALKED * 2:
                return None
            todo += found.parents
        return False

    def _push(self, todo: list[tuple[int, int, CommitId]], seen: set[CommitId], oids: Sequence[CommitId]) -> bool:
        """Put those not seen into the heap, newest first; whether all could be read."""
        for oid in oids:
            if oid not in seen:
                commit = self.read(oid)
                if commit is None:
                    return False
                seen.add(oid)
                heapq.heappush(todo, (-commit.committed_at, len(seen), oid))
        return True


def parse(oid: CommitId, data: bytes) -> Commit | None:
    """The commit in these bytes; None when git might read them in another way than this does."""
    found = _HEADERS.match(data)
    rest = b"" if found is None else data[found.end() :]
    headers, blank, message = (b"", b"\n", rest[1:]) if rest.startswith(b"\n") else rest.partition(b"\n\n")
    # An unknown encoding would be converted by git; another parent or date in the rest would be strange indeed.
    if (
        found is None
        or not blank
        or b"\0" in data
        or re.search(rb"^(?:encoding|parent|tree|committer) ", headers, re.M)
    ):
        return None
    lines = [line.rstrip(_BLANK) for line in message.lstrip(_BLANK).split(b"\n")]
    end = lines.index(b"") if b"" in lines else len(lines)
    parents = tuple(line.split(" ")[1] for line in found[2].decode().splitlines())
    subject = b" ".join(lines[:end]).decode("utf-8", "surrogateescape")
    return Commit(oid, found[1].decode(), int(found[3]), parents, subject)
