"""From every place in which a person can find a graph, what the program itself advises leads to its end.

Nobody here knows a command: the test pastes what was printed last, verbatim, and settles only the cause by hand.
"""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from world import FIXTURES, ONE_COMMIT, PROGRAM, WAYS, Done, World, git

pytestmark = pytest.mark.story

TWO = "id: plan\nsubtasks: [{id: a, spec: x}, {id: b, spec: x, dependsOn: a}]\n"
THREE = TWO.replace("]\n", ", {id: c, spec: x, dependsOn: b}]\n")
# Each attempt adds a line, so that a redo has something to commit.
ADDS = 'echo "$COORDINATE_AGENTS_ATTEMPT" >> "f-$S"; git add -A; git commit -q -m "work of $S"'
STAYS_ADDS = 'echo "$TURN" >> "f-$S"; git add -A; git commit -q -m "turn $TURN"; : > "$COORDINATE_AGENTS_SUBMIT_FILE"'
STAYS = FIXTURES / "agents" / "stays.py"

# A command that was printed to be pasted: alone on a line, or after a word that says when. One with a word in capitals
# asks for something that only a person knows, and is not taken.
_PRINTED = re.compile(
    r"^(?:\s*|\s*(?:Next|Approve|Come back)[^:]*: )((?:coordinate-agents|git|mv) \S.*)$", re.MULTILINE
)
_OPEN_WORD = re.compile(r" (?:TEXT|FILE|[A-Z]+_ID)\b")
MOST_STEPS = 8


@pytest.fixture
def world(world: World) -> Iterator[World]:
    world.configure({"one": (world.agent(ADDS),)})
    yield world
    world.run("graph-stop", "plan")
    assert world.processes() == []


def advised(done: Done) -> list[str]:
    """What the call printed to be pasted, in its order."""
    found = _PRINTED.findall(f"{done.out}\n{done.err}")
    return [command for command in found if not _OPEN_WORD.search(command)]


