"""TLS behind the transport's interface: the same bytes, in order, and a detected end."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

from mockbroker.server.network.transport import SocketTransport
from mockbroker.server.security.certificates import Authority
from mockbroker.server.security.tls_transport import ENCRYPT_BYTES_MAX, TlsTransport

CHUNK = bytes(range(256)) * 256
TIMEOUT_S = 20


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def server_context(authority: Authority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files = authority.server(["localhost"])
    context.load_cert_chain(files.certificate_path, files.key_path)
    context.num_tickets = 0
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(authority.ca_path)
    return context


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The server's socket, with a small buffer, and the client's."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        far = socket.create_connection(listener.getsockname(), timeout=TIMEOUT_S)
        near, _ = listener.accept()
    with near, far:
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
        yield near, far


def client_context(ca: Path, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    context.minimum_version = context.maximum_version = version
    return context


class Far:
    """A client in a thread of its own: runs `body(tls socket)`, keeps what it returns."""

    def __init__(
        self, sock: socket.socket, context: ssl.SSLContext, body: Callable[[ssl.SSLSocket], object]
    ) -> None:
        self.result: object = None
        self._thread = threading.Thread(target=self._run, args=(sock, context, body))
        self._thread.start()

    def _run(
        self, sock: socket.socket, context: ssl.SSLContext, body: Callable[[ssl.SSLSocket], object]
    ) -> None:
        try:
            with context.wrap_socket(sock, server_hostname="localhost") as tls:
                self.result = body(tls)
        except OSError as error:
            self.result = error

    def join(self) -> object:
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()
        return self.result


def read_all(tls: ssl.SSLSocket) -> bytes:
    data = bytearray()
    while chunk := tls.recv(1 << 16):
        data += chunk
    return bytes(data)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_bytes_go_both_ways(pair, authority, server_context, version) -> None:
    near, sock = pair

    def body(tls: ssl.SSLSocket) -> bytes:
        tls.sendall(b"question")
        return read_all(tls)

    far = Far(sock, client_context(authority.ca_path, version), body)

    async def main() -> None:
        transport = TlsTransport(SocketTransport(near), server_context)
        await transport.handshake()
        buffer = bytearray(100)
        assert await transport.receive_into(memoryview(buffer)) == 8
        assert buffer[:8] == b"question"
        assert not transport.send((b"ans", memoryview(b"wer"), b""))
        transport.close()
        transport.close()

    trio.run(main)
    assert far.join() == b"answer"


@pytest.mark.parametrize(
    "parts",
    [
        [CHUNK] * 64,
        [b"x" * 3, *[CHUNK] * 40, b"tail"],
        [CHUNK * 64, b"tail"],
        [bytes([n % 256]) * (n % 7) for n in range(3000)] + [CHUNK] * 20,
        [b"z" * ENCRYPT_BYTES_MAX, b"y" * (ENCRYPT_BYTES_MAX + 1)],
    ],
    ids=["equal", "odd", "one large", "many small", "at the limit"],
)
def test_a_slow_reader_gets_every_byte_in_order(pair, authority, server_context, parts) -> None:
    near, sock = pair
    may_read = threading.Event()
    whole = b"".join(parts)

    def body(tls: ssl.SSLSocket) -> bytes:
        tls.sendall(b"?")
        may_read.wait(TIMEOUT_S)
        return read_all(tls)

    far = Far(sock, client_context(authority.ca_path), body)

    async def main() -> None:
        transport = TlsTransport(SocketTransport(near), server_context)
        await transport.handshake()
        await transport.receive_into(memoryview(bytearray(1)))
        rest = transport.send(parts)
        may_read.set()
        if rest:
            await transport.send_rest(rest)
        assert not transport.send((b"end",))
        transport.close()

    trio.run(main)
    assert far.join() == whole + b"end"


def test_a_frame_is_read_in_pieces_of_any_size(pair, authority, server_context) -> None:
    near, sock = pair
    far = Far(sock, client_context(authority.ca_path), lambda tls: tls.sendall(CHUNK * 5))

    async def main() -> bytes:
        transport = TlsTransport(SocketTransport(near), server_context)
        await transport.handshake()
        data = bytearray(len(CHUNK) * 5)
        view, have = memoryview(data), 0
        while have < len(data):
            end = min(len(data), have + 70_001)
            have += await transport.receive_into(view[have:end], expect_data=True)
        assert await transport.receive_into(memoryview(bytearray(1))) == 0
        return bytes(data)

    assert trio.run(main) == CHUNK * 5
    far.join()


def test_the_end_without_a_farewell_is_the_end_too(pair, authority, server_context) -> None:
    near, sock = pair

    def body(tls: ssl.SSLSocket) -> None:
        tls.sendall(b"x")
        tls.shutdown(socket.SHUT_RDWR)

    far = Far(sock, client_context(authority.ca_path), body)

    async def main() -> None:
        transport = TlsTransport(SocketTransport(near), server_context)
        await transport.handshake()
        buffer = memoryview(bytearray(9))
        assert await transport.receive_into(buffer) == 1
        assert await transport.receive_into(buffer) == 0

    trio.run(main)
    far.join()


def test_a_client_that_leaves_during_the_handshake_is_an_os_error(pair, server_context) -> None:
    near, far = pair
    far.sendall(b"\x16\x03\x01")
    far.close()

    async def main() -> None:
        with pytest.raises(ConnectionResetError):
            await TlsTransport(SocketTransport(near), server_context).handshake()

    trio.run(main)


def test_a_client_that_speaks_no_tls_is_an_ssl_error(pair, server_context) -> None:
    near, far = pair
    far.sendall(b"\0\0\0\x0e\0\x12\0\0\0\0\0\1\xff\xff\0\0")

    async def main() -> None:
        transport = TlsTransport(SocketTransport(near), server_context)
        with pytest.raises(ssl.SSLError):
            await transport.handshake()
        transport.close()

    trio.run(main)
    assert far.recv(100) == b""


def test_a_client_that_does_not_trust_us_tells_so(pair, server_context, tmp_path) -> None:
    near, sock = pair
    far = Far(sock, client_context(Authority(tmp_path).ca_path), read_all)

    async def main() -> None:
        with pytest.raises(ssl.SSLError, match=r"(?i)unknown.ca"):
            await TlsTransport(SocketTransport(near), server_context).handshake()

    trio.run(main)
    assert isinstance(far.join(), ssl.SSLCertVerificationError)


@pytest.mark.parametrize("with_certificate", [True, False])
def test_the_clients_certificate_can_be_asked_for(
    pair, authority, server_context, with_certificate
) -> None:
    near, sock = pair
    context = client_context(authority.ca_path)
    if with_certificate:
        files = authority.client("alice")
        context.load_cert_chain(files.certificate_path, files.key_path)
    far = Far(sock, context, read_all)

    async def main() -> object:
        transport = TlsTransport(SocketTransport(near), server_context)
        await transport.handshake()
        subject = transport.peer_subject()
        transport.close()
        return subject

    subject = trio.run(main)
    far.join()
    if with_certificate:
        assert subject == (
            (("organizationName", "mockbroker"),),
            (("organizationalUnitName", "tests"),),
            (("commonName", "alice"),),
        )
    else:
        assert subject == ()


def test_a_reset_is_seen_by_the_client(pair, authority, server_context) -> None:
    near, sock = pair

    def body(tls: ssl.SSLSocket) -> bytes:
        tls.sendall(b"x")
        return socket.socket.recv(tls, 1)  # below TLS, which takes a reset for an end

    far = Far(sock, client_context(authority.ca_path), body)

    async def main() -> None:
        transport = TlsTransport(SocketTransport(near), server_context)
        await transport.handshake()
        await transport.receive_into(memoryview(bytearray(1)))
        transport.close(reset=True)

    trio.run(main)
    assert isinstance(far.join(), ConnectionResetError)
