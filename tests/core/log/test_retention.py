"""What a log no longer keeps goes by whole segments, and the log start moves up with it."""

from __future__ import annotations

import pytest

from mockbroker.core.log.retention import DeletedSegments, next_expiry_ms
from mockbroker_protocol.records import ControlType
from tests.support.kept_log import NOW_MS, KeptLog

SIZE = 69  # bytes of a batch of one record without a key and with a value of one byte


def kept_log(**configs: str | int) -> KeptLog:
    return KeptLog(**{"cleanup_policy": "delete", "retention_ms": -1, **configs})


def fill(kept: KeptLog, *segments: int) -> None:
    """Write so many batches of one record into each segment; the last one is left active."""
    for index, count in enumerate(segments):
        if index:
            kept.roll()
        for _ in range(count):
            kept.write((None, b"v"))


def bases(kept: KeptLog) -> list[int]:
    return [segment.base_offset for segment in kept.log.segments]


def test_the_size_of_a_batch_is_what_these_tests_take_it_for():
    kept = kept_log()
    fill(kept, 1)
    assert kept.log.size == SIZE


# -- retention.ms ----------------------------------------------------------------------------------


@pytest.mark.covers("S7")
def test_a_segment_goes_when_its_newest_record_is_older_than_retention_ms():
    kept = kept_log(retention_ms=1000)
    kept.write((None, b"a", NOW_MS))
    kept.write((None, b"b", NOW_MS + 500))
    kept.roll()
    kept.write((None, b"c", NOW_MS + 900))
    kept.now_ms = NOW_MS + 1500
    assert kept.retain() is None
    kept.now_ms += 1
    assert kept.retain() == DeletedSegments(1, 2 * SIZE, 0, 2)
    assert (bases(kept), kept.log.start_offset) == ([2], 2)


def test_an_older_segment_is_kept_as_long_as_one_before_it():
    kept = kept_log(retention_ms=1000)
    kept.write((None, b"a", NOW_MS + 5000))
    kept.roll()
    kept.write((None, b"b", NOW_MS))
    kept.roll()
    kept.write((None, b"c", NOW_MS))
    kept.now_ms = NOW_MS + 5000
    assert kept.retain() is None


def test_when_all_is_too_old_the_active_segment_is_closed_and_goes_too():
    kept = kept_log(retention_ms=1000)
    fill(kept, 2, 3)
    kept.now_ms += 1001
    assert kept.retain() == DeletedSegments(2, 5 * SIZE, 0, 5)
    log = kept.log
    assert (log.start_offset, log.end_offset, bases(kept), log.size) == (5, 5, [5], 0)
    assert log.find_max_timestamp() is None
    assert kept.retain() is None
    fill(kept, 1)
    assert (kept.fetched_bases(5), log.end_offset) == ([5], 6)


def test_without_timestamps_the_time_of_the_last_append_counts():
    kept = kept_log(retention_ms=1000)
    kept.write((None, b"a", -1))
    kept.now_ms += 1000
    assert kept.retain() is None
    kept.now_ms += 1
    assert kept.retain() is not None


def test_with_a_retention_of_0_ms_records_go_in_the_next_millisecond():
    kept = kept_log(retention_ms=0)
    fill(kept, 1)
    assert next_expiry_ms(kept.log, kept.configs) == NOW_MS + 1
    assert kept.retain() is None
    kept.now_ms += 1
    assert kept.retain() == DeletedSegments(1, SIZE, 0, 1)


def test_minus_one_keeps_records_for_ever():
    kept = kept_log(retention_ms=-1, retention_bytes=-1)
    fill(kept, 1, 1)
    kept.now_ms += 10**12
    assert kept.retain() is None


# -- retention.bytes -------------------------------------------------------------------------------


@pytest.mark.covers("S7")
def test_segments_go_while_the_log_would_still_hold_retention_bytes_without_them():
    kept = kept_log(retention_bytes=4 * SIZE)
    fill(kept, 2, 2, 2, 1)
    assert kept.retain() == DeletedSegments(1, 2 * SIZE, 0, 2)
    assert (bases(kept), kept.log.size) == ([2, 4, 6], 5 * SIZE)
    fill(kept, 1)
    assert kept.retain() == DeletedSegments(1, 2 * SIZE, 2, 4)


def test_with_no_bytes_to_keep_the_active_segment_goes_too():
    kept = kept_log(retention_bytes=0)
    fill(kept, 2, 1)
    assert kept.retain() == DeletedSegments(2, 3 * SIZE, 0, 3)
    assert kept.retain() is None


# -- the limits of both ----------------------------------------------------------------------------


def test_nothing_goes_that_reaches_above_the_high_watermark():
    kept = kept_log(retention_ms=0, retention_bytes=0)
    fill(kept, 2, 2, 2)
    kept.now_ms += 1000
    kept.high_watermark = 3
    assert kept.retain() == DeletedSegments(1, 2 * SIZE, 0, 2)
    kept.high_watermark = 6
    assert kept.retain() == DeletedSegments(2, 4 * SIZE, 2, 6)


