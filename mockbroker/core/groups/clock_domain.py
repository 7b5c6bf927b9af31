"""The clock domains of groups: all groups of a cluster, or one.

Sessions, rebalances and commit timestamps use the domain's time, which stays ahead of the cluster's
after an advance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.groups.coordinator import extend_group_deadlines
from mockbroker.core.groups.expiry import expire_group
from mockbroker.core.groups.shard import GroupShard

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster


class GroupsDomain:
    """All groups of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        timers = cluster.clock_domains.groups
        self.now_ms = timers.now_ms
        self.deadline_ms = timers.deadline_ms
        self.jump_to = timers.jump_to

    def extend_connected_sessions(self, by_ms: int) -> None:
        self._cluster.extend_connected_sessions(by_ms)


class GroupDomain:
    """One group. Raises ValueError if it does not exist."""

    def __init__(self, cluster: Cluster, group_id: str) -> None:
        self._cluster = cluster
        self._group_id = group_id
        shard = self._shard()
        if shard is None:
            known = ", ".join(sorted(_group_ids(cluster))) or "none yet"
            raise ValueError(f"there is no group {group_id!r}; groups: {known}")
        self._timers = cluster.clock_domains.separate_group(group_id)
        shard.move_timer(group_id)
        self.now_ms = self._timers.now_ms
        self.deadline_ms = self._timers.deadline_ms

    def jump_to(self, at_ms: int) -> None:
        """Run the group's timers, and remove its expired offsets."""
        self._timers.jump_to(at_ms)
        shard = self._shard()
        if shard is not None:
            retention_ms = self._cluster.config_int("offsets.retention.minutes") * 60_000
            expire_group(shard, self._group_id, retention_ms)
            shard.mark_changed()  # the remaining offsets expire earlier

    def extend_connected_sessions(self, by_ms: int) -> None:
        shard = self._shard()
        if shard is not None:
            connections = self._cluster.member_connections
            extend_group_deadlines(shard, self._group_id, connections, by_ms)

    def _shard(self) -> GroupShard | None:
        for shard in _shards(self._cluster):
            if self._group_id in shard.groups:
                return shard
        return None


def _shards(cluster: Cluster) -> list[GroupShard]:
    return [
        shard
        for broker in cluster.brokers.values()
        for shard in broker.groups.shards()
        if isinstance(shard, GroupShard)
    ]


def _group_ids(cluster: Cluster) -> list[str]:
    return [group_id for shard in _shards(cluster) for group_id in shard.groups]
