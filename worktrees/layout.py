"""Writes the files of a commit into an owned worktree, and its index into the admin folder.

Runs in the judge with the recorded filters, or without git where no file is converted (`plain_files`): the user's
configuration, hooks and an agent's filters have no part in it. The result is an ordinary linked worktree in which
`git status` is clean. Worktrees are complete also where the user's checkout is sparse: an agent and its checks need
every file. Submodule folders stay empty.
"""

import contextlib
import errno
import os
import re
import secrets
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees import ownership, partial
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.frozen import Frozen
from coordinate_agents.worktrees.git import GitResult, failure
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import CommitId, Worktree

# Writing 100,000 files, or downloading large ones through a filter.
LAYOUT_TIMEOUT_S: Final = 900.0

_FAILED_FILTER: Final = re.compile(r"external filter '(.+?)' failed|cannot (?:fork to )?run (?:subprocess )?'(.+?)'")
_FAILED_FILE: Final = re.compile(r"fatal: (.+): smudge filter (\S+) failed")


def lay_out(judge: Judge, worktree: Worktree, commit: CommitId, *, frozen: str, on_disk: CommitId = "") -> bytes:
    """Make the folder hold the tracked files of the commit, instead of those of `on_disk` ("": it is empty).

    Untracked files that are in nobody's way stay. Returns the index that git made of it in the judge's private folder.

    Raises: SETUP_FAILED when a filter failed, DISK_FULL; the folder may then hold some of the files.
    """
    settings = Frozen.parse(frozen)
    partial.complete(judge, commit, settings)
    admin = ownership.admin_dir(judge.facts, worktree)
    _make_complete(judge, admin)
    # A new index: flags and stat entries that somebody left in the old one would hide files from the layout.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{admin}/index")  # noqa: PTH108
    plain = None if on_disk else judge.plain_files.write(worktree.path, judge.tree_of(commit), settings)
    data = plain if plain is not None else _read_tree(judge, worktree, commit, frozen=frozen, on_disk=on_disk)
    install_index(admin, data, worktree.path)
    return data


def _read_tree(judge: Judge, worktree: Worktree, commit: CommitId, *, frozen: str, on_disk: CommitId) -> bytes:
    """Let git write the files; its index of them."""
    with judge.temporary_index() as index:
        if on_disk:
            judge.git("read-tree", on_disk, index=index)
        args = ("read-tree", "-u", "--reset", commit)
        result = judge.git(
            *args,
            index=index,
            work_tree=worktree.path,
            frozen=frozen,
            timeout_s=LAYOUT_TIMEOUT_S,
            ok=range(256),
        )
        _raise_failed_filter(result, Frozen.parse(frozen))
        if result.code != 0:
            raise failure(args, result, wrote=worktree.path)
        return Path(index).read_bytes()


def install_index(admin: str, index: bytes, top: str) -> None:
    """Give the worktree its index, by rename: a half-written one would be the agent's trouble."""
    draft = Path(f"{admin}/index.{secrets.token_hex(8)}")
    try:
        draft.write_bytes(index)
        draft.replace(f"{admin}/index")
    except OSError as error:
        draft.unlink(missing_ok=True)
        code = "DISK_FULL" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "INTERNAL_ERROR"
        raise WorktreeError(code, f"The index of {top} could not be written: {error.strerror}.") from error


def _make_complete(judge: Judge, admin: str) -> None:
    """Take back the sparse patterns that `worktree add` copies from the user's checkout into the new one."""
    patterns = f"{admin}/info/sparse-checkout"
    if not os.path.lexists(patterns):
        return
    Path(patterns).unlink()
    own = Path(admin, "config.worktree")
    if own.is_file():
        for key in ("core.sparseCheckout", "core.sparseCheckoutCone", "index.sparse"):
            judge.user_git("config", "--file", str(own), key, "false")


def _raise_failed_filter(result: GitResult, settings: Frozen) -> None:
    """A filter that is not "required" may fail while git succeeds: the agent would get pointers as content."""
    said = result.err.decode("utf-8", "replace")
    command, file = _FAILED_FILTER.search(said), _FAILED_FILE.search(said)
    if command is None and file is None:
        return
    run = (command.group(1) or command.group(2)) if command else file.group(2) if file else ""
    where = f" on {file.group(1)}" if file else ""
    name = file.group(2) if file else _filter_of(run, settings)
    raise WorktreeError(
        "SETUP_FAILED",
        f"The git filter {name} ({run}) failed{where}.",
        kept="nothing of the new worktree remains",
        next="run the filter in your own checkout, for example: git lfs fetch --all",
    )


def _filter_of(command: str, settings: Frozen) -> str:
    for key, value in settings.settings:
        if value == command and key.startswith("filter."):
            return key.split(".", 1)[1].rsplit(".", 1)[0]
    return "of this repository"
