"""What persons do in a walk beside running the graph: every verb that decides, mends, reviews, resolves, clears up.

Each may be killed at a named point, and is then sometimes given again. Where no agent works, everything unsaved that
stood in a worktree before the verb must be there after it, or be set aside below a ref.
"""

import random
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from crashes import POINTS
from walk_promises import Promises, worktree_of
from world import Done, World, git

SUBTASKS: Final = ("a", "b", "c", "d")
# The points that are a verb's own, by their beginnings; some of its deaths are at one of the store's or the lease's.
_OWN_POINTS: Final = {
    "graph-cleanup": ("removal.", "remove.", "branch.", "worktree.cleared"),
    "graph-undo": ("undo.",),
    "graph-forget": ("forget.",),
    "graph-resolve": ("conflict.", "resolution.", "scene.", "giving."),
    "graph-review": ("review.", "stay."),
    "graph-integrate": ("integration.", "check.", "judge.", "pin."),
    "graph-stop": ("stop.", "request."),
    "graph-check": ("verify.", "check.", "commit.", "pristine.", "pin.", "leftovers."),
    "graph-accept": ("verify.", "check.", "commit.", "pin."),
    "graph-resume": ("reuse.", "worktree.cleared", "remove.", "removal.", "tree.", "session.", "host."),
    "graph-run": tuple(point for point in POINTS if not point.startswith(("undo.", "forget."))),
    "graph-amend": ("store.document.", "blob."),
    "graph-deliver": ("deliver.",),
    "graph-dispatch": ("session.", "tree.", "host.", "base.", "server.", "turn.", "fold."),
}
_ANY_POINTS: Final = ("store.append.", "lease.", "request.", "blob.")


