"""Plans for real brokers ask for nothing that those cannot do."""

from __future__ import annotations

import pytest

from mockbroker.simulation.plan import CRASH_CLIENT, check
from tests.support.real_plans import BROKERS, real_plan

DOWN = ("stop_broker", "pause_broker")
UP = ("start_broker", "resume_broker")
OTHERS = ("move_leader", "delete_records", "fence_producer", CRASH_CLIENT)


@pytest.mark.parametrize("seed", range(40))
def test_one_broker_at_a_time_is_away(seed: int) -> None:
    plan = real_plan(seed)
    check(plan)
    assert plan.settings.brokers == BROKERS
    away: list[int] = []
    for step in plan.steps:
        if step.do in DOWN:
            away.append(step.arguments["node"])
        elif step.do in UP:
            away.remove(step.arguments["node"])
        else:
            assert step.do in OTHERS
        assert len(away) <= 1


def test_plans_are_the_same_each_time_and_differ_by_seed() -> None:
    assert real_plan(3) == real_plan(3)
    assert real_plan(3).steps != real_plan(4).steps


def test_names_tell_plans_apart() -> None:
    """One cluster runs many plans, and none finds what another has left."""
    names = [{topic.name for topic in real_plan(seed).settings.topics} for seed in (1, 2)]
    assert names[0].isdisjoint(names[1])
    groups = [{client.group for client in real_plan(seed).clients} - {""} for seed in (1, 2)]
    assert groups[0].isdisjoint(groups[1])
