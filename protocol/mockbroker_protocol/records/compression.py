"""The compressed records section: gzip, snappy, lz4 and zstd, as Kafka's clients write and read
them.

Whatever a producer may send is read: snappy as one raw block or in xerial's framing, lz4 frames
with linked blocks, zstd without a content size, several gzip members. What is written, every client
can read: above all Java, whose lz4 reader insists on independent blocks (Kafka's
Lz4BlockInputStream).

Decompression is bounded: no payload, however it was made, takes more memory than the limit. The
formats say how much they can expand to at most, so the buffer is sized from that before anything
is decompressed, and never beyond the limit.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from mockbroker_protocol.records.errors import CompressionError

if TYPE_CHECKING:
    from mockbroker_protocol.records.batch import Buffer

DECOMPRESSED_BYTES_MAX = 256 * 1024 * 1024

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
# Magic, FLG 0x60 (version 1, independent blocks, no checksums), BD 0x40 (64 KiB blocks), header
# checksum.
_LZ4_HEADER = _LZ4_MAGIC + b"\x60\x40\x82"
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_RATIO_MAX = 255
_LZ4_UNCOMPRESSED = 0x80000000

_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE_MAGIC = 0x184D2A50
_ZSTD_BLOCK_BYTES_MAX = 128 * 1024
_ZSTD_LEVEL = 3  # Kafka's compression.zstd.level
_ZSTD_RAW, _ZSTD_RLE, _ZSTD_RESERVED = 0, 1, 3

_FIRST_TRY_BYTES_MIN = 64 * 1024
_FIRST_TRY_RATIO = 16

_be_i32 = struct.Struct(">i")
_le_u32 = struct.Struct("<I")


class CompressionType(IntEnum):
    """The codecs by their number in a batch's attributes; the names are those of
    `compression.type`.
    """

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: int, data: Buffer) -> Buffer:
    """Compress a records section. Raises ValueError for a codec that does not exist."""
    return _COMPRESS[CompressionType(codec)](data)


def decompress(
    codec: int,
    data: Buffer,
    *,
    magic: int = 2,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> Buffer:
    """Decompress a records section, or the value of a wrapper message when `magic` is 0 or 1.

    Raises `CompressionError` for an unknown codec, bytes the codec cannot read, and a result of
    more than `decompressed_bytes_max` bytes.
    """
    if codec == CompressionType.LZ4:
        return _decompress_lz4(data, decompressed_bytes_max, magic)
    function = _DECOMPRESS.get(codec)
    if function is None:
        raise CompressionError(0, f"unknown compression codec {codec}")
    return function(data, decompressed_bytes_max)


def _too_large(limit: int) -> CompressionError:
    return CompressionError(0, f"more than {limit} bytes when decompressed")


# ---------------------------------------------------------------------------------------------- non


def _compress_none(data: Buffer) -> Buffer:
    return data


def _decompress_none(data: Buffer, limit: int) -> Buffer:
    if len(data) > limit:
        raise _too_large(limit)
    return data


# ---------------------------------------------------------------------------------------------- gzi


def _compress_gzip(data: Buffer) -> Buffer:
    compressor = zlib.compressobj(wbits=31)
    return compressor.compress(data) + compressor.flush()


def _decompress_gzip(data: Buffer, limit: int) -> Buffer:
    out = bytearray()
    rest: Buffer = data
    first = True
    while first or rest:
        member = zlib.decompressobj(wbits=31)
        try:
            out += member.decompress(rest, limit - len(out) + 1)
        except zlib.error as error:
            if not first:
                break  # like Java's GZIPInputStream: what follows a whole member is let go
            raise CompressionError(0, f"gzip: {error}") from None
        if len(out) > limit:
            raise _too_large(limit)
        if not member.eof:
            raise CompressionError(len(data), "gzip: the stream ends early")
        rest = member.unused_data
        first = False
    return out


# -------------------------------------------------------------------------------------------- snapp


def _compress_snappy(data: Buffer) -> Buffer:
    from cramjam import snappy

    view = memoryview(data)
    out = bytearray(_XERIAL_HEADER)
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = memoryview(snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        out += _be_i32.pack(len(block))
        out += block
    return out


def compress_snappy_raw(data: Buffer) -> Buffer:
    """One raw snappy block, as librdkafka and franz-go write it."""
    from cramjam import snappy

    return memoryview(snappy.compress_raw(data))


def _decompress_snappy(data: Buffer, limit: int) -> Buffer:
    view = memoryview(data)
    if view[:8] != _XERIAL_MAGIC:
        out = bytearray(_snappy_length(view, 0, limit))
        _snappy_into(view, memoryview(out), 0)
        return out
    blocks = list(_xerial_blocks(view))
    lengths = []
    total = 0
    for start, end in blocks:
        length = _snappy_length(view[start:end], start, limit - total)
        total += length
        lengths.append(length)
    out = bytearray(total)
    target = memoryview(out)
    at = 0
    for (start, end), length in zip(blocks, lengths, strict=True):
        _snappy_into(view[start:end], target[at : at + length], start)
        at += length
    return out


def _xerial_blocks(view: memoryview) -> list[tuple[int, int]]:
    """Start and end of each block; a stream header in between (appended streams) is passed over."""
    blocks = []
    pos, end = 0, len(view)
    while pos < end:
        if view[pos : pos + 8] == _XERIAL_MAGIC:
            # Two version numbers follow, in either byte order; nobody looks at them.
            pos += len(_XERIAL_HEADER)
            if pos > end:
                raise CompressionError(end, "snappy: the stream header is cut")
            continue
        if end - pos < 4:
            raise CompressionError(pos, "snappy: the stream ends inside a block length")
        length = _be_i32.unpack_from(view, pos)[0]
        if not 0 < length <= end - pos - 4:
            raise CompressionError(
                pos, f"snappy: a block of {length} bytes, but {end - pos - 4} are left"
            )
        blocks.append((pos + 4, pos + 4 + length))
        pos += 4 + length
    return blocks


def _snappy_length(block: memoryview, byte: int, limit: int) -> int:
    """The decompressed length that a raw block states in front."""
    length = shift = 0
    for index in range(5):
        if index >= len(block):
            break
        length |= (block[index] & 0x7F) << shift
        if block[index] < 0x80:
            if length > limit:
                raise _too_large(limit)
            # No element makes more than 64 bytes out of 3: a false length allocates nothing.
            if length > 64 * len(block):
                raise CompressionError(byte, f"snappy: a length of {length} bytes cannot be true")
            return length
        shift += 7
    raise CompressionError(byte, "snappy: no valid length in front of the block")


def _snappy_into(block: memoryview, target: memoryview, byte: int) -> None:
    from cramjam import DecompressionError, snappy

    try:
        written = snappy.decompress_raw_into(block, target)
    except DecompressionError as error:
        raise CompressionError(byte, f"snappy: {error}") from None
    if written != len(target):
        raise CompressionError(byte, f"snappy: {written} bytes instead of {len(target)}")


# ----------------------------------------------------------------------------------------------- lz


def _compress_lz4(data: Buffer) -> Buffer:
    from cramjam import lz4

    view = memoryview(data)
    out = bytearray(_LZ4_HEADER)
    for start in range(0, len(view), _LZ4_BLOCK_BYTES):
        chunk = view[start : start + _LZ4_BLOCK_BYTES]
        block = memoryview(lz4.compress_block(chunk, store_size=False))
        if len(block) < len(chunk):
            out += _le_u32.pack(len(block))
            out += block
        else:
            out += _le_u32.pack(len(chunk) | _LZ4_UNCOMPRESSED)
            out += chunk
    out += _le_u32.pack(0)
    return out


def _decompress_lz4(data: Buffer, limit: int, magic: int) -> Buffer:
    from cramjam import lz4

    view = memoryview(data)
    header_end, bound = _lz4_bound(view)
    if magic < 2:
        view = _with_right_header_checksum(view, header_end)
    return _decompress_into(lz4.decompress_into, view, bound, limit, "lz4")


def _lz4_bound(view: memoryview) -> tuple[int, int]:
    """The end of the frame header, and the most bytes that the frame's blocks can make."""
    if view[:4] != _LZ4_MAGIC:
        raise CompressionError(0, "lz4: no frame magic")
    if len(view) < 7:
        raise CompressionError(len(view), "lz4: the frame header is cut")
    flags = view[4]
    if flags >> 6 != 1:
        raise CompressionError(4, f"lz4: frame version {flags >> 6}")
    block_code = view[5] >> 4 & 7
    if block_code < 4:
        raise CompressionError(5, f"lz4: block size code {block_code}")
    block_bytes_max = 1 << (8 + 2 * block_code)
    header_end = pos = 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    checksum_bytes = 4 if flags & 0x10 else 0
    bound = 0
    while True:
        if len(view) - pos < 4:
            raise CompressionError(len(view), "lz4: the frame ends without its end mark")
        word = _le_u32.unpack_from(view, pos)[0]
        if word == 0:
            return header_end, bound
        size = word & ~_LZ4_UNCOMPRESSED
        if size > len(view) - pos - 4:
            raise CompressionError(
                pos, f"lz4: a block of {size} bytes, but {len(view) - pos - 4} are left"
            )
        bound += size if word & _LZ4_UNCOMPRESSED else min(size * _LZ4_RATIO_MAX, block_bytes_max)
        pos += 4 + size + checksum_bytes


