"""Compacting one log: the newest record of each key stays, where it was, and nothing else."""

from __future__ import annotations

import hashlib

import pytest

from mockbroker.core.log.cleaner import RECORDS_PER_TURN, LogToClean, log_to_clean, next_due_ms
from mockbroker.core.log.producer_state import AbortedTransaction
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker_protocol.records import (
    ControlType,
    Record,
    RecordsError,
    TimestampType,
    build_batch,
    update_crc,
)
from tests.support.kept_log import NOW_MS, KeptLog

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def rolled(log: KeptLog) -> KeptLog:
    log.roll()
    return log


# -- what stays ------------------------------------------------------------------------------------


@pytest.mark.covers("S28")
def test_of_each_key_the_newest_record_stays_at_its_offset():
    kept = KeptLog()
    for version in range(10):
        for begin in range(0, 1000, 50):
            keys = range(begin, begin + 50)
            kept.write(*((b"key-%d" % key, b"%d:%d" % (key, version)) for key in keys))
    kept.roll()
    result = kept.clean()
    assert kept.shown == [(9000 + key, b"key-%d" % key, b"%d:9" % key) for key in range(1000)]
    assert (kept.log.start_offset, kept.log.end_offset) == (0, 10_000)
    assert result is not None
    assert (result.records_read, result.records_removed) == (10_000, 9000)


def test_the_removed_offsets_are_those_between_the_ones_that_stay():
    kept = KeptLog()
    kept.write(*((bytes([key]), b"1") for key in b"abcdefg"))
    kept.write(*((bytes([key]), b"2") for key in b"acdg"))
    kept.roll()
    cleaning = kept.cleaning()
    while not cleaning.step(1):
        pass
    assert [offset for offset, _, _ in kept.shown] == [1, 4, 5, 7, 8, 9, 10]
    assert list(cleaning.removed) == [0, 0, 2, 3, 6, 6]


@pytest.mark.parametrize(("turns", "more"), [(1, 0), (1, 1), (2, 1)])
def test_a_batch_of_more_records_than_fit_a_step_is_cleaned_as_one(turns, more):
    count = turns * RECORDS_PER_TURN + more
    keys = [b"key-%d" % (at % (RECORDS_PER_TURN - 12)) for at in range(count)]
    newest = {key: (at, key, b"%d" % at) for at, key in enumerate(keys)}
    kept = KeptLog()
    kept.write(*((key, b"%d" % at) for at, key in enumerate(keys)))
    result = rolled(kept).clean()
    assert kept.shown == sorted(newest.values())
    assert result is not None
    assert (result.records_read, result.records_removed) == (count, count - len(newest))


@pytest.mark.covers("S28")
def test_keys_with_the_same_hash_are_told_apart():
    """Two keys with one MD5, by which Kafka's offset map would take them for the same."""
    first = bytes.fromhex(
        "d131dd02c5e6eec4693d9a0698aff95c2fcab58712467eab4004583eb8fb7f89"
        "55ad340609f4b30283e488832571415a085125e8f7cdc99fd91dbdf280373c5b"
        "d8823e3156348f5bae6dacd436c919c6dd53e2b487da03fd02396306d248cda0"
        "e99f33420f577ee8ce54b67080a80d1ec69821bcb6a8839396f9652b6ff72a70"
    )
    second = bytes.fromhex(
        "d131dd02c5e6eec4693d9a0698aff95c2fcab50712467eab4004583eb8fb7f89"
        "55ad340609f4b30283e4888325f1415a085125e8f7cdc99fd91dbd7280373c5b"
        "d8823e3156348f5bae6dacd436c919c6dd53e23487da03fd02396306d248cda0"
        "e99f33420f577ee8ce54b67080280d1ec69821bcb6a8839396f965ab6ff72a70"
    )
    assert first != second
    assert hashlib.md5(first).digest() == hashlib.md5(second).digest()
    kept = KeptLog()
    kept.write((first, b"a"), (second, b"b"))
    rolled(kept).clean()
    assert kept.shown == [(0, first, b"a"), (1, second, b"b")]


def test_records_without_a_key_go():
    """They can only be there from before the topic was compacted."""
    kept = KeptLog()
    kept.write((None, b"a"), (b"k", b"b"), (None, b"c"))
    rolled(kept).clean()
    assert kept.shown == [(1, b"k", b"b")]


