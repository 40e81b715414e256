"""`SessionHosts`: the custody of processes as the rest of the program uses it.

Every Session has its own host process; this class starts hosts, asks them, waits for them, and cleans up after those
that died. It keeps no state that matters: another process with the same folder sees and does the same. All methods may
be called from several tasks at once.
"""

import os
import shutil
import stat
import subprocess
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread

from coordinate_agents.sessions import asking, custodian, exchange, glance, starting, strays
from coordinate_agents.sessions.connection import HostConnection, HostGone, read_token
from coordinate_agents.sessions.conversation import MAX_WAIT_MS, nudge
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.forking import ForkedHost, ForkServer, HostProcess
from coordinate_agents.sessions.model import (
    Launch,
    Output,
    Question,
    ReadLimits,
    SessionEnd,
    SessionFacts,
    SessionId,
    SessionRecord,
)
from coordinate_agents.sessions.speaking import Speaking
from coordinate_agents.sessions.turns.folder_records import load_record
from coordinate_agents.sessions.turns.model import TurnRecord

if TYPE_CHECKING:
    from coordinate_agents.sessions.turns.coordinator import TurnCoordinator

MAX_SESSIONS: Final = 256
# A host answers in well under a millisecond; a loaded machine may need longer to run it at all.
LOOK_BOUND_S: Final = 1.0
CLOSE_BOUND_RANGE_S: Final = (0.1, 60.0)
# Beyond the close bound, for writing the record and telling it.
_TELL_S: Final = 2.0
_STARTS_AT_ONCE: Final = 8
_FIRST_RETRY_S: Final = 0.02
_LONGEST_RETRY_S: Final = 1.0
# sockaddr_un holds 108 bytes; the name of a socket takes 26 of them.
_MAX_SOCKET_DIR: Final = 80


