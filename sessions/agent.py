"""Values of an agent: how it is configured and resolved, what one turn of it asks for, and what its output said.

Pure; a Session's own values are in `model`.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from coordinate_agents.sessions.model import Delivery, Driver, Mode, SessionId, Usage
from coordinate_agents.worktrees.values import value_class


@value_class
class ResolvedExecutable:
    """`path` is what is executed (absolute, links followed) and `name` the absolute path under which it was found;
    `asked` is what was configured, `source` which setting said so.
    """

    asked: str
    path: str
    source: str
    name: str = ""


@value_class
class AgentSettings:
    """How one agent identity is started, before anything is resolved. None: the adapter's default.

    `sources` names, per field, which document set it ("project", "user", "adapter").
    """

    agent: str
    adapter: str
    command: str | None = None
    args: tuple[str, ...] | None = None
    resume_args: tuple[str, ...] | None = None
    mode: str | None = None
    delivery: Delivery | None = None
    driver: Driver | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    permissions: str | None = None
    sources: Mapping[str, str] = field(default_factory=dict)


@value_class
class ResolvedAgent:
    """An agent ready to be started. `commit_by` is the adapter's default for who commits.

    `can_continue`: a turn that ended can be followed by another one that knows the first. `needs_session`: only when
    the id of the agent's own conversation is known (`TurnReading.external_session`). `permissions` answer the requests
    of one whose driver is acp.
    """

    agent: str
    adapter: str
    executable: ResolvedExecutable
    args: tuple[str, ...]
    resume_args: tuple[str, ...] | None
    delivery: Delivery
    driver: Driver
    commit_by: Literal["agent", "runtime", "auto"]
    can_continue: bool
    env: Mapping[str, str] = field(default_factory=dict)
    mode: Mode = "oneshot"
    needs_session: bool = False
    permissions: str = ""


@value_class
class TurnRequest:
    """One turn to start: what the templates name, and the limits. `is_continuation`: use the resume arguments.

    With driver acp the process is started and the turn is not: `external_session` is taken up where that can be,
    `input_timeout_s` bounds an answer to a permission request, `idle_life_s` the time between two turns.

    `identity` are the COORDINATE_AGENTS_* variables; nothing can override them.
    """

    session_id: SessionId
    agent: ResolvedAgent
    prompt: str
    cwd: str
    root: str
    graph: str
    subtask: str
    identity: Mapping[str, str]
    marker: str
    is_continuation: bool = False
    external_session: str | None = None
    timeout_s: float | None = None
    idle_timeout_s: float | None = None
    on_idle: Literal["mark", "stop"] = "mark"
    input_timeout_s: float | None = None
    idle_life_s: float | None = None


@value_class
class TurnOutput:
    """What a program that stays drew, raw and redacted: the end of what was drawn `before` the turn, and what was
    `printed` in it. Not `is_whole`: only the end of it, and nothing is known of before.
    """

    before: str
    printed: str
    is_whole: bool


@value_class
class TurnReading:
    """What the output of a turn that ended says, by the adapter's patterns.

    `external_session`: the agent's own conversation, to be taken up by a next turn. `code`: why a turn that failed
    did: RATE_LIMITED, QUOTA_EXHAUSTED, AUTH_REQUIRED, or None; `line` is what was printed, and `retry_at` the time (in
    seconds since the epoch) at which the service takes more, where it said so. Not `is_certain`: the turn ended well
    and said hardly more than that; it is believed only where the turn left nothing. `usage`: of this turn.
    """

    external_session: str | None = None
    code: Literal["RATE_LIMITED", "QUOTA_EXHAUSTED", "AUTH_REQUIRED"] | None = None
    line: str = ""
    retry_at: float | None = None
    usage: Usage | None = None
    is_certain: bool = True


@value_class
class CommandRequest:
    """One of the Runtime's own commands: a check, setup, teardown. `run[0]` is a name on PATH or relative to cwd."""

    session_id: SessionId
    run: tuple[str, ...]
    cwd: str
    identity: Mapping[str, str]
    marker: str
    timeout_s: float
