"""Life and death of Sessions and hosts, seen from clients that come, go and look from elsewhere."""
# ruff: noqa: ASYNC110, ASYNC220, ASYNC240

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from hosts import AGENTS, launch, lives, shell, text_of, until

from coordinate_agents.sessions import process, starting
from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import ProcessIdentity, SessionId, SessionRecord

pytestmark = pytest.mark.anyio
ID = SessionId("s1")

# Another process that starts a Session and then waits to be killed.
STARTER = """
import os, sys, time, anyio
from pathlib import Path
from coordinate_agents.sessions.client import SessionHosts
from coordinate_agents.sessions.model import Launch, SessionId
root, sockets, *argv = sys.argv[1:]
hosts = SessionHosts(Path(root), runtime_dir=Path(sockets))
anyio.run(hosts.start, Launch(SessionId("s1"), "agent", tuple(argv), "/", dict(os.environ)))
print("started", flush=True)
time.sleep(600)
"""


async def host_of(hosts: SessionHosts, session: str = "s1") -> ProcessIdentity:
    record = (await hosts.look(SessionId(session))).record
    assert record is not None
    assert record.host is not None
    return record.host


async def child_of(hosts: SessionHosts, session: str = "s1") -> int:
    record = (await hosts.look(SessionId(session))).record
    assert record is not None
    assert record.child is not None
    return record.child.pid


def kill_host(host: ProcessIdentity) -> None:
    os.kill(host.pid, signal.SIGKILL)
    until(lambda: not lives(host.pid))


def edit_record(root: Path, session: str = "s1", **fields: Any) -> None:
    path = root / session / "record.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


async def test_session_survives_the_death_of_its_starter_and_another_client_gets_the_exit(
    hosts: SessionHosts, root: Path, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    script = f"echo before; while [ ! -e {go} ]; do sleep 0.02; done; echo after; exit 6"
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(root), str(hosts.socket_dir), "/bin/sh", "-c", script],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert starter.stdout is not None
    with starter.stdout:
        assert starter.stdout.readline() == b"started\n"
    os.killpg(starter.pid, signal.SIGKILL)
    starter.wait()
    assert (await hosts.look(ID)).liveness == "live"
    go.touch()
    end = await hosts.wait(ID)
    assert (end.cause, end.exit_code, end.tail) == ("exit", 6, "before\nafter")


async def test_output_is_drained_while_nobody_is_there(hosts: SessionHosts, tmp_path: Path) -> None:
    done = tmp_path / "done"
    await hosts.start(shell("s1", f"head -c 3000000 /dev/zero | tr '\\0' y; touch {done}; sleep 600"))
    until(done.exists)
    await hosts.close(ID)
    assert (await hosts.wait(ID)).output_bytes == 3_000_000