def paste(world: World, command: str) -> Done:
    """As a person would: in the checkout, letter by letter."""
    words = shlex.split(command)
    if words[0] == PROGRAM.name:
        return world.run(*words[1:])
    done = subprocess.run(words, cwd=world.root, env=world.environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return Done(tuple(words), done.returncode, done.stdout, done.stderr)


def walk(world: World, done: Done, *, to: str = "INTEGRATED", graph: str = "plan") -> list[str]:
    """Paste the first advice that was not followed yet until the graph is there; the words that led to it."""
    followed: list[str] = []
    # What was shown as another way stays on the screen.
    seen: list[str] = []
    while world.status(graph)["graph"]["state"] != to:
        seen = [*advised(done), *seen]
        following = next((command for command in seen if command not in followed), None)
        assert following is not None, f"a dead end after {followed}: {done}"
        assert len(followed) < MOST_STEPS, f"no end after {followed}: {done}"
        followed.append(following)
        done = paste(world, following)
        assert done.code != 3, str(done)
    return [command.removeprefix(f"{PROGRAM.name} ").replace(str(world.place), "~") for command in followed]


def ran(world: World, text: str = TWO, *more: str, code: int = 0) -> Done:
    done = world.run("graph-run", world.graph(text), *more)
    assert done.code == code, str(done)
    return done


def place(world: World, subtask: str) -> Path:
    return Path(next(each["worktree"] for each in world.status("plan")["subtasks"] if each["id"] == subtask))


def branch(subtask: str) -> str:
    return f"refs/heads/coordinate-agents/plan/{subtask}"


def stopped_in_b(world: World) -> Done:
    """a succeeded, and b was stopped while it worked."""
    world.configure({"one": (ONE_COMMIT,)})
    world.hold("b")
    run = world.start("graph-run", world.graph(TWO))
    world.wait_for_start("b")
    done = world.run("graph-stop", "plan", "--reason", "lunch")
    assert done.code == 0, str(done)
    run.wait(60)
    world.release("b")
    return world.run("graph-status", "plan")


def test_agent_that_failed_after_a_commit(world: World) -> None:
    world.configure(
        {"one": (world.agent(f'{ADDS}; [ "$COORDINATE_AGENTS_ATTEMPT" -ge 2 ] || [ "$S" = b ] || exit 7'),)}
    )
    assert walk(world, ran(world, TWO, "--integrate", code=4)) == [
        "graph-inspect plan a --part failure",
        "graph-resume plan a --run",
        "graph-integrate plan",
    ]
    assert world.files("coordinate-agents/plan/integration")["f-a"] == "1\n2"


def test_check_that_failed_and_passes_after_the_work_was_mended_by_hand(world: World) -> None:
    done = ran(world, f"checks: [[test, -e, {world.place}/fixed]]\n{TWO}", code=4)
    shown = paste(world, advised(done)[0])
    (world.place / "fixed").touch()
    assert [command.split()[1] for command in advised(shown)] == ["graph-resume", "graph-check"]
    checked = paste(world, advised(shown)[1])
    assert walk(world, checked) == ["graph-run plan", "graph-integrate plan"]
    assert world.status("plan")["subtasks"][0]["attempt"] == 1


def test_integration_that_failed_its_check(world: World) -> None:
    done = ran(world, f"{TWO}integration: {{checks: [[test, -e, {world.place}/fixed]]}}\n", "--integrate", code=4)
    (world.place / "fixed").touch()
    assert walk(world, done) == ["graph-inspect plan --part failure", "graph-integrate plan"]


def test_subtask_without_a_commit_when_what_it_builds_on_is_done_again(world: World) -> None:
    """Before, its own branch, which held nothing that a pin knows, was taken for a stranger's."""
    body = 'test "$S$COORDINATE_AGENTS_ATTEMPT" != b1 || exit 0; echo x >> "f-$S"; git add -A; git commit -qm x'
    world.configure({"one": (world.agent(body),)})
    ran(world, TWO, code=4)
    assert world.run("graph-resume", "plan", "a", "--redo").code == 0
    assert walk(world, world.run("graph-run", "plan", "--retry-failed")) == ["graph-integrate plan"]


def test_integration_that_was_killed(world: World) -> None:
    world.run_dying("integration.published", "graph-run", world.graph(TWO), "--integrate")
    assert walk(world, world.run("graph-status", "plan")) == ["graph-integrate plan"]


def test_conflict_in_a_base(world: World) -> None:
    world.configure({"one": (ONE_COMMIT,), "line": (sys.executable, WAYS, "replace-line")})
    both = "{id: a, spec: x, agent: line}, {id: b, spec: x, agent: line}"
    text = f"id: plan\nsubtasks: [{both}, {{id: c, spec: x, dependsOn: [a, b]}}]\n"
    opened = paste(world, advised(ran(world, text, code=5))[0])
    merged = Path(world.run("graph-path", "plan", "c").out.strip())
    (merged / "shared.txt").write_text("both\n")
    git(merged, "add", "shared.txt")
    following = [command for command in advised(opened) if command.endswith("--continue")]
    assert walk(world, paste(world, following[0])) == ["graph-run plan", "graph-integrate plan"]


def test_conflict_in_an_integration(world: World) -> None:
    world.configure({"one": (sys.executable, WAYS, "replace-line")})
    done = ran(world, "id: plan\nsubtasks: [{id: a, spec: x}, {id: b, spec: x}]\n", "--integrate", code=5)
    merged = Path(world.status("plan")["integration"]["worktree"])
    (merged / "shared.txt").write_text("both\n")
    git(merged, "add", "shared.txt")
    assert walk(world, done) == ["graph-integrate plan --continue"]


@pytest.mark.parametrize("is_meant", [True, False], ids=["and accepted", "and put back"])
def test_shared_git_state_that_was_changed(world: World, is_meant: bool) -> None:
    world.configure({"one": (world.agent(f"{ADDS}; git config core.hooksPath /nowhere"),)})
    done = ran(world, TWO, "--integrate", code=5)
    shown = paste(world, advised(done)[0])
    assert "added: config:core.hookspath" in shown.out
    accept, again = advised(shown)
    if is_meant:
        assert walk(world, paste(world, accept))[-1] in ("graph-run plan --integrate", "graph-integrate plan")
    else:
        git(world.root, "config", "--unset", "core.hooksPath")
        paste(world, again)
    data = world.status("plan")
    assert (data["graph"]["state"], data["attention"]) == ("INTEGRATED", [])


def test_agent_whose_program_is_gone_and_that_is_not_configured_any_more(world: World) -> None:
    gone = world.agent("exit 7", "gone")
    world.configure({"one": (ONE_COMMIT,), "old": (gone,)})
    text = "id: plan\nsubtasks: [{id: a, spec: x, agent: old}]\n"
    done = world.run("graph-create", world.graph(text))
    gone.unlink()
    world.configure({"one": (ONE_COMMIT,), "new": (ONE_COMMIT,)})
    # The graph has its configuration of then: what is said is about that.
    refused = world.run("graph-resume", "plan", "a", "--agent", "new")
    assert advised(refused) == ["coordinate-agents graph-resume plan a --agent one"]
    failed = paste(world, advised(done)[0])
    shown = paste(world, advised(failed)[0])
    again, other, _ = advised(shown)
    assert "EXECUTABLE_NOT_FOUND" in shown.out
    assert again == "coordinate-agents graph-resume plan a --run"
    assert walk(world, paste(world, other)) == ["graph-integrate plan"]


def test_program_that_the_configuration_of_then_has_in_another_place(world: World) -> None:
    gone = world.agent(ADDS, "gone")
    world.configure({"one": (gone,)})
    assert world.run("graph-create", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n")).code == 0
    gone.unlink()
    failed = world.run("graph-run", "plan")
    world.configure({"one": (ONE_COMMIT,)})
    shown = paste(world, advised(failed)[0])
    assert "coordinate-agents graph-amend plan FILE" in shown.out
    amended = world.run("graph-amend", "plan", world.place / "plan.yaml")
    assert (amended.code, walk(world, shown)) == (0, ["graph-resume plan a --run", "graph-integrate plan"])


def test_stopped_after_a_success(world: World) -> None:
    assert walk(world, stopped_in_b(world)) == ["graph-run plan --retry-failed", "graph-integrate plan"]


def test_cleaned_up_before_a_rework(world: World) -> None:
    ran(world, TWO, "--integrate")
    cleaned = world.run("graph-cleanup", "plan", "--all")
    assert paste(world, advised(cleaned)[0]).code == 0
    for verb in (("graph-check",), ("graph-accept", "--waive", "scope", "--reason", "x")):
        looked = world.run(verb[0], "plan", "a", *verb[1:])
        assert (looked.code, "its worktree was removed" in looked.out) == (0, True), str(looked)
    asked = world.run("graph-review", "plan", "a", "--decision", "CHANGES_REQUESTED", "--feedback", "more")
    assert walk(world, asked) == ["graph-run plan --integrate"]
    assert world.files("coordinate-agents/plan/integration")["f-a"] == "1\n1"


@pytest.mark.parametrize("what", ["worktrees", "branches", "everything git knows"])
def test_things_of_ended_subtasks_that_somebody_deleted(world: World, what: str) -> None:
    """Neither the integration nor a rework loses what was verified."""
    ran(world)
    if what == "worktrees":
        for subtask in "ab":
            shutil.rmtree(place(world, subtask))
    if what == "branches":
        for subtask in "ab":
            git(world.root, "update-ref", "-d", branch(subtask))
    if what == "everything git knows":
        for subtask in "ab":
            git(world.root, "worktree", "remove", "-f", "-f", str(place(world, subtask)))
            git(world.root, "branch", "-q", "-D", f"coordinate-agents/plan/{subtask}")
    assert walk(world, world.run("graph-status", "plan")) == ["graph-integrate plan"]
    asked = world.run("graph-review", "plan", "a", "--decision", "CHANGES_REQUESTED", "--feedback", "more")
    assert walk(world, asked) == ["graph-run plan --integrate"]
    assert world.files("coordinate-agents/plan/integration")["f-a"] == "1\n1"


@pytest.mark.parametrize("way", [1, 2])
def test_branch_that_was_deleted_below_a_failed_attempt(world: World, way: int) -> None:
    """HEAD of its worktree named no commit then, and the next commit began a history without the base."""
    world.configure({"one": (world.agent(f'{ADDS}; [ "$COORDINATE_AGENTS_ATTEMPT" -ge 2 ] || exit 7'),)})
    done = ran(world, "id: plan\nsubtasks: [{id: a, spec: x}]\n", code=4)
    git(world.root, "update-ref", "-d", branch("a"))
    following = advised(paste(world, advised(done)[0]))[way - 1]
    assert following.split()[1] == ("graph-resume" if way == 1 else "graph-check")
    assert walk(world, paste(world, following))[-1] == "graph-integrate plan"
    assert world.files("coordinate-agents/plan/integration")["f-a"] == ("1\n2" if way == 1 else "1")


def test_branch_that_was_moved_and_a_subtask_that_is_redone(world: World) -> None:
    ran(world, TWO, "--integrate")
    git(world.root, "update-ref", branch("a"), git(world.root, "rev-parse", f"{branch('a')}~1"))
    redone = world.run("graph-resume", "plan", "a", "--redo", "--from", "base")
    assert walk(world, redone) == ["graph-run plan", "graph-integrate plan"]
    assert world.run("graph-verify", "plan").code == 0


def test_repository_that_was_moved(world: World) -> None:
    done = stopped_in_b(world)
    kept = place(world, "b")
    world.root = world.root.rename(world.place / "elsewhere")
    world.environment["PWD"] = str(world.root)
    failed = paste(world, advised(done)[0])
    assert walk(world, failed) == [
        "graph-inspect plan b --part failure",
        "git worktree repair",
        "graph-resume plan b --run",
        "graph-integrate plan",
    ]
    assert place(world, "b") == kept


def test_worktree_root_that_is_not_there_any_more(world: World) -> None:
    done = stopped_in_b(world)
    world.worktrees.rename(world.place / "unmounted")
    assert walk(world, done) == ["graph-run plan --retry-failed", "graph-integrate plan"]


def test_state_folder_that_was_deleted(world: World) -> None:
    """The record is gone, branches and worktrees are not: nobody takes them for those of a new graph."""
    ran(world)
    kept, clean = place(world, "a"), place(world, "b")
    before = kept / "unsaved"
    before.write_text("mine\n")
    tips = git(world.root, "for-each-ref", "refs/heads")
    shutil.rmtree(world.root / ".git" / "coordinate-agents")
    found = [each for each in world.run("doctor", "--json").data["findings"] if each["what"] == "leftovers"]
    assert [each["said"] for each in found] == [
        "branches of graphs in no record: coordinate-agents/plan/a and coordinate-agents/plan/b",
        *(f"worktree {folder} is of a graph in no record" for folder in (kept, clean)),
    ]
    # What is advised takes one that is clean, and refuses the other.
    for each, is_gone in zip(found[1:], (False, True), strict=True):
        done = subprocess.run(each["next"], shell=True, cwd=world.root, env=world.environment, capture_output=True)
        assert (done.returncode == 0) == is_gone
    assert (clean.exists(), before.read_text()) == (False, "mine\n")
    refused = world.run("graph-run", world.place / "plan.yaml")
    assert (refused.code, refused.err.split(":")[0]) == (1, "WORKTREE_CONFLICT"), str(refused)
    assert "coordinate-agents/plan/a and coordinate-agents/plan/b" in refused.err
    again = paste(world, advised(refused)[0])
    assert walk(world, again, graph="plan-2") == ["graph-run plan-2", "graph-integrate plan-2"]
    assert before.read_text() == "mine\n"
    assert tips in git(world.root, "for-each-ref", "refs/heads")
    assert "leftovers" in world.run("doctor").out


def test_folder_of_somebody_else_in_the_place_of_a_worktree(world: World) -> None:
    done = stopped_in_b(world)
    taken = place(world, "b")
    # It keeps its number, as a new folder often gets that of the one removed just before.
    for path in taken.iterdir():
        path.unlink()
    (taken / "mine").write_text("mine\n")
    assert walk(world, paste(world, advised(done)[0]))[1:] == [
        f"mv {taken} {taken}.other".replace(str(world.place), "~"),
        "graph-resume plan b --run",
        "graph-integrate plan",
    ]
    assert Path(f"{taken}.other", "mine").read_text() == "mine\n"


def test_quota_that_is_exhausted_for_longer_than_anybody_waits(world: World) -> None:
    refuses = "echo 'API Error: 429 rate_limit_error, retry after 86400'; exit 1"
    limited = world.agent(f"cat > /dev/null; [ -e {world.place}/open ] || {{ {refuses}; }}\n{ADDS}")
    world.configure_text(f"version: 1\nagents:\n  limited: {{adapter: claude, command: {limited}}}\n")
    done = ran(world, "id: plan\nsubtasks: [{id: a, spec: x, inputTimeout: 1h}]\n", code=5)
    (world.place / "open").touch()
    assert walk(world, done) == [
        "graph-inspect plan a --part failure",
        "graph-resume plan a --run",
        "graph-integrate plan",
    ]


def test_question_that_nobody_answered_in_time(world: World) -> None:
    asks = f"[ -e {world.place}/open ] || {{ printf 'Do you trust this folder? [y/N] '; read a; }}\n{ADDS}"
    world.configure({"one": (world.agent(asks),)})
    done = ran(world, "id: plan\nsubtasks: [{id: a, spec: x, inputTimeout: 1s}]\n", code=5)
    (world.place / "open").touch()
    assert walk(world, done)[-2:] == ["graph-resume plan a --run", "graph-integrate plan"]


def test_discarded_and_brought_back(world: World) -> None:
    unsaved = f'[ "$COORDINATE_AGENTS_ATTEMPT" -ge 2 ] || {{ {ADDS}; echo more >> "f-$S"; exit 7; }}; {ADDS}'
    world.configure({"one": (world.agent(unsaved),)})
    ran(world, "id: plan\nsubtasks: [{id: a, spec: x}]\n", code=4)
    done = world.run("graph-cleanup", "plan")
    for step in ("--discard a", "--confirm"):
        assert step in advised(done)[0]
        done = paste(world, advised(done)[0])
    refused = world.run("graph-check", "plan", "a")
    assert advised(refused) == ["coordinate-agents graph-undo plan a"]
    shown = world.run("graph-inspect", "plan", "a", "--part", "failure")
    assert "Kept: branch coordinate-agents/plan/a; its worktree was removed" in shown.out
    again, undo = advised(shown)
    assert paste(world, undo).code == 0
    assert walk(world, paste(world, again)) == ["graph-integrate plan"]
    assert world.files("coordinate-agents/plan/integration")["f-a"] == "1\nmore\n2"


def test_forgotten_and_created_again(world: World) -> None:
    ran(world, TWO, "--integrate")
    done = world.run("graph-forget", "plan")
    for verb in ("graph-cleanup plan --all", "graph-cleanup plan --early --all"):
        assert advised(done) == [f"coordinate-agents {verb}"]
        done = paste(world, advised(done)[0])
    assert world.run("graph-forget", "plan").code == 0
    refused = world.run("graph-run", world.place / "plan.yaml", "--integrate")
    assert refused.code == 1, str(refused)
    again = paste(world, advised(refused)[0])
    assert walk(world, again, graph="plan-2") == ["graph-run plan-2", "graph-integrate plan-2"]


def test_middle_of_an_approved_graph_that_is_redone(world: World) -> None:
    reviewed = paste(world, advised(ran(world, THREE, "--integrate"))[-1])
    assert walk(world, reviewed, to="APPROVED")[-1].endswith("--decision REVIEW_APPROVED")
    redone = world.run("graph-resume", "plan", "b", "--redo")
    assert walk(world, redone) == ["graph-run plan", "graph-integrate plan"]
    assert [each["attempt"] for each in world.status("plan")["subtasks"]] == [1, 2, 2]
    # An approval is of one commit: the new one wants its own.
    assert walk(world, world.run("graph-status", "plan"), to="APPROVED") == [
        "graph-review plan",
        "graph-review plan --decision REVIEW_APPROVED",
    ]


def test_changes_for_a_subtask_whose_session_is_gone(world: World) -> None:
    script = world.place / "stays.sh"
    script.write_text(f'S="$COORDINATE_AGENTS_SUBTASK"\n{STAYS_ADDS}\n')
    lines = ["version: 1", "agents:", "  stays:", f"    command: {STAYS}", "    mode: interactive"]
    world.configure_text("\n".join([*lines, "    adapter: generic", f"    args: [{script}]"]) + "\n")
    ran(world, "id: plan\nsubtasks: [{id: a, spec: x}]\n", "--integrate")
    assert world.run("session-close", "plan/a").code == 0
    asked = world.run("graph-review", "plan", "a", "--decision", "CHANGES_REQUESTED", "--feedback", "more")
    assert asked.code == 0, str(asked)
    # Also from the status alone, which somebody else looks at later.
    assert walk(world, world.run("graph-status", "plan")) == ["graph-run plan --integrate"]


def test_the_looking_for_advice_takes_commands_and_no_prose() -> None:
    out = "Needs:\n    coordinate-agents a b\nsay coordinate-agents x\nNext, when: git y\n  mv p q\nNext: set z\n"
    err = "Next: coordinate-agents graph-create FILE --as X\nNext: coordinate-agents c --say TEXT\n"
    printed = Done((), 0, out, err)
    assert advised(printed) == ["coordinate-agents a b", "git y", "mv p q"]
