"""One broker's place in the process: its ports and its connections, which live and die with it.

A *host* is up or down. Down means what a client sees of a dead process: its connections end (FIN
after a controlled shutdown, RST after a kill) and its ports refuse. A *paused* host is a process
that was stopped with SIGSTOP: the kernel still accepts for it, but it reads and answers nothing
until it is resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import trio

from mockbroker.actors.config import ListenerSpec, ServerError

if TYPE_CHECKING:
    from mockbroker.actors.network import Link, Network, Port
    from mockbroker.core.broker import Broker
    from mockbroker.handlers.base import ConnectionInfo


class Served(Protocol):
    """One client's connection, as its host sees it.

    `active_ms` is when the client was last heard or answered; `parked` while a request waits.
    """

    active_ms: int
    parked: bool

    @property
    def info(self) -> ConnectionInfo:
        """Who is at the other end."""
        ...

    async def run(self) -> None:
        """Serve until either side closes."""
        ...

    def abort(self, *, reset: bool) -> None:
        """Close at once, with RST when `reset`; `run` returns soon after."""
        ...


# Makes a connection of an accepted client: (host, listener, link, peer's address).
Connect = Callable[["BrokerHost", ListenerSpec, "Link", tuple[str, int]], Served]


class Gate:
    """Lets everybody through, or nobody while it is shut."""

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


class BrokerHost:
    """The ports and connections of one broker. Its methods are called in the server's run."""

    def __init__(
        self,
        broker: Broker,
        listeners: Sequence[ListenerSpec],
        network: Network,
        connect: Connect,
    ) -> None:
        self.broker = broker
        self.gate = Gate()
        self._listeners = listeners
        self._network = network
        self._connect = connect
        self._numbers: dict[str, int] = {}  # by listener; a broker comes back where it was
        self._ports: list[tuple[Port, ListenerSpec]] = []
        self._connections: dict[Served, None] = {}  # in the order in which they came
        self._nursery: trio.Nursery | None = None

    @property
    def up(self) -> bool:
        return bool(self._ports)

    def bind(self, *, new_ports: bool = False) -> None:
        """Listen, on the ports of last time unless `new_ports`, and tell the cluster where.

        Raises ServerError that names the address which is taken; then nothing is bound.
        """
        if self.up:
            return
        try:
            for listener in self._listeners:
                number = 0 if new_ports else self._numbers.get(listener.name, listener.port)
                port = self._network.listen(listener.host, number)
                self._ports.append((port, listener))
                self._numbers[listener.name] = port.number
                host = listener.advertised_host or listener.host
                self.broker.set_endpoint(listener.name, host, port.number)
        except ServerError:
            self._close_ports()
            raise
        if self._nursery is not None:
            self._start_accepting(self._nursery)

    def stop(self, *, reset: bool) -> None:
        """Close the ports and every connection, with RST when `reset`. Idempotent."""
        self._close_ports()
        for connection in list(self._connections):
            connection.abort(reset=reset)
        self.gate.open()

    def port(self, listener: str) -> int | None:
        """The number of the port of a listener; None while it is closed."""
        return next((port.number for port, each in self._ports if each.name == listener), None)

    @property
    def connected(self) -> bool:
        """Whether any client is."""
        return bool(self._connections)

    def clients(self) -> list[ConnectionInfo]:
        """Who is connected."""
        return [connection.info for connection in self._connections]

    def close_idle(self, before_ms: int) -> int | None:
        """Close the connections not active since `before_ms`; when the next of them was active.

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

    def _close_ports(self) -> None:
        for port, _ in self._ports:
            port.close()
        self._ports.clear()

    def run_in(self, nursery: trio.Nursery) -> None:
        """Accept from now on, and after each later `bind`, in tasks of `nursery`."""
        self._nursery = nursery
        self._start_accepting(nursery)

    def _start_accepting(self, nursery: trio.Nursery) -> None:
        for port, listener in self._ports:
            nursery.start_soon(port.accept, partial(self._accept, listener, nursery))

    def _accept(
        self, listener: ListenerSpec, nursery: trio.Nursery, link: Link, peer: tuple[str, int]
    ) -> None:
        connection = self._connect(self, listener, link, peer)
        self._connections[connection] = None
        nursery.start_soon(self._serve, connection)

    async def _serve(self, connection: Served) -> None:
        try:
            await connection.run()
        finally:
            self._connections.pop(connection, None)
