"""What becomes of one Session's turns: (state, input) → (state, effects). Pure, and the only reader of the table.

Rule: every input is decided at once, in the order in which it comes. The problem this causes: what follows from it (an
answer to the agent, a write) takes time, and more may happen meanwhile. Next rule: effects are values that somebody
carries out later, and every input says which process and which turn it is about, so that what comes late is seen to be
late.

A fact that comes before the driver has taken the turn is held until it has; if it does not take it, nobody ever hears
of it.
"""

from typing import assert_never

from coordinate_agents.sessions.model import SessionEnd, TurnFacts
from coordinate_agents.sessions.turns.inputs import (
    Abandon,
    Accepted,
    Beat,
    Cancel,
    Close,
    Closed,
    Dispose,
    Effect,
    Finish,
    Finished,
    Illegal,
    Input,
    Lost,
    Opened,
    Overdue,
    PermissionOverdue,
    ProcessGone,
    ProcessKnown,
    ProcessWanted,
    Reap,
    Record,
    Refused,
    Reported,
    Resolve,
    SendAnswer,
    SendCancel,
    Step,
    TakenOver,
    Tell,
    TellExit,
    Turns,
    Validated,
    Withdrawn,
)
from coordinate_agents.sessions.turns.model import (
    CANCELLED,
    Completed,
    ExternalSession,
    ExternalSessionNamed,
    Fact,
    Failed,
    Payload,
    Permission,
    PermissionAsked,
    PermissionInvalidated,
    PermissionRequested,
    PermissionWithdrawn,
    Printed,
    ProcessExited,
    RequestId,
    Stdout,
    TurnCompleted,
    TurnFailed,
    TurnId,
    TurnOutcome,
    Update,
    Updated,
)
from coordinate_agents.sessions.turns.states import LISTENING, TRANSITIONS, Trigger


def step(turns: Turns, what: Input) -> Step:
    """What the Session becomes, and what is to be done. Raises: Illegal for a request that the state does not allow."""
    match what:
        case Opened():
            return _to(turns, "open"), ()
        case Validated(turn):
            return _validated(turns, turn), (Record(),)
        case Withdrawn():
            return _to(turns, "withdrawn"), ()
        case ProcessWanted():
            return turns._replace(process=turns.processes + 1, processes=turns.processes + 1), ()
        case ProcessKnown(stays, exit_completes):
            return turns._replace(stays=stays, exit_completes=exit_completes), ()
        case ProcessGone():
            return turns._replace(process=0), ()
        case TakenOver(turn):
            return _taken_over(turns, turn)
        case Lost(request):
            return _lost(turns, request)
        case Beat(progress):
            return _told(turns, progress, Record())
        case Accepted():
            return _accepted(turns)
        case Refused():
            return _to(turns, "refused", held=()), (Close(),)
        case Cancel(turn):
            return _stopped(turns, turn, "cancel")
        case Abandon(turn):
            return _stopped(turns, turn, "abandon")
        case Overdue(turn):
            return (_to(turns, "overdue"), (Close(),)) if _is_stopping(turns, turn) else (turns, ())
        case Dispose():
            return _disposed(turns)
        case Closed():
            return _closed(turns, what)
        case Resolve(request):
            return _resolved(turns, request)
        case PermissionOverdue(request):
            return _taken_back(turns, request, "overdue", answers=True)
        case Reported(process, fact):
            return _reported(turns, fact) if process == turns.process != 0 else (turns, ())
        case Finished(facts):
            return _finished(turns, facts)
        case _:
            assert_never(what)


def outcome_event(outcome: TurnOutcome) -> Payload | None:
    """The terminal event; None for a turn that somebody replaced."""
    match outcome.kind:
        case "completed":
            return Completed(outcome.stop_reason)
        case "cancelled":
            return Completed("cancelled")
        case "failed":
            return Failed(outcome.code, outcome.message)
        case "abandoned":
            return None
        case _:
            assert_never(outcome.kind)


# --- requests


def _to(turns: Turns, trigger: Trigger, **changes: object) -> Turns:
    """Raises: Illegal."""
    following = TRANSITIONS[turns.state].get(trigger)
    if following is None:
        raise Illegal(turns.state, trigger)
    return turns._replace(state=following, **changes)  # type: ignore[arg-type]


def _validated(turns: Turns, turn: TurnId) -> Turns:
    fresh = {
        "seq": 0,
        "pending": (),
        "settled": frozenset(),
        "has_begun": False,
        "is_replaced": False,
        "held": (),
        "outcome": None,
        "end": None,
    }
    return _to(turns, "validated", generation=turns.generation + 1, turn=turn, **fresh)


