"""Values of a Session: what to launch, who it is, what became of it. Pure; knows nothing of graphs.

A Session is one durable folder `<sessions root>/<session id>/` and, while alive, one host process that owns one child
process tree. The same custody serves agents (kind "agent") and the Runtime's own commands, that is checks, setup and
teardown (kind "command").
"""

import hashlib
from collections.abc import Mapping
from dataclasses import field
from typing import Literal, NewType, TypedDict

from coordinate_agents.worktrees.values import value_class

SessionId = NewType("SessionId", str)

Driver = Literal["pty", "pipe", "acp"]
Kind = Literal["agent", "command"]
# paste: typed into the terminal of a program that stays.
Delivery = Literal["argument", "stdin", "file", "paste"]
Mode = Literal["oneshot", "interactive"]

# starting: the host is up, the child is not yet; running: the child lives; closing: a close was asked for;
# exited: the child ended and was reported; failed: it never started or its host could not go on.
# awaiting-input: the child lives and asks a question that nobody has answered yet (`SessionRecord.question`).
# idle: the child lives between two turns.
SessionState = Literal["starting", "running", "awaiting-input", "idle", "closing", "exited", "failed"]

# trust: may I work in this folder; login: who are you; permission: may I do this; yes-no: a plain question.
QuestionKind = Literal["trust", "login", "permission", "yes-no", "other"]

# true: the program read it (with `submit`: and reacted); false: nothing of it reached the program, or it was cut;
# unknown: the terminal took it, and nothing proves that the program has it.
Delivered = Literal["true", "false", "unknown"]

# plain: control sequences removed; raw: kept.
OutputForm = Literal["plain", "raw"]


class ReadLimits(TypedDict):
    """What one read gives: from the cursor on, or without one the last `max_bytes`."""

    cursor: int | None
    max_bytes: int
    max_lines: int | None
    form: OutputForm


# Why the child ended. exit: by itself; timeout/idle/input: a deadline of the host; close: somebody asked; unused: no
# turn began for as long as a Session may be idle; protocol: the conversation with it came to no good.
EndCause = Literal["exit", "timeout", "idle", "close", "unused", "protocol", "spawn-failed", "host-lost"]

# What a look from outside says. live: the host answers or holds its lock and answers; unreachable: lock held, no
# answer (never treated as dead); lost: no host, no final record, tree searched; ended: final record is there;
# foreign: a record of another machine, boot namespace or user; absent: no such folder, or no host was ever in it.
Liveness = Literal["live", "unreachable", "lost", "ended", "foreign", "absent"]


@value_class
class ProcessIdentity:
    """Who a process is. A pid alone says nothing: it may have been given to somebody else."""

    machine_id: str
    boot_id: str
    pid_namespace: int
    pid: int
    start_ticks: int


@value_class
class Surroundings:
    """What the processes around this one say of their Session: its id, the mark of its environment, and who is above.

    `ancestors` are (pid, start ticks). A claim, until it was compared with the Session's record.
    """

    session: str
    mark: str
    ancestors: frozenset[tuple[int, int]]


@value_class
class Option:
    """One answer that an agent offers. `id` means something to it alone; `kind`: allow_once, reject_once and others."""

    id: str
    name: str
    kind: str


@value_class
class Question:
    """What a child asks. `text` is the end of its output, redacted and plain; `since` is a wall clock time.

    `allow` and `deny` are the keys that answer this dialog, by name; empty: not known. With `options` it is answered by
    one of them, and `request` is its host's name for it.
    """

    kind: QuestionKind
    text: str
    since: float
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    request: str = ""
    options: tuple[Option, ...] = ()

    @property
    def id(self) -> str:
        """Names this very question: another one, or the same asked again later, has another id."""
        words = f"{self.kind}\0{self.since!r}\0{self.text}{self.request}"
        digest = hashlib.sha256(words.encode("utf-8", "replace"))
        return f"q-{digest.hexdigest()[:12]}"


