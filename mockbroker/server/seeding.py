"""Topics and records at the start, stored as if by a producer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ApiError
from mockbroker.core.metadata.topic import Topic
from mockbroker.server.config import SeedRecord, ServerError, TopicSpec
from mockbroker.server.partitioning import batches, place
from mockbroker_protocol.records import Record, build_batch


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
        by_partition = place(
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
            cycle(range(len(topic.partitions))),
        )
    except ApiError as error:
        raise ServerError(f"topic {topic.name}: {error}") from None
    for index, seeds in by_partition.items():
        for batch in batches(seeds):
            data = build_batch([record for _, record in batch])
            topic.partitions[index].append_records(data, cluster.runtime.now_ms())
