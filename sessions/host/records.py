"""The one record of a Session as the host writes it: `record.json`, whole, by rename.

The fields are those of `sessions.model.SessionRecord`; `sessions.records` turns the file back into that value. The
record given by the starter is only added to. After `finish` nothing is written any more: a terminal record is never
overwritten by a late live state.
"""

import contextlib
import os
import time

from coordinate_agents.sessions import folder as folders
from coordinate_agents.sessions import process

# How long a host tries to write its last word on a full disk.
_FINAL_BOUND_S = 30.0
_FINAL_PAUSE_S = 0.5


class Record:
    def __init__(self, folder: int, fields: dict[str, object]) -> None:
        self._folder = folder
        self._fields = fields
        self._is_final = False

    def host_started(self) -> None:
        self._fields["host"] = identity(os.getpid())
        self.save()

    def child_started(self, pid: int) -> None:
        self._fields.update(state="running", child=identity(pid))
        self.save()

    def changed(self, **fields: object) -> None:
        """Note it. A full disk must not end an agent: what could not be written goes with the next change."""
        self._fields.update(fields)
        with contextlib.suppress(OSError):
            self.save()

    def finish(self, state: str, end: dict[str, object]) -> None:
        """Write the end, again and again for a while: without it the Session counts as lost. Raises: OSError."""
        self._fields.update(state=state, end=end, question=None, last_activity_at=time.time())
        until = time.monotonic() + _FINAL_BOUND_S
        while True:
            try:
                self.save()
            except OSError:
                if time.monotonic() >= until:
                    raise
                time.sleep(_FINAL_PAUSE_S)
            else:
                self._is_final = True
                return

    def get(self, name: str) -> object:
        return self._fields.get(name)

    def save(self) -> None:
        if not self._is_final:
            folders.write_json(self._folder, folders.RECORD, self._fields)


def identity(pid: int) -> dict[str, object]:
    """The process as the fields of `ProcessIdentity`. An unreaped child always has one, also when it ended."""
    seen = process.stat(pid)
    return {
        "machine_id": process.machine_id(),
        "boot_id": process.boot_id(),
        "pid_namespace": process.pid_namespace(),
        "pid": pid,
        "start_ticks": seen.start_ticks if seen else 0,
    }