def test_an_empty_key_is_a_key():
    kept = KeptLog()
    kept.write((b"", b"a"), (b"", b"b"))
    rolled(kept).clean()
    assert kept.shown == [(1, b"", b"b")]


@pytest.mark.parametrize("codec", range(5))
def test_a_batch_keeps_its_codec_timestamps_and_headers(codec):
    kept = KeptLog()
    records = [
        Record(at, NOW_MS + at * 100_000, b"k%d" % (at % 3), b"v" * 100, (("h", b"x"), ("n", None)))
        for at in range(9)
    ]
    kept.put(build_batch(records, codec=codec))
    rolled(kept).clean()
    (header,) = kept.headers
    assert (header.codec, header.count, header.last_offset_delta) == (codec, 3, 8)
    assert kept.records == records[6:]
    assert header.max_timestamp == records[8].timestamp


def test_the_largest_timestamp_of_a_batch_is_that_of_its_remaining_records():
    kept = KeptLog()
    kept.write((b"a", b"1", 5000), (b"b", b"1", 1000), (b"a", b"2", 2000))
    rolled(kept).clean()
    (header,) = kept.headers
    assert header.max_timestamp == 2000
    assert [record.timestamp for record in kept.records] == [1000, 2000]


def test_with_log_append_time_the_batch_keeps_its_time():
    kept = KeptLog()
    kept.write(
        (b"a", b"1", 5),
        (b"a", b"2", 6),
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        append_time=7777,
    )
    rolled(kept).clean()
    (header,) = kept.headers
    assert (header.timestamp_type, header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, 7777)
    assert [record.timestamp for record in kept.records] == [7777]


def test_what_nothing_went_from_is_stored_as_it_was():
    kept = KeptLog()
    kept.write((b"a", b"1"), (b"b", b"1"))
    kept.write((b"c", b"x" * 50_000))
    before = kept.content
    result = rolled(kept).clean()
    assert kept.content == before
    assert result is not None
    assert (result.records_removed, result.bytes_removed, result.batches_removed) == (0, 0, 0)


# -- how far it goes -------------------------------------------------------------------------------


def test_the_active_segment_is_left_alone():
    kept = KeptLog()
    kept.write((b"k", b"1"), (b"k", b"2"))
    assert kept.clean() is None
    kept.roll()
    kept.write((b"k", b"3"))
    kept.clean()
    assert kept.shown == [(1, b"k", b"2"), (2, b"k", b"3")]


def test_nothing_above_the_last_stable_offset_is_cleaned():
    kept = KeptLog()
    kept.write((b"k", b"1"), (b"k", b"2"))
    kept.roll()
    kept.write_as(7, 0, (b"k", b"3"), transactional=True)
    kept.write((b"k", b"4"))
    kept.roll()
    assert kept.dirt.first_uncleanable_offset == 2
    kept.clean()
    assert [offset for offset, _, _ in kept.shown] == [1, 2, 3]


def test_nothing_above_the_high_watermark_is_cleaned():
    kept = KeptLog()
    kept.write((b"k", b"1"))
    kept.roll()
    kept.write((b"k", b"2"))
    kept.roll()
    kept.high_watermark = 1
    assert kept.dirt.first_uncleanable_offset == 1
    kept.clean()
    assert [offset for offset, _, _ in kept.shown] == [0, 1]


def test_records_are_left_alone_until_min_compaction_lag_ms_has_passed():
    kept = KeptLog(min_compaction_lag_ms=1000)
    kept.write((b"k", b"1"))
    kept.roll()
    kept.now_ms += 500
    kept.write((b"k", b"2"))
    kept.roll()
    kept.now_ms += 500
    assert kept.dirt.first_uncleanable_offset == 1
    kept.now_ms += 500
    assert kept.dirt.first_uncleanable_offset == 2
    kept.clean()
    assert kept.shown == [(1, b"k", b"2")]


def test_a_log_is_due_when_more_than_the_ratio_of_its_bytes_is_dirty():
    kept = KeptLog(min_cleanable_dirty_ratio="0.5")
    kept.write((b"a", b"1"))
    kept.roll()
    assert (kept.dirt.ratio, kept.dirt.is_due(kept.configs)) == (1.0, True)
    kept.clean()
    assert (kept.dirt.ratio, kept.dirt.is_due(kept.configs)) == (0.0, False)
    kept.write((b"b", b"1"))
    assert kept.dirt.cleanable_bytes == 0
    kept.roll()
    assert (kept.dirt.ratio, kept.dirt.is_due(kept.configs)) == (0.5, False)
    kept.write((b"c", b"1"))
    kept.roll()
    assert kept.dirt.is_due(kept.configs)


