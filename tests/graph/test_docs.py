"""What the documentation says about documents is what the program does."""

import re
from pathlib import Path
from typing import get_args

import pytest
from documents import parse

from coordinate_agents.graph import config_document, document_shape
from coordinate_agents.sessions.adapters import ADAPTERS
from coordinate_agents.sessions.model import Liveness
from coordinate_agents.sessions.turns.model import NAMES, TurnState

DOCS = Path(__file__).parents[2] / "docs"
GRAPH, CONFIGURATION, SESSIONS = (DOCS / name for name in ("graph-file.md", "configuration.md", "sessions.md"))


def _examples(path: Path) -> list[str]:
    found = re.findall(r"^```yaml\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)
    assert found
    return [str(each) for each in found]


def _rows(path: Path, heading: str) -> list[list[str]]:
    """The cells of the first table after the heading, without its head."""
    after = path.read_text().split(f"{heading}\n", 1)[1]
    table = re.search(r"^\|.*\n\|[-|]+\n((?:\|.*\n)+)", after, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|\n").split(" |")] for line in table[1].splitlines()]


def _keys(path: Path, heading: str) -> set[str]:
    return {row[0].strip("`") for row in _rows(path, heading)}


@pytest.mark.parametrize("text", _examples(GRAPH))
def test_every_graph_in_the_documentation_is_valid(text: str) -> None:
    assert parse(text).tasks


@pytest.mark.parametrize("text", _examples(CONFIGURATION))
def test_every_configuration_in_the_documentation_is_valid(text: str) -> None:
    assert config_document.parse(text.encode(), name="c.yaml", source="project").agents


def test_documentation_lists_exactly_the_keys_of_a_graph_file() -> None:
    assert _keys(GRAPH, "## Keys of the graph") == set(document_shape.GRAPH_KEYS)
    assert _keys(GRAPH, "## Keys of a subtask") == set(document_shape.SUBTASK_KEYS)
    assert _keys(GRAPH, "## Checks") == set(document_shape.CHECK_KEYS)


def test_documentation_lists_exactly_the_keys_of_the_configuration() -> None:
    assert _keys(CONFIGURATION, "# Configuration") == set(config_document.CONFIG_KEYS)
    assert _keys(CONFIGURATION, "## Agents") == set(config_document.AGENT_KEYS)


def test_documentation_shows_the_flags_of_every_permission_mode() -> None:
    shown = {row[0].strip("`"): [cell.strip("`") for cell in row[1:]] for row in _rows(CONFIGURATION, "## Permissions")}
    flags = {
        name: [" ".join(adapter.permissions.get(mode, ())) for mode in ("deny", "edits", "allow")]  # type: ignore[call-overload]
        for name, adapter in ADAPTERS.items()
        if adapter.permissions
    }
    assert shown == flags


def test_documentation_lists_every_state_and_event_of_turns_and_every_answer_to_whether_a_session_lives() -> None:
    assert [row[0] for row in _rows(SESSIONS, "## Turns")] == list(get_args(TurnState))
    assert {row[0].strip("`") for row in _rows(SESSIONS, "## Is it alive?")} == set(get_args(Liveness))
    events = SESSIONS.read_text().split("Events are ", 1)[1].split(" That a process", 1)[0]
    assert [name for name in NAMES.values() if name not in events] == []


def test_documentation_names_every_template() -> None:
    text = CONFIGURATION.read_text()
    assert [word for word in config_document.TEMPLATE_WORDS if f"`{{{word}}}`" not in text] == []
