"""The JSON Schema accepts what the program accepts, refuses clear nonsense, and knows the same keys."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from documents import fixtures
from schema_walk import accepts

from coordinate_agents.graph import document_shape
from coordinate_agents.graph.schema import json_schema

SCHEMA = json_schema()


@pytest.mark.parametrize("path", fixtures("valid") + fixtures("graphs"), ids=lambda path: path.stem)
def test_every_valid_document_is_valid_under_the_schema(path: Path) -> None:
    data = path.read_bytes()
    value = json.loads(data) if path.stem == "as-json" else yaml.load(data, yaml.CSafeLoader)
    assert accepts(SCHEMA, value)


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        {"subtasks": []},
        {"subtasks": {}},
        {"subtasks": [{"id": "a"}]},
        {"subtasks": [{"spec": "p"}]},
        {"subtasks": [{"id": "a", "spec": "p", "specFile": "f"}]},
        {"subtasks": [{"id": "a b", "spec": "p"}]},
        {"subtasks": [{"id": "../x", "spec": "p"}]},
        {"subtasks": [{"id": False, "spec": "p"}]},
        {"subtasks": [{"id": "a", "spec": "p", "prompt": "p"}]},
        {"subtasks": [{"id": "a", "spec": "p", "dependsOn": [1]}]},
        {"subtasks": [{"id": "a", "spec": "p", "writes": None}]},
        {"subtasks": [{"id": "a", "spec": "p", "timeout": "soon"}]},
        {"subtasks": [{"id": "a", "spec": "p", "timeout": 0}]},
        {"subtasks": [{"id": "a", "spec": "p", "attempts": True}]},
        {"subtasks": [{"id": "a", "spec": "p", "checks": [{"name": "x"}]}]},
        {"subtasks": [{"id": "a", "spec": "p", "checks": [[]]}]},
        {"subtasks": [{"id": "a", "spec": "p"}], "schemaVersion": 2},
        {"subtasks": [{"id": "a", "spec": "p"}], "maxConcurrency": 257},
        {"subtasks": [{"id": "a", "spec": "p"}], "maxConcurrency": "4"},
        {"subtasks": [{"id": "a", "spec": "p"}], "scopePolicy": "loose"},
        {"subtasks": [{"id": "a", "spec": "p"}], "resources": {"a b": 1}},
        {"subtasks": [{"id": "a", "spec": "p"}], "defaults": {"spec": "p"}},
        {"subtasks": [{"id": "a", "spec": "p"}], "id": "1"},
        {"subtasks": [{"id": "a", "spec": "p"}], "matrix": {}},
    ],
    ids=json.dumps,
)
def test_clear_nonsense_is_refused(value: Any) -> None:
    assert not accepts(SCHEMA, value)


def test_schema_is_json_of_the_2020_12_draft() -> None:
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_schema_knows_exactly_the_keys_of_the_document() -> None:
    subtask, check = SCHEMA["$defs"]["subtask"], SCHEMA["$defs"]["check"]["anyOf"][1]
    assert SCHEMA["properties"].keys() == document_shape.GRAPH_KEYS.keys()
    assert subtask["properties"].keys() == document_shape.SUBTASK_KEYS.keys()
    assert check["properties"].keys() == document_shape.CHECK_KEYS.keys()
    assert SCHEMA["properties"]["defaults"]["properties"].keys() == document_shape.DEFAULTS_KEYS.keys()
    assert SCHEMA["properties"]["integration"]["properties"].keys() == document_shape.INTEGRATION_KEYS.keys()
