"""From an agent's settings, or a command, to a Launch: implements the port `Agents`.

Each field comes from the configuration or else from the adapter; the executable is resolved exactly and fails closed.
Nothing is started here; a prompt file is written when the delivery asks for one.
"""

import hmac
import os
import shlex
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from coordinate_agents.sessions import custodian, records, spoken
from coordinate_agents.sessions import folder as folders
from coordinate_agents.sessions.adapters import ADAPTERS
from coordinate_agents.sessions.adapters.base import Interactive
from coordinate_agents.sessions.agent import (
    AgentSettings,
    CommandRequest,
    ResolvedAgent,
    ResolvedExecutable,
    TurnOutput,
    TurnReading,
    TurnRequest,
)
from coordinate_agents.sessions.around import is_inside, surroundings
from coordinate_agents.sessions.environment import agent_environment
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.executable import problem_of, resolve
from coordinate_agents.sessions.model import InputRules, Launch, Mode, SessionId, SessionRecord, Usage
from coordinate_agents.sessions.plain import plain
from coordinate_agents.sessions.prompt import check_templates, deliver, write_prompt_file
from coordinate_agents.sessions.questions import (
    external_session,
    find_closing_limit,
    find_limit,
    is_idle,
    question_text,
)
from coordinate_agents.sessions.settings import adapter_of, arguments_of, check_delivery, labels_of, settings_digest
from coordinate_agents.sessions.turn_files import PROMPT_NAME, SUBMIT_NAME, TurnFiles
from coordinate_agents.sessions.usage import find_usage

# Output of a check that is kept; the rest is counted and marked as cut.
COMMAND_LOG_BYTES: Final = 8 << 20
# Programs draw a screen anew in less.
SCREEN_CHARACTERS: Final = 64 << 10
# A one-shot program that reads its terminal and was silent for so long asks something, whatever it printed.
SILENT_S: Final = 10.0
_CONVERSATIONS: Final = uuid.UUID("6f7d7a3e-0d0c-5b8e-9a55-52f0f7c1d0a1")


