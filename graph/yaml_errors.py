"""The parser's own errors as one line that says what would be right. Never reads YAML itself."""

import re
from typing import Final

from yaml.error import MarkedYAMLError, YAMLError

from coordinate_agents.graph.errors import Problem
from coordinate_agents.graph.yaml_text import position

# Beginning of libyaml's or PyYAML's message → what would be right.
_HINTS: Final = (
    ("mapping values are not allowed", "text that holds `: ` needs quotes; or the indentation is off"),
    ("exceeded maximum nesting depth", "at most 32 levels are read"),
    ("could not find expected ':'", "write `key: value`, or quote the text"),
    ("found unexpected end of stream", "close the quote or the bracket"),
    ("did not find expected key", "indent the keys of one mapping alike"),
    ("expected <block end>", "indent the keys of one mapping alike"),
    ("did not find expected '-'", "indent the items of one list alike"),
    ("did not find expected ',' or", "close the bracket, or separate the items with commas"),
    ("did not find expected node content", "a value is missing"),
    ("found character that cannot start", "text that begins with @ or ` or % needs quotes"),
    ("found character '\\t'", "indent with spaces"),
    ("found unknown escape character", "in double quotes write \\\\ for a backslash, or use single quotes"),
    (
        "found invalid Unicode character",
        "a lone surrogate (half an emoji) cannot be stored; write the character",
    ),
    ("found undefined tag handle", "tags are not read here; leave it out"),
    ("did not find URI escape", "tags are not read here; leave it out"),
    ("found incompatible YAML document", "leave the %YAML line out"),
)


def syntax_problem(error: MarkedYAMLError, text: str) -> Problem:
    """The syntax error with its position; tabs used for indentation are called by their name."""
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark is not None else (0, 0)
    tab = _indenting_tab(text, line)
    if tab is not None:
        return Problem(line + 1, tab + 1, "", "tab used for indentation; YAML is indented with spaces")
    what = error.problem or error.context or "the text is not YAML"
    began = ""
    if error.context and error.context_mark is not None and error.context_mark.line != line:
        began = f" {error.context} that began on line {error.context_mark.line + 1}"
    hint = next((hint for start, hint in _HINTS if what.startswith(start)), None)
    return Problem(line + 1, column + 1, "", f"not YAML: {what}{began}" + (f"; {hint}" if hint else ""))


def reader_problem(error: YAMLError, text: str) -> Problem:
    """A character that YAML does not allow, by position."""
    offset = getattr(error, "position", 0)
    character = getattr(error, "character", None)
    index = len(text.encode()[:offset].decode("utf-8", "ignore")) if isinstance(offset, int) else 0
    line, column = position(text, index)
    number = ord(character) if isinstance(character, str) else character
    shown = f"U+{number:04X}" if isinstance(number, int) else "a character"
    return Problem(line, column, "", f"{shown} may not stand in YAML; remove it, or write it as an escape in quotes")


def _indenting_tab(text: str, line: int) -> int | None:
    """Where in that line (from 0) a tab stands before the first other character; None in flow-free, tab-free lines."""
    lines = re.split(r"\r\n|[\n\r\x85\u2028\u2029]", text)
    if line >= len(lines):
        return None
    indent = lines[line][: len(lines[line]) - len(lines[line].lstrip(" \t"))]
    index = indent.find("\t")
    return None if index < 0 else index
