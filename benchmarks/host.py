"""What a session host costs, as ratios to a floor measured in the same run, interleaved; medians of CPU time.

Floors: `python -I -S -c pass` for a host that is ready, `Popen` for a start, a loop that reads a bare terminal and
forgets for draining. CPU where it can be had: a loaded machine makes wall times useless. A benchmark, never a test. Run
it as ``python benchmarks/host.py``.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio
import ptyprocess

from coordinate_agents.sessions import starting
from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.model import Driver, Launch, SessionId

ROUNDS = 9
LIVE = 128
DEAF = 32
CLOSE_BOUND_S = 4.0
READS = 2000
FLOOD_ROUNDS = 7
FLOOD_BYTES = 64 << 20
FLOODS = {
    "endless": f"head -c {FLOOD_BYTES} /dev/zero | tr '\\0' x",
    "lines": f"yes 'some ordinary line of output, eighty characters long, as there are many' | head -c {FLOOD_BYTES}",
}
DRIVERS: tuple[Driver, ...] = ("pipe", "pty")


def launch(name: str, script: str, driver: Driver = "pty", **more: object) -> Launch:
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    return Launch(SessionId(name), "agent", ("/bin/sh", "-c", script), "/", env, driver=driver, **more)  # type: ignore[arg-type]


def floor_ms() -> float:
    """CPU of the interpreter that a host runs in, from its start to its end."""
    pid = os.posix_spawn(sys.executable, [sys.executable, "-I", "-S", "-c", "pass"], {})
    _, _, usage = os.wait4(pid, 0)
    return (usage.ru_utime + usage.ru_stime) * 1000


def ready(root: Path) -> None:
    """CPU of a host until its child runs and it said so."""
    results: dict[str, list[float]] = {"floor": [], "pipe": [], "pty": []}
    for round_ in range(ROUNDS):
        results["floor"].append(floor_ms())
        for driver in DRIVERS:
            host = starting.start_host(launch(f"{driver}{round_}", "exec sleep 600", driver), root, root)
            results[driver].append(used_ms(host.pid))
            host.kill()
            host.wait()
    base = statistics.median(results["floor"])
    for name, values in results.items():
        middle = statistics.median(values)
        print(f"ready {name:5}  {middle:6.1f} ms CPU  {middle / base:4.1f} x   least {min(values):.1f}")


async def live(root: Path) -> None:
    """Many live Sessions: memory of each host, idle CPU, time of a look, and closing all."""
    hosts = SessionHosts(root, runtime_dir=root)
    started = time.perf_counter()
    async with anyio.create_task_group() as group:
        for number in range(LIVE):
            group.start_soon(hosts.start, launch(f"live{number}", "seq 200; exec sleep 600", close_bound_s=2.0))
    print(f"{LIVE} starts  {(time.perf_counter() - started) * 1000 / LIVE:6.1f} ms each, wall")
    pids = []
    for number in range(LIVE):
        record = (await hosts.look(SessionId(f"live{number}"))).record
        assert record is not None
        assert record.host is not None
        pids.append(record.host.pid)
    resident, private = max(map(resident_kb, pids)) / 1024, max(map(private_kb, pids)) / 1024
    print(f"memory     RSS {resident:.1f} MB, of it private {private:.1f} MB")
    before = sum(map(cpu_ticks, pids))
    await anyio.sleep(5)
    print(f"idle       {sum(map(cpu_ticks, pids)) - before} ticks of CPU by all hosts in 5 s")
    looks = []
    for _ in range(300):
        started = time.perf_counter()
        await hosts.look(SessionId("live0"))
        looks.append((time.perf_counter() - started) * 1000)
    print(f"look       {statistics.median(looks):6.2f} ms with a connection of its own")
    reads(root)
    started = time.perf_counter()
    async with anyio.create_task_group() as group:
        for number in range(LIVE):
            group.start_soon(hosts.close, SessionId(f"live{number}"))
    print(f"{LIVE} closes  {(time.perf_counter() - started) * 1000:6.0f} ms for all")


def reads(root: Path) -> None:
    """A read and a look on a kept connection, against an echo between two processes of the same kind of socket."""
    folder = root / "live0"
    record = json.loads((folder / "record.json").read_text())
    token = (folder / "token").read_text()
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(record["socket"])
        lines = peer.makefile("rb")
        for operation in ("read", "look"):
            line = json.dumps({"v": 1, "id": 1, "op": operation, "token": token, "cursor": 0}).encode() + b"\n"
            taken = []
            for _ in range(READS):
                begun = time.perf_counter()
                peer.sendall(line)
                lines.readline()
                taken.append((time.perf_counter() - begun) * 1e6)
            taken.sort()
            print(
                f"{operation:10} {taken[READS // 2]:6.0f} us on a kept connection, p99 {taken[READS * 99 // 100]:.0f}"
            )
        lines.close()


async def started(root: Path) -> None:
    """From the call to a running child, wall."""
    hosts = SessionHosts(root, runtime_dir=root)
    plain, hosted = [], []
    for round_ in range(ROUNDS):
        begun = time.perf_counter()
        with subprocess.Popen(["/bin/sh", "-c", "exit"]):  # noqa: ASYNC220
            plain.append((time.perf_counter() - begun) * 1000)
        begun = time.perf_counter()
        await hosts.start(launch(f"started{round_}", "exit"))
        hosted.append((time.perf_counter() - begun) * 1000)
        await hosts.wait(SessionId(f"started{round_}"))
    print(
        f"started     {min(hosted):6.1f} ms at best, {statistics.median(hosted):.1f} median; Popen {min(plain):.1f} ms"
    )


async def first_byte(root: Path) -> None:
    """From the call to the first byte of the child, through terminal and host, against a pipe of our own; wall."""
    hosts = SessionHosts(root, runtime_dir=root)
    plain, hosted = [], []
    await hosts.start(launch("warm", "exit"))  # the fork server stands, as in every run after its first start
    for round_ in range(ROUNDS):
        begun = time.perf_counter()
        with subprocess.Popen(["/bin/sh", "-c", "echo x"], stdout=subprocess.PIPE) as child:  # noqa: ASYNC220
            assert child.stdout is not None
            os.read(child.stdout.fileno(), 1)
            plain.append((time.perf_counter() - begun) * 1000)
        name = SessionId(f"byte{round_}")
        begun = time.perf_counter()
        await hosts.start(launch(name, "echo x; exec sleep 600", close_bound_s=1.0))
        while not (await hosts.read(name, cursor=0, wait_ms=1000)).text:
            pass
        hosted.append((time.perf_counter() - begun) * 1000)
        await hosts.close(name, graceful=False)
    print(
        f"first byte  {min(hosted):6.1f} ms at best, {statistics.median(hosted):.1f} median; a pipe {min(plain):.1f} "
        f"and {statistics.median(plain):.1f} ms"
    )


async def close(root: Path) -> None:
    """Closing many Sessions at once whose trees ignore every polite signal: the bound, and what comes on top."""
    hosts = SessionHosts(root, runtime_dir=root)
    names = [SessionId(f"deaf{number}") for number in range(DEAF)]
    deaf = "trap '' HUP INT TERM; (trap '' HUP INT TERM; sleep 600) & echo x; while :; do sleep 600; done"
    async with anyio.create_task_group() as group:
        for name in names:
            group.start_soon(hosts.start, launch(name, deaf, close_bound_s=CLOSE_BOUND_S))
    for name in names:
        while not (await hosts.read(name, cursor=0, wait_ms=1000)).text:
            pass
    begun = time.perf_counter()
    async with anyio.create_task_group() as group:
        for name in names:
            group.start_soon(hosts.close, name)
    print(f"{DEAF} deaf    {time.perf_counter() - begun:6.2f} s to close all; bound of one {CLOSE_BOUND_S:g} s")


def drain(root: Path) -> None:
    """CPU that a flood costs the host, against a loop that reads a bare terminal and forgets; medians, in pairs."""
    for name, script in FLOODS.items():
        bare: list[float] = []
        cut: list[float] = []
        whole: list[float] = []
        for round_ in range(FLOOD_ROUNDS):
            bare.append(bare_drain_ms(script))
            for log_bytes, results in ((8 << 20, cut), (1 << 30, whole)):
                value = launch(f"drain-{name}-{round_}-{log_bytes}", script, log_bytes=log_bytes)
                results.append(host_drain_ms(value, root))
        print(
            f"drain {name:7} {statistics.median(bare):6.0f} ms CPU bare; host {statistics.median(cut):.0f} ms, "
            f"{ratio(bare, cut):4.2f} x; everything in the log {statistics.median(whole):.0f} ms, "
            f"{ratio(bare, whole):4.2f} x"
        )


def ratio(bare: list[float], hosted: list[float]) -> float:
    """The median of what is measured side by side: a load that comes and goes hits both."""
    return statistics.median(one / other for one, other in zip(bare, hosted, strict=True))


def bare_drain_ms(script: str) -> float:
    terminal = ptyprocess.PtyProcess.spawn(["/bin/sh", "-c", script])
    before = time.process_time()
    try:
        while os.read(terminal.fd, 65536):
            pass
    except OSError:
        pass
    used = time.process_time() - before
    terminal.wait()
    return used * 1000


def host_drain_ms(value: Launch, root: Path) -> float:
    """From "ready" to the end of the host, without its children."""
    host = starting.start_host(value, root, root)
    before = used_ms(host.pid)
    os.waitid(os.P_PID, host.pid, os.WEXITED | os.WNOWAIT)  # a zombie still shows what it used
    used = used_ms(host.pid) - before
    host.wait()
    return used


def used_ms(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6


def resident_kb(pid: int) -> int:
    return status_kb(pid, "status", "VmRSS:")


def private_kb(pid: int) -> int:
    return status_kb(pid, "smaps_rollup", "Private_Dirty:")


def status_kb(pid: int, file: str, key: str) -> int:
    lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key))


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        ready(root)
        anyio.run(started, root)
        anyio.run(first_byte, root)
        anyio.run(close, root)
        anyio.run(live, root)
        drain(root)


if __name__ == "__main__":
    main()
