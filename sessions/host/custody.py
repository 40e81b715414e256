"""The host's loop: one child tree from start to final record, on one thread, with one selector.

It decides when the child has ended (its exit, never the end of its output), keeps the deadlines, and reports nothing as
ended while anything of the tree could still write: what a child leaves behind is ended first, within the close bound,
and what cannot be ended is named.
"""

import os
import selectors
import signal
import time

from coordinate_agents.sessions.crashpoints import crash_point
from coordinate_agents.sessions.drivers.base import Child
from coordinate_agents.sessions.host import inputs
from coordinate_agents.sessions.host.ending import interrupt_group
from coordinate_agents.sessions.host.intake import Intake
from coordinate_agents.sessions.host.limits import Limits
from coordinate_agents.sessions.host.output import Output
from coordinate_agents.sessions.host.records import Record
from coordinate_agents.sessions.host.requests import Requests
from coordinate_agents.sessions.host.server import Client, Message, Server
from coordinate_agents.sessions.host.tree import Tree
from coordinate_agents.sessions.host.turnclock import TurnClock

TYPE_CHECKING = False
if TYPE_CHECKING:  # costs a host more than it needs
    from coordinate_agents.sessions import process
    from coordinate_agents.sessions.host.speaking import Speaker

# After the tree is gone its last output is already in the kernel; this bounds a terminal that a survivor floods.
_DRAIN_S = 0.5
# A child that closed its terminal may open it again; the kernel does not say when.
_REOPENED_S = 1.0
_SOCKET_CHECK_S = 10.0
_ACTIVITY_SAVE_S = 30.0
_STDIN_BYTES = 65536
# The spool on disk is at most so much behind: what a host that is killed takes with it.
_SETTLE_S = 1.0