class Agents(TurnFiles):
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
        super().__init__(sessions_root)
        self._root = root
        self._skip_below = tuple(skip_below)
        self._environment = dict(os.environ if environment is None else environment)

    def resolve(self, settings: AgentSettings) -> ResolvedAgent:
        """Raises: INVALID_ADAPTER_CONFIG, EXECUTABLE_NOT_FOUND, EXECUTABLE_NOT_RUNNABLE."""
        adapter = adapter_of(settings)
        driver = spoken.driver_of(settings, adapter)
        if driver == "acp":
            command, source = spoken.command_of(settings, adapter)
        elif settings.command is not None:
            command, source = settings.command, settings.sources.get("command", "configuration")
        else:
            command, source = adapter.command, f"adapter {adapter.name}"
        if command is None:
            raise SessionError(
                "INVALID_ADAPTER_CONFIG",
                f"agent {settings.agent} uses adapter {adapter.name}, which has no command of its own.",
                next="set `command` for the agent",
            )
        if driver == "acp":
            return spoken.resolved(settings, adapter, self._executable(command, source))
        if settings.mode == "interactive" and adapter.interactive is None and settings.args is None:
            raise SessionError(
                "UNSUPPORTED_CAPABILITY",
                f"agent {settings.agent}: adapter {adapter.name} does not know how its program is typed into.",
                kept="nothing was started",
                next="use mode oneshot, or write the agent's args",
            )
        args, resume = arguments_of(settings, adapter)
        check_templates((*args, *(resume or ())))
        mode: Mode = "interactive" if settings.mode == "interactive" else "oneshot"
        delivery = settings.delivery or ("paste" if mode == "interactive" else adapter.delivery)
        check_delivery(settings.agent, mode, delivery, driver)
        return ResolvedAgent(
            agent=settings.agent,
            adapter=adapter.name,
            executable=self._executable(command, source),
            args=args,
            resume_args=resume,
            delivery=delivery,
            driver=driver,
            commit_by=adapter.commit,
            can_continue=resume is not None,
            env={**adapter.env, **settings.env},
            mode=mode,
            needs_session=settings.resume_args is None,
        )

    def require_supported(self, settings: AgentSettings) -> None:
        """Raise UNSUPPORTED_CAPABILITY or INVALID_ADAPTER_CONFIG for a driver that this agent cannot have."""
        spoken.driver_of(settings, adapter_of(settings))

    def is_same(self, agent: ResolvedAgent, record: SessionRecord) -> bool:
        """Whether the Session's process was started with the agent as it is configured now."""
        now = settings_digest(agent)
        return record.labels.get("settings", now) == now

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
            "externalSession": request.external_session or _new_session(agent, request),
        }
        args = agent.resume_args if request.is_continuation and agent.resume_args is not None else agent.args
        prompt_file = folder / PROMPT_NAME
        is_spoken = agent.driver == "acp"
        delivery = "stdin" if is_spoken else agent.delivery
        delivered = deliver(request.prompt, args, delivery=delivery, values=values, prompt_file=prompt_file)
        if agent.delivery == "paste" or is_spoken:
            # A driver that comes back types or sends it; and the agent can read it again.
            write_prompt_file(prompt_file, request.prompt)
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
            stdin=None if is_spoken else delivered.stdin,
            timeout_s=request.timeout_s,
            idle_timeout_s=request.idle_timeout_s,
            on_idle=request.on_idle,
            marker=request.marker,
            labels=labels_of(agent, request),
            input=_input_rules(agent, has_stdin=delivered.stdin is not None, has_turn=bool(request.prompt)),
            acp=spoken.rules_of(request) if is_spoken else None,
        )

    def reading(
        self,
        agent: ResolvedAgent,
        session_id: SessionId,
        *,
        marker: str,
        tail: str,
        has_failed: bool,
        now: float,
        known: str | None = None,
        turn: str = "",
        output: TurnOutput | None = None,
    ) -> TurnReading:
        """What the output of a turn that ended says; `tail` is its end. Reads the output file.

        `known` is the conversation that the turn took up, if it did; `turn` its name in the Session, and `output` what
        a program that stays drew. A turn that did not fail was refused only where the program's own last words say so,
        on its screen if it has one, and nothing was submitted.
        """
        adapter = ADAPTERS[agent.adapter]
        if agent.driver == "acp":
            path = self._sessions_root / session_id
            found = spoken.reading_of(path, adapter, turn, tail, has_failed=has_failed, now=now)
            # Who submitted got through; a code that was found in its last words is not believed then.
            has_got_through = found.code is not None and not has_failed and self.has_submitted(session_id)
            return replace(found, code=None, line="", retry_at=None) if has_got_through else found
        external = (known or conversation_id(marker)) if adapter.chooses_session else None
        if external is None and adapter.session_pattern:
            external = external_session(self._beginning(session_id) + tail, adapter.session_pattern)
        if has_failed:
            limit = find_limit(tail, adapter.limits, now=now)
        elif self.has_submitted(session_id):
            limit = None
        else:
            words = self._last_words(agent, session_id, tail, output)
            limit = find_closing_limit(words, adapter.limits, now=now, has_composer=agent.mode == "interactive")
        usage = self._usage(agent, session_id, output) if adapter.usage else None
        if limit is None:
            return TurnReading(external, usage=usage)
        return TurnReading(external, limit.code, limit.line, limit.retry_at, usage)

    def _usage(self, agent: ResolvedAgent, session_id: SessionId, output: TurnOutput | None) -> Usage | None:
        """What the program printed of it: in all of its output, or in that of its last turn."""
        rules = ADAPTERS[agent.adapter].usage
        if agent.mode == "oneshot":
            return find_usage(self._output(session_id), rules)
        if output is None or not output.is_whole or not _interactive(agent).prints_usage:
            return None
        return find_usage(plain(output.printed), rules)

    def says_idle(self, agent: ResolvedAgent) -> bool:
        """Whether patterns tell when an interactive agent's turn is over."""
        return bool(_interactive(agent).idle)

    def says_ready(self, agent: ResolvedAgent) -> bool:
        """Whether patterns tell when an interactive agent takes a prompt."""
        return bool(_interactive(agent).input.ready)

    def shown(self, output: str, *, columns: int, rows: int) -> str:
        """The last lines of the screen that the end of the raw output draws."""
        return question_text(_screen(output, columns, rows))

    def is_idle(self, agent: ResolvedAgent, output: str, *, columns: int, rows: int) -> bool:
        """Whether an interactive agent's screen looks as if its turn were over. `output`: the end of the raw form."""
        rules = _interactive(agent)
        return bool(rules.idle) and is_idle(_screen(output, columns, rows), rules)

    def idle_s(self, agent: ResolvedAgent) -> float:
        """How long nothing must be printed before `is_idle` is asked."""
        return _interactive(agent).idle_s

    def session_around(self) -> SessionId | None:
        """The living Session whose host is an ancestor of this process and whose mark it carries; else None."""
        around = surroundings()
        if around is None or "/" in around.session or around.session.startswith("."):
            return None
        record = self._record(SessionId(around.session))
        if record is None or record.end is not None or record.kind != "agent" or record.host is None:
            return None
        is_its_own = hmac.compare_digest(record.marker.encode(), around.mark.encode("utf-8", "surrogateescape"))
        return record.id if is_its_own and is_inside(around, record.host) else None

    def _record(self, session_id: SessionId) -> SessionRecord | None:
        try:
            folder = folders.open_folder(str(self._sessions_root / session_id))
        except OSError:
            return None
        try:
            return records.read(folder)
        finally:
            os.close(folder)

    def _last_words(self, agent: ResolvedAgent, session_id: SessionId, tail: str, output: TurnOutput | None) -> str:
        """The screen's lines of a program that stays, since it draws where others print; else the tail.

        Of the screen only what came in this turn: an earlier one's refusal may still stand there. Programs that draw
        only what changes print no whole line, so what did not stand there when the turn began counts, too.
        """
        if agent.mode != "interactive" or output is None:
            return tail
        record = custodian.see(self._sessions_root / session_id).record
        columns, rows = (record.columns, record.rows) if record is not None else (120, 40)
        printed = "".join(tail.split())
        stands = _screen((output.before + output.printed)[-SCREEN_CHARACTERS:], columns, rows).splitlines()
        stood = _screen(output.before, columns, rows).splitlines()
        fresh = Counter(stands) - Counter(stood) if output.is_whole else Counter[str]()
        return "\n".join(line for line in stands if fresh[line] > 0 or "".join(line.split()) in printed)

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