def _taken_over(turns: Turns, turn: TurnId) -> Step:
    """It runs, as far as is known; where its process has ended meanwhile, that was its end."""
    generation = turns.generation if turns.turn == turn else turns.generation + 1
    running = _to(turns, "taken over", generation=generation, turn=turn, outcome=None, has_begun=True)
    if running.process or running.end is None:
        return running, (Record(),)
    outcome = _outcome_of_exit(turn, running.end, running.exit_completes)
    after, effects = _ended(running, outcome, "exited")
    return after, (Record(), *effects)


def _lost(turns: Turns, request: RequestId) -> Step:
    after = turns._replace(settled=turns.settled | {request})
    if turns.turn is None:
        return after, (Record(),)
    return _told(after, PermissionInvalidated(request, "lost"), Record())


def _accepted(turns: Turns) -> Step:
    """The driver has it: what came before is heard now, in its order."""
    held, assumed = turns.held, _to(turns, "accepted", has_begun=True, held=())
    effects: tuple[Effect, ...] = (Record(),)
    if assumed.state in ("cancelling", "abandoning"):
        assert assumed.turn is not None
        effects += (SendCancel(assumed.turn),)  # asked for before there was anybody to be told
    for fact in held:
        assumed, more = _reported(assumed, fact)
        effects += more
    return assumed, effects


def _is_stopping(turns: Turns, turn: TurnId) -> bool:
    return turns.turn == turn and turns.state in ("cancelling", "abandoning")


def _stopped(turns: Turns, turn: TurnId, trigger: Trigger) -> Step:
    """Asked to stop. Of another turn than the present one nothing is sent, nor a second time."""
    if turns.turn != turn or trigger not in TRANSITIONS[turns.state]:
        return turns, ()
    was_stopping = turns.state == "cancelling"
    asked = turns._replace(is_replaced=turns.is_replaced or trigger == "abandon")
    after, effects = _settle_all(_to(asked, trigger), "cancelled")
    if turns.has_begun and not was_stopping:
        effects += (SendCancel(turn),)
    return after, (*effects, Record())


def _disposed(turns: Turns) -> Step:
    after, effects = _settle_all(_to(turns, "dispose"), "cancelled")
    return after._replace(held=()), (*effects, Close())


def _closed(turns: Turns, what: Closed) -> Step:
    is_gone = what.is_sure and not what.survivors
    left = turns._replace(is_tree_left=not is_gone, process=0 if is_gone else turns.process)
    if not turns.has_begun or turns.turn is None:
        # Of a Session that never had a turn there is nothing to record.
        effects = (Record(),) if turns.turn is not None else ()
        return _to(left, "tree gone" if is_gone else "tree left", has_begun=False), effects
    decided = TurnOutcome(turns.turn, "abandoned" if turns.is_replaced else "cancelled", "cancelled", end=turns.end)
    after = _to(left, "tree gone in a turn" if is_gone else "tree left in a turn", outcome=decided)
    return after, (Finish(),)


def _resolved(turns: Turns, request: RequestId) -> Step:
    """Somebody answers it, and does so by himself. Raises: Illegal when nobody asks that, or any more."""
    if all(each.request != request for each in turns.pending):
        raise Illegal(turns.state, "answered")
    return _without(turns, request), (Record(),)


def _taken_back(turns: Turns, request: RequestId, reason: str, *, answers: bool) -> Step:
    if all(each.request != request for each in turns.pending):
        return turns, ()
    after, told = _tell(_without(turns, request), PermissionInvalidated(request, reason))
    return after, (*((SendAnswer(request, CANCELLED),) if answers else ()), told, Record())


def _without(turns: Turns, request: RequestId) -> Turns:
    left = tuple(each for each in turns.pending if each.request != request)
    settled = turns.settled | {request}
    return _to(turns, "answered" if left else "answered the last", pending=left, settled=settled)


def _settle_all(turns: Turns, reason: str) -> Step:
    """Every pending permission is answered "cancelled", once, and told to be of no use any more."""
    effects: tuple[Effect, ...] = ()
    pending = turns.pending
    settled = turns.settled | {each.request for each in pending}
    turns = turns._replace(pending=(), settled=settled)
    for each in pending:
        turns, told = _tell(turns, PermissionInvalidated(each.request, reason))
        effects += (SendAnswer(each.request, CANCELLED), told)
    return turns, effects


# --- facts


