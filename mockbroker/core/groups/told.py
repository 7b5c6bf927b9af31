"""Telling the cluster's watchers that a group has another state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.events import GroupMoved

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.groups.classic import ClassicGroup
    from mockbroker.core.groups.consumer.group import ConsumerGroup
    from mockbroker.core.groups.consumer.states import GroupState
    from mockbroker.core.groups.events import Moved


def tell_classic(cluster: Cluster, group: ClassicGroup, moved: Moved) -> None:
    """A classic group has moved."""
    if cluster.on_event:
        cluster.tell(
            GroupMoved(
                cluster.now_ms(),
                group.group_id,
                moved.previous.value,
                moved.state.value,
                moved.generation,
                len(group.roster.members),
                moved.reason,
            )
        )


def tell_consumer(cluster: Cluster, group: ConsumerGroup, former: GroupState) -> None:
    """Something of a group of the new protocol has changed: its state, or just its epoch."""
    cluster.tell(
        GroupMoved(
            cluster.now_ms(),
            group.group_id,
            former.value,
            group.state.value,
            group.epoch,
            len(group.members),
            "",
            "consumer",
        )
    )
