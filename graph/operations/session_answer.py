"""session-answer: answer exactly the question that a Session asks now, never another one.

The request's id is made from the question; when the Session asks something else meanwhile, or nothing any more, the
answer is refused and nothing is typed. A yes is never guessed from a screen: which keys mean yes and no in a dialog is
data of the agent's adapter, for exactly the dialogs that were seen. In any other one the keys are the caller's choice
(`--option` or session-write). A permission request of an agent whose driver is acp has options of its own, each with an
id: there `--option` is one of these, and `--allow` and `--deny` the first that allows or refuses this once.
"""

import shlex
from typing import Any

import anyio

from coordinate_agents.graph.errors import EXIT_DONE, EXIT_REFUSED, GraphError
from coordinate_agents.graph.operations.session_shape import question_json, session_json
from coordinate_agents.graph.operations.session_target import PROGRAM, Target, find, require_live
from coordinate_agents.graph.operations.session_write import given_text
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.text import joined_lines
from coordinate_agents.sessions.model import Question
from coordinate_agents.sessions.turns.model import Answer, RequestId
from coordinate_agents.worktrees.values import value_class


@value_class
class Request:
    session: str
    request: str | None = None
    allow: bool = False
    deny: bool = False
    option: str | None = None
    text: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """Raises: SESSION_STATE_CONFLICT for a question that is not asked (any more), UNSUPPORTED_CAPABILITY,
    INVALID_USAGE, SESSION_NOT_FOUND."""
    given = [request.allow, request.deny, request.option is not None, request.text is not None]
    if sum(given) != 1:
        raise GraphError("INVALID_USAGE", "Give exactly one of --allow, --deny, --option and --text.")
    data = anyio.run(_answer, runtime, request, given_text(request.text))
    return Result(data, EXIT_REFUSED if data["delivered"] == "false" else EXIT_DONE)


async def _answer(runtime: Runtime, request: Request, text: str | None) -> dict[str, Any]:
    target = await find(runtime, request.session)
    require_live(target)
    question = _asked(target, request.request)
    answer = _answer_of(target, request, text)
    async with runtime.sessions.turns(read_only=True) as turns:
        result = await turns.resolve_permission(target.id, RequestId(question["request"]), answer)
    return {
        "session": session_json(target),
        "question": question,
        "delivered": result.delivered,
        "reason": result.reason,
    }


def _asked(target: Target, request: str | None) -> dict[str, Any]:
    """The question of now. Raises: SESSION_STATE_CONFLICT when there is none, or it is not the one meant."""
    assert target.facts.record is not None
    question = question_json(target.facts.record)
    if question is not None and request in (None, question["request"]):
        return question
    now = f"it asks {question['request']} now" if question is not None else "it asks nothing now"
    meant = f"Question {request} of Session {target.id} is not open" if request else f"Session {target.id} asks nothing"
    raise GraphError(
        "SESSION_STATE_CONFLICT",
        f"{meant}: {now}." if request else f"{meant}.",
        kept="the Session; nothing was typed",
        next=f"{PROGRAM} session-status {target.id}",
        facts={"sessionId": target.id},
    )


def _option_of(target: Target, request: Request, asked: Question) -> Answer:
    """One of the options that the agent offers. Raises: UNSUPPORTED_CAPABILITY for what is none of them."""
    known = ", ".join(f"{option.id} ({option.name})" for option in asked.options)
    wanted = request.option
    if request.allow or request.deny:
        kind = "allow_once" if request.allow else "reject_once"
        wanted = next((option.id for option in asked.options if option.kind == kind), None)
    if wanted not in [option.id for option in asked.options]:
        raise GraphError(
            "UNSUPPORTED_CAPABILITY",
            f"Session {target.id} asks for one of its own options, and this is none of them: {known}.",
            kept="the Session; nothing was answered",
            next=f"{PROGRAM} session-answer {target.id} --option {shlex.quote(asked.options[0].id)}",
            facts={"sessionId": target.id},
        )
    return Answer(wanted)


def _answer_of(target: Target, request: Request, text: str | None) -> Answer:
    """In the form that the Session takes. Raises: UNSUPPORTED_CAPABILITY for a yes that nobody knows."""
    assert target.facts.record is not None and target.facts.record.question is not None
    asked = target.facts.record.question
    if asked.options:
        return _option_of(target, request, asked)
    if text is not None:
        return Answer(text=text)
    if request.option is not None:
        return Answer(keys=_option_keys(request.option))
    keys = asked.allow if request.allow else asked.deny
    if not keys:
        shown = joined_lines(asked.text)
        raise GraphError(
            "UNSUPPORTED_CAPABILITY",
            f"What {'--allow' if request.allow else '--deny'} would press in this {asked.kind} dialog of Session "
            f"{target.id} is not known, and it is never guessed: choose with --option KEYS, such as --option 2 or "
            f"--option 'Down Enter'. It shows: {shown}",
            kept="the Session; nothing was typed",
            next=f"{PROGRAM} session-inspect {target.id} --screen",
            facts={"sessionId": target.id},
        )
    return Answer(keys=keys)


def _option_keys(option: str) -> tuple[str, ...]:
    """A number is typed as it is; anything else is named keys, such as "Down Enter"."""
    if option.isascii() and option.isdigit() and len(option) <= 2:
        return tuple(option)
    return tuple(option.split())
