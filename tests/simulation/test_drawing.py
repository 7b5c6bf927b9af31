"""Every action of the registry is simulated, with arguments that its own schema takes."""

from __future__ import annotations

import random

import pytest

from mockbroker.core.actions import ACTIONS, parse_action
from mockbroker.simulation.drawing import Names, draw_action
from mockbroker.simulation.swarm import LEFT_OUT

NAMES = Names(
    nodes=(1, 2, 3),
    topics=("orders", "payments"),
    partitions_max=3,
    groups=("g",),
    transactional_ids=("tx-1",),
    instance_ids=("static-1",),
    client_ids=("producer-0",),
)


@pytest.mark.parametrize("name", sorted(set(ACTIONS) - LEFT_OUT))
def test_arguments_of_an_action_can_be_drawn(name: str) -> None:
    rng = random.Random(name)
    for _ in range(50):
        data = draw_action(name, NAMES, rng)
        assert data is not None
        parse_action(name, data)


def test_where_there_is_nothing_to_name_nothing_is_drawn() -> None:
    nobody = NAMES._replace(groups=())
    assert draw_action("rebalance_group", nobody, random.Random(1)) is None
