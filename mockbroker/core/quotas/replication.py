"""Replication throttles: how many bytes a second a broker sends, or copies, of throttled replicas.

A topic lists its throttled replicas as partition:broker pairs, those of the leader side in
`leader.replication.throttled.replicas`, those of the follower side in
`follower.replication.throttled.replicas`; `*` is all. A broker has the rates, as dynamic configs.
A throttled replica that is not in the ISR waits while its broker is above the rate. One that is in
the ISR never waits, but its bytes count.

Source: ReplicationQuotaManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from mockbroker.core.quotas.rates import SimpleRate, Windows

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker.core.replication.partition import Partition

Side = Literal["leader", "follower"]


class ReplicationQuota:
    """One side of one broker. `throttled` counts how often it let a replica wait."""

    __slots__ = (
        "_configs",
        "_limit",
        "_limit_version",
        "_list",
        "_node_id",
        "_rate",
        "_rate_config",
        "side",
        "throttled",
    )

    def __init__(self, side: Side, node_id: int, configs: ClusterConfigs) -> None:
        self.side = side
        self.throttled = 0
        self._node_id = node_id
        self._configs = configs
        self._rate: SimpleRate | None = None
        self._limit: int | None = None  # in bytes per second
        self._limit_version = -1  # the version of the configs at the last read
        self._rate_config = f"{side}.replication.throttled.rate"
        self._list = f"{side}_replication_throttled_replicas"

    def throttles(self, partition: Partition, node_id: int, now_ms: int) -> bool:
        """Whether a follower of a partition has to wait."""
        limit = self.limit
        if (
            limit is None
            or node_id in partition.isr
            or not self._lists(partition)
            or self._rate is None
            or self._rate.per_second(now_ms) <= limit
        ):
            return False
        self.throttled += 1
        return True

    def record(self, partition: Partition, size: int, now_ms: int) -> None:
        """Count the bytes of an answer, if the replica is throttled."""
        if self.limit is None or not self._lists(partition):
            return
        if self._rate is None:
            windows = Windows.configured(self._configs.get_int, "replication.")
            self._rate = SimpleRate(windows, now_ms)
        self._rate.record(size, now_ms)

    @property
    def limit(self) -> int | None:
        """The rate in bytes per second by the current broker configs; None without one."""
        version = self._configs.version
        if version != self._limit_version:
            self._limit_version = version
            self._limit = self._read_limit()
        return self._limit

    def _read_limit(self) -> int | None:
        text = self._configs.dynamic(self._node_id, self._rate_config)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None  # Kafka logs it, and the rate stays

    def _lists(self, partition: Partition) -> bool:
        listed: tuple[str, ...] = getattr(partition.topic.configs, self._list)
        return listed == ("*",) or f"{partition.index}:{self._node_id}" in listed
