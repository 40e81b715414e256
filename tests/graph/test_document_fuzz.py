"""Whatever bytes stand in a file, the answer is a graph or a report, never another exception or a second meaning."""

import json
import os
import subprocess
import sys

import pytest
from documents import FIXTURES, fixtures
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinate_agents.graph import config_document, document, scope
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.import_v1 import to_graph_file
from coordinate_agents.graph.model import slug

_SAMPLES = [path.read_bytes() for path in fixtures("valid") + fixtures("invalid") if path.stat().st_size < 3000]
_SNIPPETS = [
    *(
        b"&a ",
        b"*a",
        b"<<: *a\n",
        b"- ",
        b": ",
        b"\t",
        b"\0",
        b"\xff",
        b"!!int ",
        b"---\n",
        b"[",
        b"{",
        b"]",
        b"}",
        b'"',
    ),
    *(b"|", b"? ", b"no", b"\\ud83d", b"\n", b"  ", b"#", b"%", b"@", b"\xc3\xa9", b"9" * 30, b"x-", b"dependsOn: a\n"),
]


@st.composite
def _mangled(draw: st.DrawFn) -> bytes:
    """A sample with a few places replaced, doubled or cut."""
    data = draw(st.sampled_from(_SAMPLES))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        to = min(len(data), at + draw(st.integers(0, 12)))
        data = data[:at] + draw(st.sampled_from(_SNIPPETS)) * draw(st.integers(0, 2)) + data[to:]
    return data


def _read(data: bytes) -> None:
    try:
        found = document.parse_document(data, name="g.yaml", stem="g", read_spec_file=lambda name: b"text of a file")
    except GraphError as error:
        assert error.code == "TASK_GRAPH_INVALID"
        assert error.problems
        lines = data.count(b"\n") + data.count(b"\r") + 2 + data.count(b"\xc2\x85") + data.count(b"\xe2\x80")
        for problem in error.problems:
            assert 1 <= problem.line <= lines
            assert problem.column >= 1
            assert "\n" not in problem.message
            assert len(problem.message) < 1000
        return
    json.dumps(json.loads(found.canonical)).encode()
    ids = [task.id for task in found.graph.tasks]
    assert len({slug(each).lower() for each in ids}) == len(ids)
    for task in found.graph.tasks:
        assert set(task.depends_on) <= set(ids)
        for pattern in task.writes or ():
            scope.parse_pattern(pattern)


@settings(deadline=None, max_examples=400)
@given(_mangled())
def test_mangled_document_gives_a_graph_or_a_report(data: bytes) -> None:
    _read(data)


@settings(deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_give_a_graph_or_a_report(data: bytes) -> None:
    _read(data)


@settings(deadline=None)
@given(_mangled())
def test_any_configuration_gives_values_or_a_report(data: bytes) -> None:
    for source in ("project", "user"):
        try:
            config_document.parse(data, name="c.yaml", source=source)  # type: ignore[arg-type]
        except GraphError as error:
            assert error.code == "INVALID_AGENT_CONFIG"
            assert error.problems


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=8), below, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {"parentTask": _JSON | st.fixed_dictionaries({"id": st.just("g"), "title": _JSON}), "subtasks": _JSON}
    ),
    st.none() | _JSON,
)
def test_any_json_is_imported_or_refused(source: object, intents: object) -> None:
    try:
        text = to_graph_file(json.dumps(source).encode(), None if intents is None else json.dumps(intents).encode())
    except GraphError as error:
        assert error.code == "TASK_GRAPH_INVALID"
        return
    document.parse(text.encode(), name="g.yaml", stem=None, read_spec_file=None)


@pytest.mark.parametrize("folder", ["valid", "graphs", "invalid"])
def test_without_libyaml_no_document_means_anything_else(folder: str) -> None:
    """PyYAML built without libyaml says some things in other words, but accepts and refuses the same files."""
    code = """
import pathlib, sys
sys.modules["yaml._yaml"] = None
from coordinate_agents.graph import document, yaml_nodes
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.model import to_json
from coordinate_agents.graph.operations.spec_files import spec_file_reader
assert yaml_nodes._Parser.__module__ == "yaml.loader"
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.yaml")):
    try:
        graph = document.parse(
            path.read_bytes(), name=path.name, stem=path.stem, read_spec_file=spec_file_reader(path.parent))
        print(path.name, to_json(graph))
    except GraphError as error:
        print(path.name, len(error.problems))
"""
    fast_code = code.replace('sys.modules["yaml._yaml"] = None', "").replace('"yaml.loader"', '"yaml._yaml"')
    slow, fast = (_lines(each, str(FIXTURES / folder)) for each in (code, fast_code))
    assert slow == fast
    assert slow


def _lines(code: str, where: str) -> list[str]:
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", code, where], capture_output=True, encoding="utf-8", check=True, env=environment
    )
    # Tabs inside JSON's brackets are the one thing that only libyaml reads.
    return [line for line in done.stdout.splitlines() if not line.startswith("as-json")]
