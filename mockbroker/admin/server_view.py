"""A `ClusterView` of a running `ClusterServer`."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from mockbroker.admin.view import Snapshot
from mockbroker.core.topic import GROUP_METADATA_TOPIC
from mockbroker_protocol import ApiKey, ErrorCode

if TYPE_CHECKING:
    import trio

    from mockbroker.actors.server import ClusterServer


class ServerView:
    """Counts what a server and its cluster hold; made when the brokers listen.

    Uptime is real time, whatever the cluster's clock does.
    """

    def __init__(self, server: ClusterServer, token: trio.lowlevel.TrioToken) -> None:
        self.token = token
        self.server: ClusterServer | None = server
        self._server = server
        self._started_s = time.monotonic()
        # Topic id -> records seen in its logs. Kept when the topic goes: a counter never falls.
        self._records: dict[bytes, int] = {}

    def snapshot(self) -> Snapshot:
        """Count now. Reads logs' ends only, so that 10,000 partitions cost a few milliseconds."""
        stats, cluster = self._server.stats, self._server.cluster
        throttling = cluster.quotas.throttling
        partitions = 0
        for topic in cluster.topics.values():
            partitions += len(topic.partitions)
            records = sum(partition.log_end_offset for partition in topic.partitions)
            self._records[topic.topic_id] = max(records, self._records.get(topic.topic_id, 0))
        return Snapshot(
            uptime_ms=int((time.monotonic() - self._started_s) * 1000),
            brokers=len(cluster.brokers),
            topics=len(cluster.topics),
            partitions=partitions,
            records_appended=sum(self._records.values()),
            connections_opened=stats.connections_opened,
            connections_closed=stats.connections_closed,
            bytes_in=stats.bytes_in,
            bytes_out=stats.bytes_out,
            protocol_errors=stats.protocol_errors,
            failed_authentications=stats.failed_authentications,
            requests={ApiKey(key).name: count for key, count in stats.requests.items()},
            throttled={} if throttling is None else dict(throttling.throttled),
            throttled_ms={} if throttling is None else dict(throttling.throttled_ms),
            groups=self._groups(),
        )

    def _groups(self) -> dict[str, int]:
        states: Counter[str] = Counter()
        if GROUP_METADATA_TOPIC not in self._server.cluster.topics:
            return {}  # a scrape brings no coordinator into being
        for broker in self._server.cluster.brokers.values():
            for shard in broker.groups.shards():
                if not isinstance(shard, ErrorCode):
                    states.update(group.state.value for group in shard.groups.values())
                    states.update(group.state.value for group in shard.consumers.groups.values())
        return dict(states)