def test_a_log_is_due_when_something_waits_for_longer_than_max_compaction_lag_ms():
    kept = KeptLog(max_compaction_lag_ms=1000, min_cleanable_dirty_ratio="1")
    kept.write((b"a", b"1"))
    kept.roll()
    kept.now_ms += 1000
    assert not kept.dirt.is_due(kept.configs)
    kept.now_ms += 1
    assert kept.dirt.is_due(kept.configs)


def an_hour_ahead(_log: ReplicaLog, _index: int) -> int:
    """The cleaner's clock was an hour ahead at each append."""
    return HOUR_MS


def dirt_ahead(kept: KeptLog, after_ms: int) -> LogToClean:
    """What can be cleaned so long after an append, on a clock that is an hour ahead."""
    now_ms = NOW_MS + HOUR_MS + after_ms
    return log_to_clean(kept.log, kept.configs, kept.last_stable_offset, now_ms, an_hour_ahead)


def test_min_compaction_lag_ms_counts_on_a_clock_that_was_ahead():
    kept = KeptLog(min_compaction_lag_ms=1000)
    kept.write((b"k", b"1"))
    kept.roll()
    assert [dirt_ahead(kept, at).first_uncleanable_offset for at in (999, 1000)] == [0, 1]
    due_ms = next_due_ms(kept.log, kept.configs, NOW_MS + HOUR_MS, an_hour_ahead)
    assert due_ms == NOW_MS + HOUR_MS + 1000


def test_max_compaction_lag_ms_counts_on_a_clock_that_was_ahead():
    kept = KeptLog(max_compaction_lag_ms=1000, min_cleanable_dirty_ratio="1")
    kept.write((b"k", b"1"))
    kept.roll()
    assert [dirt_ahead(kept, at).need_compaction_now for at in (1000, 1001)] == [False, True]
    due_ms = next_due_ms(kept.log, kept.configs, NOW_MS + HOUR_MS, an_hour_ahead)
    assert due_ms == NOW_MS + HOUR_MS + 1001


def test_max_compaction_lag_ms_closes_the_active_segment_too():
    kept = KeptLog(max_compaction_lag_ms=1000)
    kept.write((b"a", b"1", NOW_MS))
    kept.write((b"a", b"2", NOW_MS + 1000))
    assert len(kept.log.segments) == 1
    kept.write((b"a", b"3", NOW_MS + 1001))
    assert [segment.base_offset for segment in kept.log.segments] == [0, 2]


def test_later_rounds_begin_where_the_last_ended_but_look_at_all_that_is_older():
    kept = KeptLog()
    kept.write((b"a", b"1"), (b"b", b"1"), (b"c", b"1"))
    rolled(kept).clean()
    kept.write((b"b", b"2"), (b"d", b"1"))
    kept.roll()
    assert kept.dirt.first_dirty_offset == 3
    kept.clean()
    assert kept.shown == [(0, b"a", b"1"), (2, b"c", b"1"), (3, b"b", b"2"), (4, b"d", b"1")]
    assert kept.dirt.first_dirty_offset == 5


def test_with_more_keys_than_there_is_room_for_a_round_ends_early_and_the_next_goes_on():
    kept = KeptLog()
    for _ in range(2):
        for key in range(10):
            kept.write((b"k%d" % key, b"v"))
    kept.roll()
    result = kept.clean(keys_max=4)
    assert result is not None
    assert (result.end_offset, kept.dirt.first_dirty_offset) == (4, 4)
    assert len(kept.shown) == 20
    rounds = 0
    while kept.dirt.cleanable_bytes:
        kept.clean(keys_max=4)
        rounds += 1
    assert [offset for offset, _, _ in kept.shown] == list(range(10, 20))
    assert rounds == 4


def test_one_key_of_room_too_little_for_a_batch_ends_without_effect():
    kept = KeptLog()
    kept.write((b"a", b"1"), (b"b", b"1"))
    before = kept.content
    assert rolled(kept).clean(keys_max=1) is None
    assert (kept.content, kept.dirt.first_dirty_offset) == (before, 0)


