"""doctor --live AGENT: one agent, tried for real in a scratch repository that is removed afterwards.

A graph of one subtask goes the ordinary way: worktree, Session, prompt, verification. So what is found is what a run
would meet: does it start, is it logged in, does it ask for trust, does the prompt arrive whole, does it work, can it
commit in a linked worktree. Nothing of the user's repository is touched; the agent may cost what a short turn costs.
"""

import json
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from coordinate_agents.cli import custody
from coordinate_agents.cli.setup.findings import Finding
from coordinate_agents.cli.wiring import scratch_runtime
from coordinate_agents.graph.config import Config
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations import run, stop
from coordinate_agents.graph.text import visible
from coordinate_agents.worktrees.git import git_program

GRAPH: Final = "doctor"
SUBTASK: Final = "live"
# A short turn of a slow model; a person who waits for the doctor wants an answer.
TURN_LIMIT_S: Final = 180
_DEADLINE_S: Final = 240.0

_SPEC: Final = """\
This is a test of the setup. Make the file live.txt in the current folder, with nothing but {nonce} in it, commit it,
change nothing else, then stop. If you can run shell commands, run exactly this one:

RUN: printf %s {nonce} > live.txt && git add live.txt && git commit -m live
"""


def try_agent(config: Config, name: str) -> Iterator[Finding]:
    """Findings about one agent; starts it once. Raises: AGENT_MAY_NOT inside a Session."""
    custody.refuse_inside("doctor --live")
    what = f"live {name}"
    try:
        config.settings_of(name)
    except GraphError as error:
        yield Finding("error", what, str(error), error.next)
        return
    folder = Path(tempfile.mkdtemp(prefix="coordinate-agents-live-"))
    try:
        yield from _tried(folder, replace(config, default_agent=name), name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        yield Finding("warn", what, f"{folder} could not be removed", f"rm -r {folder}")


def _tried(folder: Path, config: Config, name: str) -> Iterator[Finding]:
    nonce = secrets.token_hex(8)
    root = _repository(folder / "checkout")
    plan = folder / "plan.yaml"
    plan.write_text(json.dumps(_plan(nonce, name)))  # JSON is YAML
    config = replace(config, setup=(), teardown=(), copy=(), link=(), notify=(), state_root=None, min_free_disk_bytes=0)
    runtime = scratch_runtime(root, config)
    try:
        request = run.Request(
            graph=str(plan), on_input="fail", deadline=_DEADLINE_S, stop_on_exit=True,
            worktree_root=str(folder / "worktrees"),
        )  # fmt: skip
        try:
            data = run.execute(runtime, request).data
        finally:
            if runtime.store.graph(GRAPH) is not None:
                stop.execute(runtime, stop.Request(graph=GRAPH, reason="the doctor is done"))
    except GraphError as error:
        yield Finding("error", f"live {name}", str(error), error.next)
        return
    finally:
        runtime.close()
    yield from _findings(root, data["subtasks"][0], name, nonce)


def _plan(nonce: str, name: str) -> dict[str, Any]:
    return {
        "id": GRAPH,
        # auto: it commits if it can, and else we see that it could not.
        "defaults": {"timeout": f"{TURN_LIMIT_S}s", "attempts": 1, "fixTurns": 0, "commit": "auto"},
        "subtasks": [{"id": SUBTASK, "agent": name, "spec": _SPEC.format(nonce=nonce), "writes": ["live.txt"]}],
    }


def _repository(root: Path) -> Path:
    root.mkdir()
    for words in (
        ("init", "--quiet", "--initial-branch=main"),
        ("-c", "user.name=doctor", "-c", "user.email=doctor@localhost", "-c", "commit.gpgSign=false",
         "commit", "--quiet", "--allow-empty", "-m", "scratch"),
    ):  # fmt: skip
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        subprocess.run(
            [git_program(), "-c", "core.hooksPath=/dev/null", "-C", str(root), *words],
            env={**environment, "PWD": str(root)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=30,
        )
    return root


def _findings(root: Path, subtask: Mapping[str, Any], name: str, nonce: str) -> Iterator[Finding]:
    """What the end of the subtask says about login, trust, delivery and committing."""
    what, failure = f"live {name}", subtask["failure"]
    commit = subtask["verifiedCommit"]
    if commit is not None:
        done = _shown(root, f"{commit}:live.txt")
        trailer = _shown(root, commit, "--format=%(trailers:key=Coordinate-Agents-Graph,valueonly)", "--no-patch")
        said = f"it did its work in {subtask['elapsedS']:g} s"
        yield Finding("ok", what, f"it started, needed no login and no trust; {said}")
        if done.strip() == nonce:  # editors end a file with a line end
            yield Finding("ok", f"{what}, delivery", "the prompt arrived whole")
        else:
            wrong = f"the prompt did not arrive as it was sent: live.txt holds {visible(done)!r}"
            yield Finding("warn", f"{what}, delivery", wrong, _inspect(name))
        yield _commit_finding(what, is_ours=bool(trailer.strip()))
        return
    if failure is None:
        reason = subtask["reason"] or subtask["state"]
        yield Finding("error", what, f"it did not come to an end: {visible(reason)}", _inspect(name))
        return
    yield _failure_finding(what, name, failure)
    tail = [line for line in str(failure["tail"]).splitlines() if line.strip()][-3:]
    if tail:
        yield Finding("warn", f"{what}, its last words", " / ".join(visible(line, limit=200) for line in tail))


def _failure_finding(what: str, name: str, failure: Mapping[str, Any]) -> Finding:
    code, message = failure["code"], visible(str(failure["message"]))
    match code:
        case "AUTH_REQUIRED":
            return Finding("error", f"{what}, login", message, f"start {name} once by yourself and log in")
        case "AWAITING_INPUT":
            return Finding("error", f"{what}, question", message, f"start {name} once by yourself and answer it")
        case "EVIDENCE_REJECTED":
            return Finding(
                "error",
                f"{what}, commit",
                message,
                f"coordinate-agents setup-configure --agent {name} --commit runtime",
            )
        case _:
            return Finding("error", what, f"{code}: {message}", _inspect(name))


def _commit_finding(what: str, *, is_ours: bool) -> Finding:
    if is_ours:
        said = (
            "it left its work uncommitted in a linked worktree, and the Runtime committed it (commit: auto or runtime)"
        )
        return Finding("ok", f"{what}, commit", said)
    return Finding("ok", f"{what}, commit", "it committed in a linked worktree by itself")


def _inspect(name: str) -> str:
    return f"coordinate-agents setup-discover shows how {name} is started; try that command by hand"


def _shown(root: Path, revision: str, *options: str) -> str:
    done = subprocess.run(
        [git_program(), "-C", str(root), "show", *options, revision],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=30,
    )
    return done.stdout if done.returncode == 0 else ""
