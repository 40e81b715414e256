"""Every error has its three sentences, whatever the place that raised it left out."""

import errno

import pytest

from coordinate_agents.cli import failures
from coordinate_agents.graph.errors import CODES, GraphError
from coordinate_agents.graph.operations.table import verb_named


@pytest.mark.parametrize("code", sorted(CODES))
def test_an_error_that_only_says_what_happened_is_completed(code: str) -> None:
    error = failures.with_all_sentences(GraphError(code, "It broke."), command="graph-status")
    lines = failures.to_lines(error)
    assert [line.partition(":")[0] for line in lines] == [code, "Kept", "Next"]
    assert {"kept", "next"} <= failures.to_json(error).keys()
    program, *words = (error.next or "").split()
    if program == "coordinate-agents":
        assert verb_named(words[0]) is not None


def test_what_the_error_says_itself_stays() -> None:
    said = GraphError("TASK_NOT_FOUND", "There is no graph p.", kept="all", next="coordinate-agents graph-create FILE")
    whole = failures.with_all_sentences(said, command="graph-run")
    assert (whole.kept, whole.next) == ("all", "coordinate-agents graph-create FILE")


def test_wrong_usage_before_any_verb_leads_to_the_help() -> None:
    whole = failures.with_all_sentences(GraphError("INVALID_USAGE", "no such verb."), command=None)
    assert (whole.kept, whole.next) == ("everything as it is", "coordinate-agents --help")


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_place_that_cannot_be_written_is_no_bug_of_ours(number: int) -> None:
    found = failures.as_graph_error(OSError(number, "no", "/repo/.git/a b/judge"), ["graph-verify"])
    assert (found.code, found.message) == (
        "REPOSITORY_UNSUPPORTED",
        "/repo/.git/a b/judge cannot be read or written: no.",
    )
    assert found.next == "ls -ld '/repo/.git/a b'"


def test_what_ended_a_drive_from_inside_its_tasks_is_told_and_not_called_a_bug() -> None:
    """Before, a disk that was full as a step ended was INTERNAL_ERROR: ExceptionGroup."""
    full = GraphError("DISK_FULL", "full")
    found = failures.as_graph_error(ExceptionGroup("x", [ExceptionGroup("y", [full, OSError(28, "full")])]), ["v"])
    assert found is full


def test_a_bug_among_what_ended_a_drive_is_a_bug(isolation: object) -> None:
    errors = ExceptionGroup("x", [GraphError("DISK_FULL", "full"), ValueError("wrong")])
    assert failures.as_graph_error(errors, ["v"]).code == "INTERNAL_ERROR"
