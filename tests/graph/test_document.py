"""The graph document: what is accepted, what it means, and what a report says. Cases GF-01 to GF-23."""

import gc
from pathlib import Path
from typing import Any

import pytest
from documents import FIXTURES, fixtures, parse, problems, read

from coordinate_agents.graph import document
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.model import Check, GraphId, SubtaskId, Task, TaskGraph, from_json, to_json

_DEFAULTS: dict[str, Any] = {
    "agent": "claude",
    "timeout_s": 2700.0,
    "idle_timeout_s": 600.0,
    "input_timeout_s": 43200.0,
    "on_idle": "stop",
    "attempts": 2,
    "fix_turns": 3,
    "commit": "auto",
}


@pytest.mark.parametrize("path", fixtures("invalid"), ids=lambda path: path.stem)
def test_invalid_document_reports_every_problem_with_its_position(path: Path) -> None:
    with pytest.raises(GraphError) as raised:
        read(path)
    report = [document.problem_line(path.name, problem) for problem in raised.value.problems]
    assert report == path.with_suffix(".problems").read_text().splitlines()
    assert raised.value.code == "TASK_GRAPH_INVALID"
    assert raised.value.exit_code == 2
    assert raised.value.kept == "Nothing was created."


@pytest.mark.parametrize("path", fixtures("valid") + fixtures("graphs"), ids=lambda path: path.stem)
def test_valid_document_loads_and_survives_the_store(path: Path) -> None:
    graph = read(path).graph
    assert from_json(to_json(graph)) == graph


def test_the_sample_graphs_have_their_sizes() -> None:
    sizes = {
        path.stem: (len(graph.tasks), graph.edge_count) for path in fixtures("graphs") if (graph := read(path).graph)
    }
    assert len(sizes) == 21
    assert sizes["04-spec-phases-29"] == (29, 106)
    assert sizes["12-monorepo-layered-60"] == (60, 98)
    assert sizes["17-layered-300"] == (300, 810)
    assert sizes["21-dense-30"] == (30, 225)


def test_shortest_document_gets_every_default() -> None:
    assert read(FIXTURES / "valid" / "shortest.yaml").graph == TaskGraph(
        id=GraphId("shortest"),
        title="shortest",
        tasks=(
            Task(SubtaskId("schema"), "Add the order tables and a migration.", "Add the order tables and a migration."),
            Task(
                SubtaskId("api"),
                "Add the order endpoints.",
                "Add the order endpoints.",
                depends_on=(SubtaskId("schema"),),
            ),
            Task(SubtaskId("ui"), "Build the order form.", "Build the order form.", depends_on=(SubtaskId("api"),)),
        ),
        base="HEAD",
        max_concurrency=4,
        checks=(Check("pytest -q", ("pytest", "-q"), timeout_s=600.0, check_in="worktree"),),
    )


def test_document_with_every_key_means_what_it_says() -> None:
    graph = read(FIXTURES / "valid" / "all-keys.yaml").graph
    assert graph == TaskGraph(
        id=GraphId("checkout"),
        title="Build the checkout flow",
        base="main",
        spec="Context that every agent needs.",
        max_concurrency=8,
        max_checks=2,
        resources={"db": 1, "gpu": 2},
        scope_policy="strict",
        checks=(
            Check(
                "tests", ("pytest", "-q"), timeout_s=600.0, check_in="pristine", protect=("tests/**",), needs=("db",)
            ),
            Check("ruff check .", ("ruff", "check", ".")),
        ),
        integration_checks=(Check("make test", ("make", "test")),),
        tasks=(
            Task(
                SubtaskId("schema"),
                "Add the tables",
                "Add the tables.\n\nKeep the old ones.\n",
                agent="codex",
                writes=("db/**",),
                checks=(Check("pytest -q tests/db", ("pytest", "-q", "tests/db")),),
                needs=("db",),
                priority=10,
                timeout_s=5400.0,
                idle_timeout_s=90.0,
                input_timeout_s=7200.0,
                on_idle="mark",
                attempts=1,
                fix_turns=0,
                commit="runtime",
                expect="commit",
            ),
            Task(
                SubtaskId("research"),
                "Find out how the tables are used.",
                "Find out how the tables are used.\n\nWrite nothing.\n",
                writes=(),
                expect="nothing",
                **_DEFAULTS,
            ),
            Task(
                SubtaskId("pkg/Web-1.2_b"),
                "Only a title",
                "",
                depends_on=(SubtaskId("schema"), SubtaskId("research")),
                writes=("web", "*.md", "./[a-z]?/**/x"),
                expect="either",
                **_DEFAULTS,
            ),
        ),
    )


