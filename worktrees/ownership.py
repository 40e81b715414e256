"""Proves that a worktree is ours: folder, both link files, admin folder, device, inode and nonce must agree.

Everything is read from files; `git worktree list` is never asked, since anybody can register a path there. A record of
each worktree is written before its folder exists, so that a killed start can be finished or undone.
"""

import contextlib
import json
import os
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final, Literal

from coordinate_agents.worktrees.files import ensure_text, identity, read_regular, remove_tree
from coordinate_agents.worktrees.index_file import noted_inodes
from coordinate_agents.worktrees.model import CommitId, RepositoryFacts, Worktree
from coordinate_agents.worktrees.values import value_class

REASON: Final = "coordinate-agents"
_COMPONENT: Final = re.compile(r"[A-Za-z0-9+](?:[A-Za-z0-9_+-]|\.(?!\.))*")
_MAX_LINK_BYTES: Final = 16 << 10
_MAX_INDEX_BYTES: Final = 1 << 30

# Problems that have their own way out.
LINKED: Final = "its folder is reached through a link"
REPLACED: Final = "its folder was replaced by another one"
UNREGISTERED: Final = "its registration is missing"
ELSEWHERE: Final = "its registration points at another folder"
UNLOCKED: Final = "its registration is no longer locked by the Runtime"
UNLINKED: Final = "its .git file is missing or is not a link file"
ORPHANED: Final = "its .git file points at a repository that is not there (was yours moved?)"

Stage = Literal["making", "ready"]
_FIELDS: Final = tuple(each.name for each in fields(Worktree))
_TEXTS: Final = ("before", "target", "next_nonce")


@value_class
class Record:
    """What the Runtime noted of one worktree. "making": it is not handed out, so nobody works in it.

    While "making", its files are on the way from those of commit `before` ("": none) to those of `target`, and its
    nonce may be on the way to `next_nonce`.
    """

    worktree: Worktree
    stage: Stage
    before: CommitId = ""
    target: CommitId = ""
    next_nonce: str = ""


def lock_reason(nonce: str) -> str:
    """The text in the admin folder's `locked` file."""
    return f"{REASON} {nonce}"


def admin_dir(facts: RepositoryFacts, worktree: Worktree) -> str:
    # Asked a dozen times a subtask, as the questions below: no path objects.
    return f"{facts.common_dir}/worktrees/{worktree.admin_name}".rstrip("/")


def admin_dirs(facts: RepositoryFacts) -> list[Path]:
    """The admin folders of all linked worktrees, the user's own too, by name; empty when they cannot be listed."""
    top = Path(facts.common_dir, "worktrees")
    try:
        return [top / name for name in sorted(os.listdir(top))]  # noqa: PTH208 (names alone)
    except OSError:
        return []


def is_intact(facts: RepositoryFacts, worktree: Worktree) -> str | None:
    """None when everything agrees; else what is wrong, for people. No git call."""
    path = worktree.path
    found = identity(path)
    if found is None:
        return "its folder is missing" if not os.path.lexists(path) else "its folder was replaced by something else"
    if found != (worktree.device, worktree.inode):
        return REPLACED
    if os.path.realpath(path) != path:
        return LINKED
    admin = admin_dir(facts, worktree)
    linked = linked_admin(path, expected=admin)
    if linked is None:
        return UNLINKED if os.path.lexists(f"{path}/.git") or holds_own_file(facts, worktree) else REPLACED
    if linked != admin:
        return "its .git file points at another repository" if os.path.lexists(linked) else ORPHANED
    return registration_problem(facts, worktree)


