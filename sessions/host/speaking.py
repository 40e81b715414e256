"""A host's conversation with a child that speaks the Agent Client Protocol: what is said, written, recorded and told.

The protocol itself is `sessions.acp`. Here its bytes are moved and its events become facts: the record first, then the
clients. The end of a turn is noted by the host alone, whoever drives may be gone; that it ended proves nothing.

A child that was started with this driver and without rules is not spoken to: what it prints passes as it is.
"""

import time

from coordinate_agents.sessions import folder as folders
from coordinate_agents.sessions.acp import events
from coordinate_agents.sessions.acp.peer import Peer
from coordinate_agents.sessions.acp.words import Words
from coordinate_agents.sessions.drivers.base import Child
from coordinate_agents.sessions.host.pipes import Pipes
from coordinate_agents.sessions.plain import plain

TYPE_CHECKING = False
if TYPE_CHECKING:  # costs a host more than it needs
    from coordinate_agents.sessions.host.custody import Custody
    from coordinate_agents.sessions.host.server import Message

MAX_PROMPT_BYTES = 8 << 20
_PROMPT_FILE = "prompt.md"
_MAX_TURN_CHARACTERS = 200
# A child that ends closes its pipes a moment before it can be waited for; one that lives on without them is no use.
_GONE_S = 0.5
# Who comes late still learns how an earlier turn ended, and never begins one twice.
_KEPT_TURNS = 64
_KEPT_TAIL = 500
_TURN = {"stop_reason": "", "error": "", "code": "", "was_cancelled": False, "tail": "", "duration_ms": 0, "doing": ""}
# What the agent does now is recorded this often at most, however many tools it calls.
_DOING_S = 2.0
_MAX_DOING_CHARACTERS = 200