class SessionHosts(Speaking):
    """Implements the port `Sessions`. `runtime_dir` holds the sockets; None: the user's own runtime directory."""

    def __init__(
        self, sessions_root: Path, *, runtime_dir: Path | None = None, look_bound_s: float = LOOK_BOUND_S
    ) -> None:
        super().__init__(sessions_root, look_bound_s)
        self._runtime_dir = runtime_dir
        self._hosts: dict[SessionId, HostProcess] = {}
        self._server = ForkServer(starting.ptyprocess_path())
        self._starters: anyio.CapacityLimiter | None = None

    @cached_property
    def socket_dir(self) -> Path:
        """Where the hosts that are started here listen."""
        return _usable_socket_dir(self._runtime_dir)

    async def start(self, launch: Launch) -> SessionRecord:
        """See the port. Raises: SPAWN_FAILED, SESSION_START_FAILED, SESSION_STATE_CONFLICT when the id was used."""
        self._reap()
        if self._starters is None:
            self._starters = anyio.CapacityLimiter(_STARTS_AT_ONCE)
        start = partial(starting.start_host, launch, self._root, self.socket_dir, server=self._server)
        host = await anyio.to_thread.run_sync(start, limiter=self._starters)
        self._hosts[launch.session_id] = host
        seen = custodian.see(self._path(launch.session_id))
        if seen.record is None:
            raise SessionError("SESSION_START_FAILED", f"The record of Session {launch.session_id} disappeared.")
        return seen.record

    async def wait(self, session_id: SessionId) -> SessionEnd:
        """See the port. Raises: SESSION_NOT_FOUND; SESSION_NOT_HEALTHY for a record of another machine."""
        pause = _FIRST_RETRY_S
        while True:
            seen = self._see(session_id)
            match seen.custody:
                case "ended":
                    assert seen.record is not None
                    assert seen.record.end is not None
                    custodian.remove_socket(seen.record)
                    await self._reap_host(session_id)
                    return seen.record.end
                case "free":
                    return await self._finish_lost(session_id)
                case "held":
                    if await self._follow(seen.record, session_id):
                        continue  # the final record was written before the host said so
                    await anyio.sleep(pause)
                    pause = min(pause * 2, _LONGEST_RETRY_S)
                case _:
                    raise self._refusal(session_id, seen)

    async def look(self, session_id: SessionId) -> SessionFacts:
        """See the port. Asks the host for at most the look bound; never raises."""
        seen = await self._see_settled(session_id)
        match seen.custody:
            case "ended":
                assert seen.record is not None
                assert seen.record.end is not None
                lines = seen.record.end.tail.splitlines()
                end = seen.record.end
                return SessionFacts("ended", seen.record, lines[-1] if lines else "", end.survivors, end.output_bytes)
            case "free":
                left = await anyio.to_thread.run_sync(custodian.left_of, self._path(session_id), seen.record)
                return SessionFacts("lost", seen.record, survivors=left.names)
            case "held":
                answer = await self._ask(seen.record, session_id, "look")
                return self._no_answer(session_id) if answer is None else _live(seen.record, answer)
            case "foreign":
                return SessionFacts("foreign", seen.record)
            case "absent":
                return SessionFacts("absent")

    def look_now(
        self, session_id: SessionId, limits: ReadLimits | None = None, *, wait_ms: int = 0
    ) -> tuple[SessionFacts, Output | None] | None:
        """See the port. Blocks for the look bound, and for `wait_ms` (25,000 at most) where it reads."""
        seen = self._see(session_id)
        if seen.custody != "held" or seen.record is None or seen.record.socket is None:
            return None
        questions = [glance.Question("look", self._look_bound_s)]
        if limits is not None:
            wait_ms = min(max(wait_ms, 0), MAX_WAIT_MS)
            bound_s = self._look_bound_s + wait_ms / 1000
            questions.append(glance.Question("read", bound_s, {"wait_ms": wait_ms, **limits}))
        try:
            looked, *found = glance.ask(seen.record.socket, read_token(self._path(session_id)), questions)
        except HostGone:
            return None  # it has ended, or `look` makes it come back
        except TimeoutError:
            facts = self._no_answer(session_id)
            if facts.liveness != "unreachable":
                return None
            if limits is not None:
                raise self._silent(session_id) from None
            return facts, None
        facts = _live(seen.record, looked)
        return facts, exchange.output_of(exchange.result_of(found[0]), limits["form"]) if limits is not None else None

    async def _see_settled(self, session_id: SessionId) -> custodian.Seen:
        """Bounded: one that is being started is waited for, since its starter may have died and its host end, too."""
        seen, until = self._see(session_id), time.monotonic() + self._look_bound_s
        while seen.custody == "held" and (seen.record is None or seen.record.host is None):
            if time.monotonic() >= until:
                break
            await anyio.sleep(_FIRST_RETRY_S)
            seen = self._see(session_id)
        return seen

    async def close(
        self, session_id: SessionId, *, bound_s: float | None = None, graceful: bool = True
    ) -> tuple[str, ...]:
        """See the port. Raises: SESSION_NOT_FOUND; SESSION_CLOSE_FAILED when a host holds the Session and is silent."""
        seen = self._see(session_id)
        if seen.custody == "free":
            return (await self._finish_lost(session_id)).survivors
        if seen.custody == "ended":
            return await self._close_ended(seen.record)
        if seen.custody != "held" or seen.record is None:
            raise self._refusal(session_id, seen)
        if not graceful:
            custodian.wake(seen.record)  # a suspended host could end nothing
        bound = min(max(bound_s or seen.record.close_bound_s, CLOSE_BOUND_RANGE_S[0]), CLOSE_BOUND_RANGE_S[1])
        with anyio.move_on_after(bound + _TELL_S):
            return await self._close_held(seen.record, session_id, bound, graceful=graceful)
        raise SessionError(
            "SESSION_CLOSE_FAILED",
            f"The host of Session {session_id} does not answer, but holds the Session; it closes when it runs again.",
            kept=str(self._path(session_id)),
            next=f"kill -CONT {seen.record.host.pid}" if seen.record.host else None,
        )

    async def record(self, session_id: SessionId) -> SessionRecord | None:
        """What its host recorded last; None when there is no record, or it is somebody else's."""
        seen = self._see(session_id)
        return None if seen.custody in ("absent", "foreign") else seen.record

    def turn_record(self, session_id: SessionId) -> TurnRecord | None:
        """See the port."""
        return load_record(self._path(session_id)) if starting.SESSION_ID.fullmatch(session_id) else None

    async def record_change(self, session_id: SessionId, known: SessionRecord | None) -> SessionRecord | None:
        """The record once question, turn or conversation are others than in `known`. Never returns after the end."""

        def is_new(record: SessionRecord | None) -> bool:
            return record is not None and (known is None or _told(record) != _told(known))

        return await asking.until(self._path(session_id), is_new, self._words)

    @asynccontextmanager
    async def turns(self, *, read_only: bool = False) -> AsyncIterator["TurnCoordinator"]:
        """See the port. `read_only`: this process gives no turns, so it writes no record of any."""
        from coordinate_agents.sessions.turns.hosts import turns_of  # it knows this class

        async with turns_of(self, self._root, read_only=read_only) as turns:
            yield turns

    async def question(self, session_id: SessionId) -> Question | None:
        """See the port."""
        return asking.question(self._path(session_id))

    async def question_change(self, session_id: SessionId, known: Question | None) -> Question | None:
        """See the port."""
        return await asking.change(self._path(session_id), known, self._words)

    async def stall_change(self, session_id: SessionId, *, is_stalled: bool) -> None:
        """See the port."""
        path = self._path(session_id)
        await asking.until(path, lambda record: record is not None and record.stalled != is_stalled, self._words)

    async def end_strays(self, markers: Sequence[str], paths: Sequence[str]) -> tuple[str, ...]:
        """See the port. Blocks no loop; bounded by the largest close bound of the Sessions concerned."""
        return await anyio.to_thread.run_sync(self._end_strays, tuple(markers), tuple(paths))

    def _end_strays(self, markers: tuple[str, ...], paths: tuple[str, ...]) -> tuple[str, ...]:
        paths = custodian.own_paths(self._root, paths)
        roots = tuple(os.path.realpath(path) for path in paths)
        concerned = [
            seen.record
            for _, seen in custodian.every_record(self._root)
            if seen.record is not None
            and seen.custody in ("free", "ended")
            and (seen.record.marker in markers or strays.is_below(os.path.realpath(seen.record.cwd), roots))
        ]
        bound_s = max((record.close_bound_s for record in concerned), default=10.0)
        return strays.end(custodian.traces_of(concerned, markers=markers, paths=paths), bound_s)

    async def list(self) -> tuple[SessionFacts, ...]:
        """Every Session of this folder, in order of their ids."""
        names = [path.name for path, _ in await anyio.to_thread.run_sync(custodian.every_record, self._root)]
        found: dict[str, SessionFacts] = {}

        async def one(name: str) -> None:
            async with limit:
                found[name] = await self.look(SessionId(name))

        limit = anyio.CapacityLimiter(_STARTS_AT_ONCE)
        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(one, name)
        return tuple(found[name] for name in names if found[name].liveness != "absent")

    async def forget(self, session_id: SessionId) -> int:
        """See the port."""
        return await anyio.to_thread.run_sync(self._forget, session_id)

    def _forget(self, session_id: SessionId) -> int:
        seen = self._see(session_id)
        if seen.custody == "absent" and not self._has_folder(session_id):
            return 0
        if seen.custody not in ("ended", "absent"):
            raise SessionError(
                "SESSION_STATE_CONFLICT",
                f"Session {session_id} did not end, or its end was not recorded.",
                kept=str(self._path(session_id)),
                next=f"coordinate-agents session-close {session_id}",
            )
        path = self._path(session_id)
        size = sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir())
        shutil.rmtree(path)
        return size

    def _has_folder(self, session_id: SessionId) -> bool:
        return starting.SESSION_ID.fullmatch(session_id) is not None and self._path(session_id).is_dir()

    # --- hosts

    async def _close_held(
        self, record: SessionRecord, session_id: SessionId, bound_s: float, *, graceful: bool
    ) -> tuple[str, ...]:
        """Ask until the host has heard it, then wait for the end."""
        pause = _FIRST_RETRY_S
        while True:
            asked = await self._ask(record, session_id, "close", close={"bound_s": bound_s, "graceful": graceful})
            if asked is not None or custodian.see(self._path(session_id)).custody != "held":
                return (await self.wait(session_id)).survivors
            await anyio.sleep(pause)
            pause = min(pause * 2, _LONGEST_RETRY_S)

    async def _follow(self, record: SessionRecord | None, session_id: SessionId) -> bool:
        """Wait at the host until it ends or goes away; whether it could be reached at all."""
        if record is None or record.socket is None:
            return False
        path = self._path(session_id)
        try:
            with self._words.passed_on(path) as tell:
                async with HostConnection(record.socket, read_token(path)) as host:
                    await host.ask("hello")
                    tell()
                    while (word := (await host.event())["event"]) != "ended":
                        if word in asking.WORDS:
                            tell()
        except HostGone:
            nudge(record)
            return False
        return True

    def _no_answer(self, session_id: SessionId) -> SessionFacts:
        """A silent host, unless it ended while it was asked."""
        seen = custodian.see(self._path(session_id))
        if seen.custody == "ended" and seen.record is not None and seen.record.end is not None:
            return SessionFacts("ended", seen.record, survivors=seen.record.end.survivors)
        return SessionFacts("unreachable", seen.record)

    async def _finish_lost(self, session_id: SessionId) -> SessionEnd:
        """Shielded: half ended is worse than late."""
        with anyio.CancelScope(shield=True):
            end = await anyio.to_thread.run_sync(custodian.finish_lost, self._path(session_id), session_id)
            await self._reap_host(session_id)
        return end

    async def _close_ended(self, record: SessionRecord | None) -> tuple[str, ...]:
        """What an ended Session named as survivors is tried once more."""
        if record is None or record.end is None or not record.end.survivors:
            return ()
        return await anyio.to_thread.run_sync(self._end_survivors, record, record.end.survivors)

    def _end_survivors(self, record: SessionRecord, named: tuple[str, ...]) -> tuple[str, ...]:
        """What was named because it stood in the folder is not signalled, and named as long as it lives."""
        left = strays.end(custodian.traces_of([record]), record.close_bound_s)
        paths = custodian.own_paths(self._root, (record.cwd,))
        there = strays.search(custodian.traces_of([record], paths=paths)).names
        return tuple(sorted({*left, *(name for name in there if name in named)}))

    async def _reap_host(self, session_id: SessionId) -> None:
        """Collect our own child; it ends right after its final record. The fork server collects a forked host."""
        host = self._hosts.get(session_id)
        if isinstance(host, ForkedHost):
            del self._hosts[session_id]
        elif host is not None:
            await anyio.to_thread.run_sync(_wait_briefly, host)
            self._reap()

    def _reap(self) -> None:
        self._hosts = {name: host for name, host in self._hosts.items() if host.poll() is None}


