"""Snappy, in both forms that Kafka's clients write.

Java, kafka-python and aiokafka use xerial's framing: a magic, two version numbers, then blocks of
up to 32 KiB of input, each preceded by its length as a big-endian i32. librdkafka and franz-go
write one raw block. A reader tells them apart by the magic.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from mockbroker_protocol.records.errors import CompressionError, check_blocks, too_large

if TYPE_CHECKING:
    from mockbroker_protocol.records.batch import Buffer

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
# No element of a block makes more than 64 bytes out of 3.
_RATIO_MAX = 64
_LENGTH_BYTES_MAX = 5

_i32 = struct.Struct(">i")


def compress_xerial(data: Buffer) -> Buffer:
    from cramjam import snappy

    view = memoryview(data)
    out = bytearray(_XERIAL_HEADER)
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = memoryview(snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        out += _i32.pack(len(block))
        out += block
    return out


def compress_raw(data: Buffer) -> Buffer:
    """One raw snappy block, as librdkafka and franz-go write it."""
    from cramjam import snappy

    return memoryview(snappy.compress_raw(data))


def decompress(data: Buffer, limit: int) -> Buffer:
    view = memoryview(data)
    blocks = _xerial_blocks(view) if view[:8] == _XERIAL_MAGIC else [(0, len(view))]
    lengths = [_stated_length(view[start:end], start) for start, end in blocks]
    if sum(lengths) > limit:
        raise too_large(limit)
    out = bytearray(sum(lengths))
    target = memoryview(out)
    at = 0
    for (start, end), length in zip(blocks, lengths, strict=True):
        _decompress_block(view[start:end], target[at : at + length], start)
        at += length
    return out


def _xerial_blocks(view: memoryview) -> list[tuple[int, int]]:
    """Start and end of each block; a stream header in between (appended streams) is passed over."""
    blocks = []
    pos, end = 0, len(view)
    while pos < end:
        if view[pos : pos + 8] == _XERIAL_MAGIC:
            # Two version numbers follow, in either byte order; readers ignore them.
            pos += len(_XERIAL_HEADER)
            if pos > end:
                raise CompressionError(end, "snappy: the stream header is cut")
            continue
        if end - pos < 4:
            raise CompressionError(pos, "snappy: the stream ends inside a block length")
        length = _i32.unpack_from(view, pos)[0]
        if not 0 < length <= end - pos - 4:
            raise CompressionError(
                pos, f"snappy: a block of {length} bytes, but {end - pos - 4} are left"
            )
        blocks.append((pos + 4, pos + 4 + length))
        check_blocks(len(blocks), pos)
        pos += 4 + length
    return blocks


def _stated_length(block: memoryview, byte: int) -> int:
    """The decompressed length that a raw block states in front."""
    length = shift = 0
    for index in range(_LENGTH_BYTES_MAX):
        if index >= len(block):
            break
        length |= (block[index] & 0x7F) << shift
        if block[index] < 0x80:
            # A false length allocates nothing.
            if length > _RATIO_MAX * len(block):
                raise CompressionError(byte, f"snappy: a length of {length} bytes cannot be true")
            return length
        shift += 7
    raise CompressionError(byte, "snappy: no valid length in front of the block")


def _decompress_block(block: memoryview, target: memoryview, byte: int) -> None:
    from cramjam import DecompressionError, snappy

    try:
        written = snappy.decompress_raw_into(block, target)
    except DecompressionError as error:
        raise CompressionError(byte, f"snappy: {error}") from None
    if written != len(target):
        raise CompressionError(byte, f"snappy: {written} bytes instead of {len(target)}")
