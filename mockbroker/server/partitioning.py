"""The placement of records without a producer: their partitions, and batches of limited size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.errors import ApiError
from mockbroker.core.hashing.murmur2 import murmur2_partition
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import Record

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.metadata.topic import Topic

# One batch stays below the default max.message.bytes.
BATCH_BYTES_MAX = 512 * 1024
RECORD_OVERHEAD_BYTES = 32

Placed = tuple[int, Record]  # the number of a record in the request, and the record


def place(
    cluster: Cluster,
    topic: Topic,
    records: Sequence[tuple[int | None, Record]],
    turns: Iterator[int],
) -> dict[int, list[Placed]]:
    """Records with their numbers by partition. Records with a key go to the partition of Java's
    default partitioner, the others round robin. Raises ApiError.
    """
    count = len(topic.partitions)
    now_ms = cluster.runtime.now_ms()
    by_partition: defaultdict[int, list[Placed]] = defaultdict(list)
    for number, (wanted, given) in enumerate(records):
        partition, record = wanted, given
        if partition is None:
            partition = next(turns) if record.key is None else murmur2_partition(record.key, count)
        elif not 0 <= partition < count:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"record {number} names partition {partition}, there are {count}",
            )
        if record.timestamp == -1:
            record = msgspec.structs.replace(record, timestamp=now_ms)
        by_partition[partition].append((number, record))
    return by_partition


def batches(records: Sequence[Placed]) -> Iterator[list[Placed]]:
    """The records of one partition, in parts of limited size."""
    batch: list[Placed] = []
    size = 0
    for number, record in records:
        if batch and size > BATCH_BYTES_MAX:
            yield batch
            batch, size = [], 0
        batch.append((number, record))
        size += len(record.key or b"") + len(record.value or b"") + RECORD_OVERHEAD_BYTES
    if batch:
        yield batch
