"""A replica's log: what is appended is read back unchanged, from any offset, within any limit."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.core.log import batch_store
from mockbroker.core.log.replica_log import ReplicaLog, TimestampOffset
from mockbroker.core.log.segments import RollLimits, Segment
from mockbroker.core.log.verification import VerificationGuard
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import BatchHeader, ControlType, build_marker
from tests.support.requests import NOW_MS, batch_of, timed_batch
from tests.support.traced import traced


def append(log: ReplicaLog, batch: bytearray, *, frame: bytearray | None = None, epoch=0) -> int:
    """Append `batch` as it would come in a frame with a few bytes around it."""
    header = BatchHeader(batch)
    frame = bytearray(50) + batch if frame is None else frame
    view = memoryview(frame)[50 : 50 + len(batch)]
    return log.append(view, header.last_offset_delta, header.max_timestamp, epoch)


def content(log: ReplicaLog, offset: int, upper: int | None = None, limit: int = 1 << 40) -> bytes:
    pieces, size = log.read(
        offset, log.end_offset if upper is None else upper, limit, at_least_one=True
    )
    joined = b"".join(pieces)
    assert len(joined) == size
    return joined


def bases(stored: bytes) -> list[int]:
    found = []
    at = 0
    while at < len(stored):
        header = BatchHeader(stored, at)
        found.append(header.base_offset)
        at += header.size
    return found


def filled(*counts: int) -> ReplicaLog:
    log = ReplicaLog()
    for count in counts:
        append(log, batch_of(*[b"v"] * count))
    return log


def test_batches_get_consecutive_offsets_and_the_leader_epoch():
    log = ReplicaLog()
    assert append(log, batch_of(b"a", b"b", b"c"), epoch=4) == 0
    assert append(log, batch_of(b"d"), epoch=4) == 3
    assert log.end_offset == 4
    headers = [BatchHeader(batch) for batch in log.batches()]
    assert [(header.base_offset, header.leader_epoch) for header in headers] == [(0, 4), (3, 4)]
    assert log.epochs.entries == [(4, 0)]


@pytest.mark.covers("S157")
def test_stored_batches_are_the_bytes_that_came_but_for_offset_and_epoch():
    batch = batch_of(b"a" * 100, b"b" * 100)
    log = filled(5)
    append(log, batch_of(b"a" * 100, b"b" * 100), epoch=3)
    assert content(log, 5)[16:] == batch[16:]


@pytest.mark.covers("S26")
def test_a_read_starts_with_the_batch_that_holds_the_offset():
    log = filled(10, 5, 1)
    assert bases(content(log, 7)) == [0, 10, 15]
    assert bases(content(log, 10)) == [10, 15]
    assert bases(content(log, 15)) == [15]


def test_a_read_ends_below_the_upper_offset():
    log = filled(10, 5, 1)
    assert bases(content(log, 0, 15)) == [0, 10]
    assert bases(content(log, 0, 10)) == [0]
    assert log.read(10, 10, 1000, at_least_one=True) == ([], 0)


def test_limits_are_rounded_down_to_whole_batches_but_the_first_may_exceed_them():
    log = filled(1, 1, 1)
    size = len(batch_of(b"v"))
    assert bases(content(log, 0, limit=3 * size)) == [0, 1, 2]
    assert bases(content(log, 0, limit=3 * size - 1)) == [0, 1]
    assert bases(content(log, 0, limit=1)) == [0]
    assert log.read(0, 3, size - 1, at_least_one=False) == ([], 0)
    assert log.read(0, 3, size, at_least_one=False)[1] == size
    assert log.bytes_between(1, 3) == 2 * size
    assert log.bytes_between(3, 3) == 0


def test_where_a_read_goes_on_is_known_from_its_size():
    log = filled(2, 3, 4)
    _, size = log.read(1, 9, len(content(log, 0)) - 1, at_least_one=True)
    assert log.offset_after(1, size) == 5
    assert log.offset_after(1, log.size) == 9


def test_a_large_batch_that_fills_its_frame_is_not_copied():
    log = ReplicaLog()
    batch = batch_of(b"x" * (batch_store.VIEW_BYTES_MIN + 1))
    frame = bytearray(50) + batch
    append(log, batch, frame=frame)
    (piece,), _ = log.read(0, 1, 1 << 30, at_least_one=True)
    assert piece.obj is frame
    assert piece.readonly


def test_a_large_batch_that_shares_its_frame_is_copied_so_that_the_frame_can_go():
    log = ReplicaLog()
    batch = batch_of(b"x" * (batch_store.VIEW_BYTES_MIN + 1))
    frame = bytearray(50) + batch + bytearray(len(batch))
    append(log, batch, frame=frame)
    (piece,), _ = log.read(0, 1, 1 << 30, at_least_one=True)
    assert piece.obj is not frame
    assert len(piece.obj) == len(batch)


def test_small_batches_leave_as_one_piece():
    log = ReplicaLog()
    for index in range(1000):
        append(log, batch_of(b"%d" % index))
    pieces, _ = log.read(0, 1000, 1 << 30, at_least_one=True)
    assert len(pieces) < 50
    assert bases(b"".join(pieces)) == list(range(1000))


def test_what_was_handed_out_does_not_change_when_the_log_is_cut_and_written_again():
    log = filled(1, 1, 1)
    pieces, _ = log.read(0, 3, 1 << 20, at_least_one=True)
    before = b"".join(pieces)
    log.truncate(1)
    append(log, batch_of(b"other"), epoch=1)
    assert b"".join(pieces) == before


@given(seed=st.integers(0, 2**32))
def test_any_log_reads_back_as_it_was_written_whatever_the_sizes(seed):
    source = random.Random(seed)
    log = ReplicaLog()
    written: list[tuple[int, bytes]] = []
    for _ in range(source.randrange(1, 40)):
        if source.random() < 0.1 and log.end_offset:
            cut = source.randrange(log.end_offset + 1)
            log.truncate(cut)
            while written and written[-1][0] + BatchHeader(written[-1][1]).count > cut:
                written.pop()
            assert log.end_offset == cut
        size = source.choice((1, 100, 1000, 5000, 40_000))
        batch = batch_of(*[bytes([source.randrange(256)]) * size] * source.randrange(1, 4))
        base = append(log, batch)
        stored = bytearray(batch)
        stored[:8] = base.to_bytes(8, "big")
        stored[12:16] = bytes(4)
        written.append((base, bytes(stored)))
    assert content(log, 0) == b"".join(batch for _, batch in written)
    assert log.size == sum(len(batch) for _, batch in written)
    for base, batch in written:
        for offset in (base, base + BatchHeader(batch).count - 1):
            assert content(log, offset, limit=1) == batch, f"seed {seed}, offset {offset}"


# -- timestamps ------------------------------------------------------------------------------------


def timed(*batches: tuple[int, ...]) -> ReplicaLog:
    log = ReplicaLog()
    for timestamps in batches:
        append(log, timed_batch(*timestamps), epoch=2)
    return log


@pytest.mark.covers("S27")
def test_a_timestamp_finds_the_first_record_that_is_not_older():
    log = timed((10, 30, 20), (5, 40), (40, 60))
    expected = {0: (10, 0), 10: (10, 0), 11: (30, 1), 30: (30, 1), 31: (40, 4), 41: (60, 6)}
    for asked, (timestamp, offset) in expected.items():
        assert log.find_timestamp(asked) == TimestampOffset(timestamp, offset, 2)
    assert log.find_timestamp(61) is None


def test_a_timestamp_lookup_opens_compressed_batches_and_honours_append_time():
    log = ReplicaLog()
    append(log, timed_batch(10, 20, 30, codec=1))
    stamped = timed_batch(1, 2, 3)
    stamped[22] |= 0x08  # LogAppendTime: all records have the batch's max timestamp
    append(log, stamped)
    assert log.find_timestamp(15) == (20, 1, 0)
    assert log.find_timestamp(0) == (10, 0, 0)
    log.move_start(3)
    assert log.find_timestamp(1) == (3, 3, 0)


def test_records_below_the_log_start_are_not_found():
    log = timed((100, 90), (10, 20), (50, 60))
    log.move_start(1)
    assert log.find_timestamp(95) is None
    assert log.find_timestamp(60) == (90, 1, 2)
    log.move_start(2)
    assert log.find_timestamp(15) == (20, 3, 2)
    assert log.find_timestamp(80) is None


def test_the_highest_timestamp_is_that_of_the_first_record_that_has_it():
    assert ReplicaLog().find_max_timestamp() is None
    log = timed((10, 30, 20), (5, 40), (40, 39))
    assert log.find_max_timestamp() == (40, 4, 2)
    log.move_start(7)  # Kafka looks at segments, not at the log start
    assert log.find_max_timestamp() == (40, 4, 2)


# -- cutting and segments --------------------------------------------------------------------------


def test_truncation_drops_whole_batches_and_ends_the_log_at_the_offset():
    log = filled(3, 3, 3)
    assert not log.truncate(9)
    assert log.truncate(6)
    assert bases(content(log, 0)) == [0, 3]
    assert log.truncate(4)
    assert (bases(content(log, 0)), log.end_offset) == ([0], 4)
    append(log, batch_of(b"v"), epoch=1)
    assert bases(content(log, 3)) == [4]  # offset 3 went with its batch
    assert bases(content(log, 0)) == [0, 4]


def test_truncation_takes_epochs_and_producers_back():
    log = ReplicaLog()
    more = {"producer_id": 1, "producer_epoch": 0}
    append(log, batch_of(b"a", base_sequence=0, **more), epoch=0)
    log.producers.replay(next(log.batches()))
    append(log, batch_of(b"b", base_sequence=1, **more), epoch=3)
    log.truncate(1)
    assert log.epochs.entries == [(0, 0)]
    assert log.producers.find_duplicate(1, 0, 0, 0) is not None
    assert log.producers.find_duplicate(1, 0, 1, 1) is None


def test_truncation_to_the_end_forgets_an_epoch_that_wrote_nothing():
    """A leader notes its epoch before it appends; somebody else may lead before it does."""
    log = ReplicaLog()
    append(log, batch_of(b"a"), epoch=0)
    log.epochs.assign(1, log.end_offset)
    assert not log.truncate(1)
    assert (log.epochs.entries, log.end_offset) == ([(0, 0)], 1)


def test_a_high_watermark_that_goes_back_below_no_marker_leaves_the_producers_as_they_are():
    """An expired producer is not remembered by it, and a batch under verification stays valid."""
    log = ReplicaLog()
    append(log, batch_of(b"a", producer_id=1, producer_epoch=0, base_sequence=0))
    append(log, batch_of(b"b"))
    guard = log.producers.start_verification(2, 0, 0, NOW_MS, bumps=False)
    assert isinstance(guard, VerificationGuard)
    log.high_watermark_moved(2, 0)
    assert list(log.producers.entries) == []
    assert log.producers.check_guard(2, 0, guard) == ErrorCode.NONE


@pytest.mark.parametrize(("back_to", "stable"), [(2, 0), (1, 0), (3, 3)])
def test_a_marker_above_a_high_watermark_that_goes_back_holds_back_its_transaction(back_to, stable):
    log = ReplicaLog()
    append(
        log, batch_of(b"a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    )
    append(log, batch_of(b"b"))
    append(
        log,
        build_marker(
            ControlType.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=0
        ),
    )
    append(log, batch_of(b"c"))
    for batch in log.batches():
        log.producers.replay(batch)
    log.high_watermark_moved(0, 4)
    assert log.last_stable_offset(4) == 4
    log.high_watermark_moved(4, back_to)
    assert log.last_stable_offset(back_to) == stable


def test_an_emptied_log_has_no_past():
    log = ReplicaLog()
    append(log, batch_of(b"a", producer_id=1, producer_epoch=0, base_sequence=0), epoch=3)
    append(log, batch_of(b"b"), epoch=3)
    log.producers.replay(next(log.batches()))
    log.move_start(1)
    log.truncate_fully(100)
    assert (log.find_max_timestamp(), log.epochs.entries, log.producers.entries) == (None, [], {})
    assert log.first_dirty_offset == 100


def test_an_emptied_log_starts_anew_where_it_is_told():
    log = filled(3, 3)
    log.truncate_fully(100)
    assert (log.start_offset, log.end_offset, log.size, log.batch_count) == (100, 100, 0, 0)
    append(log, batch_of(b"v"))
    assert bases(content(log, 100)) == [100]
    assert log.segments == [Segment(100, log.size)]


@pytest.mark.covers("S6")
def test_the_log_start_may_lie_inside_a_batch_and_a_segment():
    log = filled(10, 10)
    assert log.move_start(5)
    assert not log.move_start(5)
    assert (log.start_offset, log.segments[0].base_offset) == (5, 0)
    assert bases(content(log, 5)) == [0, 10]


def test_a_segment_is_rolled_when_a_batch_does_not_fit_or_is_too_late():
    log = ReplicaLog()
    size = len(batch_of(b"v"))

    def add(at: int) -> bool:
        rolled = log.maybe_roll(size, at, 0, RollLimits(segment_bytes=3 * size, segment_ms=1000))
        append(log, batch_of(b"v", timestamp=at))
        return rolled

    assert [add(at) for at in (0, 1, 2, 3)] == [False, False, False, True]
    assert not add(1003)
    assert add(1004)
    assert log.segments == [Segment(0, 3 * size), Segment(3, 2 * size), Segment(5, size)]
    log.truncate(3)
    assert log.segments == [Segment(0, 3 * size), Segment(3, 0)]
    log.truncate(2)
    assert log.segments == [Segment(0, 2 * size)]


@pytest.mark.parametrize(("records", "size"), [(16, 1024), (1, 1024), (960, 1024), (150, 1024)])
def test_memory_per_payload_byte_stays_within_a_fifth(records, size):
    """The goal of the bench, here on what Python itself says it holds."""
    batch = batch_of(*[b"x" * size] * records, key=None)
    with traced() as memory:
        log = ReplicaLog()
        payload = 0
        while payload < 8 << 20:
            append(log, batch)
            payload += records * size
    assert memory.kept / payload <= 1.2


# -- the log start and what lies below it ----------------------------------------------------------


def held_bytes(log: ReplicaLog) -> int:
    return sum(len(batch) for batch in log.batches())


@pytest.mark.covers("S6")
def test_what_lies_below_the_log_start_is_freed_while_its_segment_counts_on():
    log = filled(*[1] * 1000)
    size = log.size
    log.move_start(500)
    assert held_bytes(log) == size / 2
    assert (log.size, log.segments) == (size, [Segment(0, size)])
    assert bases(content(log, 500))[:2] == [500, 501]
    assert log.bytes_between(500, 1000) == size / 2


def test_a_small_part_is_freed_only_when_somebody_has_the_time():
    log = filled(*[1] * 1000)
    log.move_start(100)
    assert log.batch_count == 1000
    log.free()
    assert log.batch_count == 900
    log.free()
    assert log.batch_count == 900


@pytest.mark.parametrize(("start", "count"), [(124, 1000), (125, 875)])
def test_an_eighth_of_the_batches_is_freed_at_once(start, count):
    log = filled(*[1] * 1000)
    log.move_start(start)
    assert log.batch_count == count


def test_a_batch_that_reaches_above_the_log_start_stays():
    log = filled(10, 10)
    log.move_start(19)
    assert bases(content(log, 19)) == [10]
    log.move_start(20)
    assert (log.batch_count, content(log, 20)) == (0, b"")
    append(log, batch_of(b"v"))
    assert bases(content(log, 20)) == [20]


def test_the_largest_timestamp_is_remembered_until_its_segment_goes():
    log = ReplicaLog()
    for at in (50, 90, 40, 90):
        append(log, timed_batch(at))
    log.roll()
    for at in (60, 70, 30):
        append(log, timed_batch(at))
    log.move_start(2)
    assert log.find_max_timestamp() == (90, 1, 0)
    log.move_start(5)
    assert log.batch_count == 2
    assert log.find_max_timestamp() == (90, 1, 0)
    log.move_start(7)
    assert log.batch_count == 0
    assert log.find_max_timestamp() == (90, 1, 0)
    log.drop_segments(1)
    assert log.find_max_timestamp() == (70, 5, 0)
    append(log, timed_batch(80))
    assert log.find_max_timestamp() == (80, 7, 0)


def test_truncation_below_the_first_segment_starts_anew():
    log = filled(5)
    log.roll()
    append(log, batch_of(b"v"))
    log.drop_segments(1)
    assert log.truncate(3)
    assert (log.start_offset, log.end_offset, log.segments) == (3, 3, [Segment(3, 0)])
    append(log, batch_of(b"v"))
    assert bases(content(log, 3)) == [3]


@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.integers(0, 30), st.booleans()), min_size=1, max_size=25
    ),
    st.lists(st.tuples(st.sampled_from(["start", "free", "drop", "cut"]), st.integers(0, 100))),
)
def test_a_log_cut_at_both_ends_reads_like_a_list_cut_at_both_ends(batches, cuts):
    log = ReplicaLog()
    expected: list[tuple[int, int]] = []  # offset, timestamp
    for count, timestamp, roll in batches:
        if roll:
            log.roll()
        base = append(log, batch_of(*[b"v"] * count, timestamp=timestamp))
        expected += [(base + at, timestamp) for at in range(count)]
    for how, number in cuts:
        if how == "start":
            log.move_start(min(number, log.end_offset))
        elif how == "free":
            log.free()
        elif how == "drop":
            log.drop_segments(number % len(log.segments))
        elif log.start_offset <= number <= log.end_offset:
            log.truncate(number)
            # A batch that reached above the cut went as a whole.
            end = max((BatchHeader(batch).next_offset for batch in log.batches()), default=0)
            expected = [each for each in expected if each[0] < end]
        expected = [each for each in expected if each[0] >= log.start_offset]
        for offset, _ in expected:
            first = BatchHeader(content(log, offset))
            assert first.base_offset <= offset <= first.last_offset
        for wanted in range(32):
            found = next((each for each in expected if each[1] >= wanted), None)
            looked_up = log.find_timestamp(wanted)
            assert (looked_up and (looked_up.offset, looked_up.timestamp)) == found
        assert log.size == sum(segment.size for segment in log.segments)
        assert held_bytes(log) <= log.size


def test_a_transaction_from_offset_0_whose_batches_are_gone_is_forgotten_by_a_truncation():
    log = ReplicaLog()
    more = {"producer_id": 1, "producer_epoch": 0, "transactional": True}
    append(log, batch_of(b"a", base_sequence=0, **more))
    log.producers.replay(next(log.batches()))
    for _ in range(2):
        append(log, batch_of(b"b"))
    log.move_start(1)
    log.truncate(2)
    assert not log.producers.has_ongoing_transaction(1)
    assert log.last_stable_offset(2) == 2


def test_a_truncation_counts_no_batch_of_a_producer_twice():
    """Not even of one whose batch is the first that is left."""
    log = ReplicaLog()
    for sequence in range(2):
        append(log, batch_of(b"a", producer_id=1, producer_epoch=0, base_sequence=sequence))
    append(log, batch_of(b"b"))
    for batch in log.batches():
        log.producers.replay(batch)
    log.move_start(1)
    log.truncate(2)
    assert [each.base_offset for each in log.producers.entries[1].batches] == [1]


def test_a_log_that_is_cut_below_its_start_starts_there():
    log = filled(*[1] * 6)
    log.move_start(5)
    log.truncate(3)
    assert (log.start_offset, log.end_offset) == (3, 3)


def test_the_last_stable_offset_is_between_the_log_start_and_the_high_watermark():
    log = ReplicaLog()
    append(log, batch_of(b"v"))
    more = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    append(log, batch_of(b"a", b"b", b"c", **more))
    for batch in log.batches():
        log.producers.replay(batch)
    assert [log.last_stable_offset(offset) for offset in (0, 1, 4)] == [0, 1, 1]
    log.move_start(2)
    assert log.last_stable_offset(4) == 2


def test_the_batch_in_which_a_log_starts_does_not_count_among_those_to_free():
    log = filled(*[2] * 16)
    held = held_bytes(log)
    log.move_start(3)
    assert held_bytes(log) == held
    log.move_start(4)
    assert held_bytes(log) < held


def test_of_freed_records_with_the_largest_timestamp_the_first_is_remembered():
    log = ReplicaLog()
    for _ in range(2):
        append(log, timed_batch(90))
        append(log, timed_batch(20))
        log.roll()
    log.move_start(4)
    assert log.batch_count == 0
    assert log.find_max_timestamp() == (90, 0, 0)
