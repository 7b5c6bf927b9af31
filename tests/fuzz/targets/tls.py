"""Clients of TLS listeners whose records are changed in any phase: handshake, requests, the end.

A session is one cluster with a listener of each kind, and connections over real sockets. Each
connection shakes hands, sends requests and says farewell; one of its records is changed, cut,
repeated, split or replaced on the way, and after it the connection is half closed. The input is the
number of the session. Keys are random, so a changed record has other bytes in each run.

- A broker logs no error, and each connection gets its answers or its end.
- A client that does nothing wrong is served all the while.
- No connection takes more work than the limit.
"""

from __future__ import annotations

import random
import ssl
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from struct import Struct

import trio

from mockbroker.server.cluster_server import ClusterServer, open_server
from mockbroker.server.config import ListenerSpec, ServerConfig
from mockbroker.server.security.certificates import Authority
from mockbroker_protocol import ApiKey
from mockbroker_protocol.framing import request_frame
from mockbroker_protocol.headers import RequestHeader
from mockbroker_protocol.messages.api_versions import ApiVersionsRequest
from mockbroker_protocol.messages.metadata import MetadataRequest
from tests.fuzz.engine import SessionTarget
from tests.fuzz.mutate import mutated
from tests.fuzz.targets.virtual_cluster import errors_logged, first_of
from tests.fuzz.targets.wire import Client
from tests.fuzz.work import Broken

CONNECTIONS = 40
CANARY_EVERY = 10
RECORDS = 10  # of a connection that is not changed, at most
RECORD_BYTES_MAX = 1 << 16
ANSWER_S = 60.0  # real time: a connection that is neither answered nor ended stands still
LISTENERS = (
    ListenerSpec("TLS", security_protocol="SSL", configs={"ssl.client.auth": "requested"}),
    ListenerSpec("SASL", security_protocol="SASL_SSL"),
    ListenerSpec("PLAIN"),
)
VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
USERS = ("alice", "a,b=c+d\\#", "ü\n", " ", "x" * 64)
ALERT, CHANGE_CIPHER_SPEC, HANDSHAKE, APPLICATION_DATA = 21, 20, 22, 23
GONE = (trio.BrokenResourceError, trio.ClosedResourceError)
_HEADER = Struct(">BHH")  # type, version and length

Change = Callable[[random.Random, bytes], list[bytes]]


class Tls(SessionTarget):
    """An input is a number in eight bytes."""

    name = "tls"
    modules = ("mockbroker.server.security.tls_transport", "mockbroker.server.security.connections")

    def cost(self) -> int:
        return CONNECTIONS

    def run(self, seed: int) -> dict[str, float]:
        with tempfile.TemporaryDirectory() as folder:
            return run_session(seed, Authority(Path(folder)))


def run_session(seed: int, authority: Authority) -> dict[str, float]:
    """Run a session; returns the CPU time of each connection, in ms. Raises Broken."""
    config = ServerConfig(
        brokers=1, listeners=LISTENERS, seed=seed, security_directory=authority.directory
    )

    async def main() -> dict[str, float]:
        with errors_logged() as errors:
            async with open_server(config) as server:
                made = _Session(server, authority, random.Random(f"tls {seed}"), errors)
                for number in range(CONNECTIONS):
                    await made.connection(number)
                return made.took

    try:
        return trio.run(main)
    except BaseExceptionGroup as group:
        raise first_of(group) from None


