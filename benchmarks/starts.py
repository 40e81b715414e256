"""500 worktrees made by 8 processes at once on one repository, beside a user who prunes and collects garbage.

Prints failures, and CPU and wall time a start; the same with plain `git worktree add` for comparison (it may fail, and
its failures are counted). A benchmark, never a test. Reach: no failure. Run it as ``python benchmarks/starts.py``;
`--starts`, `--starters` and `--files` change the size.
"""

import argparse
import contextlib
import os
import resource
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.git import inherited_environment
from coordinate_agents.worktrees.worktrees import GitWorktrees

Work = tuple[str, str, str, str, range]


def git(repo: Path | str, *args: str) -> str:
    env = inherited_environment() | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    env |= {f"GIT_{who}_{what}": "bench" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return subprocess.run(
        ["git", "-C", str(repo), *args], env=env, check=True, capture_output=True, text=True
    ).stdout.strip()


def make_repository(place: Path, files: int) -> Path:
    repo = place / "repo"
    subprocess.run(["git", "init", "-q", "-b", "main", str(repo)], check=True)
    for number in range(files):
        path = repo / f"d{number % 20}" / f"f{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n" * 20)
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "first")
    return repo


def start_ours(work: Work) -> list[str]:
    """In a starter: make the worktrees of the range; what failed."""
    repo, root, base, frozen, numbers = work
    failed = []
    with GitWorktrees.open(repo) as trees:
        for number in numbers:
            try:
                made = trees.create("bench", f"s{number}", base, root=root, frozen=frozen)
                if trees.is_intact(made) is not None:
                    failed.append("not intact")
            except WorktreeError as error:
                failed.append(error.message)
    return failed


def start_plain(work: Work) -> list[str]:
    repo, root, base, _, numbers = work
    failed = []
    for number in numbers:
        try:
            git(repo, "worktree", "add", "-q", "-b", f"plain/s{number}", f"{root}/s{number}", base)
        except subprocess.CalledProcessError as error:
            failed.append(error.stderr.strip().splitlines()[-1])
    return failed


@contextlib.contextmanager
def user_beside(repo: Path) -> Iterator[list[int]]:
    """A user who prunes, lists, collects garbage and makes branches all the time; counts rounds."""
    stop, rounds = threading.Event(), [0]

    def work() -> None:
        while not stop.is_set():
            for args in (("worktree", "prune"), ("worktree", "list"), ("gc", "-q"), ("branch", "-f", "mine")):
                with contextlib.suppress(subprocess.CalledProcessError):
                    git(repo, *args)
            rounds[0] += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield rounds
    finally:
        stop.set()
        thread.join()


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(name: str, start: Callable[[Work], list[str]], args: argparse.Namespace) -> int:
    """Run one way of starting; prints a line; returns the number of failures."""
    shared_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared_memory if shared_memory.is_dir() else None) as folder:
        repo = make_repository(Path(folder), args.files)
        base = git(repo, "rev-parse", "HEAD")
        with GitWorktrees.open(str(repo)) as trees:
            frozen = trees.freeze()
        root = str(Path(folder, "trees"))
        shares = [range(first, args.starts, args.starters) for first in range(args.starters)]
        work = [(str(repo), root, base, frozen, share) for share in shares]
        before, started = cpu_s(), time.monotonic()
        with user_beside(repo) as rounds, ProcessPoolExecutor(args.starters) as pool:
            failed = [message for share in pool.map(start, work) for message in share]
            wall = time.monotonic() - started
        spent = cpu_s() - before
    print(
        f"{name}: {args.starts} starts by {args.starters}, {len(failed)} failures, "
        f"{spent / args.starts * 1000:.1f} ms CPU and {wall / args.starts * 1000:.1f} ms wall a start, "
        f"{rounds[0]} rounds of the user beside"
    )
    for message in sorted(set(failed))[:5]:
        print(f"  {failed.count(message)} times: {message}")
    return len(failed)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--starts", type=int, default=500)
    parser.add_argument("--starters", type=int, default=8)
    parser.add_argument("--files", type=int, default=200)
    args = parser.parse_args()
    measure("plain git", start_plain, args)
    raise SystemExit(1 if measure("coordinate-agents", start_ours, args) else 0)


if __name__ == "__main__":
    main()
