"""What is said when a graph file changed between run and resume (case GF-23)."""

from documents import parse

from coordinate_agents.graph.differences import differences


def test_renamed_subtask_dropped_dependency_and_changed_text_are_listed() -> None:
    old = parse(
        "subtasks:\n  - {id: a, spec: First}\n  - {id: b, spec: q, dependsOn: a}\n  - {id: c, spec: r, dependsOn: b}\n"
    )
    new = parse("subtasks:\n  - {id: a, title: First, spec: Second}\n  - {id: b, spec: q}\n  - {id: c2, spec: r}\n")
    assert differences(old, new) == (
        "subtask a: spec changed (5 → 6 characters, line 1 on)",
        "subtask b: dependsOn [a] → []",
        "subtask c: removed",
        "subtask c2: added",
    )


def test_every_kind_of_value_is_spelled_as_people_write_it() -> None:
    old = parse("title: t\nresources: {db: 1}\nchecks: [make]\nsubtasks: [{id: a, spec: p, timeout: 90s}]")
    new = parse(
        "title: t\nmaxConcurrency: 8\nresources: {db: 2}\nchecks: [{name: m, run: [make, all]}]\n"
        "subtasks: [{id: a, spec: p, timeout: 2h, writes: [], agent: codex}]"
    )
    assert differences(old, new) == (
        "graph: maxConcurrency 4 → 8",
        "graph: resources {db: 1} → {db: 2}",
        "graph: checks [make (make)] → [m (make all)]",
        "subtask a: agent none → codex",
        "subtask a: writes none → []",
        "subtask a: timeout 1m30s → 2h",
        "subtask a: expect commit → nothing",
    )


def test_order_of_subtasks_is_no_difference() -> None:
    old = parse("subtasks: [{id: a, spec: p}, {id: b, spec: q}]")
    assert differences(old, parse("subtasks: [{id: b, spec: q}, {id: a, spec: p}]")) == ()


def test_many_differences_are_counted() -> None:
    old = parse("subtasks: [" + ", ".join(f"{{id: a{n}, spec: p}}" for n in range(150)) + "]")
    lines = differences(old, parse("subtasks: [{id: z, spec: p}]"))
    assert len(lines) == 101
    assert lines[-1] == "and 51 more differences"
