"""Skipped where the extra is missing; CI installs it with the others."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp_client import McpClient
from world import World

pytest.importorskip("mcp", reason="pip install -e '.[dev]'")


@pytest.fixture
def world(tmp_path: Path, isolation: Path) -> World:
    return World(tmp_path, isolation)


@pytest.fixture
def client(world: World) -> Iterator[McpClient]:
    with McpClient(world) as started:
        yield started