def _with_right_header_checksum(view: memoryview, header_end: int) -> memoryview:
    """A frame of message format v0 or v1 with its header checksum set right.

    Kafka's old producers computed it over the frame magic too, and consumers of those formats
    expect that to this day (KAFKA-3160). Both are accepted; any other is not.
    """
    stored = view[header_end - 1]
    right = _xxh32(bytes(view[4 : header_end - 1])) >> 8 & 0xFF
    if stored == right:
        return view
    if stored != _xxh32(bytes(view[: header_end - 1])) >> 8 & 0xFF:
        raise CompressionError(header_end - 1, "lz4: wrong header checksum")
    fixed = bytearray(view)
    fixed[header_end - 1] = right
    return memoryview(fixed)


def _xxh32(data: bytes) -> int:
    """xxHash32 with seed 0, for frame headers.

    A header with content size and dictionary id and the magic before it has 18 bytes, so the four
    lanes for longer input are needed too.
    """
    mask = 0xFFFFFFFF
    p1, p2, p3, p4, p5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1

    def rotate(value: int, by: int) -> int:
        value &= mask
        return (value << by | value >> (32 - by)) & mask

    pos = 0
    if len(data) >= 16:
        lanes = [p1 + p2, p2, 0, -p1]
        while len(data) - pos >= 16:
            for i, word in enumerate(struct.unpack_from("<4I", data, pos)):
                lanes[i] = rotate(lanes[i] + word * p2, 13) * p1 & mask
            pos += 16
        value = sum(rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
    else:
        value = p5
    value += len(data)
    while len(data) - pos >= 4:
        value = rotate(value + _le_u32.unpack_from(data, pos)[0] * p3, 17) * p4
        pos += 4
    for byte in data[pos:]:
        value = rotate(value + byte * p5, 11) * p1
    value &= mask
    value = (value ^ value >> 15) * p2 & mask
    value = (value ^ value >> 13) * p3 & mask
    return value ^ value >> 16


# ---------------------------------------------------------------------------------------------- zst


def _compress_zstd(data: Buffer) -> Buffer:
    from cramjam import zstd

    return memoryview(zstd.compress(data, _ZSTD_LEVEL))


def _decompress_zstd(data: Buffer, limit: int) -> Buffer:
    from cramjam import zstd

    view = memoryview(data)
    return _decompress_into(zstd.decompress_into, view, _zstd_bound(view), limit, "zstd")


def _zstd_bound(view: memoryview) -> int:
    """The most bytes that the frames can make, from their headers and block headers (RFC 8878)."""
    bound = pos = 0
    end = len(view)
    if not end:
        raise CompressionError(0, "zstd: no frame")
    while pos < end:
        if end - pos < 8:
            raise CompressionError(pos, "zstd: the frame header is cut")
        magic, size = struct.unpack_from("<II", view, pos)
        if magic & 0xFFFFFFF0 == _ZSTD_SKIPPABLE_MAGIC:
            pos += 8 + size
        elif magic == _ZSTD_MAGIC:
            pos, frame_bound = _zstd_frame(view, pos + 4)
            bound += frame_bound
        else:
            raise CompressionError(pos, "zstd: no frame magic")
    if pos > end:
        raise CompressionError(end, "zstd: the frame is cut")
    return bound


def _zstd_frame(view: memoryview, pos: int) -> tuple[int, int]:
    """The end of the frame whose descriptor is at `pos`, and the most bytes it can make."""
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
        if len(view) - pos < 3:
            raise CompressionError(len(view), "zstd: the frame ends without its last block")
        block = int.from_bytes(view[pos : pos + 3], "little")
        last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
        if kind == _ZSTD_RESERVED:
            raise CompressionError(pos, "zstd: reserved block type")
        bound += size if kind in (_ZSTD_RAW, _ZSTD_RLE) else _ZSTD_BLOCK_BYTES_MAX
        pos += 3 + (1 if kind == _ZSTD_RLE else size)
    if descriptor & 0x04:
        pos += 4
    return pos, min(bound, content_size) if size_bytes else bound


# -------------------------------------------------------------------------------------------- share


def _decompress_into(
    function: Callable[[Any, Any], int],
    view: memoryview,
    bound: int,
    limit: int,
    name: str,
) -> Buffer:
    """Decompress into a buffer of a likely size, else of the greatest possible one within the
    limit.
    """
    from cramjam import DecompressionError

    likely = max(_FIRST_TRY_BYTES_MIN, _FIRST_TRY_RATIO * len(view))
    largest = min(bound, limit)
    size = min(likely, largest)
    while True:
        out = bytearray(size)
        try:
            written = function(view, out)
        except DecompressionError as error:
            if size < largest:
                size = largest
                continue
            if bound > limit:
                raise CompressionError(
                    0, f"{name}: corrupt, or more than {limit} bytes when decompressed"
                ) from None
            raise CompressionError(0, f"{name}: {error}") from None
        return memoryview(out)[:written]


_COMPRESS: dict[CompressionType, Callable[[Buffer], Buffer]] = {
    CompressionType.NONE: _compress_none,
    CompressionType.GZIP: _compress_gzip,
    CompressionType.SNAPPY: _compress_snappy,
    CompressionType.LZ4: _compress_lz4,
    CompressionType.ZSTD: _compress_zstd,
}

_DECOMPRESS: dict[int, Callable[[Buffer, int], Buffer]] = {
    CompressionType.NONE: _decompress_none,
    CompressionType.GZIP: _decompress_gzip,
    CompressionType.SNAPPY: _decompress_snappy,
    CompressionType.ZSTD: _decompress_zstd,
}
