"""A random walk over the verbs, with agents of random moods and random deaths; after each step the promises hold.

`Walk(world, seed)` draws everything from the seed. What agents do is real: each takes its mood from a file, makes
commits, leaves files, detaches, amends, fails, asks, tries to approve itself. What dies is real: the driver, a host, an
agent, any verb at a named point. `step` does one thing and looks (walk_promises.py); `finish` lets well-behaved agents
come to the whole end. Everything that was done is in `told`.
"""

import contextlib
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

import psutil
from walk_around import Around
from walk_promises import Promises
from walk_verbs import SUBTASKS, Verbs
from world import PROGRAM, World, git, until

_PLAN: Final = """
id: plan
defaults: {attempts: 2}
checks:
  - {name: whole, run: [test, '!', -e, broken]}
  - {name: own, run: [sh, -c, 'test -e "f-$COORDINATE_AGENTS_SUBTASK" || test -e f-d']}
subtasks:
  - {id: a, spec: x}
  - {id: b, spec: x, commit: runtime}
  - {id: c, spec: x, dependsOn: a}
  - {id: d, spec: x, dependsOn: [b, c]}
"""
# Every commit that an agent makes goes into the file `commits`: none of them may ever be lost.
_AGENT: Final = """
mood=$(cat "{place}/moods/$S" 2>/dev/null || echo good)
for pid in $(grep "^start $S " "$FAKE_LOG" | cut -d ' ' -f 4); do
    case $(ps -o stat= -p "$pid") in '' | Z*) ;; *) echo "overlap $S 0 $pid x" >>"$FAKE_LOG" ;; esac
done
echo "start $S $COORDINATE_AGENTS_ATTEMPT $$ $PWD" >>"$FAKE_LOG"
note() {{ git rev-parse HEAD >>"{place}/commits"; }}
commit() {{ git add -A; git diff --cached --quiet || git commit -qm "$mood $S"; note; }}
case $mood in
good)
    git symbolic-ref HEAD "refs/heads/$COORDINATE_AGENTS_BRANCH"
    git merge-base --is-ancestor "$COORDINATE_AGENTS_BASE" HEAD || git reset -q --soft "$COORDINATE_AGENTS_BASE"
    rm -f broken; echo "$S" >"f-$S"
    git add -A; git commit -q --allow-empty -m "$mood $S"; note ;; # also where a review asked for more
leaves) echo "$S" >"f-$S" ;;
untracked) echo "$S" >"f-$S"; commit; echo more >"more-$S" ;;
broken) echo "$S" >"f-$S"; touch broken; commit ;;
fails) echo half >"half-$S"; exit 7 ;;
nothing) ;;
amends) echo one >"f-$S"; commit; echo two >"f-$S"; git add -A; git commit -q --amend -m again; note ;;
detaches) git checkout -q --detach; echo "$S" >"f-$S"; commit ;;
asks)
    printf 'Do you want to proceed? [y/N] '; read -r answer
    case $answer in y*) echo "$S" >"f-$S"; commit ;; *) exit 7 ;; esac ;;
slow) echo "$S" >"f-$S"; commit; sleep 0.7; echo later >>"f-$S"; commit ;;
clashes) echo "$S" >same; echo "$S" >"f-$S"; commit ;;
approves)
    for words in "review plan --decision REVIEW_APPROVED" "accept plan $S --reason x --waive whole" "run plan"; do
        # shellcheck disable=SC2086
        if "{program}" $words >/dev/null 2>&1; then echo "approved $S 0 $$ x" >>"$FAKE_LOG"; fi
    done
    echo "$S" >"f-$S"; commit ;;
esac
echo "end $S $COORDINATE_AGENTS_ATTEMPT $$ $PWD" >>"$FAKE_LOG"
"""
MOODS: Final = (
    "good",
    "good",
    "good",
    "leaves",
    "untracked",
    "broken",
    "fails",
    "nothing",
    "amends",
    "detaches",
    "slow",
    "clashes",
    "clashes",
    "approves",
)
# Verbs that change nothing, with what they may answer.
LOOKS: Final = (
    ("graph-status", "plan"),
    ("graph-list",),
    ("graph-verify", "plan"),
    ("graph-inspect", "plan"),
    ("graph-inspect", "plan", "c"),
    ("graph-diff", "plan"),
    ("graph-export", "plan"),
    ("graph-events", "plan"),
)
_DEATHS: Final = ("driver", "host", "agent", "everything")
_RUN_LIMIT_S: Final = 60.0


