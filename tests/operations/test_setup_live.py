"""doctor --live sends one agent through a scratch repository and says what it found; nothing of it stays."""

from world import World

# What a model does with the doctor's prompt: run the line that it names.
_OBEYS = """run=$(printf '%s' "$1" | sed -n 's/^RUN: //p')
sh -c "$run"
"""


def _try(world: World, body: str) -> tuple[int, dict[str, tuple[str, str]]]:
    """Exit code of the doctor, and its findings about the agent: what → (level, said)."""
    scratch = world.place / "scratch"
    scratch.mkdir()
    world.environment["TMPDIR"] = str(scratch)
    program = world.place / "tried.sh"
    program.write_text(f"#!/bin/sh\n{body}")
    program.chmod(0o755)
    world.configure({"tried": (program,)}, default="tried")
    before = world.user_state()
    done = world.run("doctor", "--live", "tried", "--json")
    assert list(scratch.iterdir()) == []
    assert world.user_state() == before
    assert world.processes() == []
    found = {each["what"]: (each["level"], each["said"]) for each in done.document["data"]["findings"]}
    return done.code, {what: said for what, said in found.items() if what.startswith("live tried")}


def test_an_agent_that_works_is_said_to_be_ready(world: World) -> None:
    code, found = _try(world, _OBEYS)
    assert code == 0
    assert found["live tried"][1].startswith("it started, needed no login and no trust; it did its work in ")
    assert found["live tried, delivery"] == ("ok", "the prompt arrived whole")
    assert found["live tried, commit"] == ("ok", "it committed in a linked worktree by itself")


def test_an_agent_that_cannot_commit_is_said_to_need_the_runtime(world: World) -> None:
    code, found = _try(world, _OBEYS.replace("s/^RUN: //p", r"s/^RUN: \(.*\) && git add.*/\1/p"))
    assert code == 0
    assert found["live tried, delivery"] == ("ok", "the prompt arrived whole")
    assert found["live tried, commit"][1].startswith("it left its work uncommitted in a linked worktree")


def test_a_prompt_that_arrives_cut_is_a_warning(world: World) -> None:
    code, found = _try(world, "printf cut > live.txt && git add live.txt && git commit -qm live\n")
    assert (code, found["live tried, delivery"][0]) == (0, "warn")


def test_an_agent_that_fails_is_an_error_with_its_last_words(world: World) -> None:
    code, found = _try(world, "echo out of order\nexit 3\n")
    assert code == 1
    assert found["live tried"] == ("error", "AGENT_EXIT_NONZERO: tried exited 3, no commit.")
    assert found["live tried, its last words"] == ("warn", "out of order")


def test_an_agent_that_asks_is_an_error_and_is_not_answered(world: World) -> None:
    asks = "printf 'Overwrite? [y/N] '\nread -r answer\necho \"answered:$answer\"\n"
    code, found = _try(world, asks)
    assert (code, found["live tried, question"][0]) == (1, "error")
    assert "answered:" not in str(found)


def test_an_agent_that_is_not_known_is_an_error(world: World) -> None:
    done = world.run("doctor", "--live", "nobody")
    assert done.code == 1
    assert "ERROR  live nobody: There is no agent 'nobody'." in done.out


def test_inside_an_agent_nobody_is_tried(world: World) -> None:
    world.environment["COORDINATE_AGENTS_SESSION"] = "other.x.a1"
    done = world.run("doctor", "--live", "one", "--json")
    assert done.document["error"]["code"] == "AGENT_MAY_NOT"
