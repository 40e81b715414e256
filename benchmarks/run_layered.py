"""A whole run against a sequential shell loop that does the same git work, in CPU and wall time.

A layered graph of 64 subtasks (8 layers of 8, each but the first with two prerequisites in the layer before), every
subtask one commit, concurrency 4, on a repository of 200 (or, with an argument, more) files. The loop adds a worktree,
merges the second prerequisite, pins the base, runs the same agent, asks for status, ancestry, the new commits and the
changed paths, pins the result, and merges everything at the end. A second loop does none of the pins and asks for
status and ancestry only: less than a run does, and named for what it is. All run interleaved; figures are user + system
time of the whole tree (orphans are adopted and counted) and wall time.
Reach: <= 1.0 of the first loop's CPU. Run: ``python benchmarks/run_layered.py [FILES] [ROUNDS]``.
"""

import ctypes
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LAYERS, WIDTH = 8, 8
_AGENT = """#!/bin/sh
set -e
printf '%s\\n' "$1" > "new-$COORDINATE_AGENTS_SUBTASK.txt"
git add -A
git commit -q -m "work of $COORDINATE_AGENTS_SUBTASK"
"""


def names() -> list[tuple[str, list[str]]]:
    """(id, prerequisites) in topological order."""
    found: list[tuple[str, list[str]]] = []
    for layer in range(LAYERS):
        for number in range(WIDTH):
            above = [f"l{layer - 1}n{number}", f"l{layer - 1}n{(number + 1) % WIDTH}"] if layer else []
            found.append((f"l{layer}n{number}", above))
    return found


class Place:
    """One temporary repository with its own HOME."""

    def __init__(self, files: int) -> None:
        parent = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self.root = Path(tempfile.mkdtemp(prefix="cag-bench-", dir=parent))
        self.repo = self.root / "repo"
        self.agent = self.root / "agent.sh"
        self.agent.write_text(_AGENT)
        self.agent.chmod(0o755)
        home = self.root / "home"
        (home / "run").mkdir(parents=True, mode=0o700)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_RUNTIME_DIR": str(home / "run"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@example.org",
        }
        config = home / "config" / "coordinate-agents" / "config.yaml"
        config.parent.mkdir(parents=True)
        config.write_text(f"version: 1\nagents:\n  fake: {{adapter: generic, command: {self.agent}}}\n")
        self.repo.mkdir()
        self.git("init", "-q", "-b", "main")
        for number in range(files):
            path = self.repo / f"d{number % 20}" / f"file{number}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"line {number}\n" * 20)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "first")

    def git(self, *args: str) -> None:
        subprocess.run(["git", *args], cwd=self.repo, env=self.env, check=True, stdout=subprocess.DEVNULL)

    def remove(self) -> None:
        shutil.rmtree(self.root)


def loop_script(place: Place, *, is_bare: bool) -> str:
    lines = ["set -e", f"cd {place.repo}", f"mkdir -p {place.root}/trees"]
    for name, above in names():
        start = f"loop/{above[0]}" if above else "main"
        tree = f"{place.root}/trees/{name}"
        lines += [f"git worktree add -q -b loop/{name} {tree} {start}", f"cd {tree}"]
        lines += [f"git merge -q --no-edit loop/{other}" for other in above[1:]]
        pin = f"git update-ref refs/loop/{name}"
        lines += [
            "base=$(git rev-parse HEAD)",
            *([] if is_bare else [f"{pin}/base $base"]),
            f"COORDINATE_AGENTS_SUBTASK={name} {place.agent} text",
            'test -z "$(git status --porcelain --untracked-files=all)"',
            "git merge-base --is-ancestor $base HEAD",
            *([] if is_bare else ["git rev-list $base..HEAD", "git diff --name-status $base HEAD", f"{pin}/done HEAD"]),
            f"cd {place.repo}",
        ]
    lines += [f"git worktree add -q -b loop/integration {place.root}/trees/all main", f"cd {place.root}/trees/all"]
    lines += [f"git merge -q --no-edit loop/l{LAYERS - 1}n{number}" for number in range(WIDTH)]
    return "\n".join(lines)


def graph_text() -> str:
    tasks = [{"id": name, "spec": f"Write {name}.", "dependsOn": above} for name, above in names()]
    return json.dumps({"id": "bench", "maxConcurrency": 4, "subtasks": tasks})


def measure(command: list[str], place: Place) -> tuple[float, float]:
    """(CPU seconds of the tree, wall seconds)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    done = subprocess.run(command, cwd=place.repo, env=place.env, capture_output=True)
    wall = time.monotonic() - started
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: hosts that outlive the run are counted too
    rows: list[tuple[float, float, float]] = []
    for number in range(rounds):
        (loop, loop_wall), (bare, _), (ours, wall) = _loop(files, False), _loop(files, True), _run(files)
        rows.append((ours / loop, wall / loop_wall, ours / bare))
        print(
            f"round {number}: loop {loop:.2f} s CPU {loop_wall:.2f} s wall; bare loop {bare:.2f} s CPU;"
            f" run {ours:.2f} s CPU {wall:.2f} s wall; ratio {ours / loop:.2f} CPU {wall / loop_wall:.2f} wall,"
            f" to the bare loop {ours / bare:.2f} CPU",
            flush=True,
        )
    cpu, walls, bares = (statistics.median(column) for column in zip(*rows, strict=True))
    print(f"{files} files, {os.cpu_count()} cores, median ratio: {cpu:.2f} CPU, {walls:.2f} wall, bare {bares:.2f} CPU")


def _loop(files: int, is_bare: bool) -> tuple[float, float]:
    place = Place(files)
    try:
        return measure(["bash", "-c", loop_script(place, is_bare=is_bare)], place)
    finally:
        place.remove()


def _run(files: int) -> tuple[float, float]:
    place = Place(files)
    try:
        (place.root / "plan.json").write_text(graph_text())
        program = [str(Path(sys.executable).parent / "coordinate-agents"), "graph-run", str(place.root / "plan.json")]
        return measure([*program, "--integrate", "--json"], place)
    finally:
        place.remove()


if __name__ == "__main__":
    main()
