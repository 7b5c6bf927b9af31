"""The controller: the states of partitions and replicas, and their past transitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.events import (
    ControllerChanged,
    Event,
    PartitionsMoved,
    ReplicasMoved,
    TopicsChanged,
)

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.replication.partition import Partition


class PartitionStateView(msgspec.Struct, frozen=True):
    """The state of a partition and of its replicas, `replicas` by broker id."""

    topic: str
    partition: int
    state: str
    leader_id: int
    leader_epoch: int
    replicas: dict[int, str]


class ControllerView(msgspec.Struct, frozen=True):
    """The active controller, -1 without one, and its partitions."""

    node_id: int
    epoch: int
    partitions: list[PartitionStateView]


class StateChangeView(msgspec.Struct, frozen=True, omit_defaults=True):
    """A past change at `at_ms`; `what` is its kind.

    A "partition" or "replica" went from the state `former` to `state`. "topics" were `created` with
    an `assignment` of replicas, or `deleted`. `node_id` became the "controller" with an `epoch`.
    """

    at_ms: int
    what: str
    topic: str | None = None
    partitions: tuple[int, ...] = ()
    node_id: int | None = None
    former: str | None = None
    state: str | None = None
    epoch: int | None = None
    created: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    assignment: dict[str, tuple[int, ...]] = {}


def controller_view(cluster: Cluster, topic: str | None = None) -> ControllerView:
    """The current states of all partitions, or of those of one topic."""
    return ControllerView(
        node_id=cluster.controller_id,
        epoch=cluster.controller.epoch,
        partitions=[
            _partition(cluster, each)
            for name in sorted(cluster.topics)
            if topic in (None, name)
            for each in cluster.topics[name].partitions
        ],
    )


def _partition(cluster: Cluster, partition: Partition) -> PartitionStateView:
    return PartitionStateView(
        topic=partition.topic.name,
        partition=partition.index,
        state=cluster.states.partition(partition).value,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replicas={
            node_id: cluster.states.replica(partition, node_id).value
            for node_id in partition.replicas
        },
    )


def state_changes(cluster: Cluster, topic: str | None, limit: int) -> list[StateChangeView]:
    """The last `limit` changes, of all topics or of one, the oldest first."""
    found = [
        view
        for view in map(_change, cluster.states.history)
        if topic is None or topic in (view.topic, *view.created, *view.deleted)
    ]
    return found[-limit:]


def _change(event: Event) -> StateChangeView:
    if isinstance(event, ControllerChanged):
        return StateChangeView(event.at_ms, "controller", node_id=event.node_id, epoch=event.epoch)
    if isinstance(event, TopicsChanged):
        return StateChangeView(
            event.at_ms,
            "topics",
            created=tuple(each.topic for each in event.created),
            deleted=tuple(each.topic for each in event.deleted),
            assignment={
                f"{each.topic}-{index}": replicas
                for each in event.created
                for index, replicas in enumerate(each.assignment)
            },
        )
    assert isinstance(event, PartitionsMoved | ReplicasMoved)
    what, node_id = "partition", None
    if isinstance(event, ReplicasMoved):
        what, node_id = "replica", event.node_id
    return StateChangeView(
        event.at_ms,
        what,
        topic=event.topic,
        partitions=event.partitions,
        node_id=node_id,
        former=event.former,
        state=event.state,
    )
