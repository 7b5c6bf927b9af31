"""The image at the beginning of a journal: the one at its end, without what the entries changed.

An event that names the state before it gives that state back. Values that it does not name are
unknown before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from mockbroker.core import events
from mockbroker.core.journal.entries import AppendEntry, Entry, EventEntry
from mockbroker.core.metadata.topic import INTERNAL_TOPICS
from mockbroker.pipeline.past.image import (
    OpenTransaction,
    PastCluster,
    PastGroup,
    PastPartition,
    PastTopic,
)

# The generation of a classic group, and the epoch of another one, with its first member. An Empty
# group did not exist before that.
_FIRST_GENERATION, _FIRST_EPOCH = 1, 2
_EMPTY = "Empty"


def undone(image: PastCluster, entries: Sequence[Entry]) -> PastCluster:
    """The image before the first of the entries, from the one behind the last."""
    undo = _Undo(image.copy())
    for entry in reversed(entries):
        if isinstance(entry, AppendEntry):
            undo.append(entry)
        elif isinstance(entry, EventEntry):
            undo.event(entry.event)
    for key, partition in undo.image.partitions.items():
        if partition.lagging:  # no entry has the time since when
            undo.image.partitions[key] = replace(partition, lagging=())
    if entries:
        undo.image.at_ms, undo.image.real_ns = entries[0].virtual_ms, entries[0].real_ns
    return undo.image


class _Undo:
    def __init__(self, image: PastCluster) -> None:
        self.image = image
        self._on_event: dict[type[events.Event], Callable[[Any], None]] = {
            events.BrokerChanged: self._broker,
            events.ControllerChanged: self._controller,
            events.NetworkChanged: self._network,
            events.TopicsChanged: self._topics,
            events.ConfigsChanged: self._configs,
            events.LeaderChanged: self._leader,
            events.IsrChanged: self._isr,
            events.ReplicasChanged: self._replicas,
            events.WatermarkMoved: self._watermark,
            events.LogTruncated: self._truncated,
            events.RecordsRemoved: self._removed,
            events.MarkerWritten: self._marker,
            events.TransactionMoved: self._transaction,
            events.GroupMoved: self._group,
            events.OffsetCommitted: self._offset,
            events.OffsetRemoved: self._offset,
        }

    def event(self, event: events.Event) -> None:
        handle = self._on_event.get(type(event))
        if handle is not None:
            handle(event)

    def _broker(self, event: events.BrokerChanged) -> None:
        known = self.image.brokers.get(event.node_id)
        if known is not None:
            self.image.brokers[event.node_id] = replace(
                known, state=None, fenced=None, registered=None, broker_epoch=None
            )

    def _controller(self, event: events.ControllerChanged) -> None:
        self.image.controller_id = event.former_node_id

    def _network(self, event: events.NetworkChanged) -> None:  # noqa: ARG002
        # A test's network is whole before it is cut.
        self.image.cut, self.image.delays = frozenset(), {}

    def _topics(self, event: events.TopicsChanged) -> None:
        image = self.image
        for made in event.created:
            image.topics.pop(made.topic, None)
            for index in range(len(made.assignment)):
                image.partitions.pop((made.topic, index), None)
        for gone in event.deleted:
            image.topics[gone.topic] = PastTopic(gone.topic, gone.topic_id, dict(gone.configs))
            for index, replicas in enumerate(gone.assignment):
                image.partitions[gone.topic, index] = PastPartition(
                    gone.topic, index, replicas=replicas
                )

    def _configs(self, event: events.ConfigsChanged) -> None:
        values = [(each.name, each.former) for each in event.configs]
        self.image.set_configs(event.resource_type, event.resource_name, values)

    def _change(self, topic: str, index: int, **fields: Any) -> None:
        known = self.image.partitions.get((topic, index))
        if known is None:
            return  # of a deleted topic that the image does not have
        if topic in INTERNAL_TOPICS:
            fields |= {"high_watermark": None, "log_end_offset": None}
        self.image.partitions[topic, index] = replace(known, **fields)

    def _leader(self, event: events.LeaderChanged) -> None:
        self._change(
            event.topic,
            event.partition,
            leader_id=event.former_leader_id,
            leader_epoch=event.leader_epoch - 1,  # a change of the ISR has an event of its own
        )

    def _isr(self, event: events.IsrChanged) -> None:
        self._change(
            event.topic,
            event.partition,
            isr=event.former,
            high_watermark=event.high_watermark,
            log_end_offset=event.log_end_offset,
        )

    def _replicas(self, event: events.ReplicasChanged) -> None:
        self._change(event.topic, event.partition, replicas=event.former)

    def append(self, entry: AppendEntry) -> None:
        known = self.image.partitions.get((entry.topic, entry.partition))
        if known is None:
            return
        first = entry.first_offset
        replicated = entry.high_watermark == entry.last_offset + 1
        opened = known.open
        if entry.transactional:
            # The batch may be the first of its transaction, or an earlier one is found next.
            opened = tuple(each for each in opened if each.producer_id != entry.producer_id)
            before = [each for each in known.open if each.producer_id == entry.producer_id]
            began = before[0].first_offset if before else None
            if began is None or began < first:
                started = OpenTransaction(entry.producer_id, entry.producer_epoch, began)
                opened = (*opened, started) if before else opened
        self._change(
            entry.topic,
            entry.partition,
            log_end_offset=first,
            high_watermark=first if replicated else entry.high_watermark,
            open=opened,
        )

    def _watermark(self, event: events.WatermarkMoved) -> None:
        known = self.image.partitions.get((event.topic, event.partition))
        if known is not None and known.leader_id == event.node_id:
            self._change(
                event.topic,
                event.partition,
                high_watermark=event.former,
                log_end_offset=event.log_end_offset,
            )

    def _truncated(self, event: events.LogTruncated) -> None:
        known = self.image.partitions.get((event.topic, event.partition))
        if known is not None and known.leader_id == event.node_id:
            self._change(event.topic, event.partition, log_end_offset=event.former_end_offset)

    def _removed(self, event: events.RecordsRemoved) -> None:
        if event.reason in events.START_REMOVALS:
            self._change(event.topic, event.partition, log_start_offset=event.first_offset)
        elif event.reason in events.LOSSES:
            end = event.last_offset + 1
            self._change(event.topic, event.partition, log_end_offset=end, high_watermark=None)

    def _marker(self, event: events.MarkerWritten) -> None:
        known = self.image.partitions.get((event.topic, event.partition))
        if known is None:
            return
        mark = known.high_watermark
        began = OpenTransaction(event.producer_id, event.producer_epoch, None)
        self._change(
            event.topic,
            event.partition,
            open=(*known.open, began),
            log_end_offset=event.offset,
            high_watermark=None if mark is None else min(mark, event.offset),
        )

    def _transaction(self, event: events.TransactionMoved) -> None:
        known = self.image.transactions.get(event.transactional_id)
        if event.former == _EMPTY and event.producer_epoch == 0:
            self.image.transactions.pop(event.transactional_id, None)
        elif known is not None:
            self.image.transactions[event.transactional_id] = replace(
                known,
                state=event.former,
                coordinator=event.node_id,
                start_ms=None,
                producer_epoch=None,
            )

    def _group(self, event: events.GroupMoved) -> None:
        groups = self.image.groups
        first = _FIRST_GENERATION if event.protocol == "classic" else _FIRST_EPOCH
        if event.former == _EMPTY and event.generation <= first:
            groups.pop(event.group, None)
            return
        known = groups.get(event.group) or PastGroup(
            event.group, event.protocol, None, event.node_id, None, None, None
        )
        groups[event.group] = replace(
            known,
            state=event.former,
            coordinator=event.node_id,
            generation=None,
            members={} if event.former == _EMPTY else None,
        )

    def _offset(self, event: events.OffsetCommitted | events.OffsetRemoved) -> None:
        offsets = self.image.offsets.get(event.group)
        if offsets is not None:
            offsets.pop((event.topic, event.partition), None)
