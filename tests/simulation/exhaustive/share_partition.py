"""A share partition: three records, three members, the share coordinator and a clock (KIP-932).

Members fetch, and accept, release, reject or renew what they have. They leave. Writes to the share
coordinator wait, succeed or fail. Locks run out. The log loses its first record. Another leader
reads the state of the share coordinator and continues; writes of the former one are lost or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from mockbroker.core.errors import ApiError
from mockbroker.core.log.fetched_batches import FetchedBatches
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.runtime import Runtime
from mockbroker.core.share.acknowledgement import (
    AcknowledgementBatch,
    acknowledge,
    expire_locks,
    release_acquired,
)
from mockbroker.core.share.acquisition import AcquireRequest, acquire
from mockbroker.core.share.operations import READ, WRITE
from mockbroker.core.share.partition import SharePartition
from mockbroker.core.share.states import FINAL_STATES, AcquireMode, RecordState
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages import read_share_group_state as reading
from mockbroker_protocol.messages import write_share_group_state as writing
from mockbroker_protocol.records import Record, build_batch
from tests.simulation.exhaustive.world import Event, ExploredWorld, must

MEMBERS = ("a", "b", "c")
RECORDS = 3
LIMIT = 2
LOCK_MS = 10
TYPES = {"accept": 1, "release": 2, "reject": 3, "renew": 4}
_TOPIC_ID = bytes(16)


class Configs:
    """The configs of the group."""

    delivery_count_limit = LIMIT
    record_locks_max = 100
    lock_duration_ms = LOCK_MS
    may_renew = True
    auto_offset_reset = "earliest"


class Topic:
    """The topic of the partition."""

    name = "t"
    topic_id = _TOPIC_ID


class LeaderPartition:
    """The partition as its leader has it: three records, in one batch or in three."""

    topic = Topic()
    index = 0
    leader_id = 1
    deleted = False
    leader_epoch_start_offset = 0

    def __init__(self, *, one_batch: bool) -> None:
        self.leader_epoch = 0
        self.log = ReplicaLog()
        sizes = (RECORDS,) if one_batch else (1,) * RECORDS
        for size in sizes:
            records = [Record(offset, 0, None, b"") for offset in range(size)]
            self.log.append(memoryview(build_batch(records)), size - 1, 0, 0)
        self.high_watermark = self.log.end_offset

    @property
    def log_start_offset(self) -> int:
        return self.log.start_offset

    def check_leader_epoch(self, leader_epoch: int) -> int:
        return 0

    def unwatch(self, watcher: object) -> None:
        """Nobody watches."""


class Coordinator:
    """The share coordinator: the written states, and the writes that wait."""

    def __init__(self) -> None:
        self.start_offset = -1
        self.states: dict[int, tuple[int, int]] = {}
        self.waiting: list[Callable[[bool], None]] = []

    def send(self, operation: object, request: Any, then: Callable[[Any], None]) -> None:
        """A read is answered at once, a write waits."""
        if operation is WRITE:
            (topic,) = request.topics
            (data,) = topic.partitions
            self.waiting.append(partial(self._answer, data, then))
            return
        batches = [reading.StateBatch(at, at, *each) for at, each in sorted(self.states.items())]
        result = reading.PartitionResult(0, start_offset=self.start_offset, state_batches=batches)
        then(READ.response([(_TOPIC_ID, result)]))

    def _answer(
        self,
        data: writing.PartitionData,
        then: Callable[[writing.WriteShareGroupStateResponse], None],
        written: bool,
    ) -> None:
        if written:
            self.start_offset = max(self.start_offset, data.start_offset)
            for batch in data.state_batches:
                for at in range(batch.first_offset, batch.last_offset + 1):
                    self.states[at] = batch.delivery_state, batch.delivery_count
            self.states = {at: s for at, s in self.states.items() if at >= self.start_offset}
        error = 0 if written else int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        result = writing.PartitionResult(0, error)
        then(WRITE.response([(_TOPIC_ID, result)]))


class SharePartitionWorld(ExploredWorld):
    """The share partition, its members and its share coordinator.

    A copy is made by taking the events again, because a write that waits cannot be copied.
    """

    name: ClassVar[str] = "share-partition"
    beginnings: ClassVar[tuple[str, ...]] = (
        "three records in one batch",
        "three batches of one record",
        "whole batches are acquired",
    )
    node_id = 1
    runtime = Runtime(lambda: 0, seed=1)  # nobody listens to its events

    def __init__(self, beginning: str) -> None:
        _, three, whole = self.beginnings
        self.beginning = beginning
        self.mode = AcquireMode.BATCH_OPTIMIZED if beginning == whole else AcquireMode.RECORD_LIMIT
        self.taken: list[Event] = []
        self.clock_ms = 1_000
        self.coordinator = self.persister = Coordinator()
        self.partition = LeaderPartition(one_batch=beginning != three)
        self.accepted: set[int] = set()  # records of which a member knows that they are accepted
        self.start_seen = 0
        self.share = self._new_leader()

    @classmethod
    def begin(cls, beginning: str) -> SharePartitionWorld:
        return cls(beginning)

    def _new_leader(self) -> SharePartition:
        partition: Any = self.partition
        configs: Any = Configs()
        share = SharePartition(self, "g", _TOPIC_ID, partition, configs)
        errors: list[ApiError | None] = []
        share.initialize(errors.append)
        must(errors == [None], "a leader can continue from the share coordinator's state")
        return share

    # -- the environment of the share partition ----------------------------------------------------

    def now_ms(self) -> int:
        return self.clock_ms

    def set_lock_timer(self, share_partition: SharePartition, deadline_ms: int) -> None:
        """Locks run out by the event `expire`."""

    def fence(self, share_partition: SharePartition) -> None:
        share_partition.fence()

    # -- events ------------------------------------------------------------------------------------

    def take(self, event: Event) -> None:
        self.taken.append(event)
        super().take(event)

    def freeze(self) -> Any:
        return self.beginning, tuple(self.taken)

    @classmethod
    def copies(cls, frozen: Any) -> Callable[[], ExploredWorld]:
        beginning, events = frozen

        def again() -> ExploredWorld:
            world = cls.begin(beginning)
            for event in events:
                world.take(event)
            return world

        return again

    def events(self) -> Sequence[Event]:
        found: list[Event] = [("expire",), ("move_leader",)]
        if self.partition.log.start_offset == 0:
            found.append(("lose_first",))
        if self.coordinator.waiting:
            found += [("answer", True), ("answer", False)]
        for member in MEMBERS:
            found += [("fetch", member), ("leave", member)]
            found += [(kind, member) for kind in TYPES if self._owned(member)]
        return found

    def _owned(self, member: str) -> list[int]:
        return [at for at, state in self._states() if state.is_acquired_by(member)]

    def _states(self) -> list[tuple[int, Any]]:
        return [
            (at, batch.state_at(at))
            for batch in self.share.batches
            for at in range(batch.first_offset, batch.last_offset + 1)
        ]

    def on_fetch(self, member: str) -> None:
        """Acquire one record, or whole batches."""
        share, log = self.share, self.partition.log
        offset = share.next_fetch_offset()
        if offset < log.start_offset:
            share.log_start_moved(log.start_offset)
            return
        if offset >= log.end_offset:
            return
        _, size = log.read(offset, log.end_offset, 1 << 20, at_least_one=True)
        fetched: FetchedBatches = log.batches_read(offset, size)
        acquired = acquire(share, AcquireRequest(member, self.mode, 1, 1), offset, fetched)
        must(acquired.ranges, "a fetch from the next fetch offset acquires a record")
        for each in acquired.ranges:
            must(each.delivery_count <= LIMIT, "no record is delivered above the limit")
            offsets = set(range(each.first_offset, each.last_offset + 1))
            must(not offsets & self.accepted, "an accepted record is not delivered again")

    def _acknowledge(self, member: str, kind: str) -> None:
        offset = self._owned(member)[0]
        is_lost = offset < self.share.start_offset

        def then(error: ApiError | None) -> None:
            if error is None and kind == "accept" and not is_lost:
                self.accepted.add(offset)

        batch = AcknowledgementBatch(offset, offset, [TYPES[kind]])
        acknowledge(self.share, member, [batch], then)

    def on_accept(self, member: str) -> None:
        self._acknowledge(member, "accept")

    def on_release(self, member: str) -> None:
        self._acknowledge(member, "release")

    def on_reject(self, member: str) -> None:
        self._acknowledge(member, "reject")

    def on_renew(self, member: str) -> None:
        self._acknowledge(member, "renew")

    def on_leave(self, member: str) -> None:
        release_acquired(self.share, member, lambda _: None)

    def on_answer(self, written: bool) -> None:
        self.coordinator.waiting.pop(0)(written)

    def on_expire(self) -> None:
        """The time of the lock that began last is over, and so are all others."""
        self.clock_ms += LOCK_MS
        following = expire_locks(self.share)
        must(following is None, "all locks have ended")

    def on_lose_first(self) -> None:
        self.partition.log.move_start(1)

    def on_move_leader(self) -> None:
        """Writes that wait are lost."""
        self.coordinator.waiting.clear()
        self.share.fence()
        self.partition.leader_epoch += 1
        self.start_seen = 0
        self.share = self._new_leader()

    # -- invariants --------------------------------------------------------------------------------

    def check(self) -> None:
        share = self.share
        must(share.start_offset >= self.start_seen, "the start offset never goes back")
        self.start_seen = share.start_offset
        final = 0
        for at, state in self._states():
            acquired = state.state is RecordState.ACQUIRED
            must(acquired == bool(state.member_id), "an acquired record has one owner")
            must(not acquired or state.lock_deadline_ms > self.clock_ms, "its lock is not over")
            must(state.delivery_count <= LIMIT, "no record is delivered above the limit")
            final += at >= share.start_offset and state.state in FINAL_STATES
            if state.state is RecordState.ACKNOWLEDGED and not state.has_ongoing_transition:
                must(self._is_written(at), "an acknowledged record is written")
        if share.batches:
            must(share.delivery_complete_count == final, "final records are counted")
        for at in self.accepted:
            must(self._is_written(at), "the share coordinator has what was accepted")

    def _is_written(self, offset: int) -> bool:
        if offset < self.coordinator.start_offset:
            return True
        state, _ = self.coordinator.states.get(offset, (RecordState.AVAILABLE, 0))
        return state == RecordState.ACKNOWLEDGED

    def settle(self) -> None:
        """Members that accept all that they get come to the end of the log.

        The start offset may follow only with the next write, if the log lost the record before.
        """
        for _ in range(4 * RECORDS):
            while self.coordinator.waiting:
                self.on_answer(True)
            for member in MEMBERS:
                while self._owned(member):
                    self.on_accept(member)
                    self.on_answer(True)
            if self._is_finished():
                return
            self.on_fetch("a")
            self.check()
            if not self._owned("a"):
                self.on_expire()
        must(self._is_finished(), "members in peace come to the end of the log")

    def _is_finished(self) -> bool:
        final = all(state.state in FINAL_STATES for _, state in self._states())
        return final and self.share.next_fetch_offset() == RECORDS

    def key(self) -> object:
        share = self.share
        gap = share.read_gap
        return (
            self.beginning,
            self.partition.log.start_offset,
            share.start_offset,
            share.end_offset,
            share.next_fetch_offset(),
            None if gap is None else (gap.start_offset, gap.end_offset),
            tuple(
                (
                    batch.first_offset,
                    batch.last_offset,
                    batch.whole is None,
                    tuple(
                        (
                            state.state,
                            state.delivery_count,
                            state.member_id,
                            state.has_ongoing_transition,
                            state._former_member_id if state.has_ongoing_transition else "",
                            max(state.lock_deadline_ms - self.clock_ms, 0),
                            state.removed,
                        )
                        for at in range(batch.first_offset, batch.last_offset + 1)
                        for state in (batch.state_at(at),)
                    ),
                )
                for batch in share.batches
            ),
            self.coordinator.start_offset,
            tuple(sorted(self.coordinator.states.items())),
            # The writes that wait change the key by what they would write.
            tuple(repr(each.args[0]) for each in self.coordinator.waiting),  # type: ignore[attr-defined]
            tuple(sorted(self.accepted)),
        )
