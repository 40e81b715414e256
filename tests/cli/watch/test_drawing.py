"""The screen as lines, for every size of terminal: what needs a person first, foreign text as text."""

from typing import Any

import pytest

from coordinate_agents.cli.layout import cells
from coordinate_agents.cli.watch.drawing import View, screen, wrapped
from coordinate_agents.cli.watch.filters import NAMES, fitting
from coordinate_agents.cli.watch.reader import Look, Told
from coordinate_agents.cli.watch.tree import tree

HOSTILE = "[bold red]x[/] \x1b[31m\u202e\x9b2J 测试\nsecond"


def subtask(name: str, state: str = "WAITING", **more: Any) -> dict[str, Any]:
    empty = dict.fromkeys(
        ("phase", "reason", "verifiedCommit", "summary", "retryAt", "elapsedS", "evidence", "failure", "session")
    )
    plain = {"id": name, "state": state, "title": f"Do {name}", "agent": "one", "attempt": 1, "dependsOn": []}
    return {**empty, "held": False, **plain, **more}


def view_of(*subtasks: dict[str, Any], attention: list[dict[str, Any]] | None = None, **more: Any) -> View:
    graph = {"id": "plan", "title": HOSTILE, "state": "RUNNING", "driver": None}
    status = {
        "graph": graph, "attention": attention or [], "subtasks": list(subtasks), "integration": None, "review": None,
        "frontier": {"running": 1, "waiting": len(subtasks) - 1},
    }  # fmt: skip
    by_id = {each["id"]: each for each in subtasks}
    told = tuple(Told(float(at), f"event {at} {HOSTILE}") for at in range(20))
    shown = tree({each["id"]: each["dependsOn"] for each in subtasks})
    return View(look=Look(status, told, at=100.0), shown=shown, by_id=by_id, now=130.0, **more)


def item(name: str | None, kind: str = "input") -> dict[str, Any]:
    return {"subtask": name, "kind": kind, "question": HOSTILE, "since": None, "next": f"coordinate-agents do {name}"}


def _many() -> View:
    waiting = [subtask(f"s{at:03}", title=HOSTILE, dependsOn=[f"s{at // 2:03}"] if at else []) for at in range(500)]
    waiting[0] |= {"state": "RUNNING", "phase": "working", "elapsedS": 5.0, "session": {"id": "s"}}
    waiting[9] |= {"state": "FAILED", "reason": HOSTILE, "failure": {"tail": HOSTILE}}
    attention = [item("s000"), item("s009", "failed"), item(None, "shared"), item("s010"), item("s011")]
    return view_of(*waiting, attention=attention, last={"s": HOSTILE}, terminal=[HOSTILE] * 30, message=[HOSTILE] * 9)


@pytest.mark.parametrize("size", [(200, 60), (80, 24), (40, 12), (20, 6), (7, 3), (1, 1)])
def test_five_hundred_subtasks_fit_every_terminal_wherever_the_cursor_is(size: tuple[int, int]) -> None:
    width, height = size
    view = _many()
    for cursor in (0, 9, 250, 499, 10_000):
        view.cursor = cursor
        lines = screen(view, width, height)
        assert len(lines) == height
        assert max(line.cell_len for line in lines) <= width
        assert all(char.isprintable() for line in lines for char in line.plain)
        if height >= 6:
            assert len([line for line in lines if line.plain.startswith(">")]) == 1


def test_attention_comes_first_with_the_keys_and_the_command_and_the_rest_is_counted() -> None:
    shown = [line.plain for line in screen(_many(), 100, 24)]
    assert shown[2] == r"! input s000: [bold red]x[/] \x1b[31m\u202e\x9b2J 测试 / second"
    assert shown[3] == "    coordinate-agents do s000  [r answers, a attaches]"
    assert shown[6].startswith("! shared: ")
    assert shown[7] == "! … and 2 more need a person; f shows them"
    assert shown[8].startswith("> s000")


def test_a_running_subtask_shows_its_phase_its_time_by_now_and_what_its_terminal_shows() -> None:
    running = subtask("a", "RUNNING", phase="working", elapsedS=5.0, session={"id": "s"})
    view = view_of(running, last={"s": "compiling"}, terminal=["one", "two [b]three[/b]"])
    shown = [line.plain.rstrip() for line in screen(view, 80, 24)]
    assert shown[2] == "> a  working            35s  compiling"
    below = shown.index("  agent one, try 1")
    assert shown[below - 1].startswith("── a: Do a ──")
    assert shown[below + 1 : below + 3] == ["  one", "  two [b]three[/b]"]


def test_a_problem_is_said_and_what_was_read_last_stays() -> None:
    view = view_of(subtask("a"))
    view.look = view.look._replace(problem="TASK_NOT_FOUND: gone")
    shown = [line.plain for line in screen(view, 80, 10)]
    assert shown[1] == "! not up to date: TASK_NOT_FOUND: gone"
    assert shown[2].startswith("> a")
    assert screen(View(), 80, 10)[0].plain == "reading the record …"


def test_who_drives_is_said_and_what_to_do_when_nobody_does() -> None:
    view = view_of(subtask("a"))
    assert view.look.status is not None
    second = screen(view, 100, 12)[1].plain
    assert second.endswith("nobody drives it. Next: coordinate-agents graph-run plan")
    view.look.status["graph"]["driver"] = {"pid": 7, "life": "stopped"}
    assert "driven by pid 7 IS STOPPED: kill -CONT 7" in screen(view, 100, 12)[1].plain


def test_filters_show_what_they_name() -> None:
    by_id = {
        each["id"]: each
        for each in (
            subtask("asks", "RUNNING", phase="awaiting-input"), subtask("bad", "FAILED"), subtask("done", "SUCCEEDED"),
            subtask("later", dependsOn=["bad"], title="The Last One"),
        )
    }  # fmt: skip
    nodes = tree({name: each["dependsOn"] for name, each in by_id.items()})
    found = {name: [node.id for node in fitting(nodes, by_id, [item("asks")], name, "")] for name in ("", *NAMES)}
    assert found == {
        "": ["asks", "bad", "later", "done"],
        "attention": ["asks"],
        "running": ["asks"],
        "unfinished": ["asks", "bad", "later"],
        "failed": ["bad"],
    }
    by_words = fitting(nodes, by_id, [], "last one", "last ONE")
    assert [(node.id, node.guide) for node in by_words] == [("later", "")]


def test_pages_leave_nothing_out_and_keep_within_the_width() -> None:
    lines = wrapped(["测试" * 10, "a\tb", "x" * 25, "", "\x1b[2J"], 9)
    assert max(cells(line) for line in lines) <= 9
    assert "".join(lines) == "测试" * 10 + "a    b" + "x" * 25 + "\\x1b[2J"
    assert lines[5:7] == ["a    b", "x" * 9]