def _live(record: SessionRecord | None, answer: Mapping[str, Any]) -> SessionFacts:
    """What a host says of its Session, with the record as it was read before."""
    found = record and replace(record, stalled=bool(answer.get("stalled")))
    silent_s = answer.get("silent_s")
    if found is not None and isinstance(silent_s, int | float):
        # The record is brought up to date now and then only.
        found = replace(found, last_activity_at=max(found.last_activity_at, time.time() - silent_s))
    total = int(answer.get("output_bytes", 0))
    is_attached, is_held = bool(answer.get("attached")), bool(answer.get("held"))
    facts = SessionFacts("live", found, str(answer.get("last_line", "")), (), total, is_attached, is_held)
    quiet_s = answer.get("quiet_s")
    return replace(facts, quiet_s=float(quiet_s)) if isinstance(quiet_s, int | float) else facts


def _told(record: SessionRecord) -> tuple[object, ...]:
    return record.question, record.turn, record.conversation


def _wait_briefly(host: HostProcess) -> None:
    with suppress(subprocess.TimeoutExpired):
        host.wait(_TELL_S)


def _usable_socket_dir(wanted: Path | None) -> Path:
    """A short, private directory for sockets. A path that is too long for sockets falls back to the default place."""
    if wanted is not None and len(os.fsencode(wanted.absolute())) <= _MAX_SOCKET_DIR:
        return wanted.absolute()
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and base.startswith("/") and len(os.fsencode(base)) <= _MAX_SOCKET_DIR - 20 and _is_private(Path(base)):
        return Path(base) / "coordinate-agents"
    return Path(f"/tmp/coordinate-agents-{os.geteuid()}")


def _is_private(path: Path) -> bool:
    try:
        seen = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid() and not seen.st_mode & 0o022