def test_cleaned_segments_are_joined_up_to_segment_bytes():
    kept = KeptLog(internal_segment_bytes=700)
    for version in range(30):
        kept.write((b"k%d" % (version % 5), b"x" * 100))
    before = [segment.base_offset for segment in kept.log.segments]
    assert len(before) >= 6
    kept.roll()
    kept.clean()
    kept.clean()
    after = kept.log.segments
    assert [after[0].base_offset, after[-1].base_offset] == [0, 30]
    assert len(after) < len(before)
    assert all(segment.size <= 700 for segment in after)
    assert sum(segment.size for segment in after) == kept.log.size == len(kept.content)


# -- tombstones ------------------------------------------------------------------------------------


@pytest.mark.covers("S28")
def test_a_tombstone_stays_for_delete_retention_ms_after_it_was_first_cleaned():
    kept = KeptLog(delete_retention_ms=1000)
    kept.write((b"a", b"1"), (b"b", b"1"))
    kept.write((b"a", None), (b"c", b"1"))
    kept.now_ms += DAY_MS
    rolled(kept).clean()
    assert kept.shown == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    header = kept.headers[1]
    assert header.has_delete_horizon
    assert header.base_timestamp == kept.now_ms + 1000
    assert [record.timestamp for record in kept.records] == [NOW_MS] * 3

    kept.now_ms += 999
    kept.clean()
    assert (2, b"a", None) in kept.shown
    kept.now_ms += 1
    kept.clean()
    assert kept.shown == [(1, b"b", b"1"), (3, b"c", b"1")]
    assert kept.headers[1].has_delete_horizon
    assert [record.timestamp for record in kept.records] == [NOW_MS] * 2


def test_a_tombstone_with_a_newer_value_goes_at_once():
    kept = KeptLog()
    kept.write((b"a", None))
    kept.write((b"a", b"2"))
    rolled(kept).clean()
    assert kept.shown == [(1, b"a", b"2")]


def test_an_outlived_tombstone_takes_no_older_value_back_to_life():
    kept = KeptLog(delete_retention_ms=0)
    kept.write((b"a", b"1"))
    kept.write((b"a", None))
    kept.write((b"z", b"1"))
    rolled(kept).clean()
    kept.clean()
    assert kept.shown == [(2, b"z", b"1")]


@pytest.mark.parametrize("codec", [0, 3])
def test_a_horizon_is_set_on_compressed_batches_too(codec):
    kept = KeptLog()
    kept.write((b"a", None, 1000), (b"b", b"1", 900_000), codec=codec)
    rolled(kept).clean()
    (header,) = kept.headers
    assert (header.has_delete_horizon, header.codec) == (True, codec)
    assert header.max_timestamp == 900_000
    assert [record.timestamp for record in kept.records] == [1000, 900_000]


# -- producers -------------------------------------------------------------------------------------


def test_the_last_batch_of_a_producer_stays_empty_for_its_sequence():
    kept = KeptLog()
    kept.write_as(7, 0, (b"a", b"1"), (b"b", b"1"))
    kept.write_as(7, 2, (b"a", b"2"), (b"b", b"2"), codec=2)
    kept.write((b"a", b"3"), (b"b", b"3"))
    rolled(kept).clean()
    assert kept.shown == [(4, b"a", b"3"), (5, b"b", b"3")]
    empty, _ = kept.headers
    assert (empty.base_offset, empty.last_offset, empty.count, empty.size) == (2, 3, 0, 61)
    assert (empty.producer_id, empty.base_sequence, empty.last_sequence) == (7, 2, 3)
    assert (empty.codec, empty.base_timestamp, empty.max_timestamp) == (0, -1, NOW_MS)
    kept.log.producers.clear()
    for batch in kept.log.batches():
        kept.log.producers.replay(batch)
    assert kept.log.producers.entries[7].last_sequence == 3


def test_the_empty_batch_goes_once_its_producer_has_written_again_or_expired():
    kept = KeptLog()
    kept.write_as(7, 0, (b"a", b"1"))
    kept.write_as(8, 0, (b"a", b"2"))
    kept.write((b"a", b"3"))
    rolled(kept).clean()
    assert [header.producer_id for header in kept.headers] == [7, 8, -1]
    kept.write_as(7, 1, (b"x", b"1"))
    rolled(kept).clean()
    assert [header.producer_id for header in kept.headers] == [8, -1, 7]
    kept.log.producers.clear()
    kept.clean()
    assert [header.producer_id for header in kept.headers] == [-1, 7]


