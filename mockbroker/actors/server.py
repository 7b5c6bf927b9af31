"""A cluster that listens: brokers, their ports, and the tasks that keep them alive.

`ClusterServer` is what the command line, the fixtures and the tests start. Inside one trio run:

    async with open_server(ServerConfig(brokers=3)) as server:
        print(server.bootstrap_servers)
"""

from __future__ import annotations

import dataclasses
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from mockbroker.actors.broker_host import BrokerHost
from mockbroker.actors.clock import ClusterClock, Timekeeper
from mockbroker.actors.config import ListenerSpec, ServerConfig, ServerError
from mockbroker.actors.connection import Connection, Trace
from mockbroker.actors.stats import Stats
from mockbroker.actors.transport import SocketTransport
from mockbroker.core.broker import PAUSED, RUNNING, Broker
from mockbroker.core.cluster import Cluster
from mockbroker.core.controller import UNCLEAN
from mockbroker.core.journal.journal import Journal
from mockbroker.handlers import load_all
from mockbroker.handlers.base import ConnectionInfo

if TYPE_CHECKING:
    from mockbroker.actors.security import Security


class ClusterServer:
    """A core cluster with its sockets; made by `open_server` inside a trio run."""

    def __init__(self, config: ServerConfig, *, trace: Trace | None = None) -> None:
        load_all()
        self.config = config
        self.stats = Stats()
        self.clock = ClusterClock()
        self.cluster = Cluster(
            brokers=config.specs(),
            configs=config.broker_configs(),
            seed=config.seed,
            now_ms=self.clock.now_ms,
            kafka_version=config.kafka_version,
        )
        if config.journal_bytes:
            self.cluster.keep_journal(Journal(time.time_ns, config.journal_bytes))
        self._security = self._secure()
        self.timekeeper = Timekeeper(self.cluster.timers, self.clock, self._spare_clients)
        self.hosts = {
            broker.node_id: BrokerHost(broker, self._listeners(index), self._connect)
            for index, broker in enumerate(self.cluster.brokers.values())
        }
        self._trace = trace
        self._connection_ids = 0
        self._nursery: trio.Nursery | None = None
        self.cluster.on_broker_state.append(self._broker_changed)

    def _secure(self) -> Security | None:
        if all(listener.security_protocol == "PLAINTEXT" for listener in self.config.listeners):
            return None
        from mockbroker.actors.security import Security

        return Security(self.config, self.cluster)

    @property
    def security(self) -> Security:
        """What the secured listeners share. Raises ServerError where there are none."""
        if self._security is None:
            raise ServerError("every listener of this cluster is PLAINTEXT")
        return self._security

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
                host.bind()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close every port and connection. Idempotent."""
        for host in self.hosts.values():
            host.stop(reset=False)
        if self._security is not None:
            self._security.close()

    async def run(self) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self.timekeeper.run)
            for host in self.hosts.values():
                host.run_in(nursery)
            self._close_idle_connections()
            await trio.sleep_forever()

    def _close_idle_connections(self) -> None:
        """Close what has been idle for connections.max.idle.ms, and come back for the next."""
        idle_ms = self.cluster.config_int("connections.max.idle.ms")
        if idle_ms < 0:
            return
        now_ms = self.cluster.now_ms()
        found = [host.close_idle(now_ms - idle_ms) for host in self.hosts.values()]
        oldest = min((at for at in found if at is not None), default=now_ms)
        self.cluster.timers.call_at(oldest + idle_ms, self._close_idle_connections)

    def _spare_clients(self, by_ms: int) -> None:
        """Before the clock is moved on: clients that are there would not have been idle."""
        self.cluster.spare_connected_members(by_ms)
        for host in self.hosts.values():
            host.spare_connections(by_ms)

    def _broker_changed(self, broker: Broker) -> None:
        """Do to a broker's ports and connections what happened to its process."""
        host = self.hosts.get(broker.node_id)
        if host is None:
            host = BrokerHost(broker, self._listeners(len(self.hosts)), self._connect)
            self.hosts[broker.node_id] = host
            if self._nursery is not None:
                host.run_in(self._nursery)
        if broker.state == RUNNING:
            host.bind()
            host.gate.open()
        elif broker.state == PAUSED:
            host.gate.close()
        else:
            host.stop(reset=broker.stopped_how == UNCLEAN)

    def _connect(
        self, host: BrokerHost, listener: ListenerSpec, client: socket.socket, peer: tuple[str, int]
    ) -> Connection:
        self._connection_ids += 1
        info = ConnectionInfo(self._connection_ids, peer[0], peer[1])
        if listener.security_protocol != "PLAINTEXT":
            return self.security.connect(host, listener.name, client, info, self.stats, self._trace)
        return Connection(
            SocketTransport(client),
            self.cluster,
            host.broker,
            listener.name,
            info,
            self.stats,
            self._trace,
            host.gate,
        )


@asynccontextmanager
async def open_server(
    config: ServerConfig | None = None, *, trace: Trace | None = None
) -> AsyncIterator[ClusterServer]:
    """A serving cluster for the length of the block; clients may connect from its first line on."""
    server = ClusterServer(config or ServerConfig(), trace=trace)
    server.bind()
    try:
        if server.config.topics:
            from mockbroker.actors.seeding import seed_topics

            seed_topics(server.cluster, server.config.topics)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.run)
            yield server
            nursery.cancel_scope.cancel()
    finally:
        server.close()
