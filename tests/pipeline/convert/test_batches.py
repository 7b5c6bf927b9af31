"""All records of a batch at once equal those read one by one."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.pipeline.convert.batches import BatchOpener, open_batch
from mockbroker.pipeline.hashing import key_hash, value_hash
from mockbroker_protocol.records import (
    BatchHeader,
    Record,
    TimestampType,
    build_batch,
    iter_records,
    set_max_timestamp,
)

data = st.none() | st.binary(max_size=5) | st.binary(min_size=60, max_size=200)
headers = st.lists(
    st.tuples(st.sampled_from(["mb-id", "x"]), st.none() | st.binary(max_size=3)), max_size=3
)
records = st.lists(
    st.tuples(st.integers(0, 200), st.integers(-(2**33), 2**33), data, data, headers), min_size=1
)


def batch_of(drawn):
    offset, made = 0, []
    for gap, time, key, value, named in drawn:
        made.append(Record(offset, 1_700_000_000_000 + time, key, value, tuple(named)))
        offset += gap + 1
    return build_batch(made, base_offset=0)


def id_of(record):
    for name, value in record.headers:
        if name == "mb-id" and value is not None:
            return value.decode("utf-8", "replace")
    return None


@pytest.mark.parametrize("size", [0, 1, 127, 128, 255, 256, 1023, 1024, 5000, 70_000])
def test_the_hashes_of_long_keys_and_values_are_those_of_short_ones(size):
    key, value = b"k" * size, b"v" * size
    batch = build_batch([Record(0, 1, key, value)])
    opened = open_batch(BatchHeader(batch), memoryview(batch))
    assert opened.value_hashes.tolist() == [value_hash(key, value)]
    assert len(opened) == 1


@given(records)
def test_a_batch_opens_as_its_records_do(drawn):
    assert_opens_as_its_records(batch_of(drawn))


@pytest.mark.parametrize("number", [63, 64, 127, 128, 8191, 8192, 8255, 8256, 16383, 16384])
def test_a_record_opens_whose_numbers_just_fit_into_some_bytes_or_just_do_not(number):
    """A varint has seven bits in each byte, and one of them is for the sign."""
    made = [Record(0, 1_000_000, b"k"), Record(number, 1_000_000 + number, None, b"v" * number)]
    made.append(Record(number + 1, 1_000_000 - number, b"k" * number, None))
    assert_opens_as_its_records(build_batch(made, base_offset=0))


@pytest.mark.parametrize("size", [64, 8192, 16384])
def test_records_open_whose_lengths_need_one_more_byte_than_that_of_the_record_before(size):
    """Also where the second byte is one of those that a sign or a third byte changes."""
    sizes = range(size - 16, size + 72)
    made = [Record(offset, 1, None, b"v" * each) for offset, each in enumerate(sizes)]
    assert_opens_as_its_records(build_batch(made))


def assert_opens_as_its_records(batch):
    header = BatchHeader(batch)
    opened = open_batch(header, memoryview(batch))
    one_by_one = list(iter_records(header, batch))
    assert opened.deltas.tolist() == [each.offset for each in one_by_one]
    assert opened.timestamps.tolist() == [each.timestamp for each in one_by_one]
    assert opened.value_hashes.tolist() == [value_hash(r.key, r.value) for r in one_by_one]
    hashes = [key_hash(each.key) for each in one_by_one]
    if opened.key_hashes is None:
        assert set(hashes) == {None}
    else:
        found = [
            int(number) if there else None
            for number, there in zip(opened.key_hashes, opened.has_key, strict=True)
        ]
        assert found == hashes
    ids = [id_of(each) for each in one_by_one]
    assert (opened.ids or [None] * len(ids)) == ids


@pytest.mark.parametrize("codec", range(5))
def test_compressed_batches_open(codec):
    made = [Record(number, number, b"k", b"v" * number) for number in range(50)]
    batch = build_batch(made, codec=codec)
    opened = open_batch(BatchHeader(batch), memoryview(batch))
    assert opened.value_hashes.tolist() == [value_hash(r.key, r.value) for r in made]


def test_with_append_time_all_have_the_time_of_the_batch():
    batch = build_batch([Record(0, 5), Record(1, 6)])
    set_max_timestamp(batch, TimestampType.LOG_APPEND_TIME, 99)
    assert open_batch(BatchHeader(batch), memoryview(batch)).timestamps.tolist() == [99, 99]


@given(st.data())
def test_damaged_batches_never_fail(drawn):
    batch = build_batch([Record(n, n, b"key", b"value", (("mb-id", b"1"),)) for n in range(5)])
    for _ in range(drawn.draw(st.integers(1, 4))):
        at = drawn.draw(st.integers(61, len(batch) - 1))
        batch[at] = drawn.draw(st.integers(0, 255))
    opened = open_batch(BatchHeader(batch), memoryview(batch))
    assert len(opened.deltas) == len(opened.value_hashes) == len(opened.timestamps)


def test_a_batch_is_known_by_its_bytes_wherever_it_stands():
    opener = BatchOpener()
    first = build_batch([Record(0, 1, b"a", b"b")])
    later = build_batch([Record(0, 1, b"a", b"b")], base_offset=700, leader_epoch=3)
    other = build_batch([Record(0, 1, b"a", b"c")])
    opened = [opener.open(BatchHeader(b), memoryview(b)) for b in (first, later, other)]
    assert opened[0] is opened[1]
    assert opened[2].value_hashes.tolist() == [value_hash(b"a", b"c")]


def test_only_so_many_records_are_kept():
    opener = BatchOpener(kept_records_max=10)
    batches = [build_batch([Record(n, n, None, bytes([b])) for n in range(5)]) for b in range(9)]
    for batch in batches:
        opener.open(BatchHeader(batch), memoryview(batch))
    assert len(opener._kept) == 2


def test_hashes_are_what_the_docs_say():
    # BLAKE2b(ffffffff 00000001 61), its first eight bytes.
    assert value_hash(None, b"a") == int.from_bytes(
        blake2b(bytes.fromhex("ffffffff0000000161")).digest()[:8],
        "big",
        signed=True,
    )
    assert value_hash(None, b"") != value_hash(b"", None)
    assert value_hash(b"ab", b"c") != value_hash(b"a", b"bc")
    assert np.iinfo(np.int64).min <= value_hash(b"x", b"y") <= np.iinfo(np.int64).max