def test_the_last_batch_of_a_round_stays_so_that_its_end_is_known():
    kept = KeptLog()
    kept.write((b"a", b"1"))
    kept.write((None, b"nobody"))
    rolled(kept).clean()
    assert [(header.base_offset, header.count) for header in kept.headers] == [(0, 1), (1, 0)]
    kept.write((b"b", b"1"))
    rolled(kept).clean()
    assert [(header.base_offset, header.count) for header in kept.headers] == [(0, 1), (2, 1)]


# -- transactions ----------------------------------------------------------------------------------


def test_data_of_aborted_transactions_goes_and_hides_no_older_record():
    kept = KeptLog()
    kept.write((b"a", b"1"))
    kept.write_as(7, 0, (b"a", b"aborted"), transactional=True)
    kept.end(7, ControlType.ABORT)
    kept.write_as(8, 0, (b"b", b"2"), transactional=True)
    kept.end(8, ControlType.COMMIT)
    rolled(kept).clean()
    assert kept.shown == [(0, b"a", b"1"), (3, b"b", b"2")]


def test_an_abort_marker_goes_after_its_data_and_its_delete_horizon():
    kept = KeptLog(delete_retention_ms=1000)
    kept.write_as(7, 0, (b"a", b"1"), transactional=True)
    kept.write_as(7, 1, (b"a", b"2"), transactional=True)
    kept.end(7, ControlType.ABORT)
    kept.write((b"z", b"1"))
    kept.roll()

    def markers() -> list[tuple[int, int, bool]]:
        return [
            (h.base_offset, h.count, h.has_delete_horizon) for h in kept.headers if h.is_control
        ]

    kept.clean()  # the data goes; its last batch stays for the sequence
    assert [(h.base_offset, h.count) for h in kept.headers] == [(1, 0), (2, 1), (3, 1)]
    kept.log.producers.remove_from(0)  # expired, and with it what the empty batch stayed for
    kept.log.producers.aborted.append(AbortedTransaction(7, 0, 2, 3))
    kept.clean()
    assert markers() == [(2, 1, False)]
    assert len(kept.log.producers.aborted) == 1
    kept.clean()
    assert markers() == [(2, 1, True)]
    assert kept.log.producers.aborted == []
    kept.now_ms += 1000
    kept.clean()
    assert [header.base_offset for header in kept.headers] == [3]


def test_a_marker_without_data_gets_a_horizon_and_then_goes():
    kept = KeptLog(delete_retention_ms=1000)
    kept.write_as(7, 0, (b"a", b"1"), transactional=True)
    kept.end(7, ControlType.COMMIT)
    kept.write_as(7, 1, (b"a", b"2"), transactional=True)
    kept.end(7, ControlType.COMMIT)

    def markers() -> list[tuple[int, int, bool]]:
        return [
            (h.base_offset, h.count, h.has_delete_horizon) for h in kept.headers if h.is_control
        ]

    kept.roll()
    kept.clean()  # the first transaction's data goes in this round
    assert markers() == [(1, 1, False), (3, 1, False)]
    kept.clean()  # now its marker has none: the clock starts
    assert markers() == [(1, 1, True), (3, 1, False)]
    kept.now_ms += 999
    kept.clean()
    assert markers() == [(1, 1, True), (3, 1, False)]
    kept.now_ms += 1
    kept.clean()
    assert markers() == [(3, 1, False)]
    assert kept.shown == [(2, b"a", b"2")]


def test_the_aborted_index_forgets_transactions_without_data():
    kept = KeptLog()
    kept.write_as(7, 0, (b"a", b"1"), transactional=True)
    kept.end(7, ControlType.ABORT)
    kept.write_as(7, 1, (b"b", b"1"), transactional=True)
    kept.end(7, ControlType.ABORT)
    kept.write((b"z", b"1"))
    kept.roll()
    kept.write_as(9, 0, (b"c", b"1"), transactional=True)
    kept.end(9, ControlType.ABORT)
    assert [entry.first_offset for entry in kept.log.producers.aborted] == [0, 2, 5]
    kept.clean()
    assert [entry.first_offset for entry in kept.log.producers.aborted] == [0, 2, 5]
    kept.clean()  # of the first nothing was left, of the second the batch with the sequence
    assert [entry.first_offset for entry in kept.log.producers.aborted] == [2, 5]


