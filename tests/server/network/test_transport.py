"""Sending the bytes that the socket accepts at once, and the rest later."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
import trio

from mockbroker.server.network.transport import IOV_MAX, JOIN_BYTES_MAX, SocketTransport

CHUNK = bytes(range(256)) * 256  # 64 KiB, and no two places that look alike nearby


@pytest.fixture
def pair() -> Iterator[tuple[SocketTransport, socket.socket]]:
    """A transport and the plain socket at its other end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        far = socket.create_connection(listener.getsockname())
        near, _ = listener.accept()
    with near, far:
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
        far.settimeout(10)
        yield SocketTransport(near), far


def read_all(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        data += sock.recv(size - len(data))
    return bytes(data)


def test_a_small_answer_leaves_at_once(pair: tuple[SocketTransport, socket.socket]) -> None:
    transport, far = pair
    assert not transport.send((b"head", memoryview(b"body"), b""))
    assert read_all(far, 8) == b"headbody"


@pytest.mark.parametrize(
    "parts",
    [
        [CHUNK] * 64,
        [b"x" * 3, *[CHUNK] * 40, b"tail"],
        [bytes([n % 256]) * (n % 7) for n in range(3 * IOV_MAX)] + [CHUNK] * 40,
    ],
    ids=["equal", "odd", "more pieces than one call takes"],
)
def test_a_slow_reader_gets_every_byte_in_order(
    pair: tuple[SocketTransport, socket.socket], parts: list[bytes]
) -> None:
    transport, far = pair
    whole = b"".join(parts)
    assert len(whole) > JOIN_BYTES_MAX
    received = b""

    async def main() -> None:
        nonlocal received
        rest = transport.send(parts)
        assert rest, "the socket was meant to be full"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(transport.send_rest, rest)
            received = await trio.to_thread.run_sync(read_all, far, len(whole))

    trio.run(main)
    assert received == whole


def test_sending_to_a_client_that_went_away_is_an_os_error(
    pair: tuple[SocketTransport, socket.socket],
) -> None:
    transport, far = pair
    far.close()

    async def send_on_and_on() -> None:
        while True:
            await transport.send_rest(transport.send([CHUNK]))

    with pytest.raises(OSError, match=r"Broken pipe|reset"):
        trio.run(send_on_and_on)


def test_receiving_fills_a_prefix_and_tells_the_end_of_the_stream(
    pair: tuple[SocketTransport, socket.socket],
) -> None:
    transport, far = pair
    buffer = bytearray(8)

    async def main() -> None:
        far.sendall(b"abc")
        assert await transport.receive_into(memoryview(buffer)) == 3
        assert buffer[:3] == b"abc"
        far.shutdown(socket.SHUT_WR)
        assert await transport.receive_into(memoryview(buffer), expect_data=True) == 0

    trio.run(main)
