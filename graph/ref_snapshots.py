"""A snapshot of the user's refs as a blob of the store, and back."""

import json

from coordinate_agents.graph.store.blobs import Blobs
from coordinate_agents.worktrees.model import RefSnapshot


def put_refs(blobs: Blobs, refs: RefSnapshot) -> str:
    """Store the snapshot; its digest. Equal snapshots have one."""
    text = json.dumps({"refs": dict(refs.refs), "stashes": refs.stashes, "checkout": refs.head}, sort_keys=True)
    return blobs.put(text.encode("utf-8", "surrogateescape"))


def load_refs(blobs: Blobs, digest: str | None) -> RefSnapshot:
    """The snapshot with this digest; None stands for one without refs."""
    if digest is None:
        return RefSnapshot()
    raw = json.loads(blobs.get(digest).decode("utf-8", "surrogateescape"))
    return RefSnapshot(refs=raw["refs"], stashes=tuple(raw["stashes"]), head=raw.get("checkout", ""))
