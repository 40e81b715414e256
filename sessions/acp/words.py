"""What an agent says of its work, as text for people: its words as they come, a line for each tool call and plan.

Line ends are CR LF, as a terminal has them: this text is shown on screens, too. Control characters are left out.
"""

from coordinate_agents.sessions.acp.framing import Message
from coordinate_agents.sessions.plain import plain

# A tool may print megabytes; its end is where the result stands.
_SHOWN_CHARACTERS = 2000
_MARKS = {"completed": "x", "in_progress": ">"}
_SPOKEN = {"agent_message_chunk": "", "agent_thought_chunk": "[thinks] "}


class Words:
    """Feed it updates in order; it knows whether a line is open, and what kind of text stands in it."""

    def __init__(self) -> None:
        self._open = ""  # the kind of the text that was not ended by a line end yet
        self._titles: dict[str, tuple[str, str]] = {}  # tool call -> title, last status

    def of(self, update: Message) -> bytes:
        kind = str(update.get("sessionUpdate"))
        if kind in _SPOKEN:
            return self._speak(kind, _block(update.get("content")))
        if kind in ("tool_call", "tool_call_update"):
            return self.line(*self._tool(update))
        if kind == "plan":
            entries = update.get("entries")
            return (
                self.line("[plan]", *(_entry(each) for each in entries if isinstance(each, dict)))
                if isinstance(entries, list)
                else b""
            )
        return b""

    def line(self, *lines: str) -> bytes:
        """Whole lines, on lines of their own."""
        if not lines:
            return b""
        before = "\n" if self._open else ""
        self._open = ""
        return _bytes(before + "".join(f"{line}\n" for line in lines))

    def stray(self, data: bytes) -> bytes:
        """Text that came beside the messages, with a terminal's line ends."""
        self._open = "" if data.endswith(b"\n") else "stray"
        return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")

    def _speak(self, kind: str, text: str) -> bytes:
        if not text:
            return b""
        before = "" if self._open == kind else ("\n" if self._open else "") + _SPOKEN[kind]
        self._open = "" if text.endswith("\n") else kind
        return _bytes(before + text)

    def _tool(self, update: Message) -> list[str]:
        """A line when the call is new or its status changed, and what it showed."""
        call = str(update.get("toolCallId"))[:200]
        known_title, known_status = self._titles.get(call, ("", ""))
        title = _plain(update.get("title")) or known_title or call
        status = _plain(update.get("status")) or known_status or "pending"
        self._titles.pop(call, None)
        self._titles[call] = (title, status)
        while len(self._titles) > 256:
            del self._titles[next(iter(self._titles))]
        first = title.split("\n", 1)[0][:300]
        lines = [f"[tool] {first}: {status}"] if (title, status) != (known_title, known_status) else []
        return [*lines, *_contents(update.get("content"))]


def _contents(value: object) -> list[str]:
    lines: list[str] = []
    for each in value if isinstance(value, list) else []:
        if not isinstance(each, dict):
            continue
        if each.get("type") == "diff":
            lines.append(f"  edits {_plain(each.get('path'))}")
        elif each.get("type") == "content":
            text = _block(each.get("content"))
            cut = "…" if len(text) > _SHOWN_CHARACTERS else ""
            lines += [f"  {line}" for line in (cut + text[-_SHOWN_CHARACTERS:]).splitlines()]
    return lines


def _block(value: object) -> str:
    """A block of content as text; of other kinds than text only what it is."""
    if not isinstance(value, dict):
        return ""
    kind = value.get("type")
    if kind == "text":
        return _plain(value.get("text"))
    if kind == "resource_link":
        return f"[{_plain(value.get('uri'))}]"
    return f"[{_plain(kind)}]" if isinstance(kind, str) else ""


def _entry(entry: Message) -> str:
    content = " ".join(_plain(entry.get("content")).split())
    return f"  [{_MARKS.get(str(entry.get('status')), ' ')}] {content[:300]}"


def _plain(value: object) -> str:
    return plain(value) if isinstance(value, str) else ""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace").replace(b"\n", b"\r\n")