@value_class
class QuestionRule:
    """A question is asked when the pattern is found in the last plain 4 KiB of output and nothing more is printed.

    `allow` and `deny` are the named keys that answer yes and no in just the dialog that the pattern describes, its
    options and their numbers included. Empty: not known, and then a person looks and chooses the keys.
    """

    kind: QuestionKind
    pattern: str
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@value_class
class InputRules:
    """How text is typed into a program, and what shows that it waits. Data of an adapter; the host obeys it.

    `paste`: bracketed always, plain never, auto when the program asked for it. `submit` is typed `pause_s` after the
    text, alone. `ready` are patterns of the last plain 4 KiB, one of which must be found before the first text is
    typed (empty: no wait); after `ready_bound_s` without one nothing is typed. `acknowledged` are patterns of what is
    printed after a submit; without them any output counts. `line_wait_s` is how long text with a line of more than
    4095 bytes waits for the terminal to leave line mode. A child that is blocked reading its terminal and silent for
    `silent_s` is asking something (0: that is not looked at).
    """

    paste: Literal["auto", "bracketed", "plain"] = "auto"
    submit: str = "\r"
    pause_s: float = 1.0
    ready: tuple[str, ...] = ()
    ready_bound_s: float = 60.0
    acknowledged: tuple[str, ...] = ()
    acknowledge_bound_s: float = 10.0
    line_wait_s: float = 10.0
    questions: tuple[QuestionRule, ...] = ()
    silent_s: float = 0.0


@value_class
class AcpRules:
    """How a host speaks with an agent over the Agent Client Protocol.

    `load` is the agent's own session that is to be taken up, empty for a new one; `policy` answers its permission
    requests: ask, edits, allow, deny. One that nobody answers within `permission_timeout_s` is answered "cancelled".
    After a turn the Session may be idle for `idle_life_s`; within `open_bound_s` the agent's session must be open.
    """

    load: str = ""
    policy: str = "ask"
    permission_timeout_s: float = 12 * 3600.0
    idle_life_s: float | None = None
    open_bound_s: float = 120.0


@value_class
class Conversation:
    """The agent's own session, behind a Session whose driver is acp.

    `reason`: why the wanted one was not taken up, when it was not. `error` and `code` (AUTH_REQUIRED or empty): why
    there is none, or no more.
    """

    external_session: str = ""
    resumed: bool = False
    reason: str = ""
    peer: str = ""
    is_ready: bool = False
    error: str = ""
    code: str = ""


@value_class
class Usage:
    """What an agent says that it used. None: it does not say. `cached_tokens` are a part of `input_tokens`.

    `total_tokens` is of an agent that gives only the sum. `is_of_conversation`: everything since its conversation
    began, earlier turns included.
    """

    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cost_usd: float | None = None
    is_of_conversation: bool = False


@value_class
class AgentTurn:
    """The present or last turn of a Session whose driver is acp, as its host saw it. An end proves nothing.

    `stop_reason` is the agent's word; `was_cancelled`: it was asked to stop before, whatever it says. `tail` is the end
    of what was printed in it, at most 8 KiB. `doing` is the title of the last tool that it called in it, `usage` what
    it told with its end.
    """

    id: str
    state: Literal["running", "cancelling", "ended", "failed"]
    stop_reason: str = ""
    error: str = ""
    code: str = ""
    was_cancelled: bool = False
    tail: str = ""
    duration_ms: int = 0
    doing: str = ""
    usage: Usage | None = None

    @property
    def is_over(self) -> bool:
        return self.state in ("ended", "failed")


@value_class
class Output:
    """A piece of a Session's output, redacted.

    `cursor` is the absolute offset, in raw bytes, of the first byte that the text stands for, and `next_cursor` that
    behind the last: the only value to read on from. `dropped_bytes` were asked for and are not kept any more.
    `truncated`: more was there than the bounds let through. `ended`: nothing will ever come behind `next_cursor`.
    """

    text: str
    cursor: int
    next_cursor: int
    dropped_bytes: int
    truncated: bool
    ended: bool


@value_class
class WriteResult:
    """What became of input. `reason` says why, when it is not simply true."""

    delivered: Delivered
    reason: str = ""


@value_class
class HeldPorts:
    """Ports that are the child's: while its host lives it holds a shared lock on those bytes of the file at `path`."""

    path: str
    first: int
    count: int


