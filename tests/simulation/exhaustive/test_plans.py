"""Every machine, as deep as is quick: nothing is violated, and the published counts are right."""

from __future__ import annotations

import pytest

from tests.house.lint import ROOT
from tests.simulation.exhaustive.counts import read_counts
from tests.simulation.exhaustive.plans import PLANS

COUNTS = ROOT / "docs" / "_data" / "exhaustive.json"
SOUND = [name for name, plan in PLANS.items() if plan.sound]


@pytest.mark.parametrize("name", SOUND)
def test_no_order_of_a_few_events_violates_anything(name: str):
    """The levels are those that the full exploration has left (`make exhaustive`)."""
    plan = PLANS[name]
    done = plan.run(plan.quick_depth)
    assert done.counterexample is None, str(done.counterexample)
    counts = read_counts(COUNTS)[name]
    assert counts.depth == plan.full_depth
    assert counts.levels[: plan.quick_depth + 1] == done.levels
    assert done.settled > 0


def test_counts_are_published_of_those_machines_and_no_others():
    assert sorted(read_counts(COUNTS)) == sorted(SOUND)


@pytest.mark.parametrize("name", PLANS)
def test_each_event_that_may_come_is_one_that_the_world_knows(name: str):
    world = PLANS[name].world
    for beginning in world.beginnings:
        for event in world.begin(beginning).events():
            assert callable(getattr(world, f"on_{event[0]}"))
