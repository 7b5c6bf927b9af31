"""Request and response headers: their versions and bytes.

Flexible versions of an API have request header v2 and response header v1, the others v1 and v0
(KIP-482). ApiVersions is the exception: its response header is always v0, because a client that
does not know the broker yet must be able to read it (KIP-511).
"""

from __future__ import annotations

from struct import Struct

from mockbroker_protocol.api_key import ApiKey
from mockbroker_protocol.codec import api_schema, named_codec
from mockbroker_protocol.declare import NEVER, VERSION_MAX
from mockbroker_protocol.exceptions import DecodeError, UnknownVersionError
from mockbroker_protocol.messages.headers import RequestHeader, ResponseHeader
from mockbroker_protocol.types import Buffer

__all__ = [
    "RequestHeader",
    "ResponseHeader",
    "decode_request_header",
    "decode_response_header",
    "encode_request_header",
    "encode_response_header",
    "request_header_version",
    "response_header_version",
]


class _FlexibleSince(dict[int, int]):
    """The first flexible version by API key, from the declaration; KeyError where there is none."""

    def __missing__(self, key: int) -> int:
        try:
            flexible = api_schema(key).REQUEST.flexible
        except UnknownVersionError:
            raise KeyError(key) from None
        self[key] = VERSION_MAX + 1 if flexible == NEVER else flexible.low
        return self[key]


_FLEXIBLE_SINCE = _FlexibleSince()
HEADER_TAGS_MAX = 1_000
"""Tagged fields of a request header in a frame of more than 16 KiB. Kafka declares none."""

_KEY_AND_VERSION = Struct(">hh")
_REQUEST_HEADERS = {version: named_codec("headers", "RequestHeader", version) for version in (1, 2)}
_RESPONSE_HEADERS = {
    version: named_codec("headers", "ResponseHeader", version) for version in (0, 1)
}


def request_header_version(api_key: int, api_version: int) -> int:
    """The version of the header before such a request; KeyError if the API is not declared."""
    return 2 if api_version >= _FLEXIBLE_SINCE[api_key] else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """The version of the header before such a response; KeyError if the API is not declared."""
    if api_key == ApiKey.API_VERSIONS:
        return 0
    return 1 if api_version >= _FLEXIBLE_SINCE[api_key] else 0


def decode_request_header(buf: Buffer, pos: int = 0) -> tuple[RequestHeader, int]:
    """Read the header of a request of any version; returns it and the position of the body.

    Raises DecodeError, also for an API key without a declaration, and for more tagged fields than
    `HEADER_TAGS_MAX`: a frame of 100 MiB has room for 50 million.
    """
    if len(buf) - pos < _KEY_AND_VERSION.size:
        raise DecodeError("api_key", pos, f"needs 4 bytes, {max(len(buf) - pos, 0)} left")
    api_key, api_version = _KEY_AND_VERSION.unpack_from(buf, pos)
    try:
        codec = _REQUEST_HEADERS[2 if api_version >= _FLEXIBLE_SINCE[api_key] else 1]
    except KeyError:
        raise DecodeError("api_key", pos, f"unknown API key {api_key}") from None
    header: RequestHeader
    header, pos = codec.decode_untrusted(buf, pos, HEADER_TAGS_MAX)
    return header, pos


def encode_request_header(header: RequestHeader) -> bytes:
    """The bytes of a request header, in the version that goes with its API key and version."""
    version = request_header_version(header.api_key, header.api_version)
    return bytes(_REQUEST_HEADERS[version].encode(header)[0])


def decode_response_header(
    buf: Buffer, api_key: int, api_version: int, pos: int = 0
) -> tuple[ResponseHeader, int]:
    """Read the header of the response to such a request. Raises DecodeError."""
    version = response_header_version(api_key, api_version)
    header: ResponseHeader
    header, pos = _RESPONSE_HEADERS[version].decode(buf, pos)
    return header, pos


def encode_response_header(header: ResponseHeader, api_key: int, api_version: int) -> bytes:
    """The bytes of the header of the response to such a request."""
    version = response_header_version(api_key, api_version)
    return bytes(_RESPONSE_HEADERS[version].encode(header)[0])
