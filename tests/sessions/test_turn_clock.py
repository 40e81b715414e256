"""When the deadlines of a turn pass, in plain numbers."""

from coordinate_agents.sessions.host.limits import Limits
from coordinate_agents.sessions.host.turnclock import TurnClock


def _clock(timeout_s: float | None, idle_timeout_s: float | None = None) -> TurnClock:
    limits = Limits(timeout_s=timeout_s, idle_timeout_s=idle_timeout_s, stop_on_idle=False, close_bound_s=1.0)
    return TurnClock(limits, 100.0)


def test_a_longer_limit_counts_from_the_beginning_of_the_turn() -> None:
    clock = _clock(30.0)
    clock.pause(True, 110.0)
    clock.pause(False, 115.0)
    assert clock.change({"timeout_s": 60.0}, 120.0) is False
    assert (clock.due(135.0), clock.due(164.9), clock.due(165.0)) == ("", "", "timeout")
    clock.change({"timeout_s": 10.0}, 120.0)
    assert clock.due(120.0) == "timeout"


def test_a_stalled_turn_is_stalled_no_more_when_it_may_be_silent_for_longer() -> None:
    clock = _clock(None, 10.0)
    assert clock.due(110.0) == "stalled"
    clock.is_stalled = True
    assert clock.change({"idle_timeout_s": 15.0}, 120.0) is False
    assert clock.change({"idle_timeout_s": 60.0, "on_idle": "stop"}, 120.0) is True
    clock.is_stalled = False
    assert (clock.due(159.0), clock.due(160.0)) == ("", "idle")


def test_what_may_be_idle_between_turns_is_no_turns_limit() -> None:
    clock = _clock(30.0)
    clock.set_turn({"is_over": True, "timeout_s": 600.0}, 110.0)
    assert clock.change({"timeout_s": 1.0}, 200.0) is False
    assert (clock.due(200.0), clock.due(710.0)) == ("", "unused")
