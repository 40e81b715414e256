"""Bounds what a tool answers: a document that is too large keeps its shape, says what was left out and how to go on.

First the largest list is cut to what fits, from where the call's page begins; then long texts lose their middles; then
further lists are cut. Clients read a result as one line and put it before a model: hence the small default. Some show
it on a terminal as it is, so the text of a document holds no character that could act on one. Pure.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Self

# A line then stays below 64 KiB, which is what some clients read at once: the document stands in it twice.
DEFAULT_BYTES: Final = 24 << 10
MOST_BYTES: Final = 8 << 20
# Room for `leftOut` itself.
_RESERVED: Final = 512
_TEXT_STEPS: Final = (4096, 1024, 256, 64)
_MAX_CUTS: Final = 40
_EVENTS: Final = "data.events"
_NOT_ASCII_TEXT: Final = re.compile(r"[^ -~]")


class Page(NamedTuple):
    """`limit`: bytes of JSON; `path`: the list that goes on, as keys joined by dots; `start`: its first entry."""

    limit: int = DEFAULT_BYTES
    path: str = ""
    start: int = 0

    @classmethod
    def parse(cls, limit: int, token: str | None) -> Self | None:
        """None for a token that none of our results ever had."""
        if token is None:
            return cls(limit)
        path, _, number = token.rpartition(":")
        is_ours = path and number.isascii() and number.isdigit() and len(number) <= 9
        return cls(limit, path, int(number)) if is_ours else None


def bounded(document: dict[str, Any], page: Page) -> dict[str, Any]:
    """The document within the page's limit, valid Unicode throughout, with `leftOut` when anything was.

    `leftOut`: `page` to go on with (null when nothing follows), `lists` with what is shown of how many entries,
    `characters` that texts lost.
    """
    document = _clean(document)
    if not page.path and _size(document) <= page.limit:
        return document
    room = max(page.limit - _RESERVED, _RESERVED)
    lists: list[dict[str, Any]] = []
    turned = _turn_to(document, page, room, lists)
    lost = 0
    for longest in _TEXT_STEPS:
        if _size(document) <= room:
            break
        document, cut = _shorten(document, longest)
        lost += cut
    for _ in range(_MAX_CUTS):
        if _size(document) <= room or not _cut_largest(document, room, lists):
            break
    following = _following(document, turned)
    return {**document, "leftOut": {"page": following, "lists": lists, "characters": lost}}


def text_of(document: Any) -> str:
    """The document as compact JSON, the same value whoever parses it: what could act on a terminal stands as an escape.

    JSON itself escapes only the controls below U+0020; U+009B begins a control sequence as well, U+202E turns text.
    """
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return text if text.isprintable() else _NOT_ASCII_TEXT.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1].replace("\x7f", r"\u007f")


def _turn_to(document: dict[str, Any], page: Page, room: int, lists: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Cut the list that the page names, or the largest one; what is shown of it, None when all of it is."""
    found = dict(_lists(document))
    path = page.path or max(found, key=lambda each: _size(found[each]), default="")
    entries = found.get(path)
    if entries is None:
        return None
    total, rest = len(entries), room - (_size(document) - _size(entries))
    kept: list[Any] = []
    for entry in entries[page.start :]:
        # Of one entry that alone is too large the texts are shortened afterwards.
        rest -= _size(entry) + 2
        if rest < 0 and kept:
            break
        kept.append(entry)
    entries[:] = kept
    if len(kept) == total:
        return None
    lists.append({"list": path, "first": page.start, "shown": len(kept), "of": total})
    return lists[-1]


def _following(document: dict[str, Any], turned: dict[str, Any] | None) -> str | None:
    """The token of the page after what is shown now. The event log has a better one: its own cursor, `after`."""
    if turned is None:
        return None
    if turned["list"] == _EVENTS:
        document["data"]["cursor"] = document["data"]["events"][-1]["seq"]
        return None
    end = turned["first"] + turned["shown"]
    return f"{turned['list']}:{end}" if end < turned["of"] else None


def _cut_largest(document: dict[str, Any], room: int, lists: list[dict[str, Any]]) -> bool:
    """Halve the largest list once more; False when there is none to halve."""
    found = {path: entries for path, entries in _lists(document) if len(entries) > 1}
    path = max(found, key=lambda each: _size(found[each]), default=None)
    if path is None:
        return False
    entries = found[path]
    known = next((each for each in lists if each["list"] == path), None)
    if known is None:
        lists.append(known := {"list": path, "first": 0, "shown": 0, "of": len(entries)})
    del entries[max(1, len(entries) // 2) :]
    known["shown"] = len(entries)
    return True


def _lists(value: Any, path: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Every list below objects, by path; below lists only of a single entry: others are shown whole or not."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _lists(below, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        yield path, value
        if len(value) == 1:
            yield from _lists(value[0], f"{path}.0")


def _shorten(value: Any, longest: int) -> tuple[Any, int]:
    """The value with the middle of long texts replaced; and how many characters went."""
    if isinstance(value, str) and len(value) > longest:
        half = longest // 2
        lost = len(value) - 2 * half
        return f"{value[:half]} […{lost} characters left out…] {value[-half:]}", lost
    if isinstance(value, list):
        pairs = [_shorten(each, longest) for each in value]
        return [each for each, _ in pairs], sum(lost for _, lost in pairs)
    if isinstance(value, dict):
        found = {key: _shorten(each, longest) for key, each in value.items()}
        return {key: each for key, (each, _) in found.items()}, sum(lost for _, lost in found.values())
    return value, 0


def _clean(value: Any) -> Any:
    """The value anew, with bytes that are no text (of paths) as escapes."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list | tuple):
        return [_clean(each) for each in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(each) for key, each in value.items()}
    return value


def _size(value: Any) -> int:
    return len(text_of(value).encode("utf-8", "replace"))
