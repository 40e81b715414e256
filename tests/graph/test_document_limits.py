"""The limits of the graph document: each is refused quickly, one line, no traceback, bounded memory and time."""

import sys
import time

import pytest
from documents import parse, problems

from coordinate_agents.graph import yaml_text


def _subtasks(count: int) -> str:
    return "subtasks:\n" + "".join(f"  - {{id: s{n}, spec: p}}\n" for n in range(count))


def test_ten_thousand_subtasks_load_and_one_more_is_refused() -> None:
    assert len(parse(_subtasks(10_000)).tasks) == 10_000
    assert problems(_subtasks(10_001)) == ["g.yaml:2:3: 10001 subtasks; at most 10000, split the graph"]


def test_spec_of_256_kib_is_the_largest() -> None:
    assert len(parse(f"subtasks: [{{id: a, spec: {'x' * 262144}}}]").tasks[0].spec) == 262144
    assert problems(f"subtasks: [{{id: a, spec: {'ä' * 131073}}}]") == [
        "g.yaml:1:26: spec has 262146 bytes; at most 262144 (256 KiB)"
    ]


def test_file_of_more_than_64_mib_is_refused_before_it_is_read() -> None:
    assert problems(b"#" * (yaml_text.MAX_DOCUMENT_BYTES + 1)) == [
        "g.yaml:1:1: the file has 67108865 bytes; at most 67108864 (64 MiB) are read"
    ]


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_fifty_thousand_open_collections_end_no_process(opening: str) -> None:
    report = problems(opening * 50_000)
    assert len(report) == 1
    assert "32 levels" in report[0]


def test_depth_of_32_is_allowed_under_own_keys() -> None:
    deep = "x-a: " + "[" * 31 + "]" * 31 + "\nsubtasks: [{id: a, spec: p}]\n"
    assert len(parse(deep).tasks) == 1
    assert problems(deep.replace("[[", "[[[", 1).replace("]]", "]]]", 1)) == [
        "g.yaml:1:37: nested deeper than 32 levels"
    ]


def test_large_spec_repeated_by_aliases_is_counted_each_time() -> None:
    text = f"x-s: &s {'x' * 200_000}\nsubtasks:\n" + "".join(f"  - {{id: s{n}, spec: *s}}\n" for n in range(400))
    assert problems(text) == ["g.yaml:337:22: more than 67108864 characters once aliases are expanded"]


def test_two_million_values_are_refused_where_the_limit_is_passed() -> None:
    report = problems("x-a: [" + "1," * 2_000_000 + "]\n")
    assert report == ["g.yaml:1:4000001: more than 2000000 values; split the graph"]


def test_dense_cycles_are_reported_bounded_and_soon() -> None:
    names = [f"s{n}" for n in range(150)]
    text = "subtasks:\n" + "".join(
        f"  - {{id: {name}, spec: p, dependsOn: [{', '.join(other for other in names if other != name)}]}}\n"
        for name in names
    )
    before = time.process_time()
    report = problems(text)
    assert 1 <= len(report) <= 20
    assert all("cycle: " in line for line in report)
    # Generous: a walk over all cycles would never end.
    assert time.process_time() - before < 20


def test_cycle_through_ten_thousand_is_shortened_in_the_message() -> None:
    text = "subtasks:\n" + "".join(
        f"  - {{id: s{n:05}, spec: p, dependsOn: s{(n + 1) % 10_000:05}}}\n" for n in range(10_000)
    )
    assert problems(text) == [
        "g.yaml:2:38: cycle: s00000 -> s00001 -> s00002 -> s00003 -> s00004 -> s00005 -> s00006 -> s00007 -> "
        "… 9991 more … -> s09999 -> s00000 (each depends on the next); remove one of them"
    ]


def test_recursion_limit_is_never_what_ends_a_load() -> None:
    limit = sys.getrecursionlimit()
    text = "subtasks:\n" + "".join(
        f"  - {{id: s{n:05}, spec: p{f', dependsOn: s{n - 1:05}' if n else ''}}}\n" for n in range(5 * limit)
    )
    assert len(parse(text).tasks) == 5 * limit


def test_chain_of_aliases_that_grows_with_each_step_is_refused() -> None:
    lines = ["x-0: &a0 {k0: v, k1: v}"]
    lines += [f"x-{n}: &a{n} {{<<: *a{n - 1}, n{n}: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 30)]
    report = problems("\n".join(lines) + "\nsubtasks: [{id: a, spec: p}]\n")
    assert len(report) == 1
    assert "once aliases are expanded" in report[0]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-32", "utf-16-be"])
def test_unmarked_or_unknown_encoding_is_refused_in_words(encoding: str) -> None:
    report = problems("subtasks: []".encode(encoding))
    assert len(report) == 1
    assert "UTF-32" in report[0] or "NUL" in report[0]


def test_broken_utf_16_names_the_byte() -> None:
    assert problems(b"\xff\xfea\x00\x00\xd8b\x00") == [
        "g.yaml:1:1: byte 4 is not valid UTF-16 (illegal UTF-16 surrogate); save the file as UTF-8"
    ]


def test_nul_in_a_prompt_is_refused_with_its_place() -> None:  # SE-13
    report = problems('subtasks: [{id: a, spec: "x\\0y"}]\n')
    assert report == ["g.yaml:1:26: the text contains a NUL character; remove it"]
