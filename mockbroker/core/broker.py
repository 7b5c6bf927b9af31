"""One broker of the cluster: who it is, where it listens, and the coordinators it hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.broker_life import RUNNING
from mockbroker.core.fetch_positions import FetchPositions
from mockbroker.core.image import Endpoint
from mockbroker.core.log.dirs import LogDirs

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.fetch_session import FetchSessionCache
    from mockbroker.core.groups.coordinator import GroupCoordinator
    from mockbroker.core.txn.coordinator import TransactionCoordinator


# The loggers of a broker and their levels, as Kafka's log4j2.yaml has them.
_LOGGERS = {
    "root": "INFO",
    "kafka": "INFO",
    "kafka.authorizer.logger": "INFO",
    "kafka.network.RequestChannel$": "WARN",
    "kafka.request.logger": "WARN",
    "org.apache.kafka": "INFO",
    "org.apache.kafka.controller": "INFO",
    "state.change.logger": "INFO",
}


class BrokerSpec(NamedTuple):
    """A broker to start a cluster with."""

    node_id: int
    rack: str | None = None


class Broker:
    """One broker: its process, its metadata image, and its registration with the controller.

    `state` is that of the process, see `broker_life`; `stopped_how` says "controlled" or "unclean".
    `fenced` means not alive in the controller's eyes, `shutting_down` about to leave; such brokers
    lead nothing. `image` is the newest, or an old one while the broker cannot hear the controller.
    """

    __slots__ = (
        "_fetch_sessions",
        "_groups",
        "_transactions",
        "awaiting_controller",
        "cluster",
        "endpoints",
        "epoch",
        "fenced",
        "fetch_positions",
        "image",
        "log_dirs",
        "logger_levels",
        "node_id",
        "rack",
        "shutting_down",
        "state",
        "stopped_how",
    )

    def __init__(self, cluster: Cluster, spec: BrokerSpec, epoch: int) -> None:
        self.cluster = cluster
        self.image = cluster.image
        # Requests that are for the controller, as long as it cannot be heard; each is called then.
        self.awaiting_controller: dict[Callable[[], None], None] = {}
        self.node_id = spec.node_id
        self.rack = spec.rack
        self.epoch = epoch
        self.fenced = False
        self.shutting_down = False
        self.state = RUNNING
        self.stopped_how = ""
        self.log_dirs = LogDirs(cluster.configs)
        self.endpoints: dict[str, Endpoint] = {}
        # The levels that clients may read and set; they do not steer this program's own logging.
        self.logger_levels: dict[str, str] = dict(_LOGGERS)
        self._groups: GroupCoordinator | None = None
        self._transactions: TransactionCoordinator | None = None
        self._fetch_sessions: FetchSessionCache | None = None
        self.fetch_positions = FetchPositions()

    def set_endpoint(self, listener: str, host: str, port: int) -> None:
        """Tell clients of `listener` to reach this broker at host:port."""
        self.endpoints[listener] = Endpoint(host, port)
        self.cluster.metadata_changed()

    def static_configs(self) -> dict[str, str]:
        """The configs by which server.properties would tell this broker who it is."""
        listeners = ",".join(f"{name}://{at.host}:{at.port}" for name, at in self.endpoints.items())
        configs = {
            "node.id": str(self.node_id),
            "broker.id": str(self.node_id),
            "process.roles": "broker",
            "controller.listener.names": "CONTROLLER",
        }
        if listeners:
            configs["listeners"] = configs["advertised.listeners"] = listeners
        if self.rack is not None:
            configs["broker.rack"] = self.rack
        return configs

    @property
    def hears_controller(self) -> bool:
        """Whether the metadata that it knows is the newest."""
        return self.image is self.cluster.image

    @property
    def active(self) -> bool:
        """Whether it may lead and be in sync: alive, and not about to leave."""
        return not self.fenced and not self.shutting_down

    def forget_memory(self) -> None:
        """What a process loses when it ends: groups, transactions, fetch sessions, its block of
        producer ids.
        """
        self._unload()
        self.awaiting_controller.clear()
        self._fetch_sessions = None
        self.cluster.ids.drop_producer_ids(self.node_id)

    def _unload(self) -> None:
        for coordinator in (self._transactions, self._groups):
            if coordinator is not None:
                coordinator.unload()

    @property
    def has_groups(self) -> bool:
        """Whether anybody has asked for its groups: else it has none, and no coordinator."""
        return self._groups is not None

    @property
    def groups(self) -> GroupCoordinator:
        """The groups whose partition of `__consumer_offsets` this broker leads."""
        if self._groups is None:
            from mockbroker.core.groups.coordinator import GroupCoordinator

            self._groups = GroupCoordinator(self.cluster, self.node_id)
        return self._groups

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transactional ids whose partition of `__transaction_state` this broker leads."""
        if self._transactions is None:
            from mockbroker.core.txn.coordinator import TransactionCoordinator

            self._transactions = TransactionCoordinator(self.cluster, self.node_id)
        return self._transactions

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
