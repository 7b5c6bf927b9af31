"""A cluster that listens: brokers, their ports, and the tasks that serve them.

The command line, the fixtures and the tests start it, inside one trio run:

    async with open_server(ServerConfig(brokers=3)) as server:
        print(server.bootstrap_servers)
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from mockbroker.core.brokers.broker import Broker
from mockbroker.core.brokers.broker_life import PAUSED, RUNNING, STOPPED
from mockbroker.core.brokers.controller import UNCLEAN
from mockbroker.core.cluster import Cluster
from mockbroker.core.journal.journal import Journal
from mockbroker.core.timing.clock_domains import find_domain
from mockbroker.handlers import load_all
from mockbroker.handlers.base import ConnectionInfo
from mockbroker.server.clock.clock_control import RunClock
from mockbroker.server.clock.cluster_clock import ClusterClock, Timekeeper, adjustable_clock
from mockbroker.server.config import ListenerSpec, ServerConfig, ServerError
from mockbroker.server.network.acceptor import AcceptedTransport, ListenerNetwork
from mockbroker.server.network.connection import Connection
from mockbroker.server.network.fresh_ports import FreshPorts
from mockbroker.server.network.socket_server import ServedConnection, SocketServer, Trace
from mockbroker.server.network.stats import Stats
from mockbroker.server.network.transport import Transport

if TYPE_CHECKING:
    from mockbroker.server.security.listeners import Security
    from mockbroker.server.storage.data_dir import DataDir
    from mockbroker.server.storage.snapshots import Snapshots, StoredCluster


class ClusterServer:
    """A core cluster with its ports; made by `open_server` inside a trio run.

    `network` is TCP by default. `real_ns` returns the time of day in ns since the epoch; the
    cluster's own `clock` begins there. A given `cluster` is served as it is. Raises ServerError or
    ConfigError.
    """

    def __init__(
        self,
        config: ServerConfig,
        *,
        trace: Trace | None = None,
        network: ListenerNetwork | None = None,
        real_ns: Callable[[], int] = time.time_ns,
        cluster: Cluster | None = None,
        clock: ClusterClock | None = None,
    ) -> None:
        load_all()
        self.config = config
        self._real_ns = real_ns
        self.clock = clock or ClusterClock(real_ns() // 1_000_000)
        self.data_dir: DataDir | None = None
        try:
            self.cluster = self._make_cluster() if cluster is None else self._journaled(cluster)
            self._security = self._secure()
        except BaseException:
            if self.data_dir is not None:
                self.data_dir.close()
            raise
        self.stats = Stats(self.cluster.runtime.limits_exceeded)
        self.initial_credentials = {
            user: dict(each)
            for user, each in self.cluster.scram_credentials.items()
            if user in config.users
        }
        self.timekeeper = Timekeeper(
            self.cluster.runtime.timers, self.clock, self._extend_connected_sessions
        )
        self._network = FreshPorts() if network is None else network
        self._trace = trace
        self.socket_servers = {
            broker.node_id: self._socket_server(broker, index)
            for index, broker in enumerate(self.cluster.processes.values())
        }
        self._connection_ids = 0
        self._idle_since_ms_min = 0  # idle times count from here, after an advance
        self._closes_idle = False  # whether a timer is set that closes idle connections
        self._nursery: trio.Nursery | None = None
        self.cluster.on_broker_state.append(self._broker_changed)

    def _make_cluster(self) -> Cluster:
        """A new cluster, or the stored one."""
        config = self.config
        stored = self._open_stored()
        cluster = self._journaled(
            Cluster(
                brokers=stored.specs(config) if stored else config.specs(),
                configs=stored.configs(config) if stored else config.broker_configs(),
                seed=config.seed,
                now_ms=self.clock.now_ms,
                kafka_version=config.kafka_version,
            )
        )
        if stored is not None and stored.image is not None:
            from mockbroker.server.storage.snapshots import restore_stored

            restore_stored(cluster, stored.image, stored.directory)
        return cluster

    def _journaled(self, cluster: Cluster) -> Cluster:
        """The cluster, with a journal if the config requires one."""
        config = self.config
        if config.journal_bytes:
            journal = Journal(
                self._real_ns,
                config.journal_bytes,
                config.journal_overflow,
                hops=config.journal_hops,
            )
            cluster.keep_journal(journal)
        return cluster

    def _secure(self) -> Security | None:
        if all(listener.security_protocol == "PLAINTEXT" for listener in self.config.listeners):
            return None
        from mockbroker.server.security.listeners import Security

        return Security(self.config, self.cluster)

    def _open_stored(self) -> StoredCluster | None:
        config = self.config
        if config.data_dir is None and config.load is None and not config.sync:
            return None
        from mockbroker.server.storage.snapshots import open_stored

        stored = open_stored(config)
        self.data_dir = stored.data_dir
        if stored.image is not None:
            self.clock.jump(max(stored.image.at_ms - self.clock.now_ms(), 0))
        return stored

    @property
    def snapshots(self) -> Snapshots:
        """Takes snapshots of the cluster and restores them."""
        from mockbroker.server.storage.snapshots import Snapshots

        return Snapshots(self)

    def jump_clock(self, by_ms: int) -> None:
        """Advance the clock at once. Members and connections do not become idle by it."""
        self._extend_connected_sessions(by_ms)
        self.clock.jump(by_ms)

    @property
    def security(self) -> Security:
        """The secured listeners. Raises ServerError if there are none."""
        if self._security is None:
            raise ServerError("every listener of this cluster is PLAINTEXT")
        return self._security

    def _socket_server(self, broker: Broker, index: int) -> SocketServer:
        """The socket server of the broker at a position; its ports follow the first broker's."""
        listeners = [listener.of_broker(index) for listener in self.config.listeners]
        return SocketServer(
            self.cluster,
            broker,
            listeners,
            self._network,
            self._connect,
            self.stats,
            self.timekeeper.requests,
            self._trace,
            self.config.listener_configs,
        )

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT of every broker on the first listener, comma separated."""
        return self.bootstrap(self.config.listeners[0].name)

    def bootstrap(self, listener: str) -> str:
        """HOST:PORT of every broker that has this listener, comma separated."""
        return ",".join(
            f"{broker.endpoints[listener].host}:{broker.endpoints[listener].port}"
            for broker in self.cluster.brokers.values()
            if listener in broker.endpoints
        )

    def bind(self) -> None:
        """Bind the ports of all brokers. Raises ServerError that names a taken address."""
        try:
            for host in self.socket_servers.values():
                if host.broker.state != STOPPED:
                    host.bind()
                if host.broker.state == PAUSED:
                    host.gate.close()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close every port and connection. Idempotent."""
        for host in self.socket_servers.values():
            host.stop(reset=False)
        if self.cluster.runtime.journal is not None:
            self.cluster.runtime.journal.readers.set_full(False)  # nobody waits any more
        self._network.close()
        if self._security is not None:
            self._security.close()
        if self.data_dir is not None:
            self.data_dir.close()

    def make_topics(self) -> None:
        """Create the topics of the config that are not stored already."""
        wanted = [spec for spec in self.config.topics if spec.name not in self.cluster.topics]
        if wanted:
            from mockbroker.server.seeding import seed_topics

            seed_topics(self.cluster, wanted)

    async def durable(self) -> None:
        """Return once all changes so far are as safe as those that a response acknowledges."""
        if self.data_dir is not None:
            self.data_dir.flush()
            await self.data_dir.durable()

    async def advance_clock(
        self, milliseconds: int, *, only: str | None = None, extend_sessions: bool = True
    ) -> None:
        """Advance the cluster's clock, or one clock domain (see `find_domain`).

        With `extend_sessions` the sessions of connected members are extended by the time of the
        advance. Raises ValueError for a negative step or an unknown domain, and RuntimeError if the
        run's clock is not an AdjustableClock.
        """
        if only is None:
            await self.timekeeper.advance(milliseconds, extend_sessions=extend_sessions)
        else:
            domain = find_domain(self.cluster, only)
            await self.timekeeper.advance_domain(
                domain, milliseconds, extend_sessions=extend_sessions
            )
        self._journal_clock(
            "advance", advance_ms=milliseconds, only=only, extend_sessions=extend_sessions
        )

    def set_clock_rate(self, rate: float) -> None:
        """Run `rate` seconds for each second of real time; 0 freezes. Raises as
        `AdjustableClock.set_rate`, and RuntimeError if the run's clock is not one.
        """
        adjustable_clock().set_rate(rate)
        self._journal_clock("rate", rate=rate)

    def _journal_clock(self, change: str, **facts: object) -> None:
        if self.cluster.runtime.journal is not None:
            self.cluster.runtime.journal.fact(self.clock.now_ms(), "clock", change=change, **facts)

    def run_in(self, nursery: trio.Nursery) -> None:
        """Serve in tasks of `nursery` until it is cancelled."""
        self._nursery = nursery
        self.cluster.runtime.clock_control = RunClock(self, nursery)
        nursery.start_soon(self.timekeeper.run)
        nursery.start_soon(self._network.run)
        if self.data_dir is not None:
            nursery.start_soon(self.data_dir.run)
        for host in self.socket_servers.values():
            host.run_in(nursery)

    def _close_idle_connections(self) -> None:
        """Close connections that were idle for connections.max.idle.ms; set a timer for the next.

        No timer runs without connections: it would interrupt a week of virtual time a thousand
        times.
        """
        idle_ms = self.cluster.config_int("connections.max.idle.ms")
        self._closes_idle = idle_ms >= 0 and any(
            host.connected for host in self.socket_servers.values()
        )
        if not self._closes_idle:
            return
        now_ms = self.cluster.runtime.now_ms()
        oldest = self._idle_since_ms_min
        if oldest <= now_ms - idle_ms:
            found = [host.close_idle(now_ms - idle_ms) for host in self.socket_servers.values()]
            oldest = min((at for at in found if at is not None), default=now_ms)
        self.cluster.runtime.timers.call_at(oldest + idle_ms, self._close_idle_connections)

    def _extend_connected_sessions(self, by_ms: int) -> None:
        """Extend sessions before an advance; connected clients do not become idle during it."""
        self.cluster.extend_connected_sessions(by_ms)
        self._idle_since_ms_min = self.cluster.runtime.now_ms() + by_ms

    def _broker_changed(self, broker: Broker) -> None:
        """Open, pause or close a broker's ports and connections by the state of its process."""
        host = self.socket_servers.get(broker.node_id)
        if host is None:
            host = self._socket_server(broker, len(self.socket_servers))
            self.socket_servers[broker.node_id] = host
            if self._nursery is not None:
                host.run_in(self._nursery)
        host.broker = broker  # a removed broker may return under its id
        if broker.state == RUNNING:
            # A stopped broker without endpoints gets other ports.
            host.bind(new_ports=bool(broker.stopped_how) and not broker.endpoints)
            host.gate.open()
        elif broker.state == PAUSED:
            host.gate.close()
        else:
            keep_ports = broker.state == STOPPED
            host.stop(reset=broker.stopped_how == UNCLEAN, keep_ports=keep_ports)

    def _durable(self, transport: Transport) -> Transport:
        """The transport whose responses wait for the data directory, if there is one."""
        if self.data_dir is None:
            return transport
        from mockbroker.server.storage.data_dir import DurableTransport

        return DurableTransport(transport, self.data_dir)

    def _connect(
        self,
        host: SocketServer,
        listener: ListenerSpec,
        accepted: AcceptedTransport,
        peer: tuple[str, int],
    ) -> ServedConnection:
        self._connection_ids += 1
        if not self._closes_idle:
            self._closes_idle = True
            self.cluster.runtime.timers.call_at(
                self.cluster.runtime.now_ms(), self._close_idle_connections
            )
        info = ConnectionInfo(self._connection_ids, peer[0], peer[1])
        info.security_protocol = listener.security_protocol
        faults = self.cluster.faults
        if faults is None:
            return self._connection(host, listener, accepted, info)
        from mockbroker.server.network.faulted_accept import accept_faulted

        make = partial(self._connection, host, listener, accepted, info)
        return accept_faulted(self, faults, host, listener.name, accepted, info, make)

    def _connection(
        self,
        host: SocketServer,
        listener: ListenerSpec,
        accepted: AcceptedTransport,
        info: ConnectionInfo,
    ) -> Connection:
        if listener.security_protocol == "PLAINTEXT":
            return Connection(self._durable(accepted), host, listener.name, info, accepted)
        return self.security.connect(host, listener.name, accepted, info, self._durable)


@asynccontextmanager
async def open_server(
    config: ServerConfig | None = None,
    *,
    trace: Trace | None = None,
    network: ListenerNetwork | None = None,
    real_ns: Callable[[], int] = time.time_ns,
    clock: ClusterClock | None = None,
) -> AsyncIterator[ClusterServer]:
    """A serving cluster for the length of the block; clients may connect from its first line on.

    `network`, `real_ns` and `clock` are as for `ClusterServer`.
    """
    server = ClusterServer(
        config or ServerConfig(), trace=trace, network=network, real_ns=real_ns, clock=clock
    )
    server.bind()
    try:
        server.make_topics()
        if server.data_dir is not None:
            server.data_dir.follow(server.cluster)
        async with trio.open_nursery() as nursery:
            server.run_in(nursery)
            yield server
            nursery.cancel_scope.cancel()
    finally:
        server.close()
