"""Random verbs, moods and deaths: after each step the promises hold, and well-behaved agents come to the whole end.

`fixtures/scripts/run_faults.py walk SEED` repeats one; a failure prints its seed and what was done.
"""

import pytest
from walk import Walk
from world import World

pytestmark = [pytest.mark.story, pytest.mark.timeout(240)]

STEPS = 5
SEEDS = (5, 9)


@pytest.mark.parametrize("seed", SEEDS)
def test_after_random_verbs_and_deaths_nothing_is_lost_and_the_work_is_finished(world: World, seed: int) -> None:
    walk = Walk(world, seed)
    for _ in range(STEPS):
        walk.step()
    walk.finish()
