"""The host process: from the launch specification on stdin to the final record.

Order, each step after the one before is durable: take over the folder's lock (inherited, already held) → record the
host → socket → child → record the child → say "ready" → loop → final record → release the lock by ending.
A crash after the child started leaves a record with the host's and the child's identity and no end: whoever looks finds
the lock free, searches the tree and ends it.
"""

from __future__ import annotations

import binascii
import contextlib
import gc
import json
import os
import re
import signal
import sys
import time

from coordinate_agents.sessions import cgroup
from coordinate_agents.sessions import folder as folders
from coordinate_agents.sessions.crashpoints import crash_point
from coordinate_agents.sessions.drivers import DRIVERS
from coordinate_agents.sessions.drivers.base import Child, NoTerminal, Start
from coordinate_agents.sessions.host.custody import Custody
from coordinate_agents.sessions.host.limits import Limits
from coordinate_agents.sessions.host.output import Output
from coordinate_agents.sessions.host.records import Record
from coordinate_agents.sessions.process import PR_SET_CHILD_SUBREAPER, prctl
from coordinate_agents.sessions.redact import Redactor

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is slow to load
    from collections.abc import Callable
    from typing import Any

    from coordinate_agents.sessions.host.speaking import Speaker


def main() -> None:
    umask = os.umask(0o077)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    with os.fdopen(0, "rb", closefd=False) as file:
        spec = json.loads(file.read())
    crash_point("host.begun")
    os.set_inheritable(spec["lock_fd"], False)
    ready = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    custody = _start(spec, umask, ready)
    gc.enable()  # off since the first line: collecting while modules load costs a tenth of the start
    if custody is not None:
        custody.run()
    # Nothing is left to be tidied; the interpreter's own end would only keep the lock for some milliseconds more.
    os._exit(0)


def _start(spec: dict[str, Any], umask: int, ready: int) -> Custody | None:
    """Start the child and say so; None when it could not be started, which is then recorded and said."""
    folder = folders.open_folder(spec["folder"])
    record = Record(folder, spec["record"])
    record.host_started()
    crash_point("host.recorded")
    if spec["ports"] is not None:
        from coordinate_agents.sessions.host.held_ports import hold

        hold(spec["ports"])
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    output = Output(
        folder,
        folders.OUTPUT,
        ring_bytes=spec["ring_bytes"],
        log_bytes=spec["log_bytes"],
        redactor=Redactor(spec["secrets"]),
    )
    limits = Limits(
        timeout_s=spec["timeout_s"],
        idle_timeout_s=spec["idle_timeout_s"],
        stop_on_idle=spec["on_idle"] == "stop",
        close_bound_s=spec["close_bound_s"],
    )
    log_path = f"{spec['folder']}/{folders.OUTPUT}"
    custody = Custody(record, output, limits, log_path, spec["input"] or {}, _speaker(spec, folder))
    stdin = None if spec["stdin"] is None else binascii.a2b_base64(spec["stdin"])
    start = Start(spec["executable"], spec["argv"], spec["cwd"], spec["env"], stdin, umask, spec["ptyprocess_path"])
    start.is_input_open = bool(spec["is_input_open"])
    start.size = (spec["rows"], spec["columns"])
    start.cgroup = cgroup.make(os.path.basename(spec["socket"]).partition(".")[0])  # noqa: PTH119
    if start.cgroup:
        record.changed(cgroup=start.cgroup)  # before the child: whoever finds it without a host must know it
    try:
        custody.serve(spec["socket"], spec["token"])
        crash_point("host.served")
        child = _spawn(record, spec["driver"], start)
    except (OSError, ValueError) as error:
        message = re.sub(r"\[Errno \d+\] ", "", str(error))
        end: dict[str, object] = {"cause": "spawn-failed", "error": message}
        cgroup.remove(start.cgroup)
        record.finish("failed", end)
        _say(ready, {"ok": False, "error": message})
        return None
    crash_point("host.spawned")
    custody.take(child, stdin)
    crash_point("host.child")
    _say(ready, {"ok": True})
    crash_point("host.ready")
    return custody


def _spawn(record: Record, driver: str, start: Start) -> Child:
    """The child, on pipes where no terminal can be made; the record then says that the Session is degraded."""
    try:
        return _driver(driver)(start)
    except NoTerminal:
        record.changed(driver="pipe", degraded=True)
        return _driver("pipe")(start)


def _speaker(spec: dict[str, Any], folder: int) -> Speaker | None:
    """Only hosts of such agents load what it takes to speak with them."""
    if spec["driver"] != "acp":
        return None
    from coordinate_agents.sessions.host.speaking import Speaker

    return Speaker(spec["acp"], spec["cwd"], folder)


def _driver(name: str) -> Callable[[Start], Child]:
    __import__(DRIVERS[name])
    spawn: Callable[[Start], Child] = sys.modules[DRIVERS[name]].spawn
    return spawn


def _say(ready: int, message: dict[str, object]) -> None:
    """One line to the starter. It may be gone; that changes nothing here."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.write(ready, json.dumps({"v": 1, "time": time.time(), **message}).encode("ascii") + b"\n")
    os.close(ready)
