"""Applies entries to an image, each in constant time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from mockbroker.core import events
from mockbroker.core.brokers.broker_life import PAUSED, RUNNING, STOPPED
from mockbroker.core.journal.entries import AppendEntry, Entry, EventEntry, ResponseEntry
from mockbroker.core.metadata.topic import INTERNAL_TOPICS
from mockbroker.core.replication.network import links_between
from mockbroker.pipeline.past.image import (
    OpenTransaction,
    PastBroker,
    PastCluster,
    PastGroup,
    PastPartition,
    PastTopic,
    PastTransaction,
)
from mockbroker.pipeline.past.members import MEMBER_APIS, Members

DEAD = "Dead"
_PROCESS_STATES = frozenset((RUNNING, PAUSED, STOPPED))


class Fold:
    """An image, and the entries applied to it. `members` opens the answers to members of groups."""

    def __init__(self, image: PastCluster, members: Members) -> None:
        self.image = image
        self._members = members
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
            events.FollowerFetched: self._follower,
            events.MarkerWritten: self._marker,
            events.TransactionMoved: self._transaction,
            events.GroupMoved: self._group,
            events.GroupLoaded: self._loaded,
            events.OffsetRemoved: self._offset_removed,
        }

    def apply(self, entries: Iterable[Entry]) -> None:
        """Apply the next entries, oldest first."""
        image = self.image
        for entry in entries:
            image.at_ms, image.real_ns = entry.virtual_ms, entry.real_ns
            if isinstance(entry, AppendEntry):
                self._append(entry)
            elif isinstance(entry, EventEntry):
                event = entry.event
                if isinstance(event, events.OffsetCommitted):
                    self._committed(event)
                else:
                    handle = self._on_event.get(type(event))
                    if handle is not None:
                        handle(event)
            elif isinstance(entry, ResponseEntry) and entry.api_key in MEMBER_APIS:
                self._members.answered(image, entry)

    # -- brokers and network -----------------------------------------------------------------------

    def _broker(self, event: events.BrokerChanged) -> None:
        brokers = self.image.brokers
        broker = brokers.get(event.node_id)
        if broker is None:
            broker = PastBroker(event.node_id, None, None, None, None, None, {})
        broker = replace(broker, broker_epoch=event.broker_epoch)
        if event.change in _PROCESS_STATES:
            broker = replace(broker, state=event.change)
        elif event.change in ("fenced", "unfenced"):
            broker = replace(broker, fenced=event.change == "fenced", registered=True)
        elif event.change == "unregistered":
            broker = replace(broker, registered=False)
        brokers[event.node_id] = broker

    def _controller(self, event: events.ControllerChanged) -> None:
        self.image.controller_id = event.node_id

    def _network(self, event: events.NetworkChanged) -> None:
        image = self.image
        links = links_between(event.from_nodes, event.to_nodes, both_ways=event.both_ways)
        match event.change:
            case "cut":
                image.cut |= links
            case "healed":
                image.cut -= links
                image.delays = {a: by for a, by in image.delays.items() if a not in links}
            case "delayed":
                kept = {a: by for a, by in image.delays.items() if a not in links}
                image.delays = kept | dict.fromkeys(links if event.delay_ms else (), event.delay_ms)

    # -- topics and partitions ---------------------------------------------------------------------

    def _topics(self, event: events.TopicsChanged) -> None:
        image = self.image
        for gone in event.deleted:
            if image.topics.pop(gone.topic, None) is not None:
                for index in range(len(gone.assignment)):
                    image.partitions.pop((gone.topic, index), None)
        for made in event.created:
            image.topics[made.topic] = PastTopic(made.topic, made.topic_id, dict(made.configs))
            known = None if made.topic in INTERNAL_TOPICS else 0
            for index, replicas in enumerate(made.assignment):
                image.partitions[made.topic, index] = PastPartition(
                    made.topic,
                    index,
                    leader_id=replicas[0] if replicas else -1,
                    leader_epoch=0,
                    isr=replicas,
                    replicas=replicas,
                    log_start_offset=0,
                    high_watermark=known,
                    log_end_offset=known,
                )

    def _configs(self, event: events.ConfigsChanged) -> None:
        values = [(each.name, each.value) for each in event.configs]
        self.image.set_configs(event.resource_type, event.resource_name, values)

    def _change(self, topic: str, index: int, **fields: Any) -> None:
        key = topic, index
        partition = self.image.partitions.get(key) or PastPartition(topic, index)
        if topic in INTERNAL_TOPICS:
            # The journal has no appends of the brokers' own.
            fields |= {"high_watermark": None, "log_end_offset": None}
        self.image.partitions[key] = replace(partition, **fields)

    def _known(self, topic: str, index: int) -> PastPartition:
        return self.image.partitions.get((topic, index)) or PastPartition(topic, index)

    def _leader(self, event: events.LeaderChanged) -> None:
        self._change(
            event.topic,
            event.partition,
            leader_id=event.leader_id,
            leader_epoch=event.leader_epoch,
            isr=event.isr,
            lagging=(),
        )

    def _isr(self, event: events.IsrChanged) -> None:
        self._change(
            event.topic,
            event.partition,
            isr=event.isr,
            high_watermark=event.high_watermark,
            log_end_offset=event.log_end_offset,
        )

    def _replicas(self, event: events.ReplicasChanged) -> None:
        self._change(event.topic, event.partition, replicas=event.replicas)

    def _append(self, entry: AppendEntry) -> None:
        key = entry.topic, entry.partition
        partition = self.image.partitions.get(key) or PastPartition(*key)
        opened = partition.open
        if entry.transactional and all(each.producer_id != entry.producer_id for each in opened):
            opened = (
                *opened,
                OpenTransaction(entry.producer_id, entry.producer_epoch, entry.first_offset),
            )
        self.image.partitions[key] = replace(
            partition,
            leader_id=entry.node_id,
            leader_epoch=entry.leader_epoch,
            log_end_offset=entry.last_offset + 1,
            high_watermark=entry.high_watermark,
            open=opened,
        )

    def _watermark(self, event: events.WatermarkMoved) -> None:
        if event.node_id == self._known(event.topic, event.partition).leader_id:
            self._change(
                event.topic,
                event.partition,
                high_watermark=event.high_watermark,
                log_end_offset=event.log_end_offset,
            )

    def _truncated(self, event: events.LogTruncated) -> None:
        known = self._known(event.topic, event.partition)
        if event.node_id == known.leader_id:
            self._change(event.topic, event.partition, log_end_offset=event.offset)
        else:
            self._set_lagging(known, event.node_id, event.offset)

    def _removed(self, event: events.RecordsRemoved) -> None:
        known = self._known(event.topic, event.partition)
        if event.reason in events.START_REMOVALS:
            self._change(event.topic, event.partition, log_start_offset=event.last_offset + 1)
        elif event.reason in events.LOSSES:
            end = event.first_offset
            mark = known.high_watermark
            self._change(
                event.topic,
                event.partition,
                log_end_offset=end,
                high_watermark=None if mark is None else min(mark, end),
            )

    def _follower(self, event: events.FollowerFetched) -> None:
        known = self._known(event.topic, event.partition)
        self._set_lagging(known, event.node_id, event.offset)

    def _set_lagging(self, known: PastPartition, node_id: int, offset: int) -> None:
        others = tuple(each for each in known.lagging if each[0] != node_id)
        if offset != known.log_end_offset:
            others = (*others, (node_id, offset))
        if others != known.lagging:
            self._change(known.topic, known.index, lagging=others)

    # -- transactions ------------------------------------------------------------------------------

    def _marker(self, event: events.MarkerWritten) -> None:
        image = self.image
        known = self._known(event.topic, event.partition)
        # Replicated at once, unless the high watermark was behind already: then it moves later.
        in_sync = known.high_watermark == known.log_end_offset
        self._change(
            event.topic,
            event.partition,
            open=tuple(each for each in known.open if each.producer_id != event.producer_id),
            log_end_offset=event.offset + 1,
            high_watermark=event.offset + 1 if in_sync else known.high_watermark,
        )
        if event.topic in INTERNAL_TOPICS:
            pending = image.pending.pop(event.producer_id, {})
            if event.committed:
                for (group, topic, index), offset in pending.items():
                    image.offsets.setdefault(group, {})[topic, index] = offset

    def _transaction(self, event: events.TransactionMoved) -> None:
        image = self.image
        if event.state == DEAD:
            image.transactions.pop(event.transactional_id, None)
            return
        image.transactions[event.transactional_id] = PastTransaction(
            event.transactional_id,
            event.state,
            event.node_id,
            event.producer_id,
            event.producer_epoch,
            event.timeout_ms,
            event.start_ms,
        )

    # -- groups ------------------------------------------------------------------------------------

    def _group(self, event: events.GroupMoved) -> None:
        groups = self.image.groups
        known = groups.get(event.group)
        if event.state == DEAD:
            # Deleted, or unloaded: then another coordinator loads it.
            if known is not None:
                self.image.unloaded[event.group] = known
                del groups[event.group]
            return
        members = {} if known is None else known.members
        if event.members == 0:
            members = {}
        elif members is None:
            # All members of a classic group join again; the others go on unknown.
            again = event.protocol == "classic" and event.state == "PreparingRebalance"
            members = {} if again else None
        elif event.protocol == "classic" and event.state == "Stable":
            # The others did not join this generation. Some of its members have yet to be answered.
            members = {
                member_id: each
                for member_id, each in members.items()
                if each.generation >= event.generation - 1
            }
        elif event.protocol == "classic" and event.state == "PreparingRebalance":
            members = {
                member_id: each
                for member_id, each in members.items()
                if each.generation >= event.generation
            }
        groups[event.group] = PastGroup(
            event.group,
            event.protocol,
            event.state,
            event.node_id,
            event.generation,
            None if known is None else known.protocol,
            members,
        )

    def _loaded(self, event: events.GroupLoaded) -> None:
        groups = self.image.groups
        known = groups.get(event.group) or self.image.unloaded.pop(event.group, None)
        members = None if known is None else known.members
        groups[event.group] = PastGroup(
            event.group,
            event.protocol,
            event.state,
            event.node_id,
            event.generation,
            None if known is None else known.protocol,
            {} if event.members == 0 else members,
        )

    def _committed(self, event: events.OffsetCommitted) -> None:
        image = self.image
        if event.transactional:
            producer_id = self._members.producer_of(event.request_seq)
            pending = image.pending.setdefault(producer_id, {})
            pending[event.group, event.topic, event.partition] = event.offset
        else:
            offsets = image.offsets.setdefault(event.group, {})
            offsets[event.topic, event.partition] = event.offset

    def _offset_removed(self, event: events.OffsetRemoved) -> None:
        offsets = self.image.offsets.get(event.group)
        if offsets is not None:
            offsets.pop((event.topic, event.partition), None)