class _Session:
    def __init__(
        self,
        server: ClusterServer,
        authority: Authority,
        rng: random.Random,
        errors: list[str],
    ) -> None:
        self.took: dict[str, float] = {}
        self._server = server
        self._authority = authority
        self._rng = rng
        self._errors = errors
        self._contexts: dict[tuple[ssl.TLSVersion, str | None], ssl.SSLContext] = {}

    async def connection(self, number: int) -> None:
        rng = self._rng
        listener = rng.choice(("TLS", "TLS", "TLS", "SASL", "PLAIN"))
        version = rng.choice(VERSIONS)
        user = rng.choice(USERS) if rng.random() < 0.1 else None
        at, change = rng.randrange(RECORDS), rng.choice(CHANGES)
        what = f"connection {number} to {listener}, {version.name}, {change.__name__[1:]} of {at}"
        started = time.thread_time()
        stream = await self._open(listener, version, user, partial(self._changed, at, change))
        client = Client(stream)
        try:
            if await stream.handshake():
                for key, asked in ((ApiKey.API_VERSIONS, 3), (ApiKey.METADATA, 12)):
                    await client.ask(key, asked, _frame(key, asked))
                    if not await client.wait(ANSWER_S):
                        raise Broken(f"neither an answer nor an end: {what}")
                await stream.farewell()
            await stream.end()
        finally:
            stream.reset()
        self.took[what] = (time.thread_time() - started) * 1000
        if self._errors:
            raise Broken(f"a broker logs an error, {what}: {self._errors[0]}")
        if number % CANARY_EVERY == 0:
            await self._canary(version)

    def _changed(self, at: int, change: Change, number: int, record: bytes) -> list[bytes] | None:
        """The pieces in place of a record, or None for the record as it is."""
        return change(self._rng, record) if number == at else None

    async def _open(
        self,
        listener: str,
        version: ssl.TLSVersion,
        user: str | None,
        changed: Callable[[int, bytes], list[bytes] | None],
    ) -> TlsStream:
        stream = await trio.open_tcp_stream(*self._server.cluster.brokers[1].endpoints[listener])
        return TlsStream(stream, self._context(version, user), changed)

    def _context(self, version: ssl.TLSVersion, user: str | None) -> ssl.SSLContext:
        context = self._contexts.get((version, user))
        if context is None:
            context = ssl.create_default_context(cafile=self._authority.ca_path)
            context.minimum_version = context.maximum_version = version
            if user is not None:
                files = self._authority.client(user)
                context.load_cert_chain(files.certificate_path, files.key_path)
            self._contexts[version, user] = context
        return context

    async def _canary(self, version: ssl.TLSVersion) -> None:
        stream = await self._open("TLS", version, "alice", lambda _number, _record: None)
        if not await stream.handshake():
            raise Broken("the canary's handshake fails")
        await Client(stream).answer_to(ApiKey.METADATA, 12, MetadataRequest())
        await stream.farewell()
        await stream.end()
        stream.reset()


