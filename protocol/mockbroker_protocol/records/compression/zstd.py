"""Zstandard frames (RFC 8878). Streaming writers, Java among them, leave the content size out."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from mockbroker_protocol.records.compression.bounded import decompress_bounded
from mockbroker_protocol.records.errors import CompressionError, check_blocks

if TYPE_CHECKING:
    from mockbroker_protocol.records.batch import Buffer

_MAGIC = 0xFD2FB528
_SKIPPABLE_MAGIC = 0x184D2A50
_BLOCK_BYTES_MAX = 128 * 1024
_LEVEL = 3  # Kafka's compression.zstd.level
_RAW, _RLE, _RESERVED = 0, 1, 3
_HEADER_BYTES_MIN = 8


def compress(data: Buffer) -> Buffer:
    from cramjam import zstd

    return memoryview(zstd.compress(data, _LEVEL))


def decompress(data: Buffer, limit: int) -> Buffer:
    from cramjam import zstd

    view = memoryview(data)
    return decompress_bounded(zstd.decompress_into, view, _bound(view), limit, "zstd")


def _bound(view: memoryview) -> int:
    """The most bytes that the frames can make, from their headers and block headers (RFC 8878)."""
    bound = pos = blocks = 0
    end = len(view)
    if not end:
        raise CompressionError(0, "zstd: no frame")
    while pos < end:
        if end - pos < _HEADER_BYTES_MIN:
            raise CompressionError(pos, "zstd: the frame header is cut")
        magic, size = struct.unpack_from("<II", view, pos)
        if magic & 0xFFFFFFF0 == _SKIPPABLE_MAGIC:
            pos += 8 + size
            blocks += 1
            check_blocks(blocks, pos)
        elif magic == _MAGIC:
            pos, frame_bound, blocks = _frame(view, pos + 4, blocks)
            bound += frame_bound
        else:
            raise CompressionError(pos, "zstd: no frame magic")
    if pos > end:
        raise CompressionError(end, "zstd: the frame is cut")
    return bound


def _frame(view: memoryview, pos: int, blocks: int) -> tuple[int, int, int]:
    """The end of the frame whose descriptor is at `pos`, the most bytes it can make, and the number
    of blocks so far, of which there were `blocks` before.
    """
    descriptor = view[pos]
    single_segment = bool(descriptor & 0x20)
    pos += 1 + (0 if single_segment else 1) + (0, 1, 2, 4)[descriptor & 3]
    size_bytes = (1 if single_segment else 0, 2, 4, 8)[descriptor >> 6]
    content_size = int.from_bytes(view[pos : pos + size_bytes], "little")
    if size_bytes == 2:
        content_size += 256
    pos += size_bytes
    bound = 0
    last = False
    while not last:
        blocks += 1
        check_blocks(blocks, pos)
        if len(view) - pos < 3:
            raise CompressionError(len(view), "zstd: the frame ends without its last block")
        block = int.from_bytes(view[pos : pos + 3], "little")
        last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
        if kind == _RESERVED:
            raise CompressionError(pos, "zstd: reserved block type")
        bound += size if kind in (_RAW, _RLE) else _BLOCK_BYTES_MAX
        pos += 3 + (1 if kind == _RLE else size)
    if descriptor & 0x04:
        pos += 4
    return pos, min(bound, content_size) if size_bytes else bound, blocks
