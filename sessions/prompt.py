"""How a prompt reaches an agent: in an argument, on stdin, in a file of the Session's own folder, or typed later.

Templates in configured arguments are filled here, and what could not be delivered whole is refused before anything is
started: never a silent cut.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from coordinate_agents.sessions import folder as folders
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import Delivery
from coordinate_agents.sessions.starting import MAX_ARGUMENT_BYTES
from coordinate_agents.worktrees.values import value_class

WORDS: Final = frozenset(
    {"prompt", "promptFile", "worktree", "root", "graph", "subtask", "agent", "session", "externalSession"}
)
# Source: sessions.md section 4, the bound of structured text.
MAX_PASTE_BYTES: Final = 256 << 10
_TEMPLATE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


@value_class
class Delivered:
    """Arguments after the command, and what to write to stdin (None: nothing)."""

    arguments: tuple[str, ...]
    stdin: bytes | None = None


def check_templates(args: Sequence[str]) -> None:
    """Refuse brace words that mean nothing. Raises: INVALID_ADAPTER_CONFIG."""
    for arg in args:
        for match in _TEMPLATE.finditer(arg):
            if match[1] not in WORDS:
                known = ", ".join(f"{{{word}}}" for word in sorted(WORDS))
                raise SessionError(
                    "INVALID_ADAPTER_CONFIG",
                    f"The argument {arg!r} contains {match[0]}, which is no known template.",
                    next=f"use one of {known}",
                )


def deliver(
    prompt: str, args: Sequence[str], *, delivery: Delivery, values: Mapping[str, str], prompt_file: Path
) -> Delivered:
    """Fill the templates and place the prompt.

    `values` holds the other words (a missing one is an error). With delivery `argument` and no `{prompt}` the prompt
    becomes the last argument. `{promptFile}` is always usable: the file is written when it is mentioned or when the
    delivery is `file`, in which case an argument must name it. With `paste` nothing of the prompt is placed here: it is
    typed once the program is ready, and must not be longer than what is typed at once.
    Raises: SPAWN_FAILED, INVALID_ADAPTER_CONFIG.
    """
    check_templates(args)
    if "\0" in prompt:
        raise _refused("the prompt contains a NUL character, which no argument, file or terminal should carry")
    words = {match[1] for arg in args for match in _TEMPLATE.finditer(arg)}
    if delivery == "argument" and "prompt" not in words:
        args, words = (*args, "{prompt}"), words | {"prompt"}
    if delivery == "file" and "promptFile" not in words:
        raise SessionError(
            "INVALID_ADAPTER_CONFIG",
            "The delivery is 'file', but no argument contains {promptFile}.",
            next="add {promptFile} to args, or choose the delivery argument or stdin",
        )
    if "promptFile" in words:
        write_prompt_file(prompt_file, prompt)
    filled = {**values, "prompt": prompt, "promptFile": str(prompt_file)}
    arguments = tuple(_fill(arg, filled) for arg in args)
    for argument in arguments:
        if len(os.fsencode(argument)) > MAX_ARGUMENT_BYTES:
            raise _refused(f"prompt too long for argument delivery (limit {MAX_ARGUMENT_BYTES})")
    if delivery == "paste" and len(prompt.encode("utf-8", "surrogateescape")) > MAX_PASTE_BYTES:
        raise _refused(f"prompt too long to be typed (limit {MAX_PASTE_BYTES})")
    stdin = prompt.encode("utf-8", "surrogateescape") if delivery == "stdin" else None
    return Delivered(arguments, stdin)


def write_prompt_file(path: Path, prompt: str) -> None:
    """Write the prompt for its owner only, through no link; the folder is made when it is missing."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = folders.open_folder(str(path.parent))
    try:
        folders.write_whole(folder, path.name, prompt.encode("utf-8", "surrogateescape"))
    finally:
        os.close(folder)


def _fill(arg: str, values: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise SessionError("INVALID_ADAPTER_CONFIG", f"There is no value for {match[0]} here (argument {arg!r}).")
        return values[match[1]]

    return _TEMPLATE.sub(value, arg)


def _refused(reason: str) -> SessionError:
    return SessionError(
        "SPAWN_FAILED",
        f"The agent was not started: {reason}.",
        kept="nothing was started",
        next="set the agent's delivery to stdin or file, or shorten the spec",
    )
