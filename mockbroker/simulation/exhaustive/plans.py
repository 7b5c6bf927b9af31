"""How deep each machine is explored: quickly, as the tests do it, and in full."""

from __future__ import annotations

from typing import NamedTuple

from mockbroker.simulation.exhaustive.classic_group import ClassicGroupWorld
from mockbroker.simulation.exhaustive.consumer_group import ConsumerGroupWorld
from mockbroker.simulation.exhaustive.explorer import Exploration, explore
from mockbroker.simulation.exhaustive.fetch_sessions import FetchSessionsWorld
from mockbroker.simulation.exhaustive.replicas import (
    ReplicasByEpoch,
    ReplicasByFetch,
    ReplicasByHighWatermark,
)
from mockbroker.simulation.exhaustive.transactional_id import TransactionalIdWorld
from mockbroker.simulation.exhaustive.world import World


class Plan(NamedTuple):
    """Depths are numbers of events. One state in `settle_every` is left in peace as well.

    Of a machine that is not `sound` it is known that a violation can be found; it is explored only
    when it is asked for by name.
    """

    world: type[World]
    quick_depth: int
    full_depth: int
    settle_every: int
    sound: bool = True

    def run(self, depth: int) -> Exploration:
        return explore(self.world, depth, settle_every=self.settle_every)


_PLANS = (
    Plan(ClassicGroupWorld, 3, 4, 200),
    Plan(ConsumerGroupWorld, 3, 4, 200),
    Plan(TransactionalIdWorld, 6, 10, 50),
    Plan(FetchSessionsWorld, 3, 4, 50),
    Plan(ReplicasByFetch, 5, 8, 100),
    Plan(ReplicasByEpoch, 5, 8, 100),
    Plan(ReplicasByHighWatermark, 3, 3, 100, sound=False),
)
PLANS: dict[str, Plan] = {plan.world.name: plan for plan in _PLANS}
