from __future__ import annotations

import struct
import zlib

import pytest

from mockbroker_protocol.records import (
    CompressionError,
    CorruptBatchError,
    InvalidRecordError,
    Record,
    UnsupportedMagicError,
    compress,
)
from mockbroker_protocol.records.legacy import iter_message_set
from tests.protocol.records.outcome import error_in


def message(
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    magic: int = 1,
    attributes: int = 0,
    timestamp: int = 0,
) -> bytes:
    body = struct.pack(">bb", magic, attributes)
    if magic == 1:
        body += struct.pack(">q", timestamp)
    for blob in (key, value):
        body += struct.pack(">i", -1 if blob is None else len(blob)) + (blob or b"")
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapper(offset: int, inner: bytes, codec: int = 1, *, magic: int = 1, **fields: int) -> bytes:
    attributes = codec | fields.pop("attributes", 0)
    value = bytes(compress(codec, inner))
    return message(offset, None, value, magic=magic, attributes=attributes, **fields)


def test_v0_messages_have_no_timestamp():
    data = message(3, b"k", b"v", magic=0) + message(4, None, None, magic=0)
    assert list(iter_message_set(data)) == [Record(3, -1, b"k", b"v"), Record(4)]


def test_v1_messages_have_one():
    data = message(3, None, b"v", timestamp=77)
    assert list(iter_message_set(data)) == [Record(3, 77, None, b"v")]


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_v0_wrappers_hold_absolute_offsets(codec):
    inner = message(5, b"a", None, magic=0) + message(9, b"b", None, magic=0)
    data = wrapper(9, inner, codec, magic=0)
    assert [record.offset for record in iter_message_set(data)] == [5, 9]


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_v1_wrappers_hold_offsets_relative_to_the_last(codec):
    inner = b"".join(message(i, None, b"%d" % i, timestamp=i) for i in range(4))
    data = message(19, None, b"before") + wrapper(23, inner, codec)
    records = list(iter_message_set(data))
    assert [record.offset for record in records] == [19, 20, 21, 22, 23]
    assert [record.timestamp for record in records] == [0, 0, 1, 2, 3]


def test_compacted_v1_wrappers_keep_their_holes():
    inner = message(1, b"a", b"") + message(4, b"b", b"")
    assert [record.offset for record in iter_message_set(wrapper(104, inner))] == [101, 104]


def test_relative_offsets_of_zero_throughout_are_numbered():
    inner = b"".join(message(0, None, b"x") for _ in range(3))
    assert [record.offset for record in iter_message_set(wrapper(10, inner))] == [8, 9, 10]


def test_append_time_of_the_wrapper_is_that_of_its_messages():
    inner = message(0, None, b"x", timestamp=1) + message(1, None, b"y", timestamp=2)
    data = wrapper(1, inner, attributes=8, timestamp=500)
    assert [record.timestamp for record in iter_message_set(data)] == [500, 500]


def test_an_incomplete_message_at_the_end_is_dropped():
    data = message(0, b"k", b"v")
    for cut in range(len(data)):
        assert len(list(iter_message_set(data + data[:cut]))) == 1


def test_a_wrong_checksum_is_refused_unless_told_to_trust():
    data = bytearray(message(0, b"k", b"v"))
    data[-1] ^= 1
    with pytest.raises(CorruptBatchError, match=r"^byte 12: crc-32 0x"):
        list(iter_message_set(data))
    assert [record.key for record in iter_message_set(data, check_crcs=False)] == [b"k"]


@pytest.mark.parametrize(("magic", "size"), [(0, 13), (1, 21), (1, 0), (1, -5)])
def test_a_size_below_the_smallest_message_is_refused(magic, size):
    data = bytearray(message(0, None, None, magic=magic))
    data[8:12] = struct.pack(">i", size)
    with pytest.raises(CorruptBatchError, match=f"message size {size}"):
        list(iter_message_set(data))


def test_lengths_that_do_not_fit_are_refused():
    data = bytearray(message(0, b"key", b"value"))
    for position, length in ((26, 100), (26, -2), (33, 4), (33, 6)):
        broken = bytearray(data)
        broken[position : position + 4] = struct.pack(">i", length)
        with pytest.raises(InvalidRecordError):
            list(iter_message_set(broken, check_crcs=False))


def test_batches_of_v2_are_not_messages():
    data = bytearray(message(0, None, None))
    data[16] = 2
    with pytest.raises(UnsupportedMagicError):
        list(iter_message_set(data))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (message(0, None, None, attributes=1), "without a value"),
        (wrapper(0, b""), "nothing in it"),
        (wrapper(0, wrapper(0, message(0, None, b"x"))), "inside a compressed message"),
        (wrapper(0, message(0, None, b"x", magic=0)), "magic 0 in a wrapper of magic 1"),
    ],
)
def test_wrappers_that_make_no_sense_are_refused(data, reason):
    with pytest.raises(InvalidRecordError, match=reason):
        list(iter_message_set(data))


def test_an_error_inside_a_wrapper_names_the_wrapper():
    inner = bytearray(message(0, None, b"x"))
    inner[-1] ^= 1
    data = message(0, None, b"first") + wrapper(1, bytes(inner))
    with pytest.raises(CorruptBatchError, match=r"inside the wrapper at byte 39$"):
        list(iter_message_set(data))


def test_a_wrapper_is_bounded():
    inner = message(0, None, bytes(100_000))
    with pytest.raises(CompressionError, match="more than 50000 bytes"):
        list(iter_message_set(wrapper(0, inner), decompressed_bytes_max=50_000))


@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_flips_give_records_or_a_clean_error(codec):
    inner = b"".join(message(i, b"key", b"value", timestamp=i) for i in range(3))
    data = wrapper(2, inner, codec) if codec else inner
    for position in range(len(data)):
        broken = bytearray(data)
        broken[position] ^= 0xFF
        error = error_in(lambda data=broken: list(iter_message_set(data, check_crcs=False)))
        assert error is None or error.reason
