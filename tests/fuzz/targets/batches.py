"""The records field of a Produce, from its first byte to the last header of a record.

A batch is opened as a leader opens it, validated by topics that decode it for each reason there
is, and read as a consumer, the cleaner and `mockbroker decode` read it. Batches are changed before
or after compression, and mostly have the right checksum, without which nothing else is looked at.

Memory: a payload may have as many bytes as the limit of decompression, twice at a time; records and
headers are bounded by number.
"""

from __future__ import annotations

import random
import struct
import zlib
from contextlib import suppress
from functools import cached_property

from mockbroker.core.configs.values import TopicConfigs
from mockbroker.core.errors import ApiError
from mockbroker.core.limits import BatchLimits
from mockbroker.core.log.validation import validate_batch
from mockbroker.handlers.produce_records import open_records
from mockbroker_protocol.explain_records import explain_batches
from mockbroker_protocol.records import (
    BatchHeader,
    CompressionType,
    ControlType,
    Record,
    RecordsError,
    batch_payload,
    build_batch,
    build_marker,
    compress,
    decompress,
    parse_marker,
    read_control,
    read_records,
    split_batches,
    update_crc,
)
from mockbroker_protocol.records.batch import LOG_OVERHEAD, MAGIC_OFFSET
from mockbroker_protocol.records.compression.snappy import compress_raw
from mockbroker_protocol.records.keys import scan_keys
from tests.fuzz.corpus import kept
from tests.fuzz.engine import Target
from tests.fuzz.mutate import amplified, mutated
from tests.fuzz.work import MEMORY_BYTES_MIN, Broken
from tests.support.requests import NOW_MS, Node

INPUT_BYTES_MAX = 16 * 1024
AMPLIFIED_BYTES = 1 << 20  # the default of max.message.bytes
AMPLIFIED_SHARE = 1 / 1_000
DECOMPRESSED_BYTES_MAX = 4 << 20
RECORDS_MAX = 10_000
CODECS = tuple(CompressionType)[1:]
TOPICS: tuple[dict[str, str], ...] = (
    {},
    {"cleanup_policy": "compact"},
    {"compression_type": "zstd"},
    {"message_timestamp_type": "LogAppendTime"},
    {"message_timestamp_before_max_ms": "3600000"},
)
RECORDS = (
    (Record(0, NOW_MS, b"key", b"value"),),
    (Record(0, NOW_MS, None, None), Record(1, NOW_MS - 5, b"", b"", (("h", b"1"), ("", None)))),
    tuple(Record(index, NOW_MS + index, b"%d" % index, b"v" * 40) for index in range(20)),
)


def seeds() -> list[bytes]:
    """Sound batches of every codec and kind."""
    found = [
        bytes(build_batch(records, codec=codec)) for records in RECORDS for codec in CompressionType
    ]
    found += [
        bytes(build_batch(RECORDS[0], producer_id=5, producer_epoch=0, base_sequence=3)),
        bytes(build_batch(RECORDS[0], transactional=True, producer_id=5, producer_epoch=1)),
        bytes(build_batch((), last_offset=3)),
        bytes(
            build_marker(
                ControlType.COMMIT,
                producer_id=5,
                producer_epoch=0,
                coordinator_epoch=0,
                timestamp=NOW_MS,
            )
        ),
        _legacy(0),
        _legacy(1),
    ]
    return found


def _legacy(magic: int) -> bytes:
    """One message of the formats before v2."""
    time = struct.pack(">q", NOW_MS) if magic else b""
    body = struct.pack(">bb", magic, 0) + time + struct.pack(">i3si5s", 3, b"key", 5, b"value")
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message


class Batches(Target):
    """An input is a records field."""

    name = "batches"
    modules = ("mockbroker_protocol.records", "mockbroker_protocol.explain_records")

    @cached_property
    def seeds(self) -> list[bytes]:
        return [*seeds(), *kept(self.name)]

    @cached_property
    def topics(self) -> list[TopicConfigs]:
        return [Node().topic(**configs).topic.configs for configs in TOPICS]

    def draw(self, number: int) -> bytes:
        rng = self.rng(number)
        seed = rng.choice(self.seeds)
        way = rng.random()
        if way < 0.4:
            return _fitted(rng, mutated(rng, seed, self.seeds, INPUT_BYTES_MAX))
        if way < 0.5:
            return mutated(rng, seed, self.seeds, INPUT_BYTES_MAX)
        return _rebuilt(rng, seed)

    def check(self, data: bytes) -> None:
        # Each opens, validates and reads the batch again: a large one takes its time.
        for version in (3, 9) if len(data) <= INPUT_BYTES_MAX else (9,):
            try:
                header, batch, _ = open_records(memoryview(bytearray(data)), version)
            except ApiError:
                break
            if header is not None and batch is not None and len(batch) == header.size:
                self._validate(header, batch)
                _read_batch(header, batch)
        try:
            for _ in read_records(
                data,
                check_crcs=False,
                include_control=True,
                decompressed_bytes_max=DECOMPRESSED_BYTES_MAX,
            ):
                pass
        except RecordsError as error:
            if not error.reason or error.byte < 0:
                raise Broken(f"refused without a reason or a byte: {error}") from error
        if len(data) <= INPUT_BYTES_MAX:
            for _ in explain_batches(data):
                pass

    def _validate(self, header: BatchHeader, batch: memoryview) -> None:
        for topic in self.topics:
            copy = memoryview(bytearray(batch))
            validate_batch(
                copy,
                BatchHeader(copy),
                topic,
                NOW_MS,
                topic_partition=("t", 0),
                walk_always=True,
                limits=BatchLimits(RECORDS_MAX, DECOMPRESSED_BYTES_MAX),
            )

    def memory_bytes_max(self, data: bytes) -> int:
        return 2 * len(data) + MEMORY_BYTES_MIN + 3 * DECOMPRESSED_BYTES_MAX


