"""A read verb on a graph of 256 subtasks against a bare interpreter, in CPU time of the whole process.

Runs ``coordinate-agents graph-status --json`` and ``python -I -S -c pass`` in turn. Reach: <= 6x.
Run: ``python benchmarks/read_verbs.py [ROUNDS]``.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SUBTASKS = 256


def cpu_of(command: list[str], cwd: Path, env: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=cwd, env=env, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    place = Path(tempfile.mkdtemp(prefix="cag-bench-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(place),
        "XDG_CONFIG_HOME": str(place / "config"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    try:
        repo = place / "repo"
        repo.mkdir()
        for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
            subprocess.run(["git", *words], cwd=repo, env=env, check=True)
        config = place / "config" / "coordinate-agents" / "config.yaml"
        config.parent.mkdir(parents=True)
        config.write_text("version: 1\nagents:\n  fake: {adapter: generic, command: /bin/true}\n")
        tasks = [{"id": f"t{n}", "spec": "x", "dependsOn": [f"t{n - 1}"] if n % 4 else []} for n in range(SUBTASKS)]
        (place / "plan.json").write_text(json.dumps({"id": "plan", "subtasks": tasks}))
        program = str(Path(sys.executable).parent / "coordinate-agents")
        subprocess.run([program, "graph-create", str(place / "plan.json")], cwd=repo, env=env, check=True)
        ratios = []
        for _ in range(rounds):
            floor = cpu_of([sys.executable, "-I", "-S", "-c", "pass"], repo, env)
            ours = cpu_of([program, "graph-status", "plan", "--json"], repo, env)
            ratios.append((ours / floor, ours * 1000, floor * 1000))
        ratio, ours, floor = (statistics.median(column) for column in zip(*ratios, strict=True))
        print(f"graph-status --json of {SUBTASKS} subtasks: {ratio:.1f}x ({ours:.0f} ms against {floor:.0f} ms)")
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