@pytest.mark.covers("S6")
def test_segments_below_the_log_start_go_whatever_the_policy_is():
    kept = kept_log(cleanup_policy="compact", retention_ms=0)
    fill(kept, 2, 2, 2)
    kept.now_ms += 1000
    kept.log.move_start(3)
    assert kept.retain() == DeletedSegments(1, 2 * SIZE, 3, 3)
    assert (bases(kept), kept.log.start_offset) == ([2, 4], 3)


def test_a_segment_that_ends_at_the_log_start_goes():
    kept = kept_log()
    fill(kept, 2, 2)
    kept.log.move_start(2)
    assert kept.retain() == DeletedSegments(1, 2 * SIZE, 2, 2)


def test_the_memory_of_a_few_batches_below_the_log_start_is_freed():
    kept = kept_log()
    fill(kept, 20)
    kept.log.move_start(1)
    assert kept.log.batch_count == 20
    assert kept.retain() is None
    assert kept.log.batch_count == 19


def test_the_log_start_inside_the_active_segment_leaves_that_in_place():
    kept = kept_log()
    fill(kept, 4)
    kept.log.move_start(4)
    assert kept.retain() is None
    assert (bases(kept), kept.log.size) == ([0], 4 * SIZE)


def test_compact_and_delete_together_drop_old_segments_as_well():
    kept = kept_log(cleanup_policy="compact,delete", retention_ms=1000)
    fill(kept, 1, 1)
    kept.now_ms += 500
    fill(kept, 1, 1)
    kept.now_ms += 501
    retained = kept.retain()
    assert retained is not None
    assert kept.log.start_offset == 1


# -- what hangs on the log start -------------------------------------------------------------------


def test_epochs_that_ended_below_the_log_start_are_forgotten_and_the_one_in_force_starts_there():
    kept = kept_log(retention_bytes=1)
    log = kept.log
    log.epochs.assign(0, 0)
    fill(kept, 2)
    log.epochs.assign(1, 2)
    fill(kept, 2)
    kept.roll()
    log.epochs.assign(4, 5)
    fill(kept, 2)
    kept.retain()
    assert log.start_offset == 4
    assert log.epochs.entries == [(1, 4), (4, 5)]
    assert log.epochs.earliest(4) == 1
    assert log.epochs.end_offset_for(0, log.end_offset) == (0, 4)


def test_aborted_transactions_below_the_log_start_are_forgotten_and_producers_are_not():
    kept = kept_log(retention_bytes=1)
    kept.write_as(7, 0, (None, b"a"), transactional=True)
    kept.end(7, ControlType.ABORT)
    kept.roll()
    kept.write_as(8, 0, (None, b"a"), transactional=True)
    kept.end(8, ControlType.ABORT)
    kept.roll()
    fill(kept, 1)
    kept.log.drop_segments(1)
    assert [entry.producer_id for entry in kept.log.producers.aborted] == [8]
    assert set(kept.log.producers.entries) == {7, 8}


def test_producers_whose_records_are_gone_survive_a_truncation():
    kept = kept_log()
    kept.write_as(7, 0, (None, b"a"))
    kept.roll()
    kept.write_as(8, 0, (None, b"a"))
    kept.write_as(8, 1, (None, b"b"))
    kept.log.drop_segments(1)
    kept.log.truncate(2)
    entries = kept.log.producers.entries
    assert {producer_id: entry.last_sequence for producer_id, entry in entries.items()} == {
        7: 0,
        8: 0,
    }


def test_producers_whose_records_are_gone_survive_a_truncation_to_the_first_segment():
    kept = kept_log()
    kept.write_as(7, 0, (None, b"a"))
    kept.roll()
    kept.write_as(8, 0, (None, b"a"))
    kept.log.drop_segments(1)
    kept.log.truncate(1)
    assert (kept.log.start_offset, kept.log.end_offset, kept.log.size) == (1, 1, 0)
    assert list(kept.log.producers.entries) == [7]


def test_a_truncation_below_the_first_segment_forgets_all_producers():
    kept = kept_log()
    kept.write_as(7, 0, (None, b"a"), (None, b"b"))
    kept.roll()
    kept.write_as(8, 0, (None, b"a"))
    kept.log.drop_segments(1)
    kept.log.truncate(1)
    assert (kept.log.start_offset, kept.log.end_offset, kept.log.size) == (1, 1, 0)
    assert kept.log.producers.entries == {}


# -- when it is worth a look -----------------------------------------------------------------------


def test_the_next_expiry_is_that_of_the_oldest_segment():
    kept = kept_log(retention_ms=1000)
    assert next_expiry_ms(kept.log, kept.configs) is None
    kept.write((None, b"a", NOW_MS + 5))
    kept.roll()
    kept.write((None, b"b", NOW_MS + 9))
    assert next_expiry_ms(kept.log, kept.configs) == NOW_MS + 1006
    kept.now_ms = NOW_MS + 1005
    assert kept.retain() is None
    kept.now_ms += 1
    assert kept.retain() is not None
    assert next_expiry_ms(kept.log, kept.configs) == NOW_MS + 1010


@pytest.mark.parametrize("configs", [{"retention_ms": -1}, {"cleanup_policy": "compact"}])
def test_what_is_kept_for_ever_never_expires(configs):
    kept = kept_log(**configs)
    fill(kept, 1, 1)
    assert next_expiry_ms(kept.log, kept.configs) is None