def _read_batch(header: BatchHeader, batch: memoryview) -> None:
    with suppress(RecordsError):
        payload = batch_payload(header, batch, decompressed_bytes_max=DECOMPRESSED_BYTES_MAX)
        scan_keys(payload, 0, header.count)
    with suppress(RecordsError):
        parse_marker(read_control(header, batch))


def _fitted(rng: random.Random, data: bytes) -> bytes:
    """The batch with its own length and checksum."""
    batch = bytearray(data)
    if len(batch) > 61 and rng.random() < 0.95:
        struct.pack_into(">i", batch, 8, len(batch) - LOG_OVERHEAD)
        if rng.random() < 0.9:
            batch[MAGIC_OFFSET] = 2
            update_crc(batch)
    return bytes(batch)


def _rebuilt(rng: random.Random, seed: bytes) -> bytes:
    """The batch with changes in its payload, compressed by any codec, and any count."""
    try:
        header, batch = next(iter(split_batches(seed)))
        payload = bytes(batch_payload(header, batch))
    except (RecordsError, StopIteration):
        return seed
    large = rng.random() < AMPLIFIED_SHARE
    others = (payload,)
    inner = mutated(rng, payload, others, INPUT_BYTES_MAX) if rng.random() < 0.7 else payload
    if large and rng.random() < 0.5:
        inner = amplified(rng, inner, DECOMPRESSED_BYTES_MAX)
    codec = rng.choice(tuple(CompressionType))
    body = bytes(_compressed(rng, codec, inner))
    if rng.random() < 0.3:
        body = mutated(rng, body, (seed,), INPUT_BYTES_MAX)
    if large:
        body = amplified(rng, body, AMPLIFIED_BYTES)[:AMPLIFIED_BYTES]
    out = bytearray(seed[:61]) + body
    count = rng.choice((header.count, 1, 2, RECORDS_MAX, RECORDS_MAX + 1, 0, -1, 0x7FFFFFFF))
    if rng.random() < 0.5:
        struct.pack_into(">i", out, 23, (count - 1) & 0x7FFFFFFF)
        struct.pack_into(">i", out, 57, count)
    out[22] = out[22] & 0xF8 | codec
    struct.pack_into(">i", out, 8, len(out) - LOG_OVERHEAD)
    update_crc(out)
    return bytes(out)


def _compressed(rng: random.Random, codec: CompressionType, data: bytes) -> bytes:
    if codec is CompressionType.SNAPPY and rng.random() < 0.5:
        return bytes(compress_raw(data))
    return bytes(compress(codec, data))


class Compressed(Target):
    """The decompressors alone. An input is the number of a codec, and its bytes.

    Memory: as much as the limit of decompression, twice where a first buffer was too small.
    """

    name = "compressed"
    modules = ("mockbroker_protocol.records.compression",)

    @cached_property
    def seeds(self) -> list[bytes]:
        samples = (b"", b"x", b"abcdefgh" * 200, random.Random(1).randbytes(300))
        found = [
            bytes([codec]) + bytes(compress(codec, sample))
            for codec in CODECS
            for sample in samples
        ]
        found += [bytes([CompressionType.SNAPPY]) + bytes(compress_raw(s)) for s in samples]
        return [*found, *kept(self.name)]

    def draw(self, number: int) -> bytes:
        rng = self.rng(number)
        seed = rng.choice(self.seeds)
        data = mutated(rng, seed[1:], [each[1:] for each in self.seeds[:20]], INPUT_BYTES_MAX)
        if rng.random() < AMPLIFIED_SHARE:
            data = amplified(rng, rng.choice((data, seed[1:])), AMPLIFIED_BYTES)
        return seed[:1] + data

    def check(self, data: bytes) -> None:
        try:
            out = decompress(
                data[0] & 7 if data else 0,
                memoryview(data)[1:],
                decompressed_bytes_max=DECOMPRESSED_BYTES_MAX,
            )
        except RecordsError:
            return
        assert len(out) <= DECOMPRESSED_BYTES_MAX

    def memory_bytes_max(self, data: bytes) -> int:
        return 2 * len(data) + MEMORY_BYTES_MIN + 2 * DECOMPRESSED_BYTES_MAX
