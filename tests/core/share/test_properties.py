"""Any few requests of three members leave each record in the state of a naive model.

The model has a dict for each record and knows no batches. It is told which records a fetch has
acquired, checks that they could be acquired, and predicts everything else: states, delivery counts,
owners, the SPSO, and what the share coordinator keeps.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mockbroker.core.errors import ApiError
from mockbroker.core.share.acknowledgement import (
    AcknowledgementBatch,
    acknowledge,
    release_acquired,
)
from mockbroker.core.share.acquisition import AcquireRequest, acquire
from mockbroker.core.share.states import AcquireMode, RecordState
from mockbroker_protocol import ErrorCode
from tests.support.requests import batch_of
from tests.support.share import ShareNode

MEMBERS = ("m1", "m2", "m3")
LIMIT = 4
LOCK_MS = 15_000
FINAL = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)
BY_TYPE = {
    0: RecordState.ARCHIVED,
    1: RecordState.ACKNOWLEDGED,
    2: RecordState.AVAILABLE,
    3: RecordState.ARCHIVED,
}


@dataclass
class Record:
    """A record of the model. `ongoing` is its owner before a write that is under way."""

    state: RecordState
    count: int
    owner: str
    lock_ms: int
    ongoing: str = ""


class SharePartitionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.node = ShareNode()
        self.partition = self.node.topic("t")
        self.node.group_config("share.delivery.count.limit", str(LIMIT))
        self.node.group_config("share.record.lock.duration.ms", str(LOCK_MS))
        self.share = self.node.share()
        self.records: dict[int, Record] = {}
        self.start = 0
        # The offsets of each write under way, and what the client was told.
        self.writes: list[list[int]] = []
        self.answers: list[ApiError | None] = []

    # -- the log -----------------------------------------------------------------------------------

    @rule(count=st.integers(1, 6))
    def produce(self, count: int) -> None:
        self.node.produced(batch_of(*(b"v" for _ in range(count))))

    @precondition(lambda self: self.partition.high_watermark > self.partition.log_start_offset)
    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        log = self.partition
        offset = data.draw(st.integers(log.log_start_offset, log.high_watermark), label="offset")
        log.delete_records(offset)
        if offset > self.start:
            self.share.log_start_moved(offset)
            for at, record in self.records.items():
                if self.start <= at < offset and record.state is RecordState.AVAILABLE:
                    record.state, record.owner, record.lock_ms = RecordState.ARCHIVED, "", 0
            self.start = offset

    # -- members -----------------------------------------------------------------------------------

    @rule(
        member=st.sampled_from(MEMBERS),
        mode=st.sampled_from(AcquireMode),
        most=st.integers(1, 8),
        batch_size=st.integers(1, 8),
        bytes_max=st.sampled_from((1, 200, 1 << 20)),
    )
    def fetch(
        self, member: str, mode: AcquireMode, most: int, batch_size: int, bytes_max: int
    ) -> None:
        offset = self.share.next_fetch_offset()
        log, upper = self.partition.log, self.partition.high_watermark
        if not log.start_offset <= offset < upper or not self.share.can_acquire:
            return
        _, size = log.read(offset, upper, bytes_max, at_least_one=True)
        fetched = log.batches_read(offset, size)
        request = AcquireRequest(member, mode, batch_size, most)
        acquired = acquire(self.share, request, offset, fetched)
        offsets = [
            (at, each.delivery_count)
            for each in acquired.ranges
            for at in range(each.first_offset, each.last_offset + 1)
        ]
        assert acquired.offsets == len(offsets)
        assert [at for at, _ in offsets] == sorted({at for at, _ in offsets})
        if mode is AcquireMode.RECORD_LIMIT:
            assert len(offsets) <= most
        assert offsets, "the next fetch offset is that of a record that can be acquired"
        # A batch that the log start divides is acquired whole, if a batch before it is in flight.
        assert offsets[0][0] == offset or offsets[0][0] == fetched.base_offset < offset
        for at, count in offsets:
            record = self.records.get(at)
            if record is None:
                assert count == 1
            else:
                assert record.state is RecordState.AVAILABLE
                assert not record.ongoing
                assert count == record.count + 1
            assert at >= min(self.start, fetched.base_offset)
            assert count <= LIMIT
            lock_ms = self.node.now_ms + LOCK_MS
            self.records[at] = Record(RecordState.ACQUIRED, count, member, lock_ms)
        self._take_rest(offsets[-1][0])

    def _take_rest(self, last: int) -> None:
        """In the mode record_limit the rest of a batch is in flight, and Available."""
        for at in range(last + 1, self.share.end_offset + 1):
            if at not in self.records and self.share.batches.floor(at) is not None:
                self.records[at] = Record(RecordState.AVAILABLE, 0, "", 0)

    @rule(
        member=st.sampled_from(MEMBERS),
        first=st.integers(0, 12),
        length=st.integers(1, 8),
        data=st.data(),
        hold=st.booleans(),
    )
    def acknowledge(
        self, member: str, first: int, length: int, data: st.DataObject, hold: bool
    ) -> None:
        first += max(self.share.start_offset - 4, 0)
        types = data.draw(
            st.one_of(
                st.integers(0, 4).map(lambda each: [each]),
                st.lists(st.integers(0, 4), min_size=length, max_size=length),
            ),
            label="types",
        )
        last = first + length - 1
        batch = AcknowledgementBatch(first, last, types)
        self.node.persister.holds = hold
        writes = len(self.node.persister.writes)
        told: list[ApiError | None] = []

        def then(error: ApiError | None) -> None:
            told.append(error)
            self.answers.append(error)

        acknowledge(self.share, member, [batch], then)
        self.node.persister.holds = False
        wanted = [at for at in range(first, last + 1) if at >= self.start]
        owned = all(
            at in self.records
            and self.records[at].state is RecordState.ACQUIRED
            and self.records[at].owner == member
            for at in wanted
        )
        if told and told[0] is not None:
            assert not owned or not wanted
            assert told[0].error in (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST)
            self._renew(self.records, first, types, wanted, member, refused=True)
            return
        assert owned
        self._renew(self.records, first, types, wanted, member, refused=False)
        changed = []
        for at in wanted:
            kind = types[0] if len(types) == 1 else types[at - first]
            if kind != 4:
                self._begin(at, BY_TYPE[kind])
                changed.append(at)
        assert (len(self.node.persister.writes) > writes) == bool(changed)
        if changed and hold:
            assert not told
            self.writes.append(changed)
        else:
            self._complete(changed, written=True)

    def _renew(
        self,
        records: dict[int, Record],
        first: int,
        types: list[int],
        wanted: list[int],
        member: str,
        *,
        refused: bool,
    ) -> None:
        """Locks are renewed up to the record for which the request is refused."""
        for at in wanted:
            record = records.get(at)
            kind = types[0] if len(types) == 1 else types[at - first]
            owned = record is not None and record.state is RecordState.ACQUIRED
            if record is None or not owned or record.owner != member:
                assert refused
                return
            if kind == 4:
                lock_ms = self.share.batches.floor(at).state_at(at).lock_deadline_ms  # type: ignore[union-attr]
                assert lock_ms in (record.lock_ms, self.node.now_ms + LOCK_MS)
                assert refused or lock_ms == self.node.now_ms + LOCK_MS
                record.lock_ms = lock_ms

    def _begin(self, at: int, state: RecordState) -> None:
        record = self.records[at]
        below = at < self.start
        if state is RecordState.AVAILABLE and (below or record.count >= LIMIT):
            state = RecordState.ARCHIVED
        record.ongoing = record.owner
        record.state, record.owner = state, ""

    def _complete(self, offsets: list[int], *, written: bool) -> None:
        now_ms = self.node.now_ms
        for at in offsets:
            record = self.records[at]
            removed = record.state is RecordState.ARCHIVED and not record.lock_ms
            if written or removed:
                record.lock_ms = 0
            elif record.lock_ms <= now_ms:
                over = record.count >= LIMIT
                record.state = RecordState.ARCHIVED if over else RecordState.AVAILABLE
                record.lock_ms = 0
            else:
                record.state, record.owner = RecordState.ACQUIRED, record.ongoing
            record.ongoing = ""
        if written and offsets:
            self._move_start()

    def _move_start(self) -> None:
        """Final records move the start; one that is not, below the log start too, stops it."""
        for at, record in sorted(self.records.items()):
            if at > self.start or record.state not in FINAL or record.ongoing:
                return
            self.start = max(self.start, at + 1)

    @rule(member=st.sampled_from(MEMBERS), hold=st.booleans())
    def leave(self, member: str, hold: bool) -> None:
        self.node.persister.holds = hold
        release_acquired(self.share, member, self.answers.append)
        self.node.persister.holds = False
        held = [
            at
            for at, record in sorted(self.records.items())
            if record.state is RecordState.ACQUIRED and record.owner == member
        ]
        for at in held:
            self._begin(at, RecordState.AVAILABLE)
        if held and hold:
            self.writes.append(held)
        else:
            self._complete(held, written=True)

    # -- the share coordinator and time ------------------------------------------------------------

    @precondition(lambda self: self.writes)
    @rule(written=st.booleans())
    def answer(self, written: bool) -> None:
        before = len(self.answers)
        self.node.persister.answer(0 if written else ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._complete(self.writes.pop(0), written=written)
        (told,) = self.answers[before:]
        assert (told is None) == written

    @rule(by_ms=st.sampled_from((1, 5_000, LOCK_MS)))
    def time_passes(self, by_ms: int) -> None:
        self.node.advance(by_ms)
        expired = [
            at
            for at, record in self.records.items()
            if record.state is RecordState.ACQUIRED and record.lock_ms <= self.node.now_ms
        ]
        for at in expired:
            self._begin(at, RecordState.AVAILABLE)
            self.records[at].ongoing, self.records[at].lock_ms = "", 0
        if expired:
            self._move_start()

    # -- comparisons -------------------------------------------------------------------------------

    @invariant()
    def records_are_as_in_the_model(self) -> None:
        share = self.share
        assert share.start_offset == self.start
        for batch in share.batches:
            for at in range(max(batch.first_offset, self.start), batch.last_offset + 1):
                state, record = batch.state_at(at), self.records[at]
                found = (state.state, state.delivery_count, state.member_id)
                assert found == (record.state, record.count, record.owner), at
                assert state.has_ongoing_transition == bool(record.ongoing), at
                if state.state is RecordState.ACQUIRED:
                    assert state.lock_deadline_ms == record.lock_ms

    @invariant()
    def each_record_that_is_not_final_is_in_flight(self) -> None:
        in_flight = {
            at
            for batch in self.share.batches
            for at in range(batch.first_offset, batch.last_offset + 1)
        }
        missing = [
            at
            for at, record in self.records.items()
            if record.state not in FINAL and at not in in_flight
        ]
        assert not missing

    @invariant()
    def final_records_are_counted(self) -> None:
        final = [
            at
            for at, record in self.records.items()
            if self.start <= at <= self.share.end_offset and record.state in FINAL
        ]
        assert self.share.delivery_complete_count == (len(final) if self.share.batches else 0)

    @invariant()
    def the_share_coordinator_knows_each_final_record(self) -> None:
        """What a member was told to be acknowledged is never delivered again by the next leader."""
        _, start, kept = self.node.persister.states.get(self.share.key, (0, 0, {}))
        for at, record in self.records.items():
            if record.state is RecordState.ACKNOWLEDGED and not record.ongoing:
                assert at < max(start, self.start) or kept[at][0] == RecordState.ACKNOWLEDGED


SharePartitionMachine.TestCase.settings = settings(
    max_examples=40, stateful_step_count=30, phases=(Phase.explicit, Phase.generate)
)
TestSharePartition = SharePartitionMachine.TestCase
