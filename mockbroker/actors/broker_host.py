"""One broker's place in the process: its ports and its connections, which live and die with it.

A *host* is up or down. Down means what a client sees of a dead process: its connections end (FIN
after a controlled shutdown, RST after a kill) and its ports refuse. A *paused* host is a process
that was stopped with SIGSTOP: the kernel still accepts for it, but it reads and answers nothing
until it is resumed.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import trio

from mockbroker.actors.config import ListenerSpec, ServerError

if TYPE_CHECKING:
    from mockbroker.core.broker import Broker
    from mockbroker.handlers.base import ConnectionInfo

log = logging.getLogger("mockbroker")

LISTEN_BACKLOG = 1024
# How many clients are accepted before others have their turn.
ACCEPTS_PER_TURN = 64
# How long to wait before the next accept when the process has no file descriptor left.
NO_DESCRIPTOR_PAUSE_S = 0.01


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


# Makes a connection of an accepted socket: (host, listener, socket, peer's address).
Connect = Callable[["BrokerHost", ListenerSpec, socket.socket, tuple[str, int]], Served]


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

    def __init__(self, broker: Broker, listeners: Sequence[ListenerSpec], connect: Connect) -> None:
        self.broker = broker
        self.gate = Gate()
        self._listeners = listeners
        self._connect = connect
        self._ports: dict[str, int] = {}  # by listener; a broker comes back where it was
        self._sockets: list[tuple[socket.socket, ListenerSpec]] = []
        self._connections: set[Served] = set()
        self._nursery: trio.Nursery | None = None
        self._accepting: list[trio.CancelScope] = []

    @property
    def up(self) -> bool:
        return bool(self._sockets)

    def bind(self, *, new_ports: bool = False) -> None:
        """Listen, on the ports of last time unless `new_ports`, and tell the cluster where.

        Raises ServerError that names the address which is taken; then nothing is bound.
        """
        if self.up:
            return
        try:
            for listener in self._listeners:
                port = 0 if new_ports else self._ports.get(listener.name, listener.port)
                sock = listen(listener.host, port)
                self._sockets.append((sock, listener))
                port = self._ports[listener.name] = sock.getsockname()[1]
                host = listener.advertised_host or listener.host
                self.broker.set_endpoint(listener.name, host, port)
        except ServerError:
            self._close_sockets()
            raise
        if self._nursery is not None:
            self._start_accepting(self._nursery)

    def stop(self, *, reset: bool) -> None:
        """Close the ports and every connection, with RST when `reset`. Idempotent."""
        for scope in self._accepting:
            scope.cancel()
        self._accepting.clear()
        self._close_sockets()
        for connection in list(self._connections):
            connection.abort(reset=reset)
        self.gate.open()

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

    def _close_sockets(self) -> None:
        for sock, _ in self._sockets:
            sock.close()
        self._sockets.clear()

    def run_in(self, nursery: trio.Nursery) -> None:
        """Accept from now on, and after each later `bind`, in tasks of `nursery`."""
        self._nursery = nursery
        self._start_accepting(nursery)

    def _start_accepting(self, nursery: trio.Nursery) -> None:
        for sock, listener in self._sockets:
            scope = trio.CancelScope()
            self._accepting.append(scope)
            nursery.start_soon(self._accept, sock, listener, scope, nursery)

    async def _accept(
        self,
        sock: socket.socket,
        listener: ListenerSpec,
        scope: trio.CancelScope,
        nursery: trio.Nursery,
    ) -> None:
        # A broker may stop between the moment a client is seen and the moment it is accepted.
        with scope:
            while sock.fileno() >= 0:
                await trio.lowlevel.wait_readable(sock)
                if scope.cancel_called:
                    break
                try:
                    self._accept_waiting(sock, listener, nursery)
                except BlockingIOError:
                    continue
                except OSError as error:  # no descriptor left, or the client is gone already
                    node_id = self.broker.node_id
                    log.warning("broker %d could not accept a connection: %s", node_id, error)
                    # Real time: the run's own clock may stand still.
                    await trio.to_thread.run_sync(time.sleep, NO_DESCRIPTOR_PAUSE_S)

    def _accept_waiting(
        self, sock: socket.socket, listener: ListenerSpec, nursery: trio.Nursery
    ) -> None:
        """Accept the clients that wait. Raises BlockingIOError when there is none any more.

        One client for each turn of the event loop would be one for each request of all others.
        """
        for _ in range(ACCEPTS_PER_TURN):
            client, address = sock.accept()
            connection = self._connect(self, listener, client, address)
            self._connections.add(connection)
            nursery.start_soon(self._serve, connection)

    async def _serve(self, connection: Served) -> None:
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)


def listen(host: str, port: int) -> socket.socket:
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
