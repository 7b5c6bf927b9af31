"""Groups whose time is moved on alone: all of a cluster, or one.

Their sessions, rebalances and commits go by their own time, which therefore stays ahead: what is
committed afterwards counts as committed then, so that it is not older than it ought to be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.groups.coordinator import spare_group
from mockbroker.core.groups.expiry import expire_group
from mockbroker.core.groups.shard import GroupShard

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster


class GroupsScope:
    """All groups of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        timers = cluster.time_scopes.groups
        self.now_ms = timers.now_ms
        self.deadline_ms = timers.deadline_ms
        self.jump_to = timers.jump_to

    def spare_connected(self, by_ms: int) -> None:
        self._cluster.spare_connected_members(by_ms)


class GroupScope:
    """One group, wherever it is coordinated. Raises ValueError when there is no such group."""

    def __init__(self, cluster: Cluster, group_id: str) -> None:
        self._cluster = cluster
        self._group_id = group_id
        shard = self._shard()
        if shard is None:
            known = ", ".join(sorted(_group_ids(cluster))) or "none yet"
            raise ValueError(f"there is no group {group_id!r}; groups: {known}")
        self._timers = cluster.time_scopes.separate_group(group_id)
        shard.rearm_anew(group_id)
        self.now_ms = self._timers.now_ms
        self.deadline_ms = self._timers.deadline_ms

    def jump_to(self, at_ms: int) -> None:
        """Run the group's timers, and drop its offsets that have outlived their retention."""
        self._timers.jump_to(at_ms)
        shard = self._shard()
        if shard is not None:
            retention_ms = self._cluster.config_int("offsets.retention.minutes") * 60_000
            expire_group(shard, self._group_id, retention_ms)
            shard.touch()  # what is left has less time left

    def spare_connected(self, by_ms: int) -> None:
        presence = self._cluster.presence
        presence.forget_the_gone()
        shard = self._shard()
        if shard is not None:
            spare_group(shard, self._group_id, presence, by_ms)

    def _shard(self) -> GroupShard | None:
        for shard in _shards(self._cluster):
            if self._group_id in shard.groups or self._group_id in shard.consumers.groups:
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
    return [
        group_id
        for shard in _shards(cluster)
        for group_id in (*shard.groups, *shard.consumers.groups)
    ]
