"""Record batches: what we build Kafka reads, what Kafka builds we read, and both build alike."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mockbroker_protocol.records import (
    BatchHeader,
    CompressionType,
    ControlType,
    Record,
    TimestampType,
    build_batch,
    build_marker,
    check_crc,
    parse_marker,
    read_control,
    read_records,
    recompress,
    set_max_timestamp,
    set_offset_and_epoch,
    split_batches,
    update_crc,
)
from tests.support.java_pipe import JavaPipe

pytestmark = pytest.mark.java

Json = dict[str, Any]

CODECS = [codec.name.lower() for codec in CompressionType]
NOW = 1_760_000_000_000


def sample_records(seed: str, base_offset: int = 0) -> list[Record]:
    """Records of all shapes: nulls, empties, deltas of either sign, long and odd headers."""
    rng = random.Random(seed)

    def blob() -> bytes | None:
        size = rng.choice((None, 0, 1, 63, 64, 5000))
        return None if size is None else rng.randbytes(size // 2) + b"z" * (size - size // 2)

    return [
        Record(
            base_offset + number,
            NOW + rng.choice((0, 1, -1, 10**9, -(10**9))) * rng.randint(0, 1000),
            blob(),
            blob(),
            tuple((rng.choice(("", "h", "ü✓" * 40)), blob()) for _ in range(rng.choice((0, 0, 3)))),
        )
        for number in range(rng.choice((1, 2, 70)))
    ]


def hexed(blob: bytes | None) -> str | None:
    return None if blob is None else bytes(blob).hex()


def record_json(record: Record) -> Json:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": hexed(record.key),
        "value": hexed(record.value),
        "headers": [[key, hexed(value)] for key, value in record.headers],
    }


def described(batch: bytes | bytearray) -> Json:
    """One batch in the oracle's words, read by us."""
    header = BatchHeader(batch)
    check_crc(batch)
    return {
        "magic": header.magic,
        "sizeInBytes": header.size,
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "compression": CompressionType(header.codec).name.lower(),
        "timestampType": ("CreateTime", "LogAppendTime")[header.timestamp_type],
        "maxTimestamp": header.max_timestamp,
        "checksum": header.crc,
        "baseTimestamp": header.base_timestamp,
        "leaderEpoch": header.leader_epoch,
        "count": header.count,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "records": [record_json(record) for record in read_records(batch)],
    }


BATCHES: list[Json] = [
    {},
    {"base_offset": 2**40, "leader_epoch": 7},
    {"producer_id": 4711, "producer_epoch": 3, "base_sequence": 0},
    {"producer_id": 4711, "producer_epoch": 3, "base_sequence": 2**31 - 1, "transactional": True},
]


def options(number: int, codec: str) -> tuple[list[Record], Json]:
    batch = BATCHES[number]
    records = sample_records(f"{codec} {number}", batch.get("base_offset", 0))
    return records, batch


def java_options(batch: Json, codec: str, records: list[Record]) -> Json:
    names = {
        "base_offset": "baseOffset",
        "leader_epoch": "leaderEpoch",
        "producer_id": "producerId",
        "producer_epoch": "producerEpoch",
        "base_sequence": "baseSequence",
        "transactional": "transactional",
    }
    translated: Json = {names[name]: value for name, value in batch.items()}
    translated |= {"compression": codec, "records": [record_json(each) for each in records]}
    return translated


@pytest.mark.covers("S318")
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_kafka_reads_what_we_build(number: int, codec: str, kafka43: JavaPipe) -> None:
    records, batch = options(number, codec)
    built = build_batch(records, codec=CompressionType[codec.upper()], **batch)
    (read,) = kafka43.ask_one("records.read", hex=built.hex())["batches"]
    assert read == described(built)
    assert read["records"] == [record_json(record) for record in records]


@pytest.mark.covers("S318", "S326")
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_we_read_what_kafka_builds(number: int, codec: str, kafka43: JavaPipe) -> None:
    records, batch = options(number, codec)
    theirs = kafka43.ask_one("records.build", **java_options(batch, codec, records))["hex"]
    (read,) = kafka43.ask_one("records.read", hex=theirs)["batches"]
    assert described(bytes.fromhex(theirs)) == read
    assert read["records"] == [record_json(record) for record in records]


