"""Our side of the conversation with one agent: opening its session, one turn at a time, permissions, the end.

A state machine without input and output. `receive` takes what the agent wrote; `take_out` gives what is to be written
to it; `take_events` what happened. Rules that hold whatever the agent does:

- At most one turn is active, and each has exactly one `TurnOver`; what comes for another one is dropped.
- Each permission request gets exactly one answer, under its own id, which keeps its type: 7 is not "7". One without a
  turn, without options, of another session or after a cancel is answered "cancelled" at once.
- A cancel names its turn. The agent is told once; when it goes on all the same, that is for others to bound.
- After `Broken` nothing is sent or heard any more, and the active turn is over.
"""

import json

from coordinate_agents.sessions.acp import events
from coordinate_agents.sessions.acp.framing import MAX_LINE_BYTES, Lines, Message
from coordinate_agents.sessions.acp.permissions import Option, Pending, decide
from coordinate_agents.sessions.acp.usage import Cost, said
from coordinate_agents.sessions.plain import plain

TYPE_CHECKING = False
if TYPE_CHECKING:  # costs a host more than it needs
    from collections.abc import Callable, Mapping

    Answered = Callable[[object, Message | None], None]

VERSION = 1
# Source: JSON-RPC 2.0, and the schema's ErrorCode.
_METHOD_NOT_FOUND = -32601
_AUTH_REQUIRED = -32000
# The status of its service, as gemini passes it on.
_UNAUTHORIZED = 401
# An agent that asks without end and does not read the answers would fill our memory with them.
_MAX_OUT_BYTES = 32 << 20
_MAX_PENDING = 64
_MAX_ID_CHARACTERS = 512
_SHOWN_CHARACTERS = 1000