class Custody:
    """`run` returns when the final record is written and clients were told."""

    def __init__(
        self,
        record: Record,
        output: Output,
        limits: Limits,
        log_path: str,
        rules: "dict[str, object]",
        speaker: "Speaker | None" = None,
    ) -> None:
        self.record = record
        self._output = output
        self._log_path = log_path
        self.selector = selectors.DefaultSelector()
        self._server: Server | None = None
        self._child: Child | None = None
        self._intake: Intake | None = None
        self._stdin = memoryview(b"")
        self._tree = Tree()
        self._clock = TurnClock(limits, time.monotonic())
        self._turn_total = 0  # bytes printed before the turn
        self._printed_at = 0.0
        self._output_open = False
        self._saved_total = 0
        self._requests = Requests(record, output, rules)
        self._speaker = speaker
        self._timers = {"socket": 0.0, "activity": 0.0, "reopened": float("inf"), "settle": float("inf")}
        self._watch_signals()

    def serve(self, path: str, token: str) -> None:
        self._server = Server(self.selector, path, token, self._answer)
        if self._server.address != path:
            self.record.changed(socket=self._server.address)
        self._requests.serve(self._server)

    def take(self, child: Child, stdin: bytes | None) -> None:
        """Own the child from now on."""
        fileno = getattr(self.selector, "fileno", None)  # not every system's selector is a descriptor
        self._child, self._intake = child, Intake(child, self._output, fileno() if fileno else None)
        self._tree.take(child.pid, str(self.record.get("cgroup") or ""))
        self._clock.begin(time.monotonic())
        self.record.child_started(child.pid)
        self._watch_output()
        if self._speaker is not None:
            self._speaker.take(child, self)
        if self._speaker is not None and self._speaker.speaks:
            return
        if (child_input := inputs.of(child)) is not None:
            self._requests.take(child_input)
        if child.stdin >= 0 and not child.is_input_open:
            self._stdin = memoryview(stdin or b"")
            self.selector.register(child.stdin, selectors.EVENT_WRITE, self._feed)

    def run(self) -> None:
        while not self._tree.is_over(self._clock.limits.close_bound_s):
            pause = max(0.0, self._next_time() - time.monotonic())
            for key, events in self.selector.select(min(pause, 3600.0)):
                key.data(events)
            self._on_time(time.monotonic())
        self._finish()

    # --- the child's end

    def _interrupt(self, children: "list[process.Stat]") -> None:
        """The driver's own way to ask the child to stop."""
        if self._speaker is not None and self._speaker.speaks:
            self._speaker.part()
        elif self._child is not None:
            interrupt_group(self._child.pid, children)

    def _stop(self, cause: str, bound_s: float, *, graceful: bool) -> None:
        """End a tree whose child may still live; the first cause stays."""
        if self._tree.is_running:
            self._tree.cause = cause
            self.record.changed(state="closing")
        self._tree.end(bound_s, graceful=graceful, interrupt=self._interrupt if self._child is not None else None)

    # --- time

    def _next_time(self) -> float:
        times = [*self._timers.values(), self._requests.next_time()]
        if self._speaker is not None:
            times.append(self._speaker.next_time())
        times.append(self._clock.next_time() if self._tree.is_running else self._tree.next_time())
        return min(times)

    def _on_time(self, now: float) -> None:
        if self._tree.is_running:
            self._note_pause(now)
            self._on_deadline(self._clock.due(now))
        else:
            self._tree.on_time(now)
        if now >= self._timers["socket"]:
            self._timers["socket"] = now + _SOCKET_CHECK_S
            if self._server is not None:
                self._server.listen()
        if now >= self._timers["activity"]:
            self._timers["activity"] = now + _ACTIVITY_SAVE_S
            if self._output.total != self._saved_total:
                self._saved_total = self._output.total
                self.record.changed(last_activity_at=time.time())
        self._requests.on_time(now)
        if self._speaker is not None:
            self._speaker.on_time(now)
        if self._requests.asking.look(now) and not self._tree.is_ending:
            self._set_question(now)
        if now >= self._timers["settle"]:
            self._timers["settle"] = float("inf")
            self._output.settle()
        if now >= self._timers["reopened"]:
            self._timers["reopened"] = float("inf")
            self._watch_output()

    def _on_deadline(self, due: str) -> None:
        if due == "stalled":
            self._set_stalled(True)
        elif due:
            self._stop(due, self._clock.limits.close_bound_s, graceful=True)

    def _note_pause(self, now: float) -> None:
        """Deadlines stand still while somebody has to answer, works in the folder, or sits at a joined terminal."""
        requests = self._requests
        self._clock.pause(requests.asking.question is not None or requests.is_attached or requests.is_held, now)

    def _set_question(self, now: float) -> None:
        """Note what is asked, then tell."""
        question = self._requests.asking.question
        self._note_pause(now)
        resting = "idle" if self._clock.is_between_turns else "running"
        self.record.changed(state=resting if question is None else "awaiting-input", question=question)
        if self._server is not None:
            self._server.broadcast({"event": "question", "question": question})

    def _set_stalled(self, stalled: bool) -> None:
        self._clock.is_stalled = stalled
        self.record.changed(stalled=stalled)
        if self._server is not None:
            self._server.broadcast({"event": "stalled", "stalled": stalled})

    # --- output and input

    def _watch_output(self) -> None:
        if self._child is not None and not self._output_open:
            self._output_open = True
            self.selector.register(self._child.output, selectors.EVENT_READ, self._read)

    def _read(self, events: int) -> None:
        assert self._intake is not None
        if self._speaker is None:
            begin = self._output.total
            is_open = self._intake.take()
            if self._output.total > begin:
                self._shown(begin, is_progress=True)
        else:
            data, is_open = self._intake.pieces()
            if data and (shown := self._speaker.hear(data)):
                self.show(shown, is_progress=True)
        if not is_open:
            assert self._child is not None
            self.selector.unregister(self._child.output)
            self._output_open = False
            self._timers["reopened"] = time.monotonic() + _REOPENED_S
            if self._speaker is not None:
                self._speaker.closed()

    def show(self, data: bytes, *, is_progress: bool = False) -> None:
        """Add it to what was printed."""
        begin = self._output.total
        self._output.add(data)
        self._shown(begin, is_progress=is_progress)

    def _shown(self, begin: int, *, is_progress: bool) -> None:
        """See what follows from what was printed since that offset."""
        now = self._printed_at = time.monotonic()
        self._requests.printed(begin, now)
        if self._timers["settle"] == float("inf"):
            self._timers["settle"] = now + _SETTLE_S
        if is_progress and self._clock.wants_progress(now):
            data = self._output.ring.raw(begin, self._output.total)
            if self._clock.is_progress(data, now) and self._clock.is_stalled:
                self._set_stalled(False)

    def _feed(self, events: int) -> None:
        assert self._child is not None
        try:
            if self._stdin:
                self._stdin = self._stdin[os.write(self._child.stdin, self._stdin[:_STDIN_BYTES]) :]
        except BlockingIOError:
            return
        except OSError:
            self._stdin = memoryview(b"")  # the child closed its stdin
        if not self._stdin:
            self.selector.unregister(self._child.stdin)
            os.close(self._child.stdin)
            self._child.stdin = -1

    # --- clients and signals

    def _answer(self, client: Client, message: Message) -> Message | None:
        answer = self._speaker.handle(message) if self._speaker is not None else {}
        if answer == {}:
            answer = self._requests.handle(client, message)  # type: ignore[assignment]
        if answer != {}:
            return answer
        match message.get("op"):
            case "hello":
                return {"ok": True, "pid": os.getpid()}
            case "look":
                return {
                    "ok": True,
                    "state": self.record.get("state"),
                    "stalled": self._clock.is_stalled,
                    "last_line": self._output.last_line(),
                    "output_bytes": self._output.total,
                    "attached": self._requests.is_attached,
                    "held": self._requests.is_held,
                    "quiet_s": self._clock.quiet_s(time.monotonic()),
                    "silent_s": time.monotonic() - self._printed_at if self._output.total else None,
                }
            case "close":
                asked = message.get("close")
                fields = asked if isinstance(asked, dict) else {}
                bound = fields.get("bound_s")
                bound_s = float(bound) if isinstance(bound, int | float) else self._clock.limits.close_bound_s
                self._stop("close", min(max(bound_s, 0.1), 60.0), graceful=bool(fields.get("graceful", True)))
                return {"ok": True}
            case "turn":
                asked = message.get("turn")
                facts = {"since": self._turn_total, **self.turn_facts()}
                if self.set_turn(asked if isinstance(asked, dict) else {}) is None:
                    return {"ok": False, "error": "the child has ended, or is being ended"}
                return {"ok": True, "log_path": self._log_path, **facts}
            case "limits":
                return self._set_limits(message)
            case other:
                return {"ok": False, "error": f"unknown operation {other!r}"}

    def _set_limits(self, message: Message) -> Message:
        """Other deadlines for what goes on; between turns nothing: the next one brings its own."""
        asked = message.get("limits")
        if self._clock.change(asked if isinstance(asked, dict) else {}, time.monotonic()):
            self._set_stalled(False)
        if self._speaker is not None:
            self._speaker.change(message)
        return {"ok": True}

    def turn_facts(self) -> Message:
        """What was printed in the present turn, and how long it takes."""
        return {
            "tail": self._output.tail(since=self._turn_total),
            "duration_ms": self._clock.age_ms(time.monotonic()),
        }

    def set_turn(self, fields: "dict[str, object]", **recorded: object) -> "Limits | None":
        """The turn is over, or another one begins in the living child: its own deadlines count from now on.

        `recorded` goes into the record with it. Asked twice it is the same; None: the child ended, or is being ended.
        """
        if not self._tree.is_running:
            return None
        self._turn_total = self._output.total
        self._clock.set_turn(fields, time.monotonic())
        had_question = self._requests.asking.question is not None
        self._requests.set_turn(is_over=self._clock.is_between_turns)
        state = "idle" if self._clock.is_between_turns else "running"
        self.record.changed(state=state, question=None, stalled=False, **recorded)
        if had_question and self._server is not None:
            self._server.broadcast({"event": "question", "question": None})
        return self._clock.limits

    # --- what the driver of a conversation needs

    def ask(self, question: "dict[str, object] | None") -> None:
        """The child asks this now, or nothing."""
        self._requests.asking.question = question
        if not self._tree.is_ending:
            self._set_question(time.monotonic())

    def tell(self, message: Message) -> None:
        if self._server is not None:
            self._server.broadcast(message)

    def redact(self, text: str) -> str:
        return self._output.redact_text(text)

    def give_up(self, cause: str, why: str) -> None:
        """End the child for a fault of its own."""
        if self._tree.is_running:
            self._tree.why = why
        self._stop(cause, self._clock.limits.close_bound_s, graceful=True)

    def _watch_signals(self) -> None:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        self.selector.register(reading, selectors.EVENT_READ, lambda _: self._on_signals(os.read(reading, 512)))

    def _on_signals(self, numbers: bytes) -> None:
        if signal.SIGTERM in numbers:
            self._stop("close", self._clock.limits.close_bound_s, graceful=True)
        if signal.SIGUSR1 in numbers:  # "look after your socket now": from a client that found it missing
            self._timers["socket"] = 0.0

    # --- the end

    def _finish(self) -> None:
        crash_point("host.over")
        self._drain()
        if self._speaker is not None:
            self._speaker.ended(_ended_words(self._tree.code))
        self._output.finish()
        crash_point("host.drained")
        self._requests.ended()
        end: dict[str, object] = {
            **self._tree.final(),
            "tail": self._output.tail(),
            "log_path": self._log_path,
            "output_bytes": self._output.total,
        }
        self.record.finish("exited", end)
        crash_point("host.final")
        if self._server is not None:
            self._server.hide()  # at once: whoever sees the final record finds no socket
            crash_point("host.hidden")
            self._server.broadcast({"event": "ended", "end": end})
            self._server.close(1.0)

    def _drain(self) -> None:
        """Read to the end of the output. The kernel may still be moving the last bytes through the terminal."""
        if not self._output_open or self._intake is None:
            return
        until = time.monotonic() + _DRAIN_S
        is_open = True
        while is_open and (left := until - time.monotonic()) > 0 and self._intake.wait(left):
            if self._speaker is None:
                is_open = self._intake.take()
            else:
                data, is_open = self._intake.pieces()
                self._output.add(self._speaker.hear(data))


def _ended_words(code: int | None) -> str:
    if code is None:
        return "the agent did not end within the close bound"
    return f"the agent ended with exit code {code}" if code >= 0 else f"the agent was killed by signal {-code}"
