"""What leads on from a question: the commands that answer exactly it, and those that always help."""

from typing import Any

from coordinate_agents.graph.model import GraphId, SubtaskId, Task, TaskGraph
from coordinate_agents.graph.runs import TaskRun
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.graph.ways_out import ways_of_limit, ways_of_question

ANSWER = "coordinate-agents session-answer plan/a"
ALWAYS = ["coordinate-agents session-attach plan/a", "coordinate-agents graph-stop plan a"]


def _commands(question: dict[str, Any] | None) -> list[str]:
    return [way.command for way in ways_of_question("plan", "a", question)]


def _asked(kind: str, *answers: str, options: tuple[str, ...] = ()) -> dict[str, Any]:
    offered = [{"id": each, "name": each, "kind": "other"} for each in options]
    return {"request": "q-1", "kind": kind, "answers": list(answers), "options": offered}


def test_a_known_dialog_is_answered_with_yes_no_or_words() -> None:
    assert _commands(_asked("yes-no", "allow", "deny")) == [
        f"{ANSWER} --request q-1 --allow",
        f"{ANSWER} --request q-1 --deny",
        f"{ANSWER} --request q-1 --text TEXT",
        *ALWAYS,
    ]


def test_options_are_named_by_their_ids_and_take_no_words() -> None:
    assert _commands(_asked("permission", options=("one", "two; rm"))) == [
        f"{ANSWER} --request q-1 --option one",
        f"{ANSWER} --request q-1 --option 'two; rm'",
        *ALWAYS,
    ]


def test_a_login_is_done_at_the_terminal() -> None:
    assert _commands(_asked("login")) == ALWAYS


def test_one_that_only_stands_still_can_be_told_to_go_on() -> None:
    assert _commands(None) == [ALWAYS[0], "coordinate-agents graph-tell plan a TEXT", ALWAYS[1]]


def test_a_refused_agent_is_waited_for_or_replaced_by_another_one() -> None:
    a = SubtaskId("a")
    snapshot = Snapshot(TaskGraph(GraphId("plan"), title="plan", tasks=(Task(a, title="a", spec="x"),)))
    run = TaskRun(a, state="running", phase="throttled", agent="claude")
    wait = "coordinate-agents graph-wait plan --for a"
    assert [way.command for way in ways_of_limit(snapshot, run, agents=["claude"])] == [wait]
    assert [way.command for way in ways_of_limit(snapshot, run, agents=["claude", "codex"])] == [
        wait,
        "coordinate-agents graph-stop plan a",
        "coordinate-agents graph-resume plan a --agent codex --run",
    ]
