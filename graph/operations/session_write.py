"""session-write: type text, then named keys, into a Session; the answer says whether it arrived.

Never blind: whether the program read it is `delivered` true, false or unknown, with the reason. Text is typed the way
the agent's adapter takes a prompt; nothing passes a shell.
"""

import sys
from typing import Any, Final

import anyio

from coordinate_agents.graph.errors import EXIT_DONE, EXIT_REFUSED, GraphError
from coordinate_agents.graph.operations.session_shape import question_json, session_json
from coordinate_agents.graph.operations.session_target import PROGRAM, Target, find, require_live
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.worktrees.values import value_class

MAX_TEXT_BYTES: Final = 256 << 10
STANDARD_INPUT: Final = "-"
# Questions that are answered by choosing, never by text.
_DIALOGS: Final = frozenset({"trust", "login", "permission"})


@value_class
class Request:
    session: str
    text: str | None = None
    keys: str | None = None
    submit: bool = False


def execute(runtime: Runtime, request: Request) -> Result:
    """`delivered` and `reason`; exit code 1 when it was not delivered. Raises: SESSION_NOT_FOUND, INVALID_USAGE,
    SESSION_STATE_CONFLICT when it ended, SESSION_WRITE_FAILED."""
    text = given_text(request.text)
    keys = tuple((request.keys or "").split())
    if text is None and not keys:
        raise GraphError("INVALID_USAGE", "There is nothing to write: give TEXT, --keys or both.")
    if request.submit and text is None:
        raise GraphError("INVALID_USAGE", "--submit sends TEXT off; without text use --keys Enter.")
    data = anyio.run(_write, runtime, request.session, text, keys, request.submit)
    return Result(data, EXIT_REFUSED if data["delivered"] == "false" else EXIT_DONE)


def given_text(text: str | None) -> str | None:
    """The text of an argument, or of standard input for ``-``. Raises: INVALID_USAGE when it is too long."""
    if text == STANDARD_INPUT:
        raw = sys.stdin.buffer.read(MAX_TEXT_BYTES + 1)
        if len(raw) <= MAX_TEXT_BYTES:
            return raw.decode("utf-8", "replace")
    elif text is None or len(text.encode("utf-8", "replace")) <= MAX_TEXT_BYTES:
        return text
    raise GraphError(
        "INVALID_USAGE",
        f"The text has more than {MAX_TEXT_BYTES >> 10} KiB, which is what one write takes.",
        kept="the Session; nothing was written",
        next="put it into a file in its worktree and name the file",
    )


def _require_no_dialog(target: Target) -> None:
    """Raise SESSION_STATE_CONFLICT where what submits text would answer a dialog: Enter means yes in most of them."""
    assert target.facts.record is not None
    question = question_json(target.facts.record)
    if question is None or question["kind"] not in _DIALOGS:
        return
    raise GraphError(
        "SESSION_STATE_CONFLICT",
        f"Session {target.id} shows a {question['kind']} dialog; submitting text would answer it blindly.",
        kept="the Session; nothing was typed",
        next=f"{PROGRAM} session-inspect {target.id} --screen",
        facts={"sessionId": target.id, "request": question["request"]},
    )


async def _write(
    runtime: Runtime, word: str, text: str | None, keys: tuple[str, ...], is_submitted: bool
) -> dict[str, Any]:
    target = await find(runtime, word)
    require_live(target)
    if is_submitted or (text is not None and ("\n" in text or "\r" in text)):
        _require_no_dialog(target)
    result = None
    if text is not None:
        async with runtime.sessions.turns(read_only=True) as turns:
            result = await turns.write_input(target.id, text, submit=is_submitted)
    if keys and (result is None or result.delivered != "false"):
        result = await runtime.sessions.keys(target.id, keys)
    assert result is not None
    return {"session": session_json(target), "delivered": result.delivered, "reason": result.reason}
