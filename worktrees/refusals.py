"""Why a worktree stays: one sentence, and one command to paste that would settle it. Decides nothing.

An empty `next` means a verb of the caller: to set the contents aside, or to try again.
"""

import shlex
from collections.abc import Sequence
from typing import Final

from coordinate_agents.worktrees.in_use import User
from coordinate_agents.worktrees.model import CommitId, RefusalReason, Refused, Worktree
from coordinate_agents.worktrees.ownership import is_repairable, lock_reason

_MAX_PATHS: Final = 50
_END_OPERATION: Final = {
    "merge": "git -C {at} merge --abort",
    "rebase": "git -C {at} rebase --abort",
    "cherry-pick": "git -C {at} cherry-pick --abort",
    "revert": "git -C {at} revert --abort",
    "bisect": "git -C {at} bisect reset",
}


def operation(worktree: Worktree, name: str) -> Refused:
    following = _END_OPERATION[name].format(at=_at(worktree))
    return Refused("operation", f"a {name} is in progress", following)


def detached(worktree: Worktree, head: CommitId) -> Refused:
    said = f"its HEAD is detached at {head[:12]}, which its branch does not contain; the commit is pinned"
    return Refused("detached", said, f"git -C {_at(worktree)} switch {worktree.branch}")


def other_branch(worktree: Worktree, head: CommitId, ref: str) -> Refused:
    name = ref.removeprefix("refs/heads/")
    said = f"its HEAD is on {name} at {head[:12]}, which its own branch does not contain"
    return Refused("other-branch", said, f"git -C {_at(worktree)} switch {worktree.branch}")


def without_head(worktree: Worktree) -> Refused:
    return Refused("foreign", "its HEAD names no commit that can be read", f"git -C {_at(worktree)} fsck")


def nested(worktree: Worktree, paths: Sequence[str]) -> Refused:
    what = "is a nested repository or submodule that holds what exists nowhere else"
    if len(paths) != 1:
        what = "are nested repositories or submodules that hold what exists nowhere else"
    following = f"git -C {_at(worktree, paths[0])} log --branches --not --remotes"
    return _listed("nested", f"{{}} {what}", following, paths)


def dirty(paths: Sequence[str], others: Sequence[str] = ()) -> Refused:
    """`others` are untracked."""
    beside = f"; untracked files: {_shown(others)}" if others else ""
    said = f"uncommitted changes: {_shown(paths)}{beside}"
    both = (*paths, *others)
    return Refused("dirty", said, "", both[:_MAX_PATHS], len(both))


def untracked(paths: Sequence[str]) -> Refused:
    return _listed("untracked", "untracked files: {}", "", paths)


def hidden(paths: Sequence[str]) -> Refused:
    return _listed("ignored-by-agent", "files that only the agent's own rules ignore: {}", "", paths)


def staged(paths: Sequence[str]) -> Refused:
    return _listed("staged", "staged versions that are in no commit: {}", "", paths)


def broken_index(worktree: Worktree) -> Refused:
    said = "its index cannot be read, and may hold staged changes"
    return Refused("staged", said, f"git -C {_at(worktree)} update-index --no-split-index --refresh")


def unreadable(worktree: Worktree, paths: Sequence[str]) -> Refused:
    following = f"chmod -R u+rwX {_at(worktree)}"
    return _listed("unreadable", "folders that cannot be read: {}", following, paths)


def copied(paths: Sequence[str]) -> Refused:
    return _listed("copied", "copied files that differ from your checkout's: {}", "", paths)


def changed(paths: Sequence[str]) -> Refused:
    return _listed("changed", "files that came while it was looked at: {}", "", paths)


def too_much(worktree: Worktree, what: str) -> Refused:
    return Refused("too-much", what, f"du -ah {_at(worktree)} | sort -h | tail")


def in_use(worktree: Worktree, users: Sequence[User]) -> Refused:
    said = "; ".join(str(user) for user in users[:3])
    more = f" and {len(users) - 3} more" if len(users) > 3 else ""
    return Refused("in-use", f"{said}{more}", f"kill {users[0].pid}")


def mounted(points: Sequence[str]) -> Refused:
    return _listed("mounted", "a file system is mounted in it: {}", f"umount {shlex.quote(points[0])}", points)


def foreign(worktree: Worktree, why: str) -> Refused:
    following = mending(worktree, why) if is_repairable(worktree, why) else f"ls -la {_at(worktree)}"
    return Refused("foreign", why, following)


def mending(worktree: Worktree, why: str) -> str:
    """What makes a worktree usable again that cannot be proved ours: its links are renewed, or it is moved aside."""
    if is_repairable(worktree, why):
        # Called in the checkout it repairs every link. With a path it says "unable to locate repository" of a missing
        # `.git` file that it has just written, and exits with 1.
        return "git worktree repair"
    return move_aside(worktree.path)


def move_aside(path: str) -> str:
    """The command that makes the place free and loses nothing of what stands there."""
    return f"mv {shlex.quote(path)} {shlex.quote(path + '.other')}"


def linked(worktree: Worktree) -> Refused:
    return Refused("linked", "its folder is reached through a link", f"ls -la {shlex.quote(_parent(worktree))}")


def moved(worktree: Worktree, now: str) -> Refused:
    following = f"git worktree move -f -f {shlex.quote(now)} {_at(worktree)}"
    return Refused("moved", f"it was moved to {now}", following)


def locked(worktree: Worktree, reason: str | None) -> Refused:
    said = f"somebody locked it: {reason}" if reason is not None else "the Runtime's lock on it was removed"
    unlock = f"git worktree unlock {_at(worktree)}; " if reason is not None else ""
    again = f"git worktree lock --reason {shlex.quote(lock_reason(worktree.nonce))} {_at(worktree)}"
    return Refused("locked", said, unlock + again)


def reappeared(worktree: Worktree, aside: str) -> Refused:
    said = f"something new stands at its place; the worktree itself is at {aside}"
    following = f"mv {_at(worktree)} {_at(worktree)}.other"
    return Refused("reappeared", said, following, stands_at=aside)


def undeletable(path: str, why: str) -> Refused:
    said = f"its files are released, but not all of them could be deleted ({why}); what is left is at {path}"
    return Refused("undeletable", said, f"lsattr -R {shlex.quote(path)}", stands_at=path)


def checked_out(branch: str, holder: str) -> Refused:
    said = f"branch {branch} is checked out in {holder}"
    return Refused("checked-out", said, f"git --git-dir={shlex.quote(holder)} symbolic-ref HEAD")


def only_here(branch: str) -> Refused:
    said = f"no branch or tag of yours contains branch {branch}, the result of the graph"
    return Refused("only-here", said, f"git log --oneline -5 {branch}")


def busy() -> Refused:
    return Refused("busy", "another process makes or removes it", "")


def _listed(reason: RefusalReason, said: str, following: str, paths: Sequence[str]) -> Refused:
    return Refused(reason, said.format(_shown(paths)), following, tuple(paths[:_MAX_PATHS]), len(paths))


def _shown(paths: Sequence[str]) -> str:
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def _at(worktree: Worktree, below: str = "") -> str:
    return shlex.quote(f"{worktree.path}/{below}" if below else worktree.path)


def _parent(worktree: Worktree) -> str:
    return worktree.path.rpartition("/")[0]
