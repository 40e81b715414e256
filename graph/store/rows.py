"""What goes into the store and what comes out of it, as plain values.

Nothing here reads a database. Named tuples, since every read verb makes these classes: importing `dataclasses` alone
takes longer than reading a graph. The words JSON and canonical mean: sorted keys, no spaces, ASCII.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

# One event's data. Larger data is kept beside the log, once per content, and the log holds its digest.
MAX_EVENT_BYTES: Final = 8192
# A certificate of a subtask that changed very many paths; above this something is wrong.
MAX_DETAIL_BYTES: Final = 4 * 1024 * 1024

RequestOutcome = Literal["accepted", "refused", "withdrawn"]


class NewEvent(NamedTuple):
    """An event that is to be appended. `durable`: an outside act depends on it, so it must survive a power cut."""

    type: str
    data: Mapping[str, Any]
    subtask_id: str | None = None
    session_id: str | None = None
    durable: bool = False


class EventRow(NamedTuple):
    """An event of the log. `seq` counts from 1 over all graphs of the repository; `hash` covers the predecessor's."""

    seq: int
    time: float
    generation: int
    task_id: str
    subtask_id: str | None
    session_id: str | None
    type: str
    data: Mapping[str, Any]
    hash: str


class GraphRow(NamedTuple):
    """One graph. `document` and `config` are JSON of the current revision; `summary` is a cache of the log."""

    id: str
    title: str
    revision: int
    base_commit: str
    document: str
    content_digest: str
    config: str
    created_at: float
    generation: int
    last_seq: int
    summary: str


class RunRow(NamedTuple):
    """Cache: `row` is the JSON of what became of one subtask."""

    subtask_id: str
    row: str


class NewDocument(NamedTuple):
    """The recorded part of a graph at one revision: what `graph-create` and `graph-amend` write."""

    title: str
    base_commit: str
    document: str
    content_digest: str
    config: str

    def digest(self, revision: int) -> str:
        """What the event that recorded this revision must name; a changed row no longer matches it."""
        parts = [revision, self.title, self.base_commit, self.document, self.content_digest, self.config]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class RequestRow(NamedTuple):
    """A verb that another process asked the driver to carry out. `outcome` None: nobody answered yet."""

    id: int
    graph_id: str
    kind: str
    data: Mapping[str, Any]
    who: str
    created_at: float
    outcome: RequestOutcome | None = None
    message: str | None = None
    answer: Mapping[str, Any] = {}


class RequestResult(NamedTuple):
    """The driver's answer to a request, to be stored in the same transaction as the events that it caused."""

    id: int
    outcome: Literal["accepted", "refused"]
    message: str
    answer: Mapping[str, Any] = {}


def to_text(data: Mapping[str, Any]) -> str:
    """Canonical JSON. Raises: ValueError for NaN and infinities, TypeError for what JSON lacks."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
