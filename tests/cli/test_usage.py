"""What a person types wrong, and what every call promises: exit codes, one JSON document, three lines of text."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from world import World

from coordinate_agents.cli.commands import VerbGroup
from coordinate_agents.cli.invocation import Invocation, parse
from coordinate_agents.graph.operations.table import VERBS

PLAN = "id: plan\nsubtasks: [{id: a, spec: x}]\n"


def test_an_unknown_verb_names_the_nearest_one(world: World) -> None:
    done = world.run("stauts")
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines() == [
        "INVALID_USAGE: there is no verb 'stauts'; did you mean graph-status?",
        "Kept: everything as it is",
        "Next: coordinate-agents --help",
    ]


def test_a_usage_error_with_json_is_one_document_on_stdout(world: World) -> None:
    done = world.run("graph-status", "--bogus", "--json")
    assert (done.code, done.err) == (2, "")
    assert done.document == {
        "ok": False,
        "command": "graph-status",
        "error": {
            "code": "INVALID_USAGE",
            "message": "No such option '--bogus'.",
            "recoverable": True,
            "stage": None,
            "kept": "everything as it is",
            "next": "coordinate-agents graph-status --help",
        },
    }


def test_json_behind_two_dashes_is_a_word_and_not_the_option(world: World) -> None:
    done = world.run("graph-status", "--", "--json")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("TASK_NOT_FOUND: There is no graph '--json' in this repository")


def test_an_id_that_looks_like_an_option_works_behind_two_dashes_in_json(world: World) -> None:
    done = world.run("graph-status", "--json", "--", "-x")
    assert done.code == 1
    assert done.document["error"]["message"] == "There is no graph '-x' in this repository; it has none yet."


def test_an_option_value_with_an_equals_sign_is_taken_whole(world: World) -> None:
    done = world.run("graph-list", f"--root={world.root}", "--json")
    assert (done.code, done.document) == (0, {"ok": True, "command": "graph-list", "data": {"graphs": []}})


@pytest.mark.parametrize(
    "words", [("graph-events", "--limit", "many", "--json"), ("graph-inspect", "--part=x", "--json")]
)
def test_a_wrong_value_is_a_usage_error_also_on_the_short_way(world: World, words: tuple[str, ...]) -> None:
    done = world.run(*words)
    assert (done.code, done.document["error"]["code"]) == (2, "INVALID_USAGE")


@pytest.mark.parametrize(
    ("words", "option", "following"),
    [
        (("graph-run", "--spec", "--json"), "--spec", "--json"),
        (("graph-stop", "plan", "--reason", "--drain", "--json"), "--reason", "--drain"),
        (("graph-events", "--after", "--json"), "--after", "--json"),
        (("graph-inspect", "--part", "--root", ".", "--json"), "--part", "--root"),
    ],
)
def test_an_option_is_not_taken_as_the_value_of_the_one_before_it(
    world: World, words: tuple[str, ...], option: str, following: str
) -> None:
    done = world.run(*words)
    assert (done.code, done.document["error"]["code"]) == (2, "INVALID_USAGE")
    assert done.document["error"]["message"] == (
        f"option {option} needs a value, and {following} is an option; {option}={following} would give it."
    )
    assert world.run("graph-list", "--json").document["data"] == {"graphs": []}


def test_an_option_to_repeat_that_is_left_out_is_empty_on_the_short_way() -> None:
    """graph-review --json without --and was a bug of ours."""
    found = parse(["graph-review", "plan", "--json"])
    assert found is not None
    assert (found.values["and_"], found.values["graph"], found.values["subtask"]) == ((), "plan", None)
    stopped = parse(["graph-stop", "--json"])
    assert stopped is not None
    assert stopped.values["drain"] is False


def test_a_value_that_looks_like_an_option_is_given_with_an_equals_sign(world: World) -> None:
    done = world.run("graph-stop", "--reason=--drain", "nothing", "--json")
    assert done.document["error"]["code"] == "TASK_NOT_FOUND"


@pytest.mark.parametrize("words", [("--json", "list"), ("list", "--json"), ("graph-list", "--json")])
def test_the_common_options_may_stand_before_the_verb(world: World, words: tuple[str, ...]) -> None:
    assert world.run(*words).document["data"] == {"graphs": []}
    assert world.run("--root", "/nowhere", *words).document["error"]["code"] == "NOT_A_REPOSITORY"


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("graph-accept", "plan", "a", "--waive", "tests"), "--reason"),
        (("graph-accept", "plan", "a", "--reason", "flaky"), "--waive"),
        (("graph-deliver", "plan"), "--branch"),
    ],
)
def test_a_required_option_that_is_left_out_is_a_usage_error(world: World, words: tuple[str, ...], option: str) -> None:
    done = world.run(*words, "--json")
    assert (done.code, done.document["error"]["message"]) == (2, f"Missing option '{option}'.")


def test_a_missing_file_argument_is_a_usage_error(world: World) -> None:
    done = world.run("graph-validate")
    assert done.code == 2
    assert done.err.startswith("INVALID_USAGE: Missing argument 'FILE'.")


def test_help_lists_every_verb_and_every_verb_has_help(world: World) -> None:
    done = world.run("--help")
    assert done.code == 0
    for verb in VERBS:
        assert verb.name in done.out
    assert "--until" in world.run("run", "--help").out


def test_no_words_at_all_print_the_help(world: World) -> None:
    assert world.run().out == world.run("--help").out


def test_version_is_one_line(world: World) -> None:
    assert world.run("--version").out == "coordinate-agents 0.1.0\n"


def test_the_prefix_may_be_left_out(world: World) -> None:
    plan = world.graph(PLAN)
    assert world.run("create", plan, "--json").document["command"] == "graph-create"
    assert world.run("status", "--json").data["graph"]["id"] == "plan"


def test_a_duration_that_is_none_is_refused_with_what_would_be_right(world: World) -> None:
    done = world.run("graph-wait", "--timeout", "soon")
    assert done.code == 2
    assert "'soon' is not a duration; write 90s, 45m, 2h or seconds, at most a year" in done.err


# A verb whose operation does not exist: nobody can type it, so meeting it is a bug of ours.
BROKEN = """
import sys
from coordinate_agents.cli.execute import execute
from coordinate_agents.cli.invocation import Invocation
from coordinate_agents.graph.operations.table import Verb
sys.exit(execute(Invocation(Verb("graph-broken", "", "none"), {}, None, sys.argv[1] == "json"), ["graph-broken"]))
"""


def test_a_bug_of_ours_is_written_to_a_private_file(isolation: Path) -> None:
    done = subprocess.run([sys.executable, "-c", BROKEN, "json"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (3, "")
    error = json.loads(done.stdout)["error"]
    report = Path(error.pop("traceback"))
    assert error == {
        "code": "INTERNAL_ERROR",
        "message": "A bug of ours: ModuleNotFoundError: No module named 'coordinate_agents.graph.operations.broken'.",
        "recoverable": False,
        "stage": None,
        "kept": "everything recorded before",
        "next": f"report it with the traceback in {report}",
    }
    assert report.parent == isolation / ".local" / "state" / "coordinate-agents" / "crashes"
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert report.read_text().startswith("coordinate-agents graph-broken\n")
    assert "Traceback" in report.read_text()


def test_a_bug_in_text_shows_where_the_traceback_is_and_not_the_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", BROKEN, "text"], capture_output=True, text=True)
    lines = done.stderr.splitlines()
    assert (done.returncode, done.stdout, len(lines)) == (3, "", 3)
    assert lines[0].startswith("INTERNAL_ERROR: A bug of ours: ModuleNotFoundError")
    assert lines[1] == "Kept: everything recorded before"
    assert lines[2].startswith("Next: report it with the traceback in /")


def test_a_bug_is_told_even_where_its_folder_cannot_be_made(tmp_path: Path) -> None:
    nowhere = os.environ | {"XDG_STATE_HOME": "/dev/null/x", "TMPDIR": str(tmp_path), "HOME": "/dev/null"}
    done = subprocess.run([sys.executable, "-c", BROKEN, "json"], capture_output=True, text=True, env=nowhere)
    assert done.returncode == 3
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "INTERNAL_ERROR"
    assert Path(error["traceback"]).parent == tmp_path


def test_problems_of_a_document_come_one_per_line_with_their_place(world: World) -> None:
    plan = world.graph("subtasks:\n  - {id: a, spec: x, dependsOn: b}\n  - {id: a, spec: y}\n")
    done = world.run("graph-validate", plan)
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines() == [
        f"TASK_GRAPH_INVALID: 2 problems in {plan}",
        f"{plan}:2:33: dependsOn 'b': there is no such subtask",
        f"{plan}:3:10: id 'a' is already used on line 2; ids are unique",
        "Kept: Nothing was created.",
        f"Next: coordinate-agents graph-validate {plan}",
    ]


def test_problems_of_a_document_in_json_have_line_column_path_and_message(world: World) -> None:
    plan = world.graph("subtasks:\n  - {id: a, spec: x, dependsOn: b}\n")
    problems = world.run("graph-validate", plan, "--json").document["error"]["problems"]
    assert problems == [
        {
            "line": 2,
            "column": 33,
            "path": "subtasks[0].dependsOn[0]",
            "message": "dependsOn 'b': there is no such subtask",
        }
    ]


def test_an_option_that_a_verb_needs_is_missed_by_its_name(world: World) -> None:
    for words in (("graph-deliver", "plan"), ("graph-accept", "plan", "a", "--waive", "unit")):
        done = world.run(*words)
        assert done.code == 2, str(done)
        assert "Missing option '--" in done.err


def _by_click(words: Sequence[str]) -> Invocation | str:
    """What the long way makes of the words: the values, or what is wrong with them."""
    found: list[Invocation] = []
    group = VerbGroup(lambda invocation: found.append(invocation) or 0)
    try:
        group.main(list(words), prog_name="coordinate-agents", standalone_mode=False)
    except click.UsageError as error:
        return error.format_message()
    return found[0]


@pytest.mark.parametrize(
    "words",
    [
        ("graph-stop", "plan", "--reason=--drain"),
        ("graph-stop", "plan", "--reason", "--no-option"),
        ("graph-stop", "plan", "--reason", "--", "--drain"),
        ("graph-stop", "plan", "--root="),
        ("graph-run", "plan", "--until", "--root=/elsewhere"),
        ("graph-run", "plan", "--max-starts", "007", "--on-input=fail", "--until=x", "--until", "--agent=y"),
        ("graph-review", "plan", "--decision=REVIEW_APPROVED", "--feedback=-h", "--", "-"),
    ],
)
def test_both_ways_find_the_same_values(words: tuple[str, ...]) -> None:
    short = parse([words[0], "--json", *words[1:]])
    assert short is not None
    assert _by_click([words[0], "--json", *words[1:]]) == short
    assert _by_click(words) == short._replace(as_json=False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("graph-run", "plan", "--json", "--until"), "requires an argument"),
        (("graph-cleanup", "plan", "--json", "--discard"), "requires an argument"),
        (("graph-stop", "plan", "--reason", "-h", "--json"), "--reason=-h would give it"),
        (("graph-list", "--root", "--help", "--json"), "--root=--help would give it"),
    ],
)
def test_an_option_without_its_value_is_refused_on_both_ways(words: tuple[str, ...], said: str) -> None:
    assert parse(words) is None
    said_by_click = _by_click(words)
    assert isinstance(said_by_click, str) and said in said_by_click
