"""One World for each test: a checkout, fake agents in the user's configuration, the real command line."""

from pathlib import Path

import pytest
from world import World


@pytest.fixture
def world(tmp_path: Path, isolation: Path) -> World:
    return World(tmp_path, isolation)
