"""Frames: the int32 size, the header and the message that one request or response is made of."""

from __future__ import annotations

from struct import Struct

from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.exceptions import ProtocolError
from mockbroker_protocol.headers import (
    RequestHeader,
    encode_request_header,
    response_header_version,
)
from mockbroker_protocol.types import Buffer

FRAME_BYTES_MAX = 104_857_600
"""Kafka's default of socket.request.max.bytes."""

_SIZE = Struct(">i")
_SIZE_AND_CORRELATION = Struct(">ii")
_SIZE_AND_FLEXIBLE_HEADER = Struct(">iix")


class FrameError(ProtocolError):
    """A frame size that no broker would read on from; the connection is lost."""


def frame_size(buf: Buffer, pos: int = 0, frame_bytes_max: int = FRAME_BYTES_MAX) -> int:
    """The number of bytes that follow the size at `pos`, which must be there.

    Raises FrameError if it is negative, too large or too small for a header.
    """
    size: int = _SIZE.unpack_from(buf, pos)[0]
    if not 0 <= size <= frame_bytes_max:
        raise FrameError(f"frame of {size} bytes; the limit is {frame_bytes_max}")
    return size


def request_frame(header: RequestHeader, message: object) -> list[Buffer]:
    """A whole request, size included, in pieces for `sendmsg`. Raises EncodeError."""
    pieces = request_codec(header.api_key, header.api_version).encode(message)
    head = encode_request_header(header)
    size = len(head) + sum(map(len, pieces))
    return [b"".join((_SIZE.pack(size), head, pieces[0])), *pieces[1:]]


def response_frame(
    api_key: int, api_version: int, correlation_id: int, message: object
) -> list[Buffer]:
    """A whole response, size included, in pieces for `sendmsg`. Raises EncodeError.

    The response header is so small that it is written here, with the size, in one go.
    """
    pieces = response_codec(api_key, api_version).encode(message)
    if response_header_version(api_key, api_version):
        size = 5 + sum(map(len, pieces))
        pieces[0] = _SIZE_AND_FLEXIBLE_HEADER.pack(size, correlation_id) + pieces[0]
    else:
        size = 4 + sum(map(len, pieces))
        pieces[0] = _SIZE_AND_CORRELATION.pack(size, correlation_id) + pieces[0]
    return pieces
