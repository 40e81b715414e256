"""Whether a folder lies on a network file system, where neither SQLite's WAL nor kernel locks can be trusted.

Decides from the text of /proc/self/mountinfo, so that every case can be tested; `file_system_of` reads it.
"""

import os
import re
from pathlib import Path
from typing import Final

# File systems whose locks or shared memory are those of another machine, or are known not to work across it.
NETWORK_TYPES: Final = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs",
        "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs", "pvfs2", "smb2", "smb3", "smbfs", "vboxsf", "vmhgfs",
    }
)  # fmt: skip
# FUSE file systems name their program after "fuse."; these speak to another machine.
NETWORK_FUSE_TYPES: Final = frozenset(
    {
        "afpfs", "ceph", "ceph-fuse", "curlftpfs", "davfs2", "gcsfuse", "gluster", "glusterfs", "gvfsd-fuse", "httpfs",
        "juicefs", "moosefs", "mfsmount", "rclone", "s3fs", "smbnetfs", "sshfs", "vmhgfs-fuse",
    }
)  # fmt: skip
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


def file_system_of(path: Path) -> str | None:
    """The type of the file system that holds `path` (which need not exist); None where the system cannot say."""
    try:
        text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    return file_system_type(text, os.path.realpath(path))


def file_system_type(mountinfo: str, path: str) -> str | None:
    """The type of the mount that holds the absolute, resolved `path`. Source: proc_pid_mountinfo(5).

    Of mounts on one point the last one counts: it covers the others. None when no line fits.
    """
    best_length, best = -1, None
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        fields, types = left.split(" "), right.split(" ")
        if not separator or len(fields) < 5 or not types[0]:
            continue
        point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4])
        if _holds(point, path) and len(point) >= best_length:
            best_length, best = len(point), types[0]
    return best


def is_network(file_system: str) -> bool:
    """Whether the type is one of another machine."""
    kind, _, program = file_system.partition(".")
    return program in NETWORK_FUSE_TYPES if kind == "fuse" else file_system in NETWORK_TYPES


def _holds(point: str, path: str) -> bool:
    return point == "/" or path == point or path.startswith(point + "/")