class Speaker:
    """`rules` are the fields of `model.AcpRules`; None: the child is not spoken to."""

    def __init__(self, rules: "dict[str, object] | None", cwd: str, folder: int) -> None:
        self._rules = rules or {}
        self._folder = folder
        self.speaks = rules is not None
        self._peer = Peer(cwd=cwd, load=str(self._rules.get("load") or ""), policy=str(self._rules.get("policy")))
        self._words = Words()
        self._custody: Custody | None = None
        self._pipes: Pipes | None = None
        self._is_parting = self._has_ended = False
        self._asked: list[tuple[str, dict[str, object], float]] = []  # key, question, since when (monotonic)
        self._times = {"open": float("inf"), "gone": float("inf"), "cancel": float("inf"), "doing": float("inf")}
        self._doing = ""
        self._doing_at = float("-inf")
        self._own_turns = 0
        self._turns: list[dict[str, object]] = []  # those that are over

    def take(self, child: Child, custody: "Custody") -> None:
        """Own the child's stdin and stderr, and begin to speak."""
        self._custody = custody
        self._pipes = Pipes(child, custody.selector, self._follow, None if self.speaks else custody.show)
        if self.speaks:
            custody.record.changed(conversation=self._conversation())
            self._times["open"] = time.monotonic() + _number(self._rules, "open_bound_s", 120.0)
            self._peer.begin()
            self._flush()

    # --- what the child says

    def hear(self, data: bytes) -> bytes:
        """Take what it wrote. Returns what is no part of a conversation: everything, when it is not spoken to."""
        if not self.speaks:
            return data
        self._peer.receive(data)
        self._follow()
        return b""

    def closed(self) -> None:
        """Its stdout is closed."""
        if self.speaks and not self._peer.is_broken:
            self._times["gone"] = time.monotonic() + _GONE_S

    def ended(self, how: str) -> None:
        """The child is gone: an active turn ends with it."""
        assert self._pipes is not None
        self._pipes.drain()
        self._has_ended = True
        if self.speaks:
            self._peer.give_up(how)
            self._follow()

    def next_time(self) -> float:
        times = [*self._times.values()]
        if self._asked:
            times.append(self._asked[0][2] + _number(self._rules, "permission_timeout_s", 12 * 3600.0))
        return min(times)

    def on_time(self, now: float) -> None:
        if now < self.next_time():
            return
        if now >= self._times["open"]:
            self._times["open"] = float("inf")
            self._peer.give_up("the agent opened no session in time")
        if now >= self._times["gone"]:
            self._times["gone"] = float("inf")
            self._peer.end()
        if now >= self._times["cancel"]:
            self._times["cancel"] = float("inf")
            self._peer.give_up("the agent did not stop its turn when it was asked to")
        if now >= self._times["doing"]:
            self._tell_doing(now)
        if self._asked and now >= self._asked[0][2] + _number(self._rules, "permission_timeout_s", 12 * 3600.0):
            self._peer.answer(self._asked[0][0], None)
        self._follow()

    # --- what clients ask

    def handle(self, message: "Message") -> "Message":
        """The answer; {} is no operation of this class."""
        if not self.speaks:
            return {}
        match message.get("op"):
            case "prompt":
                return self._prompt(message)
            case "cancel":
                return self._cancel(message)
            case "answer":
                return self._answer(message)
            case "interrupt":
                reason = self._peer.cancel()
                self._follow()
                return {"ok": not reason, "error": reason}
            case "write":
                return self._write(message)
            case _:
                return {}

    def change(self, message: "Message") -> None:
        """Let a permission request be answered by a person for so long from when it was asked."""
        timeout_s = message.get("permission_timeout_s")
        if isinstance(timeout_s, int | float):
            self._rules = {**self._rules, "permission_timeout_s": float(timeout_s)}

    def part(self) -> None:
        """The polite end: the turn is cancelled, and the child's stdin closed. It may live on."""
        self._is_parting = True
        self._peer.cancel()
        self._follow()
        if self._pipes is not None:
            self._pipes.end()

    # --- operations

    def _prompt(self, message: "Message") -> "Message":
        turn, text = message.get("turn"), message.get("text")
        if not isinstance(turn, str) or not 0 < len(turn) <= _MAX_TURN_CHARACTERS or not turn.isprintable():
            return {"ok": False, "error": "a turn needs an id"}
        if not isinstance(text, str):
            data = folders.read_whole(self._folder, _PROMPT_FILE, MAX_PROMPT_BYTES)
            if data is None:
                return {"ok": False, "error": f"there is no {_PROMPT_FILE}"}
            text = data.decode("utf-8", "replace")
        limits = message.get("limits")
        reason = self._begin(turn, text, limits if isinstance(limits, dict) else {})
        return {"ok": not reason, "error": reason}

    def _begin(self, turn: str, text: str, limits: "dict[str, object]") -> str:
        """Start the turn; why not, or empty. RUNNING is recorded before the agent hears of it."""
        assert self._custody is not None
        if self._peer.is_broken or self._is_parting:
            return "its conversation is over"
        if turn in [each["id"] for each in self._turns]:
            return ""
        if self._peer.active_turn:
            return self._peer.prompt(turn, text)
        state = {"id": turn, "state": "running", **_TURN}
        if self._custody.set_turn({**limits, "is_over": False}, turn=state) is None:
            return "the child has ended, or is being ended"
        self._custody.tell({"event": "turn", "turn": state})
        self._custody.show(self._words.line(f"[turn {turn}]"))
        self._peer.prompt(turn, text)
        self._follow()
        return ""

    def _cancel(self, message: "Message") -> "Message":
        turn, within_s = message.get("turn"), message.get("within_s")
        reason = self._peer.cancel(turn if isinstance(turn, str) else "")
        if not reason and self._peer.active_turn:
            assert self._custody is not None
            state = {**_fields(self._custody.record.get("turn")), "state": "cancelling"}
            self._custody.record.changed(turn=state)
            self._custody.tell({"event": "turn", "turn": state})
            if isinstance(within_s, int | float):
                self._times["cancel"] = time.monotonic() + float(within_s)
        self._follow()
        return {"ok": True, "sent": not reason, "reason": reason}

    def _answer(self, message: "Message") -> "Message":
        option = message.get("option")
        reason = self._peer.answer(str(message.get("request")), option if isinstance(option, str) else None)
        self._follow()
        return {"ok": not reason, "error": reason}

    def _write(self, message: "Message") -> "Message":
        """Text that is sent off is a turn of its own."""
        import binascii

        if not message.get("submit"):
            reason = "an agent of this driver takes whole prompts only: submit the text"
            return {"ok": True, "delivered": "false", "reason": reason}
        try:
            text = binascii.a2b_base64(str(message.get("data", ""))).decode("utf-8", "replace")
        except ValueError:
            return {"ok": False, "error": "data is not base64"}
        if self._peer.active_turn:
            return {"ok": True, "delivered": "false", "reason": f"turn {self._peer.active_turn} runs"}
        self._own_turns += 1
        reason = self._begin(f"w{self._own_turns}", text, {})
        if reason:
            return {"ok": True, "delivered": "false", "reason": reason}
        is_sent = self._peer.is_open and self._pipes is not None and self._pipes.is_written
        waits = "it is sent when the agent's session is open" if not self._peer.is_open else "it does not read just now"
        return {"ok": True, "delivered": "true" if is_sent else "unknown", "reason": "" if is_sent else waits}

    # --- events

    def _follow(self) -> None:
        """Write what there is to write, and make facts of what happened, in order."""
        assert self._custody is not None
        self._flush()
        for event in self._peer.take_events():
            shown = self._event(event)
            if shown:
                self._custody.show(shown, is_progress=isinstance(event, events.Updated | events.Stray))
        self._flush()

    def _flush(self) -> None:
        if self._pipes is not None and not self._pipes.write(self._peer.take_out()):
            self._peer.give_up("the agent closed its stdin")

    def _event(self, event: events.Event) -> bytes:
        """Record it, tell it, and return what people are shown of it."""
        assert self._custody is not None
        match event:
            case events.Stray():
                return self._words.stray(event.data)
            case events.Updated():
                self._note_doing(event.update)
                return self._words.of(event.update)
            case events.Opened():
                self._times["open"] = float("inf")
                found = self._conversation(event)
                self._custody.record.changed(conversation=found)
                self._custody.tell({"event": "conversation", "conversation": found})
                return self._words.line(f"[not resumed] {event.reason}") if event.reason else b""
            case events.Asked():
                return self._ask(event)
            case events.Settled():
                return self._settled(event)
            case events.Decided():
                return self._words.line(f"[permission] {event.summary}: {event.option.name} (by the agent's settings)")
            case events.TurnOver():
                return self._over(event)
            case _:
                return self._broken(event)

    def _note_doing(self, update: "dict[str, object]") -> None:
        title = update.get("title")
        if update.get("sessionUpdate") == "tool_call" and isinstance(title, str):
            self._doing = plain(title).split("\n", 1)[0][:_MAX_DOING_CHARACTERS]
            self._times["doing"] = self._doing_at + _DOING_S

    def _tell_doing(self, now: float) -> None:
        assert self._custody is not None
        self._times["doing"], self._doing_at = float("inf"), now
        if self._peer.active_turn:
            state = {**_fields(self._custody.record.get("turn")), "doing": self._custody.redact(self._doing)}
            self._custody.record.changed(turn=state)
            self._custody.tell({"event": "turn", "turn": state})

    def _ask(self, event: events.Asked) -> bytes:
        assert self._custody is not None
        options = [[each.id, each.name, each.kind] for each in event.options]
        lines = [event.summary, *(f"  {each.id}: {each.name}" for each in event.options)]
        text = self._custody.redact("\n".join(lines))
        question = {"kind": "permission", "text": text, "since": time.time(), "request": event.key, "options": options}
        self._asked.append((event.key, question, time.monotonic()))
        if len(self._asked) == 1:
            self._custody.ask(question)
        return self._words.line(*(f"[permission] {line}" for line in lines))

    def _settled(self, event: events.Settled) -> bytes:
        """The next one that waits is shown now, as one that is asked now."""
        assert self._custody is not None
        was_shown = bool(self._asked) and self._asked[0][0] == event.key
        self._asked = [each for each in self._asked if each[0] != event.key]
        if was_shown and self._asked:
            key, question, _ = self._asked[0]
            question["since"] = time.time()
            self._asked[0] = (key, question, time.monotonic())
        if was_shown:
            self._custody.ask(self._asked[0][1] if self._asked else None)
        return self._words.line(f"[permission] answered: {event.option or 'cancelled'}")

    def _over(self, event: events.TurnOver) -> bytes:
        assert self._custody is not None
        self._times["cancel"] = float("inf")
        # An ordinary end says nothing: what people see last is the agent's own last word.
        how = f"failed: {event.error}" if event.error else "cancelled" if event.was_cancelled else event.stop_reason
        shown = (
            b"" if how == "end_turn" else self._words.line(f"[turn {event.turn}: {how or 'ended without a reason'}]")
        )
        if event.error:
            shown += self._errors()
        self._custody.show(shown)
        state = {
            "id": event.turn,
            "state": "failed" if event.error else "ended",
            "stop_reason": event.stop_reason,
            "error": self._custody.redact(event.error),
            "code": event.code,
            "was_cancelled": event.was_cancelled,
            "usage": event.usage or None,
            **self._custody.turn_facts(),
        }
        shorter = [{**each, "tail": str(each["tail"])[-_KEPT_TAIL:]} for each in self._turns]
        self._turns = [*shorter, state][-_KEPT_TURNS:]
        limits = {"is_over": True, "timeout_s": self._rules.get("idle_life_s")}
        if self._custody.set_turn(limits, turn=state, turns=self._turns) is None:
            self._custody.record.changed(turn=state, turns=self._turns)
        self._custody.tell({"event": "turn", "turn": state})
        return b""

    def _broken(self, event: "events.Broken") -> bytes:
        assert self._custody is not None
        found = {**_fields(self._custody.record.get("conversation")), "is_ready": False}
        is_working = _fields(self._custody.record.get("turn")).get("state") in ("running", "cancelling")
        if is_working or not self._has_ended or not found.get("external_session"):
            # An agent that is closed between two turns did nothing wrong.
            found |= {"error": self._custody.redact(event.reason), "code": event.code}
        self._custody.record.changed(conversation=found)
        self._custody.tell({"event": "conversation", "conversation": found})
        self._custody.give_up("protocol", self._custody.redact(event.reason))
        if is_working or not found["error"]:
            return b""  # it is said of the turn
        return self._words.line(f"[{event.reason}]") + self._errors()

    def _errors(self) -> bytes:
        """The end of its stderr, where something failed."""
        lines = self._pipes.take_errors() if self._pipes is not None else []
        return self._words.line(*(f"[stderr] {line}" for line in lines))

    def _conversation(self, opened: "events.Opened | None" = None) -> "dict[str, object]":
        return {
            "external_session": opened.external_session if opened else "",
            "resumed": opened.resumed if opened else False,
            "reason": self._custody.redact(opened.reason) if opened and self._custody else "",
            "peer": opened.peer if opened else "",
            "is_ready": opened is not None,
            "error": "",
            "code": "",
        }


def _fields(value: object) -> "dict[str, object]":
    return dict(value) if isinstance(value, dict) else {}


def _number(fields: "dict[str, object]", name: str, default: float) -> float:
    value = fields.get(name)
    return float(value) if isinstance(value, int | float) else default
