"""The live view as a textual application: keys in, `drawing.screen` out. Decides nothing about the graph.

One widget shows the whole screen; other screens lie over it for a moment. The reader's thread and the terminals' tasks
tell what they found; everything is drawn from `View`. Once a second the times of what runs are drawn again.
"""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, TypeVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message

from coordinate_agents.cli.watch import acts, drawing
from coordinate_agents.cli.watch.dialogs import Answer, Box, Confirm, Given, Pages
from coordinate_agents.cli.watch.filters import NAMES, fitting
from coordinate_agents.cli.watch.lines import Lines
from coordinate_agents.cli.watch.reader import Look, Reader
from coordinate_agents.cli.watch.terminals import Terminals
from coordinate_agents.cli.watch.tree import Node, tree
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.text import visible

TICK_S: Final = 1.0
_MORE_KEYS: Final = (
    ("up, down, k, j", "choose a subtask; also page up and down, home, end"),
    ("n", "the next subtask that needs a person"),
    ("f", f"filter: {', '.join(NAMES)}"),
    ("/", "filter by words in id, title, agent or state; escape takes it away"),
    ("a", "attach: sit at its agent's terminal; C-] comes back here  (session-attach)"),
    ("r", "answer the question that its agent asks  (session-answer)"),
    ("t", "tell its agent something  (graph-tell)"),
    ("?", "this help"),
    ("q, C-c", "leave; the graph goes on"),
)
T = TypeVar("T")


