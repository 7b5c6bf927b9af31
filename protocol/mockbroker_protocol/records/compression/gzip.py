"""Gzip (RFC 1952), by the standard library."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from mockbroker_protocol.records.errors import CompressionError, too_large

if TYPE_CHECKING:
    from mockbroker_protocol.records.batch import Buffer

_GZIP_WINDOW_BITS = 31


def compress(data: Buffer) -> Buffer:
    compressor = zlib.compressobj(wbits=_GZIP_WINDOW_BITS)
    return compressor.compress(data) + compressor.flush()


def decompress(data: Buffer, limit: int) -> Buffer:
    out = bytearray()
    rest: Buffer = data
    first = True
    while first or rest:
        member = zlib.decompressobj(wbits=_GZIP_WINDOW_BITS)
        try:
            out += member.decompress(rest, limit - len(out) + 1)
        except zlib.error as error:
            if not first:
                break  # like Java's GZIPInputStream: bytes behind a whole member are ignored
            raise CompressionError(0, f"gzip: {error}") from None
        if len(out) > limit:
            raise too_large(limit)
        if not member.eof:
            raise CompressionError(len(data), "gzip: the stream ends early")
        rest = member.unused_data
        first = False
    return out
