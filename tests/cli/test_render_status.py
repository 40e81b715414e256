"""What an act on one subtask answers: that subtask, what came of it, and no whole graph around it."""

from typing import Any

from coordinate_agents.cli.render_status import status


def _data(state: str, driver: dict[str, Any] | None, advice: list[str]) -> dict[str, Any]:
    plain = {
        "phase": None,
        "agent": "one",
        "attempt": 1,
        "elapsedS": 5.0,
        "reason": "a / b",
        "verifiedCommit": None,
    }
    attention = [
        {
            "subtask": name,
            "kind": "failed",
            "question": "it broke\nin lines",
            "next": f"coordinate-agents look {name}",
        }
        for name in ("a", "b", "c")
    ]
    return {
        "graph": {
            "id": "plan", "title": "T", "state": state, "baseCommit": "0" * 40, "revision": 1, "driver": driver,
        },
        "attention": attention,
        "subtasks": [{"id": name, "state": "FAILED", "session": None, **plain} for name in ("a", "b", "c")],
        "frontier": {"failed": 3, "stopped": 0, "ready": 0},
        "about": ["b"],
        "advice": advice,
    }  # fmt: skip


def test_an_act_answers_about_its_subtask_and_counts_the_rest() -> None:
    assert status(_data("FAILED", None, ["b is refused: it broke."]))[2:] == [
        "",
        "Needs a person:",
        "  failed b: it broke / in lines",
        "    coordinate-agents look b",
        "",
        "SUBTASK  STATE   AGENT  TRY  TIME  REASON",
        "b        FAILED  one    1    5s    a / b",
        "",
        "3 subtasks: 3 failed",
        "2 more matters for a person: coordinate-agents graph-status plan",
        "",
        "b is refused: it broke.",
        "Next, when the cause is settled: coordinate-agents graph-run plan --retry-failed",
    ]


def test_a_command_of_its_own_is_the_only_one() -> None:
    shown = status(_data("FAILED", None, ["Released.", "Next: coordinate-agents graph-run plan"]))
    assert shown[-2:] == ["Released.", "Next: coordinate-agents graph-run plan"]