async def test_killed_host_takes_the_child_with_it_and_the_rest_is_ended_before_the_report(
    hosts: SessionHosts, tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    await hosts.start(launch("s1", "ignores-signals.sh", ready, close_bound_s=1.0))
    text_of(ready)
    child = await child_of(hosts)

    def settled() -> list[process.Stat] | None:
        tree = process.descendants(child, process.every())
        return tree if [one.name for one in tree] == ["sh", "sleep", "sleep"] else None

    tree = until(settled)
    kill_host(await host_of(hosts))
    until(lambda: not lives(child))
    facts = await hosts.look(ID)
    assert facts.liveness == "lost"
    assert set(facts.survivors) == {str(one) for one in tree}
    end = await hosts.wait(ID)
    assert (end.cause, end.exit_code, end.signal, end.survivors) == ("host-lost", None, None, ())
    assert [one for one in tree if lives(one.pid)] == []
    assert (await hosts.look(ID)).liveness == "ended"
    assert await hosts.wait(ID) == end


async def test_daemon_with_an_empty_environment_is_found_after_its_host_was_killed(
    hosts: SessionHosts, tmp_path: Path
) -> None:
    script = f"{AGENTS}/daemonises.py {tmp_path}/pid; sleep 600"
    await hosts.start(shell("s1", script, cwd=tmp_path, close_bound_s=1.0))
    daemon = int(text_of(tmp_path / "pid"))
    kill_host(await host_of(hosts))
    assert any(str(daemon) in name for name in (await hosts.look(ID)).survivors)
    assert await hosts.close(ID) == ()
    assert not lives(daemon)


async def test_strays_are_ended_by_folder_once_their_host_is_gone(hosts: SessionHosts, tmp_path: Path) -> None:
    await hosts.start(shell("s1", f"{AGENTS}/daemonises.py {tmp_path}/pid; sleep 600", cwd=tmp_path, close_bound_s=1.0))
    daemon = int(text_of(tmp_path / "pid"))
    kill_host(await host_of(hosts))
    assert await hosts.end_strays((), (str(tmp_path),)) == ()
    assert not lives(daemon)


async def test_strays_of_a_living_host_and_a_persons_process_are_left_alone(
    hosts: SessionHosts, tmp_path: Path
) -> None:
    await hosts.start(launch("s1", "silent.sh", tmp_path / "ready", cwd=tmp_path))
    text_of(tmp_path / "ready")
    person = subprocess.Popen(["sleep", "600"], cwd=tmp_path, start_new_session=True)
    try:
        assert await hosts.end_strays((), (str(tmp_path),)) == (f"{person.pid} sleep",)
        assert lives(person.pid)
        assert (await hosts.look(ID)).liveness == "live"
    finally:
        person.kill()
        person.wait()


async def test_stopped_host_is_unreachable_and_not_dead(hosts: SessionHosts, root: Path) -> None:
    await hosts.start(launch("s1", "silent.sh"))
    host = await host_of(hosts)
    os.kill(host.pid, signal.SIGSTOP)
    patient = SessionHosts(root, runtime_dir=hosts.socket_dir, look_bound_s=0.2)
    try:
        assert (await patient.look(ID)).liveness == "unreachable"
        with anyio.move_on_after(0.5) as scope:
            await patient.wait(ID)
        assert scope.cancelled_caught
        with pytest.raises(SessionError) as caught:
            await patient.close(ID, bound_s=0.1)
        assert caught.value.code == "SESSION_CLOSE_FAILED"
        assert caught.value.next == f"kill -CONT {host.pid}"
    finally:
        os.kill(host.pid, signal.SIGCONT)
    assert (await hosts.wait(ID)).cause == "close"


async def test_close_without_grace_lets_a_stopped_host_go_on_and_end(hosts: SessionHosts) -> None:
    """What a dead driver's check left must keep nobody from going on."""
    await hosts.start(launch("s1", "silent.sh"))
    host = await host_of(hosts)
    os.kill(host.pid, signal.SIGSTOP)
    assert await hosts.close(ID, graceful=False) == ()
    assert (await hosts.wait(ID)).cause == "close"


async def test_cancelled_wait_leaves_the_session_running(hosts: SessionHosts) -> None:
    await hosts.start(launch("s1", "silent.sh"))
    with anyio.move_on_after(0.2):
        await hosts.wait(ID)
    assert (await hosts.look(ID)).liveness == "live"


async def test_second_start_of_a_session_is_refused_and_changes_nothing(hosts: SessionHosts, tmp_path: Path) -> None:
    await hosts.start(launch("s1", "silent.sh"))
    child = await child_of(hosts)
    with pytest.raises(SessionError) as caught:
        await hosts.start(shell("s1", f"touch {tmp_path}/second"))
    assert caught.value.code == "SESSION_STATE_CONFLICT"
    assert await child_of(hosts) == child
    await hosts.close(ID)
    with pytest.raises(SessionError):
        await hosts.start(shell("s1", f"touch {tmp_path}/second"))
    assert not (tmp_path / "second").exists()


async def test_many_starts_of_one_session_at_once_make_one_process(hosts: SessionHosts, tmp_path: Path) -> None:
    outcomes: list[str] = []

    async def one() -> None:
        try:
            await hosts.start(shell("s1", f"echo $$ >> {tmp_path}/pids; sleep 600"))
            outcomes.append("started")
        except SessionError as error:
            outcomes.append(error.code)

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(one)
    assert sorted(outcomes) == ["SESSION_STATE_CONFLICT"] * 7 + ["started"]
    assert len(text_of(tmp_path / "pids").split()) == 1


async def test_prompt_file_written_before_the_start_is_kept(hosts: SessionHosts, root: Path) -> None:
    from coordinate_agents.sessions.prompt import write_prompt_file

    write_prompt_file(root / "s1" / "prompt.txt", "do it")
    assert (await hosts.look(ID)).liveness == "absent"
    await hosts.start(shell("s1", f"cat {root}/s1/prompt.txt"))
    assert (await hosts.wait(ID)).tail == "do it"


@pytest.mark.parametrize("pid", ["stranger", "init"])
async def test_pid_of_a_record_that_belongs_to_somebody_else_is_never_signalled(
    hosts: SessionHosts, root: Path, pid: str
) -> None:
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True, cwd="/")
    try:
        await hosts.start(launch("s1", "silent.sh"))
        host = await host_of(hosts)
        kill_host(host)
        raw = json.loads((root / "s1" / "record.json").read_text())
        number = stranger.pid if pid == "stranger" else 1
        edit_record(root, host={**raw["host"], "pid": number}, child={**raw["child"], "pid": number})
        facts = await hosts.look(ID)
        assert facts.liveness == "lost"
        assert f"{stranger.pid} sleep" not in facts.survivors
        assert (await hosts.wait(ID)).cause == "host-lost"
        assert lives(stranger.pid)
    finally:
        stranger.kill()
        stranger.wait()


async def test_record_of_an_earlier_boot_is_lost_without_survivors(hosts: SessionHosts, root: Path) -> None:
    await hosts.start(launch("s1", "silent.sh"))
    kill_host(host := await host_of(hosts))
    raw = json.loads((root / "s1" / "record.json").read_text())
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        seen = process.stat(stranger.pid)
        assert seen is not None
        other = {"boot_id": "another-boot", "pid": stranger.pid, "start_ticks": seen.start_ticks}
        edit_record(root, host={**raw["host"], **other}, child={**raw["child"], **other}, marker="")
        facts = await hosts.look(ID)
        assert (facts.liveness, facts.survivors) == ("lost", ())
        assert (await hosts.wait(ID)).cause == "host-lost"
        assert lives(stranger.pid)
    finally:
        stranger.kill()
        stranger.wait()
    assert host.boot_id == process.boot_id()


