"""`turns.json`: the record of a Session's turns, in its folder, beside what its host writes."""

import json
import os
from pathlib import Path
from typing import Final

from coordinate_agents.sessions import folder as folders
from coordinate_agents.sessions.model import SessionId
from coordinate_agents.sessions.turns.model import Noted, TurnRecord

_RECORD: Final = "turns.json"
_MAX_BYTES: Final = 1 << 20
_VERSION: Final = 1


class FolderRecords:
    """`turns.json` in each Session's folder. Only whoever gives turns writes it; others have it `read_only`."""

    def __init__(self, sessions_root: Path, *, read_only: bool = False) -> None:
        self._root = str(sessions_root)
        self._read_only = read_only

    async def load(self, session: SessionId) -> TurnRecord | None:
        return load_record(f"{self._root}/{session}")

    async def save(self, record: TurnRecord) -> None:
        if self._read_only:
            return
        path = f"{self._root}/{record.session}"
        try:
            folder = folders.open_folder(path)
        except FileNotFoundError:
            os.makedirs(path, mode=0o700, exist_ok=True)  # noqa: PTH103
            folder = folders.open_folder(path)
        try:
            folders.write_json(folder, _RECORD, {"v": _VERSION, **record._asdict()})
        finally:
            os.close(folder)


def load_record(path: Path | str) -> TurnRecord | None:
    """The record of the Session's turns; None when there is none that can be understood."""
    try:
        folder = folders.open_folder(str(path))
    except OSError:
        return None
    try:
        data = folders.read_whole(folder, _RECORD, _MAX_BYTES)
        raw = json.loads(data) if data is not None else None
        if not isinstance(raw, dict) or raw.pop("v", None) != _VERSION:
            return None
        lists = {name: tuple(raw[name]) for name in ("external_sessions", "pending")}
        events = tuple(Noted(*each) for each in raw.get("events", ()))
        return TurnRecord(**{**raw, **lists, "events": events})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    finally:
        os.close(folder)
