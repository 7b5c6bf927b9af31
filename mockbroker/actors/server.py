"""A cluster that listens: brokers, their ports, and the tasks that keep them alive.

`ClusterServer` is what the command line, the fixtures and the tests start. Inside one trio run:

    async with open_server(ServerConfig(brokers=3)) as server:
        print(server.bootstrap_servers)
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from mockbroker.actors.clock import ClusterClock, Timekeeper
from mockbroker.actors.config import ServerConfig, ServerError
from mockbroker.actors.connection import Connection, Trace
from mockbroker.actors.stats import Stats
from mockbroker.actors.transport import SocketTransport
from mockbroker.core.cluster import Cluster
from mockbroker.handlers import load_all
from mockbroker.handlers.base import ConnectionInfo

log = logging.getLogger("mockbroker")

LISTEN_BACKLOG = 1024


class ClusterServer:
    """A core cluster with its sockets; made by `open_server` inside a trio run."""

    def __init__(self, config: ServerConfig, *, trace: Trace | None = None) -> None:
        load_all()
        self.config = config
        self.stats = Stats()
        self.clock = ClusterClock()
        self.cluster = Cluster(
            brokers=config.specs(),
            configs=dict(config.configs),
            seed=config.seed,
            now_ms=self.clock.now_ms,
            kafka_version=config.kafka_version,
        )
        self._trace = trace
        self._sockets: list[tuple[socket.socket, int, str]] = []
        self._connection_ids = 0

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT of every broker on the first listener, comma separated."""
        name = self.config.listeners[0].name
        return ",".join(
            f"{broker.endpoints[name].host}:{broker.endpoints[name].port}"
            for broker in self.cluster.brokers.values()
        )

    def bind(self) -> None:
        """Bind every broker's ports. Raises ServerError that names the address which is taken."""
        try:
            for listener in self.config.listeners:
                for index, broker in enumerate(self.cluster.brokers.values()):
                    port = listener.port + index if listener.port else 0
                    sock = _listen(listener.host, port)
                    self._sockets.append((sock, broker.node_id, listener.name))
                    broker.set_endpoint(
                        listener.name,
                        listener.advertised_host or listener.host,
                        sock.getsockname()[1],
                    )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the listening sockets. Idempotent."""
        for sock, _, _ in self._sockets:
            sock.close()
        self._sockets.clear()

    async def run(self) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Timekeeper(self.cluster.timers, self.clock).run)
            for sock, node_id, listener in self._sockets:
                nursery.start_soon(self._accept, sock, node_id, listener, nursery)

    async def _accept(
        self, sock: socket.socket, node_id: int, listener: str, nursery: trio.Nursery
    ) -> None:
        while True:
            await trio.lowlevel.wait_readable(sock)
            try:
                client, address = sock.accept()
            except BlockingIOError:
                continue
            except OSError as error:  # out of file descriptors, or the client is gone already
                log.warning("broker %d could not accept a connection: %s", node_id, error)
                await trio.sleep(0.01)
                continue
            nursery.start_soon(self._serve, client, address, node_id, listener)

    async def _serve(
        self, client: socket.socket, address: tuple[str, int], node_id: int, listener: str
    ) -> None:
        self._connection_ids += 1
        self.stats.connections_opened += 1
        try:
            connection = Connection(
                SocketTransport(client),
                self.cluster,
                self.cluster.brokers[node_id],
                listener,
                ConnectionInfo(self._connection_ids, address[0], address[1]),
                self.stats,
                self._trace,
            )
            await connection.run()
        finally:
            self.stats.connections_closed += 1


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises ServerError naming the address when it cannot be had."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ServerError(f"cannot resolve the host {host!r}: {error}") from None
    sock = socket.socket(family, kind, proto)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setblocking(False)
        sock.bind(address)
        sock.listen(LISTEN_BACKLOG)
    except OSError as error:
        sock.close()
        raise ServerError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return sock


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
