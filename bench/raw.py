"""A client that adds as little as Python can to a round trip: whole frames, one socket."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any, Self

from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)

TIMEOUT_S = 60.0
_BUFFER_BYTES = 1 << 16

API_VERSIONS = 18
METADATA = 3
_CLIENT_ID = b"bench"


def frame(api_key: int, version: int, body: bytes, *, flexible: bool) -> bytes:
    """A request with its size and header; the correlation id is always 1."""
    header = struct.pack(">hhih", api_key, version, 1, len(_CLIENT_ID)) + _CLIENT_ID
    if flexible:
        header += b"\0"  # no tagged fields
    return struct.pack(">i", len(header) + len(body)) + header + body


def api_versions() -> bytes:
    """ApiVersions v3, as every current client opens its connections."""
    return frame(API_VERSIONS, 3, b"\x06bench\x021\0", flexible=True)


def metadata_of_all_topics() -> bytes:
    """Metadata v12: null topics, no auto creation, no authorized operations."""
    return frame(METADATA, 12, b"\0\0\0\0", flexible=True)


def request(api_key: ApiKey, version: int, message: object) -> bytes:
    """A request with its size and header, encoded from a message of `mockbroker_protocol`."""
    header = encode_request_header(RequestHeader(api_key, version, 1, _CLIENT_ID.decode()))
    body = b"".join(request_codec(api_key, version).encode(message))
    return struct.pack(">i", len(header) + len(body)) + header + body


def answer(api_key: ApiKey, version: int, frame: bytes | memoryview) -> Any:
    """The message in an answer, which begins with its size."""
    _, start = decode_response_header(frame, api_key, version, 4)
    return response_codec(api_key, version).decode(frame, start)[0]


class RawConnection:
    """A blocking connection on which requests and answers alternate. A context manager.

    Without `timeout_s` a silent peer is waited for without end: a socket with a timeout polls
    before each receive, which is a tenth of a round trip.
    """

    def __init__(
        self,
        address: tuple[str, int],
        timeout_s: float | None = None,
        buffer_bytes: int = _BUFFER_BYTES,
    ) -> None:
        self._socket = socket.create_connection(address, timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = memoryview(bytearray(buffer_bytes))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def round_trip(self, request: bytes) -> memoryview:
        """Send a frame and return the whole answer, size included; the next one overwrites it.

        Raises ConnectionError if the peer closes instead of answering.
        """
        self._socket.sendall(request)
        got = self._receive(0)
        while got < 4 or got < (size := 4 + int.from_bytes(self._buffer[:4], "big")):
            if got >= 4 and size > len(self._buffer):
                larger = memoryview(bytearray(size))
                larger[:got] = self._buffer[:got]
                self._buffer = larger
            got += self._receive(got)
        return self._buffer[:got]

    def _receive(self, got: int) -> int:
        received = self._socket.recv_into(self._buffer[got:])
        if received == 0:
            raise ConnectionError("closed instead of answering")
        return received


def brokers_seen(address: tuple[str, int]) -> int:
    """How many brokers the peer lists in a Metadata v0 answer; 0 if it does not answer."""
    try:
        with RawConnection(address, TIMEOUT_S) as connection:
            answer = connection.round_trip(frame(METADATA, 0, b"\0\0\0\0", flexible=False))
            return int.from_bytes(answer[8:12], "big", signed=True)
    except OSError:
        return 0
