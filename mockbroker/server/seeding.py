"""Topics and records of the start, stored as a producer would have stored them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import cycle

import msgspec

from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ApiError
from mockbroker.core.hashing.murmur2 import murmur2_partition
from mockbroker.core.metadata.topic import Topic
from mockbroker.core.replication.partition import ACKS_ALL
from mockbroker.server.config import SeedRecord, ServerError, TopicSpec
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import BatchHeader, Record, build_batch

ERRORS = {int(error): error for error in ErrorCode}

# One batch of seeds stays below the default max.message.bytes.
BATCH_BYTES_MAX = 512 * 1024


def seed_topics(cluster: Cluster, topics: Sequence[TopicSpec]) -> None:
    """Create `topics` and append their records. Raises ServerError that names the topic."""
    for spec in topics:
        try:
            topic = cluster.create_topic(
                spec.name, spec.partitions, spec.replication_factor, configs=spec.configs
            )
        except ApiError as error:
            reason = error.message or error.error.message
            raise ServerError(f"topic {spec.name}: {reason}") from None
        _append(cluster, topic, spec.records)


def _append(cluster: Cluster, topic: Topic, records: Sequence[SeedRecord]) -> None:
    try:
        by_partition = _placed(
            cluster,
            topic,
            [
                (
                    seed.partition,
                    Record(
                        0,
                        -1 if seed.timestamp_ms is None else seed.timestamp_ms,
                        seed.key,
                        seed.value,
                        tuple(seed.headers),
                    ),
                )
                for seed in records
            ],
        )
    except ApiError as error:
        raise ServerError(f"topic {topic.name}: {error}") from None
    for index, seeds in by_partition.items():
        for batch in _batches([record for _, record in seeds]):
            topic.partitions[index].append_records(build_batch(batch), cluster.runtime.now_ms())


def append_records(
    cluster: Cluster, topic: Topic, records: Sequence[tuple[int | None, Record]]
) -> list[tuple[int, int]]:
    """Append (partition or None, record) pairs as a producer with acks=all would; returns the
    partition and offset of each. A timestamp of -1 is the present.

    Raises ApiError; batches before the refused one are stored then.
    """
    now_ms = cluster.runtime.now_ms()
    places: list[tuple[int, int]] = [(-1, -1)] * len(records)
    for index, placed in _placed(cluster, topic, records).items():
        partition = cluster.metadata.led(topic.partitions[index])
        if not cluster.metadata.is_led_here(partition):
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic.name}-{index} has no leader")
        numbers = iter([number for number, _ in placed])
        for batch in _batches([record for _, record in placed]):
            encoded = memoryview(bytearray(build_batch(batch)))
            result = partition.append(encoded, BatchHeader(encoded), ACKS_ALL, now_ms)
            if result.error:
                partition.notify()
                error = ERRORS[result.error]
                raise ApiError(error, f"{topic.name}-{index}: {error.name}")
            for offset, _ in enumerate(batch, result.base_offset):
                places[next(numbers)] = (index, offset)
        partition.notify()
    return places


def _placed(
    cluster: Cluster, topic: Topic, records: Sequence[tuple[int | None, Record]]
) -> dict[int, list[tuple[int, Record]]]:
    """Records with their numbers by partition. Those with a key go where Java's default
    partitioner puts them, the others round robin. Raises ApiError.
    """
    count = len(topic.partitions)
    turn = cycle(range(count))
    by_partition: defaultdict[int, list[tuple[int, Record]]] = defaultdict(list)
    for number, (wanted, given) in enumerate(records):
        partition, record = wanted, given
        if partition is None:
            partition = next(turn) if record.key is None else murmur2_partition(record.key, count)
        elif not 0 <= partition < count:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"a record names partition {partition}, there are {count}",
            )
        if record.timestamp == -1:
            record = msgspec.structs.replace(record, timestamp=cluster.runtime.now_ms())
        by_partition[partition].append((number, record))
    return by_partition


def _batches(records: Sequence[Record]) -> list[list[Record]]:
    batches: list[list[Record]] = [[]]
    size = 0
    for record in records:
        if batches[-1] and size > BATCH_BYTES_MAX:
            batches.append([])
            size = 0
        batches[-1].append(record)
        size += len(record.key or b"") + len(record.value or b"") + 32
    return batches
