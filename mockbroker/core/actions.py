"""What people, tests and rules may do to a cluster, as methods of `Cluster`.

The functions are where they belong: `interventions` for brokers and the network between them,
`partition_interventions` for leaders, followers and watermarks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from mockbroker.core import interventions, partition_interventions

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster

P = ParamSpec("P")
R = TypeVar("R")


def _caused(
    action: Callable[Concatenate[Cluster, P], R],
) -> Callable[Concatenate[Cluster, P], R]:
    """The action; what it leads to at once names it as the cause, unless a rule asked for it."""

    @wraps(action)
    def carried_out(cluster: Cluster, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if cluster.cause:
            return action(cluster, *args, **kwargs)
        cluster.cause = action.__name__
        try:
            return action(cluster, *args, **kwargs)
        finally:
            cluster.cause = ""

    return carried_out


class Actions:
    """The base of `Cluster` that holds its actions."""

    stop_broker = _caused(interventions.stop_broker)
    start_broker = _caused(interventions.start_broker)
    pause_broker = _caused(interventions.pause_broker)
    resume_broker = _caused(interventions.resume_broker)
    add_broker = _caused(interventions.add_broker)
    remove_broker = _caused(interventions.remove_broker)
    set_rack = _caused(interventions.set_rack)
    fail_log_dir = _caused(interventions.fail_log_dir)
    cut_network = _caused(interventions.cut_network)
    delay_network = _caused(interventions.delay_network)
    heal_network = _caused(interventions.heal_network)
    move_leader = _caused(partition_interventions.move_leader)
    drop_leader = _caused(partition_interventions.drop_leader)
    shuffle_leaders = _caused(partition_interventions.shuffle_leaders)
    elect_unclean = _caused(partition_interventions.elect_unclean)
    lag_follower = _caused(partition_interventions.lag_follower)
    release_follower = _caused(partition_interventions.release_follower)
    shrink_isr = _caused(partition_interventions.shrink_isr)
    hold_high_watermark = _caused(partition_interventions.hold_high_watermark)
    release_high_watermark = _caused(partition_interventions.release_high_watermark)
    move_coordinator = _caused(interventions.move_coordinator)
    unload_coordinator = _caused(interventions.unload_coordinator)
    set_high_watermark = _caused(partition_interventions.set_high_watermark)
