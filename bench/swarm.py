"""Many raw clients at once, from one thread: each a script of requests and answers.

A *script* is a generator that yields a request, size included, and is sent the answer to it. All
connections stay open until every script has ended.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Generator, Iterable

Address = tuple[str, int]
Script = Generator[bytes, bytes, object]

PATIENCE_S = 120.0
_READ_BYTES = 1 << 16


class _Client:
    """One connection and where it is in its script."""

    __slots__ = ("_received", "script", "socket")

    def __init__(self, address: Address, script: Script) -> None:
        self.script = script
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""

    def begin(self) -> None:
        self.socket.sendall(next(self.script))

    def go_on(self) -> bool:
        """Take in what has arrived; False once the script has ended."""
        received = self.socket.recv(_READ_BYTES)
        if not received:
            raise ConnectionError("closed instead of answering")
        self._received += received
        whole = self._received
        if len(whole) < 4 or len(whole) < 4 + int.from_bytes(whole[:4], "big"):
            return True
        self._received = b""
        try:
            request = self.script.send(whole)
        except StopIteration:
            return False
        self.socket.sendall(request)
        return True


def drive(scripts: Iterable[tuple[Address, Script]]) -> float:
    """Connect and run all scripts side by side; seconds until the last one ended.

    Raises ConnectionError if the peer closes a connection, RuntimeError if answers fail to come.
    """
    begun = time.perf_counter()
    clients: list[_Client] = []
    with selectors.DefaultSelector() as selector:
        try:
            for address, script in scripts:
                client = _Client(address, script)
                clients.append(client)
                client.begin()
                selector.register(client.socket, selectors.EVENT_READ, client)
            left = len(clients)
            while left:
                ready = selector.select(PATIENCE_S)
                if not ready:
                    raise RuntimeError(f"{left} of {len(clients)} clients wait in vain")
                for key, _ in ready:
                    if not key.data.go_on():
                        selector.unregister(key.fileobj)
                        left -= 1
            return time.perf_counter() - begun
        finally:
            for client in clients:
                client.socket.close()