def holds_own_file(facts: RepositoryFacts, worktree: Worktree) -> bool:
    """Whether a file stands there that the worktree's index knows by this very inode.

    Device and inode of the folder alone prove nothing once its `.git` file is gone: a new folder often gets the number
    of one that was just removed.
    """
    data = read_regular(f"{admin_dir(facts, worktree)}/index", _MAX_INDEX_BYTES) or b""
    top = os.fsencode(worktree.path)
    for path, inode in noted_inodes(data, id_size=len(worktree.base) // 2):
        with contextlib.suppress(OSError, ValueError):
            found = os.lstat(top + b"/" + path)
            if path and inode in (0, found.st_ino & 0xFFFFFFFF):
                return True
    return False


def is_repairable(worktree: Worktree, problem: str) -> bool:
    """Whether `git worktree repair`, called in the checkout, writes the missing or stale link file again."""
    return problem == ORPHANED or (problem == UNLINKED and not os.path.lexists(Path(worktree.path, ".git")))


def is_missing(worktree: Worktree) -> bool:
    """Whether nothing at all is at the worktree's path."""
    return not os.path.lexists(worktree.path)


def is_same_folder(worktree: Worktree) -> bool:
    """Whether the folder at the path is still the very one that was made."""
    return (
        identity(worktree.path) == (worktree.device, worktree.inode)
        and os.path.realpath(worktree.path) == worktree.path
    )


def registration_problem(facts: RepositoryFacts, worktree: Worktree) -> str | None:
    """None when the admin folder is ours and points at the path; the worktree's own folder may be gone."""
    admin = admin_dir(facts, worktree)
    if not worktree.admin_name or "/" in worktree.admin_name or identity(admin) is None:
        return UNREGISTERED
    back = _line(f"{admin}/gitdir")
    wanted = f"{worktree.path}/.git"
    if back is None or (back != wanted and _joined(admin, back) != wanted):
        return ELSEWHERE
    common = _line(f"{admin}/commondir")
    if common is None or not (_is_above(facts, common) or os.path.realpath(f"{admin}/{common}") == facts.common_dir):
        return "its registration belongs to another repository"
    if _line(f"{admin}/locked") != lock_reason(worktree.nonce):
        return UNLOCKED
    return None


def _is_above(facts: RepositoryFacts, link: str) -> bool:
    """Whether `commondir` says what git writes there, and no link is on that way: then it needs no resolving."""
    return link == "../.." and identity(f"{facts.common_dir}/worktrees") is not None


def linked_admin(path: str, *, expected: str = "") -> str | None:
    """The admin folder that the `.git` file of a worktree names; None when it is no link file.

    Links in its name are resolved, unless it is the `expected` one letter by letter.
    """
    text = _line(f"{path}/.git")
    if text is None or not text.startswith("gitdir: "):
        return None
    if text == f"gitdir: {expected}":
        return expected
    return os.path.realpath(Path(path, text.removeprefix("gitdir: ")))


def is_locked_with(admin: str, nonce: str) -> bool:
    """Whether an admin folder carries this nonce."""
    return _line(Path(admin, "locked")) == lock_reason(nonce)


def lock_text(facts: RepositoryFacts, worktree: Worktree) -> str | None:
    """Why the registration is locked, in the words of whoever locked it; None when it is not."""
    return _line(Path(admin_dir(facts, worktree), "locked"))


def registered_place(facts: RepositoryFacts, worktree: Worktree) -> str | None:
    """The folder that the registration points at; None when it cannot be read."""
    admin = admin_dir(facts, worktree)
    back = _line(f"{admin}/gitdir")
    return None if back is None else str(Path(_joined(admin, back)).parent)


def renew_nonce(facts: RepositoryFacts, worktree: Worktree, nonce: str) -> Worktree:
    """Write another nonce into the admin folder; the record must name both before. Call under the repository lock."""
    ensure_text(Path(admin_dir(facts, worktree), "locked"), os.fsencode(lock_reason(nonce)))
    return replace(worktree, nonce=nonce)


def registered_admin(facts: RepositoryFacts, worktree: Worktree) -> str | None:
    """Name of the admin folder with the worktree's nonce; first where its link file points: one look, not one each."""
    linked = Path(linked_admin(worktree.path) or os.devnull)
    if str(linked.parent) == str(Path(facts.common_dir, "worktrees")) and is_locked_with(str(linked), worktree.nonce):
        return linked.name
    return find_admin(facts, worktree.nonce)


def find_admin(facts: RepositoryFacts, nonce: str) -> str | None:
    """Name of the admin folder that is locked with this nonce: how a half-made worktree is found."""
    return next((admin.name for admin in admin_dirs(facts) if is_locked_with(str(admin), nonce)), None)


def remove_registration(facts: RepositoryFacts, worktree: Worktree) -> bool:
    """Remove the admin folder if it carries our nonce. Returns whether none is left. Call under the repository lock."""
    admin = Path(admin_dir(facts, worktree))
    owned = identity(str(admin))
    if not worktree.admin_name or owned is None:
        return True
    if _line(admin / "locked") != lock_reason(worktree.nonce):
        return False
    # Out of git's sight first: in its own folder a half-removed registration is for anybody's prune to stumble over.
    removed = remove_tree(str(admin), owned, aside=str(Path(facts.state_dir, "judge", "tmp")))
    with contextlib.suppress(OSError):
        admin.parent.rmdir()  # as git does with the last one; fails harmlessly when others are there
    return removed


def read_record(facts: RepositoryFacts, graph: str, slug: str) -> Record | None:
    """The record of a subtask's worktree; None when there is none or it cannot be read."""
    text = read_regular(_record_path(facts, graph, slug), 1 << 20)
    try:
        raw = json.loads(text) if text is not None else None
        return None if raw is None else _record(raw)
    except (ValueError, KeyError, TypeError):
        return None


def write_record(facts: RepositoryFacts, graph: str, slug: str, record: Record) -> None:
    path = _record_path(facts, graph, slug)
    worktree = {name: getattr(record.worktree, name) for name in _FIELDS}
    texts = {name: getattr(record, name) for name in ("stage", *_TEXTS)}
    text = json.dumps({"worktree": worktree, **texts}, sort_keys=True).encode()
    try:
        ensure_text(path, text)
    except FileNotFoundError:
        Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        ensure_text(path, text)


def forget_record(facts: RepositoryFacts, graph: str, slug: str) -> None:
    Path(_record_path(facts, graph, slug)).unlink(missing_ok=True)


def recorded_slugs(facts: RepositoryFacts, graph: str) -> frozenset[str]:
    """Slugs of the graph that have a record."""
    folder = Path(facts.state_dir, "worktrees", graph)
    try:
        return frozenset(
            entry.name.removesuffix(".json") for entry in os.scandir(folder) if entry.name.endswith(".json")
        )
    except OSError:
        return frozenset()


def with_admin(worktree: Worktree, admin_name: str) -> Worktree:
    return replace(worktree, admin_name=admin_name)


def _record(raw: dict[str, Any]) -> Record:
    stage: Stage = "ready" if raw["stage"] == "ready" else "making"
    texts = {name: str(raw[name]) for name in _TEXTS}
    worktree = {**raw["worktree"], "cone": tuple(raw["worktree"].get("cone", ()))}
    return Record(Worktree(**worktree), stage, **texts)


def _record_path(facts: RepositoryFacts, graph: str, slug: str) -> str:
    assert _COMPONENT.fullmatch(graph), graph
    assert _COMPONENT.fullmatch(slug), slug
    return f"{facts.state_dir}/worktrees/{graph}/{slug}.json"


def _line(path: Path | str) -> str | None:
    """A small file without its last newline; paths in it may hold newlines of their own."""
    text = read_regular(path, _MAX_LINK_BYTES)
    return None if text is None else os.fsdecode(text).removesuffix("\n")


def _joined(folder: str, link: str) -> str:
    """Where `gitdir` points: its folder with links resolved, then `.git` as it is."""
    parent, name = os.path.split(os.path.join(folder, link))  # noqa: PTH118
    return f"{os.path.realpath(parent)}/{name}"
