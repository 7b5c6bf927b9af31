"""One broker of the cluster: its identity, its endpoints, and the coordinators it hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mockbroker.core.brokers.broker_life import RUNNING
from mockbroker.core.brokers.client_connection import ClientConnection
from mockbroker.core.fetching.fetch_positions import FetchPositions
from mockbroker.core.log.dirs import LogDirs
from mockbroker.core.metadata.image import Endpoint

if TYPE_CHECKING:
    from mockbroker.core.fetching.fetch_session import FetchSessionCache
    from mockbroker.core.groups.coordinator import GroupCoordinator
    from mockbroker.core.metadata.image import MetadataImage
    from mockbroker.core.services import Services
    from mockbroker.core.share.coordinator import ShareCoordinator
    from mockbroker.core.share.manager import SharePartitionManager
    from mockbroker.core.share.persister import SharePersister
    from mockbroker.core.txn.coordinator import TransactionCoordinator


# The loggers of a broker and their levels in Kafka's log4j2.yaml.
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
    """A broker with which a cluster starts."""

    node_id: int
    rack: str | None = None


class PartWithTimers(Protocol):
    """A part of a broker's process with timers, such as a coordinator."""

    def resume(self) -> None:
        """Run the timers that fell due while the process was paused."""
        ...

    def unload(self) -> None:
        """Drop all, because the process ends."""
        ...


