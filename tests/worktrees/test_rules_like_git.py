"""The base's rules in one file mean what git makes of them in their folders: compared on random files."""

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import Bench
from repos import git

from coordinate_agents.worktrees.dirty import untracked
from coordinate_agents.worktrees.rules import lines_file, rules_of

NAMES = ["a", "b", "ab", "c.o", ".h"]
FOLDERS = ["", *NAMES[:4], *(f"{outer}/{inner}" for outer in NAMES[:3] for inner in NAMES[:3])]
PARTS = ["a", "b", "ab", "*", "?", "a*", "*.o", "**", "[ab]", "[!a]", ".h", "a?", "\\a", "c.o", "[a-c].o", "*b"]
WORDS = ["text", "-text", "!text", "text=auto", "eol=lf", "-merge", "merge", "!merge", "merge=union", "binary"]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def pattern(random: random.Random) -> str:
    text = "/".join(random.choice(PARTS) for _ in range(random.choice([1, 1, 1, 2, 2, 3])))
    text = f"/{text}" if random.random() < 0.25 else text
    return f"{text}/" if random.random() < 0.3 else text


def write_rules(bench: Bench, name: str, lines: dict[str, list[str]]) -> None:
    for folder, texts in lines.items():
        path = bench.repo / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(texts) + "\n")
    git(bench.repo, "add", "-f", "-A")
    git(bench.repo, "commit", "-qm", "rules")


@pytest.mark.parametrize("seed", range(8))
def test_random_ignore_files_hide_what_git_hides(bench: Bench, seed: int) -> None:
    chance = random.Random(seed)

    def line() -> str:
        return f"!{pattern(chance)}" if chance.random() < 0.3 else pattern(chance)

    folders = chance.sample(FOLDERS, chance.randint(1, 4))
    write_rules(bench, ".gitignore", {folder: [line() for _ in range(chance.randint(1, 4))] for folder in folders})
    worktree = bench.worktree()
    for folder in FOLDERS:
        for name in NAMES:
            path = Path(worktree.path, folder, name)
            if not path.exists() and not any(above.is_file() for above in path.parents):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()

    asked = ["git", "status", "--porcelain", "-uall", "-z"]
    said = subprocess.run(asked, cwd=worktree.path, capture_output=True, text=True, check=True).stdout
    real = tuple(sorted(entry[3:] for entry in said.split("\0") if entry.startswith("?? ")))
    assert untracked(bench.judge, worktree, bench.frozen) == real


@pytest.mark.parametrize("seed", range(8))
def test_random_attribute_files_give_what_git_gives(bench: Bench, seed: int) -> None:
    chance = random.Random(seed)

    def line() -> str:
        return f"{pattern(chance)} {' '.join(chance.sample(WORDS, chance.randint(1, 3)))}"

    folders = chance.sample(FOLDERS, chance.randint(1, 4))
    lines = {folder: [line() for _ in range(chance.randint(1, 4))] for folder in folders}
    lines[""] = ["[attr]mine merge=union -text", "[ab] mine", *lines.get("", [])]
    write_rules(bench, ".gitattributes", lines)
    paths = "\0".join(f"{folder}/{name}" if folder else name for folder in FOLDERS for name in NAMES) + "\0"
    args = ["check-attr", "-z", "--stdin", "text", "eol", "merge", "binary"]

    with lines_file(bench.judge, rules_of(bench.judge, bench.head()).attributes) as file:
        ours = bench.judge.git("-c", f"core.attributesFile={file}", *args, stdin=paths.encode()).out

    assert (
        ours.decode()
        == subprocess.run(
            ["git", *args], cwd=bench.repo, input=paths, capture_output=True, text=True, check=True
        ).stdout
    )
