"""What the admin side knows of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import trio

if TYPE_CHECKING:
    from mockbroker.actors.server import ClusterServer


@dataclass(frozen=True)
class Snapshot:
    """The numbers of one moment. Counters grow from the start of the cluster and never fall."""

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
    # answered requests by API: {"PRODUCE": 3}
    requests: Mapping[str, int] = field(default_factory=dict)
    # answers that told a client to wait by the quota it exceeded, and the ms they told
    throttled: Mapping[str, int] = field(default_factory=dict)
    throttled_ms: Mapping[str, int] = field(default_factory=dict)
    # groups by Kafka's name of the state: {"Stable": 1}
    groups: Mapping[str, int] = field(default_factory=dict)

    @property
    def connections_open(self) -> int:
        return self.connections_opened - self.connections_closed


class ClusterView(Protocol):
    """A running cluster, as the admin side sees it."""

    @property
    def token(self) -> trio.lowlevel.TrioToken:
        """The entrance to the run that owns the cluster's state."""
        ...

    @property
    def server(self) -> ClusterServer | None:
        """The server of the cluster, to look into it and steer it; None shows counters only."""
        ...

    def snapshot(self) -> Snapshot:
        """Count. Called in the cluster's own run, so it must not wait."""
        ...
