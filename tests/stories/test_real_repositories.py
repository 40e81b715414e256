"""Repositories as they are met: hooks that setup installs, submodules, a filter for large files, a sparse checkout."""

import os
import sys
from pathlib import Path

import pytest
from world import World, git

pytestmark = pytest.mark.story

WORK = 'echo "$S" > "f-$S"; git add -A; git commit -q -m "work of $S"'
TWO = "subtasks: [{id: a, spec: x}, {id: b, spec: x, dependsOn: a}]\n"
HOOKS = "[git, config, core.hooksPath, .husky/_]"


def configure(world: World, body: str, *setup: str) -> None:
    """One agent, and the user's own setup commands."""
    world.configure({"one": (world.agent(body),)})
    config = world.home / ".config" / "coordinate-agents" / "config.yaml"
    config.write_text(f"{config.read_text()}setup: [{', '.join(f'{{run: {each}}}' for each in setup)}]\n")


def commit_all(world: World) -> None:
    git(world.root, "add", "-A")
    git(world.root, "commit", "-q", "-m", "as it is met")


def test_hooks_that_setup_installs_are_blamed_on_nobody(world: World) -> None:
    """What `npm ci` does in a package with husky: the hooks' folder is made in the worktree and named in the config."""
    make = "[sh, -c, \"mkdir -p .husky/_; printf '#!/bin/sh\\necho ran >> ../ran\\n' > .husky/_/pre-commit;"
    make += " chmod +x .husky/_/pre-commit; echo '*' > .husky/_/.gitignore\"]"
    configure(world, WORK, make, HOOKS)
    done = world.run("graph-run", world.graph(f"id: plan\n{TWO}"), "--integrate", "--json")
    assert done.code == 0, str(done)
    assert (done.data["attention"], done.data["integration"]["state"]) == ([], "integrated")
    assert git(world.root, "config", "core.hooksPath") == ".husky/_"
    # The agents' commits ran them; those of the Runtime, such as the integration's, did not.
    [ran] = world.worktrees.rglob("ran")
    assert ran.read_text() == "ran\nran\n"


def test_what_setup_changes_while_another_agent_works_is_still_told(world: World) -> None:
    go = world.place / "go"
    os.mkfifo(go)
    late = f'[sh, -c, "if [ $COORDINATE_AGENTS_SUBTASK = b ]; then read x < {go}; git config core.hooksPath h; fi"]'
    configure(world, f'echo "start $S 1 $$ $PWD" >> "$FAKE_LOG"; [ "$S" = b ] || read x < {go}.a; {WORK}', late)
    os.mkfifo(f"{go}.a")
    plan = world.graph("id: plan\nsubtasks: [{id: a, spec: x}, {id: b, spec: x}]\n")
    driver = world.start("graph-run", plan, "--integrate")
    world.wait_for_start("a")
    go.write_text("now\n")
    world.wait_for_start("b")
    Path(f"{go}.a").write_text("now\n")
    assert driver.wait(60) == 5
    [item] = world.status("plan")["attention"]
    assert (item["kind"], item["question"]) == ("shared", "shared git state changed: added: config:core.hookspath")


def test_setup_that_rewrites_a_lock_file_is_refused_and_names_it(world: World) -> None:
    (world.root / "package-lock.json").write_text("{}\n")
    commit_all(world)
    configure(world, WORK, '[sh, -c, "echo changed > package-lock.json"]')
    done = world.run("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"), "--json")
    failure = done.data["subtasks"][0]["failure"]
    assert (failure["code"], failure["message"]) == (
        "SETUP_FAILED",
        "setup changed 1 tracked file: package-lock.json.",
    )


def test_submodules_that_setup_fetches_are_clean_and_a_lost_commit_in_one_is_refused(world: World) -> None:
    library = world.place / "library"
    git(world.place, "init", "-q", "-b", "main", str(library))
    (library / "lib").write_text("one\n")
    git(library, "add", "-A")
    git(library, "commit", "-q", "-m", "one")
    git(world.root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "library")
    commit_all(world)
    move = '[ "$S" = a ] || { cd library; echo two >> lib; git commit -qam two; cd ..; }'
    configure(world, f"{move}; {WORK}", "[git, -c, protocol.file.allow=always, submodule, update, --init]")
    plan = world.graph(f"id: plan\ndefaults: {{fixTurns: 0}}\nchecks: [test -s library/lib]\n{TWO}")
    done = world.run("graph-run", plan, "--json")
    assert done.code == 4, str(done)
    found = {item["id"]: (item["state"], item["reason"]) for item in done.data["subtasks"]}
    why = "library is a submodule with changes or commits that exist only there"
    assert found == {"a": ("SUCCEEDED", None), "b": ("FAILED", why)}
    assert git(world.root, "status", "--porcelain") == ""


def test_large_files_behind_a_filter_are_clean_everywhere_and_pointers_in_the_result(world: World) -> None:
    """A filter like that of Git LFS: pointers in git, the files elsewhere below the common git dir."""
    program = world.place / "large.py"
    program.write_text(
        "import hashlib, os, pathlib, sys\n"
        "store = pathlib.Path(sys.argv[2]); store.mkdir(exist_ok=True); data = sys.stdin.buffer.read()\n"
        "if sys.argv[1] == 'clean' and not data.startswith(b'pointer '):\n"
        "    name = hashlib.sha256(data).hexdigest(); (store / name).write_bytes(data)\n"
        "    data = b'pointer ' + name.encode() + b'\\n'\n"
        "elif sys.argv[1] == 'smudge': data = (store / data.split()[1].decode()).read_bytes()\n"
        "sys.stdout.buffer.write(data)\n"
    )
    for way in ("clean", "smudge"):
        git(world.root, "config", f"filter.large.{way}", f"{sys.executable} {program} {way} {world.place}/store")
    (world.root / ".gitattributes").write_text("*.bin filter=large\n")
    (world.root / "big.bin").write_bytes(b"\0big" * 1000)
    commit_all(world)
    configure(world, f"head -c 4000 big.bin > $S.bin; {WORK}", "[test, -s, big.bin]")
    plan = world.graph(f'id: plan\nchecks: [[sh, -c, "test $(wc -c < big.bin) = 4000"]]\n{TWO}')
    done = world.run("graph-run", plan, "--integrate", "--json")
    assert done.code == 0, str(done)
    assert git(world.root, "show", f"{done.data['integration']['commit']}:b.bin").startswith("pointer ")


