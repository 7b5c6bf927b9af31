"""Gzip (RFC 1952), by the standard library."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from mockbroker_protocol.records.errors import CompressionError, check_blocks, too_large

if TYPE_CHECKING:
    from mockbroker_protocol.records.batch import Buffer

_GZIP_WINDOW_BITS = 31
_FIRST_SLICE_BYTES = 256


def compress(data: Buffer) -> Buffer:
    compressor = zlib.compressobj(wbits=_GZIP_WINDOW_BITS)
    return compressor.compress(data) + compressor.flush()


def decompress(data: Buffer, limit: int) -> Buffer:
    view = memoryview(data)
    out = bytearray()
    start = members = 0
    while not start or start < len(view):
        whole = len(out)
        members += 1
        check_blocks(members, start)
        try:
            start = _read_member(view, start, out, limit)
        except zlib.error as error:
            if start:  # like Java's GZIPInputStream: bytes behind a whole member are ignored
                del out[whole:]
                break
            raise CompressionError(0, f"gzip: {error}") from None
    return out


def _read_member(view: memoryview, start: int, out: bytearray, limit: int) -> int:
    """Decompress the member at `start` into `out`; returns its end.

    It reads slices that double in size, because zlib copies what is behind the member in a slice.
    Raises zlib.error and CompressionError.
    """
    member = zlib.decompressobj(wbits=_GZIP_WINDOW_BITS)
    end, size = start, _FIRST_SLICE_BYTES
    while not member.eof:
        piece = view[end : end + size]
        if not piece:
            raise CompressionError(len(view), "gzip: the stream ends early")
        out += member.decompress(piece, limit - len(out) + 1)
        if len(out) > limit:
            raise too_large(limit)
        end += len(piece) - len(member.unused_data)
        size *= 2
    return end
