"""Finds the user's repository, refuses what is not supported, and resolves the base of a graph.

Asks git once, as the user would; later calls name the git dir. Refused early, with what to do: no repository, an owner
that git refuses, reftable, a bare repository without a base, a branch without a commit. It changes nothing.
"""

import hashlib
import os
import re
import secrets
from pathlib import Path
from typing import Final, Literal

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.files import read_regular
from coordinate_agents.worktrees.frozen import user_environment
from coordinate_agents.worktrees.git import GitResult, failure, git_version, run
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import CommitId, RepositoryFacts
from coordinate_agents.worktrees.reffiles import read_ref

STATE_FOLDER: Final = "coordinate-agents"

_PARTIAL: Final = re.compile(rb"^\s*(?:promisor\s*(?:=\s*(?:true|yes|on|1)\s*)?|partialclone\s*=.*)$", re.I | re.M)
# Revision syntax that searches, or depends on reflogs and configuration, instead of naming a commit.
_SEARCHING: Final = (":/", "@{", "^{/", "\n", "\0")


def open_repository(root: str, *, state_root: str | None = None) -> RepositoryFacts:
    """Facts about the repository that holds the folder `root`. One git call.

    `state_root`: a local folder for the state instead of the git dir. Raises: NOT_A_REPOSITORY, REPOSITORY_UNSUPPORTED.
    """
    start = os.path.realpath(root)
    if not Path(start).is_dir():
        raise WorktreeError("NOT_A_REPOSITORY", f"{root} is not a folder.", next="name the checkout with --root")
    mark = secrets.token_hex(8)
    bare, inside, up, shallow, object_format, git_dir, common_dir = _ask(start, mark)
    if bare != "true" and inside != "true":
        raise WorktreeError(
            "NOT_A_REPOSITORY",
            f"{root} lies inside a git dir, not in a checkout.",
            next="name the checkout with --root",
        )
    _refuse_reftable(common_dir)
    key = repository_key(common_dir)
    return RepositoryFacts(
        root=common_dir if bare == "true" else os.path.realpath(Path(start, up)),
        git_dir=git_dir,
        common_dir=common_dir,
        state_dir=str(
            Path(common_dir, STATE_FOLDER) if state_root is None else Path(os.path.realpath(state_root), key)
        ),
        object_format=_object_format(object_format),
        key=key,
        git_version=git_version(),
        is_bare=bare == "true",
        is_shallow=shallow == "true",
        is_partial=_PARTIAL.search(read_regular(Path(common_dir, "config")) or b"") is not None,
    )


def repository_key(common_dir: str) -> str:
    """A short directory name for this git dir: readable part, then a hash that tells clones apart."""
    path = Path(common_dir)
    name = path.parent.name if path.name == ".git" else path.name.removesuffix(".git")
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:32] or "repository"
    return f"{readable}-{hashlib.sha256(os.fsencode(common_dir)).hexdigest()[:12]}"


def resolve(judge: Judge, commitish: str) -> CommitId:
    """The commit that the text names, as a full hash. Raises: TASK_GRAPH_INVALID, REPOSITORY_UNSUPPORTED."""
    facts = judge.facts
    if commitish.startswith("-") or not commitish or any(part in commitish for part in _SEARCHING):
        raise WorktreeError("TASK_GRAPH_INVALID", f"base {commitish!r} does not name one commit.")
    if facts.is_bare and commitish == "HEAD":
        raise WorktreeError(
            "REPOSITORY_UNSUPPORTED",
            "This is a bare repository: its HEAD is nobody's checkout.",
            kept="nothing was changed",
            next="name the base in the graph file, for example `base: main`",
        )
    result = _rev_parse(judge, commitish)
    if result.code != 0:
        raise _unresolved(judge, commitish, result)
    if b"is ambiguous" in result.err:
        return _one_of_several(judge, commitish)
    return result.text


def branch_of(judge: Judge, commitish: str) -> str | None:
    """The full name of the branch, local or remote-tracking, that the text names; None for any other commit.

    `resolve` was asked before: a git that fails now fails for another reason, which is no answer.
    """
    result = judge.user_git(
        "rev-parse",
        "--verify",
        "--symbolic-full-name",
        "--end-of-options",
        commitish,
        git_dir=judge.facts.git_dir,
        timeout_s=20,
    )
    name = result.text
    return name if name.startswith(("refs/heads/", "refs/remotes/")) else None


def commits_beyond(judge: Judge, base: CommitId, tip: CommitId) -> int | None:
    """How many commits the tip has that the base does not contain; None when one of them is gone."""
    result = judge.git("rev-list", "--count", tip, f"^{base}", ok=(0, 128))
    return int(result.text) if result.code == 0 else None


