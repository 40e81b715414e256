"""Large immutable values beside the event log: ref snapshots and certificates, named by their SHA-256.

An event is at most 8 KiB; what is larger stands here and the event carries the digest. A blob is written whole under
a temporary name and linked into place, so a crash leaves either nothing or the blob. Reading checks the digest.
"""

import errno
import hashlib
import os
from pathlib import Path

from coordinate_agents.graph.crashpoints import crash_point
from coordinate_agents.graph.errors import GraphError


class Blobs:
    """Blobs of one repository, in ``<state>/blobs/<first two digits>/<digest>``."""

    def __init__(self, state_dir: Path) -> None:
        self._root = f"{state_dir}/blobs"

    def put(self, data: bytes, *, durable: bool = False) -> str:
        """Store the bytes; return their digest. `durable`: on disk, with its folder entry, before this returns."""
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        if os.path.exists(path):  # noqa: PTH110 (several times a subtask: no path objects)
            return digest
        try:
            self._write(Path(path), digest, data, durable=durable)
        except OSError as error:
            code = "DISK_FULL" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "REPOSITORY_UNSUPPORTED"
            raise GraphError(
                code,
                f"a value cannot be stored in {self._root}: {error.strerror}.",
                kept="everything recorded before",
                next="make room or mend the folder, then run the same command again",
                stage="store",
            ) from error
        return digest

    def _write(self, path: Path, digest: str, data: bytes, *, durable: bool) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_name(f".{digest}.{os.getpid()}.{id(data):x}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            crash_point("blob.drafted")
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if durable:
            _sync_folder(path.parent)

    def get(self, digest: str) -> bytes:
        """The bytes. Raises: GraphError STATE_TAMPERED when they are gone or do not have this digest."""
        try:
            data = Path(self._path(digest)).read_bytes()
        except OSError as error:
            raise GraphError(
                "STATE_TAMPERED", f"stored value {digest[:12]} cannot be read: {error.strerror}."
            ) from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise GraphError("STATE_TAMPERED", f"stored value {digest[:12]} was changed.", kept="the changed file")
        return data

    def _path(self, digest: str) -> str:
        return f"{self._root}/{digest[:2]}/{digest}"


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
