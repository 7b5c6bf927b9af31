"""TLS over a non-blocking socket, with the interface of a plain transport.

OpenSSL works on two memory buffers without the socket. A TLS connection therefore waits at the same
points as a plain one, and `send` is a plain call that returns the bytes that the socket did not
accept.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Sequence

import trio

from mockbroker.server.network.transport import Buffer, SocketTransport

RECEIVE_BYTES = 64 * 1024
# The bytes encrypted before the socket must accept some: a slow reader of a large response costs
# this much memory, not a second copy of the response.
ENCRYPT_BYTES_MAX = 256 * 1024

# The result of `send` if all parts are encrypted, but not all encrypted bytes are sent.
_ONLY_ENCRYPTED: Sequence[Buffer] = (b"",)


class TlsTransport:
    """One TLS session, as its server. `handshake` comes before anything else."""

    __slots__ = ("_encrypted", "_incoming", "_outgoing", "_plain", "_socket", "_tls")

    def __init__(self, plain: SocketTransport, context: ssl.SSLContext) -> None:
        self._plain = plain
        self._socket = plain.socket
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._encrypted = memoryview(b"")  # not sent yet

    async def handshake(self) -> None:
        """Shake hands. Raises `ssl.SSLError` if either side refuses, after the alert is sent, and
        ConnectionError if the client closed.
        """
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._feed():
                    raise ConnectionResetError("closed during the TLS handshake") from None
            except ssl.SSLError:
                with contextlib.suppress(OSError):
                    await self._flush()
                raise
            else:
                await self._flush()
                return

    def peer_subject(self) -> Sequence[Sequence[tuple[str, str]]]:
        """The subject of the client's certificate as (name, value) pairs; empty without one.

        The names are OpenSSL's long ones, `commonName`, in the order of the certificate.
        """
        certificate = self._tls.getpeercert()
        if not certificate:
            return ()
        subject: Sequence[Sequence[tuple[str, str]]] = certificate["subject"]  # type: ignore[assignment]
        return subject

    async def receive_into(self, view: memoryview, *, expect_data: bool = False) -> int:
        """As `Transport.receive_into`."""
        while True:
            try:
                return self._tls.read(len(view), view)  # type: ignore[return-value]
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._feed(expect_data=expect_data):
                    return 0  # without close_notify, as by Java's clients and others
            except ssl.SSLZeroReturnError:
                return 0

    async def _feed(self, *, expect_data: bool = False) -> int:
        """Feed OpenSSL received bytes; returns their number, 0 at the end of the stream."""
        if not expect_data:
            await trio.lowlevel.wait_readable(self._socket)
        while True:
            try:
                data = self._socket.recv(RECEIVE_BYTES)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._socket)
            else:
                self._incoming.write(data)
                return len(data)

    async def _flush(self) -> None:
        """Send OpenSSL's own messages: of the handshake, alerts."""
        if self._outgoing.pending and not self._send_encrypted():
            await self.send_rest(())

    def send(self, parts: Sequence[Buffer]) -> Sequence[Buffer]:
        """As `Transport.send`; an empty part stands for encrypted bytes that are held here."""
        while parts:
            chunk, parts = _take(parts)
            while chunk:
                chunk = chunk[self._tls.write(chunk) :]
            if not self._send_encrypted():
                return parts or _ONLY_ENCRYPTED
        return ()

    async def send_rest(self, parts: Sequence[Buffer]) -> None:
        """As `Transport.send_rest`."""
        while True:
            while self._encrypted:
                await trio.lowlevel.wait_writable(self._socket)
                self._send_encrypted()
            if not parts:
                return
            parts = self.send(parts)

    def _send_encrypted(self) -> bool:
        """Send encrypted bytes; returns whether the socket accepted all of them."""
        encrypted = self._encrypted or memoryview(self._outgoing.read())
        try:
            sent = self._socket.send(encrypted)
        except BlockingIOError:
            sent = 0
        self._encrypted = encrypted[sent:]
        return not self._encrypted

    def close(self, *, reset: bool = False) -> None:
        """As `Transport.close`; close_notify goes before FIN."""
        if not reset and not self._encrypted and self._socket.fileno() >= 0:
            with contextlib.suppress(OSError, ValueError):
                self._tls.unwrap()
            with contextlib.suppress(OSError):
                self._send_encrypted()
        self._plain.close(reset=reset)


def _take(parts: Sequence[Buffer]) -> tuple[memoryview, Sequence[Buffer]]:
    """The first bytes of `parts` as one piece of at most ENCRYPT_BYTES_MAX, and the other parts."""
    first = memoryview(parts[0])
    if len(first) >= ENCRYPT_BYTES_MAX:
        rest = (first[ENCRYPT_BYTES_MAX:],) if len(first) > ENCRYPT_BYTES_MAX else ()
        return first[:ENCRYPT_BYTES_MAX], (*rest, *parts[1:])
    size = count = 0
    for part in parts:
        if size + len(part) > ENCRYPT_BYTES_MAX:
            break
        size += len(part)
        count += 1
    return memoryview(b"".join(parts[:count])), parts[count:]
