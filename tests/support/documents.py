"""Graph documents for tests: the fixtures, and short ways to parse a text."""

from pathlib import Path

from coordinate_agents.graph import document
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.model import TaskGraph
from coordinate_agents.graph.operations.spec_files import spec_file_reader

FIXTURES = Path(__file__).parents[2] / "fixtures" / "documents"


def fixtures(folder: str) -> list[Path]:
    """The documents of that folder, sorted by name."""
    found = sorted((FIXTURES / folder).glob("*.yaml"))
    assert found, folder
    return found


def read(path: Path) -> document.Document:
    """Parse the file as a verb would. Raises: GraphError."""
    return document.parse_document(
        path.read_bytes(), name=path.name, stem=path.stem, read_spec_file=spec_file_reader(path.parent)
    )


def parse(text: str | bytes) -> TaskGraph:
    """Parse the text as the file g.yaml. Raises: GraphError."""
    data = text.encode() if isinstance(text, str) else text
    return document.parse(data, name="g.yaml", stem="g", read_spec_file=None)


def problems(text: str | bytes) -> list[str]:
    """The lines of the report on an invalid text."""
    try:
        parse(text)
    except GraphError as error:
        assert error.code == "TASK_GRAPH_INVALID"
        assert error.exit_code == 2
        return [document.problem_line("g.yaml", problem) for problem in error.problems]
    raise AssertionError("the document was accepted")
