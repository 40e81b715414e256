"""Blocks of ports: whoever holds one excludes others, in blocks of other sizes as well."""

import subprocess
import sys
from pathlib import Path

import pytest

from coordinate_agents.graph.config import Ports
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store.port_blocks import PortBlocks
from coordinate_agents.sessions.host.held_ports import hold


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def test_blocks_of_other_sizes_exclude_each_other_where_they_meet() -> None:
    small, large = PortBlocks(Ports(20000, 10)), PortBlocks(Ports(20005, 20))
    assert small.claim(0)
    assert small.claim(0)
    assert (large.is_free(0), large.claim(0), large.claim(1)) == (False, False, True)
    assert (small.is_free(1), small.claim(2), small.is_free(5)) == (True, False, True)
    small.keep_only([])
    assert large.claim(0)
    large.close()
    assert small.claim(2)


def test_the_last_block_is_the_last_whose_ports_all_exist() -> None:
    blocks = PortBlocks(Ports(65516, 10))
    assert (blocks.ports.last_block, blocks.range_of(1)) == (1, (65526, 10))
    assert (blocks.claim(1), blocks.claim(2), blocks.is_free(2)) == (True, False, False)


def test_a_block_that_a_living_host_holds_is_shared_with_who_drives_its_graph_on(runtime: Path) -> None:
    first = PortBlocks(Ports(20000, 10))
    assert first.claim(0)
    asked = {"path": str(first.path), "first": 20000, "count": 10}
    script = f"import sys; sys.path[:0] = {sys.path!r}\n"
    script += f"from {hold.__module__} import hold; hold({asked!r}); print('held', flush=True); sys.stdin.read()"
    host = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert host.stdin is not None
    assert host.stdout is not None
    assert host.stdout.readline() == b"held\n"
    first.close()
    later = PortBlocks(Ports(20000, 10))
    assert (later.claim(0), later.claim(0, is_shared=True)) == (False, True)
    later.keep_only([])
    host.communicate()
    assert later.claim(0)
    later.close()
    # A driver that ended holds nothing: the file stays, and stands for nothing.
    assert PortBlocks(Ports(20000, 10)).claim(0)


def test_a_folder_that_others_can_write_is_refused(runtime: Path) -> None:
    (runtime / "coordinate-agents").mkdir()
    (runtime / "coordinate-agents").chmod(0o777)
    with pytest.raises(GraphError, match="other users can write there"):
        PortBlocks(Ports(20000, 10))
