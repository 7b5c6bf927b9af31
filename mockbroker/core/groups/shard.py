"""The groups and offsets of one partition of `__consumer_offsets`, on the broker that leads it.

The runner of a group's type passes a request to the group's state machine and carries out the
effects: answers to requests, records in the partition, timers. A change is in the log before it is
answered, so that `loader` can rebuild the shard from the log. Groups of all types are in one table,
because a group id belongs to one group. Records are written with acks=1: with an ISR below
min.insync.replicas they are appended and take effect, but the answers wait for the ISR.

A callback in an event may be called again after a timeout; only the first call has an effect.

Source: GroupCoordinatorShard, CoordinatorPartitionWriter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from mockbroker.core.coordinator.shard import CoordinatorShard, ShardCoordinator
from mockbroker.core.groups import records as group_records
from mockbroker.core.groups.classic_groups import ClassicGroups
from mockbroker.core.groups.consumer.shard import ConsumerGroups
from mockbroker.core.groups.emitters import emit_committed, emit_loaded, emit_offsets_removed
from mockbroker.core.groups.events import (
    HeartbeatResult,
    Join,
    Leave,
    Loaded,
    Sync,
    SyncResult,
    Tick,
)
from mockbroker.core.groups.group import GROUPS_PER_TURN, SHARE, STREAMS
from mockbroker.core.groups.loader import replay_stored
from mockbroker.core.groups.offsets import OffsetAndMetadata, OffsetStore
from mockbroker.core.groups.records import KeyValue
from mockbroker.core.groups.runner import answer, unknown_members
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import BatchHeader, Record, build_batch

if TYPE_CHECKING:
    from mockbroker.core.groups.classic import ClassicGroupSettings
    from mockbroker.core.groups.events import Result
    from mockbroker.core.groups.group import Group
    from mockbroker.core.groups.modern.topics import TopicSource
    from mockbroker.core.groups.runner import GroupRunner
    from mockbroker.core.groups.share.shard import ShareGroups
    from mockbroker.core.groups.streams.shard import StreamsGroups
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.share.operations import StateSender
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
    def clock_domains(self) -> ClockDomains: ...
    @property
    def share_persister(self) -> StateSender: ...


class GroupShard(CoordinatorShard[GroupShardCoordinator]):
    """The groups of one partition."""

    __slots__ = (
        "_clock_domains",
        "_on_changed",
        "_runners",
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
        self._clock_domains = coordinator.clock_domains
        self.groups: dict[str, Group] = {}
        self.classic = ClassicGroups(self)
        self.consumers = ConsumerGroups(self)
        # By group type; the others are imported at their first use (`_NEW_RUNNERS`).
        self._runners: dict[str, GroupRunner[Any]] = {
            each.group_type: each for each in (self.classic, self.consumers)
        }
        self.offsets = OffsetStore(self.mark_changed)
        # Whether a group or an offset has changed since the last expiration check, or the loading.
        self.changed = False
        self._on_changed: Callable[[], None] | None = None

    # -------------------------------------------------------------------------- the table of groups

    def runner(self, group: Group) -> GroupRunner[Any]:
        """The runner of the group's type."""
        return self.runner_of(group.group_type)

    def runner_of(self, group_type: str) -> GroupRunner[Any]:
        """The runner of the groups of one type."""
        runner = self._runners.get(group_type)
        if runner is None:
            runner = self._runners[group_type] = _NEW_RUNNERS[group_type](self)
        return runner

    @property
    def shares(self) -> ShareGroups:
        """The runner of share groups."""
        return cast("ShareGroups", self.runner_of(SHARE))

    @property
    def streams(self) -> StreamsGroups:
        return cast("StreamsGroups", self.runner_of(STREAMS))

    def by_type(self) -> list[Group]:
        """All groups, sorted by type, then the oldest first."""
        return sorted(self.groups.values(), key=_type)

    def put_group(self, group: Group) -> None:
        """Put a group into the table, in place of a group of another type with the same id."""
        known = self.groups.get(group.group_id)
        if known is not None and known.group_type != group.group_type:
            self.remove_group(group.group_id)
        self.groups[group.group_id] = group

    def remove_group(self, group_id: str) -> None:
        """Remove the group from the table, and cancel its timer."""
        self.groups.pop(group_id, None)
        self._timers.cancel(group_id)

    # ----------------------------------------------------------- requests of the classic protocol

    def join(self, group_id: str, join: Join) -> None:
        """JoinGroup. A member without an id creates the group if it does not exist."""
        group = self.groups.get(group_id)
        if group is None:
            self.classic.create_group(group_id, join)
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
        """Heartbeat; returns the error code of the response."""
        group = self.groups.get(group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return self.runner(group).heartbeat(group, member_id, instance_id, generation)

    def leave(self, group_id: str, leave: Leave) -> None:
        """LeaveGroup."""
        group = self.groups.get(group_id)
        if group is None:
            answer(leave.callback, unknown_members(leave))
        else:
            self.runner(group).leave(group, leave)

    def answer(self, callback: object, result: Result) -> None:
        """Answer a request: with an error now, else once the records written so far are replicated.

        The handler of Heartbeat waits by itself.
        """
        if result.error or self.is_replicated or isinstance(result, HeartbeatResult):
            answer(callback, result)
            return

        def send(error: ErrorCode) -> None:
            answer(callback, type(result)(error=error) if error else result)

        self.when_replicated(send)

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
        """Whether offsets may be committed. A commit without a generation creates the group.

        `unknown_group` is the error for a commit with a generation if the group does not exist.
        `version` is that of OffsetCommit; members of consumer groups need v9. If the result is
        NONE, the group exists and its `check_partition` checks each partition.
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
        """Write checked commits, (topic, partition, offset), and apply them.

        `request_seq` is the number of the request in the journal.
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
        to_remove: list[tuple[str, int]] = []
        for key in partitions:
            topic, partition = key
            if group.is_subscribed(topic):
                outcome[key] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                continue
            outcome[key] = NONE
            if self.offsets.get(group_id, topic, partition) or self.offsets.has_pending(
                group_id, topic, partition
            ):
                to_remove.append(key)
        error = self.remove_offsets(group_id, to_remove, "delete_offsets")
        return outcome if error is NONE else error

    def remove_offsets(
        self, group_id: str, keys: Iterable[tuple[str, int]], reason: str
    ) -> ErrorCode:
        """Write tombstones for offsets of a group and remove the offsets.

        `reason` is one of `OffsetRemoved`.
        """
        to_remove = [(group_id, topic, partition) for topic, partition in keys]
        return self._write_offset_tombstones(to_remove, reason)

    def topics_deleted(self, topics: Iterable[str]) -> None:
        """Remove each group's offsets and share partitions of deleted topics."""
        self._write_offset_tombstones(self.offsets.keys_of_topics(topics), "topic_deleted")
        if SHARE in self._runners:
            self.shares.topics_deleted()

    def _write_offset_tombstones(
        self, keys: Sequence[tuple[str, str, int]], reason: str
    ) -> ErrorCode:
        """Write tombstones for (group, topic, partition) keys and remove their offsets."""
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
        """DeleteGroups: delete an Empty group with its offsets."""
        group = self.groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        refused = group.check_delete()
        return refused if refused is not NONE else self.delete_empty_group(group)

    def delete_empty_group(self, group: Group) -> ErrorCode:
        """Write the tombstones of an Empty group and its offsets, and remove both."""
        error = self._write_group_tombstones(group)
        if error is NONE:
            self.runner(group).on_deleted(group)
            self.remove_group(group.group_id)
        return error

    def _write_group_tombstones(self, group: Group) -> ErrorCode:
        """Write the tombstones of a group's offsets, then those of the group."""
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
            to_remove = [(group_id, *key) for key in keys]
            emit_offsets_removed(
                self._runtime, self.coordinator.broker_id, to_remove, "group_deleted"
            )
        return error

    # -------------------------------------------------------------------------------------- time

    def now_ms(self, group_id: str) -> int:
        """The time of a group's clock domain, in ms since the epoch."""
        return self._clock_domains.of_group(group_id).now_ms()

    def rearm(self, group: Group) -> None:
        """Set the timer to the group's deadline, unless it is set to an earlier time."""
        group_id = group.group_id
        timers = self._clock_domains.of_group(group_id)
        self._timers.arm(timers, group_id, group.deadline_ms(), self._on_timer)

    def move_timer(self, group_id: str) -> None:
        """Set a group's timer again, because the group has another clock domain now."""
        group = self.groups.get(group_id)
        if group is not None:
            self._timers.cancel(group_id)
            self.rearm(group)

    def _on_timer(self, group_id: str) -> None:
        group = self.groups[group_id]
        self.runner(group).run(group, Tick())

    # -------------------------------------------------------------------------- loading, unloading

    def replay(self, header: BatchHeader, record: Record) -> None:
        replay_stored(self, header, record, self._clock_domains.groups.now_ms())

    def on_loaded(self, on_changed: Callable[[], None] | None = None) -> Iterator[None]:
        """Start the sessions, in turns.

        `on_changed` is called after a change, once until `changed` is reset.
        """
        for number, group in enumerate(self.by_type()):
            if number and number % GROUPS_PER_TURN == 0:
                yield
                if self.unloaded:
                    return
            emit_loaded(self._runtime, self.coordinator.broker_id, group)
            self.runner(group).run(group, Loaded())
        self._on_changed = on_changed
        self.mark_changed()

    def on_unloaded(self) -> None:
        for group in self.by_type():
            self.runner(group).unload(group)
            self.remove_group(group.group_id)

    def mark_changed(self) -> None:
        """Include the shard in the next expiration check, because it has changed."""
        if self._on_changed is not None and not self.changed:
            self.changed = True
            self._on_changed()

    # ------------------------------------------------------------------------------------- writing

    def append(self, records: Iterable[KeyValue]) -> tuple[ErrorCode, int]:
        """Write records as one batch; returns the error for the client, and the base offset."""
        return self._append_at(self._runtime.now_ms(), records)

    def _append_at(self, now_ms: int, records: Iterable[KeyValue]) -> tuple[ErrorCode, int]:
        batch = build_batch(
            [Record(timestamp=now_ms, key=key, value=value) for key, value in records],
            base_sequence=0,  # as in Kafka, although the batch has no producer id
        )
        return self.write(batch, now_ms)


def _share_groups(shard: GroupShard) -> ShareGroups:
    from mockbroker.core.groups.share.shard import ShareGroups

    return ShareGroups(shard)


def _streams(shard: GroupShard) -> GroupRunner[Any]:
    from mockbroker.core.groups.streams.shard import StreamsGroups

    return StreamsGroups(shard)


# Makes the runner of a type of group whose machinery few clusters need.
_NEW_RUNNERS: dict[str, Callable[[GroupShard], GroupRunner[Any]]] = {
    SHARE: _share_groups,
    STREAMS: _streams,
}


def _type(group: Group) -> str:
    return group.group_type
