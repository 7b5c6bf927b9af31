"""The group coordinator of one broker: a shard for each partition of `__consumer_offsets` it leads.

A group belongs to the partition its id hashes to, and lives on that partition's leader. A broker
that is elected reads the partition at its next turn, or as soon as somebody asks: from then on
sessions run. With `mockbroker.coordinator.load.ms` that takes a while, in which it answers
COORDINATOR_LOAD_IN_PROGRESS. Asking any other broker gives NOT_COORDINATOR.

Source: GroupCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from mockbroker.core.groups.classic import GroupSettings
from mockbroker.core.groups.consumer.topics import ClusterTopics
from mockbroker.core.groups.expiry_rounds import ExpiryRounds
from mockbroker.core.groups.loader import load
from mockbroker.core.groups.shard import GroupShard
from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker.core.topic import GROUP_METADATA_TOPIC
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.partition import Partition
    from mockbroker.core.presence import Presence
    from mockbroker.core.topic import Topic


LOAD_MS = "mockbroker.coordinator.load.ms"


class GroupCoordinator:
    """The groups that broker `broker_id` coordinates."""

    __slots__ = (
        "_cluster",
        "_expiry",
        "_shards",
        "broker_id",
        "offset_metadata_max",
        "session_timeout_max_ms",
        "session_timeout_min_ms",
        "settings",
        "topics",
    )

    def __init__(self, cluster: Cluster, broker_id: int) -> None:
        self._cluster = cluster
        self.broker_id = broker_id
        config = cluster.config_int
        self.settings = GroupSettings(
            initial_rebalance_delay_ms=config("group.initial.rebalance.delay.ms"),
            size_max=config("group.max.size"),
        )
        self.session_timeout_min_ms = config("group.min.session.timeout.ms")
        self.session_timeout_max_ms = config("group.max.session.timeout.ms")
        self.offset_metadata_max = config("offset.metadata.max.bytes")
        self.topics = ClusterTopics(cluster)
        self._shards: dict[int, GroupShard] = {}
        self._expiry: ExpiryRounds | None = None
        cluster.on_topic_deleted.append(self._on_topic_deleted)

    # --------------------------------------------------------------------------- finding shards

    def shard_of(self, group_id: str) -> GroupShard | ErrorCode:
        """The shard that holds a group, or why this broker cannot speak for the group."""
        topic = self._cluster.topics.get(GROUP_METADATA_TOPIC)
        if topic is None:
            return ErrorCode.NOT_COORDINATOR
        partitions = topic.partitions
        return self.shard(partitions[coordinator_partition(group_id, len(partitions))])

    def shard(self, partition: Partition) -> GroupShard | ErrorCode:
        """The shard of one partition: NOT_COORDINATOR elsewhere, COORDINATOR_LOAD_IN_PROGRESS
        early.
        """
        if partition.leader_id != self.broker_id:
            return ErrorCode.NOT_COORDINATOR
        shard = self._shards.get(partition.index)
        if shard is None or shard.unloaded or shard.partition is not partition:
            shard = self._open(partition, self._cluster.config_int(LOAD_MS))
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard.loading else shard

    def shards(self) -> Iterator[GroupShard | ErrorCode]:
        """Every shard of this broker, in the order of partitions."""
        topic = self._cluster.topics.get(GROUP_METADATA_TOPIC)
        for partition in topic.partitions if topic else ():
            if partition.leader_id == self.broker_id:
                yield self.shard(partition)

    # --------------------------------------------------------------------------- coming and going

    def elected(self, partition: Partition) -> None:
        """Look after the groups of a partition that this broker leads from now on."""
        if partition.log.end_offset > partition.log.start_offset:
            self._cluster.timers.call_at(self._cluster.now_ms(), partial(self._ensure, partition))

    def _ensure(self, partition: Partition) -> None:
        self.shard(partition)

    def reload(self, partition: Partition, load_ms: int) -> None:
        """Forget what is in a partition and read it anew, which takes `load_ms`."""
        shard = self._shards.get(partition.index)
        if shard is not None:
            shard.unload()
        if partition.leader_id == self.broker_id:
            self._open(partition, load_ms)

    def _open(self, partition: Partition, load_ms: int) -> GroupShard:
        shard = GroupShard(self._cluster, partition, self.broker_id, self.settings)
        self._shards[partition.index] = shard
        shard.loading = True
        if load_ms <= 0:
            self._load(shard)
        else:
            due_ms = self._cluster.now_ms() + load_ms
            self._cluster.timers.call_at(due_ms, lambda: self._load(shard))
        return shard

    def _load(self, shard: GroupShard) -> None:
        partition = shard.partition
        if self._shards.get(partition.index) is not shard or shard.unloaded or partition.deleted:
            return
        if partition.leader_id != self.broker_id:
            shard.unloaded = True
            return
        if self._expiry is None:
            self._expiry = ExpiryRounds(self._cluster, self._loaded_shards)
        load(shard, self._cluster.time_scopes.groups.now_ms())
        shard.start(self._expiry.touched)

    # ------------------------------------------------------------------------------------- upkeep

    def _loaded_shards(self) -> list[GroupShard]:
        return [each for each in self._shards.values() if not each.unloaded and not each.loading]

    def expire_offsets(self) -> None:
        """Drop what has outlived offsets.retention.minutes, and groups with nothing left."""
        if self._expiry is not None:
            self._expiry.expire_all()

    def spare_connected(self, presence: Presence, by_ms: int) -> None:
        """Let the sessions of members whose connection is open end that much later."""
        for shard in self._shards.values():
            for group_id in (*shard.groups, *shard.consumers.groups):
                spare_group(shard, group_id, presence, by_ms)

    def _on_topic_deleted(self, topic: Topic) -> None:
        for shard in self.shards():
            if isinstance(shard, GroupShard):
                shard.topic_deleted(topic.name)


def spare_group(shard: GroupShard, group_id: str, presence: Presence, by_ms: int) -> None:
    """The same for one group, if it is there."""
    group = shard.groups.get(group_id) or shard.consumers.groups.get(group_id)
    if group is not None:
        group.spare(presence.connected(group_id), by_ms, shard.now_ms(group_id))