class TlsStream:
    """The client's side of a connection. `changed` may return other bytes for a record, by its
    number; after those the connection is half closed.
    """

    def __init__(
        self,
        stream: trio.SocketStream,
        context: ssl.SSLContext,
        changed: Callable[[int, bytes], list[bytes] | None],
    ) -> None:
        self._stream = stream
        self._changed = changed
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="127.0.0.1")
        self._records = 0
        self._is_half_closed = False

    async def handshake(self) -> bool:
        """Returns whether both sides agree."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._feed():
                    return False
            except ssl.SSLError:
                await self._flush()
                return False
            else:
                await self._flush()
                return True

    async def send_all(self, data: bytes) -> None:
        try:
            self._tls.write(data)
        except ssl.SSLError:
            raise trio.BrokenResourceError from None
        await self._flush()

    async def receive_some(self) -> bytes:
        """The next bytes; empty at the end."""
        while True:
            try:
                return self._tls.read(1 << 16)
            except ssl.SSLWantReadError:
                if not await self._feed():
                    return b""
            except ssl.SSLError:
                return b""

    async def farewell(self) -> None:
        with suppress(ssl.SSLError):  # the other side has not answered yet
            self._tls.unwrap()
        await self._flush()

    async def end(self) -> None:
        """Half close, and wait for the end of the connection. Raises Broken if none comes."""
        await self._half_close()
        while await self._feed():
            pass

    def reset(self) -> None:
        self._stream.socket.close()

    async def _feed(self) -> int:
        with trio.move_on_after(ANSWER_S):
            try:
                data = await self._stream.receive_some(1 << 16)
            except GONE:
                return 0
            self._incoming.write(data)
            return len(data)
        raise Broken("the broker neither sends anything nor ends the connection")

    async def _flush(self) -> None:
        for record in _records(self._outgoing.read()):
            pieces = self._changed(self._records, record)
            self._records += 1
            if self._is_half_closed:
                return
            for piece in [record] if pieces is None else pieces:
                try:
                    await self._stream.send_all(piece)
                except GONE:
                    return
            if pieces is not None:
                await self._half_close()

    async def _half_close(self) -> None:
        if not self._is_half_closed:
            self._is_half_closed = True
            with suppress(*GONE):  # the other side has closed
                await self._stream.send_eof()


def _frame(key: ApiKey, version: int) -> bytes:
    request = ApiVersionsRequest("fuzz", "1") if key == ApiKey.API_VERSIONS else MetadataRequest()
    return b"".join(request_frame(RequestHeader(key, version, 0, "fuzz"), request))


def _records(data: bytes) -> list[bytes]:
    """Bytes of OpenSSL, record by record."""
    found = []
    while data:
        size = _HEADER.size + _HEADER.unpack_from(data)[2]
        found.append(data[:size])
        data = data[size:]
    return found


def _record(kind: int, body: bytes, version: int = 0x0303) -> bytes:
    return _HEADER.pack(kind, version, len(body)) + body


# -- changes of a record ---------------------------------------------------------------------------


def _body(rng: random.Random, record: bytes) -> list[bytes]:
    head = record[: _HEADER.size]
    return [head + mutated(rng, record[_HEADER.size :], (record,), RECORD_BYTES_MAX)]


def _framed_body(rng: random.Random, record: bytes) -> list[bytes]:
    """Changed, with a header that fits."""
    body = mutated(rng, record[_HEADER.size :], (record,), (1 << 14) + 256)
    return [_record(record[0], body)]


def _header(rng: random.Random, record: bytes) -> list[bytes]:
    kind, version, size = _HEADER.unpack_from(record)
    kind = rng.choice((kind, 0, ALERT, CHANGE_CIPHER_SPEC, HANDSHAKE, APPLICATION_DATA, 24, 255))
    version = rng.choice((version, 0, 0x0300, 0x0301, 0x0304, 0x0305, 0xFFFF))
    size = rng.choice((size, 0, 1, size - 1, size + 1, 1 << 14, (1 << 14) + 257, 0xFFFF))
    return [_HEADER.pack(kind, version, size) + record[_HEADER.size :]]


def _cut(rng: random.Random, record: bytes) -> list[bytes]:
    return [record[: rng.randrange(len(record))]]


def _loss(rng: random.Random, record: bytes) -> list[bytes]:
    return []


def _repetition(rng: random.Random, record: bytes) -> list[bytes]:
    return [record * rng.choice((2, 3, 100))]


def _split(rng: random.Random, record: bytes) -> list[bytes]:
    """In records of a byte each: a handshake message may have many."""
    return [_record(record[0], record[at : at + 1]) for at in range(_HEADER.size, len(record))]


def _emptiness(rng: random.Random, record: bytes) -> list[bytes]:
    """Records without a byte before it."""
    return [_record(rng.choice((record[0], HANDSHAKE, APPLICATION_DATA)), b"") * 500, record]


def _alert(rng: random.Random, record: bytes) -> list[bytes]:
    """A warning, a farewell, an error, and what is none, before the record."""
    body = bytes([rng.choice((0, 1, 2, 255)), rng.choice((0, 10, 20, 90, 100, 255))])
    return [_record(ALERT, body) * rng.choice((1, 1, 50)), record]


def _cipher_specs(rng: random.Random, record: bytes) -> list[bytes]:
    """TLS 1.3 ignores them, for old proxies."""
    return [_record(CHANGE_CIPHER_SPEC, b"\1") * rng.choice((1, 2, 40)), record]


def _junk(rng: random.Random, record: bytes) -> list[bytes]:
    return [rng.randbytes(rng.choice((1, 5, 100, RECORD_BYTES_MAX)))]


def _plain_request(rng: random.Random, record: bytes) -> list[bytes]:
    return [_frame(ApiKey.METADATA, 12), record]


def _size_of_a_message(rng: random.Random, record: bytes) -> list[bytes]:
    """A handshake message that promises 16 MiB less a byte."""
    return [record[:6] + b"\xff\xff\xff" + record[9:]]


CHANGES: Sequence[Change] = (
    *(_body, _body, _framed_body, _framed_body, _header, _header, _cut, _loss, _repetition),
    *(_split, _emptiness, _alert, _cipher_specs, _junk, _plain_request, _size_of_a_message),
)
