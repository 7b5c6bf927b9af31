"""A cluster that listens: brokers, their ports, and the tasks that keep them alive.

`ClusterServer` is what the command line, the fixtures and the tests start. Inside one trio run:

    async with open_server(ServerConfig(brokers=3)) as server:
        print(server.bootstrap_servers)
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from mockbroker.actors.broker_host import BrokerHost, Served
from mockbroker.actors.clock import ClusterClock, Timekeeper, steerable_clock
from mockbroker.actors.clock_control import RunClock
from mockbroker.actors.config import ListenerSpec, ServerConfig, ServerError
from mockbroker.actors.connection import Connection, Trace
from mockbroker.actors.network import Link, Network, SocketNetwork
from mockbroker.actors.stats import Stats
from mockbroker.actors.transport import Transport
from mockbroker.core.broker import Broker
from mockbroker.core.broker_life import PAUSED, RUNNING, STOPPED
from mockbroker.core.cluster import Cluster
from mockbroker.core.controller import UNCLEAN
from mockbroker.core.journal.journal import Journal
from mockbroker.handlers import load_all
from mockbroker.handlers.base import ConnectionInfo

if TYPE_CHECKING:
    from mockbroker.actors.data_dir import DataDir
    from mockbroker.actors.security import Security
    from mockbroker.actors.snapshots import Snapshots, Stored


class ClusterServer:
    """A core cluster with its ports; made by `open_server` inside a trio run.

    `network` is where clients come from: TCP, unless something else is given. `real_ns` tells the
    time of day, in ns since the epoch. The cluster goes by `clock`, or by one of its own that
    begins then; a `cluster` that is there already is served as it is.
    """

    def __init__(
        self,
        config: ServerConfig,
        *,
        trace: Trace | None = None,
        network: Network | None = None,
        real_ns: Callable[[], int] = time.time_ns,
        cluster: Cluster | None = None,
        clock: ClusterClock | None = None,
    ) -> None:
        load_all()
        self.config = config
        self.stats = Stats()
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
        # The credentials of the users that the cluster was started with.
        self.initial_credentials = {
            user: dict(each)
            for user, each in self.cluster.scram_credentials.items()
            if user in config.users
        }
        self.timekeeper = Timekeeper(self.cluster.timers, self.clock, self._spare_clients)
        self._network = SocketNetwork() if network is None else network
        self.hosts = {
            broker.node_id: self._host(broker, index)
            for index, broker in enumerate(self.cluster.processes.values())
        }
        self._trace = trace
        self._connection_ids = 0
        self._spared_until_ms = 0  # none has been idle before that, as the clock was moved on
        self._watches_idle = False  # whether a timer is set for connections that grow idle
        self._nursery: trio.Nursery | None = None
        self.cluster.on_broker_state.append(self._broker_changed)

    def _make_cluster(self) -> Cluster:
        """A new cluster, or the one that is stored."""
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
            from mockbroker.actors.snapshots import put_back

            put_back(cluster, stored.image)
        return cluster

    def _journaled(self, cluster: Cluster) -> Cluster:
        """The cluster with the journal that the config asks for."""
        config = self.config
        if config.journal_bytes:
            overflow = config.journal_overflow
            cluster.keep_journal(Journal(self._real_ns, config.journal_bytes, overflow))
        return cluster

    def _secure(self) -> Security | None:
        if all(listener.security_protocol == "PLAINTEXT" for listener in self.config.listeners):
            return None
        from mockbroker.actors.security import Security

        return Security(self.config, self.cluster)

    def _open_stored(self) -> Stored | None:
        config = self.config
        if config.data_dir is None and config.load is None and not config.sync:
            return None
        from mockbroker.actors.snapshots import open_stored

        stored = open_stored(config)
        self.data_dir = stored.data_dir
        if stored.image is not None:
            self.clock.move_on(max(stored.image.at_ms - self.clock.now_ms(), 0))
        return stored

    @property
    def snapshots(self) -> Snapshots:
        """What takes snapshots of the cluster and goes back to them."""
        from mockbroker.actors.snapshots import Snapshots

        return Snapshots(self)

    def move_clock_on(self, by_ms: int) -> None:
        """Let it be that much later at once, without anybody having been idle meanwhile."""
        self._spare_clients(by_ms)
        self.clock.move_on(by_ms)

    @property
    def security(self) -> Security:
        """What the secured listeners share. Raises ServerError where there are none."""
        if self._security is None:
            raise ServerError("every listener of this cluster is PLAINTEXT")
        return self._security

    def _host(self, broker: Broker, index: int) -> BrokerHost:
        return BrokerHost(broker, self._listeners(index), self._network, self._connect)

    def _listeners(self, index: int) -> list[ListenerSpec]:
        """The listeners of the broker with this place: its ports follow the first broker's."""
        return [
            dataclasses.replace(listener, port=listener.port and listener.port + index)
            for listener in self.config.listeners
        ]

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
        """Bind every broker's ports. Raises ServerError that names the address which is taken."""
        try:
            for host in self.hosts.values():
                if host.broker.state != STOPPED:
                    host.bind()
                if host.broker.state == PAUSED:
                    host.gate.close()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close every port and connection. Idempotent."""
        for host in self.hosts.values():
            host.stop(reset=False)
        self._network.close()
        if self._security is not None:
            self._security.close()
        if self.data_dir is not None:
            self.data_dir.close()

    def make_topics(self) -> None:
        """Make the topics that are to be there from the start, and are not stored already."""
        wanted = [spec for spec in self.config.topics if spec.name not in self.cluster.topics]
        if wanted:
            from mockbroker.actors.seeding import seed_topics

            seed_topics(self.cluster, wanted)

    async def move_on(
        self, milliseconds: int, *, only: str | None = None, spare_connected: bool = True
    ) -> None:
        """Move the cluster's clock on, or the time of one part (see `TimeScopes.find`).

        Raises ValueError for a negative step or a part there is not, RuntimeError where the run's
        clock is not ours to move.
        """
        spared = {"spare_connected": spare_connected}
        if only is None:
            await self.timekeeper.advance(milliseconds, **spared)
        else:
            part = self.cluster.time_scopes.find(only)
            await self.timekeeper.advance_part(part, milliseconds, **spared)
        self._tell_clock("moved on", advance_ms=milliseconds, only=only, **spared)

    def set_clock_rate(self, rate: float) -> None:
        """Run at `rate` seconds for each of real time; 0 freezes. Raises ValueError for what is no
        rate, RuntimeError where the run's clock is not ours to steer.
        """
        steerable_clock().set_rate(rate)
        self._tell_clock("rate", rate=rate)

    def _tell_clock(self, change: str, **facts: object) -> None:
        if self.cluster.journal is not None:
            self.cluster.journal.fact(self.clock.now_ms(), "clock", change=change, **facts)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            self.cluster.clock_control = RunClock(self, nursery)
            nursery.start_soon(self.timekeeper.run)
            nursery.start_soon(self._network.run)
            if self.data_dir is not None:
                nursery.start_soon(self.data_dir.run)
            for host in self.hosts.values():
                host.run_in(nursery)
            task_status.started()
            await trio.sleep_forever()

    def _close_idle_connections(self) -> None:
        """Close what has been idle for connections.max.idle.ms, and come back for the next.

        Without connections there is nothing to come back for until there is one: a week that
        passes in virtual time would stop a thousand times for it.
        """
        idle_ms = self.cluster.config_int("connections.max.idle.ms")
        self._watches_idle = idle_ms >= 0 and any(host.connected for host in self.hosts.values())
        if not self._watches_idle:
            return
        now_ms = self.cluster.now_ms()
        oldest = self._spared_until_ms
        if oldest <= now_ms - idle_ms:
            found = [host.close_idle(now_ms - idle_ms) for host in self.hosts.values()]
            oldest = min((at for at in found if at is not None), default=now_ms)
        self.cluster.timers.call_at(oldest + idle_ms, self._close_idle_connections)

    def _spare_clients(self, by_ms: int) -> None:
        """Before the clock is moved on: clients that are there would not have been idle."""
        self.cluster.spare_connected_members(by_ms)
        self._spared_until_ms = self.cluster.now_ms() + by_ms

    def _broker_changed(self, broker: Broker) -> None:
        """Do to a broker's ports and connections what happened to its process."""
        host = self.hosts.get(broker.node_id)
        if host is None:
            host = self._host(broker, len(self.hosts))
            self.hosts[broker.node_id] = host
            if self._nursery is not None:
                host.run_in(self._nursery)
        host.broker = broker  # one that was removed may have come back under its id
        if broker.state == RUNNING:
            # A broker that was stopped and has no endpoints any more is to come back elsewhere.
            host.bind(new_ports=bool(broker.stopped_how) and not broker.endpoints)
            host.gate.open()
        elif broker.state == PAUSED:
            host.gate.close()
        else:
            host.stop(reset=broker.stopped_how == UNCLEAN)

    def _kept(self, transport: Transport) -> Transport:
        """Let answers wait for the data directory, where there is one."""
        if self.data_dir is None:
            return transport
        from mockbroker.actors.data_dir import DurableTransport

        return DurableTransport(transport, self.data_dir)

    def _connect(
        self, host: BrokerHost, listener: ListenerSpec, link: Link, peer: tuple[str, int]
    ) -> Served:
        self._connection_ids += 1
        if not self._watches_idle:
            self._watches_idle = True
            self.cluster.timers.call_at(self.cluster.now_ms(), self._close_idle_connections)
        info = ConnectionInfo(self._connection_ids, peer[0], peer[1])
        info.security_protocol = listener.security_protocol
        faults = self.cluster.faults
        if faults is None:
            return self._connection(host, listener, link, info)
        from mockbroker.actors.welcome import welcome

        make = partial(self._connection, host, listener, link, info)
        return welcome(self, faults, host, listener.name, link, info, make)

    def _connection(
        self, host: BrokerHost, listener: ListenerSpec, link: Link, info: ConnectionInfo
    ) -> Connection:
        if listener.security_protocol == "PLAINTEXT":
            connection = Connection(
                self._kept(link),
                self.cluster,
                host.broker,
                listener.name,
                info,
                self.stats,
                self._trace,
                host.gate,
            )
        else:
            secured = self.security.connect(
                host, listener.name, link, info, self.stats, self._trace
            )
            secured.wrap_transport(self._kept)
            connection = secured
        connection.notice_next_requests(link)
        return connection


@asynccontextmanager
async def open_server(
    config: ServerConfig | None = None,
    *,
    trace: Trace | None = None,
    network: Network | None = None,
    real_ns: Callable[[], int] = time.time_ns,
    clock: ClusterClock | None = None,
) -> AsyncIterator[ClusterServer]:
    """A serving cluster for the length of the block; clients may connect from its first line on.

    `network`, `real_ns` and `clock` are what `ClusterServer` takes.
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
            await nursery.start(server.run)
            yield server
            nursery.cancel_scope.cancel()
    finally:
        server.close()