@value_class
class Launch:
    """All that a host needs to start one child. `env` is complete (nothing is inherited) and is never stored.

    `argv[0]` is an absolute path; `executable` is the file that is executed under that name, links followed (None:
    `argv[0]` itself): programs such as a virtual environment's python or rustup's cargo look at the name they are
    called by. `stdin` is written to a pipe that is the child's stdin and then closed,
    with both drivers (a terminal would cut long lines); None gives the terminal (pty) or an empty stdin (pipe).
    `marker` is a random text put into the environment as COORDINATE_AGENTS_SESSION_MARK so that the tree can be found
    again; empty: one is made. Times are seconds awake; None: no such limit. `ring_bytes` bounds output kept in memory,
    `log_bytes` the redacted output file.
    `secrets` are literal values to mask in everything that leaves the host. `input` says how text is typed later;
    with it, or with `is_input_open`, a pipe that is the child's stdin stays open for `write`. `acp` says how a child of
    that driver is spoken to; None: not at all.
    """

    session_id: SessionId
    kind: Kind
    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    driver: Driver = "pty"
    stdin: bytes | None = None
    timeout_s: float | None = None
    idle_timeout_s: float | None = None
    on_idle: Literal["mark", "stop"] = "mark"
    close_bound_s: float = 10.0
    ring_bytes: int = 1 << 20
    log_bytes: int = 8 << 20
    marker: str = ""
    secrets: tuple[str, ...] = ()
    executable: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    input: InputRules | None = None
    is_input_open: bool = False
    columns: int = 120
    rows: int = 40
    acp: AcpRules | None = None
    ports: HeldPorts | None = None


@value_class
class SessionEnd:
    """The final facts of one child. Exactly one of `exit_code` and `signal` is set unless it never started.

    `tail` is the last output, redacted, control sequences removed, at most 8 KiB. `survivors` are the processes of
    its tree that could not be ended: "pid name" each; empty in the ordinary case. `output_bytes` counts raw bytes.
    """

    cause: EndCause
    exit_code: int | None = None
    signal: int | None = None
    tail: str = ""
    log_path: str | None = None
    duration_ms: int = 0
    output_bytes: int = 0
    survivors: tuple[str, ...] = ()
    error: str | None = None


@value_class
class TurnLimits:
    """The deadlines of one more turn in a child that stays, as those of a `Launch`."""

    timeout_s: float | None = None
    idle_timeout_s: float | None = None
    on_idle: Literal["mark", "stop"] = "mark"


@value_class
class TurnFacts:
    """What a living child did in the turn that is over: the end of its output, and how long the turn took.

    `since` is the cursor at which its output began; None: not known.
    """

    tail: str = ""
    log_path: str | None = None
    duration_ms: int = 0
    since: int | None = None


@value_class
class SessionRecord:
    """What the folder says. `host` and `child` are None before they exist. `end` is set in terminal states.

    `turn` is the present or last one of an agent whose driver is acp, `turns` the last ones that are over, in order.
    `degraded`: no terminal could be made, so the driver is pipe though a pty was asked for. `cgroup` is the folder of
    the tree's own cgroup, empty when none could be made.
    """

    id: SessionId
    kind: Kind
    state: SessionState
    driver: Driver
    command: tuple[str, ...]
    cwd: str
    created_at: float
    last_activity_at: float
    host: ProcessIdentity | None = None
    child: ProcessIdentity | None = None
    socket: str | None = None
    end: SessionEnd | None = None
    stalled: bool = False
    degraded: bool = False
    marker: str = ""
    close_bound_s: float = 10.0
    labels: Mapping[str, str] = field(default_factory=dict)
    question: Question | None = None
    columns: int = 120
    rows: int = 40
    cgroup: str = ""
    conversation: Conversation | None = None
    turn: AgentTurn | None = None
    turns: tuple[AgentTurn, ...] = ()

    def turn_named(self, turn: str) -> AgentTurn | None:
        """The turn of this id; None when it was never begun, or too many came after it."""
        known = (*self.turns, *((self.turn,) if self.turn is not None else ()))
        return next((each for each in reversed(known) if each.id == turn), None)


@value_class
class SessionFacts:
    """One look: what the folder says and whether anything of it lives. `last_line` is the last line of output.

    `output_bytes` is how much was printed so far, raw. `attached`: somebody's terminal is joined to it, writing.
    `held`: its deadlines stand still until it is told otherwise. `quiet_s`: for how long it said nothing new; None
    where nobody looks for that.
    """

    liveness: Liveness
    record: SessionRecord | None = None
    last_line: str = ""
    survivors: tuple[str, ...] = ()
    output_bytes: int = 0
    attached: bool = False
    held: bool = False
    quiet_s: float | None = None
