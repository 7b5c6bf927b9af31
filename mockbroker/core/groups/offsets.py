"""Committed offsets of the groups of one partition of `__consumer_offsets`.

A *pending* offset was committed in a transaction that has not ended. A commit marker makes it a
committed offset unless a later record has one; an abort marker drops it. The store reflects the
log: a caller appends a record before it changes the store.

Source: Kafka's OffsetMetadataManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from mockbroker.core.ids import ZERO_UUID

INVALID_OFFSET = -1
NO_LEADER_EPOCH = -1
NO_TIMESTAMP = -1


class OffsetAndMetadata(msgspec.Struct, gc=False):
    """A committed offset: the offset of the record that the consumer reads next.

    `expire_timestamp_ms` is set if the request had a retention (OffsetCommit v2-v4).
    `record_offset` is the offset of the commit in `__consumer_offsets`. -1 is none in each field.
    """

    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    commit_timestamp_ms: int = NO_TIMESTAMP
    expire_timestamp_ms: int = NO_TIMESTAMP
    topic_id: bytes = ZERO_UUID
    record_offset: int = -1


Topics: TypeAlias = dict[str, dict[int, OffsetAndMetadata]]  # topic -> partition -> offset


def is_of_other_topic(committed: OffsetAndMetadata, topic_id: bytes) -> bool:
    """Whether the offset belongs to a deleted topic of the same name; an unknown id matches any."""
    return ZERO_UUID not in {committed.topic_id, topic_id} and committed.topic_id != topic_id


class OffsetStore:
    """The offsets, committed and pending, by group, topic and partition.

    `on_change` is called when one is set or removed.
    """

    __slots__ = ("_on_change", "_open", "_pending", "committed")

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._on_change = on_change
        self.committed: dict[str, Topics] = {}
        self._pending: dict[int, dict[str, Topics]] = {}  # by producer id
        self._open: dict[str, dict[int, None]] = {}  # group -> producer ids with pending offsets

    # ------------------------------------------------------------------------------------- reading

    def get(self, group_id: str, topic: str, partition: int) -> OffsetAndMetadata | None:
        """The committed offset, or None."""
        topics = self.committed.get(group_id)
        if topics is None:
            return None
        partitions = topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def of_group(self, group_id: str) -> Topics:
        """All committed offsets of a group. The caller must not change them."""
        return self.committed.get(group_id, {})

    def has_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has committed an offset for this partition."""
        for producer_id in self._open.get(group_id, ()):
            if partition in self._pending[producer_id].get(group_id, {}).get(topic, {}):
                return True
        return False

    def has_open_transaction(self, group_id: str) -> bool:
        return group_id in self._open

    def groups_of_producer(self, producer_id: int) -> list[str]:
        """The groups with pending offsets of a producer's transaction."""
        return list(self._pending.get(producer_id, ()))

    def keys_of_group(self, group_id: str) -> list[tuple[str, int]]:
        """Each topic and partition with an offset of the group, committed or pending, once."""
        keys: dict[tuple[str, int], None] = {}
        for topics in self._topics_of(group_id):
            for topic, partitions in topics.items():
                keys.update(dict.fromkeys((topic, partition) for partition in partitions))
        return list(keys)

    def keys_of_topics(self, names: Iterable[str]) -> list[tuple[str, str, int]]:
        """Each group, topic and partition with an offset in the topics, committed or pending, once.

        The time grows with the number of groups, not of topics.
        """
        wanted = frozenset(names)
        keys: dict[tuple[str, str, int], None] = {}
        for groups in (self.committed, *self._pending.values()):
            for group_id, topics in groups.items():
                for topic in sorted(topics.keys() & wanted):
                    keys.update(dict.fromkeys((group_id, topic, p) for p in topics[topic]))
        return list(keys)

    def _topics_of(self, group_id: str) -> Iterator[Topics]:
        yield self.committed.get(group_id, {})
        for producer_id in self._open.get(group_id, ()):
            yield self._pending[producer_id].get(group_id, {})

    # ------------------------------------------------------------------------------------- changing

    def commit(self, group_id: str, topic: str, partition: int, value: OffsetAndMetadata) -> None:
        """Apply a commit outside a transaction."""
        self._on_change()
        self.committed.setdefault(group_id, {}).setdefault(topic, {})[partition] = value

    def commit_pending(
        self, producer_id: int, group_id: str, topic: str, partition: int, value: OffsetAndMetadata
    ) -> None:
        """Apply a commit in a transaction of `producer_id`."""
        self._on_change()
        groups = self._pending.setdefault(producer_id, {})
        groups.setdefault(group_id, {}).setdefault(topic, {})[partition] = value
        self._open.setdefault(group_id, {})[producer_id] = None

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Apply a tombstone: remove the committed offset and the pending ones."""
        self._on_change()
        _discard(self.committed, group_id, topic, partition)
        for producer_id in list(self._open.get(group_id, ())):
            pending = self._pending[producer_id]
            _discard(pending, group_id, topic, partition)
            if group_id not in pending:
                self._close(group_id, producer_id)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply a marker: commit or drop the pending offsets of `producer_id`.

        An offset that a later record committed meanwhile stays.
        """
        self._on_change()
        pending = self._pending.pop(producer_id, {})
        for group_id, topics in pending.items():
            self._close(group_id, producer_id)
            if not committed:
                continue
            for topic, partitions in topics.items():
                for partition, value in partitions.items():
                    present = self.get(group_id, topic, partition)
                    if present is None or value.record_offset > present.record_offset:
                        self.commit(group_id, topic, partition, value)

    def _close(self, group_id: str, producer_id: int) -> None:
        still_open = self._open[group_id]
        del still_open[producer_id]
        if not still_open:
            del self._open[group_id]


def _discard(groups: dict[str, Topics], group_id: str, topic: str, partition: int) -> None:
    """Remove one entry, and the maps above it that become empty."""
    topics = groups.get(group_id)
    if topics is None:
        return
    partitions = topics.get(topic)
    if partitions is None or partitions.pop(partition, None) is None:
        return
    if not partitions:
        del topics[topic]
        if not topics:
            del groups[group_id]
