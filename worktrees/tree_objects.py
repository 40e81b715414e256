"""What differs between trees, and which objects commits add, read through the kept git process.

An answer is exact or None, and then git is asked: more trees than the bound, names or modes that git would not write,
objects that are not loose files. What was read is remembered, since an object never changes; whether it is still there
is looked up on the disk each time.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from coordinate_agents.worktrees.cat_file import ObjectReader
from coordinate_agents.worktrees.commit_objects import Commit, CommitReader
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.model import CommitId
from coordinate_agents.worktrees.values import value_class

TREE_MODE: Final = "040000"
GITLINK_MODE: Final = "160000"
MAX_TREES: Final = 200
MAX_NEW: Final = 2000
_MAX_ENTRIES: Final = 20_000
_MAX_KEPT_ENTRIES: Final = 200_000
_MAX_KEPT_COMMITS: Final = 4096
_MODES: Final[Mapping[bytes, str]] = {
    b"40000": TREE_MODE,
    b"100644": "100644",
    b"100755": "100755",
    b"120000": "120000",
    b"160000": GITLINK_MODE,
}
_NO_NAMES: Final = frozenset([b"", b".", b"..", b".git"])

Tree = Mapping[bytes, tuple[str, str]]
_EMPTY: Final[Tree] = {}


@value_class
class Entry:
    """One side of a difference: a file, link or gitlink."""

    mode: str
    oid: str


@value_class
class TreeChange:
    """A path that differs; `old` or `new` None: it is not there. The path is bytes, as git sorts it."""

    path: bytes
    old: Entry | None
    new: Entry | None


class TooLargeError(Exception):
    """The answer is left to git."""


class TreeReader:
    """Reads trees through the kept process of the judge. Thread-safe, bounded."""

    def __init__(self, objects: ObjectReader, commits: CommitReader) -> None:
        self._objects = objects
        self._commits = commits
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Tree] = OrderedDict()
        self._known_entries = 0
        self._added: OrderedDict[tuple[CommitId, str], tuple[str, ...]] = OrderedDict()

    def changes(self, old: str, new: str) -> tuple[TreeChange, ...] | None:
        """Paths that differ between two trees, in git's order; None: it must be asked."""
        walk = _Walk(self)
        try:
            walk.compare(b"", old, new)
        except TooLargeError:
            return None
        return tuple(sorted(walk.changes, key=lambda change: change.path))

    def added(self, base: CommitId, commits: Sequence[Commit]) -> tuple[str, ...] | None:
        """Every object that these commits have and base has not, and perhaps some that base has elsewhere.

        `commits` are all between base and heads; None: it must be asked.
        """
        start = self._commits.read(base)
        if start is None:
            return None
        known = {base: start.tree} | {commit.id: commit.tree for commit in commits}
        found: dict[str, None] = {}
        try:
            for commit in commits:
                before = known.get(commit.parents[0], start.tree) if commit.parents else start.tree
                found |= dict.fromkeys(self._added_by(commit, before))
                if len(found) > MAX_NEW:
                    return None
        except TooLargeError:
            return None
        return tuple(found)

    def read(self, oid: str) -> Tree:
        """The entries of a tree: name to mode and id. Raises: TooLargeError when git must be asked."""
        with self._lock:
            known = self._known.get(oid)
            if known is not None:
                self._known.move_to_end(oid)
                return known
        try:
            data = self._objects.content(oid, "tree")
        except WorktreeError:
            data = None
        if data is None:
            raise TooLargeError
        tree = parse_tree(data, len(oid) // 2)
        self.learn(oid, tree)
        return tree

    def learn(self, oid: str, tree: Tree) -> None:
        """Remember the tree that is stored under this name."""
        with self._lock:
            self._known_entries += len(tree) - len(self._known.get(oid, ()))
            self._known[oid] = tree
            while self._known_entries > _MAX_KEPT_ENTRIES:
                self._known_entries -= len(self._known.popitem(last=False)[1])

    def _added_by(self, commit: Commit, before: str) -> tuple[str, ...]:
        key = (commit.id, before)
        with self._lock:
            if key in self._added:
                return self._added[key]
        walk = _Walk(self)
        if commit.tree != before:
            walk.trees.append(commit.tree)
            walk.compare(b"", before, commit.tree)
        blobs = (c.new.oid for c in walk.changes if c.new is not None and c.new.mode != GITLINK_MODE)
        added = tuple(dict.fromkeys([commit.id, *walk.trees, *blobs]))
        with self._lock:
            self._added[key] = added
            while len(self._added) > _MAX_KEPT_COMMITS:
                self._added.popitem(last=False)
        return added


class _Walk:
    """One comparison: what it found, bounded."""

    def __init__(self, reader: TreeReader) -> None:
        self._reader = reader
        self.changes: list[TreeChange] = []
        self.trees: list[str] = []
        self._read = 0

    def compare(self, prefix: bytes, old: str | None, new: str | None) -> None:
        """Note every path below the prefix that differs, and every tree of the new side that the old has not there."""
        if old == new:
            return
        before, after = self._entries(old), self._entries(new)
        for name in before.keys() | after.keys():
            was, now = before.get(name), after.get(name)
            if was != now:
                self._compare_entry(prefix + name, was, now)

    def _compare_entry(self, path: bytes, was: tuple[str, str] | None, now: tuple[str, str] | None) -> None:
        old_tree = was[1] if was is not None and was[0] == TREE_MODE else None
        new_tree = now[1] if now is not None and now[0] == TREE_MODE else None
        if new_tree is not None:
            self.trees.append(new_tree)
        if old_tree is not None or new_tree is not None:
            self.compare(path + b"/", old_tree, new_tree)
        old = Entry(*was) if was is not None and old_tree is None else None
        new = Entry(*now) if now is not None and new_tree is None else None
        if old is not None or new is not None:
            self.changes.append(TreeChange(path, old, new))
        if len(self.changes) > MAX_NEW or path.count(b"/") > MAX_TREES:
            raise TooLargeError

    def _entries(self, oid: str | None) -> Tree:
        if oid is None:
            return _EMPTY
        self._read += 1
        if self._read > MAX_TREES:
            raise TooLargeError
        return self._reader.read(oid)


def parse_tree(data: bytes, oid_size: int) -> Tree:
    """Entries of a tree object. Raises: TooLargeError for what git would not write itself, or too many."""
    entries: dict[bytes, tuple[str, str]] = {}
    at, last = 0, b""
    while at < len(data):
        end = data.find(b"\0", at)
        mode_text, _, name = data[at:end].partition(b" ")
        mode = _MODES.get(mode_text)
        sorts_as = _sort_key(name, mode)
        oid = data[end + 1 : end + 1 + oid_size]
        is_strange = end < 0 or mode is None or b"/" in name or name.lower() in _NO_NAMES or len(oid) != oid_size
        if is_strange or mode is None or sorts_as <= last or name in entries or len(entries) >= _MAX_ENTRIES:
            raise TooLargeError
        entries[name] = (mode, oid.hex())
        at, last = end + 1 + oid_size, sorts_as
    return entries


def tree_bytes(entries: Tree) -> bytes:
    """The object of these entries, in git's order: what `parse_tree` reads."""
    ordered = sorted(entries.items(), key=lambda item: _sort_key(item[0], item[1][0]))
    return b"".join(
        b"%s %s\0%s" % (mode.lstrip("0").encode(), name, bytes.fromhex(oid)) for name, (mode, oid) in ordered
    )


def _sort_key(name: bytes, mode: str | None) -> bytes:
    """Git sorts a folder as if its name ended in a slash."""
    return name + b"/" if mode == TREE_MODE else name


def loose_paths(objects: str, oids: Iterable[str]) -> list[str] | None:
    """The files of these objects; None when one is not a loose object of this store (packed, elsewhere, missing)."""
    # Asked of every object of a graph's commits at every start: no path object for each.
    paths = []
    for oid in oids:
        path = f"{objects}/{oid[:2]}/{oid[2:]}"
        if not os.path.isfile(path):  # noqa: PTH113
            return None
        paths.append(path)
    return paths
