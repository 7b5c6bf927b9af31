"""Stored records as they are, without a consumer. Called in the cluster's run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.views.topics import partition_of, topic_of
from mockbroker_protocol.records import BatchHeader, iter_records

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.metadata.topic import Topic
    from mockbroker.core.replication.partition import Partition

SHOWN_CHARS_MAX = 40


class StoredRecord(msgspec.Struct, frozen=True):
    """One record as a broker stores it; the timestamp is in ms since the epoch.

    In JSON, bytes are base64.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def __repr__(self) -> str:
        shown = [f"{self.topic}-{self.partition}@{self.offset}"]
        shown += [f"{name}={_short(getattr(self, name))}" for name in ("key", "value")]
        if self.headers:
            shown.append(f"headers={dict(self.headers)!r}")
        return f"<{' '.join(shown)}>"


class StoredPage(msgspec.Struct, frozen=True):
    """Records by partition and offset; the next page begins at `next`, a partition and an offset,
    which is null after the last record.
    """

    records: list[StoredRecord]
    next: tuple[int, int] | None


def stored_page(
    cluster: Cluster, topic: str, partition: int | None, start: tuple[int, int], limit: int
) -> StoredPage:
    """At most `limit` records from `start` (partition, offset) on, of a topic or of one partition.

    Control records are left out. Raises ApiError where there is no such topic or partition.
    """
    if partition is None:
        wanted = topic_of(cluster, topic).partitions[start[0] :]
    else:
        wanted = [partition_of(cluster, topic, partition)]
    found: list[StoredRecord] = []
    for part in wanted:
        first = start[1] if part.index == start[0] else 0
        for record in _records(part, max(first, part.log_start_offset)):
            if len(found) == limit:
                return StoredPage(found, (part.index, record.offset))
            found.append(record)
    return StoredPage(found, None)


def _records(partition: Partition, first: int) -> Iterator[StoredRecord]:
    for header, batch in _data_batches(partition):
        if header.next_offset <= first:
            continue
        for record in iter_records(header, batch):
            if record.offset >= first:
                yield StoredRecord(
                    partition.topic.name,
                    partition.index,
                    record.offset,
                    record.timestamp,
                    record.key,
                    record.value,
                    tuple(record.headers),
                )


def _data_batches(partition: Partition) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The batches a consumer could be given, without those that only mark a transaction's end."""
    for batch in partition.log.batches():
        header = BatchHeader(batch)
        if not header.is_control:
            yield header, batch


class TopicWatch:
    """Calls `enough` once a topic, which may not exist yet, holds `n` records or more."""

    def __init__(self, cluster: Cluster, topic: str, n: int, enough: Callable[[], None]) -> None:
        self._cluster = cluster
        self._name = topic
        self._n = n
        self._enough = enough
        self._watched: list[Partition] = []
        cluster.on_topic_created.append(self._created)
        if topic in cluster.topics:
            self._created(cluster.topics[topic])

    def stop(self) -> None:
        """End the watch."""
        self._cluster.on_topic_created.remove(self._created)
        for partition in self._watched:
            partition.unwatch(self)

    def partition_changed(self, partition: Partition) -> None:  # noqa: ARG002
        # Offsets bound the records from above and cost nothing; only then are batches counted.
        offsets = sum(part.log_end_offset - part.log_start_offset for part in self._watched)
        if offsets >= self._n and self.count >= self._n:
            self._enough()

    @property
    def count(self) -> int:
        """The records that the topic holds now."""
        return sum(header.count for part in self._watched for header, _ in _data_batches(part))

    def _created(self, topic: Topic) -> None:
        if topic.name != self._name:
            return
        self._watched = list(topic.partitions)
        for partition in self._watched:
            partition.watch(self)
            self.partition_changed(partition)


def _short(value: bytes | None) -> str:
    if value is None:
        return "null"
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS_MAX else text[: SHOWN_CHARS_MAX - 1] + "…"
