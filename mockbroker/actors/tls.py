"""TLS over a non-blocking socket, behind the same interface as a plain one.

OpenSSL works on two memory buffers and never sees the socket: what arrives is fed to it, what it
wants to send is sent. So a TLS connection waits exactly where a plain one does, and `send` stays a
plain call that returns what the socket did not take.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Sequence

import trio

from mockbroker.actors.transport import Buffer, SocketTransport

RECEIVE_BYTES = 64 * 1024
# How much is sealed before the socket is asked to take it: a slow reader of a large answer costs
# this much memory, not the answer over again.
SEAL_BYTES_MAX = 256 * 1024

# What `send` returns when only sealed bytes are left: the plain ones are all taken.
_ONLY_SEALED: Sequence[Buffer] = (b"",)


class TlsTransport:
    """One TLS session, as its server. `handshake` comes before anything else."""

    __slots__ = ("_incoming", "_outgoing", "_plain", "_sealed", "_socket", "_tls")

    def __init__(self, plain: SocketTransport, context: ssl.SSLContext) -> None:
        self._plain = plain
        self._socket = plain.socket
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._sealed = memoryview(b"")  # what the socket did not take yet

    async def handshake(self) -> None:
        """Agree on keys and look at certificates.

        Raises `ssl.SSLError` when the client is refused or refuses, after it was told so by an
        alert, and ConnectionError when it went away.
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
                    return 0  # no farewell: Java's clients and others close without one
            except ssl.SSLZeroReturnError:
                return 0

    async def _feed(self, *, expect_data: bool = False) -> int:
        """Hand OpenSSL what has arrived; returns how many bytes, 0 at the end of the stream."""
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
        """Send what OpenSSL wants to say of its own accord."""
        if self._outgoing.pending and not self._send_sealed():
            await self.send_rest(())

    def send(self, parts: Sequence[Buffer]) -> Sequence[Buffer]:
        """As `Transport.send`; the rest may be held here, sealed, and then is a lone empty part."""
        while parts:
            chunk, parts = _take(parts)
            while chunk:
                chunk = chunk[self._tls.write(chunk) :]
            if not self._send_sealed():
                return parts or _ONLY_SEALED
        return ()

    async def send_rest(self, parts: Sequence[Buffer]) -> None:
        """As `Transport.send_rest`."""
        while True:
            while self._sealed:
                await trio.lowlevel.wait_writable(self._socket)
                self._send_sealed()
            if not parts:
                return
            parts = self.send(parts)

    def _send_sealed(self) -> bool:
        """Send what is sealed; whether the socket took all of it."""
        sealed = self._sealed or memoryview(self._outgoing.read())
        try:
            sent = self._socket.send(sealed)
        except BlockingIOError:
            sent = 0
        self._sealed = sealed[sent:]
        return not self._sealed

    def close(self, *, reset: bool = False) -> None:
        """As `Transport.close`; with FIN the client is told first that this is the end."""
        if not reset and not self._sealed and self._socket.fileno() >= 0:
            with contextlib.suppress(OSError, ValueError):
                self._tls.unwrap()
            with contextlib.suppress(OSError):
                self._send_sealed()
        self._plain.close(reset=reset)


def _take(parts: Sequence[Buffer]) -> tuple[memoryview, Sequence[Buffer]]:
    """The first bytes of `parts`, in one piece of at most SEAL_BYTES_MAX, and the parts after."""
    first = memoryview(parts[0])
    if len(first) >= SEAL_BYTES_MAX:
        rest = (first[SEAL_BYTES_MAX:],) if len(first) > SEAL_BYTES_MAX else ()
        return first[:SEAL_BYTES_MAX], (*rest, *parts[1:])
    size = count = 0
    for part in parts:
        if size + len(part) > SEAL_BYTES_MAX:
            break
        size += len(part)
        count += 1
    return memoryview(b"".join(parts[:count])), parts[count:]
