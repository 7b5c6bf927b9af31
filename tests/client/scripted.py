"""A peer that does to one client what a test tells it to."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.support.sockets import close_with_rst

SOCKET_TIMEOUT_S = 20.0


class Peer:
    """The far end of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock

    def read_frame(self) -> bytes:
        size = struct.unpack(">i", self._read(4))[0]
        return self._read(size)

    def write_frame(self, payload: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(payload)) + payload)

    def reset(self) -> None:
        """Close with RST, as a crashing process does."""
        close_with_rst(self.socket)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            assert more, "the client went away"
            data += more
        return data


@contextmanager
def scripted_peer(*scripts: Callable[[Peer], None]) -> Iterator[tuple[str, int]]:
    """Listen; the first connection is handled by the first script, and so on."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(SOCKET_TIMEOUT_S)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            for script in scripts:
                sock, _ = listener.accept()
                sock.settimeout(SOCKET_TIMEOUT_S)
                with sock:
                    script(Peer(sock))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        host, port = listener.getsockname()
        yield host, port
    finally:
        thread.join(SOCKET_TIMEOUT_S)
        listener.close()
    if errors:
        raise errors[0]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
