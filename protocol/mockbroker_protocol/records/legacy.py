"""Message sets of the formats v0 and v1, which Kafka 4 still reads from disk but never writes.

    offset i64 | size i32 (bytes after this field) | crc-32 u32 of all from the magic | magic i8
    attributes i8 | v1: timestamp i64 | key length i32 (-1 null), key | value length i32, value

Attribute bits 0-2 name the codec, bit 3 (v1) the timestamp type. A compressed message is a
*wrapper*: its value is another message set. In v0 the inner offsets are absolute; in v1 they count
from 0 and the wrapper's offset is that of the last inner message (KIP-31).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import msgspec

from mockbroker_protocol.records.batch import (
    CODEC_MASK,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    Buffer,
)
from mockbroker_protocol.records.compression import DECOMPRESSED_BYTES_MAX, decompress
from mockbroker_protocol.records.errors import (
    CorruptBatchError,
    InvalidRecordError,
    RecordsError,
    UnsupportedMagicError,
)
from mockbroker_protocol.records.record import Record

MAGIC_MAX = 1
_MESSAGE_BYTES_MIN = {0: 14, 1: 22}
_KEY_OFFSET = {0: 18, 1: 26}

_FIXED = struct.Struct(">qiIBb")
_i64 = struct.Struct(">q")
_i32 = struct.Struct(">i")


class _Message(msgspec.Struct, frozen=True):
    """One message as it stands, compressed or not."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def has_append_time(self) -> bool:
        return self.magic == 1 and bool(self.attributes & TIMESTAMP_TYPE_MASK)


def iter_message_set(
    buffer: Buffer,
    *,
    check_crcs: bool = True,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> Iterator[Record]:
    """The records of a message set, wrappers opened, one at a time; v0 has no timestamps (-1).

    An incomplete message at the end is dropped. Raises `CorruptBatchError` for a wrong size or
    checksum, `InvalidRecordError` for lengths that do not fit or a wrapper inside a wrapper,
    `UnsupportedMagicError` for v2 and `CompressionError`.
    """
    for position, message in _messages(memoryview(buffer), check_crcs=check_crcs):
        if message.codec:
            try:
                yield from _open_wrapper(message, check_crcs, decompressed_bytes_max)
            except RecordsError as error:
                error.reason += f", inside the wrapper at byte {position}"
                raise
        else:
            yield Record(message.offset, message.timestamp, message.key, message.value)


def message_size(buffer: Buffer, pos: int = 0) -> int:
    """Bytes of the message or batch at `pos`; its first 12 bytes must be there."""
    return int(_i32.unpack_from(buffer, pos + LENGTH_OFFSET)[0]) + LOG_OVERHEAD


def _messages(view: memoryview, *, check_crcs: bool) -> Iterator[tuple[int, _Message]]:
    pos, end = 0, len(view)
    while end - pos >= _FIXED.size:
        size = message_size(view, pos)
        magic = view[pos + 16]
        if magic > MAGIC_MAX:
            raise UnsupportedMagicError(pos + 16, magic)
        if size < _MESSAGE_BYTES_MIN[magic] + LOG_OVERHEAD:
            raise CorruptBatchError(pos + LENGTH_OFFSET, f"message size {size - LOG_OVERHEAD}")
        if pos + size > end:
            return
        yield pos, _message(view[pos : pos + size], pos, check_crcs=check_crcs)
        pos += size


def _message(view: memoryview, pos: int, *, check_crcs: bool) -> _Message:
    offset, _size, crc, magic, attributes = _FIXED.unpack_from(view)
    if check_crcs:
        computed = zlib.crc32(view[16:])
        if computed != crc:
            raise CorruptBatchError(
                pos + 12, f"crc-32 {crc:#010x}, but the bytes give {computed:#010x}"
            )
    timestamp = _i64.unpack_from(view, 18)[0] if magic == 1 else -1
    key, at = _blob(view, _KEY_OFFSET[magic], pos, "key")
    value, at = _blob(view, at, pos, "value")
    if at != len(view):
        raise InvalidRecordError(pos + at, f"{len(view) - at} bytes after the value")
    return _Message(offset, magic, attributes, timestamp, key, value)


def _blob(view: memoryview, at: int, pos: int, what: str) -> tuple[bytes | None, int]:
    left = len(view) - at - _i32.size
    length = _i32.unpack_from(view, at)[0] if left >= 0 else None
    if length is None or length < -1 or length > left:
        raise InvalidRecordError(pos + at, f"{what} length {length}, but {left} bytes are left")
    at += _i32.size
    if length == -1:
        return None, at
    return bytes(view[at : at + length]), at + length


def _open_wrapper(
    wrapper: _Message, check_crcs: bool, decompressed_bytes_max: int
) -> Iterator[Record]:
    if wrapper.value is None:
        raise InvalidRecordError(0, "a compressed message without a value")
    payload = decompress(
        wrapper.codec,
        wrapper.value,
        magic=wrapper.magic,
        decompressed_bytes_max=decompressed_bytes_max,
    )
    # All of them before the first: v1 offsets count back from the last one.
    inner = []
    for position, message in _messages(memoryview(payload), check_crcs=check_crcs):
        if message.codec:
            raise InvalidRecordError(position, "a compressed message inside a compressed message")
        if message.magic != wrapper.magic:
            raise InvalidRecordError(
                position, f"magic {message.magic} in a wrapper of magic {wrapper.magic}"
            )
        inner.append(message)
    if not inner:
        raise InvalidRecordError(0, "a compressed message with nothing in it")
    for offset, message in zip(_absolute_offsets(wrapper, inner), inner, strict=True):
        timestamp = wrapper.timestamp if wrapper.has_append_time else message.timestamp
        yield Record(offset, timestamp, message.key, message.value)


def _absolute_offsets(wrapper: _Message, inner: list[_Message]) -> list[int]:
    if wrapper.magic == 0:
        return [message.offset for message in inner]
    last = inner[-1].offset
    if last == 0:
        # librdkafka once sent relative offsets of 0 throughout; their order is their offset.
        return [wrapper.offset - len(inner) + 1 + index for index in range(len(inner))]
    return [wrapper.offset - last + message.offset for message in inner]