def test_merge_keys_give_way_to_own_keys_and_to_earlier_sources() -> None:
    one, two, three = read(FIXTURES / "valid" / "merge-keys.yaml").graph.tasks
    assert (one.agent, one.timeout_s, one.priority) == ("codex", 300.0, 0)
    assert (two.agent, two.timeout_s, two.priority, two.depends_on) == ("codex", 300.0, 3, ("one",))
    assert (three.agent, three.timeout_s, three.priority, three.depends_on) == (None, 60.0, 3, ("one",))


def test_json_with_tabs_and_surrogate_pairs_is_read_as_json_means_it() -> None:
    first = read(FIXTURES / "valid" / "as-json.yaml").graph.tasks[0]
    assert first.spec == "An emoji \U0001f600 and a path C:\\ud83d/x"


def test_surrogate_escapes_in_a_literal_block_stay_as_written() -> None:
    graph = parse("subtasks:\n  - id: a\n    spec: |\n      \\ud83d\\ude00\n")
    assert graph.tasks[0].spec == "\\ud83d\\ude00\n"


def test_awkward_plan_keeps_ids_and_texts_exactly() -> None:
    graph = read(FIXTURES / "valid" / "awkward.yaml").graph
    assert [task.id for task in graph.tasks][:4] == ["no", "1.10", "1.1", "010"]
    by_id = {task.id: task for task in graph.tasks}
    assert by_id[SubtaskId("block-literal")].title == 'It\'s a "quoted" title: with colon # and hash'
    assert by_id[SubtaskId("block-literal")].spec == (
        "First line.\n\n  indented code:\n    printf '%s\\n' \"$HOME\" `id` $(id)\n"
        "Last line without special meaning: --- ... %TAG\n"
    )
    assert by_id[SubtaskId("block-folded")].spec == "one long folded line"
    assert by_id[SubtaskId("last")].agent == "reviewer"


def test_empty_depends_on_means_no_prerequisites() -> None:
    assert parse("subtasks:\n  - id: a\n    spec: p\n    dependsOn:\n").tasks[0].depends_on == ()


def test_unquoted_words_of_the_format_itself_need_no_quotes() -> None:
    graph = parse("subtasks: [{id: y, spec: n, x-on: no, x-date: 2026-01-02}]\nx-anything: [~, {a: [1.5, off]}]\n")
    assert [task.id for task in graph.tasks] == ["y"]


def test_file_name_that_is_no_id_asks_for_one() -> None:
    text = b"subtasks: [{id: a, spec: p}]"
    with pytest.raises(GraphError) as raised:
        document.parse(text, name="1.yaml", stem="1", read_spec_file=None)
    assert raised.value.problems[0].message == (
        "the file's name gives no graph id, so write `id: …`: graph id '1' must begin with a letter and hold only "
        "letters a-z and A-Z, digits, '_' and '-', at most 128 in all"
    )
    with pytest.raises(GraphError) as raised:
        document.parse(text, name="document", stem=None, read_spec_file=None)
    assert raised.value.problems[0].message == (
        "`id` is missing, and there is no file name to take it from; write `id: …`"
    )


def test_error_names_the_file_the_place_and_the_next_command() -> None:
    with pytest.raises(GraphError) as raised:
        document.parse(b"subtasks: [{id: a}, {id: b}]", name="my plan.yaml", stem="g", read_spec_file=None)
    assert str(raised.value) == (
        "my plan.yaml:1:12: one of `spec`, `specFile` and `title` must say what is to be done (and 1 more)"
    )
    assert raised.value.next == "coordinate-agents graph-validate 'my plan.yaml'"
    assert raised.value.facts == {"file": "my plan.yaml"}
    with pytest.raises(GraphError) as raised:
        document.parse(b"", name="<stdin>", stem=None, read_spec_file=None)
    assert raised.value.next is None


