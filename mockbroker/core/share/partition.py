"""A share partition: one partition as one share group reads it, at the partition's leader.

Nouns: the *share-partition start offset* (SPSO) is the first offset that is not final; the
*share-partition end offset* (SPEO) is the last one that was ever acquired. Between them records are
*in flight*. The *next fetch offset* is that of the first record that a member can acquire. The
*read gap* is the range of offsets that the share coordinator did not know when the share partition
was initialized: records may be there that were acquired and never acknowledged.

The share coordinator keeps the states that were written. A new leader reads them and continues
(`initialize`). A write that another leader or a newer state has fenced ends this share partition.

Records are acquired in `acquisition`, and acknowledged and released in `acknowledgement`.

Source: SharePartition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from mockbroker.core.errors import ApiError
from mockbroker.core.ids import uuid_text
from mockbroker.core.replication.partition import Partition
from mockbroker.core.share.emitters import (
    RecordsFact,
    emit_facts,
    emit_start,
)
from mockbroker.core.share.in_flight import (
    InFlightBatch,
    InFlightBatches,
    InFlightState,
)
from mockbroker.core.share.offset_reset import start_offset
from mockbroker.core.share.operations import READ, WRITE, StateSender
from mockbroker.core.share.persisted import (
    RECORD_STATES,
    UNINITIALIZED_START_OFFSET,
    SharePartitionKey,
    WrittenPartition,
    WrittenState,
    read_failure,
    read_request,
    read_result,
    write_error,
    write_request,
)
from mockbroker.core.share.states import (
    FINAL_STATES,
    SHARE_PARTITION_TRANSITIONS,
    RecordEvent,
    RecordState,
    SharePartitionEvent,
    SharePartitionState,
)
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.purgatory.delayed_operation import DelayedOperation
    from mockbroker.core.runtime import Runtime
    from mockbroker.core.share.configs import ShareGroupConfigs
    from mockbroker_protocol.messages.read_share_group_state import (
        PartitionResult,
        ReadShareGroupStateResponse,
    )
    from mockbroker_protocol.messages.write_share_group_state import WriteShareGroupStateResponse

Then: TypeAlias = Callable[[ApiError | None], None]
"""Called once, with the error or None."""


class SharePartitionHost(Protocol):
    """The environment of share partitions (see `manager`)."""

    @property
    def node_id(self) -> int: ...
    @property
    def persister(self) -> StateSender: ...
    @property
    def runtime(self) -> Runtime: ...

    def now_ms(self) -> int:
        """The time for acquisition locks."""
        ...

    def set_lock_timer(self, share_partition: SharePartition, deadline_ms: int) -> None:
        """Call `locks_due` at the deadline, unless an earlier call is due."""
        ...

    def fence(self, share_partition: SharePartition) -> None:
        """Remove the share partition: it no longer serves its group."""
        ...


class StateChange(NamedTuple):
    """An event of a range of records of one batch, which `member_id` had acquired: their new
    state, which is to be written.
    """

    batch: InFlightBatch
    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int
    event: RecordEvent
    member_id: str

    @property
    def written(self) -> WrittenState:
        return WrittenState(self.first_offset, self.last_offset, self.state, self.delivery_count)


class ReadGap:
    """The offsets from `start_offset` to `end_offset`, the SPEO at the initialization."""

    __slots__ = ("end_offset", "start_offset")

    def __init__(self, start: int, end: int) -> None:
        self.start_offset = start
        self.end_offset = end


class SharePartition:
    """One share partition, from its initialization until it is fenced.

    `delivery_complete_count` counts the records in flight that are final; the lag of the group is
    computed from it.
    """

    __slots__ = (
        "_host",
        "_watchers",
        "batches",
        "configs",
        "delivery_complete_count",
        "end_offset",
        "find_next_fetch_offset",
        "group_id",
        "key",
        "leader_epoch",
        "partition",
        "read_gap",
        "start_offset",
        "state",
        "state_epoch",
    )

    def __init__(
        self,
        host: SharePartitionHost,
        group_id: str,
        topic_id: bytes,
        partition: Partition,
        configs: ShareGroupConfigs,
    ) -> None:
        """`topic_id` is the client's, which may be that of a former topic of the same name."""
        self._host = host
        self.group_id = group_id
        self.key: SharePartitionKey = (group_id, topic_id, partition.index)
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.configs = configs
        self.state = SharePartitionState.EMPTY
        self.state_epoch = 0
        self.start_offset = 0
        self.end_offset = 0
        self.batches = InFlightBatches()
        self.read_gap: ReadGap | None = None
        self.find_next_fetch_offset = False
        self.delivery_complete_count = 0
        self._watchers: dict[DelayedOperation, None] = {}

    # -- life --------------------------------------------------------------------------------------

    def initialize(self, then: Then) -> None:
        """Read the state from the share coordinator, if that is not done yet.

        `then` gets no error once the share partition is active; LEADER_NOT_AVAILABLE while another
        request initializes it, or if it is fenced.
        """
        if self.state is not SharePartitionState.EMPTY:
            then(self._unreadiness())
            return
        self._event(SharePartitionEvent.READ_SENT)

        def answered(response: ReadShareGroupStateResponse) -> None:
            try:
                self._take_state(read_result(self.key, response, self._name))
            except ApiError as error:
                self._event(SharePartitionEvent.READ_FAILED)
                then(error)
                return
            self._event(SharePartitionEvent.READ_DONE)
            then(None)

        self._host.persister.send(READ, read_request(self.key, self.leader_epoch), answered)

    def _unreadiness(self) -> ApiError | None:
        name = self._name
        match self.state:
            case SharePartitionState.ACTIVE:
                return None
            case SharePartitionState.FAILED:
                text = f"Share partition failed to load {name}"
                return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
            case SharePartitionState.FENCED:
                text = f"Share partition is fenced {name}"
                return ApiError(ErrorCode.LEADER_NOT_AVAILABLE, text)
            case _:
                text = f"Share partition is already initializing {name}"
                return ApiError(ErrorCode.LEADER_NOT_AVAILABLE, text)

    def _take_state(self, result: PartitionResult) -> None:
        """Continue from the state of the share coordinator. Raises ApiError."""
        self.start_offset = self._initial_start(result.start_offset)
        self.state_epoch = result.state_epoch
        if self.state is SharePartitionState.INITIALIZING:
            known = result.start_offset != UNINITIALIZED_START_OFFSET
            emit_start(self, "loaded" if known else "reset")
        if not self._take_batches(result):
            raise read_failure(self._name)

    def _initial_start(self, known: int) -> int:
        if known != UNINITIALIZED_START_OFFSET:
            return known
        reset = self.configs.auto_offset_reset
        return start_offset(self.partition, reset, self.leader_epoch, self._host.now_ms())

    def _take_batches(self, result: PartitionResult) -> bool:
        """Put the batches in flight; False if they are invalid."""
        gap_start = -1
        following = self.start_offset
        for each in result.state_batches:
            first, last = each.first_offset, each.last_offset
            if first < self.start_offset or last < first:
                return False
            if gap_start == -1 and first > following:
                gap_start = following
            following = last + 1
            if each.delivery_state not in RECORD_STATES:
                return False
            state = InFlightState(RecordState(each.delivery_state), each.delivery_count)
            self.batches.add(InFlightBatch(first, last, state))
            if state.state in FINAL_STATES:
                self.delivery_complete_count += last - first + 1
        if not self.batches:
            self.end_offset = self.start_offset
            return True
        self.find_next_fetch_offset = True
        self.end_offset = self.batches.last.last_offset
        if gap_start != -1:
            self.read_gap = ReadGap(gap_start, self.end_offset)
        self.move_start()
        return True

    def fence(self) -> None:
        """End the share partition; called by its host."""
        self._event(SharePartitionEvent.FENCE)
        self.partition.unwatch(self)
        self.notify()

    def _event(self, event: SharePartitionEvent) -> None:
        self.state = SHARE_PARTITION_TRANSITIONS[self.state][event] or self.state

    @property
    def is_active(self) -> bool:
        return self.state is SharePartitionState.ACTIVE

    @property
    def runtime(self) -> Runtime:
        return self._host.runtime

    @property
    def node_id(self) -> int:
        return self._host.node_id

    @property
    def _name(self) -> str:
        """Group and TopicIdPartition, as in Kafka's messages."""
        _, topic_id, index = self.key
        return f"{self.group_id}-{uuid_text(topic_id)}:{self.partition.topic.name}-{index}"

    # -- watching ----------------------------------------------------------------------------------

    def partition_changed(self, partition: Partition) -> None:
        """The log's partition has changed: another broker may lead it."""
        if partition.deleted or partition.leader_id != self._host.node_id:
            self._host.fence(self)

    def watch(self, watcher: DelayedOperation) -> None:
        self._watchers[watcher] = None

    def unwatch(self, watcher: DelayedOperation) -> None:
        self._watchers.pop(watcher, None)

    def notify(self) -> None:
        """Let the share fetches that wait for this share partition try again."""
        for watcher in list(self._watchers):
            watcher.partition_changed(self.partition)

    # -- offsets -----------------------------------------------------------------------------------

    @property
    def gap_is_open(self) -> bool:
        """Whether the read gap may still have records."""
        return self.read_gap is not None and self.read_gap.end_offset == self.end_offset

    @property
    def count_in_flight(self) -> int:
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    @property
    def can_acquire(self) -> bool:
        """Whether a fetch may acquire records: there is room in flight, or the records to fetch are
        in flight already.
        """
        if self.next_fetch_offset() != self.end_offset + 1:
            return True
        return self.count_in_flight < self.configs.record_locks_max

    def next_fetch_offset(self) -> int:
        """The offset from which the next fetch reads."""
        if not self.batches or self.start_offset > self.batches.last.last_offset:
            # Everything is final, or the log lost it: the SPEO itself was not fetched yet.
            return self.end_offset
        if self.find_next_fetch_offset:
            found = self._first_acquirable()
            self.find_next_fetch_offset = found is not None
            if found is not None:
                return found
        return self.end_offset + 1

    def _first_acquirable(self) -> int | None:
        gap = self.read_gap if self.gap_is_open else None
        gap_start = None if gap is None else gap.start_offset
        for batch in self.batches:
            if gap_start is not None:
                if batch.first_offset > gap_start:
                    return gap_start
                gap_start = max(batch.last_offset + 1, gap_start)
            if batch.whole is not None:
                if batch.whole.is_acquirable:
                    return batch.first_offset
                continue
            for offset, state in batch.states(batch.first_offset, batch.last_offset):
                if state.is_acquirable:
                    return offset
        return None

    def gap_acquired_up_to(self, offset: int) -> None:
        """The records before `offset` are acquired: the read gap begins there, or is closed."""
        gap = self.read_gap
        if gap is None:
            return
        if self.gap_is_open and offset <= gap.end_offset:
            gap.start_offset = offset
        else:
            self.read_gap = None

    def in_flight_of(self, first_offset: int, last_offset: int) -> int:
        """How many offsets of a range are not below the SPSO."""
        return max(last_offset - max(self.start_offset, first_offset) + 1, 0)

    # -- moving the start --------------------------------------------------------------------------

    def move_start(self) -> bool:
        """Move the SPSO past final records; False if it stays."""
        if not self._start_is_final():
            return False
        last_final, count = self._final_prefix()
        if last_final == -1:
            return False
        former = self.start_offset
        self._drop_final(last_final, count)
        emit_start(self, "moved", former, "final")
        return True

    def _drop_final(self, last_final: int, count: int) -> None:
        """Move the SPSO behind the final records at the start, up to `last_final`; `count` of them
        are in flight.
        """
        batches = self.batches
        if last_final == batches.last.last_offset:
            # The log may have lost later offsets too; then the SPSO is above them already.
            self.start_offset = self.end_offset = max(self.start_offset, last_final + 1)
            batches.clear()
            self.delivery_complete_count = 0
            return
        batch = batches.floor(last_final)
        assert batch is not None
        if last_final == batch.last_offset:
            following = batches.first_after(last_final)
            assert following is not None
            self.start_offset = max(self.start_offset, following.first_offset)
            if self.gap_is_open:
                assert self.read_gap is not None
                self.start_offset = min(self.read_gap.start_offset, self.start_offset)
            batches.drop_before(following.first_offset)
        else:
            # Only whole batches are dropped.
            self.start_offset = max(self.start_offset, last_final + 1)
            batches.drop_before(batch.first_offset)
        self.delivery_complete_count -= count

    def begin_at(self, offset: int) -> None:
        """Move the SPSO to the first record that was acquired: there is none before it."""
        former, self.start_offset = self.start_offset, offset
        emit_start(self, "moved", former, "acquired")

    def _start_is_final(self) -> bool:
        batch = self.batches.floor(self.start_offset)
        return batch is not None and self._is_final(
            batch.state_at(min(self.start_offset, batch.last_offset))
        )

    @staticmethod
    def _is_final(state: InFlightState) -> bool:
        return state.state in FINAL_STATES and not state.has_ongoing_transition

    def _final_prefix(self) -> tuple[int, int]:
        """The last offset of the final records at the start (-1: none), and how many of them are
        not below the SPSO.
        """
        last, count = -1, 0
        for batch in self.batches:
            if self.gap_is_open:
                assert self.read_gap is not None
                if batch.last_offset >= self.read_gap.start_offset:
                    break
            if batch.whole is not None:
                if not self._is_final(batch.whole):
                    break
                last = batch.last_offset
                count += self.in_flight_of(batch.first_offset, last)
                continue
            for offset, state in batch.states(batch.first_offset, batch.last_offset):
                if not self._is_final(state):
                    return last, count
                last = offset
                count += offset >= self.start_offset
        return last, count

    def log_start_moved(self, log_start: int) -> None:
        """The log has lost the records below `log_start`: Available ones are archived.

        Acquired ones are archived when their lock ends. Nothing is written now; the next write has
        the new SPSO.
        """
        if log_start <= self.start_offset:
            return
        former = self.start_offset
        self._leave_behind(log_start)
        emit_start(self, "moved", former, "log_start")

    def _leave_behind(self, log_start: int) -> None:
        if not self.batches:
            self.start_offset = self.end_offset = log_start
            return
        batches = self.batches.beginning_in(self.batches.first.first_offset, log_start - 1)
        lost = self._count_final_below(log_start, batches)
        self.archive(
            batches, self.start_offset, log_start - 1, RecordEvent.REMOVE, "log_start", count=False
        )
        self.start_offset = log_start
        self.delivery_complete_count -= lost
        self.end_offset = max(self.end_offset, log_start)

    def _count_final_below(self, offset: int, batches: Sequence[InFlightBatch]) -> int:
        """The final records below an offset, of `batches` that begin below it."""
        count = 0
        for batch in batches:
            if batch.whole is not None:
                if batch.whole.state in FINAL_STATES:
                    count += self.in_flight_of(
                        batch.first_offset, min(offset - 1, batch.last_offset)
                    )
                continue
            states = batch.states(self.start_offset, offset - 1)
            count += sum(state.state in FINAL_STATES for _, state in states)
        return count

    def archive(
        self,
        batches: Sequence[InFlightBatch],
        first_offset: int,
        last_offset: int,
        event: RecordEvent,
        reason: str,
        *,
        count: bool,
    ) -> None:
        """Archive the records of a range in the state that `event` (REMOVE or ABORT) archives.

        `reason` is that of the emitted event. With `count` they are counted as final.
        """
        former = RecordState.AVAILABLE if event is RecordEvent.REMOVE else RecordState.ACQUIRED
        archived = 0
        facts: list[RecordsFact] | None = [] if self.runtime.on_event else None
        for batch in batches:
            if batch.whole is not None:
                if batch.whole.state is not former:
                    continue
                if batch.is_within(first_offset, last_offset):
                    first, last = batch.first_offset, batch.last_offset
                    batch.whole.archive(event)
                    archived += batch.count
                    if facts is not None:
                        facts.append(RecordsFact.of(event, first, last, batch.whole, reason))
                    continue
                batch.split()
            for offset, state in batch.states(first_offset, last_offset):
                if state.state is former:
                    state.archive(event)
                    archived += 1
                    if facts is not None:
                        facts.append(RecordsFact.of(event, offset, offset, state, reason))
        if facts:
            emit_facts(self, facts)
        if count:
            self.delivery_complete_count += archived

    # -- locks -------------------------------------------------------------------------------------

    def now_ms(self) -> int:
        return self._host.now_ms()

    def new_lock(self) -> int:
        """The deadline of an acquisition lock that begins now; its timer is set."""
        deadline_ms = self._host.now_ms() + self.configs.lock_duration_ms
        self._host.set_lock_timer(self, deadline_ms)
        return deadline_ms

    # -- writing -----------------------------------------------------------------------------------

    def complete(self, changes: Sequence[StateChange], *, written: bool) -> None:
        """End the transitions of changes: they count, or they are rolled back."""
        now_ms = self._host.now_ms()
        for change in changes:
            batch, was_final = change.batch, change.state in FINAL_STATES
            if batch.whole is not None:
                count = self.in_flight_of(change.first_offset, change.last_offset)
                self._complete(batch.whole, count if was_final else 0, now_ms, written=written)
                continue
            for offset, state in batch.states(change.first_offset, change.last_offset):
                if state.has_ongoing_transition:
                    count = int(was_final and offset >= self.start_offset)
                    self._complete(state, count, now_ms, written=written)

    def _complete(self, state: InFlightState, count: int, now_ms: int, *, written: bool) -> None:
        state.complete(written=written, now_ms=now_ms)
        if state.state is RecordState.AVAILABLE:
            self.find_next_fetch_offset = True
        if state.state not in FINAL_STATES:
            self.delivery_complete_count -= count

    def write(self, changes: Sequence[StateChange], then: Then) -> None:
        """Write the new states to the share coordinator, with the SPSO."""
        partition = WrittenPartition(
            self.state_epoch, self.leader_epoch, self.start_offset, self.delivery_complete_count
        )
        request = write_request(self.key, partition, [each.written for each in changes])

        def answered(response: WriteShareGroupStateResponse) -> None:
            then(write_error(self.key, response, self._name))

        self._host.persister.send(WRITE, request, answered)

    def __repr__(self) -> str:
        return f"SharePartition({self.group_id}, {self.partition})"
