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
    """`key` is a group, or with kind "transaction" a transactional id; reading the log takes
    `load`.
    """

    key: str
    load_ms: Ms = msgspec.field(default=0, name="load")
    kind: Kind = "group"


class CoordinatorActions:
    """Actions on coordinators."""

    @action(MoveCoordinator)
    @staticmethod
    def move_coordinator(cluster: ClusterState, wanted: MoveCoordinator) -> None:
        """Let another broker coordinate a group or transactional id.

        It has to be in sync on the partition of the internal topic that the key belongs to; all
        keys of that partition move.
        """
        move_leader(cluster, _partition(cluster, wanted.key, wanted.kind), wanted.node)

    @action(UnloadCoordinator)
    @staticmethod
    def unload_coordinator(cluster: ClusterState, wanted: UnloadCoordinator) -> None:
        """Let the coordinator of a group or transactional id unload its shard and load it again.

        Until that is done clients get COORDINATOR_LOAD_IN_PROGRESS.
        """
        partition = _partition(cluster, wanted.key, wanted.kind)
        leader = cluster.brokers.get(partition.leader_id)
        if leader is None:
            raise ActionError(f"{name_of(partition)} has no leader")
        coordinator = leader.groups if wanted.kind == "group" else leader.transactions
        if not coordinator.reload(wanted.key, wanted.load_ms):
            raise ActionError(
                f"broker {leader.node_id} has not heard that it coordinates {wanted.key!r}"
            )


def _partition(cluster: ClusterState, key: str, kind: Kind) -> Partition:
    topic = COORDINATOR_TOPICS[kind]
    partition = cluster.partition(topic, cluster.find_coordinator_partition(key, topic))
    if partition is None:
        raise ActionError(f"{key!r} has no coordinator yet: there is no topic {topic}")
    return partition
