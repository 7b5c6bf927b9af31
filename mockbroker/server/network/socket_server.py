"""The ports and connections of one broker, which live and die with it.

A stopped broker is for its clients what a dead process is: its connections end (FIN after a
controlled shutdown, RST after a kill) and its ports refuse. A *paused* broker is a process stopped
with SIGSTOP: the kernel still accepts for it, but it reads and answers nothing until it is resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import trio

from mockbroker.handlers.base import ConnectionInfo, RequestContext
from mockbroker.server.config import ListenerSpec, ServerError

if TYPE_CHECKING:
    from mockbroker.core.brokers.broker import Broker
    from mockbroker.core.cluster import Cluster
    from mockbroker.server.network.acceptor import Acceptor, Link, Network
    from mockbroker.server.network.stats import Stats


# Called after each response: (context, request, response or outcome, nanoseconds).
Trace = Callable[[RequestContext, object, object, int], None]


class ClientConnection(Protocol):
    """One client's connection, as its socket server sees it.

    `active_ms` is the time of the last request or response; `parked` while a request waits.
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


# Makes a connection of an accepted client: (socket server, listener, link, client's address).
Connect = Callable[["SocketServer", ListenerSpec, "Link", tuple[str, int]], ClientConnection]


class PauseGate:
    """Shut while the broker is paused: nothing is read or answered then."""

    __slots__ = ("_opened", "shut")

    def __init__(self) -> None:
        self.shut = False
        self._opened = trio.Event()

    def close(self) -> None:
        if not self.shut:
            self.shut = True
            self._opened = trio.Event()

    def open(self) -> None:
        self.shut = False
        self._opened.set()

    async def wait(self) -> None:
        """Return once the gate is open."""
        while self.shut:
            await self._opened.wait()


class SocketServer:
    """The ports and connections of one broker. Its methods are called in the cluster's run.

    `cluster`, `broker`, `gate`, `stats` and `trace` are what its connections serve with.
    """

    def __init__(
        self,
        cluster: Cluster,
        broker: Broker,
        listeners: Sequence[ListenerSpec],
        network: Network,
        connect: Connect,
        stats: Stats,
        trace: Trace | None,
    ) -> None:
        self.cluster = cluster
        self.broker = broker
        self.gate = PauseGate()
        self.stats = stats
        self.trace = trace
        self._listeners = listeners
        self._network = network
        self._connect = connect
        self._port_numbers: dict[str, int] = {}  # by listener; a broker comes back where it was
        self._acceptors: list[tuple[Acceptor, ListenerSpec]] = []
        self._connections: dict[ClientConnection, None] = {}  # in the order in which they came
        self._nursery: trio.Nursery | None = None

    @property
    def up(self) -> bool:
        return bool(self._acceptors)

    def bind(self, *, new_ports: bool = False) -> None:
        """Listen, on the ports of last time unless `new_ports`, and tell the cluster where.

        Raises ServerError that names the address which is taken; then nothing is bound.
        """
        if self.up:
            return
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

    def stop(self, *, reset: bool) -> None:
        """Close the ports and every connection, with RST when `reset`. Idempotent."""
        self._close_acceptors()
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
        """Close the connections not active since `before_ms`; returns when the one that has been
        idle longest of the others was active, None without such a one.

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

    def run_in(self, nursery: trio.Nursery) -> None:
        """Accept from now on, and after each later `bind`, in tasks of `nursery`."""
        self._nursery = nursery
        self._start_accepting(nursery)

    def _start_accepting(self, nursery: trio.Nursery) -> None:
        for acceptor, listener in self._acceptors:
            nursery.start_soon(acceptor.accept, partial(self._accept, listener, nursery))

    def _accept(
        self, listener: ListenerSpec, nursery: trio.Nursery, link: Link, peer: tuple[str, int]
    ) -> None:
        connection = self._connect(self, listener, link, peer)
        self._connections[connection] = None
        nursery.start_soon(self._serve, connection)

    async def _serve(self, connection: ClientConnection) -> None:
        try:
            await connection.run()
        finally:
            self._connections.pop(connection, None)