def test_an_aborted_transaction_of_an_earlier_round_hides_nothing_of_its_producer():
    """Its marker and its index entry stay as long as the batch with the producer's sequence."""
    kept = KeptLog()
    kept.write((b"a", b"1"))
    kept.write_as(7, 0, (b"a", b"aborted"), transactional=True)
    kept.end(7, ControlType.ABORT)
    rolled(kept).clean()
    kept.write_as(7, 1, (b"a", b"2"), transactional=True)
    kept.end(7, ControlType.COMMIT)
    rolled(kept).clean()
    assert kept.shown == [(3, b"a", b"2")]


def test_the_marker_that_alone_knows_a_producers_epoch_stays_empty():
    kept = KeptLog(delete_retention_ms=0)
    kept.write_as(7, 0, (b"a", b"1"), transactional=True)
    kept.end(7, ControlType.ABORT, epoch=1)  # a bumped epoch: the batches are forgotten
    kept.write((b"z", b"1"))
    kept.roll()
    for _ in range(3):
        kept.clean()
    marker, last = kept.headers
    assert (marker.is_control, marker.count, marker.producer_epoch) == (True, 0, 1)
    assert (last.base_offset, last.count) == (2, 1)


# -- while others work on the log ------------------------------------------------------------------


def test_appends_during_a_cleaning_stay_and_wait_for_the_next():
    kept = KeptLog()
    for _ in range(100):
        kept.write((b"k", b"x" * 100))
    kept.roll()
    cleaning = kept.cleaning()
    appended = 0
    while not cleaning.step(20):
        kept.write((b"k", b"later"))
        appended += 1
    assert appended > 10
    assert [offset for offset, _, _ in kept.shown] == list(range(99, 100 + appended))
    assert kept.log.end_offset == 100 + appended
    assert kept.fetched_bases(50)[:2] == [99, 100]


@pytest.mark.parametrize("how", ["truncate", "truncate fully", "retain", "free", "clean"])
def test_a_cleaning_breaks_off_when_the_log_loses_batches(how):
    kept = KeptLog()
    for _ in range(10):
        kept.write((b"k", b"v"))
        kept.roll()
    cleaning = kept.cleaning()
    assert not cleaning.step(5)
    if how == "truncate":
        kept.log.truncate(9)
    elif how == "truncate fully":
        kept.log.truncate_fully(3)
    elif how == "retain":
        kept.log.drop_segments(2)
    elif how == "free":
        kept.log.move_start(4)
    else:
        kept.clean()
    before = kept.content
    assert cleaning.step(1000)
    assert cleaning.result is None
    assert kept.content == before


def test_a_batch_that_cannot_be_read_stops_the_cleaning_and_changes_nothing():
    """It was accepted unwalked, before the topic was compacted."""
    kept = KeptLog()
    kept.write((b"k", b"1"))
    broken = build_batch([Record(0, NOW_MS, b"k", b"2")], codec=4)
    broken[61:] = bytes(len(broken) - 61)
    update_crc(broken)
    kept.put(broken)
    before = kept.content
    kept.roll()
    with pytest.raises(RecordsError):
        kept.clean()
    assert kept.content == before


# -- the bounds of a cleaning ----------------------------------------------------------------------


def test_what_lies_below_the_log_start_is_not_dirty():
    kept = KeptLog()
    for key in (b"a", b"b", b"c"):
        kept.write((key, b"1"))
        kept.roll()
    kept.log.move_start(2)
    assert (kept.dirt.first_dirty_offset, kept.dirt.first_uncleanable_offset) == (2, 3)


def test_records_without_a_timestamp_are_never_late():
    kept = KeptLog(max_compaction_lag_ms=1000, min_cleanable_dirty_ratio="1")
    kept.write((b"a", b"1", -1))
    kept.roll()
    kept.now_ms += DAY_MS
    assert not kept.dirt.need_compaction_now


def test_a_late_log_of_which_nothing_can_be_cleaned_is_not_due():
    kept = KeptLog(max_compaction_lag_ms=1000)
    kept.write((b"a", b"1"))
    kept.roll()
    kept.high_watermark = 0
    kept.now_ms += 1001
    assert (kept.dirt.need_compaction_now, kept.dirt.is_due(kept.configs)) == (True, False)


