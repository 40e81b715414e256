"""Answers questions about objects from one kept `git cat-file --batch-command`: 0.2 ms each instead of 2.

A loose object is read without it (`loose`).
Thread-safe: one question at a time. The process is started at the first question and again when it died; `close` ends
it. git looks for a missing object again each time, so what others add is found. Content is believed only when its hash
is the name that was asked for.
"""

import functools
import hashlib
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.kept import MAX_ASKED_BYTES, EndedError, KeptGit
from coordinate_agents.worktrees.loose import loose_content
from coordinate_agents.worktrees.values import value_class

ANSWER_TIMEOUT_S: Final = 30.0
# A larger commit or tree is left to git.
MAX_CONTENT_BYTES: Final = 4 << 20

_T = TypeVar("_T")


@value_class
class ObjectName:
    """An object that exists."""

    oid: str
    type: str


class ObjectReader:
    """One `cat-file --batch-command`, started by `start` when it is needed; `objects` is the store's folder."""

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]], objects: str) -> None:
        self._objects = objects
        self._lock = threading.Lock()
        self._kept = KeptGit("cat-file", start, timeout_s=ANSWER_TIMEOUT_S)

    def look_up(self, expression: str) -> ObjectName | None:
        """The object that an id or `<id>^{type}` names; None when there is none. Raises: WorktreeError."""
        if not expression or "\n" in expression or "\0" in expression:
            return None
        with self._lock:
            return _parse(self._retried(lambda: self._info([expression]))[0])

    def types(self, oids: Sequence[str]) -> tuple[str | None, ...]:
        """The type of each object as it is in the store now; None: there is none. Raises: WorktreeError."""
        found: list[str | None] = []
        step = MAX_ASKED_BYTES // 80
        with self._lock:
            for at in range(0, len(oids), step):
                lines = self._retried(functools.partial(self._info, oids[at : at + step]))
                found += [None if (name := _parse(line)) is None else name.type for line in lines]
        return tuple(found)

    def content(self, oid: str, type_: str) -> bytes | None:
        """The bytes of a commit or tree; None when it is missing, too large, of another type, or not what it is named.

        Raises: WorktreeError.
        """
        return self.contents([oid], type_)[0]

    def contents(self, oids: Sequence[str], type_: str) -> list[bytes | None]:
        """As `content`, of many objects, which git finds while the ones before are taken. Raises: WorktreeError."""
        found = {oid: loose_content(self._objects, oid, type_, max_bytes=MAX_CONTENT_BYTES) for oid in oids}
        asked = [oid for oid, data in found.items() if data is None]
        step = MAX_ASKED_BYTES // 80
        with self._lock:
            for at in range(0, len(asked), step):
                some = asked[at : at + step]
                answers = self._retried(functools.partial(self._contents, some, type_))
                found.update(zip(some, answers, strict=True))
        return [found[oid] for oid in oids]

    def close(self) -> None:
        """End the process. A later question starts a new one."""
        with self._lock:
            self._kept.drop()

    def _retried(self, question: Callable[[], _T]) -> _T:
        """Ask; when the process is dead, ask another one."""
        try:
            return question()
        except EndedError:
            pass
        try:
            return question()
        except EndedError:
            raise WorktreeError("INTERNAL_ERROR", "git cat-file ended without an answer.") from None

    def _info(self, expressions: Sequence[str]) -> list[bytes]:
        self._kept.ask(b"".join(b"info %s\n" % word.encode("utf-8", "surrogateescape") for word in expressions))
        return [self._kept.line() for _ in expressions]

    def _contents(self, oids: Sequence[str], type_: str) -> list[bytes | None]:
        self._kept.ask("".join(f"contents {oid}\n" for oid in oids).encode())
        found: list[bytes | None] = []
        for oid in oids:
            # Past one that is too large nothing can be read any more.
            found.append(self._next_content(oid, type_) if self._kept.child is not None else None)
        return found

    def _next_content(self, oid: str, type_: str) -> bytes | None:
        name = _parse_sized(self._kept.line())
        if name is None:
            return None
        if name[2] > MAX_CONTENT_BYTES:
            self._kept.drop()
            return None
        data = self._kept.exactly(name[2] + 1)[:-1]
        algorithm = "sha1" if len(oid) == 40 else "sha256"
        digest = hashlib.new(algorithm, f"{type_} {len(data)}\0".encode() + data, usedforsecurity=False)
        return data if name[:2] == (oid, type_) and digest.hexdigest() == oid else None


def _parse(answer: bytes) -> ObjectName | None:
    found = _parse_sized(answer)
    return None if found is None else ObjectName(found[0], found[1])


def _parse_sized(answer: bytes) -> tuple[str, str, int] | None:
    """`<oid> SP <type> SP <size>`; anything else ("missing", "ambiguous") is no object."""
    words = answer.decode("utf-8", "surrogateescape").split()
    if len(words) != 3 or not words[2].isdigit():
        return None
    return words[0], words[1], int(words[2])