@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_both_build_the_same_bytes_where_no_codec_has_a_say(number: int, kafka43: JavaPipe) -> None:
    for round_ in range(20):
        records, batch = options(number, f"none {round_}")
        theirs = kafka43.ask_one("records.build", **java_options(batch, "none", records))["hex"]
        assert build_batch(records, **batch).hex() == theirs


def test_both_build_the_same_batch_of_log_append_time(kafka43: JavaPipe) -> None:
    records = sample_records("append time")
    theirs = kafka43.ask_one(
        "records.build", logAppendTime=NOW, **java_options({}, "none", records)
    )["hex"]
    ours = build_batch(records, timestamp_type=TimestampType.LOG_APPEND_TIME, append_time=NOW)
    (read,) = kafka43.ask_one("records.read", hex=ours.hex())["batches"]
    assert {record["timestamp"] for record in read["records"]} == {NOW}
    assert described(ours) == read
    assert described(bytes.fromhex(theirs))["records"] == read["records"]


@pytest.mark.covers("S102")
@pytest.mark.parametrize("codec", CODECS)
def test_kafka_reads_what_we_recompressed(codec: str, kafka43: JavaPipe) -> None:
    records = sample_records("recompressed")
    theirs = kafka43.ask_one("records.build", **java_options({}, "lz4", records))["hex"]
    ours = recompress(bytes.fromhex(theirs), CompressionType[codec.upper()])
    (read,) = kafka43.ask_one("records.read", hex=ours.hex())["batches"]
    assert read == described(ours)
    assert read["compression"] == codec
    assert read["records"] == [record_json(record) for record in records]


@pytest.mark.covers("S157")
def test_a_patched_batch_is_still_whole_to_kafka(kafka43: JavaPipe) -> None:
    records = sample_records("patched")
    batch = bytearray.fromhex(
        kafka43.ask_one("records.build", **java_options({}, "zstd", records))["hex"]
    )
    set_offset_and_epoch(batch, 5000, 9)
    (read,) = kafka43.ask_one("records.read", hex=batch.hex())["batches"]
    assert (read["baseOffset"], read["leaderEpoch"]) == (5000, 9)
    assert [record["offset"] for record in read["records"]] == [
        5000 + record.offset for record in records
    ]
    set_max_timestamp(batch, TimestampType.LOG_APPEND_TIME, NOW)
    update_crc(batch)
    (read,) = kafka43.ask_one("records.read", hex=batch.hex())["batches"]
    assert {record["timestamp"] for record in read["records"]} == {NOW}


@pytest.mark.parametrize("commit", [True, False])
def test_both_write_the_same_transaction_marker(commit: bool, kafka43: JavaPipe) -> None:
    theirs = kafka43.ask_one(
        "records.marker",
        baseOffset=41,
        timestamp=NOW,
        leaderEpoch=2,
        producerId=99,
        producerEpoch=5,
        commit=commit,
        coordinatorEpoch=12,
    )["hex"]
    control = ControlType.COMMIT if commit else ControlType.ABORT
    ours = build_marker(
        control,
        producer_id=99,
        producer_epoch=5,
        coordinator_epoch=12,
        timestamp=NOW,
        base_offset=41,
        leader_epoch=2,
    )
    assert ours.hex() == theirs
    marker = parse_marker(read_control(BatchHeader(ours), ours))
    assert (marker.control_type, marker.coordinator_epoch) == (control, 12)


def test_several_batches_in_a_row_come_apart_alike(kafka43: JavaPipe) -> None:
    one, two = sample_records("one"), sample_records("two", 100)
    both = build_batch(one) + build_batch(two, base_offset=100, codec=CompressionType.SNAPPY)
    read = kafka43.ask_one("records.read", hex=both.hex())
    assert read["validBytes"] == len(both)
    assert [described(bytearray(view)) for _, view in split_batches(both)] == read["batches"]