def conversation_id(marker: str) -> str:
    """The id that we give to the agent's conversation: of this Session alone, since its marker is."""
    return str(uuid.uuid5(_CONVERSATIONS, marker))


def _new_session(agent: ResolvedAgent, request: TurnRequest) -> str:
    return conversation_id(request.marker) if ADAPTERS[agent.adapter].chooses_session else request.session_id


def _input_rules(agent: ResolvedAgent, *, has_stdin: bool, has_turn: bool) -> InputRules | None:
    """How the host watches for questions. None where the child's stdin is a pipe that ends with the prompt.

    Without a turn a program that reads its terminal waits for a person's next line: only what it prints can ask.
    """
    if has_stdin or agent.driver != "pty":
        return None
    if agent.mode == "interactive":
        rules = _interactive(agent).input
        return rules if has_turn else replace(rules, silent_s=0.0)
    return InputRules(questions=ADAPTERS[agent.adapter].questions, silent_s=SILENT_S)


def _interactive(agent: ResolvedAgent) -> Interactive:
    return ADAPTERS[agent.adapter].interactive or Interactive()


def _screen(output: str, columns: int, rows: int) -> str:
    from coordinate_agents.sessions.screen import render  # slow to load, and rarely needed

    screen = render(output.encode("utf-8", "replace"), columns, rows)
    return "\n".join(line.rstrip() for line in screen.lines).rstrip()
