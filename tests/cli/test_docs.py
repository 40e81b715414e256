"""The pages that are made from the program's tables say what the tables say."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from coordinate_agents.graph.errors import CODES

DOCS = Path(__file__).resolve().parents[2] / "docs"


def _generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name", ["verbs.md", "errors.md", "states.md", "adapters.md", "mcp.md", "man/coordinate-agents.1", "man/cag.1"]
)
def test_a_page_is_what_docs_generate_would_write(name: str) -> None:
    assert (DOCS / name).read_text() == _generate().pages()[name], "run: python docs/generate.py"


def test_every_code_has_a_meaning_and_no_meaning_is_left_over() -> None:
    assert set(_generate().MEANINGS) == CODES
