"""One broker of the cluster: who it is, where it listens, and the coordinators it hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.fetch_session import FetchSessionCache
    from mockbroker.core.group_coordinator import GroupCoordinator


class BrokerSpec(NamedTuple):
    """A broker to start a cluster with."""

    node_id: int
    rack: str | None = None


class Endpoint(NamedTuple):
    """The address at which clients are told to find a broker."""

    host: str
    port: int


class Broker:
    """One broker. `fenced` means not alive in the controller's eyes; such brokers lead nothing."""

    __slots__ = (
        "_fetch_sessions",
        "_groups",
        "cluster",
        "endpoints",
        "epoch",
        "fenced",
        "node_id",
        "rack",
    )

    def __init__(self, cluster: Cluster, spec: BrokerSpec, epoch: int) -> None:
        self.cluster = cluster
        self.node_id = spec.node_id
        self.rack = spec.rack
        self.epoch = epoch
        self.fenced = False
        self.endpoints: dict[str, Endpoint] = {}
        self._groups: GroupCoordinator | None = None
        self._fetch_sessions: FetchSessionCache | None = None

    def set_endpoint(self, listener: str, host: str, port: int) -> None:
        """Tell clients of `listener` to reach this broker at host:port."""
        self.endpoints[listener] = Endpoint(host, port)
        self.cluster.metadata_changed()

    @property
    def groups(self) -> GroupCoordinator:
        """The groups whose partition of `__consumer_offsets` this broker leads."""
        if self._groups is None:
            from mockbroker.core.group_coordinator import GroupCoordinator

            self._groups = GroupCoordinator(self.cluster, self.node_id)
        return self._groups

    @property
    def fetch_sessions(self) -> FetchSessionCache:
        """The incremental fetch sessions (KIP-227) that clients hold with this broker."""
        if self._fetch_sessions is None:
            from mockbroker.core.fetch_session import FetchSessionCache

            slots = self.cluster.config_int("max.incremental.fetch.session.cache.slots")
            self._fetch_sessions = FetchSessionCache(slots, self.cluster.ids)
        return self._fetch_sessions

    def __repr__(self) -> str:
        return f"Broker({self.node_id})"
