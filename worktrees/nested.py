"""Repositories inside a worktree: submodules, scaffolded repositories, clones in ignored folders.

Observes whether removing the worktree could take commits or changes with it. A nested repository's configuration was
written by an agent, so git never runs in it: its refs are read as files, its objects are lent to the judge for one call
as alternates, its files are compared with the judge's own index.

- A gitlink without an entry in `.gitmodules` is a pointer to nothing (`git add -A` over a scaffolder's repository).
- A submodule is clean when it is at the recorded commit, its files are that commit's, and every commit it holds is
  in the user's own `modules` store or in what it fetched from its remote.
- A repository in a folder that the base ignores (a build tool's download) is left alone while everything it has is
  what it fetched. Any other repository is reported.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.dirty import ignored_entries, is_below
from coordinate_agents.worktrees.judge import Judge, quote_path
from coordinate_agents.worktrees.model import CommitId, DirtyPath, Worktree
from coordinate_agents.worktrees.reffiles import read_head, read_refs, read_small, reflog_commits
from coordinate_agents.worktrees.survey import Found, Survey, survey

_MAX_GITMODULES: Final = 1 << 20
_GITLINK: Final = "160000"


def find(top: str) -> tuple[Found, ...]:
    """Every folder below `top` that holds a `.git` entry, sorted by path; links are not followed."""
    return survey(top).repositories


def inspect(
    judge: Judge, worktree: Worktree, commit: CommitId, *, index: str, frozen: str, around: Survey
) -> tuple[DirtyPath, ...]:
    """What is wrong with the nested repositories that a survey found and with the gitlinks of the commit.

    A folder that cannot be read counts as untracked, unless the base ignores it. `index` is a private index of the
    commit. Order: path.
    """
    links = gitlinks(judge, index)
    modules = declared_modules(judge, commit) if links else {}
    wrong = {path: DirtyPath(path, "nested") for path in links if path not in modules}
    asked = around.repositories or around.unreadable
    ignored = ignored_entries(judge, worktree, index, frozen=frozen) if asked else ()
    wrong |= {path: DirtyPath(path, "untracked") for path in around.unreadable if not is_below(path, ignored)}
    for nested in around.repositories:
        if nested.path in links and nested.path in modules:
            name, oid = modules[nested.path], links[nested.path]
            if not _is_saved_submodule(judge, worktree, nested, oid, name=name, frozen=frozen):
                wrong[nested.path] = DirtyPath(nested.path, "submodule")
        elif not (is_below(nested.path, ignored) and _is_as_fetched(nested)):
            wrong[nested.path] = DirtyPath(nested.path, "nested")
    return tuple(wrong[path] for path in sorted(wrong))


def gitlinks(judge: Judge, index: str) -> dict[str, CommitId]:
    """The submodule paths of a private index with their commits."""
    staged = judge.git("ls-files", "-z", "-s", index=index).fields()
    entries = (entry.partition("\t") for entry in staged if entry.startswith(_GITLINK))
    return {path: meta.split(" ")[1] for meta, _, path in entries}


def declared_modules(judge: Judge, commit: CommitId) -> dict[str, str]:
    """Path to name of what the commit's `.gitmodules` declares; a path outside of the tree is left out."""
    found = judge.look_up(f"{commit}:.gitmodules")
    if found is None or found.type != "blob":
        return {}
    listed = judge.git(
        "config",
        "-z",
        "--blob",
        found.oid,
        "--get-regexp",
        r"^submodule\..*\.path$",
        ok=(0, 1),
        max_bytes=_MAX_GITMODULES,
    )
    modules = {}
    for field in listed.fields():
        key, _, path = field.partition("\n")
        name = key[len("submodule.") : -len(".path")]
        if ".." not in name.split("/") and ".." not in path.split("/"):
            modules[path.rstrip("/")] = name
    return modules


def _commits(git_dir: Path) -> tuple[set[CommitId], set[CommitId]]:
    """What a nested repository has made or checked out, and what it has fetched."""
    refs = read_refs(git_dir, "refs/")
    fetched = {oid for name, oid in refs.items() if name.startswith("refs/remotes/")}
    own = {oid for name, oid in refs.items() if not name.startswith(("refs/remotes/", "refs/tags/"))}
    head = read_head(git_dir, git_dir)
    if head is not None and head.commit is not None:
        own.add(head.commit)
    own |= set(reflog_commits(git_dir / "logs" / "HEAD"))
    return own, fetched


def _is_as_fetched(nested: Found) -> bool:
    """Whether every commit that it made or checked out is the tip of a remote's branch or a tag that it fetched."""
    if nested.git_dir is None:
        return False
    own, fetched = _commits(nested.git_dir)
    tags = set(read_refs(nested.git_dir, "refs/tags/").values()) if fetched else set()
    # An annotated tag is checked out as the commit it names; packed-refs gives that on a line of its own.
    peeled = _peeled(nested.git_dir) if fetched else set()
    return bool(fetched) and own <= fetched | tags | peeled


def _peeled(git_dir: Path) -> set[CommitId]:
    text = read_small(git_dir / "packed-refs", 64 << 20) or ""
    return {line[1:] for line in text.split("\n") if line.startswith("^")}


def _is_saved_submodule(
    judge: Judge, worktree: Worktree, nested: Found, oid: CommitId, *, name: str, frozen: str
) -> bool:
    """Whether the submodule is at the recorded commit, clean, and holds no commit that exists only there."""
    if nested.git_dir is None:
        return False
    head = read_head(nested.git_dir, nested.git_dir)
    if head is None or head.commit != oid:
        return False
    own, fetched = _commits(nested.git_dir)
    kept = Path(judge.facts.common_dir, "modules", name, "objects")
    env = _lend(nested.git_dir / "objects")
    return _only_here(judge, own | {oid}, fetched, kept=kept, env=env) is False and _is_clean(
        judge, worktree, nested, oid, env=env, frozen=frozen
    )


def _only_here(judge: Judge, own: set[CommitId], fetched: set[CommitId], *, kept: Path, env: Mapping[str, str]) -> bool:
    """Whether a commit of `own` is neither in what was fetched nor in the user's own store of the submodule."""
    asked = "".join(f"{oid}\n" for oid in own) + "".join(f"^{oid}\n" for oid in fetched)
    listed = judge.git("rev-list", "--stdin", "--ignore-missing", stdin=asked.encode(), env=env, ok=(0, 128))
    if listed.code != 0:
        return True
    left = listed.lines()
    if not left:
        return False
    if not kept.is_dir():
        return True
    known = judge.git("cat-file", "--batch-check", stdin="".join(f"{oid}\n" for oid in left).encode(), env=_lend(kept))
    return any(line.split(" ")[1:2] != ["commit"] for line in known.lines())


def _is_clean(
    judge: Judge, worktree: Worktree, nested: Found, oid: CommitId, *, env: Mapping[str, str], frozen: str
) -> bool:
    """Whether the submodule's files are those of its commit, with its own committed ignore rules only."""
    top = str(Path(worktree.path, nested.path))
    with judge.temporary_index() as index:
        if judge.git("read-tree", oid, index=index, env=env, ok=(0, 128)).code != 0:
            return False
        listed = judge.git(
            "ls-files", "-z", "-t", "-m", "-d", "-o", "--exclude-per-directory=.gitignore",
            index=index, work_tree=top, env=env, frozen=frozen,
        ).fields()  # fmt: skip
    return not listed


def _lend(objects: Path) -> dict[str, str]:
    return {"GIT_ALTERNATE_OBJECT_DIRECTORIES": quote_path(str(objects))}