def test_a_log_that_was_cut_inside_of_a_batch_is_clean_up_to_the_cut():
    kept = KeptLog()
    kept.write((b"a", b"1"))
    kept.write((b"a", b"2"), (b"b", b"1"))
    kept.log.truncate(2)
    kept.roll()
    kept.write((b"c", b"1"))
    result = kept.clean()
    assert result is not None
    assert (result.end_offset, kept.log.first_dirty_offset) == (2, 2)


def test_a_cleaning_that_has_nothing_to_do_makes_nothing_dirty_again():
    """The log was cut within its clean part."""
    kept = KeptLog()
    for key in (b"a", b"b"):
        kept.write((key, b"1"))
        kept.write((key, b"2"), (key + b"x", b"1"))
        kept.roll()
    kept.clean()
    assert kept.log.first_dirty_offset == 6
    kept.log.truncate(4)
    assert kept.clean() is None
    assert kept.log.first_dirty_offset == 4


def test_adjacent_segments_become_one_of_at_most_segment_bytes():
    kept = KeptLog()
    for key in b"01234":
        kept.write((bytes([key]), b"v"))
        kept.roll()
    configs = {"cleanup_policy": "compact", "internal_segment_bytes": 2 * kept.headers[0].size}
    kept.configs = kept.topic_configs(configs)
    kept.clean()
    bases = [segment.base_offset for segment in kept.log.segments]
    assert bases == [0, 2, 4, 5]


def test_a_segment_of_several_has_the_times_of_its_records_and_of_the_last_append():
    kept = KeptLog()
    kept.write((b"a", b"1", NOW_MS + 1))
    for key, timestamp in ((b"a", NOW_MS + 2), (b"b", NOW_MS + 9), (b"c", NOW_MS + 3)):
        kept.roll()
        kept.now_ms += 1000
        kept.write((key, b"2", timestamp))
    kept.roll()
    kept.clean()
    layout = kept.log.layout
    assert len(layout) == 2
    assert (layout.first_timestamps[0], layout.max_timestamps[0]) == (NOW_MS + 2, NOW_MS + 9)
    assert layout.modified_ms[0] == NOW_MS + 3000


def test_the_offsets_of_adjacent_batches_that_go_are_one_range():
    kept = KeptLog()
    for version in (b"1", b"2", b"3"):
        kept.write((b"k", version))
    kept.write((b"other", b"1"))
    kept.write((b"k", b"4"))
    kept.roll()
    assert removed_by(kept) == [0, 2]


def removed_by(kept: KeptLog) -> list[int]:
    """The first and the last offset of each range that a cleaning removes."""
    cleaning = kept.cleaning()
    while not cleaning.step(1):
        pass
    return list(cleaning.removed)


def test_removed_offsets_that_go_on_in_the_next_batch_are_one_range():
    kept = KeptLog()
    kept.write((b"a", b"1"), (b"b", b"1"), (b"c", b"1"))
    kept.write((b"d", b"1"), (b"e", b"1"))
    kept.write((b"a", b"2"), (b"c", b"2"), (b"d", b"2"))
    kept.roll()
    assert removed_by(kept) == [0, 0, 2, 3]


def test_neither_markers_nor_batches_that_were_empty_are_removed_records():
    kept = KeptLog(delete_retention_ms=1000)
    kept.write_as(7, 0, (b"k", b"1"), transactional=True)
    kept.end(7, ControlType.COMMIT)
    kept.write((b"k", b"2"))
    kept.roll()
    assert removed_by(kept) == [0, 0]  # the batch stays, empty, for the producer's sequence
    kept.write_as(7, 1, (b"k", b"3"), transactional=True)
    kept.end(7, ControlType.COMMIT)
    kept.roll()
    assert removed_by(kept) == [2, 2]
    assert [header.base_offset for header in kept.headers] == [1, 3, 4]
    for _ in range(2):  # without its batch the marker gets a delete horizon, and goes after it
        kept.now_ms += 1001
        assert removed_by(kept) == []
    assert [header.base_offset for header in kept.headers] == [3, 4]


def test_an_aborted_transaction_whose_marker_is_not_cleaned_yet_stays_known():
    kept = KeptLog()
    kept.write_as(7, 0, (b"k", b"1"), transactional=True)
    kept.roll()
    kept.end(7, ControlType.ABORT)
    kept.clean()
    assert kept.log.producers.aborted == [AbortedTransaction(7, 0, 1, 2)]
