"""The group coordinator of one broker (see `coordinator.runtime`): its settings, its upkeep.

Source: GroupCoordinatorService.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.coordinator.runtime import CoordinatorRuntime
from mockbroker.core.groups.classic import GroupSettings
from mockbroker.core.groups.consumer.topics import ClusterTopics
from mockbroker.core.groups.expiry_rounds import ExpiryRounds
from mockbroker.core.groups.shard import GroupShard
from mockbroker.core.topic import GROUP_METADATA_TOPIC

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.partition import Partition
    from mockbroker.core.presence import Presence
    from mockbroker.core.topic import Topic


class GroupCoordinator(CoordinatorRuntime[GroupShard]):
    """The groups that broker `broker_id` coordinates."""

    __slots__ = (
        "_expiry",
        "offset_metadata_max",
        "session_timeout_max_ms",
        "session_timeout_min_ms",
        "settings",
        "topics",
    )

    topic_name = GROUP_METADATA_TOPIC
    reads_when_asked = True

    def __init__(self, cluster: Cluster, broker_id: int) -> None:
        super().__init__(cluster, broker_id)
        config = cluster.config_int
        self.settings = GroupSettings(
            initial_rebalance_delay_ms=config("group.initial.rebalance.delay.ms"),
            size_max=config("group.max.size"),
        )
        self.session_timeout_min_ms = config("group.min.session.timeout.ms")
        self.session_timeout_max_ms = config("group.max.session.timeout.ms")
        self.offset_metadata_max = config("offset.metadata.max.bytes")
        self.topics: ClusterTopics = ClusterTopics(cluster.processes[broker_id])
        self._expiry: ExpiryRounds | None = None
        cluster.on_topic_deleted.append(self._on_topic_deleted)

    def new_shard(self, partition: Partition) -> GroupShard:
        return GroupShard(self, partition)

    def begin(self, shard: GroupShard) -> None:
        if self._expiry is None:
            self._expiry = ExpiryRounds(self.cluster, self.loaded)
        shard.start(self._expiry.touched)

    # ------------------------------------------------------------------------------------- upkeep

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
