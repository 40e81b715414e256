"""Registers a worktree as `git worktree add --lock --no-checkout` does, without its two processes.

The admin folder is made whole in the judge's private folder and renamed into place, so nobody's `worktree list`, gc or
prune ever meets half of one. Order: folder, claim of the name (an empty folder, as git makes it), rename, link file. A
kill before the rename leaves at most the empty claim, which `drop_claims` takes away; a kill after it leaves a
registration with our nonce. Whatever git would do otherwise here is left to git: configuration of a worktree's own,
sparse checkouts, shared permissions, relative links, bare repositories, extensions that are not known.
"""

import contextlib
import functools
import os
import re
import shutil
import time
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees import ownership
from coordinate_agents.worktrees.files import read_regular
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.judge_settings import RUNTIME_EMAIL, RUNTIME_NAME
from coordinate_agents.worktrees.model import CommitId, RepositoryFacts, Worktree
from coordinate_agents.worktrees.reffiles import read_direct

# What git makes no other name of.
_NAME: Final = re.compile(r"[A-Za-z0-9_+-](?:[A-Za-z0-9_+-]|\.(?=[A-Za-z0-9_+-]))*")
_MAX_NAMES: Final = 1000
# Included files may say anything. `git init` itself writes "logallrefupdates = true".
_ODD: Final = re.compile(
    rb"\[\s*include|sparse|sharedrepository|relativeworktrees|logallrefupdates(?!\s*=\s*true\s)", re.I
)
_EXTENSIONS: Final = re.compile(rb"\[\s*extensions[^\]]*\]([^\[]*)", re.I)
_KEY: Final = re.compile(rb"^[ \t]*([A-Za-z][A-Za-z0-9-]*)", re.M)
_KNOWN_EXTENSIONS: Final = frozenset([b"objectformat", b"partialclone", b"preciousobjects", b"noop"])


def register_plainly(judge: Judge, worktree: Worktree) -> str | None:
    """Register the reserved, empty folder; its admin name. None: nothing was done, and git must. Call under the lock.

    The worktree's branch must exist and be new, or it has none.
    """
    facts = judge.facts
    tip = read_direct(facts.common_dir, f"refs/heads/{worktree.branch}") if worktree.branch else worktree.base
    name = Path(worktree.path).name
    if tip is None or not _NAME.fullmatch(name) or name.endswith(".lock") or not _is_plain(facts, worktree):
        return None
    draft = f"{judge.git_dir}/tmp/admin-{worktree.nonce}"
    link = f"{worktree.path}/.git"
    try:
        _write_admin(draft, facts, worktree, tip)
        admin = _claim(Path(facts.common_dir, "worktrees"), name)
        try:
            os.rename(draft, admin)  # noqa: PTH104
        except OSError:
            admin.rmdir()
            raise
        try:
            _write(link, f"gitdir: {admin}\n")
        except OSError as error:
            ownership.remove_registration(facts, ownership.with_admin(worktree, admin.name))
            if not isinstance(error, FileExistsError):  # else it is not ours
                Path(link).unlink(missing_ok=True)
            raise
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        return None
    return admin.name


def drop_claims(facts: RepositoryFacts, worktree: Worktree) -> None:
    """Remove empty admin folders of the worktree's name, which a killed call claimed and did not fill.

    Call under the lock. What somebody's own add has made this very moment goes too, as with `git worktree prune`.
    """
    top, name = Path(facts.common_dir, "worktrees"), re.compile(re.escape(Path(worktree.path).name) + r"\d*")
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(top)):
            if name.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    os.rmdir(entry.path)  # noqa: PTH106
        top.rmdir()


def _is_plain(facts: RepositoryFacts, worktree: Worktree) -> bool:
    """Whether git would do here what is done without it, and would not refuse."""
    config = read_regular(f"{facts.common_dir}/config")
    if config is None or facts.is_bare or _ODD.search(config):
        return False
    keys = (key.lower() for found in _EXTENSIONS.finditer(config) for key in _KEY.findall(found[1]))
    if not set(keys) <= _KNOWN_EXTENSIONS:
        return False
    # A checkout can wait on a branch that did not exist until now.
    wanted = os.fsencode(f"ref: refs/heads/{worktree.branch}")
    heads = {f"{folder}/HEAD" for folder in (facts.common_dir, facts.git_dir)}
    return all((read_regular(head) or b"").strip() != wanted for head in heads) and not _is_registered(facts, worktree)


def _is_registered(facts: RepositoryFacts, worktree: Worktree) -> bool:
    """Whether somebody's registration names the path: of a folder that is gone, perhaps only for now."""
    wanted = os.fsencode(f"{worktree.path}/.git\n")
    try:
        admins = [entry.path for entry in os.scandir(f"{facts.common_dir}/worktrees")]
    except FileNotFoundError:
        return False
    return any(_names(f"{admin}/gitdir", wanted) for admin in admins)


def _names(path: str, wanted: bytes) -> bool:
    """Whether the `gitdir` file holds this."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return _gitdir(path, (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)) == wanted


@functools.lru_cache(maxsize=4096)
def _gitdir(path: str, _mark: tuple[int, int, int, int]) -> bytes | None:
    """The content of the file with this inode, size and times: each is asked about at every start."""
    return read_regular(path)


def _write_admin(draft: str, facts: RepositoryFacts, worktree: Worktree, tip: CommitId) -> None:
    # The judge's own folder is private; what goes into the user's git dir has the permissions that git gives.
    os.mkdir(draft)  # noqa: PTH102
    os.mkdir(f"{draft}/logs")  # noqa: PTH102
    _write(f"{draft}/locked", f"{ownership.lock_reason(worktree.nonce)}\n")
    _write(f"{draft}/gitdir", f"{worktree.path}/.git\n")
    _write(f"{draft}/commondir", "../..\n")
    _write(f"{draft}/HEAD", f"ref: refs/heads/{worktree.branch}\n" if worktree.branch else f"{tip}\n")
    zone = time.strftime("%z", time.localtime())
    who = f"{RUNTIME_NAME} <{RUNTIME_EMAIL}> {int(time.time())} {zone}"
    _write(f"{draft}/logs/HEAD", f"{'0' * len(tip)} {tip} {who}\n")


def _claim(top: Path, name: str) -> Path:
    """A new empty folder of the name, or of the name and the first free number, as git chooses."""
    top.mkdir(exist_ok=True)
    for number in range(_MAX_NAMES):
        admin = top / (f"{name}{number}" if number else name)
        try:
            admin.mkdir()
        except FileExistsError:
            continue
        return admin
    raise OSError("every name is taken")


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        os.write(fd, os.fsencode(text))
    finally:
        os.close(fd)
