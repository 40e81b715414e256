"""Remembers which project configuration the user trusts: this file content in this repository, and nothing else.

One small file per decision in the user's state folder, named by a hash over the root and the file's hash. The root is
part of it because relative programs in the same text are other programs in another repository. Invariant: a name that
exists was put there by `record`; what the file holds is for people and decides nothing.
"""

import hashlib
import json
import os
import tempfile
from pathlib import Path

from coordinate_agents.graph.errors import GraphError


def trust_folder() -> Path:
    """`$XDG_STATE_HOME/coordinate-agents/trust`; a relative XDG_STATE_HOME is ignored, as its standard says."""
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (base if base.is_absolute() else Path("~/.local/state").expanduser()) / "coordinate-agents" / "trust"


def is_trusted(root: Path, digest: str) -> bool:
    """Whether the user trusts the file with this hash in this root. False when the store cannot be read."""
    try:
        return _entry(root, digest).is_file()
    except OSError:
        return False


def record(root: Path, digest: str) -> None:
    """Remember the decision; again is no change. Raises: GraphError(CONFIG_UNTRUSTED) when it cannot be written."""
    entry = _entry(root, digest)
    try:
        entry.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, temporary = tempfile.mkstemp(dir=entry.parent, prefix=".new-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump({"root": str(root), "sha256": digest}, file)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(entry)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise GraphError(
            "CONFIG_UNTRUSTED",
            f"The decision could not be recorded in {entry.parent}: {error.strerror or error}.",
            kept="The configuration is not trusted.",
        ) from error


def _entry(root: Path, digest: str) -> Path:
    name = hashlib.sha256(os.fsencode(root) + b"\0" + digest.encode()).hexdigest()
    return trust_folder() / name