def test_a_sparse_checkout_stays_as_narrow_as_it_was_and_worktrees_are_whole(world: World) -> None:
    for name in ("inside", "outside"):
        (world.root / name).mkdir()
        (world.root / name / "file").write_text(f"{name}\n")
    commit_all(world)
    git(world.root, "sparse-checkout", "set", "inside")
    before = world.user_state()
    configure(world, WORK, "[test, -s, outside/file]")
    plan = world.graph(f"id: plan\nchecks: [test -s outside/file]\n{TWO}")
    done = world.run("graph-run", plan, "--integrate", "--json")
    assert done.code == 0, str(done)
    assert world.user_state() == before
    assert not (world.root / "outside").exists()


def test_setup_may_make_sparse_worktrees_and_what_is_outside_is_neither_missing_nor_lost(world: World) -> None:
    for name in ("in/deep", "in", "out"):
        (world.root / name).mkdir(exist_ok=True, parents=True)
        (world.root / name / "file").write_text(f"{name}\n")
    commit_all(world)
    spoil = 'if [ "$S" = c ]; then rm in/deep/file; fi'
    body = f"test ! -e out; echo $S >> in/deep/of-$S; {WORK}; {spoil}"
    configure(world, body, "[git, sparse-checkout, set, in/deep]")
    plan = world.graph('id: plan\nchecks: ["test ! -e out"]\nsubtasks: [{id: a, spec: x}, {id: b, spec: x}]\n')
    done = world.run("graph-run", plan, "--integrate", "--json")
    assert done.code == 0, str(done)
    assert (done.data["attention"], [each["state"] for each in done.data["subtasks"]]) == ([], ["SUCCEEDED"] * 2)
    files = world.files(done.data["integration"]["commit"])
    whole = {"README.md", "f-a", "f-b", "in/deep/file", "in/deep/of-a", "in/deep/of-b", "in/file", "out/file"}
    assert set(files) == whole
    assert not Path(done.data["integration"]["worktree"], "out").exists()
    assert (world.root / "out" / "file").read_text() == "out\n"

    # Main moves, inside and outside: the sparse integration takes it in, and goes like any other worktree.
    (world.root / "out" / "more").write_text("x\n")
    (world.root / "in" / "deep" / "file").write_text("changed\n")
    commit_all(world)
    again = world.run("graph-integrate", "plan", "--onto", "main", "--json")
    assert again.code == 0, str(again)
    assert set(world.files(again.data["integration"]["commit"])) == {*whole, "out/more"}
    assert Path(again.data["integration"]["worktree"], "in/deep/file").read_text() == "changed\n"
    gone = world.run("graph-cleanup", "plan", "--all", "--early", "--json")
    assert {item["outcome"] for item in gone.data["items"]} == {"removed"}, str(gone)

    # A file inside that is missing is missing still.
    spoilt = world.run("graph-run", world.graph("id: p2\nsubtasks: [{id: c, spec: x}]\n", "p2.yaml"), "--json")
    assert spoilt.code == 4
    assert "in/deep/file" in spoilt.data["subtasks"][0]["failure"]["message"]

    configure(world, WORK, "[git, sparse-checkout, set, --no-cone, /README.md]")
    refused = world.run("graph-run", world.graph("id: p3\nsubtasks: [{id: c, spec: x}]\n", "p3.yaml"), "--json")
    failure = refused.data["subtasks"][0]["failure"]
    assert (failure["code"], "git sparse-checkout set --cone DIR" in failure["message"]) == ("SETUP_FAILED", True)


def test_a_setup_that_met_the_lock_of_the_shared_configuration_is_run_again(world: World) -> None:
    met, lock = world.root.parent / "met", world.root / ".git" / "config.lock"
    script = f"mkdir {met} && : > {lock}; git config some.key x; code=$?; rm -f {lock}; exit $code"
    configure(world, WORK, f"[sh, -c, '{script}']")
    done = world.run("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"), "--json")
    assert done.code == 0, str(done)
    assert met.is_dir()


def test_a_sparse_worktree_is_one_in_the_next_attempt_too(world: World) -> None:
    for name in ("in", "out"):
        (world.root / name).mkdir()
        (world.root / name / "file").write_text(f"{name}\n")
    commit_all(world)
    failed = world.root.parent / "failed"
    configure(world, f"mkdir {failed} && exit 1; test ! -e out; {WORK}", "[git, sparse-checkout, set, in]")
    plan = world.graph("id: plan\nsubtasks: [{id: a, spec: x, attempts: 2}]\n")
    done = world.run("graph-run", plan, "--integrate", "--json")
    assert done.code == 0, str(done)
    assert (done.data["subtasks"][0]["attempt"], failed.is_dir()) == (2, True)
    assert set(world.files(done.data["integration"]["commit"])) == {"README.md", "f-a", "in/file", "out/file"}
