"""The cluster of an admin server: its metrics, and the access to it from another thread."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import trio

from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC
from mockbroker_protocol import ApiKey, ErrorCode

if TYPE_CHECKING:
    from mockbroker.server.cluster_server import ClusterServer


@dataclass(frozen=True)
class ClusterMetrics:
    """Metrics at one moment. Counters grow from the start of the cluster and never fall."""

    uptime_ms: int = 0
    brokers: int = 0
    topics: int = 0
    partitions: int = 0
    # counters
    records_appended: int = 0
    connections_opened: int = 0
    connections_closed: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    protocol_errors: int = 0
    failed_authentications: int = 0
    # what exceeded a protective limit and was refused, by its config
    limits_exceeded: Mapping[str, int] = field(default_factory=dict)
    # answered requests by API: {"PRODUCE": 3}
    requests: Mapping[str, int] = field(default_factory=dict)
    # throttled responses by quota, and the sum of their throttle times
    throttled: Mapping[str, int] = field(default_factory=dict)
    throttled_ms: Mapping[str, int] = field(default_factory=dict)
    # responses of the admin server by HTTP status: {"200": 1}
    admin_responses: Mapping[str, int] = field(default_factory=dict)
    # groups by Kafka's name of the state: {"Stable": 1}
    groups: Mapping[str, int] = field(default_factory=dict)

    @property
    def connections_open(self) -> int:
        return self.connections_opened - self.connections_closed


class AdminTarget(Protocol):
    """A running cluster, for the admin server."""

    @property
    def token(self) -> trio.lowlevel.TrioToken:
        """The token of the cluster's run."""
        ...

    @property
    def server(self) -> ClusterServer | None:
        """The server of the cluster; without one there are only probes."""
        ...

    def metrics(self) -> ClusterMetrics:
        """The metrics now. Called in the cluster's run, so it must not wait."""
        ...


class ServerTarget:
    """A `ClusterServer` as `AdminTarget`; made in its run when the brokers listen.

    Uptime is real time.
    """

    def __init__(self, server: ClusterServer) -> None:
        self.token = trio.lowlevel.current_trio_token()
        self.server: ClusterServer | None = server
        self._server = server
        self._started_s = time.monotonic()
        # Topic id -> records seen in its logs, also of deleted topics: a counter never falls.
        self._records: dict[bytes, int] = {}

    def metrics(self) -> ClusterMetrics:
        """As `AdminTarget.metrics`. It reads log ends only: 10,000 partitions take milliseconds."""
        stats, cluster = self._server.stats, self._server.cluster
        throttling = cluster.quotas.throttling
        partitions = 0
        for topic in cluster.topics.values():
            partitions += len(topic.partitions)
            records = sum(partition.log_end_offset for partition in topic.partitions)
            self._records[topic.topic_id] = max(records, self._records.get(topic.topic_id, 0))
        return ClusterMetrics(
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
            limits_exceeded=dict(cluster.runtime.limits_exceeded),
            failed_authentications=stats.failed_authentications,
            requests={ApiKey(key).name: count for key, count in stats.requests.items()},
            throttled=cluster.replication.throttled
            | ({} if throttling is None else throttling.throttled),
            throttled_ms={} if throttling is None else dict(throttling.throttled_ms),
            groups=self._groups(),
        )

    def _groups(self) -> dict[str, int]:
        states: Counter[str] = Counter()
        if GROUP_METADATA_TOPIC not in self._server.cluster.topics:
            return {}  # a scrape must not make a coordinator
        for broker in self._server.cluster.brokers.values():
            for shard in broker.groups.shards():
                if not isinstance(shard, ErrorCode):
                    states.update(group.state_name for group in shard.by_type())
        return dict(states)