class Peer:
    """`cwd` is where the agent works; `load` the agent's own session that is to be taken up, if any."""

    def __init__(self, *, cwd: str, load: str = "", policy: str = "ask", max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._cwd = cwd
        self._load = load
        self._policy = policy
        self._lines = Lines(max_line_bytes)
        self._out = bytearray()
        self._events: list[events.Event] = []
        self._next_id = 0
        self._waiting: dict[int, Answered] = {}
        self._peer = ""
        self._session = ""
        self._is_loading = False
        self._ways: list[str] = []  # to take it up, that were not tried yet
        self._failure: events.Broken | None = None
        self._turn = ""  # the active one
        self._prompt = ""  # of the active turn, until the session is open
        self._is_cancelling = False
        self._pending: dict[str, Pending] = {}
        self._next_key = 1
        self._cost = Cost()

    # --- what others see and take

    @property
    def active_turn(self) -> str:
        return self._turn

    @property
    def is_open(self) -> bool:
        return bool(self._session) and not self._is_loading and self._failure is None

    @property
    def is_broken(self) -> bool:
        return self._failure is not None

    def take_out(self) -> bytes:
        out, self._out = bytes(self._out), bytearray()
        return out

    def take_events(self) -> "list[events.Event]":
        found, self._events = self._events, []
        return found

    # --- calls

    def begin(self) -> None:
        """Say hello and open a session; `Opened` or `Broken` follows."""
        capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        params = {
            "protocolVersion": VERSION,
            "clientCapabilities": capabilities,
            "clientInfo": {"name": "coordinate-agents", "title": "coordinate-agents", "version": "1"},
        }
        self._request("initialize", params, self._initialized)

    def prompt(self, turn: str, text: str) -> str:
        """Start a turn; it waits for the session to open. Returns why not, empty when it runs: then nothing changed."""
        if turn == self._turn:
            return ""
        if self._turn:
            return f"turn {self._turn} runs"
        self._turn, self._prompt, self._is_cancelling = turn, text, False
        if self._failure is not None:
            self._over(error=self._failure.reason, code=self._failure.code)
        elif self.is_open:
            self._send_prompt()
        return ""

    def cancel(self, turn: str = "") -> str:
        """Ask the agent to stop this turn; without one the active turn. Returns why not, else empty.

        One that waits for the session to open is over at once.
        """
        if not self._turn:
            return "no turn runs"
        if turn not in ("", self._turn):
            return f"turn {turn} does not run; turn {self._turn} does"
        if self._is_cancelling:
            return "it was asked to stop already"
        if not self.is_open:
            self._over(stop_reason="cancelled", was_cancelled=True)
            return ""
        self._is_cancelling = True
        self._send({"method": "session/cancel", "params": {"sessionId": self._session}})
        self._settle_all()
        return ""

    def answer(self, key: str, option: str | None) -> str:
        """Answer a permission request once; None is "cancelled". Returns why not, empty when it was answered."""
        pending = self._pending.get(key)
        if pending is None:
            return f"permission {key} is not asked for (any more)"
        if option is not None and option not in [each.id for each in pending.options]:
            known = ", ".join(each.id for each in pending.options)
            return f"{option!r} is none of its options: {known}"
        self._settle(key, option)
        return ""

    def receive(self, data: bytes) -> None:
        """Take what the agent wrote; memory is bounded by the longest line."""
        for piece in self._lines.feed(data):
            if isinstance(piece, bytes):
                self._events.append(events.Stray(piece))
            elif self._failure is None:
                self._message(piece)
        if self._lines.failure:
            self.give_up(f"the agent wrote {self._lines.failure}")

    def end(self) -> None:
        """Nothing more will come: its stdout is closed."""
        rest = self._lines.end()
        if rest:
            self._events.append(events.Stray(rest))
        self.give_up("the agent closed its stdout")

    def give_up(self, reason: str, code: str = "") -> None:
        """End the conversation. The first reason stays."""
        if self._failure is not None:
            return
        self._settle_all()
        self._failure = events.Broken(reason, code)
        self._waiting.clear()
        self._events.append(self._failure)
        if self._turn:
            self._over(error=reason, code=code)

    # --- opening

    def _initialized(self, result: object, error: "Message | None") -> None:
        if error is not None:
            return self.give_up(f"it does not begin: {_error_text(error)}", _code(error))
        found = _dict(result)
        version = found.get("protocolVersion")
        if version != VERSION:
            return self.give_up(f"it speaks version {version!r:.40} of the protocol; version {VERSION} is known here")
        info, capabilities = _dict(found.get("agentInfo")), _dict(found.get("agentCapabilities"))
        self._peer = _text(f"{info.get('name') or ''} {info.get('version') or ''}".strip())
        if not self._load:
            return self._open_new("")
        self._ways = _ways_to_load(capabilities)
        if not self._ways:
            return self._open_new("the agent cannot take up an earlier conversation")
        return self._take_up()

    def _take_up(self) -> None:
        self._is_loading, self._session = True, self._load
        self._cost.take_up()
        params = {"sessionId": self._load, "cwd": self._cwd, "mcpServers": []}
        self._request(self._ways.pop(0), params, self._loaded)

    def _loaded(self, result: object, error: "Message | None") -> None:
        self._is_loading = False
        if error is None:
            return self._opened(resumed=True, reason="")
        self._session = ""
        if _code(error):
            return self.give_up(f"it opens no session: {_error_text(error)}", _code(error))
        if self._ways:
            return self._take_up()
        return self._open_new(f"the agent could not take it up: {_error_text(error)}")

    def _open_new(self, reason: str) -> None:
        def opened(result: object, error: "Message | None") -> None:
            session = _dict(result).get("sessionId")
            if error is not None:
                self.give_up(f"it opens no session: {_error_text(error)}", _code(error))
            elif not _is_id(session):
                self.give_up("it opens no session: its answer names none")
            else:
                self._session, self._cost = str(session), Cost()
                self._opened(resumed=False, reason=reason)

        self._request("session/new", {"cwd": self._cwd, "mcpServers": []}, opened)

    def _opened(self, *, resumed: bool, reason: str) -> None:
        self._events.append(events.Opened(self._session, resumed=resumed, reason=reason, peer=self._peer))
        if self._turn:
            self._send_prompt()

    # --- turns

    def _send_prompt(self) -> None:
        turn, text, self._prompt = self._turn, self._prompt, ""

        def answered(result: object, error: "Message | None") -> None:
            if turn != self._turn:
                return
            if error is not None and not self._is_cancelling:
                self._over(error=_error_text(error), code=_code(error))
            else:
                reason = _dict(result).get("stopReason")
                stop_reason = _text(reason) if isinstance(reason, str) else ""
                self._over(stop_reason=stop_reason, was_cancelled=self._is_cancelling, usage=dict(said(_dict(result))))

        params = {"sessionId": self._session, "prompt": [{"type": "text", "text": text}]}
        self._request("session/prompt", params, answered)

    def _over(
        self,
        *,
        stop_reason: str = "",
        error: str = "",
        code: str = "",
        was_cancelled: bool | None = None,
        usage: "dict[str, float] | None" = None,
    ) -> None:
        """End the active turn: first what it asked for, then the turn itself."""
        self._settle_all()
        turn, self._turn, self._prompt = self._turn, "", ""
        cancelled = self._is_cancelling if was_cancelled is None else was_cancelled
        self._is_cancelling = False
        cost, used = self._cost.part(), usage or {}
        if cost is not None:
            used["cost_usd"] = cost
        self._events.append(
            events.TurnOver(turn, stop_reason=stop_reason, error=error, code=code, was_cancelled=cancelled, usage=used)
        )

    # --- what the agent sends

    def _message(self, message: Message) -> None:
        method = message.get("method")
        if isinstance(method, str):
            params = _dict(message.get("params"))
            if "id" in message:
                self._asked(method, message["id"], params)
            elif method == "session/update" and params.get("sessionId") == self._session:
                update = _dict(params.get("update"))
                self._cost.hear(update, is_past=self._is_loading)
                if not self._is_loading:  # what comes while a session is loaded is its history
                    self._events.append(events.Updated(update))
        elif type(message.get("id")) is int:
            answered = self._waiting.pop(message["id"], None)  # type: ignore[call-overload]
            if answered is not None:
                error = message.get("error")
                answered(message.get("result"), None if error is None else _dict(error))
        elif "jsonrpc" not in message:
            line = _json(message)
            self._events.append(events.Stray(line.encode("utf-8", "replace") + b"\n"))

    def _asked(self, method: str, id: object, params: Message) -> None:
        if method != "session/request_permission":
            error = {"code": _METHOD_NOT_FOUND, "message": f"{method[:200]} is not offered here"}
            return self._send({"id": id, "error": error})
        options = _options(params.get("options"))
        tool = _dict(params.get("toolCall"))
        may_ask = self.is_open and self._turn and not self._is_cancelling and not self._prompt
        if not may_ask or not options or params.get("sessionId") != self._session or len(self._pending) >= _MAX_PENDING:
            return self._reply(id, None)
        kind, summary = _text(tool.get("kind")), _summary(tool)
        chosen = decide(self._policy, kind, options)
        if chosen is not None:
            self._reply(id, chosen.id)
            self._events.append(events.Decided(summary, chosen))
            return None
        if self._policy == "deny":
            return self._reply(id, None)
        key = f"p{self._next_key}"
        self._next_key += 1
        self._pending[key] = Pending(id, options)
        self._events.append(events.Asked(key, summary, kind, options))
        return None

    def _settle_all(self) -> None:
        for key in list(self._pending):
            self._settle(key, None)

    def _settle(self, key: str, option: str | None) -> None:
        self._reply(self._pending.pop(key).id, option)
        self._events.append(events.Settled(key, option or ""))

    def _reply(self, id: object, option: str | None) -> None:
        outcome = {"outcome": "cancelled"} if option is None else {"outcome": "selected", "optionId": option}
        self._send({"id": id, "result": {"outcome": outcome}})

    # --- the wire

    def _request(self, method: str, params: "Mapping[str, object]", answered: "Answered") -> None:
        id, self._next_id = self._next_id, self._next_id + 1
        self._waiting[id] = answered
        self._send({"id": id, "method": method, "params": params})

    def _send(self, message: "Mapping[str, object]") -> None:
        if self._failure is not None:
            return
        # ASCII: no character of a text can end the line.
        self._out += json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode("ascii") + b"\n"
        if len(self._out) > _MAX_OUT_BYTES:
            self.give_up("the agent does not read what is written to it")


def _ways_to_load(capabilities: Message) -> list[str]:
    """The methods that take up a session, best first: the one that does not repeat its history."""
    resumes = isinstance(_dict(capabilities.get("sessionCapabilities")).get("resume"), dict)
    loads = capabilities.get("loadSession") is True
    return [*(["session/resume"] if resumes else []), *(["session/load"] if loads else [])]


def _options(value: object) -> list[Option]:
    """The options that can be chosen: with an id, and each id once."""
    found: dict[str, Option] = {}
    for each in value if isinstance(value, list) else []:
        option = _dict(each)
        id = option.get("optionId")
        if _is_id(id):
            found.setdefault(str(id), Option(str(id), _text(option.get("name")), _text(option.get("kind"))))
    return list(found.values())


def _summary(tool: Message) -> str:
    """What is asked for: the call's title, and its command where the title does not show it."""
    title = _text(tool.get("title")) or _text(tool.get("toolCallId")) or "a tool call"
    command = _dict(tool.get("rawInput")).get("command")
    words = " ".join(map(str, command)) if isinstance(command, list) else command
    shown = _text(words) if isinstance(words, str) else ""
    return title if not shown or shown in title else f"{title}: {shown}"


def _error_text(error: Message) -> str:
    """Its words, its details, and a code that is a status of HTTP: it may say more than the words."""
    data, code = error.get("data"), error.get("code")
    details = data if isinstance(data, str) else _json(data) if data else ""
    if not details and isinstance(code, int) and 400 <= code < 600:
        details = str(code)
    return _text(f"{error.get('message') or 'an error without words'}{f' ({details})' if details else ''}")


def _json(value: object) -> str:
    """As JSON again; a value that is nested too deeply for that says nothing."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "…"


def _code(error: Message) -> str:
    return "AUTH_REQUIRED" if error.get("code") in (_AUTH_REQUIRED, _UNAUTHORIZED) else ""


def _is_id(value: object) -> bool:
    """Whether it can name something to a person, too."""
    return isinstance(value, str) and 0 < len(value) <= _MAX_ID_CHARACTERS and value.isprintable()


def _dict(value: object) -> Message:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    """Foreign text as a value: plain, bounded, valid Unicode. Empty for what is no text."""
    if not isinstance(value, str):
        return ""
    return plain(value[: 4 * _SHOWN_CHARACTERS].encode("utf-8", "replace").decode())[:_SHOWN_CHARACTERS]
