"""The records in the leader's log, without a consumer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.errors import ApiError
from mockbroker.core.shortening import shown_bytes
from mockbroker.core.views.topics import partition_of, topic_of
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import BatchHeader, Record, RecordsError, iter_records

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.metadata.topic import Topic
    from mockbroker.core.replication.partition import Partition


class StoredRecord(msgspec.Struct, frozen=True):
    """One record in the log; the timestamp is in ms since the epoch. In JSON, bytes are base64."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def __repr__(self) -> str:
        shown = [f"{self.topic}-{self.partition}@{self.offset}"]
        shown += [f"{name}={shown_bytes(getattr(self, name))}" for name in ("key", "value")]
        if self.headers:
            shown.append(f"headers={dict(self.headers)!r}")
        return f"<{' '.join(shown)}>"


class StoredPage(msgspec.Struct, frozen=True):
    """Records by partition and offset. `next` is the partition and offset of the next page, null
    after the last one.
    """

    records: list[StoredRecord]
    next: tuple[int, int] | None


def stored_page(
    cluster: Cluster, topic: str, partition: int | None, start: tuple[int, int], limit: int
) -> StoredPage:
    """At most `limit` records from `start` (partition, offset) on, of a topic or of one partition.

    Control records are left out. Raises ApiError if the topic or partition does not exist, or a
    batch cannot be decoded.
    """
    if partition is None:
        selected = topic_of(cluster, topic).partitions[start[0] :]
    else:
        selected = [partition_of(cluster, topic, partition)]
    found: list[StoredRecord] = []
    for part in selected:
        first = start[1] if part.index == start[0] else 0
        for record in _records(part, max(first, part.log_start_offset)):
            if len(found) == limit:
                return StoredPage(found, (part.index, record.offset))
            found.append(record)
    return StoredPage(found, None)


def record_count(cluster: Cluster, topic: str) -> int:
    """The number of records in a topic, without control records; 0 if there is no such topic."""
    partitions = cluster.topics[topic].partitions if topic in cluster.topics else ()
    return sum(header.count for part in partitions for header, _ in _data_batches(part))


def _records(partition: Partition, first: int) -> Iterator[StoredRecord]:
    for header, batch in _data_batches(partition):
        if header.next_offset <= first:
            continue
        for record in _opened(partition, header, batch):
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


def _opened(partition: Partition, header: BatchHeader, batch: memoryview) -> list[Record]:
    try:
        return list(iter_records(header, batch))
    except RecordsError as error:  # a leader that looks at headers only has taken it
        where = f"{partition.topic.name}-{partition.index}, offset {header.base_offset}"
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE, f"the batch of {where} cannot be read: {error}"
        ) from None


def _data_batches(partition: Partition) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The batches without control batches."""
    for batch in partition.log.batches():
        header = BatchHeader(batch)
        if not header.is_control:
            yield header, batch


class TopicWatch:
    """Calls `changed` for changes of a topic, which need not exist yet, that may have `n` records.

    The difference of a log's offsets is a cheap upper bound of its records.
    """

    def __init__(self, cluster: Cluster, topic: str, n: int, changed: Callable[[], None]) -> None:
        self._cluster = cluster
        self._name = topic
        self._n = n
        self._changed = changed
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
        offsets = sum(part.log_end_offset - part.log_start_offset for part in self._watched)
        if offsets >= self._n:
            self._changed()

    def _created(self, topic: Topic) -> None:
        if topic.name != self._name:
            return
        self._watched = list(topic.partitions)
        for partition in self._watched:
            partition.watch(self)
            self.partition_changed(partition)
