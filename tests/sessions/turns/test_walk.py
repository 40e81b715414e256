"""Random interleavings of everything that can happen to one Session's turns; what is promised holds at every step.

Starts, follow-ups, cancels, closes, answers, exits, late and doubled facts, slow and failing drivers and disks, and a
shutdown at the end. The driver is scripted; time is moved by hand.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from turn_script import SPEC, S, Script, ScriptedDriver, all_blocked, asks, refusal

from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.turns.model import (
    TERMINAL,
    Answer,
    ExternalSessionNamed,
    PermissionWithdrawn,
    Printed,
    RequestId,
    TurnCompleted,
    TurnFailed,
    TurnId,
)
from coordinate_agents.sessions.turns.states import LISTENING

POINTS = ("validate", "open", "opened", "begin", "cancel", "answer", "rest", "close")
numbers = st.integers(0, 3)


class Walk(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.tasks: list[asyncio.Task[None]] = []
        self.requests = 0
        self.printed = 0
        # Those that somebody has to answer: they came from the living process while its turn was heard.
        self.owed: set[str] = set()

    @initialize(stays=st.booleans())
    def begin(self, stays: bool) -> None:
        self.script = Script(ScriptedDriver(stays=stays))
        self.driver, self.turns = self.script.driver, self.script.turns
        self.leave = asyncio.Event()
        self.main = self.loop.create_task(self._hold_open())
        self._settle()

    async def _hold_open(self) -> None:
        async with self.turns:
            await self.leave.wait()

    # --- what is asked for

    @rule(replaces=st.booleans(), is_wanted=st.sampled_from((True, True, True, False)))
    def start(self, replaces: bool, is_wanted: bool) -> None:
        replacing = self._present() if replaces else None
        self._do(self.turns.start_turn(S, SPEC, replacing=replacing, is_wanted=lambda: is_wanted))

    @rule(back=numbers)
    def cancel(self, back: int) -> None:
        self._do(self.turns.cancel_turn(S, self._turn(back)))

    @rule(back=numbers)
    def abandon(self, back: int) -> None:
        self._do(self.turns.abandon_turn(S, self._turn(back)))

    @rule()
    def dispose(self) -> None:
        self._do(self.turns.dispose_session(S))

    @rule(back=numbers)
    def wait(self, back: int) -> None:
        self._do(self.turns.wait_for_turn(S, self._turn(back)))

    @rule(back=numbers, option=st.sampled_from(("yes", None)))
    def resolve(self, back: int, option: str | None) -> None:
        request = RequestId(f"r{max(1, self.requests - back)}")
        self._do(self.turns.resolve_permission(S, request, Answer(option)))

    # --- what happens

    @rule(back=numbers, word=st.sampled_from(("completed", "failed", "cancelled")), twice=st.booleans())
    def turn_ends(self, back: int, word: str, twice: bool) -> None:
        turn = self._turn(back)
        fact = TurnFailed(turn, "X", "no") if word == "failed" else TurnCompleted(turn, word)
        for _ in range(1 + twice):
            self._say(fact)

    @rule(back=numbers, is_of_process_before=st.booleans())
    def asked(self, back: int, is_of_process_before: bool) -> None:
        self.requests += 1
        self._say(asks(f"r{self.requests}", self._turn(back)), is_of_process_before=is_of_process_before)

    @rule(back=numbers)
    def withdrawn(self, back: int) -> None:
        request = f"r{max(1, self.requests - back)}"
        if self._say(PermissionWithdrawn(RequestId(request))):
            self.owed.discard(request)

    @rule(is_of_process_before=st.booleans())
    def printed_more(self, is_of_process_before: bool) -> None:
        self.printed += 1
        self._say(Printed(self.printed, "x"), is_of_process_before=is_of_process_before)

    @rule(number=numbers)
    def named(self, number: int) -> None:
        self._say(ExternalSessionNamed(f"conversation-{number}"))

    @rule(code=st.sampled_from((0, 1)), survives=st.sampled_from(("", "", "7 daemon")))
    def exits(self, code: int, survives: str) -> None:
        if self.driver.living[S]:
            self._in_loop(lambda: self.driver.exits(code, *([survives] if survives else [])))

    # --- what goes wrong

    @rule(point=st.sampled_from(POINTS))
    def slow(self, point: str) -> None:
        if not self.driver.points.is_held(point):
            self.driver.points.hold(point)

    @rule(point=st.sampled_from(POINTS))
    def goes_on(self, point: str) -> None:
        if self.driver.points.is_held(point):
            self.driver.points.let_go(point)
            self._settle()

    @rule(point=st.sampled_from(("validate", "open", "begin", "cancel", "answer", "rest", "close")))
    def fails(self, point: str) -> None:
        self.driver.fail[point] = [refusal()]

    @rule()
    def survives(self) -> None:
        self.driver.left = [("7 daemon",)]

    @rule(is_slow=st.booleans())
    def disk(self, is_slow: bool) -> None:
        points = self.script.records.points
        if points.is_held("save"):
            points.let_go("save")
        elif is_slow:
            points.hold("save")
        else:
            self.script.records.fail = [OSError("full")]
        self._settle()

    @rule(seconds=st.sampled_from((1.0, 6.0, 16.0)))
    def time_passes(self, seconds: float) -> None:
        self.loop.run_until_complete(self.script.clock.advance(seconds))
        self._settle()

    # --- what holds

    @invariant()
    def promises(self) -> None:
        if not hasattr(self, "script"):
            return
        seen: list[TurnId] = []
        ended: set[TurnId] = set()
        counted: Counter[TurnId] = Counter()
        for each in self.script.events:
            assert each.turn not in ended, "nothing after the end of a turn"
            if each.turn not in seen:
                seen.append(each.turn)
            assert each.turn == seen[-1], "one turn at a time"
            counted[each.turn] += 1
            assert each.seq == counted[each.turn], "every event in its place"
            if isinstance(each.event, TERMINAL):
                ended.add(each.turn)
        assert self.driver.most_living <= 1, "one process at a time"
        answered = Counter(request for request, _ in self.driver.answers)
        assert set(answered.values()) <= {1}, "every permission is answered once"
        generations = [record.generation for record in self.script.records.written]
        assert generations == sorted(generations), "newer wins"

    def teardown(self) -> None:
        if hasattr(self, "script"):
            self._shut_down()
        self.loop.close()

    def _shut_down(self) -> None:
        self.driver.fail.clear()
        self.driver.left, self.script.records.fail = [], []
        for points in (self.driver.points, self.script.records.points):
            for name in [name for name in (*POINTS, "save") if points.is_held(name)]:
                points.let_go(name)
        self._do(self.turns.destroy_all())
        self._do(self.turns.destroy_all())  # what a close left is tried again
        self._settle()
        assert all(task.done() for task in self.tasks), "whoever waits is released"
        assert self.driver.living[S] == 0, "no process is left"
        answered = {request for request, _ in self.driver.answers}
        assert self.owed <= answered, "every permission is answered"
        stored = self.script.records.stored.get(S)
        assert stored is None or (stored.state, stored.pending) == ("idle", ()), "the record says what is so"
        self.promises()
        self.leave.set()
        self.loop.run_until_complete(self.main)

    # --- helpers

    def _do(self, work: Coroutine[Any, Any, object]) -> None:
        async def quietly() -> None:
            try:
                await work
            except (SessionError, OSError):
                return

        self.tasks.append(self.loop.create_task(quietly()))
        self._settle()

    def _say(self, fact: Any, *, is_of_process_before: bool = False) -> bool:
        """Whether somebody was there to say it."""
        processes = len(self.driver.reports[S])
        number = processes - 1 if is_of_process_before else processes
        if number < 1 or (number == processes and not self.driver.living[S]):
            return False
        turns = self.turns._carrier.lives[S].turns
        is_heard = number == processes and turns.state in LISTENING and turns.has_begun
        if is_heard and hasattr(fact, "permission"):
            self.owed.add(fact.permission.request)
        self._in_loop(lambda: self.driver.say(fact, process=number))
        return is_heard

    def _turn(self, back: int) -> TurnId:
        """The present turn, or an earlier one."""
        live = self.turns._carrier.lives.get(S)
        return TurnId(f"t{max(1, (live.turns.generation if live else 1) - back)}")

    def _present(self) -> TurnId | None:
        return self._turn(0) if self.turns.has_active_turn(S) else None

    def _in_loop(self, act: Callable[[], None]) -> None:
        async def inside() -> None:
            act()
            await all_blocked()

        self.loop.run_until_complete(inside())

    def _settle(self) -> None:
        self.loop.run_until_complete(all_blocked())


TestWalk = Walk.TestCase
TestWalk.settings = settings(max_examples=60, stateful_step_count=30)
