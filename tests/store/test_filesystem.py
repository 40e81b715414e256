"""A network file system is recognised from the text of mountinfo, and refused for writing."""

from pathlib import Path

import pytest
import stores

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.store import filesystem
from coordinate_agents.graph.store.filesystem import file_system_type, is_network
from coordinate_agents.graph.store.store import Store

MOUNTS = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /dev/shm rw,nosuid - tmpfs tmpfs rw
40 22 0:44 / /home/ann/net rw,relatime shared:9 master:2 - nfs4 server:/export rw,vers=4.2
41 40 0:45 / /home/ann/net/local rw - xfs /dev/vdb rw
42 22 0:46 / /mnt/a\040b rw - cifs //server/share rw
43 22 0:47 / /mnt/remote rw - fuse.sshfs ann@host: rw
44 22 0:48 / /mnt/over rw - nfs server:/x rw
45 22 0:49 / /mnt/over rw - btrfs /dev/vdc rw
broken line
46 22 0:50 / /mnt/win rw - 9p drvfs rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ann/project/.git/coordinate-agents", "ext4"),
        ("/home/ann/net", "nfs4"),
        ("/home/ann/net/project", "nfs4"),
        ("/home/ann/network", "ext4"),
        ("/home/ann/net/local/project", "xfs"),
        ("/mnt/a b/project", "cifs"),
        ("/mnt/remote/x", "fuse.sshfs"),
        ("/mnt/over/x", "btrfs"),
        ("/mnt/win/c", "9p"),
        ("/dev/shm/x", "tmpfs"),
    ],
)
def test_mount_that_holds_the_path_is_found(path: str, kind: str) -> None:
    assert file_system_type(MOUNTS, path) == kind


def test_text_without_mounts_says_nothing() -> None:
    assert file_system_type("", "/x") is None


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("nfs", True),
        ("nfs4", True),
        ("cifs", True),
        ("smb3", True),
        ("9p", True),
        ("fuse.sshfs", True),
        ("fuse.rclone", True),
        ("ceph", True),
        ("ext4", False),
        ("tmpfs", False),
        ("overlay", False),
        ("fuse.fuse-overlayfs", False),
        ("fuseblk", False),
        ("zfs", False),
    ],
)
def test_network_types(kind: str, expected: bool) -> None:
    assert is_network(kind) is expected


def test_state_on_a_network_is_refused_for_writing_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = stores.seeded(tmp_path)
    before = stores.digests(state)
    monkeypatch.setattr(filesystem, "file_system_of", lambda path: "nfs4")
    with pytest.raises(GraphError) as refused:
        Store.open(state)
    assert refused.value.code == "REPOSITORY_UNSUPPORTED"
    assert refused.value.message == (
        f"The state folder {state} cannot be written: it lies on a network file system (nfs4)."
    )
    assert refused.value.next == "make the folder writable for this user, or set stateRoot to a local folder"
    with Store.open_readonly(state) as reader:
        assert len(list(reader.events())) == 1
    assert stores.digests(state) == before


def test_this_machines_own_table_is_read(tmp_path: Path) -> None:
    kind = filesystem.file_system_of(tmp_path / "not" / "there")
    assert kind is None or not is_network(kind)
