"""The states of the share partitions of one partition of `__share_group_state`, on its leader.

A request about one share partition is checked and becomes at most one record, which is applied and
written. The answer waits until the record is replicated (see `coordinator.shard`). `read` replays
the log.

Source: ShareCoordinatorShard, ShareCoordinatorOffsetsManager.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mockbroker.core.coordinator.shard import APPEND_ERRORS, CoordinatorShard
from mockbroker.core.share.emitters import emit_state
from mockbroker.core.share.operations import DELETE, INITIALIZE, READ, READ_SUMMARY, WRITE
from mockbroker.core.share.records import (
    NO_EPOCH,
    UNKNOWN_COUNT,
    SharePartitionKey,
    ShareRecord,
    ShareSnapshot,
    ShareState,
    ShareUpdate,
    encode,
    parse,
)
from mockbroker.core.share.state_batches import NO_START_OFFSET, StateBatch, combine
from mockbroker.core.timing.turns import in_parts
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.exceptions import DecodeError, UnknownVersionError
from mockbroker_protocol.messages import initialize_share_group_state as initializing
from mockbroker_protocol.messages import read_share_group_state as reading
from mockbroker_protocol.messages import read_share_group_state_summary as summing
from mockbroker_protocol.messages import write_share_group_state as writing
from mockbroker_protocol.records import BatchHeader, Record, build_batch

if TYPE_CHECKING:
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.share.coordinator import ShareCoordinator
    from mockbroker.core.share.operations import Result, Row, StateOperation

NONE = ErrorCode.NONE
ROWS_PER_TURN = 500
# The operations that begin or end a state, and their names in the journal.
_EMITTED: Mapping[object, str] = {INITIALIZE: "initialized", DELETE: "deleted"}
_NEVER_SEEN = -(2**31)
NEGATIVE_PARTITION = "The partition id cannot be a negative number."
# The operations that need a state, and their names in the error.
_NEEDS_STATE: Mapping[object, str] = {WRITE: "Write", READ: "Read"}
_CHECKS_LEADER_EPOCH = (WRITE, READ)
_CHECKS_STATE_EPOCH = (INITIALIZE, WRITE)


class Entry(NamedTuple):
    """A share partition: its state, and what fences requests.

    The epochs are the highest ones seen, which an initialization of the state does not lower.
    `updates` are the updates since the last snapshot that the limit of updates caused;
    `snapshot_offset` is the offset of the last snapshot, None before one.
    """

    state: ShareState
    leader_epoch: int
    state_epoch: int
    updates: int
    snapshot_offset: int | None


class ShareShard(CoordinatorShard["ShareCoordinator"]):
    """One partition's share partitions."""

    __slots__ = ("_tombstone_offset", "entries")

    acks = 1  # the high watermark does not move while too few replicas are in sync
    timeout_config = "share.coordinator.write.timeout.ms"

    def __init__(self, coordinator: ShareCoordinator, partition: Partition) -> None:
        super().__init__(coordinator, partition)
        self.entries: dict[SharePartitionKey, Entry] = {}
        self._tombstone_offset = 0

    # ---------------------------------------------------------------------- loading and unloading

    def replay(self, header: BatchHeader, record: Record) -> None:
        if header.is_control:
            return
        try:
            parsed = parse(record)
        except (DecodeError, UnknownVersionError):
            self.unreadable += 1
            return
        if parsed is not None:
            self._apply(parsed, record.offset)

    def on_loaded(self) -> Iterator[None]:
        """Nothing to do: the coordinator has the timers."""
        return iter(())

    def on_unloaded(self) -> None:
        self.entries.clear()

    def _apply(self, record: ShareRecord, offset: int) -> None:
        key = record.key
        entry = self.entries.get(key)
        if isinstance(record, ShareUpdate):
            update = record.state
            if entry is None:
                entry = Entry(update, update.leader_epoch, _NEVER_SEEN, 1, None)
            else:
                entry = entry._replace(
                    state=entry.state.merged(update),
                    leader_epoch=max(entry.leader_epoch, update.leader_epoch),
                    updates=entry.updates + 1,
                )
            self.entries[key] = entry
        elif record.state is None:
            self.entries.pop(key, None)
            self._tombstone_offset = offset
        else:
            state = record.state
            if entry is None:
                entry = Entry(state, state.leader_epoch, state.state_epoch, 0, offset)
            else:
                full = entry.updates >= self.updates_max
                entry = Entry(
                    state,
                    max(entry.leader_epoch, state.leader_epoch),
                    max(entry.state_epoch, state.state_epoch),
                    0 if full else entry.updates,
                    offset,
                )
            self.entries[key] = entry

    # ------------------------------------------------------------------------------------ requests

    def handle(
        self,
        operation: StateOperation[Any, Any],
        key: SharePartitionKey,
        row: Row,
        then: Callable[[Result], None],
    ) -> None:
        """Check one share partition of a request, and carry out the operation."""
        refusal = self._why_refused(operation, key, row)
        if refusal is None:
            _OPERATIONS[operation](self, key, row, then)
        else:
            self._answer(operation, operation.failed(key.partition, *refusal), then)

    def _why_refused(
        self, operation: StateOperation[Any, Any], key: SharePartitionKey, row: Any
    ) -> tuple[ErrorCode, str] | None:
        """The error and its message, in the order of Kafka's checks."""
        entry = self.entries.get(key)
        if key.partition < 0:
            return ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION
        if entry is None and operation in _NEEDS_STATE:
            name = _NEEDS_STATE[operation]
            return (
                ErrorCode.INVALID_REQUEST,
                f"{name} operation on uninitialized share partition not allowed.",
            )
        error = NONE
        leader_epoch = row.leader_epoch if operation in _CHECKS_LEADER_EPOCH else NO_EPOCH
        state_epoch = row.state_epoch if operation in _CHECKS_STATE_EPOCH else NO_EPOCH
        if entry is not None and NO_EPOCH != leader_epoch < entry.leader_epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        elif entry is not None and NO_EPOCH != state_epoch < entry.state_epoch:
            error = ErrorCode.FENCED_STATE_EPOCH
        elif not self.coordinator.has_partition(key):
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return None if error is NONE else (error, error.message)

    def initialize(
        self,
        key: SharePartitionKey,
        row: initializing.PartitionData,
        then: Callable[[Result], None],
    ) -> None:
        """InitializeShareGroupState: begin the state anew, whatever it was."""
        entry = self.entries.get(key)
        now_ms = self._runtime.now_ms()
        count = UNKNOWN_COUNT if row.start_offset == NO_START_OFFSET else 0
        state = ShareState(
            0 if entry is None else entry.state.snapshot_epoch + 1,
            row.start_offset,
            count,
            state_epoch=row.state_epoch,
            created_ms=now_ms,
            written_ms=now_ms,
        )
        self._store(INITIALIZE, ShareSnapshot(key, state), INITIALIZE.result(key.partition), then)

    def write_state(
        self, key: SharePartitionKey, row: writing.PartitionData, then: Callable[[Result], None]
    ) -> None:
        """WriteShareGroupState: merge batches into the state."""
        entry = self.entries[key]
        batches = [
            StateBatch(
                batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state
            )
            for batch in row.state_batches
        ]
        # A write does not change the leader epoch: the read of a new leader has done so.
        record = self._next_record(
            key,
            entry,
            ShareState(
                entry.state.snapshot_epoch,
                row.start_offset,
                row.delivery_complete_count,
                combine(batches, row.start_offset),
                entry.state.leader_epoch,
            ),
            batches,
        )
        self._store(WRITE, record, WRITE.result(key.partition), then)

    def read_state(
        self, key: SharePartitionKey, row: reading.PartitionData, then: Callable[[Result], None]
    ) -> None:
        """ReadShareGroupState: the whole state, for a new leader, whose epoch is written."""
        entry = self.entries[key]
        state = entry.state
        result = reading.PartitionResult(
            key.partition,
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=[
                reading.StateBatch(
                    batch.first_offset,
                    batch.last_offset,
                    batch.delivery_state,
                    batch.delivery_count,
                )
                for batch in state.batches
            ],
        )
        if row.leader_epoch in (NO_EPOCH, entry.leader_epoch):
            self._answer(READ, result, then)
            return
        update = state._replace(leader_epoch=row.leader_epoch, batches=())
        self._store(READ, self._next_record(key, entry, update, ()), result, then)

    def read_summary(
        self, key: SharePartitionKey, _row: summing.PartitionData, then: Callable[[Result], None]
    ) -> None:
        """ReadShareGroupStateSummary: the state without its batches."""
        entry = self.entries.get(key)
        result = summing.PartitionResult(key.partition, start_offset=NO_START_OFFSET)
        if entry is not None:
            state = entry.state
            result.state_epoch = state.state_epoch
            result.leader_epoch = state.leader_epoch
            result.start_offset = state.start_offset
            result.delivery_complete_count = state.delivery_complete_count
        self._answer(READ_SUMMARY, result, then)

    def delete(self, key: SharePartitionKey, _row: Row, then: Callable[[Result], None]) -> None:
        """DeleteShareGroupState: write a tombstone, if there is a state."""
        if key in self.entries:
            self._store(DELETE, ShareSnapshot(key, None), DELETE.result(key.partition), then)
        else:
            self._answer(DELETE, DELETE.result(key.partition), then)

    # ------------------------------------------------------------------------------------- upkeep

    @property
    def updates_max(self) -> int:
        """The number of updates between two snapshots of a share partition."""
        return self._configs.get_int("share.coordinator.snapshot.update.records.per.snapshot")

    def snapshot_cold(self, age_ms: int) -> Iterator[None]:
        """Write snapshots of the share partitions whose last one is `age_ms` old, in turns.

        If each has such a snapshot already, none of them is in use, and new ones would not help.
        """
        states = (entry.state for entry in self.entries.values())
        if all(state.created_ms != state.written_ms for state in states):
            return
        now_ms = self._runtime.now_ms()
        for keys in in_parts(list(self.entries), ROWS_PER_TURN):
            if self.unloaded:
                return
            states_now = [(key, self.entries[key].state) for key in keys if key in self.entries]
            self._append(
                [
                    ShareSnapshot(
                        key,
                        state._replace(snapshot_epoch=state.snapshot_epoch + 1, written_ms=now_ms),
                    )
                    for key, state in states_now
                    if now_ms - state.written_ms >= age_ms
                ]
            )
            yield

    def topics_deleted(self, topic_ids: Collection[bytes]) -> Iterator[None]:
        """Write tombstones for the share partitions of deleted topics, in turns."""
        deleted = [key for key in self.entries if key.topic_id in topic_ids]
        for keys in in_parts(deleted, ROWS_PER_TURN):
            if self.unloaded:
                return
            self._append([ShareSnapshot(key, None) for key in keys if key in self.entries])
            yield

    @property
    def last_redundant_offset(self) -> int:
        """The offset below which every record is redundant: a later snapshot has its state."""
        offsets = [entry.snapshot_offset for entry in self.entries.values()]
        return min((each for each in offsets if each is not None), default=self._tombstone_offset)

    def prune(self) -> None:
        """Delete the redundant records, once all is replicated."""
        offset = self.last_redundant_offset
        self.when_replicated(lambda error: self._prune_to(offset, error))

    def _prune_to(self, offset: int, error: ErrorCode) -> None:
        if error is NONE:
            self.partition.delete_records(offset)

    # ------------------------------------------------------------------------------------- writing

    def _next_record(
        self,
        key: SharePartitionKey,
        entry: Entry,
        update: ShareState,
        batches: Sequence[StateBatch],
    ) -> ShareRecord:
        """The update, or after many of them a snapshot of the state with it.

        A snapshot combines the batches of the request, as they are, with those so far.
        """
        if entry.updates < self.updates_max:
            return ShareUpdate(key, update)
        now_ms = self._runtime.now_ms()
        state = entry.state.merged(update._replace(batches=tuple(batches)))
        return ShareSnapshot(
            key,
            state._replace(
                snapshot_epoch=state.snapshot_epoch + 1,
                leader_epoch=update.leader_epoch,
                created_ms=now_ms,
                written_ms=now_ms,
            ),
        )

    def _store(
        self,
        operation: StateOperation[Any, Any],
        record: ShareRecord,
        result: Result,
        then: Callable[[Result], None],
    ) -> None:
        error = self._append((record,))
        if error is NONE:
            if operation in _EMITTED:
                node_id, topic = self.coordinator.broker_id, self.coordinator.topic_of(record.key)
                emit_state(self._runtime, node_id, topic, record, _EMITTED[operation])
            self._answer(operation, result, then)
        else:
            code = APPEND_ERRORS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR)
            then(operation.unable(result.partition, code, error.message))

    def _append(self, records: Sequence[ShareRecord]) -> ErrorCode:
        """Apply and write records; after an error they are as if never applied.

        They are applied first, because the append may complete other requests, whose senders may
        send the next request at once.
        """
        if not records:
            return NONE
        now_ms = self._runtime.now_ms()
        former = {record.key: self.entries.get(record.key) for record in records}
        tombstone_offset = self._tombstone_offset
        for offset, record in enumerate(records, self.partition.log.end_offset):
            self._apply(record, offset)
        codec = self._configs.get_int("share.coordinator.state.topic.compression.codec")
        batch = build_batch([encode(record, now_ms) for record in records], codec=codec)
        error, _ = self.append_batch(batch, now_ms)
        if error is not NONE:
            self._tombstone_offset = tombstone_offset
            for key, entry in former.items():
                if entry is None:
                    self.entries.pop(key, None)
                else:
                    self.entries[key] = entry
        return error

    def _answer(
        self, operation: StateOperation[Any, Any], result: Result, then: Callable[[Result], None]
    ) -> None:
        """Answer once all records written so far are replicated.

        A refusal waits too: it depends on states that may not be replicated.
        """
        if self.is_replicated:
            then(result)
            return

        def replicated(error: ErrorCode) -> None:
            if error is NONE:
                then(result)
                return
            reason = error.message
            if error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                timeout_ms = self._configs.get_int(self.timeout_config)
                name = f"CoordinatorWriteEvent(name={operation.event})"
                reason = f"{name} timed out after {timeout_ms}ms"
            then(operation.unable(result.partition, error, reason))

        self.when_replicated(replicated)


_OPERATIONS: Mapping[object, Callable[[ShareShard, SharePartitionKey, Any, Any], None]] = {
    INITIALIZE: ShareShard.initialize,
    READ: ShareShard.read_state,
    WRITE: ShareShard.write_state,
    DELETE: ShareShard.delete,
    READ_SUMMARY: ShareShard.read_summary,
}
