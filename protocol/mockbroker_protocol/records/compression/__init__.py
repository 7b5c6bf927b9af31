"""The compressed records section: gzip, snappy, lz4 and zstd, one module each.

Whatever a producer may send is read: snappy raw or framed, lz4 with linked blocks, zstd without a
content size, several gzip members. What is written, every client can read, Java's above all.

Decompression is bounded: no payload, however it was made, takes more memory than the limit. The
formats say how much they can expand to at most, so the buffer is sized from that before anything
is decompressed. The compressors are imported when they are first needed.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from mockbroker_protocol.records.errors import CompressionError, too_large

if TYPE_CHECKING:
    from mockbroker_protocol.records.batch import Buffer

# gzip takes an eighth of a second for it.
DECOMPRESSED_BYTES_MAX = 32 * 1024 * 1024


class CompressionType(IntEnum):
    """The codecs by their number in a batch's attributes; the names are `compression.type`'s."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: int, data: Buffer) -> Buffer:
    """Compress a records section. Raises ValueError for a codec that does not exist."""
    match CompressionType(codec):
        case CompressionType.GZIP:
            from mockbroker_protocol.records.compression import gzip

            return gzip.compress(data)
        case CompressionType.SNAPPY:
            from mockbroker_protocol.records.compression import snappy

            return snappy.compress_xerial(data)
        case CompressionType.LZ4:
            from mockbroker_protocol.records.compression import lz4

            return lz4.compress(data)
        case CompressionType.ZSTD:
            from mockbroker_protocol.records.compression import zstd

            return zstd.compress(data)
        case CompressionType.NONE:
            return data


def decompress(
    codec: int,
    data: Buffer,
    *,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> Buffer:
    """Decompress a records section.

    Raises `CompressionError` for an unknown codec, bytes the codec cannot read, and a result of
    more than `decompressed_bytes_max` bytes.
    """
    match codec:
        case CompressionType.GZIP:
            from mockbroker_protocol.records.compression import gzip

            return gzip.decompress(data, decompressed_bytes_max)
        case CompressionType.SNAPPY:
            from mockbroker_protocol.records.compression import snappy

            return snappy.decompress(data, decompressed_bytes_max)
        case CompressionType.LZ4:
            from mockbroker_protocol.records.compression import lz4

            return lz4.decompress(data, decompressed_bytes_max)
        case CompressionType.ZSTD:
            from mockbroker_protocol.records.compression import zstd

            return zstd.decompress(data, decompressed_bytes_max)
        case CompressionType.NONE:
            if len(data) > decompressed_bytes_max:
                raise too_large(decompressed_bytes_max)
            return data
    raise CompressionError(0, f"unknown compression codec {codec}")
