"""What other libraries build, we read; what we build, they read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import hypothesis
from aiokafka.record import default_records as aio_default
from aiokafka.record import memory_records as aio_memory
from hypothesis import strategies as st
from kafka.record import MemoryRecords as PyMemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder as PyBuilder

from mockbroker_protocol.records import (
    BatchHeader,
    CompressionType,
    Record,
    build_batch,
    check_crc,
    iter_records,
    read_records,
)
from tests.protocol.records.strategies import header_lists, numbered

# aiokafka's C extension takes no negative timestamp.
peer_records = st.lists(
    st.builds(
        Record,
        timestamp=st.integers(0, 2**50),
        key=st.none() | st.binary(max_size=100),
        value=st.none() | st.binary(max_size=300),
        headers=header_lists,
    ),
    min_size=1,
    max_size=15,
)
# What kafka-python decompresses without further packages.
PY_CODECS = [CompressionType.NONE, CompressionType.GZIP, CompressionType.LZ4]


def as_records(batches: Iterable[Iterable[Any]]) -> list[Record]:
    return [
        Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
        for batch in batches
        for r in batch
    ]


def aiokafka_reads(data: bytes) -> list[Record]:
    reader = aio_memory.MemoryRecords(data)
    found = []
    while reader.has_next():
        batch = reader.next_batch()
        assert batch.validate_crc()
        found.append(list(batch))
    return as_records(found)


def kafka_python_reads(data: bytes) -> list[Record]:
    reader = PyMemoryRecords(data)
    found = []
    while reader.has_next():
        batch = reader.next_batch()
        assert batch.validate_crc()
        found.append(list(batch))
    return as_records(found)


@hypothesis.given(peer_records, st.sampled_from(list(CompressionType)), st.integers(0, 2**40))
def test_aiokafka_reads_what_we_build(records, codec, base_offset):
    batch = bytes(build_batch(records, codec=codec, base_offset=base_offset))
    assert aiokafka_reads(batch) == numbered(records, base_offset)


@hypothesis.given(peer_records, st.sampled_from(PY_CODECS), st.integers(0, 2**40))
def test_kafka_python_reads_what_we_build(records, codec, base_offset):
    batch = bytes(build_batch(records, codec=codec, base_offset=base_offset))
    assert kafka_python_reads(batch) == numbered(records, base_offset)


@hypothesis.given(peer_records, st.sampled_from(list(CompressionType)))
def test_we_read_what_aiokafka_builds(records, codec):
    builder = aio_default.DefaultRecordBatchBuilder(
        magic=2,
        compression_type=int(codec),
        is_transactional=1,
        producer_id=9,
        producer_epoch=3,
        base_sequence=8,
        batch_size=1 << 20,
    )
    for offset, r in enumerate(records):
        builder.append(offset, r.timestamp, r.key, r.value, list(r.headers))
    batch = bytes(builder.build())
    check_crc(batch)
    header = BatchHeader(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 3, 8)
    assert list(iter_records(header, batch)) == numbered(records)


@hypothesis.given(peer_records, st.sampled_from(PY_CODECS))
def test_we_read_what_kafka_python_builds(records, codec):
    builder = PyBuilder(
        magic=2,
        compression_type=int(codec),
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for offset, r in enumerate(records):
        builder.append(offset, r.timestamp, r.key, r.value, list(r.headers))
    assert list(read_records(bytes(builder.build()))) == numbered(records)


@hypothesis.given(peer_records)
def test_uncompressed_batches_are_byte_for_byte_those_of_aiokafka(records):
    builder = aio_default.DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=5,
        producer_epoch=2,
        base_sequence=1,
        batch_size=1 << 20,
    )
    for offset, r in enumerate(records):
        builder.append(offset, r.timestamp, r.key, r.value, list(r.headers))
    # A client leaves the leader epoch to the broker.
    theirs = bytearray(builder.build())
    epoch = BatchHeader(theirs).leader_epoch
    ours = build_batch(
        records, leader_epoch=epoch, producer_id=5, producer_epoch=2, base_sequence=1
    )
    assert ours == theirs