class Verbs:
    """`plan` is the graph file; `told` is appended to."""

    def __init__(self, world: World, chance: random.Random, told: list[str], plan: Path, promises: Promises) -> None:
        self._world, self._chance, self._told, self._plan, self._promises = world, chance, told, plan, promises
        self.steps: Sequence[tuple[Callable[[], object], int]] = (
            (self._stop, 1),
            (self._integrate, 2),
            (self._clean_up, 2),
            (self._discard, 2),
            (self._undo, 2),
            (self._resume, 3),
            (self._check, 2),
            (self._accept, 2),
            (self._recover, 1),
            (self._dispatch, 2),
            (self._hold, 2),
            (self._release, 1),
            (self._tell, 2),
            (self.resolve, 3),
            (self._review, 3),
            (self._edit, 1),
        )

    def say(self, *words: str | Path, point: str = "", may_be_ended: bool = False) -> Done:
        """One call that answers, or dies at the point. Every refusal says what to do next, and none is a bug."""
        self._told.append(" ".join(str(word) for word in words if word != "plan") + (f" †{point}" if point else ""))
        before, starts = self._promises.unsaved(), self._starts()
        with self._world.dying_at(point):
            done = self._world.run(*words)
        self._told[-1] += f" → {done.code}"
        told = f"{'; '.join(self._told)}\n{done}"
        expected = {-signal.SIGKILL} if point else {-signal.SIGTERM} if may_be_ended else set()
        assert done.code >= 0 or done.code in expected, told
        assert "A bug of ours" not in done.err and "Traceback" not in done.err, told
        assert done.code in (0, 4, 5) or done.code < 0 or "Next:" in done.err or done.out, told
        if self._starts() == starts:
            self._promises.require_kept(before)
        return done

    def _starts(self) -> int:
        """How many agents have started: each may write over what an earlier one left."""
        return sum(line[0] == "start" for line in self._world.log_lines())

    def point(self, verb: str) -> str:
        """A point that the verb may well pass, and its pass."""
        own = [point for point in POINTS if point.startswith(_OWN_POINTS.get(verb, _ANY_POINTS))]
        shared = [point for point in POINTS if point.startswith(_ANY_POINTS)]
        drawn = self._chance.choice(own if self._chance.random() < 0.7 else shared)
        return f"{drawn}:{self._chance.choice((1, 1, 1, 2, 3))}"

    def do(self, verb: str, *words: str) -> Done:
        """Says it, perhaps with a death on the way; after a death sometimes again."""
        if self._chance.random() < 0.3:
            died = self.say(verb, "plan", *words, point=self.point(verb))
            if died.code >= 0 or self._chance.random() < 0.4:
                return died
        return self.say(verb, "plan", *words)

    def _some(self) -> str:
        return self._chance.choice(SUBTASKS)

    def sometimes(self, *words: str, chance: float = 0.4) -> tuple[str, ...]:
        return words if self._chance.random() < chance else ()

    def _stop(self) -> None:
        self.do("graph-stop", *self.sometimes(self._some()))

    def _integrate(self) -> None:
        done = self.do("graph-integrate")
        if done.code == 5:
            self.do("graph-integrate", self._chance.choice(("--abort", "--continue")))

    def _clean_up(self) -> None:
        options = [word for word in ("--early", "--branches", "--all") if self._chance.random() < 0.5]
        self.do("graph-cleanup", *options)

    def _discard(self) -> None:
        self.discard(self._some())

    def discard(self, subtask: str) -> None:
        """Show what would be set aside, then do it, then perhaps take it back."""
        shown = self.say("graph-cleanup", "plan", "--discard", subtask, "--json")
        tokens = [item.get("token") for item in shown.data["items"]] if shown.code == 0 else []
        for token in filter(None, tokens):
            self.do("graph-cleanup", "--discard", subtask, "--confirm", str(token))
            if self._chance.random() < 0.5:
                self.do("graph-undo", subtask)

    def _undo(self) -> None:
        self.do("graph-undo", *self.sometimes(self._some()))

    def _resume(self) -> None:
        options = [
            *self.sometimes("--redo"),
            *self.sometimes("--say", "Do it again, better."),
            *self.sometimes("--from", self._chance.choice(("branch", "base"))),
            *self.sometimes("--agent", "two"),
            *self.sometimes("--run"),
        ]
        self.do("graph-resume", *self.sometimes(self._some(), chance=0.7), *options)

    def _check(self) -> None:
        self.do("graph-check", self._some())

    def _accept(self) -> None:
        broken = [item["id"] for item in self._subtasks() if (item["failure"] or {}).get("check")]
        self.do("graph-accept", self._chance.choice(broken or SUBTASKS), "--reason", "known", "--waive", "whole")

    def _recover(self) -> None:
        self.do("graph-recover", *self.sometimes(self._some()))

    def _dispatch(self) -> None:
        ready = [item["id"] for item in self._subtasks() if item["state"] == "READY"]
        self.do("graph-dispatch", self._chance.choice(ready or SUBTASKS))

    def _hold(self) -> None:
        self.do("graph-hold", self._some())

    def _release(self) -> None:
        held = [item["id"] for item in self._subtasks() if item["held"]]
        self.do("graph-release", self._chance.choice(held or SUBTASKS))

    def accept_shared(self) -> None:
        """Accept the change of shared git state that is shown, if there is one."""
        fingerprint = self._world.run("graph-inspect", "plan", "--json").data["sharedFingerprint"]
        if fingerprint:
            self.do("graph-resume", "--accept-shared", fingerprint)

    def let_go(self) -> None:
        """A driver waits for a held subtask that runs, as long as it takes: no walk does."""
        for item in self._subtasks():
            if item["held"] and item["state"] == "RUNNING":
                self.say("graph-release", "plan", item["id"])

    def _tell(self) -> None:
        self.do("graph-tell", self._some(), "Think of the others.")

    def resolve(self) -> None:
        """Open the merge by hand; then leave it, take it back, or merge (staged or committed) and go on."""
        wanted = [item["id"] for item in self._subtasks() if item["conflict"]]
        if not wanted:
            return
        self.do("graph-resolve", wanted[0])
        match self._chance.choice(("leave", "abort", "continue", "continue")):
            case "abort":
                self.do("graph-resolve", wanted[0], "--abort")
            case "continue":
                self.merge_by_hand(wanted[0])
                self.do("graph-resolve", wanted[0], "--continue")

    def merge_by_hand(self, subtask: str) -> None:
        """What a person does in the worktree of an opened merge."""
        place = next(item["conflictWorktree"] for item in self._subtasks() if item["id"] == subtask)
        if not place or not Path(place).is_dir():
            return
        for name in git(Path(place), "diff", "--name-only", "--diff-filter=U").splitlines():
            (Path(place) / name).write_text("both\n")
            git(Path(place), "add", name)
        if self._chance.random() < 0.5 and git(Path(place), "status", "--porcelain"):
            git(Path(place), "commit", "-q", "-m", "merged by hand")

    def _review(self) -> None:
        match self._chance.choice(("open", "approve", "changes", "changes")):
            case "open":
                self.do("graph-review")
            case "approve":
                self.do("graph-review", "--decision", "REVIEW_APPROVED")
            case "changes":
                words = ("--decision", "CHANGES_REQUESTED", "--feedback", "Say more.")
                self.do("graph-review", self._some(), *self.sometimes("--and", self._some()), *words)

    def _edit(self) -> None:
        """A person writes a file of their own into a subtask's worktree."""
        subtask = self._some()
        place = worktree_of(self._world, subtask)
        if place is not None:
            self._told.append(f"a person writes in {subtask}")
            (place / f"mine-{len(self._told)}").write_text(f"by hand {len(self._told)}\n")

    def _subtasks(self) -> list[dict[str, Any]]:
        subtasks: list[dict[str, Any]] = self._world.status("plan")["subtasks"]
        return subtasks

    # --- towards the end

    def settle(self) -> None:
        """Decide whatever waits for a person: holds, waived failures, conflicts, merges that were left open."""
        if self._world.status("plan")["graph"]["driver"]:
            self.say("graph-wait", "plan", "--timeout", "60s")
        if any(item["kind"] == "shared" for item in self._world.status("plan")["attention"]):
            self.accept_shared()
        for item in self._subtasks():
            if item["held"]:
                self.say("graph-release", "plan", item["id"])
            if (item["evidence"] or {}).get("waivers"):
                self.say("graph-resume", "plan", item["id"], "--redo")
        for item in self._subtasks():
            if item["conflict"]:
                self.say("graph-resolve", "plan", item["id"])
                self.merge_by_hand(item["id"])
                self.say("graph-resolve", "plan", item["id"], "--continue")
        integration = self._world.status("plan")["integration"]
        if integration and integration["state"] == "conflict":
            self.say("graph-integrate", "plan", "--abort")

    def conclude(self) -> None:
        """Approve, clear up with what has to be set aside, and forget; each may die on the way."""
        self._again("graph-review", "--decision", "REVIEW_APPROVED")
        # What a person left in a worktree keeps it.
        self.say("graph-cleanup", "plan", "--all", point=self.point("graph-cleanup"))
        self.say("graph-cleanup", "plan", "--all")
        for item in self._subtasks():
            if item["worktree"]:
                shown = self.say("graph-cleanup", "plan", "--discard", item["id"], "--json")
                (token,) = [each["token"] for each in shown.data["items"]]
                self._again("graph-cleanup", "--discard", item["id"], "--confirm", token)
        self._again("graph-cleanup", "--all")
        self._again("graph-forget")
        assert self._world.run("graph-list", "--json").data["graphs"] == [], self._told

    def _again(self, verb: str, *words: str) -> None:
        if self._chance.random() < 0.5:
            self.say(verb, "plan", *words, point=self.point(verb))
        done = self.say(verb, "plan", *words)
        assert done.code == 0, f"{'; '.join(self._told)}\n{done}"
