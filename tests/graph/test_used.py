"""The sum of what turns took: over attempts, and of an agent that tells its conversation's running total."""

from coordinate_agents.graph.codec import to_plain
from coordinate_agents.graph.events import TaskClaimed, TurnEnded
from coordinate_agents.graph.model import GraphId, SubtaskId, Task, TaskGraph
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.graph.used import Used
from coordinate_agents.graph.view import usage_json
from coordinate_agents.sessions.model import Usage

A = SubtaskId("a")


def ended(usage: Usage | None, conversation: str | None = None) -> TurnEnded:
    return TurnEnded(A, "s", "exit", 0, external_session=conversation, usage=usage)


def used_after(*events: TurnEnded | TaskClaimed) -> Used:
    snapshot = Snapshot(TaskGraph(GraphId("g"), "", (Task(A, "A"),)))
    for event in events:
        snapshot.fold(event, time=1.0)
    return snapshot.runs[A].used


def test_turns_are_added_and_what_none_of_them_said_stays_unsaid() -> None:
    found = used_after(ended(Usage(10, None, 5, cost_usd=0.5)), ended(None), ended(Usage(20, 7, 1)))
    assert (found.total, found.turns) == (Usage(30, 7, 6, None, 0.5), 2)
    assert used_after(ended(None)) == Used()


def test_running_totals_of_one_conversation_replace_each_other_and_are_added_to_those_before() -> None:
    def told(tokens: int) -> Usage:
        return Usage(tokens, is_of_conversation=True)

    claimed = TaskClaimed(A, 2, "coder", "n")
    turns = [ended(told(100), "first"), ended(told(150), "first"), claimed, ended(told(40), "second")]
    assert [used_after(*turns[:count]).total for count in (1, 2, 4)] == [Usage(100), Usage(150), Usage(190)]
    assert used_after(*turns, ended(told(60), "second")).total == Usage(210)


def test_status_shows_the_sum_with_its_turns() -> None:
    run = {"used": to_plain(used_after(ended(Usage(10, 2, 5, cost_usd=0.25))))}
    assert usage_json(run) == {
        "turns": 1, "inputTokens": 10, "cachedTokens": 2, "outputTokens": 5, "totalTokens": None, "costUsd": 0.25,
    }  # fmt: skip
    assert usage_json({}) is None
