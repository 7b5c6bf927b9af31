"""The ports and connections of one broker, which open and close with its process.

To clients a stopped broker is a dead process: its connections end (FIN after a controlled shutdown,
RST after a kill) and its ports refuse. A *paused* broker is a process stopped with SIGSTOP: the
kernel still accepts connections, but nothing is read or answered until it is resumed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import trio

from mockbroker.handlers.base import ConnectionInfo, RequestContext
from mockbroker.server.config import ListenerSpec, ServerError
from mockbroker.server.network.connection_quotas import MAX_CONNECTIONS, ConnectionQuotas
from mockbroker.server.network.pause_gate import PauseGate
from mockbroker.server.network.request_memory import REQUEST_MEMORY, RequestMemory
from mockbroker.server.network.throttling import sleep_ms

if TYPE_CHECKING:
    from mockbroker.core.brokers.broker import Broker
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.configs.defs import ConfigValue
    from mockbroker.server.network.acceptor import (
        AcceptedTransport,
        Acceptor,
        ListenerNetwork,
        Reservation,
    )
    from mockbroker.server.network.stats import Stats


log = logging.getLogger("mockbroker")

# Called after each response: (context, request, response or outcome, nanoseconds).
Trace = Callable[[RequestContext, object, object, int], None]


class ServedConnection(Protocol):
    """One client's connection, for its socket server.

    `active_ms` is the time of the last request or response; `parked` is True while a request waits.
    """

    active_ms: int
    parked: bool

    @property
    def info(self) -> ConnectionInfo:
        """The client: its address, principal and software."""
        ...

    async def run(self) -> None:
        """Serve until either side closes."""
        ...

    def abort(self, *, reset: bool) -> None:
        """Close at once, with RST when `reset`; `run` returns soon after."""
        ...


# Makes a connection of an accepted client: (socket server, listener, accepted, client's address).
Connect = Callable[
    ["SocketServer", ListenerSpec, "AcceptedTransport", tuple[str, int]], ServedConnection
]


class SocketServer:
    """The ports and connections of one broker. Its methods are called in the cluster's run.

    Its connections use `cluster`, `broker`, `gate`, `requests`, `stats` and `trace`.
    """

    def __init__(
        self,
        cluster: Cluster,
        broker: Broker,
        listeners: Sequence[ListenerSpec],
        network: ListenerNetwork,
        connect: Connect,
        stats: Stats,
        requests: PauseGate,
        trace: Trace | None,
        listener_configs: Callable[[ListenerSpec], Mapping[str, ConfigValue]],
    ) -> None:
        self.cluster = cluster
        self.broker = broker
        self.gate = PauseGate()  # shut while the broker is paused: nothing is read or answered
        self.requests = requests  # shut while the clock is advanced: nothing is served
        self._quotas = ConnectionQuotas(cluster, broker.node_id, stats)
        for listener in listeners:
            self._quotas.add_listener(listener, listener_configs(listener))
        memory = cluster.config_int(REQUEST_MEMORY)
        self.request_memory = RequestMemory(memory, stats) if memory >= 0 else None
        self.stats = stats
        self.trace = trace
        self._listeners = listeners
        self._network = network
        self._connect = connect
        self._port_numbers: dict[str, int] = {}  # by listener; a restarted broker keeps its ports
        self._acceptors: list[tuple[Acceptor, ListenerSpec]] = []
        self._reservations: list[Reservation] = []  # of a stopped broker
        self._connections: dict[ServedConnection, None] = {}  # in the order of their arrival
        self._nursery: trio.Nursery | None = None

    @property
    def up(self) -> bool:
        return bool(self._acceptors)

    def bind(self, *, new_ports: bool = False) -> None:
        """Listen, on the former ports unless `new_ports`, and set the broker's endpoints.

        Raises ServerError that names a taken address; then nothing is bound.
        """
        if self.up:
            return
        self._release_ports()
        try:
            for listener in self._listeners:
                port = 0 if new_ports else self._port_numbers.get(listener.name, listener.port)
                acceptor = self._network.listen(listener.host, port)
                self._acceptors.append((acceptor, listener))
                self._port_numbers[listener.name] = acceptor.port
                host = listener.advertised_host or listener.host
                self.broker.set_endpoint(
                    listener.name, host, listener.advertised_port or acceptor.port
                )
        except ServerError:
            self._close_acceptors()
            raise
        if self._nursery is not None:
            self._start_accepting(self._nursery)

    def stop(self, *, reset: bool, keep_ports: bool = False) -> None:
        """Close the ports and every connection, with RST when `reset`. Idempotent.

        With `keep_ports`, no other program gets the ports until `bind`.
        """
        closed = [(listener.host, acceptor.port) for acceptor, listener in self._acceptors]
        self._close_acceptors()
        if keep_ports:
            self._reserve(closed)
        else:
            self._release_ports()
        for connection in list(self._connections):
            connection.abort(reset=reset)
        self.gate.open()

    def port(self, listener: str) -> int | None:
        """The port of a listener; None while it is closed."""
        return next((a.port for a, each in self._acceptors if each.name == listener), None)

    @property
    def connected(self) -> bool:
        """Whether any client is connected."""
        return bool(self._connections)

    def clients(self) -> list[ConnectionInfo]:
        """The connected clients."""
        return [connection.info for connection in self._connections]

    def close_idle(self, before_ms: int) -> int | None:
        """Close the connections not active since `before_ms`; returns the oldest last activity of
        the others, or None without others.

        A client that waits for an answer is not idle (connections.max.idle.ms).
        """
        oldest = None
        for connection in list(self._connections):
            if connection.parked:
                continue
            if connection.active_ms <= before_ms:
                connection.abort(reset=False)
            elif oldest is None or connection.active_ms < oldest:
                oldest = connection.active_ms
        return oldest

    def _close_acceptors(self) -> None:
        for acceptor, _ in self._acceptors:
            acceptor.close()
        self._acceptors.clear()

    def _reserve(self, addresses: Sequence[tuple[str, int]]) -> None:
        for host, port in addresses:
            try:
                self._reservations.append(self._network.reserve(host, port))
            except ServerError as error:
                log.warning("broker %d cannot keep its port: %s", self.broker.node_id, error)

    def _release_ports(self) -> None:
        for reservation in self._reservations:
            reservation.close()
        self._reservations.clear()

    def run_in(self, nursery: trio.Nursery) -> None:
        """Accept from now on, and after each later `bind`, in tasks of `nursery`."""
        self._nursery = nursery
        self._start_accepting(nursery)

    def _start_accepting(self, nursery: trio.Nursery) -> None:
        for acceptor, listener in self._acceptors:
            accept = partial(self._accept, listener, nursery)
            nursery.start_soon(acceptor.accept, accept, self._quotas.gate(listener.name))

    def _accept(
        self,
        listener: ListenerSpec,
        nursery: trio.Nursery,
        accepted: AcceptedTransport,
        peer: tuple[str, int],
    ) -> None:
        limit = self._quotas.exceeded_by(accepted, peer[0])
        if limit is not None:
            self.stats.exceeded(limit)
            log.warning(
                "broker %d client %s:%d: connection refused; the limit is %s",
                self.broker.node_id,
                *peer,
                limit,
            )
            accepted.close()
            return
        connection = self._connect(self, listener, accepted, peer)
        self._connections[connection] = None
        wait_ms = self._quotas.opened(listener.name, peer[0])
        if self._quotas.evicts(listener.name):
            self._evict(listener.name)
        nursery.start_soon(self._serve, connection, listener.name, peer[0], wait_ms)

    def _evict(self, protected: str) -> None:
        """Close the connection of another listener that was idle longest; one that waits for an
        answer is the last to go.
        """
        others = [each for each in self._connections if each.info.listener != protected]
        if others:
            self.stats.exceeded(MAX_CONNECTIONS)
            min(others, key=lambda each: (each.parked, each.active_ms)).abort(reset=False)

    async def _serve(
        self, connection: ServedConnection, listener: str, host: str, wait_ms: int
    ) -> None:
        try:
            if wait_ms:
                await sleep_ms(self.cluster.runtime, wait_ms)
            await connection.run()
        finally:
            self._connections.pop(connection, None)
            self._quotas.closed(listener, host)