def _ask(start: str, mark: str) -> list[str]:
    """Bare, inside, way up, shallow, format, git dir, common dir. The marks end the paths, which may hold newlines."""
    marked = [f"x{mark}", f"objects/{mark}"]
    args = ["rev-parse", "--path-format=absolute", "--is-bare-repository", "--is-inside-work-tree", "--show-cdup"]
    args += ["--is-shallow-repository", "--show-object-format"]
    for name in marked:
        args += ["--git-path", name]
    result = run(args, env=user_environment(), cwd=start, timeout_s=20, ok=(0, 128))
    if result.code != 0:
        raise _not_opened(start, result)
    bare, inside, text = result.text.split("\n", 2)
    # Outside of a checkout git prints no line at all for the way up.
    up, text = text.split("\n", 1) if inside == "true" else ("", text)
    shallow, object_format, paths = text.split("\n", 2)
    git_dir, separator, rest = paths.partition(f"/x{mark}\n")
    common_dir = rest.removesuffix(f"/objects/{mark}")
    if not separator or common_dir == rest:
        raise WorktreeError("REPOSITORY_UNSUPPORTED", f"git describes the repository at {start} in an unknown way.")
    return [bare, inside, up, shallow, object_format, os.path.realpath(git_dir), os.path.realpath(common_dir)]


def _not_opened(start: str, result: GitResult) -> WorktreeError:
    said = result.err.decode("utf-8", "replace").strip()
    if "dubious ownership" in said:
        advice = re.search(r"git config --global --add safe\.directory .*", said)
        return WorktreeError(
            "REPOSITORY_UNSUPPORTED",
            f"git refuses {start}: it belongs to another user.",
            kept="nothing was changed, your git configuration neither",
            next=advice.group(0) if advice else "make the repository yours, or see git help config, safe.directory",
        )
    if "not a git repository" in said:
        return WorktreeError(
            "NOT_A_REPOSITORY", f"{start} is in no git repository.", next="name the checkout with --root, or git init"
        )
    return WorktreeError("REPOSITORY_UNSUPPORTED", f"git cannot open the repository at {start}: {result.said}")


def _refuse_reftable(common_dir: str) -> None:
    if Path(common_dir, "reftable").is_dir():
        raise WorktreeError(
            "REPOSITORY_UNSUPPORTED",
            "This repository keeps its refs in the reftable format, which is not supported yet.",
            kept="nothing was changed",
            next="git refs migrate --ref-format=files",
        )


def _object_format(text: str) -> Literal["sha1", "sha256"]:
    match text:
        case "sha1" | "sha256":
            return text
        case _:
            raise WorktreeError("REPOSITORY_UNSUPPORTED", f"The object format {text} is not supported.")


def _rev_parse(judge: Judge, name: str) -> GitResult:
    return judge.user_git(
        "-c",
        "core.warnAmbiguousRefs=true",
        "rev-parse",
        "--verify",
        "--end-of-options",
        f"{name}^{{commit}}",
        git_dir=judge.facts.git_dir,
        ok=(0, 128),
        timeout_s=20,
    )


def _one_of_several(judge: Judge, name: str) -> CommitId:
    """A name that is both a branch and a tag counts only when both are the same commit: never a guess."""
    found = {_rev_parse(judge, f"{prefix}/{name}").text for prefix in ("refs/heads", "refs/tags")} - {""}
    if len(found) == 1:
        return found.pop()
    raise WorktreeError(
        "TASK_GRAPH_INVALID",
        f"base {name!r} names a branch and a tag with different commits.",
        kept="nothing was changed",
        next=f"write `base: refs/heads/{name}` or `base: refs/tags/{name}`",
    )


def _unresolved(judge: Judge, commitish: str, result: GitResult) -> WorktreeError:
    head = read_regular(Path(judge.facts.git_dir, "HEAD")) or b""
    if commitish == "HEAD" and head.startswith(b"ref: "):
        ref = os.fsdecode(head[5:].strip())
        branch = ref.removeprefix("refs/heads/")
        if read_ref(Path(judge.facts.common_dir), ref) is not None:
            return failure(("rev-parse",), result)
        return WorktreeError(
            "REPOSITORY_UNSUPPORTED",
            f"The repository has no commit yet on branch {branch}.",
            kept="nothing was changed",
            next="commit once, or name another base in the graph file",
        )
    return WorktreeError(
        "TASK_GRAPH_INVALID", f"base {commitish!r} names no commit: {result.said}", kept="nothing was changed"
    )