def _reported(turns: Turns, fact: Fact) -> Step:
    """A fact of the living process. Of another turn, or after the end of this one: dropped."""
    if turns.state in ("starting", "cancelling", "abandoning") and not turns.has_begun:
        return turns._replace(held=(*turns.held, fact)), ()
    match fact:
        case ProcessExited(end):
            return _exited(turns, end)
        case PermissionRequested(permission):
            return _asked(turns, permission)
        case PermissionWithdrawn(request):
            return _taken_back(turns, request, "withdrawn", answers=False)
        case ExternalSessionNamed(name):
            return _named(turns, name)
        case Printed(cursor, text, _):
            # What is printed while the tree is ended still belongs to the turn.
            if turns.state in LISTENING or (turns.state == "disposing" and turns.has_begun):
                return _told(turns, Stdout(cursor, text), Record(at_once=False))
            return turns, ()
        case Updated(turn, kind, fields):
            told = Update(kind, fields)
            return _told(turns, told, Record(at_once=False)) if _is_heard(turns, turn) else (turns, ())
        case TurnCompleted(turn, stop_reason):
            return _ended(turns, TurnOutcome(turn, "completed", stop_reason), "completed")
        case TurnFailed(turn, code, message):
            return _ended(turns, TurnOutcome(turn, "failed", code=code, message=message), "failed")
        case _:
            assert_never(fact)


def _is_heard(turns: Turns, turn: TurnId) -> bool:
    return turns.turn == turn and turns.state in LISTENING


def _tell(turns: Turns, event: Payload) -> tuple[Turns, Tell]:
    assert turns.turn is not None
    seq = turns.seq + 1
    return turns._replace(seq=seq), Tell(turns.turn, seq, event)


def _told(turns: Turns, event: Payload, *more: Effect) -> Step:
    after, told = _tell(turns, event)
    return after, (told, *more)


def _named(turns: Turns, name: str) -> Step:
    if turns.external_sessions[-1:] == (name,):
        return turns, ()
    # The newest of each name counts, in order of arrival.
    known = (*(each for each in turns.external_sessions if each != name), name)
    named = turns._replace(external_sessions=known)
    if turns.state in LISTENING:
        return _told(named, ExternalSession(name), Record())
    return named, (Record(),)


def _asked(turns: Turns, permission: Permission) -> Step:
    """Pending, or answered "cancelled" at once where nobody could or should answer it."""
    request = permission.request
    if request in turns.settled or any(each.request == request for each in turns.pending):
        return turns, ()
    is_open = permission.turn == turns.turn and turns.state in ("running", "awaiting-permission")
    if not is_open or not permission.options:
        return turns._replace(settled=turns.settled | {request}), (SendAnswer(request, CANCELLED),)
    asked = _to(turns, "permission", pending=(*turns.pending, permission))
    return _told(asked, PermissionAsked(permission), Record())


def _exited(turns: Turns, end: SessionEnd) -> Step:
    """A fact about the process; the end of the turn only when nothing else was said before."""
    told = TellExit(turns.process, end)
    gone = turns._replace(process=0, is_tree_left=bool(end.survivors), end=end)
    if turns.state == "idle" and end.survivors:
        return _to(gone, "tree left"), (told, Record())
    if turns.turn is None or turns.state not in LISTENING:
        return gone, (told,)
    outcome = _outcome_of_exit(turns.turn, end, turns.exit_completes)
    after, effects = _ended(gone, outcome, "exited")
    return after, (told, *effects)


def _outcome_of_exit(turn: TurnId, end: SessionEnd, exit_completes: bool) -> TurnOutcome:
    if end.cause == "exit" and end.exit_code == 0 and exit_completes:
        return TurnOutcome(turn, "completed", "exit", end=end)
    if end.cause == "exit":
        how = f"signal {end.signal}" if end.signal is not None else f"exit code {end.exit_code}"
        return TurnOutcome(turn, "failed", code="AGENT_EXIT_NONZERO", message=f"its process ended: {how}", end=end)
    return TurnOutcome(turn, "failed", code="SESSION_NOT_HEALTHY", message=end.error or end.cause, end=end)


def _ended(turns: Turns, outcome: TurnOutcome, trigger: Trigger) -> Step:
    """The first end of the turn counts; whoever asked it to stop decided what it is called."""
    if not _is_heard(turns, outcome.turn):
        return turns, ()
    if turns.state == "abandoning":
        outcome = outcome._replace(kind="abandoned")
    elif turns.state == "cancelling" or (outcome.kind == "completed" and outcome.stop_reason == "cancelled"):
        outcome = outcome._replace(kind="cancelled", stop_reason="cancelled")
    after, effects = _settle_all(_to(turns, trigger, outcome=outcome), "ended")
    return after, (*effects, Finish())


def _finished(turns: Turns, facts: TurnFacts | None) -> Step:
    assert turns.outcome is not None
    outcome = turns.outcome if facts is None else turns.outcome._replace(facts=facts)
    trigger: Trigger = "finished, tree left" if turns.is_tree_left else "finished"
    after = _to(turns, trigger, outcome=outcome, has_begun=False)
    effects: tuple[Effect, ...] = ()
    event = outcome_event(outcome)
    if event is not None:
        after, told = _tell(after, event)
        effects += (told,)
    if after.process and not after.stays:
        effects += (Reap(after.process),)
    return after, effects
