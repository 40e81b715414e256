"""From an agent's settings, or a command, to a Launch: implements the port `Agents`.

Each field comes from the configuration or else from the adapter; the executable is resolved exactly and fails closed.
Nothing is started here; a prompt file is written when the delivery asks for one.
"""

import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from coordinate_agents.sessions.adapters import ADAPTERS
from coordinate_agents.sessions.environment import agent_environment
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.executable import problem_of, resolve
from coordinate_agents.sessions.model import (
    AgentSettings,
    CommandRequest,
    Launch,
    ResolvedAgent,
    ResolvedExecutable,
    SessionId,
    TurnRequest,
)
from coordinate_agents.sessions.prompt import check_templates, deliver

PROMPT_NAME: Final = "prompt.md"
SUBMIT_NAME: Final = "submit"
MAX_SUMMARY_BYTES: Final = 2048
# Output of a check that is kept; the rest is counted and marked as cut.
COMMAND_LOG_BYTES: Final = 8 << 20


class Agents:
    """`root` is the user's checkout: relative commands of agents are below it, names on PATH are never.

    `skip_below` are further folders whose programs no bare name may mean (worktrees).
    """

    def __init__(
        self,
        sessions_root: Path,
        *,
        root: str,
        skip_below: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._sessions_root = sessions_root
        self._root = root
        self._skip_below = tuple(skip_below)
        self._environment = dict(os.environ if environment is None else environment)

    def resolve(self, settings: AgentSettings) -> ResolvedAgent:
        """Raises: INVALID_ADAPTER_CONFIG, EXECUTABLE_NOT_FOUND, EXECUTABLE_NOT_RUNNABLE."""
        adapter = ADAPTERS.get(settings.adapter)
        if adapter is None:
            raise SessionError(
                "INVALID_ADAPTER_CONFIG",
                f"agent {settings.agent} names adapter {settings.adapter!r}, which does not exist.",
                next=f"use one of {', '.join(sorted(ADAPTERS))}",
            )
        if settings.mode == "interactive":
            raise SessionError(
                "UNSUPPORTED_CAPABILITY",
                f"agent {settings.agent}: mode interactive is not built yet.",
                next="mode: oneshot",
            )
        command, source = settings.command, settings.sources.get("command", "configuration")
        if command is None:
            command, source = adapter.command, f"adapter {adapter.name}"
        if command is None:
            raise SessionError(
                "INVALID_ADAPTER_CONFIG",
                f"agent {settings.agent} uses adapter {adapter.name}, which has no command of its own.",
                next="set `command` for the agent",
            )
        args = settings.args if settings.args is not None else adapter.arguments(settings.permissions)
        check_templates((*args, *(settings.resume_args or ())))
        return ResolvedAgent(
            agent=settings.agent,
            adapter=adapter.name,
            executable=self._executable(command, source),
            args=args,
            resume_args=settings.resume_args,
            delivery=settings.delivery or adapter.delivery,
            driver=settings.driver or adapter.driver,
            commit_by=adapter.commit,
            can_continue=settings.resume_args is not None,
            env=dict(settings.env),
        )

    def turn(self, request: TurnRequest) -> Launch:
        """Raises: SPAWN_FAILED when the prompt cannot be delivered whole; EXECUTABLE_* when the program changed."""
        agent = request.agent
        problem = problem_of(Path(agent.executable.path))
        if problem is not None:
            raise SessionError("EXECUTABLE_NOT_RUNNABLE", f"{agent.executable.path}: {problem}.")
        folder = self._sessions_root / request.session_id
        values = {
            "worktree": request.cwd,
            "root": request.root,
            "graph": request.graph,
            "subtask": request.subtask,
            "agent": agent.agent,
            "session": request.session_id,
            "externalSession": request.external_session or request.session_id,
        }
        args = agent.resume_args if request.is_continuation and agent.resume_args is not None else agent.args
        prompt_file = folder / PROMPT_NAME
        delivered = deliver(request.prompt, args, delivery=agent.delivery, values=values, prompt_file=prompt_file)
        identity = {
            **request.identity,
            "COORDINATE_AGENTS_SESSION": request.session_id,
            "COORDINATE_AGENTS_SUBMIT_FILE": str(folder / SUBMIT_NAME),
        }
        if prompt_file.exists():
            identity["COORDINATE_AGENTS_PROMPT_FILE"] = str(prompt_file)
        return Launch(
            session_id=request.session_id,
            kind="agent",
            argv=(agent.executable.name or agent.executable.path, *delivered.arguments),
            executable=agent.executable.path,
            cwd=request.cwd,
            env=self._environment_at(request.cwd, extra=agent.env, identity=identity),
            driver=agent.driver,
            stdin=delivered.stdin,
            timeout_s=request.timeout_s,
            idle_timeout_s=request.idle_timeout_s,
            on_idle=request.on_idle,
            marker=request.marker,
        )

    def submitted(self, session_id: SessionId) -> str:
        """The submit file's text; empty when there is none, or it is not a regular file."""
        path = self._sessions_root / session_id / SUBMIT_NAME
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return ""
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            return file.read(MAX_SUMMARY_BYTES).decode(errors="replace").strip()

    def command(self, request: CommandRequest) -> Launch:
        """Raises: EXECUTABLE_NOT_FOUND, EXECUTABLE_NOT_RUNNABLE."""
        env = self._environment_at(request.cwd, extra={}, identity=request.identity)
        found = resolve(
            request.run[0],
            relative_to=request.cwd,
            path=env.get("PATH", os.defpath),
            skip_below=(request.cwd, *self._skip_below),
            source=f"command {shlex.join(request.run)[:200]}",
        )
        return Launch(
            session_id=request.session_id,
            kind="command",
            argv=(found.name, *request.run[1:]),
            executable=found.path,
            cwd=request.cwd,
            env=env,
            driver="pipe",
            timeout_s=request.timeout_s,
            log_bytes=COMMAND_LOG_BYTES,
            marker=request.marker,
        )

    def _environment_at(self, cwd: str, *, extra: Mapping[str, str], identity: Mapping[str, str]) -> dict[str, str]:
        """With PWD at the child's own folder: a program that trusts PWD over getcwd would work in the caller's."""
        return {**agent_environment(self._environment, extra=extra, identity=identity), "PWD": cwd}

    def _executable(self, command: str, source: str) -> ResolvedExecutable:
        return resolve(
            command,
            relative_to=self._root,
            path=self._environment.get("PATH", os.defpath),
            skip_below=(self._root, *self._skip_below),
            source=source,
        )