class Walk:
    """One walk; what it may not change is what was there before the first step."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self._chance = world, random.Random(seed)
        self.told: list[str] = [f"seed {seed}"]
        (world.place / "moods").mkdir()
        agent = world.agent(_AGENT.format(place=world.place, program=PROGRAM))
        world.configure({"one": (agent,), "two": (agent,)})
        self._plan = world.graph(_PLAN)
        created = world.run("graph-create", self._plan)
        assert created.code == 0, str(created)
        self._promises = Promises(world, self.told)
        self._verbs = Verbs(world, self._chance, self.told, self._plan, self._promises)
        self._around = Around(world, self._chance, self.told, self._plan, self._promises, self._verbs, self._begin)
        self._steps = (
            (self._run, 5),
            (self._run_and_kill, 3),
            (self._run_and_die, 5),
            (self._run_and_interrupt, 1),
            (self._run_and_stop, 2),
            (self._run_twice, 1),
            (self._look, 2),
            *self._verbs.steps,
            *self._around.steps,
        )

    def step(self) -> None:
        """One thing, and the promises after it."""
        for subtask in SUBTASKS:
            (self.world.place / "moods" / subtask).write_text(self._chance.choice(MOODS))
        actions, weights = zip(*self._steps, strict=True)
        self._verbs.let_go()
        self._chance.choices(actions, weights)[0]()
        self._promises.check()

    def finish(self) -> None:
        """Agents behave from now on: some runs later the graph is whole; approved, cleared up, and nothing is left."""
        for subtask in SUBTASKS:
            (self.world.place / "moods" / subtask).write_text("good")
        self.told.append("finish")
        for _ in range(5):
            self._verbs.settle()
            done = self._verbs.say("graph-run", self._plan, "--integrate", "--retry-failed")
            if done.code == 0:
                break
        assert done.code == 0, f"{self.told}\n{done}"
        files = self.world.files("coordinate-agents/plan/integration")
        assert {f"f-{name}" for name in SUBTASKS} <= set(files) and "broken" not in files, self.told
        self._promises.check()
        self._promises.require_commits(by="--all")
        self.world.assert_nothing_left("plan")
        self._verbs.conclude()
        self._promises.check()
        self._promises.require_commits(by="--all")
        self.world.assert_nothing_left()

    # --- steps

    def _words(self) -> list[str | Path]:
        words: list[str | Path] = ["graph-run", self._plan]
        words += ["--retry-failed"] if self._chance.random() < 0.6 else []
        words += ["--integrate"] if self._chance.random() < 0.4 else []
        words += ["--until", self._chance.choice(SUBTASKS)] if self._chance.random() < 0.1 else []
        words += ["--max-starts", "1"] if self._chance.random() < 0.1 else []
        words += ["--take-over"] if self._chance.random() < 0.1 else []
        return [*words, "--stop-on-exit"] if self._chance.random() < 0.1 else words

    def _run(self) -> None:
        self._verbs.say(*self._words(), *(["--detach"] if self._chance.random() < 0.15 else []))

    def _run_and_die(self) -> None:
        self._verbs.say(*self._words(), point=self._verbs.point("graph-run"))

    def _run_twice(self) -> None:
        """Two that would drive: one of them does, the other says who does."""
        run = self._begin()
        # Either may take over from the other, which is then ended.
        self._verbs.say(*self._words(), may_be_ended=True)
        self._await_end(run)

    def _run_and_kill(self) -> None:
        run, lines, death = self._begin(), self._chance.randint(0, 5), self._chance.choice(_DEATHS)
        self.told.append(f"{death} dies after {lines} lines")
        self._await_lines(run, lines)
        time.sleep(self._chance.uniform(0, 0.3))
        self._kill(run, death)
        self._await_end(run)

    def _run_and_interrupt(self) -> None:
        run, lines = self._begin(), self._chance.randint(0, 4)
        self.told.append(f"driver asked to leave after {lines} lines")
        self._await_lines(run, lines)
        run.send_signal(signal.SIGTERM)
        self._await_end(run)

    def _run_and_stop(self) -> None:
        run, lines, what = self._begin(), self._chance.randint(0, 4), self._chance.choice(("", "a", "b"))
        self.told.append(f"stop {what} after {lines} lines")
        self._await_lines(run, lines)
        self._verbs.say("graph-stop", "plan", *([what] if what else []))
        self._await_end(run)

    def _look(self) -> None:
        if self._promises.agents():
            return
        before = git(self.world.root, "for-each-ref")
        for words in self._chance.sample(LOOKS, 3):
            self._verbs.say(*words, "--json")
        assert git(self.world.root, "for-each-ref") == before

    # --- processes

    def _begin(self) -> "subprocess.Popen[bytes]":
        self._lines_before = len(self.world.log_lines())
        return self.world.start(*self._words())

    def _await_lines(self, run: "subprocess.Popen[bytes]", lines: int) -> None:
        wanted = self._lines_before + lines
        until(lambda: len(self.world.log_lines()) >= wanted or run.poll() is not None or None, f"{lines} lines")

    def _kill(self, run: "subprocess.Popen[bytes]", death: str) -> None:
        victims = [] if death == "driver" else self._others(run, death)
        if death in ("driver", "everything"):
            run.kill()
        for process in victims if death == "everything" else victims[:1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def _others(self, run: "subprocess.Popen[bytes]", death: str) -> list[psutil.Process]:
        """Hosts, agents, or all of them, of this world."""
        found = []
        for process in psutil.process_iter(["environ", "cmdline"]):
            if (process.info["environ"] or {}).get("FAKE_LOG") != str(self.world.log) or process.pid == run.pid:
                continue
            if death == "everything" or any(word.endswith("agent.sh") for word in process.info["cmdline"] or []):
                found.append(process)
        self._chance.shuffle(found)
        if death != "host":
            return found
        hosts = (process.parent() for process in found if process.is_running())
        return [host for host in hosts if host is not None and host.pid not in (1, run.pid)]

    def _await_end(self, run: "subprocess.Popen[bytes]") -> None:
        run.wait(_RUN_LIMIT_S)
        said = self.world.said()
        assert "A bug of ours" not in said and "Traceback" not in said, f"{self.told}\n{said[-4000:]}"
