"""Whether a populated submodule holds nothing that removing its worktree would take.

A submodule's configuration, hooks and attributes were written by an agent, so git never runs in it: its refs are read
as files, its objects are lent to the judge for one call as alternates, its files are compared with the judge's own
index and its commit's own ignore rules.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.judge import Judge, quote_path
from coordinate_agents.worktrees.model import CommitId, Worktree
from coordinate_agents.worktrees.reffiles import read_head, read_refs, reflog_commits
from coordinate_agents.worktrees.rules import lines_file, rules_of
from coordinate_agents.worktrees.survey import Found
from coordinate_agents.worktrees.values import value_class

_MAX_GITMODULES: Final = 1 << 20
# Enough to look up in the user's own clone; more commits than that are not looked for there.
_MAX_BEYOND: Final = 10_000
_GITLINK: Final = "160000"


@value_class
class Level:
    """A commit whose submodules are asked about: that of the worktree (`path` empty) or of a submodule in it.

    `links` maps the paths of its gitlinks to commits, `names` those that `.gitmodules` declares to names, both below
    `path`. `modules` is where the user's own clones of these submodules would be.
    """

    path: str
    links: Mapping[str, CommitId]
    names: Mapping[str, str]
    modules: Path

    def declares(self, relative: str) -> bool:
        return relative in self.links and relative in self.names

    def relative(self, path: str) -> str | None:
        """The path as this level knows it; None when it is not below."""
        if not self.path:
            return path
        return path[len(self.path) + 1 :] if path.startswith(f"{self.path}/") else None


def worktree_level(judge: Judge, commit: CommitId, index: str) -> Level:
    """The submodules of a commit that was read into the private index."""
    links = _links(judge.git("ls-files", "-z", "-s", index=index).fields())
    names = _declared(judge, commit, {}) if links else {}
    return Level("", links, names, Path(judge.facts.common_dir, "modules"))


def submodule_level(judge: Judge, level: Level, nested: Found, relative: str) -> Level:
    """The submodules of a submodule that was found clean. Invariant: the level declares it and it has a git dir."""
    assert nested.git_dir is not None
    env = lend(nested.git_dir / "objects")
    commit = level.links[relative]
    links = _links(judge.git("ls-tree", "-r", "-z", commit, env=env).fields())
    return Level(nested.path, links, _declared(judge, commit, env), level.modules / level.names[relative] / "modules")


def is_saved(judge: Judge, worktree: Worktree, level: Level, nested: Found, *, frozen: str) -> bool:
    """Whether a declared submodule is at its recorded commit, clean, and holds no commit that exists only there."""
    relative = level.relative(nested.path)
    assert relative is not None
    commit = level.links[relative]
    if nested.git_dir is None:
        return False
    head = read_head(nested.git_dir, nested.git_dir)
    if head is None or head.commit != commit:
        return False
    if _holds_more(judge, nested.git_dir, commit, kept=level.modules / level.names[relative] / "objects"):
        return False
    env = lend(nested.git_dir / "objects")
    return _is_clean(judge, Path(worktree.path, nested.path), commit, env=env, frozen=frozen)


def commits_of(git_dir: Path) -> tuple[set[CommitId], set[CommitId]]:
    """What a nested repository has made or checked out, and the tips that it has fetched."""
    refs = read_refs(git_dir, "refs/")
    fetched = {oid for name, oid in refs.items() if name.startswith("refs/remotes/")}
    own = {oid for name, oid in refs.items() if not name.startswith(("refs/remotes/", "refs/tags/"))}
    head = read_head(git_dir, git_dir)
    if head is not None and head.commit is not None:
        own.add(head.commit)
    own |= set(reflog_commits(git_dir / "logs" / "HEAD"))
    return own, fetched


def beyond(judge: Judge, git_dir: Path, own: set[CommitId], fetched: set[CommitId]) -> list[CommitId]:
    """The commits that `own` contain and `fetched` do not; all of `own` when that cannot be told."""
    asked = [*sorted(own), *(f"^{oid}" for oid in sorted(fetched))]
    stdin = "".join(f"{line}\n" for line in asked).encode()
    args = ["rev-list", f"--max-count={_MAX_BEYOND}", "--stdin", "--ignore-missing"]
    listed = judge.git(*args, stdin=stdin, env=lend(git_dir / "objects"), ok=(0, 128))
    return listed.lines() if listed.code == 0 else sorted(own)


def lend(objects: Path) -> dict[str, str]:
    """The environment that lends an object folder to the judge for one call."""
    return {"GIT_ALTERNATE_OBJECT_DIRECTORIES": quote_path(str(objects))}


def _links(entries: list[str]) -> dict[str, CommitId]:
    """Gitlinks of `ls-files -s` ("mode oid stage TAB path") or `ls-tree` ("mode type oid TAB path")."""
    parts = (entry.partition("\t") for entry in entries if entry.startswith(_GITLINK))
    return {path: meta.replace(" commit ", " ").split(" ")[1] for meta, _, path in parts}


def _declared(judge: Judge, commit: CommitId, env: Mapping[str, str]) -> dict[str, str]:
    """Path to name of what the commit's `.gitmodules` declares; what leads out of the tree is left out."""
    args = ["config", "-z", "--blob", f"{commit}:.gitmodules", "--get-regexp", r"^submodule\..*\.path$"]
    # Exit code 1: it declares nothing; 128: there is none, or it cannot be read.
    listed = judge.git(*args, ok=(0, 1, 128), max_bytes=_MAX_GITMODULES, env=env)
    modules = {}
    for field in listed.fields() if listed.code == 0 else ():
        key, _, path = field.partition("\n")
        name = key[len("submodule.") : -len(".path")]
        if ".." not in name.split("/") and ".." not in path.split("/") and not name.startswith("/"):
            modules[path.rstrip("/")] = name
    return modules


def _holds_more(judge: Judge, git_dir: Path, commit: CommitId, *, kept: Path) -> bool:
    """Whether a commit is neither in what was fetched nor in the user's own clone of the submodule."""
    own, fetched = commits_of(git_dir)
    left = beyond(judge, git_dir, own | {commit}, fetched)
    if not left or not kept.is_dir():
        return bool(left)
    asked = "".join(f"{oid}\n" for oid in left)
    known = judge.git("cat-file", "--batch-check", stdin=asked.encode(), env=lend(kept))
    return any(line.split(" ")[1:2] != ["commit"] for line in known.lines())


def _is_clean(judge: Judge, top: Path, commit: CommitId, *, env: Mapping[str, str], frozen: str) -> bool:
    """Whether the files are those of the commit and what its own rules ignore."""
    with judge.temporary_index() as index:
        if judge.git("read-tree", commit, index=index, env=env, ok=(0, 128)).code != 0:
            return False
        with lines_file(judge, rules_of(judge, commit, env=env).ignores) as excludes:
            args = ["ls-files", "-z", "-t", "-m", "-d", "-o", f"--exclude-from={excludes}"]
            return not judge.git(*args, index=index, work_tree=str(top), env=env, frozen=frozen).out
