"""Command lines of Windows from arguments: a program gets one text and takes it apart itself.

Rule: most programs take it apart as CommandLineToArgvW does. The problem this causes: cmd.exe, which runs every `.cmd`
and `.bat`, does not; for it `"` opens and closes, `%` begins a variable and `&|<>^` begin commands, whatever
CommandLineToArgvW would make of them. Next rule: a batch file's arguments are written so that both readings give
the same text, and what cannot be written so (a line's end, NUL) is refused, never passed in another shape.

Source: Microsoft, "Parsing C++ command-line arguments"; the standard library of Rust, `make_bat_command_line` (after
CVE-2024-24576), for cmd.exe.
"""

from collections.abc import Sequence
from typing import Final

# Source: CreateProcessW, lpCommandLine, with the terminating NUL; cmd.exe, "Command prompt line string limitation".
MAX_LINE: Final = 32_766
MAX_CMD_LINE: Final = 8_191
# Stands before a percent sign: the empty part of a variable that is always there, so that no name follows the sign.
_NO_VARIABLE: Final = "%%cd:~,"
_SAFE_IN_CMD: Final = frozenset(r"#$*+-./:?@\_")


class CannotQuote(ValueError):
    """No command line gives the program this text."""


def command_line(argv: Sequence[str]) -> str:
    """The line that CommandLineToArgvW takes apart into `argv`. Raises: CannotQuote."""
    line = " ".join([_program(argv[0]), *(quote(argument) for argument in argv[1:])])
    return _bounded(line, MAX_LINE)


def quote(argument: str) -> str:
    """One argument after the program. Raises: CannotQuote for NUL."""
    _refuse(argument, "\0")
    if argument and not any(letter in ' \t\n\v"' for letter in argument):
        return argument
    return f'"{_escaped(argument, quote_as=chr(92) + chr(34))}"'


def batch_line(interpreter: str, script: str, arguments: Sequence[str]) -> str:
    """The line by which cmd.exe runs a batch file with these arguments.

    `/e:ON`: what hides percent signs needs the command extensions; `/v:OFF`: `!` is a letter; `/d`: nothing of the
    registry's AutoRun. Raises: CannotQuote for NUL or a line's end, an odd name, and a line that is too long.
    """
    _refuse(script, '\0\r\n"%')
    if script.endswith("\\"):
        raise CannotQuote("a batch file's name cannot end with a backslash")
    inner = " ".join([f'"{script}"', *(quote_for_cmd(argument) for argument in arguments)])
    return _bounded(f'{_program(interpreter)} /e:ON /v:OFF /d /c "{inner}"', MAX_CMD_LINE)


def quote_for_cmd(argument: str) -> str:
    """One argument of a batch file. Raises: CannotQuote for NUL or a line's end, which would end the command."""
    _refuse(argument, "\0\r\n")
    is_plain = all(ord(letter) > 127 or letter.isalnum() or letter in _SAFE_IN_CMD for letter in argument)
    if argument and is_plain and not argument.endswith("\\"):
        return argument
    return f'"{_escaped(argument, quote_as=chr(34) * 2)}"'.replace("%", _NO_VARIABLE + "%")


def powershell_line(interpreter: str, script: str, arguments: Sequence[str]) -> str:
    """The line by which PowerShell runs a script file. The user's execution policy stays in force.

    What stands behind `-File` are texts, never code. An argument that begins with a dash names a parameter of the
    script if it has one of that name, as with any script. Raises: CannotQuote.
    """
    return command_line([interpreter, "-NoLogo", "-NoProfile", "-File", script, *arguments])


def _program(name: str) -> str:
    """The first word, for which a backslash escapes nothing. Always in quotes: `C:\\Program Files\\x` without them
    would start `C:\\Program.exe` if there is one.
    """
    _refuse(name, '\0"')
    if not name:
        raise CannotQuote("the program has no name")
    return f'"{name}"'


def _escaped(argument: str, *, quote_as: str) -> str:
    """The inside of a quoted argument: backslashes count double before a quote, and so before the closing one."""
    parts: list[str] = []
    backslashes = 0
    for letter in argument:
        if letter == "\\":
            backslashes += 1
            continue
        parts.append("\\" * (backslashes * 2 if letter == '"' else backslashes))
        parts.append(quote_as if letter == '"' else letter)
        backslashes = 0
    return "".join(parts) + "\\" * (backslashes * 2)


def _refuse(text: str, letters: str) -> None:
    for letter in letters:
        if letter in text:
            raise CannotQuote(f"{text[:60]!r} contains {letter!r}, which cannot be passed")


def _bounded(line: str, limit: int) -> str:
    if len(line.encode("utf-16-le", "surrogatepass")) // 2 > limit:
        raise CannotQuote(f"the command line would be longer than {limit} characters; give long text by file")
    return line
