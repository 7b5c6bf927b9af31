"""The group coordinator of one broker (see `coordinator.runtime`): its settings, its expiration.

Source: GroupCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Protocol

from mockbroker.core.brokers.host import HostBroker
from mockbroker.core.coordinator.runtime import CoordinatorRuntime
from mockbroker.core.groups.classic import ClassicGroupSettings
from mockbroker.core.groups.expiry_schedule import ExpirySchedule
from mockbroker.core.groups.modern.topics import ClusterTopics
from mockbroker.core.groups.shard import GroupShard
from mockbroker.core.groups.topic_creations import TopicCreations
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC

if TYPE_CHECKING:
    from mockbroker.core.groups.member_connections import MemberConnections
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.share.operations import StateSender


class GroupHost(HostBroker, Protocol):
    """The broker of a group coordinator."""

    @property
    def share_persister(self) -> StateSender: ...


class GroupCoordinator(CoordinatorRuntime[GroupShard]):
    """The groups that one broker coordinates."""

    __slots__ = (
        "_expiry",
        "_host",
        "clock_domains",
        "offset_metadata_max",
        "session_timeout_max_ms",
        "session_timeout_min_ms",
        "settings",
        "topic_creations",
        "topics",
    )

    topic_name = GROUP_METADATA_TOPIC
    loads_on_request = True

    def __init__(self, broker: GroupHost) -> None:
        super().__init__(broker)
        self._host = broker
        config = self.configs.get_int
        self.settings = ClassicGroupSettings(
            initial_rebalance_delay_ms=config("group.initial.rebalance.delay.ms"),
            size_max=config("group.max.size"),
        )
        self.session_timeout_min_ms = config("group.min.session.timeout.ms")
        self.session_timeout_max_ms = config("group.max.session.timeout.ms")
        self.offset_metadata_max = config("offset.metadata.max.bytes")
        self.topics: ClusterTopics = ClusterTopics(broker)
        self.topic_creations = TopicCreations()
        self._expiry: ExpirySchedule | None = None
        self.clock_domains = broker.services.clock_domains

    @property
    def share_persister(self) -> StateSender:
        """The broker's persister, which reaches the share coordinators."""
        return self._host.share_persister

    def new_shard(self, partition: Partition) -> GroupShard:
        return GroupShard(self, partition)

    def on_shard_loaded(self, shard: GroupShard) -> Iterator[None]:
        if self._expiry is None:
            self._expiry = ExpirySchedule(
                self.runtime, self.configs, self.clock_domains.groups, self.loaded, self.is_paused
            )
        return shard.on_loaded(self._expiry.shard_changed)

    def resume(self) -> None:
        super().resume()
        if self._expiry is not None:
            self._expiry.timers.resume()

    # --------------------------------------------------------------------------------------- groups

    def extend_connected_sessions(self, connections: MemberConnections, by_ms: int) -> None:
        """Extend the sessions of members whose connection is open by `by_ms`."""
        for shard in self._shards.values():
            for group_id in shard.groups:
                extend_group_deadlines(shard, group_id, connections, by_ms)

    def topics_deleted(self, names: Collection[str]) -> None:
        """Remove what groups stored of topics that the broker's metadata no longer has.

        Source: GroupCoordinatorService.onMetadataUpdate.
        """
        for shard in self.shards():
            if isinstance(shard, GroupShard):
                shard.topics_deleted(names)


def extend_group_deadlines(
    shard: GroupShard, group_id: str, connections: MemberConnections, by_ms: int
) -> None:
    """Extend the sessions of one group's connected members, if the group exists."""
    group = shard.groups.get(group_id)
    if group is not None:
        group.extend_deadlines(connections.connected(group_id), by_ms, shard.now_ms(group_id))
