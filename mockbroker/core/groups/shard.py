"""The groups and offsets of one partition of `__consumer_offsets`, on the broker that leads it.

What clients ask of a group arrives here, is put to its machine, and what that wants done is done:
answers go to whoever waits, records into the partition, deadlines into the cluster's timers. Every
change is in the log before it is answered; `loader` rebuilds a shard from the log alone. Records
are written with acks=1: below the partition's min.insync.replicas they are in the log as well, and
count, but nobody is told so before there are enough replicas again.

Slots in events are callables here: they take the result and finish the request. They may be called
once more when the request is given up; the first call counts.

Source: GroupCoordinatorShard, CoordinatorPartitionWriter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from mockbroker.core.coordinator.shard import CoordinatorShard
from mockbroker.core.groups import records as group_records
from mockbroker.core.groups.classic import ClassicGroup
from mockbroker.core.groups.consumer.shard import ConsumerGroups
from mockbroker.core.groups.events import (
    NO_MEMBER_ID,
    Delete,
    Effect,
    Event,
    Heartbeat,
    HeartbeatResult,
    Join,
    JoinResult,
    Leave,
    LeaveResult,
    LeftMember,
    Loaded,
    Persist,
    Persisted,
    Reply,
    Sync,
    SyncResult,
    Tick,
    Unload,
)
from mockbroker.core.groups.loader import load
from mockbroker.core.groups.offsets import OffsetAndMetadata, OffsetStore
from mockbroker.core.groups.records import KeyValue
from mockbroker.core.groups.states import Ask, Step
from mockbroker.core.groups.subscriptions import is_subscribed
from mockbroker.core.groups.told import tell_classic
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import Record, build_batch

if TYPE_CHECKING:
    from mockbroker.core.groups.consumer.events import Result
    from mockbroker.core.groups.coordinator import GroupCoordinator
    from mockbroker.core.partition import Partition

NONE = ErrorCode.NONE
TOMBSTONES_PER_BATCH_MAX = 1000  # so that no batch comes near max.message.bytes


class GroupShard(CoordinatorShard["GroupCoordinator"]):
    """One partition's groups. `loading` is set while its log is read: nothing is answered then."""

    __slots__ = (
        "_on_touched",
        "_times",
        "consumers",
        "forced",
        "groups",
        "offsets",
        "settings",
        "touched",
    )

    acks = 1
    timeout_config = "offsets.commit.timeout.ms"

    def __init__(self, coordinator: GroupCoordinator, partition: Partition) -> None:
        super().__init__(coordinator, partition)
        self._times = self._cluster.time_scopes
        self.settings = coordinator.settings
        self.groups: dict[str, ClassicGroup] = {}  # an id is either here or in `consumers`
        self.consumers = ConsumerGroups(self, self._cluster)
        self.offsets = OffsetStore(self.touch)
        # Whether something has changed since somebody last looked for what has expired.
        self.touched = False
        self._on_touched: Callable[[], None] | None = None
        # What puts an assignment that was set from outside in the place of the leader's.
        self.forced: dict[str, Callable[[Sync], Sync]] = {}

    # ---------------------------------------------------------------------------------- membership

    def join(self, group_id: str, join: Join) -> None:
        """JoinGroup. A group comes into being with its first member that has no id yet."""
        if self.consumers.join(group_id, join):
            return
        now_ms = self.now_ms(group_id)
        group = self.groups.get(group_id)
        if group is not None:
            self._run(group, join, now_ms)
        elif join.member_id != NO_MEMBER_ID:
            error = JoinResult(error=ErrorCode.UNKNOWN_MEMBER_ID, member_id=join.member_id)
            _answer(join.slot, error)
        else:
            group = self.groups[group_id] = ClassicGroup(group_id, self.settings, now_ms)
            record = group_records.new_group(group_id, now_ms)
            error_code, _ = self.append((record,))
            if error_code is not NONE:
                del self.groups[group_id]
                _answer(join.slot, JoinResult(error=error_code, member_id=NO_MEMBER_ID))
                return
            self._run(group, join, now_ms)
        self._wait_no_longer(join.slot, JoinResult)

    def sync(self, group_id: str, sync: Sync) -> None:
        """SyncGroup."""
        group = self.groups.get(group_id)
        if group is None and self.consumers.tell(group_id, sync):
            return
        if sync.assignments and group_id in self.forced:
            sync = self.forced[group_id](sync)
        if group is None:
            _answer(sync.slot, SyncResult(error=ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            self._run(group, sync, self.now_ms(group_id))
            self._wait_no_longer(sync.slot, SyncResult)

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Heartbeat: the answer, to be given when what was written before is replicated."""
        group = self.groups.get(group_id)
        if group is None:
            results: list[HeartbeatResult] = []
            beat = Heartbeat(
                slot=results.append,
                member_id=member_id,
                instance_id=instance_id,
                generation=generation,
            )
            if self.consumers.tell(group_id, beat):
                return results[0].error
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = group.heartbeat(member_id, instance_id, generation, self.now_ms(group_id))
        self._rearm(group)
        return error

    def leave(self, group_id: str, leave: Leave) -> None:
        """LeaveGroup."""
        group = self.groups.get(group_id)
        if group is None and self.consumers.tell(group_id, leave):
            return
        if group is None:
            unknown = ErrorCode.UNKNOWN_MEMBER_ID
            left = tuple(LeftMember(m.member_id, m.instance_id, unknown) for m in leave.members)
            _answer(leave.slot, LeaveResult(NONE, left))
        else:
            results: list[LeaveResult] = []
            self._run(group, Leave(results.append, leave.members), self.now_ms(group_id))
            self.answer(leave.slot, results[0])

    def answer(self, slot: object, result: Result) -> None:
        """Give a result to whoever waits: an error at once, others when all that is written by now
        is replicated. Who has sent a Heartbeat waits otherwise.
        """
        if result.error or self.is_replicated or isinstance(result, HeartbeatResult):
            _answer(slot, result)
            return

        def tell(error: ErrorCode) -> None:
            _answer(slot, type(result)(error=error) if error else result)

        self.when_replicated(tell)

    def _wait_no_longer(self, slot: object, kind: type[JoinResult | SyncResult]) -> None:
        """Refuse a request that waits for other members, once what was written before it has not
        been replicated in time.
        """
        if not self.is_replicated:
            self.when_replicated(lambda error: _answer(slot, kind(error=error)) if error else None)

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
        `version` is OffsetCommit's: members of consumer groups have to know v9. Of these, ask
        `consumers.check_partition` for each partition as well.
        """
        consumer = self.consumers.groups.get(group_id)
        if consumer is not None:
            return consumer.check_commit(
                member_id, instance_id, generation, transactional=transactional, version=version
            )
        now_ms = self.now_ms(group_id)
        group = self.groups.get(group_id)
        if group is None:
            if generation >= 0:
                return unknown_group
            group = self.simple_group(group_id, now_ms)
        error = group.check_commit(
            member_id, instance_id, generation, now_ms, transactional=transactional
        )
        self._rearm(group)
        return error

    def commit(
        self, group_id: str, commits: Sequence[tuple[str, int, OffsetAndMetadata]]
    ) -> ErrorCode:
        """Write commits, already checked, and let them be in force: (topic, partition, offset)."""
        if not commits:
            return NONE
        records = [
            group_records.offset_commit(group_id, topic, partition, value)
            for topic, partition, value in commits
        ]
        error, record_offset = self.append(records)
        if error is NONE:
            store = self.offsets
            for topic, partition, value in commits:
                value.record_offset = record_offset
                record_offset += 1
                store.commit(group_id, topic, partition, value)
        return error

    def delete_offsets(
        self, group_id: str, partitions: Iterable[tuple[str, int]]
    ) -> ErrorCode | dict[tuple[str, int], ErrorCode]:
        """OffsetDelete: an error for the whole request, or one for each (topic, partition)."""
        group = self.groups.get(group_id)
        reads = self.consumers.reads(group_id)
        if reads is None:
            verdict = group.answer(Ask.DELETE_OFFSETS) if group else ErrorCode.GROUP_ID_NOT_FOUND
            if group is None or verdict is ErrorCode.GROUP_ID_NOT_FOUND:
                return ErrorCode.GROUP_ID_NOT_FOUND
            if verdict is Step.UNSUBSCRIBED and not group.is_consumer():
                return ErrorCode.NON_EMPTY_GROUP
            reads = partial(is_subscribed, group)
        outcome: dict[tuple[str, int], ErrorCode] = {}
        doomed: list[tuple[str, int]] = []
        for key in partitions:
            topic, partition = key
            if reads(topic):
                outcome[key] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                continue
            outcome[key] = NONE
            if self.offsets.get(group_id, topic, partition) or self.offsets.has_pending(
                group_id, topic, partition
            ):
                doomed.append(key)
        error = self.drop_offsets(group_id, doomed)
        return outcome if error is NONE else error

    def drop_offsets(self, group_id: str, keys: Iterable[tuple[str, int]]) -> ErrorCode:
        """Write tombstones for offsets of a group and forget them."""
        return self._bury_offsets([(group_id, topic, partition) for topic, partition in keys])

    def topic_deleted(self, topic: str) -> None:
        """Drop every group's offsets of a topic that is gone."""
        self._bury_offsets([(group, topic, p) for group, p in self.offsets.keys_of_topic(topic)])

    def _bury_offsets(self, keys: Sequence[tuple[str, str, int]]) -> ErrorCode:
        """Write tombstones for (group, topic, partition) keys and forget what they stood for."""
        for start in range(0, len(keys), TOMBSTONES_PER_BATCH_MAX):
            some = keys[start : start + TOMBSTONES_PER_BATCH_MAX]
            error, _ = self.append([group_records.offset_tombstone(*key) for key in some])
            if error is not NONE:
                return error
            for key in some:
                self.offsets.remove(*key)
        return NONE

    # ----------------------------------------------------------------------------- whole groups

    def simple_group(self, group_id: str, now_ms: int) -> ClassicGroup:
        """A group that only keeps offsets: no record of its own, its commits imply it."""
        group = self.groups[group_id] = ClassicGroup(group_id, self.settings, now_ms)
        self.touch()
        return group

    def delete_group(self, group_id: str) -> ErrorCode:
        """DeleteGroups: an Empty group goes, with all its offsets."""
        group = self.groups.get(group_id)
        if group is None:
            return self.consumers.delete(group_id)
        verdict = group.answer(Ask.DELETE_GROUP)
        assert isinstance(verdict, ErrorCode)
        return verdict if verdict is not NONE else self.bury_group(group)

    def bury_group(self, group: ClassicGroup) -> ErrorCode:
        """Write the tombstones of an Empty group and its offsets, and forget both."""
        group_id = group.group_id
        error = self.append_end(group_id, (group_records.group_tombstone(group_id),))
        if error is NONE:
            self._run(group, Delete(), self.now_ms(group_id))
            self.forget_group(group_id)
        return error

    def append_end(self, group_id: str, tombstones: Iterable[KeyValue]) -> ErrorCode:
        """Write the tombstones of a group behind those of its offsets, which thereby are gone."""
        keys = self.offsets.keys_of_group(group_id)
        while len(keys) > TOMBSTONES_PER_BATCH_MAX:
            some, keys = keys[:TOMBSTONES_PER_BATCH_MAX], keys[TOMBSTONES_PER_BATCH_MAX:]
            error = self.drop_offsets(group_id, some)
            if error is not NONE:
                return error
        records: list[KeyValue] = [group_records.offset_tombstone(group_id, *key) for key in keys]
        records += tombstones
        error, _ = self.append(records)
        if error is NONE:
            for key in keys:
                self.offsets.remove(group_id, *key)
        return error

    def adopt(self, group: ClassicGroup, rebalance: str | None) -> None:
        """Take in what was a consumer group and is a classic one in the log by now."""
        self.groups[group.group_id] = group
        self._run(group, Loaded(rebalance), self.now_ms(group.group_id))

    def displace(self, group: ClassicGroup) -> None:
        """Let go of what is a consumer group by now; whoever waits is to join that one."""
        self._run(group, Unload(ErrorCode.REBALANCE_IN_PROGRESS), self.now_ms(group.group_id))
        self.forget_group(group.group_id)

    def forget_group(self, group_id: str) -> None:
        """Take the group out of memory, with its timer."""
        self.groups.pop(group_id, None)
        self._timers.forget(group_id)

    # -------------------------------------------------------------------------------------- time

    def now_ms(self, group_id: str) -> int:
        """The time that a group lives by (see `time_scopes`)."""
        return self._times.of_group(group_id).now_ms()

    def rearm_anew(self, group_id: str) -> None:
        """Set a group's timer again, because the group lives by another time from now on."""
        self.consumers.rearm_anew(group_id)
        group = self.groups.get(group_id)
        if group is not None:
            self._timers.forget(group_id)
            self._rearm(group)

    # ---------------------------------------------------------------------------- coming and going

    def read(self) -> None:
        load(self, self._times.groups.now_ms())

    def start(self, on_touched: Callable[[], None] | None = None) -> None:
        """Sessions start to run.

        `on_touched` is called when something has changed, once until `touched` is reset.
        """
        self.touched = False
        self._on_touched = on_touched
        self.touch()
        for group in list(self.groups.values()):
            self._run(group, Loaded(), self.now_ms(group.group_id))
        self.consumers.start()

    def let_go(self) -> None:
        for group in list(self.groups.values()):
            self._run(group, Unload(), self.now_ms(group.group_id))
            self.forget_group(group.group_id)
        self.consumers.unload()

    def touch(self) -> None:
        """A group or an offset has changed, so that others may be due to expire."""
        if not self.touched:
            self.touched = True
            if self._on_touched is not None:
                self._on_touched()

    # ----------------------------------------------------------------------------------- the inside

    def append(self, records: Iterable[KeyValue]) -> tuple[ErrorCode, int]:
        """Write records as one batch; returns the error a client is to see, and the base offset."""
        now_ms = self._cluster.now_ms()
        batch = build_batch(
            [Record(timestamp=now_ms, key=key, value=value) for key, value in records],
            base_sequence=0,  # as Kafka's coordinators have it, though without a producer id
        )
        return self.write(batch)

    def _run(self, group: ClassicGroup, event: Event, now_ms: int) -> None:
        self.touch()
        self._perform(group, group.handle(event, now_ms))
        self._rearm(group)

    def _perform(self, group: ClassicGroup, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Reply):
                _answer(effect.slot, effect.result)
            elif isinstance(effect, Persist):
                record = group_records.group_metadata(group.group_id, effect.image)
                failed, _ = self.append((record,))
                self.when_replicated(partial(self._persisted, group, effect), failed)
            else:
                tell_classic(self._cluster, group, effect)

    def _persisted(self, group: ClassicGroup, persist: Persist, error: ErrorCode) -> None:
        self._run(group, Persisted(persist, error), self.now_ms(group.group_id))

    def _rearm(self, group: ClassicGroup) -> None:
        """Have the cluster's timers call when the group is due, unless they will earlier anyway."""
        group_id = group.group_id
        times = self._times.of_group(group_id)
        self._timers.arm(times, group_id, group.deadline_ms(), self._on_timer)

    def _on_timer(self, group_id: str) -> None:
        self._run(self.groups[group_id], Tick(), self.now_ms(group_id))


def _answer(slot: object, result: Result) -> None:
    cast("Callable[[Result], None]", slot)(result)
