"""Actions on the coordinators of groups and transactional ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from mockbroker.core.actions.partitions import move_leader, name_of
from mockbroker.core.actions.registry import action
from mockbroker.core.errors import ActionError
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from mockbroker.core.validation import Ms

if TYPE_CHECKING:
    from mockbroker.core.cluster_state import ClusterState
    from mockbroker.core.replication.partition import Partition

Kind = Literal["group", "transaction"]
COORDINATOR_TOPICS = {"group": GROUP_METADATA_TOPIC, "transaction": TRANSACTION_STATE_TOPIC}


class MoveCoordinator(msgspec.Struct, frozen=True):
    """`key` is a group, or with kind "transaction" a transactional id."""

    key: str
    node: int
    kind: Kind = "group"


class UnloadCoordinator(msgspec.Struct, frozen=True):
    """`key` is a group, or with kind "transaction" a transactional id. The load takes `load`."""

    key: str
    load_ms: Ms = msgspec.field(default=0, name="load")
    kind: Kind = "group"


class CreateInternalTopics(msgspec.Struct, frozen=True):
    """No arguments."""


class CoordinatorActions:
    """Actions on coordinators."""

    @action(CreateInternalTopics)
    @staticmethod
    def create_internal_topics(cluster: ClusterState, wanted: CreateInternalTopics) -> None:  # noqa: ARG004
        """Create the internal topics of the coordinators that do not exist yet.

        Otherwise the first FindCoordinator creates one, and its client retries.
        """
        for topic in COORDINATOR_TOPICS.values():
            cluster.ensure_internal_topic(topic)

    @action(MoveCoordinator)
    @staticmethod
    def move_coordinator(cluster: ClusterState, wanted: MoveCoordinator) -> None:
        """Move the coordinator of a group or transactional id to another broker.

        The broker becomes the leader of the key's partition of the internal topic, so it must be in
        the ISR. All keys of the partition move.
        """
        move_leader(cluster, _partition(cluster, wanted.key, wanted.kind), wanted.node)

    @action(UnloadCoordinator)
    @staticmethod
    def unload_coordinator(cluster: ClusterState, wanted: UnloadCoordinator) -> None:
        """Unload the coordinator's partition of a group or transactional id and load it again.

        Meanwhile clients get COORDINATOR_LOAD_IN_PROGRESS.
        """
        partition = _partition(cluster, wanted.key, wanted.kind)
        leader = cluster.brokers.get(partition.leader_id)
        if leader is None:
            raise ActionError(f"{name_of(partition)} has no leader")
        coordinator = leader.groups if wanted.kind == "group" else leader.transactions
        if not coordinator.reload(wanted.key, wanted.load_ms):
            raise ActionError(
                f"broker {leader.node_id} does not lead the partition of {wanted.key!r} in its "
                "metadata image"
            )


def _partition(cluster: ClusterState, key: str, kind: Kind) -> Partition:
    topic = COORDINATOR_TOPICS[kind]
    partition = cluster.partition(topic, cluster.find_coordinator_partition(key, topic))
    if partition is None:
        raise ActionError(f"{key!r} has no coordinator yet: there is no topic {topic}")
    return partition