@pytest.mark.parametrize("fields", [{"machine_id": "another"}, {"pid_namespace": 1}])
async def test_record_of_another_machine_or_container_is_foreign_and_untouched(
    hosts: SessionHosts, root: Path, fields: dict[str, Any]
) -> None:
    await hosts.start(launch("s1", "silent.sh"))
    host, child = await host_of(hosts), await child_of(hosts)
    raw = json.loads((root / "s1" / "record.json").read_text())
    edit_record(root, host={**raw["host"], **fields})
    try:
        assert (await hosts.look(ID)).liveness == "foreign"
        for refused in (hosts.wait, hosts.close):
            with pytest.raises(SessionError) as caught:
                await refused(ID)
            assert caught.value.code == "SESSION_NOT_HEALTHY"
        assert lives(host.pid)
        assert lives(child)
    finally:
        edit_record(root, host=raw["host"])


async def test_session_that_never_was_is_absent(hosts: SessionHosts) -> None:
    assert (await hosts.look(ID)).liveness == "absent"
    for refused in (hosts.wait, hosts.close):
        with pytest.raises(SessionError) as caught:
            await refused(ID)
        assert caught.value.code == "SESSION_NOT_FOUND"


@pytest.mark.parametrize("content", ["", "{", '{"v": 99}', "[]"])
async def test_damaged_record_of_a_dead_host_is_lost_and_can_be_finished(
    hosts: SessionHosts, root: Path, content: str
) -> None:
    await hosts.start(launch("s1", "silent.sh"))
    child = await child_of(hosts)
    kill_host(await host_of(hosts))
    until(lambda: not lives(child))  # the kernel ends it with its host, and no record says who it was
    (root / "s1" / "record.json").write_text(content)
    assert (await hosts.look(ID)).liveness == "lost"
    assert (await hosts.wait(ID)).cause == "host-lost"
    assert (await hosts.look(ID)).liveness == "ended"


async def test_record_that_is_a_link_is_not_followed(hosts: SessionHosts, root: Path, tmp_path: Path) -> None:
    await hosts.start(launch("s1", "dies-at-once.sh"))
    await hosts.wait(ID)
    record = root / "s1" / "record.json"
    record.rename(tmp_path / "elsewhere.json")
    record.symlink_to(tmp_path / "elsewhere.json")
    assert (await hosts.look(ID)).record is None


async def test_removed_socket_is_made_again(hosts: SessionHosts) -> None:
    record: SessionRecord | None = await hosts.start(launch("s1", "silent.sh"))
    assert record is not None
    assert record.socket is not None
    Path(record.socket).unlink()
    with anyio.fail_after(5):
        while (await hosts.look(ID)).liveness != "live":
            await anyio.sleep(0.01)


async def test_what_lies_in_the_worktree_and_on_pythonpath_is_not_imported(
    hosts: SessionHosts, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = f"open({str(tmp_path / 'trapped')!r}, 'a').write(__name__ + chr(10))\n"
    for name in ("sessions", "coordinate_agents", "ptyprocess", "json", "encodings"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(trap)
    for name in ("sitecustomize", "usercustomize", "selectors", "socket", "re", "signal", "os"):
        (tmp_path / f"{name}.py").write_text(trap)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "sitecustomize.py"))
    monkeypatch.setenv("PYTHONHOME", str(tmp_path))
    for driver in ("pty", "pipe"):
        await hosts.start(launch(driver, "dies-at-once.sh", "3", cwd=tmp_path, driver=driver))
        assert (await hosts.wait(SessionId(driver))).exit_code == 3
        alone = launch(f"{driver}-alone", "dies-at-once.sh", "3", cwd=tmp_path, driver=driver)
        starting.start_host(alone, root, hosts.socket_dir).wait(20)  # not by the fork server
        assert (await hosts.wait(SessionId(f"{driver}-alone"))).exit_code == 3
    assert not (tmp_path / "trapped").exists()


async def test_one_session_is_seen_by_several_waiting_clients(hosts: SessionHosts, root: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    await hosts.start(shell("s1", f"while [ ! -e {go} ]; do sleep 0.02; done; exit 9"))
    other = SessionHosts(root, runtime_dir=hosts.socket_dir)
    codes: list[int | None] = []

    async def one(client: SessionHosts) -> None:
        codes.append((await client.wait(ID)).exit_code)

    async with anyio.create_task_group() as group:
        for client in (hosts, hosts, other, other):
            group.start_soon(one, client)
        await anyio.sleep(0.1)
        go.touch()
    assert codes == [9] * 4


async def test_terminated_host_closes_its_session(hosts: SessionHosts) -> None:
    await hosts.start(launch("s1", "silent.sh"))
    os.kill((await host_of(hosts)).pid, signal.SIGTERM)
    end = await hosts.wait(ID)
    assert (end.cause, end.survivors) == ("close", ())
