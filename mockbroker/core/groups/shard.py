"""The groups and offsets of one partition of `__consumer_offsets`, on the broker that leads it.

The runner of a group's type passes a request to its state machine and carries out the effects:
answers to requests, records in the partition, deadlines in the cluster's timers. Every change is in
the log before it is answered; `loader` rebuilds a shard from the log alone. Groups of all types are
in one table, so an id is that of one group. Records are written with acks=1: below the partition's
min.insync.replicas they are in the log as well, and count, but they are answered only once there
are enough replicas again.

Slots in events are callables here: they take the result and finish the request. They may be called
once more when the request is given up; the first call counts.

Source: GroupCoordinatorShard, CoordinatorPartitionWriter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mockbroker.core.coordinator.shard import CoordinatorShard, ShardCoordinator
from mockbroker.core.groups import records as group_records
from mockbroker.core.groups.classic_groups import ClassicGroups
from mockbroker.core.groups.consumer.shard import ConsumerGroups
from mockbroker.core.groups.emitters import emit_committed, emit_offsets_removed
from mockbroker.core.groups.events import (
    HeartbeatResult,
    Join,
    Leave,
    LeaveResult,
    LeftMember,
    Loaded,
    Sync,
    SyncResult,
    Tick,
)
from mockbroker.core.groups.loader import load
from mockbroker.core.groups.offsets import OffsetAndMetadata, OffsetStore
from mockbroker.core.groups.records import KeyValue
from mockbroker.core.groups.runner import answer
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import Record, build_batch

if TYPE_CHECKING:
    from mockbroker.core.groups.classic import ClassicGroupSettings
    from mockbroker.core.groups.consumer.topics import TopicSource
    from mockbroker.core.groups.events import Result
    from mockbroker.core.groups.group import Group
    from mockbroker.core.groups.runner import GroupRunner
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.timing.domain_timers import ClockDomains

NONE = ErrorCode.NONE
TOMBSTONES_PER_BATCH_MAX = 1000  # so that no batch comes near max.message.bytes


class GroupShardCoordinator(ShardCoordinator, Protocol):
    """The group coordinator that a shard belongs to (see `GroupCoordinator`)."""

    @property
    def settings(self) -> ClassicGroupSettings: ...
    @property
    def topics(self) -> TopicSource: ...
    @property
    def times(self) -> ClockDomains: ...


class GroupShard(CoordinatorShard[GroupShardCoordinator]):
    """One partition's groups. `loading` is set while its log is read: nothing is answered then."""

    __slots__ = (
        "_on_changed",
        "_runners",
        "_times",
        "changed",
        "classic",
        "consumers",
        "groups",
        "offsets",
    )

    acks = 1
    timeout_config = "offsets.commit.timeout.ms"

    def __init__(self, coordinator: GroupShardCoordinator, partition: Partition) -> None:
        super().__init__(coordinator, partition)
        self._times = coordinator.times
        self.groups: dict[str, Group] = {}
        self.classic = ClassicGroups(self)
        self.consumers = ConsumerGroups(self)
        self._runners: dict[str, GroupRunner[Any]] = {
            each.group_type: each for each in (self.classic, self.consumers)
        }
        self.offsets = OffsetStore(self.mark_changed)
        # Whether a group or an offset has changed since the last expiration check.
        self.changed = False
        self._on_changed: Callable[[], None] | None = None

    # -------------------------------------------------------------------------- the table of groups

    def runner(self, group: Group) -> GroupRunner[Any]:
        """Who runs groups of this one's type."""
        return self._runners[group.group_type]

    def by_type(self) -> list[Group]:
        """All groups: the types one after another, each in the order in which its groups came."""
        return sorted(self.groups.values(), key=_type)

    def put_group(self, group: Group) -> None:
        """Put a group into the table. One of another type that has its id gives up its place."""
        known = self.groups.get(group.group_id)
        if known is not None and known.group_type != group.group_type:
            self.forget_group(group.group_id)
        self.groups[group.group_id] = group

    def forget_group(self, group_id: str) -> None:
        """Take the group out of memory, with its timer."""
        self.groups.pop(group_id, None)
        self._timers.forget(group_id)

    # ------------------------------------------------------ members that speak the classic protocol

    def join(self, group_id: str, join: Join) -> None:
        """JoinGroup. A group comes into being with its first member that has no id yet."""
        group = self.groups.get(group_id)
        if group is None:
            self.classic.begin(group_id, join)
        else:
            self.runner(group).join(group, join)

    def sync(self, group_id: str, sync: Sync) -> None:
        """SyncGroup."""
        group = self.groups.get(group_id)
        if group is None:
            answer(sync.callback, SyncResult(error=ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            self.runner(group).sync(group, sync)

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Heartbeat: the answer, to be given when what was written before is replicated."""
        group = self.groups.get(group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return self.runner(group).heartbeat(group, member_id, instance_id, generation)

    def leave(self, group_id: str, leave: Leave) -> None:
        """LeaveGroup."""
        group = self.groups.get(group_id)
        if group is None:
            unknown = ErrorCode.UNKNOWN_MEMBER_ID
            left = tuple(LeftMember(m.member_id, m.instance_id, unknown) for m in leave.members)
            answer(leave.callback, LeaveResult(NONE, left))
        else:
            self.runner(group).leave(group, leave)

    def answer(self, callback: object, result: Result) -> None:
        """Give a result to whoever waits: an error at once, others when all that is written by now
        is replicated. Who has sent a Heartbeat waits otherwise.
        """
        if result.error or self.is_replicated or isinstance(result, HeartbeatResult):
            answer(callback, result)
            return

        def tell(error: ErrorCode) -> None:
            answer(callback, type(result)(error=error) if error else result)

        self.when_replicated(tell)

    # ------------------------------------------------------------------------------------- offsets

    def check_commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        *,
        unknown_group: ErrorCode,
        transactional: bool = False,
        version: int = 9,
    ) -> ErrorCode:
        """Whether offsets may be committed. Without a generation a group comes into being.

        `unknown_group` answers a commit that names a generation of a group that is not there.
        `version` is OffsetCommit's: members of consumer groups have to know v9. What is let pass
        is of a group that is in the table by now: ask its `check_partition` for each partition.
        """
        now_ms = self.now_ms(group_id)
        group = self.groups.get(group_id)
        if group is None:
            if generation >= 0:
                return unknown_group
            group = self.classic.create_simple_group(group_id, now_ms)
        error = group.check_commit(
            member_id, instance_id, generation, now_ms, transactional=transactional, version=version
        )
        self.rearm(group)
        return error

    def commit(
        self,
        group_id: str,
        commits: Sequence[tuple[str, int, OffsetAndMetadata]],
        request_seq: int = 0,
    ) -> ErrorCode:
        """Write commits, already checked, and let them be in force: (topic, partition, offset).

        `request_seq` is the number that the request has in the journal.
        """
        if not commits:
            return NONE
        now_ms = self._runtime.now_ms()
        records = [
            group_records.offset_commit(group_id, topic, partition, value)
            for topic, partition, value in commits
        ]
        error, record_offset = self._append_at(now_ms, records)
        if error is NONE:
            store = self.offsets
            for topic, partition, value in commits:
                value.record_offset = record_offset
                record_offset += 1
                store.commit(group_id, topic, partition, value)
            emit_committed(
                self._runtime,
                now_ms,
                self.coordinator.broker_id,
                group_id,
                commits,
                request_seq,
                transactional=False,
            )
        return error

    def delete_offsets(
        self, group_id: str, partitions: Iterable[tuple[str, int]]
    ) -> ErrorCode | dict[tuple[str, int], ErrorCode]:
        """OffsetDelete: an error for the whole request, or one for each (topic, partition)."""
        group = self.groups.get(group_id)
        refused = ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.check_offset_delete()
        if group is None or refused is not NONE:
            return refused
        outcome: dict[tuple[str, int], ErrorCode] = {}
        doomed: list[tuple[str, int]] = []
        for key in partitions:
            topic, partition = key
            if group.is_subscribed(topic):
                outcome[key] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                continue
            outcome[key] = NONE
            if self.offsets.get(group_id, topic, partition) or self.offsets.has_pending(
                group_id, topic, partition
            ):
                doomed.append(key)
        error = self.remove_offsets(group_id, doomed, "delete_offsets")
        return outcome if error is NONE else error

    def remove_offsets(
        self, group_id: str, keys: Iterable[tuple[str, int]], reason: str
    ) -> ErrorCode:
        """Write tombstones for offsets of a group and forget them; `reason` as `OffsetRemoved`."""
        doomed = [(group_id, topic, partition) for topic, partition in keys]
        return self._write_offset_tombstones(doomed, reason)

    def topic_deleted(self, topic: str) -> None:
        """Drop every group's offsets of a topic that is gone."""
        keys = self.offsets.keys_of_topic(topic)
        self._write_offset_tombstones([(group, topic, p) for group, p in keys], "topic_deleted")

    def _write_offset_tombstones(
        self, keys: Sequence[tuple[str, str, int]], reason: str
    ) -> ErrorCode:
        """Write tombstones for (group, topic, partition) keys and forget what they stood for."""
        for start in range(0, len(keys), TOMBSTONES_PER_BATCH_MAX):
            some = keys[start : start + TOMBSTONES_PER_BATCH_MAX]
            error, _ = self.append([group_records.offset_tombstone(*key) for key in some])
            if error is not NONE:
                return error
            for key in some:
                self.offsets.remove(*key)
            emit_offsets_removed(self._runtime, self.coordinator.broker_id, some, reason)
        return NONE

    # ----------------------------------------------------------------------------- whole groups

    def delete_group(self, group_id: str) -> ErrorCode:
        """DeleteGroups: an Empty group goes, with all its offsets."""
        group = self.groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        refused = group.check_delete()
        return refused if refused is not NONE else self.delete_empty_group(group)

    def delete_empty_group(self, group: Group) -> ErrorCode:
        """Write the tombstones of an Empty group and its offsets, and forget both."""
        error = self._write_group_tombstones(group)
        if error is NONE:
            self.runner(group).deleted(group)
            self.forget_group(group.group_id)
        return error

    def _write_group_tombstones(self, group: Group) -> ErrorCode:
        """Write the tombstones of a group behind those of its offsets, which thereby are gone."""
        group_id = group.group_id
        keys = self.offsets.keys_of_group(group_id)
        while len(keys) > TOMBSTONES_PER_BATCH_MAX:
            some, keys = keys[:TOMBSTONES_PER_BATCH_MAX], keys[TOMBSTONES_PER_BATCH_MAX:]
            error = self.remove_offsets(group_id, some, "group_deleted")
            if error is not NONE:
                return error
        records: list[KeyValue] = [group_records.offset_tombstone(group_id, *key) for key in keys]
        records += group.tombstone_records()
        error, _ = self.append(records)
        if error is NONE:
            for key in keys:
                self.offsets.remove(group_id, *key)
            doomed = [(group_id, *key) for key in keys]
            emit_offsets_removed(self._runtime, self.coordinator.broker_id, doomed, "group_deleted")
        return error

    # -------------------------------------------------------------------------------------- time

    def now_ms(self, group_id: str) -> int:
        """The time that a group lives by (see `clock_domains`)."""
        return self._times.of_group(group_id).now_ms()

    def rearm(self, group: Group) -> None:
        """Have the cluster's timers call when the group is due, unless they will earlier anyway."""
        group_id = group.group_id
        times = self._times.of_group(group_id)
        self._timers.arm(times, group_id, group.deadline_ms(), self._on_timer)

    def move_timer(self, group_id: str) -> None:
        """Set a group's timer again, because the group lives by another time from now on."""
        group = self.groups.get(group_id)
        if group is not None:
            self._timers.forget(group_id)
            self.rearm(group)

    def _on_timer(self, group_id: str) -> None:
        group = self.groups[group_id]
        self.runner(group).run(group, Tick())

    # -------------------------------------------------------------------------- loading, unloading

    def read(self) -> None:
        load(self, self._times.groups.now_ms())

    def on_loaded(self, on_changed: Callable[[], None] | None = None) -> None:
        """Sessions start to run.

        `on_changed` is called when something has changed, once until `touched` is reset.
        """
        self.changed = False
        self._on_changed = on_changed
        self.mark_changed()
        for group in self.by_type():
            self.runner(group).run(group, Loaded())

    def on_unloaded(self) -> None:
        for group in self.by_type():
            self.runner(group).unload(group)
            self.forget_group(group.group_id)

    def mark_changed(self) -> None:
        """A group or an offset has changed, so that others may be due to expire."""
        if not self.changed:
            self.changed = True
            if self._on_changed is not None:
                self._on_changed()

    # ------------------------------------------------------------------------------------- writing

    def append(self, records: Iterable[KeyValue]) -> tuple[ErrorCode, int]:
        """Write records as one batch; returns the error a client is to see, and the base offset."""
        return self._append_at(self._runtime.now_ms(), records)

    def _append_at(self, now_ms: int, records: Iterable[KeyValue]) -> tuple[ErrorCode, int]:
        batch = build_batch(
            [Record(timestamp=now_ms, key=key, value=value) for key, value in records],
            base_sequence=0,  # as Kafka's coordinators have it, though without a producer id
        )
        return self.write(batch, now_ms)


def _type(group: Group) -> str:
    return group.group_type
