"""LZ4 frames: magic, descriptor, header checksum, blocks, end mark.

Java's reader accepts independent blocks only (Kafka's Lz4BlockInputStream), so these are written.
Linked blocks, which other producers send, are read as well.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from mockbroker_protocol.records.compression.bounded import decompress_bounded
from mockbroker_protocol.records.errors import CompressionError, check_blocks

if TYPE_CHECKING:
    from mockbroker_protocol.records.batch import Buffer

_MAGIC = b"\x04\x22\x4d\x18"
# Magic, FLG 0x60 (version 1, independent blocks, no checksums), BD 0x40 (64 KiB blocks) and the
# checksum of these two.
_HEADER = _MAGIC + b"\x60\x40\x82"
_BLOCK_BYTES = 64 * 1024
_RATIO_MAX = 255
_UNCOMPRESSED = 0x80000000
_END_MARK = 0
_HEADER_BYTES_MIN = 7
_SIZE_CODE_MIN = 4

_u32 = struct.Struct("<I")


def compress(data: Buffer) -> Buffer:
    from cramjam import lz4

    view = memoryview(data)
    out = bytearray(_HEADER)
    for start in range(0, len(view), _BLOCK_BYTES):
        chunk = view[start : start + _BLOCK_BYTES]
        block = memoryview(lz4.compress_block(chunk, store_size=False))
        if len(block) < len(chunk):
            out += _u32.pack(len(block))
            out += block
        else:
            out += _u32.pack(len(chunk) | _UNCOMPRESSED)
            out += chunk
    out += _u32.pack(_END_MARK)
    return out


def decompress(data: Buffer, limit: int) -> Buffer:
    from cramjam import lz4

    view = memoryview(data)
    return decompress_bounded(lz4.decompress_into, view, _bound(view), limit, "lz4")


def _bound(view: memoryview) -> int:
    """The most bytes that the frame's blocks can make."""
    if view[:4] != _MAGIC:
        raise CompressionError(0, "lz4: no frame magic")
    if len(view) < _HEADER_BYTES_MIN:
        raise CompressionError(len(view), "lz4: the frame header is cut")
    flags = view[4]
    if flags >> 6 != 1:
        raise CompressionError(4, f"lz4: frame version {flags >> 6}")
    block_code = view[5] >> 4 & 7
    if block_code < _SIZE_CODE_MIN:
        raise CompressionError(5, f"lz4: block size code {block_code}")
    block_bytes_max = 1 << (8 + 2 * block_code)
    pos = 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    checksum_bytes = 4 if flags & 0x10 else 0
    bound = blocks = 0
    while True:
        blocks += 1
        check_blocks(blocks, pos)
        if len(view) - pos < 4:
            raise CompressionError(len(view), "lz4: the frame ends without its end mark")
        word = _u32.unpack_from(view, pos)[0]
        if word == _END_MARK:
            return bound
        size = word & ~_UNCOMPRESSED
        if size > len(view) - pos - 4:
            raise CompressionError(
                pos, f"lz4: a block of {size} bytes, but {len(view) - pos - 4} are left"
            )
        bound += size if word & _UNCOMPRESSED else min(size * _RATIO_MAX, block_bytes_max)
        pos += 4 + size + checksum_bytes
