"""Graph files of many shapes, whole, with an agent that makes one commit. Larger ones: run_large_graphs.py."""

from pathlib import Path

import pytest
from stories import assert_runs_whole, shape
from world import FIXTURES, World

pytestmark = pytest.mark.story

GRAPHS = FIXTURES / "documents" / "graphs"
LARGEST_HERE = 64
FILES = [path for path in sorted(GRAPHS.glob("*.yaml")) if "awkward" not in path.name]
SMALL = [path for path in FILES if len(shape(path).prerequisites) <= LARGEST_HERE]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_a_graph_of_this_shape_runs_whole(world: World, path: Path) -> None:
    assert_runs_whole(world, path, limit_s=200)


def test_there_are_graphs_to_run() -> None:
    assert len(SMALL) >= 14
