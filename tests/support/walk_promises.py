"""What a walk looks at after each step: the promises of the product, as far as they can be seen from outside."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psutil
from world import World, git

from coordinate_agents.cli.render_status import status as render_status

# A decision of a person is all that is left, or the graph is driven and goes on by itself.
_AT_REST: Final = ("APPROVED", "RUNNING")
_DELIVERED: Final = "refs/heads/out-"


class Promises:
    """`told` is the walk's story so far, for the message; `commits` a file of every commit that an agent made."""

    def __init__(self, world: World, told: Sequence[str]) -> None:
        self._world, self._told = world, told
        self.commits = world.place / "commits"
        self.commits.touch()
        self.see_user()
        self._seen: set[str] = set()

    def see_user(self) -> None:
        """What is the user's is as it should be now."""
        self._user_state = self._user()

    def _user(self) -> dict[str, str]:
        """Without the branches to which something was delivered."""
        state = self._world.user_state()
        return {topic: told for topic, told in state.items() if not topic.startswith(_DELIVERED)}

    def check(self) -> None:
        """What holds whatever happened; some agent may still be at work."""
        world, told = self._world, "; ".join(self._told)
        assert self._user() == self._user_state, told
        assert [line for line in world.log_lines() if line[0] in ("overlap", "approved")] == [], told
        self.require_commits(by="--reflog")
        listed = world.run("graph-list", "--json")
        assert listed.code == 0, f"{told}\n{listed}"
        if not listed.data["graphs"]:
            return
        verified = world.run("graph-verify", "plan", "--json")
        assert verified.code == 0 and verified.data["holds"], f"{told}\n{verified}"
        data = world.status("plan")
        self._require_way_out(data)
        done = {item["id"]: item for item in data["subtasks"]}
        for item in done.values():
            if item["state"] == "SUCCEEDED":
                self._require_whole(item, [done[needed] for needed in item["dependsOn"]])

    def _require_whole(self, item: dict[str, Any], needed: Sequence[dict[str, Any]]) -> None:
        told = f"{item['id']}: {'; '.join(self._told)}"
        files = self._world.files(item["verifiedCommit"])
        assert f"f-{item['id']}" in files, told
        assert "broken" not in files or item["evidence"]["waivers"], told
        for other in needed:
            assert other["verifiedCommit"], f"{other['id']} below {told}"
            git(self._world.root, "merge-base", "--is-ancestor", other["verifiedCommit"], item["base"])

    def _require_way_out(self, data: dict[str, Any]) -> None:
        """Whatever needs a person names a command, and so does a graph that does not go on by itself."""
        told = "; ".join(self._told)
        assert [item for item in data["attention"] if not item["next"]] == [], told
        for item in data["subtasks"]:
            assert item["state"] != "FAILED" or item["failure"], f"{item}: {told}"
            assert item["state"] not in ("BLOCKED", "STOPPED") or item["reason"], f"{item}: {told}"
        if data["graph"]["state"] not in _AT_REST:
            shown = "\n".join(render_status(data))
            assert "coordinate-agents graph-" in shown, f"no way out: {told}\n{shown}"

    def require_commits(self, *, by: str) -> None:
        """Every commit ever seen is reachable: from refs alone, or (while an agent works) from reflogs, too."""
        self._seen |= {*self.commits.read_text().split(), *self._heads()}
        there = set(git(self._world.root, "rev-list", "--all", *([] if by == "--all" else [by])).split())
        assert self._seen <= there, f"lost {self._seen - there}: {self._told}"

    def _heads(self) -> set[str]:
        lines = git(self._world.root, "worktree", "list", "--porcelain").splitlines()
        found = {line.removeprefix("HEAD ") for line in lines if line.startswith("HEAD ")}
        return {commit for commit in found if commit.strip("0")}

    def unsaved(self) -> dict[str, str] | None:
        """Blob → file, of all that stands in worktrees and in no commit. None while an agent may be writing."""
        if self.agents():
            return None
        found: dict[str, str] = {}
        for place in self._world.worktrees.glob("*/*/*"):
            if not (place / ".git").exists():
                continue
            names = git(place, "ls-files", "-o", "-m", "--exclude-standard").splitlines()
            files = [name for name in dict.fromkeys(names) if (place / name).is_file()]
            blobs = git(place, "hash-object", "--", *files).splitlines() if files else []
            found |= dict(zip(blobs, (f"{place.name}/{name}" for name in files), strict=True))
        return found

    def require_kept(self, before: dict[str, str] | None) -> None:
        """A verb that starts no agent left everything of `unsaved` on the disk, or set it aside below a ref."""
        now = self.unsaved()
        if not before or now is None:
            return
        lines = git(self._world.root, "rev-list", "--all", "--indexed-objects", "--objects").splitlines()
        kept = {line.split(" ")[0] for line in lines}
        lost = {file for blob, file in before.items() if blob not in now and blob not in kept}
        assert not lost, f"lost {lost}: {self._told}"

    def agents(self) -> list[int]:
        """Agents that live."""
        pids = {int(line[3]) for line in self._world.log_lines() if line[0] == "start"}
        return [pid for pid in pids if _lives(pid)]


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def worktree_of(world: World, subtask: str) -> Path | None:
    """Where the subtask's worktree is, when there is one."""
    item = next(item for item in world.status("plan")["subtasks"] if item["id"] == subtask)
    place = item["worktree"]
    return Path(place) if place and Path(place).is_dir() else None