class Broker:
    """One broker: its process, its metadata image, and its registration with the controller.

    `state` is that of the process, see `broker_life`; `stopped_how` is "controlled" or "unclean".
    The controller sets `fenced` and `shutting_down`; a broker with one of them leads nothing.
    `image` is the newest one, or an old one while the broker cannot reach the controller.
    """

    __slots__ = (
        "_fetch_sessions",
        "_groups",
        "_peers",
        "_share_coordinator",
        "_share_partitions",
        "_share_persister",
        "_transactions",
        "awaiting_controller",
        "endpoints",
        "epoch",
        "fenced",
        "fetch_positions",
        "image",
        "log_dirs",
        "logger_levels",
        "node_id",
        "rack",
        "services",
        "shutting_down",
        "state",
        "stopped_how",
    )

    def __init__(
        self, spec: BrokerSpec, epoch: int, services: Services, peers: Mapping[int, Broker]
    ) -> None:
        """`peers` are all brokers by their ids; this one is added to them."""
        self.services = services
        self._peers = peers
        self.image = services.metadata.image
        # Requests that wait until the broker reaches the controller; each is called then.
        self.awaiting_controller: dict[Callable[[], None], None] = {}
        self.node_id: int = spec.node_id
        self.rack = spec.rack
        self.epoch: int = epoch
        self.fenced = False
        self.shutting_down = False
        self.state = RUNNING
        self.stopped_how = ""
        self.log_dirs = LogDirs(services.configs)
        self.endpoints: dict[str, Endpoint] = {}
        # The levels that clients may read and set. They do not change this program's own logging.
        self.logger_levels: dict[str, str] = dict(_LOGGERS)
        self._groups: GroupCoordinator | None = None
        self._transactions: TransactionCoordinator | None = None
        self._share_coordinator: ShareCoordinator | None = None
        self._share_persister: SharePersister | None = None
        self._share_partitions: SharePartitionManager | None = None
        self._fetch_sessions: FetchSessionCache | None = None
        self.fetch_positions = FetchPositions()

    def set_endpoint(self, listener: str, host: str, port: int) -> None:
        """Advertise host:port to clients of `listener`."""
        self.endpoints[listener] = Endpoint(host, port)
        self.services.metadata.changed()

    def static_configs(self) -> dict[str, str]:
        """The broker's identity as configs of server.properties."""
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
    def has_newest_image(self) -> bool:
        """Whether its metadata image is the newest; False while it cannot reach the controller."""
        return self.image is self.services.metadata.image

    def take_image(self, image: MetadataImage) -> None:
        """Go on by another metadata image."""
        self.image = image
        if self._fetch_sessions is not None:
            self._fetch_sessions.wake_all()

    def drop_memory(self) -> None:
        """Drop what is in memory only, as at the end of a process: groups, transactions, states of
        share partitions, fetch sessions, the block of producer ids.
        """
        self._unload()
        self.awaiting_controller.clear()
        if self._fetch_sessions is not None:
            self._fetch_sessions.close()
            self._fetch_sessions = None
        self.services.runtime.ids.drop_producer_ids(self.node_id)

    def fail_state_requests(self) -> None:
        """Fail the requests that wait for a share coordinator."""
        if self._share_persister is not None:
            self._share_persister.fail_all()

    def resume(self) -> None:
        """Resume the parts with timers, after the process was resumed."""
        for part in self._parts_with_timers():
            part.resume()

    def _unload(self) -> None:
        for part in self._parts_with_timers():
            part.unload()

    def _parts_with_timers(self) -> list[PartWithTimers]:
        parts: tuple[PartWithTimers | None, ...] = (
            self._transactions,
            self._groups,
            self._share_coordinator,
            self._share_persister,
            self._share_partitions,
        )
        return [part for part in parts if part is not None]

    @property
    def has_groups(self) -> bool:
        """Whether it has a group coordinator; without one it has no groups."""
        return self._groups is not None

    @property
    def groups(self) -> GroupCoordinator:
        """The groups whose partition of `__consumer_offsets` this broker leads."""
        if self._groups is None:
            from mockbroker.core.groups.coordinator import GroupCoordinator

            self._groups = GroupCoordinator(self)
        return self._groups

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transactional ids whose partition of `__transaction_state` this broker leads."""
        if self._transactions is None:
            from mockbroker.core.txn.coordinator import TransactionCoordinator

            self._transactions = TransactionCoordinator(self, self._peers)
        return self._transactions

    @property
    def has_share_coordinator(self) -> bool:
        """Whether it has a share coordinator; without one it has no share partitions."""
        return self._share_coordinator is not None

    @property
    def share_coordinator(self) -> ShareCoordinator:
        """The share partitions whose partition of `__share_group_state` this broker leads."""
        if self._share_coordinator is None:
            from mockbroker.core.share.coordinator import ShareCoordinator

            self._share_coordinator = ShareCoordinator(self)
        return self._share_coordinator

    @property
    def share_persister(self) -> SharePersister:
        """The broker's way to all share coordinators."""
        if self._share_persister is None:
            from mockbroker.core.share.persister import SharePersister

            self._share_persister = SharePersister(self, self._peers)
        return self._share_persister

    @property
    def has_share_partitions(self) -> bool:
        """Whether share groups have used this broker."""
        return self._share_partitions is not None

    def share_session_keys(self, group_id: str, member_id: str) -> list[tuple[bytes, int]]:
        """The topic ids and indexes of the partitions of a share session; none without one."""
        if self._share_partitions is None:
            return []
        session = self._share_partitions.sessions.get((group_id, member_id))
        return [] if session is None else list(session.partitions)

    @property
    def share_partitions(self) -> SharePartitionManager:
        """The share partitions that this broker leads, and the share sessions with it."""
        if self._share_partitions is None:
            from mockbroker.core.share.manager import SharePartitionManager

            self._share_partitions = SharePartitionManager(self)
        return self._share_partitions

    def connection_closed(self, connection: ClientConnection) -> None:
        """A client's connection is closed: its members are gone, and its share session ends."""
        connection.closed = True
        self.services.member_connections.connection_closed(connection.id)
        if self._share_partitions is not None:
            self._share_partitions.connection_closed(connection.id)

    @property
    def fetch_sessions(self) -> FetchSessionCache:
        """The incremental fetch sessions (KIP-227) that clients hold with this broker."""
        if self._fetch_sessions is None:
            from mockbroker.core.fetching.fetch_session import FetchSessionCache

            configs, runtime = self.services.configs, self.services.runtime
            slots_max = configs.get_int("max.incremental.fetch.session.cache.slots")
            room = self.services.session_room()
            self._fetch_sessions = FetchSessionCache(slots_max, runtime.ids, room)
        return self._fetch_sessions

    def __repr__(self) -> str:
        return f"Broker({self.node_id})"
