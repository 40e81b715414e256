"""One World for each case, looked over for leftovers when it ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from world import World


@pytest.fixture
def world(tmp_path: Path, isolation: Path) -> Iterator[World]:
    told = World(tmp_path, isolation)
    yield told
    for gate in told.gates.glob("*.hold"):
        gate.unlink()
