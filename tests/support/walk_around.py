"""What happens around a graph in a walk: its plan is amended, shared git state changes, work is delivered, agents ask.

Each is said with the walk's verbs, so each may die at a named point and must lose nothing.
"""

import random
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from walk_promises import Promises
from walk_verbs import SUBTASKS, Verbs
from world import World, git, until

_ADDED: Final = re.compile(r"^  - \{id: e\d+,.*\n", re.MULTILINE)


class Around:
    """`plan` is the graph file, which an amendment rewrites; `begin` starts a run and does not wait for it."""

    def __init__(
        self,
        world: World,
        chance: random.Random,
        told: list[str],
        plan: Path,
        promises: Promises,
        verbs: Verbs,
        begin: Callable[[], "subprocess.Popen[bytes]"],
    ) -> None:
        self._world, self._chance, self._told, self._plan = world, chance, told, plan
        self._promises, self._verbs, self._begin = promises, verbs, begin
        self._count = 0
        self.steps: Sequence[tuple[Callable[[], object], int]] = (
            (self._amend, 2),
            (self._share, 2),
            (self._deliver, 2),
            (self._ask, 2),
        )

    def _next(self) -> int:
        self._count += 1
        return self._count

    # --- the plan

    def _amend(self) -> None:
        """Add a subtask, drop one, change a limit or a text. Where it is refused the file is as before."""
        before, number = self._plan.read_text(), self._next()
        match self._chance.choice(("add", "add", "drop", "limit", "text")):
            case "add":
                after = f"{before}  - {{id: e{number}, spec: x, dependsOn: {self._chance.choice(SUBTASKS)}}}\n"
            case "drop":
                after = _ADDED.sub("", before, count=1)
            case "limit":
                after = before.replace("\nchecks:", f"\nmaxConcurrency: {self._chance.randint(1, 3)}\nchecks:", 1)
                after = re.sub(r"\nmaxConcurrency: \d+(?=\nmaxConcurrency)", "", after)
            case _:
                after = before.replace("{id: d, spec: x,", "{id: d, spec: y,")
        self._plan.write_text(after)
        point = self._verbs.point("graph-amend") if self._chance.random() < 0.4 else ""
        done = self._verbs.say("graph-amend", "plan", self._plan, point=point)
        if done.code < 0:
            done = self._verbs.say("graph-amend", "plan", self._plan)
        if done.code != 0:
            self._plan.write_text(before)

    # --- the shared repository

    def _share(self) -> None:
        """A setting that could run a program: seen, then meant to be so or taken back."""
        key = f"alias.walk{self._next()}"
        self._told.append(f"somebody sets {key}")
        git(self._world.root, "config", key, "!true")
        self._promises.see_user()
        self._verbs.say("graph-run", self._plan, *self._verbs.sometimes("--integrate"))
        if self._chance.random() < 0.6:
            self._verbs.accept_shared()
        else:
            self._told.append(f"{key} is taken back")
            git(self._world.root, "config", "--unset", key)
            self._promises.see_user()

    # --- the result

    def _deliver(self) -> None:
        """A new branch, or one that moves forward; where it was delivered it holds what is integrated."""
        branch = self._chance.choice(("out-1", "out-2", f"out-{self._next()}"))
        done = self._verbs.do("graph-deliver", "--branch", branch, *self._verbs.sometimes("--squash"))
        if done.code == 0:
            trees = [
                git(self._world.root, "rev-parse", f"{name}^{{tree}}")
                for name in (branch, "coordinate-agents/plan/integration")
            ]
            assert trees[0] == trees[1], f"{branch} holds something else: {self._told}"

    # --- agents that ask

    def _ask(self) -> None:
        """Agents wait for an answer; they get one, or their Session is closed, until the run is over."""
        for subtask in SUBTASKS:
            (self._world.place / "moods" / subtask).write_text(self._chance.choice(("asks", "asks", "good")))
        self._verbs.do("graph-resume", self._chance.choice(SUBTASKS), "--redo")
        run = self._begin()
        tries = 0
        while run.poll() is None:
            asking = until(
                lambda: self._asking() or (["-"] if run.poll() is not None else None), "a question or an end"
            )
            if asking == ["-"]:
                break
            self._settle(self._chance.choice(asking), patience=tries < 6)
            tries += 1
        run.wait(60)

    def _settle(self, subtask: str, *, patience: bool) -> None:
        word = f"plan/{subtask}"
        match self._chance.choice(("answer", "answer", "write", "close", "interrupt", "look")) if patience else "stop":
            case "answer":
                self._verbs.say("session-answer", word, "--text", self._chance.choice(("yes", "yes", "no")))
            case "write":
                self._verbs.say("session-write", word, "yes", "--submit")
            case "close":
                self._verbs.say("session-close", word)
            case "interrupt":
                self._verbs.say("session-interrupt", word)
            case "look":
                self._verbs.say("session-read", word)
                self._verbs.say("session-inspect", word)
            case _:
                self._verbs.say("graph-stop", "plan")

    def _asking(self) -> list[str]:
        items = self._world.status("plan")["subtasks"]
        return [item["id"] for item in items if item["state"] == "RUNNING" and item["phase"] == "awaiting-input"]
