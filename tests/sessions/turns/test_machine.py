"""The table of states and the machine that reads it."""

from typing import get_args

import pytest
from turn_script import T1, T2, asks, end

from coordinate_agents.sessions.turns import inputs
from coordinate_agents.sessions.turns.inputs import Illegal, Reported, Turns
from coordinate_agents.sessions.turns.machine import step
from coordinate_agents.sessions.turns.model import ProcessExited, TurnCompleted, TurnState
from coordinate_agents.sessions.turns.states import TRANSITIONS, Trigger

RUNNING = Turns(state="running", generation=1, turn=T1, process=1, processes=1, stays=True, has_begun=True)
EXIT = ProcessExited(end(0))


def test_every_state_and_trigger_is_in_the_table_and_every_state_can_be_reached_and_left() -> None:
    assert set(TRANSITIONS) == set(get_args(TurnState))
    assert {trigger for row in TRANSITIONS.values() for trigger in row} == set(get_args(Trigger))
    reached, new = {"idle"}, {"idle"}
    while new:
        new = {after for state in new for after in TRANSITIONS[state].values()} - reached  # type: ignore[index]
        reached |= new
    assert reached == set(get_args(TurnState))
    assert all(set(row.values()) - {state} for state, row in TRANSITIONS.items())


def test_a_request_that_the_state_does_not_allow_is_illegal_and_a_fact_is_dropped() -> None:
    with pytest.raises(Illegal):
        step(RUNNING, inputs.Opened())
    assert step(RUNNING, inputs.Cancel(T2)) == (RUNNING, ())
    assert step(RUNNING, Reported(1, TurnCompleted(T2, "end_turn"))) == (RUNNING, ())
    assert step(RUNNING, Reported(2, TurnCompleted(T1, "end_turn"))) == (RUNNING, ())


def test_a_process_that_has_to_say_when_a_turn_ends_has_not_done_so_by_exit_code_0() -> None:
    turns, _ = step(RUNNING, inputs.ProcessKnown(stays=True, exit_completes=False))
    ended, _ = step(turns, Reported(1, EXIT))
    assert ended.outcome is not None
    assert (ended.outcome.kind, ended.outcome.end) == ("failed", EXIT.end)


def test_a_turn_that_was_taken_over_after_its_process_ended_has_ended_with_it() -> None:
    idle = Turns(process=1, processes=1)
    gone, _ = step(idle, Reported(1, EXIT))
    after, effects = step(gone, inputs.TakenOver(T1))
    assert (after.state, after.outcome is not None and after.outcome.kind) == ("finishing", "completed")
    assert inputs.Finish() in effects


def test_a_permission_of_a_turn_that_is_only_starting_waits_until_the_agent_has_it() -> None:
    starting = Turns(state="starting", turn=T1, process=1, processes=1)
    held, effects = step(starting, Reported(1, asks("r1")))
    assert effects == ()
    running, _ = step(held, inputs.Accepted())
    assert (running.state, len(running.pending)) == ("awaiting-permission", 1)