def test_repeated_problem_of_a_merged_mapping_is_reported_once() -> None:
    text = "x-c: &c {agnet: x}\nsubtasks:\n" + "".join(f"  - {{<<: *c, id: s{n}, spec: p}}\n" for n in range(9))
    assert problems(text) == [
        "g.yaml:1:10: unknown key 'agnet': did you mean 'agent'? (a key of your own begins with 'x-')"
    ]


def test_ten_thousand_problems_give_a_bounded_report() -> None:
    text = "subtasks:\n" + "".join(f"  - {{id: s{n}, spec: p, zzz{n}: 1, dependsOn: [q{n}]}}\n" for n in range(5000))
    report = problems(text)
    assert len(report) == 501
    assert report[-1].endswith("and 9500 more problems")


def test_derived_check_names_are_unique_and_bounded() -> None:
    graph = parse(
        "checks: [make, make, 'make (2)']\nsubtasks: [{id: a, spec: p, checks: [make, {run: [sh, -c, '"
        + "x" * 99
        + "']}]}]\n"
    )
    assert [check.name for check in graph.checks] == ["make", "make (2)", "make '(2)'"]
    assert [check.name for check in graph.tasks[0].checks] == ["make (3)", "sh -c " + "x" * 53 + "…"]


def test_title_comes_from_the_first_line_of_the_spec() -> None:
    task = parse("subtasks:\n  - id: a\n    spec: |\n\n      First.\n      Second.\n").tasks[0]
    assert task.title == "First."


@pytest.mark.parametrize("was_on", [True, False])
def test_garbage_collection_is_left_as_it_was(was_on: bool) -> None:
    (gc.enable if was_on else gc.disable)()
    try:
        parse("subtasks: [{id: a, spec: p}]")
        problems("subtasks: []")
        assert gc.isenabled() is was_on
    finally:
        gc.enable()


def _canonical(text: str) -> str:
    return document.canonical(text.encode(), name="g.yaml", stem="g", read_spec_file=lambda name: b"from a file")


def test_canonical_content_ignores_form_and_keeps_meaning() -> None:
    first = _canonical(
        "# one\nid: a\nsubtasks:\n  - {id: x, spec: p, timeout: 60s}\n  - {id: y, spec: q, dependsOn: x}\n"
    )
    same = _canonical(
        "subtasks:\n  - {dependsOn: ['x'], spec: \"q\", id: y, x-note: 1}\n  - spec: p\n    id: x\n    timeout: 1m\n"
    )
    assert first == same
    assert first != _canonical("subtasks:\n  - {id: x, spec: p, timeout: 61s}\n  - {id: y, spec: q, dependsOn: x}\n")
    assert _canonical("subtasks: [{id: x, specFile: f}]") == _canonical("subtasks: [{id: x, spec: from a file}]")


def test_masked_exit_codes_are_warned_about_with_their_position() -> None:
    text = (
        "checks:\n  - pytest -q\n  - [sh, -c, 'pytest -q || true']\n"
        "  - {name: x, run: [bash, -lc, 'pytest | tail -1']}\n"
        "subtasks:\n  - {id: a, spec: p, checks: [[sh, -c, 'false; true'], 'make $TARGET']}\n"
    )
    found = document.parse_document(text.encode(), name="g.yaml", stem="g", read_spec_file=None)
    assert [document.problem_line("g.yaml", warning) for warning in found.warnings] == [
        "g.yaml:3:5: `|| …` in 'pytest -q || true' hides an exit code: the check may not be able to fail",
        "g.yaml:4:5: `| …` in 'pytest | tail -1' hides an exit code: the check may not be able to fail",
        "g.yaml:6:31: `; true` in 'false; true' hides an exit code: the check may not be able to fail",
        "g.yaml:6:56: '$TARGET' is handed over as it is: variables are expanded only by [sh, -c, …]",
    ]
    assert [warning.path for warning in document.warnings(found.graph)] == ["checks", "checks", "a.checks"]
