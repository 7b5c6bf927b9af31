"""Topics and records of the start, stored as a producer would have stored them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import cycle

from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ApiError
from mockbroker.core.hashing.murmur2 import murmur2_partition
from mockbroker.core.metadata.topic import Topic
from mockbroker.server.config import SeedRecord, ServerError, TopicSpec
from mockbroker_protocol.records import Record, build_batch

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
    """Records with a key go where Java's default partitioner puts them, the others round robin."""
    count = len(topic.partitions)
    turn = cycle(range(count))
    by_partition: defaultdict[int, list[Record]] = defaultdict(list)
    for seed in records:
        partition = seed.partition
        if partition is None:
            partition = next(turn) if seed.key is None else murmur2_partition(seed.key, count)
        elif not 0 <= partition < count:
            raise ServerError(
                f"topic {topic.name}: a record names partition {partition}, there are {count}"
            )
        timestamp = cluster.runtime.now_ms() if seed.timestamp_ms is None else seed.timestamp_ms
        by_partition[partition].append(
            Record(0, timestamp, seed.key, seed.value, tuple(seed.headers))
        )
    for index, seeds in by_partition.items():
        for batch in _batches(seeds):
            topic.partitions[index].append_records(build_batch(batch), cluster.runtime.now_ms())


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
