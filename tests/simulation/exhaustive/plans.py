"""The depths to which each state machine is explored: quickly in the tests, and in full."""

from __future__ import annotations

from typing import NamedTuple

from tests.simulation.exhaustive.classic_group import ClassicGroupWorld
from tests.simulation.exhaustive.consumer_group import ConsumerGroupWorld
from tests.simulation.exhaustive.explorer import Exploration, explore
from tests.simulation.exhaustive.fetch_sessions import FetchSessionsWorld
from tests.simulation.exhaustive.replicas import (
    ReplicasByEpoch,
    ReplicasByFetch,
    ReplicasByHighWatermark,
)
from tests.simulation.exhaustive.share_partition import SharePartitionWorld
from tests.simulation.exhaustive.transactional_id import TransactionalIdWorld
from tests.simulation.exhaustive.world import ExploredWorld


class ExplorationPlan(NamedTuple):
    """Depths are numbers of events. `settle` is checked for one state in `settle_every`.

    A machine that is not `sound` has a known violation; it is explored only by name.
    """

    world: type[ExploredWorld]
    quick_depth: int
    full_depth: int
    settle_every: int
    sound: bool = True

    def run(self, depth: int) -> Exploration:
        return explore(self.world, depth, settle_every=self.settle_every)


_PLANS = (
    ExplorationPlan(ClassicGroupWorld, 3, 4, 200),
    ExplorationPlan(ConsumerGroupWorld, 3, 4, 200),
    ExplorationPlan(TransactionalIdWorld, 6, 10, 50),
    ExplorationPlan(FetchSessionsWorld, 3, 4, 50),
    ExplorationPlan(SharePartitionWorld, 4, 6, 50),
    ExplorationPlan(ReplicasByFetch, 5, 8, 100),
    ExplorationPlan(ReplicasByEpoch, 5, 8, 100),
    ExplorationPlan(ReplicasByHighWatermark, 3, 3, 100, sound=False),
)
PLANS: dict[str, ExplorationPlan] = {plan.world.name: plan for plan in _PLANS}
