"""The commands of checks as argument lists, and the ways in which a command cannot fail.

A string is split as a shell splits words and is never run by a shell; whoever wants one writes `[sh, -c, "…"]`. What
looks like shell in a string is therefore refused, because it would be handed to the program as plain words and the
check would prove something else. Nothing here runs anything.
"""

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

MAX_ARGUMENTS: Final = 1024
MAX_ARGUMENT_BYTES: Final = 32 << 10

_OPERATORS: Final = ("&&", "||", "|", ";", "$(", "`", ">", "<")
_SHELLS: Final = frozenset(["sh", "bash", "dash", "zsh", "ksh", "ash"])
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$(?:[A-Za-z_]\w*|\{\w+\})")

# What hides an exit code inside a shell script: pattern → how it is named.
_MASKS: Final = (
    (re.compile(r"\|\|\s*(?:true|:|exit\s+0|/bin/true|echo\b[^;&|]*|printf\b[^;&|]*)\s*(?:$|[;)\n#&])"), "|| …"),
    (re.compile(r"[;\n]\s*(?:true|:|exit\s+0|/bin/true|echo\b[^;&|\n]*)\s*;?\s*$"), "; true"),
    (re.compile(r"(?<!\|)\|&?\s*(?:tail|head|tee|cat|less|more|sed|awk|sort|uniq|wc|cut|tr|column|nl)\b"), "| …"),
    (re.compile(r"\bset\s+\+e\b"), "set +e"),
    (re.compile(r"(?<![&>|<])&\s*$"), "&"),
)
# Text in quotes is an argument, whatever it looks like.
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_PIPEFAIL: Final = re.compile(r"\bpipefail\b")


def split(text: str) -> tuple[str, ...]:
    """The words of the string. Raises: ValueError with the reason and what would be right."""
    operator = next((each for each in _OPERATORS if each in text), None)
    if operator is not None:
        raise ValueError(f"{operator!r} is for a shell, and a string is not run by one; {_hint(text)}")
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"the command cannot be split into words: {error}; close the quote") from None
    if not words:
        raise ValueError("a command cannot be empty")
    if "&" in words or words[-1].endswith("&"):
        raise ValueError(f"'&' is for a shell, and a string is not run by one; {_hint(text)}")
    return words


def argument_problem(words: Sequence[str]) -> str | None:
    """Why the argument list cannot be run; None for a good one."""
    if not words or not words[0].strip():
        return "a command cannot be empty"
    if len(words) > MAX_ARGUMENTS:
        return f"{len(words)} arguments; at most {MAX_ARGUMENTS}"
    if any(len(word.encode()) > MAX_ARGUMENT_BYTES for word in words):
        return f"an argument has more than {MAX_ARGUMENT_BYTES} bytes"
    if _ASSIGNMENT.fullmatch(words[0]):
        return f"{words[0][:60]!r} is no program; to set a variable write [env, {words[0][:60]}, …]"
    return None


def warnings(words: Sequence[str], *, was_string: bool) -> tuple[str, ...]:
    """Reasons to think that the command cannot fail, or does not do what it seems to. Never a refusal."""
    found: list[str] = []
    if PurePosixPath(words[0]).name in ("true", ":") or list(words[:1]) == ["echo"]:
        found.append(f"{words[0]!r} always succeeds: this check proves nothing")
    variable = next((word for word in words if was_string and _VARIABLE.search(word)), None)
    if variable is not None:
        found.append(f"{variable[:60]!r} is handed over as it is: variables are expanded only by [sh, -c, …]")
    script = shell_script(words)
    if script is not None:
        piped = _PIPEFAIL.search(" ".join(words)) is not None
        bare = _QUOTED.sub("…", script)
        for pattern, name in _MASKS:
            if pattern.search(bare) and not (piped and name == "| …"):
                found.append(f"`{name}` in {script[:60]!r} hides an exit code: the check may not be able to fail")
    return tuple(found)


def shell_script(words: Sequence[str]) -> str | None:
    """The script of `[…, sh, -c, SCRIPT]`; None when no shell is asked to run one."""
    shell = next((i for i, word in enumerate(words) if PurePosixPath(word).name in _SHELLS), None)
    if shell is None:
        return None
    for i in range(shell + 1, len(words) - 1):
        if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", words[i]):
            return words[i + 1]
    return None


def _hint(text: str) -> str:
    return f"write [sh, -c, {shlex.quote(text[:60])}] for a shell, or an argument list"