class Looked(Message):
    """The reader found something new."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look


class WatchApp(App[None]):
    """`open_runtime` gives the reader's thread a Runtime of its own."""

    CSS: ClassVar[str] = "Lines { width: 100%; height: 100%; }"
    ENABLE_COMMAND_PALETTE: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c,ctrl+q", "quit", priority=True),
        Binding("ctrl+z", "suspend_process", priority=True),
    ]

    def __init__(self, open_runtime: Callable[[], Runtime], graph: str) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self.graph = graph
        self.view = drawing.View()
        self.joined: subprocess.Popen[bytes] | None = None
        self._runtime = open_runtime()
        self._reader = Reader(open_runtime, graph, self._found)
        self._terminals = Terminals(self._runtime.sessions, self._runtime.render_screen, self.draw)
        self._laid_out: tuple[Node, ...] = ()
        self._needs: dict[str, list[str]] = {}
        self._words = ""

    # --- showing

    def compose(self) -> ComposeResult:
        yield Lines(id="all")

    def on_mount(self) -> None:
        self._reader.start()
        self.set_interval(TICK_S, self._tick)

    def on_unmount(self) -> None:
        self._reader.stop()
        self._terminals.end()
        self._runtime.close()

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self.draw)

    def _found(self, look: Look) -> None:
        """Called in the reader's thread."""
        self.post_message(Looked(look))

    def on_looked(self, message: Looked) -> None:
        look = message.look
        if look.status is None and self.view.look.status is not None:
            look = self.view.look._replace(problem=look.problem)
        is_first = self.view.look.status is None
        self.view.look = look
        if look.status is not None:
            self.view.by_id = {each["id"]: each for each in look.status["subtasks"]}
            needs = {each["id"]: each["dependsOn"] for each in look.status["subtasks"]}
            if needs != self._needs:
                self._needs, self._laid_out = needs, tree(needs)
        self._filter()
        if is_first and look.status is not None:
            # The most urgent thing is selected to begin with.
            urgent = next((item["subtask"] for item in look.status["attention"] if item["subtask"]), None)
            self.view.cursor = next((at for at, node in enumerate(self.view.shown) if node.id == urgent), 0)
            self.draw()

    def draw(self) -> None:
        """Draw what is known now; the terminals of what is on the screen are followed from now on."""
        if not self.is_running or not self.screen_stack:
            return
        lines = self.screen_stack[0].query(Lines)
        if not lines:
            return
        width, height = self.size
        self.view.now = time.time()
        self.view.last, self.view.terminal = self._terminals.last, self._terminals.screen
        lines.first().put(drawing.screen(self.view, width, height))
        self._follow(height)

    def _follow(self, height: int) -> None:
        top, room = self.view.top, drawing.heights(self.view, height).rows
        shown = [each.id for each in self.view.shown[top : top + room]]
        at_work = {name: session for name in shown if (session := self._session(name)) is not None}
        self._terminals.follow(tuple(at_work.values()), at_work.get(self.view.selected or ""))

    def _session(self, subtask: str) -> str | None:
        """The Session of a subtask at work."""
        found = self.view.by_id[subtask]
        return found["session"]["id"] if found["state"] == "RUNNING" and found["session"] else None

    def _tick(self) -> None:
        if not self.is_headless and terminal_is_gone(sys.stdin.fileno()):
            self.exit(return_code=1)
        elif any(each["state"] == "RUNNING" for each in self.view.by_id.values()):
            self.draw()

    def _filter(self) -> None:
        """Keep the selected subtask selected, where it is still shown."""
        selected = self.view.selected
        attention = self.view.look.status["attention"] if self.view.look.status else ()
        self.view.shown = fitting(self._laid_out, self.view.by_id, attention, self.view.filter, self._words)
        places = {node.id: at for at, node in enumerate(self.view.shown)}
        self.view.cursor = places.get(selected or "", min(self.view.cursor, max(0, len(places) - 1)))
        self.draw()

    # --- keys

    async def on_key(self, event: events.Key) -> None:
        if len(self.screen_stack) > 1:
            return
        key = event.character if event.is_printable and event.character else event.key
        self.view.message = ()
        if key in acts.BY_KEY:
            self._begin(self._act(acts.BY_KEY[key]))
        elif key in ("q", "a", "r", "t", "n", "f", "/", "?", "escape"):
            self._special(key)
        else:
            self._move(key)
        self.draw()

    def _special(self, key: str) -> None:
        match key:
            case "q":
                self.exit()
            case "a":
                self._join_terminal()
            case "r":
                self._begin(self._answer())
            case "t":
                self._begin(self._tell_agent())
            case "n":
                self._next_attention()
            case "f":
                names = ("", *NAMES)
                at = names.index(self.view.filter) if self.view.filter in names else 0
                self._set_filter(names[(at + 1) % len(names)])
            case "/":
                self._begin(self._ask_filter())
            case "?":
                self.push_screen(Pages("keys", ["Keys:", "", *acts.help_lines(_MORE_KEYS)]))
            case _:
                self._set_filter("")

    def _move(self, key: str) -> None:
        page = max(1, drawing.heights(self.view, self.size.height).rows - 1)
        last = max(0, len(self.view.shown) - 1)
        steps = {"down": 1, "j": 1, "up": -1, "k": -1, "pagedown": page, "pageup": -page, "home": -last, "end": last}
        self.view.cursor = max(0, min(last, self.view.cursor + steps.get(key, 0)))

    def _next_attention(self) -> None:
        status = self.view.look.status
        wanted = {item["subtask"] for item in status["attention"]} if status else set()
        places = [at for at, node in enumerate(self.view.shown) if node.id in wanted]
        after = [at for at in places if at > self.view.cursor]
        if not places:
            self._say(["No subtask that is shown needs a person."])
        else:
            self.view.cursor = after[0] if after else places[0]

    def _set_filter(self, name: str, words: str = "") -> None:
        self._words = words
        self.view.filter = words or name
        self._filter()

    # --- acts

    def _begin(self, work: Any) -> None:
        self.run_worker(work, exclusive=False)

    def _say(self, lines: list[str]) -> None:
        self.view.message = lines
        self.draw()

    async def _ask_filter(self) -> None:
        words = await self.push_screen_wait(Box(["Show only what has these words:"], types=True))
        self._set_filter("", words or "")

    async def _act(self, act: acts.Act) -> None:
        subtask = self.view.selected
        if subtask is None and not act.is_whole:
            return
        values = acts.values_of(act, self.graph, subtask)
        if act.asks:
            question = act.asks.format(graph=self.graph, subtask=subtask)
            if not await self.push_screen_wait(Confirm(question, acts.command(act.verb, values))):
                return
        document = await self._call(act.verb, values)
        if act.shows:
            title = f"{act.verb} {self.graph}{'' if act.is_whole else f' {subtask}'}"
            await self.push_screen_wait(Pages(title, acts.page_lines(document)))
        else:
            self._say(acts.answer_lines(document))

    async def _tell_agent(self) -> None:
        subtask = self.view.selected
        if subtask is None:
            return
        words = await self.push_screen_wait(Box([f"Tell the agent of {subtask}:"], types=True))
        if words:
            values = {"graph": self.graph, "subtask": subtask, "text": "-"}
            self._say(acts.answer_lines(await self._call("graph-tell", values, stdin=words)))

    async def _answer(self) -> None:
        """Answers exactly the question that was shown: another one, asked meanwhile, is refused."""
        subtask = self.view.selected
        if subtask is None:
            return
        word = f"{self.graph}/{subtask}"
        asked = await self._call("session-status", {"session": word})
        question = asked["data"]["session"].get("question") if asked["ok"] else None
        if question is None:
            self._say(acts.answer_lines(asked) if not asked["ok"] else [f"The agent of {subtask} asks nothing."])
            return
        given: Given | None = await self.push_screen_wait(Answer(question))
        typed = None
        if given is not None and given.field == "text":
            typed = await self.push_screen_wait(Box([f"Answer the agent of {subtask}:"], types=True))
            given = Given("text", "-") if typed else None
        if given is not None:
            values = {"session": word, "request": question["request"], given.field: given.value}
            self._say(acts.answer_lines(await self._call("session-answer", values, stdin=typed)))

    async def _call(self, verb: str, values: Mapping[str, Any], *, stdin: str | None = None) -> dict[str, Any]:
        self._say([f"{acts.command(verb, values)} …"])
        root = str(self._runtime.root)
        document = await _apart(lambda: acts.run(verb, values, root, stdin=stdin))
        self._say([])
        return document

    def _join_terminal(self) -> None:
        """The terminal is the Session's until the person comes back; the record is read meanwhile, not drawn."""
        subtask = self.view.selected
        if subtask is None:
            return
        words = ["session-attach", f"{self.graph}/{subtask}", "--root", str(self._runtime.root)]
        with self.suspend():
            self.joined = subprocess.Popen([sys.executable, "-P", "-m", "coordinate_agents.cli.main", *words])
            try:
                code = self.joined.wait()
            finally:
                self.joined = None
            if code not in (0, 130):
                sys.stderr.write("Press Enter to go back to the view. ")
                sys.stderr.flush()
                sys.stdin.readline()
        self.view.message = [f"Left the terminal of {visible(subtask)}."] if code == 0 else ()

    # --- ending

    def leave(self) -> None:
        """Called by a handler of signals, at any moment."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.exit)

    def _print_error_renderables(self) -> None:
        """A bug of ours is told as every verb tells it, with its traceback in a file."""
        self._exit_renderables.clear()

    @property
    def failure(self) -> Exception | None:
        """What broke the view, after `run`."""
        broken = self._exception
        return broken if isinstance(broken, Exception) else None


async def _apart(do: Callable[[], T]) -> T:
    """Its result, from a thread that nobody waits for when the view is left."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def tell(value: T | None, error: BaseException | None) -> None:
        if result.cancelled():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(value)  # type: ignore[arg-type]

    def carry_out() -> None:
        try:
            value, error = do(), None
        except BaseException as raised:
            value, error = None, raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, value, error)

    threading.Thread(target=carry_out, daemon=True).start()
    return await result


def terminal_is_gone(descriptor: int) -> bool:
    """Whether nobody is at the other end any more."""
    try:
        return os.tcgetpgrp(descriptor) < 0
    except OSError:
        return True
