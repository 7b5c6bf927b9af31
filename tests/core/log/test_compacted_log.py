"""A compacted log has holes: what is read, looked up and cut is what is left, where it was."""

from __future__ import annotations

from tests.support.kept_log import KeptLog


def rolled(log: KeptLog) -> KeptLog:
    log.roll()
    return log


def test_a_fetch_from_an_offset_that_is_gone_begins_with_the_next_batch():
    kept = KeptLog()
    for version in range(5):
        kept.write((b"k", b"%d" % version), (b"only-%d" % version, b"v"))
    rolled(kept).clean()
    kept.write((b"k", b"last"))
    assert kept.fetched_bases(0) == [0, 2, 4, 6, 8, 10]
    kept.write((b"only-1", b"new"), (b"only-2", b"new"))
    rolled(kept).clean()
    assert kept.fetched_bases(0) == [0, 6, 8, 10, 11]
    assert [kept.fetched_bases(offset)[0] for offset in range(11)] == [
        *(0, 0, 6, 6, 6, 6, 6, 6, 8, 8, 10),
    ]
    assert kept.fetched_bases(3, bytes_max=1) == [6]


def test_a_read_goes_on_behind_what_it_returned_across_holes():
    kept = KeptLog()
    for version in range(6):
        kept.write((b"k%d" % (version % 2), b"%d" % version))
    rolled(kept).clean()
    pieces, size = kept.log.read(0, 6, 1, at_least_one=True)
    assert list(kept.fetched_bases(0, 1)) == [4]
    assert kept.log.offset_after(0, size) == 5
    assert kept.log.bytes_between(0, 6) == kept.log.size == 2 * size == 2 * len(pieces[0])


def test_timestamps_are_found_among_what_is_left():
    kept = KeptLog()
    kept.write((b"a", b"1", 1000))
    kept.write((b"b", b"1", 9000))
    kept.write((b"c", b"1", 2000))
    kept.write((b"b", b"2", 3000))
    assert kept.log.find_max_timestamp() == (9000, 1, 0)
    rolled(kept).clean()
    assert kept.log.find_timestamp(1001) == (2000, 2, 0)
    assert kept.log.find_timestamp(2001) == (3000, 3, 0)
    assert kept.log.find_timestamp(3001) is None
    assert kept.log.find_max_timestamp() == (3000, 3, 0)
    kept.write((b"d", b"1", 2500))
    assert kept.log.find_timestamp(2001) == (3000, 3, 0)
    kept.write((b"e", b"1", 4000))
    assert kept.log.find_max_timestamp() == (4000, 5, 0)


def test_a_timestamp_that_only_an_emptied_batch_promises_is_not_found_there():
    kept = KeptLog()
    kept.write_as(7, 0, (b"a", b"1", 5000))
    kept.write((b"a", b"2", 1000))
    kept.write((b"b", b"2", 6000))
    rolled(kept).clean()
    assert [header.count for header in kept.headers] == [0, 1, 1]
    assert kept.log.find_timestamp(2000) == (6000, 2, 0)


def test_compaction_moves_neither_the_log_start_nor_the_epochs():
    kept = KeptLog()
    kept.log.epochs.assign(0, 0)
    kept.write((b"a", b"1"))
    kept.write((b"a", b"2"))
    kept.log.epochs.assign(3, 2)
    kept.write((b"b", b"1"))
    rolled(kept).clean()
    assert kept.log.start_offset == 0
    assert kept.log.epochs.entries == [(0, 0), (3, 2)]
    assert kept.log.epochs.earliest(0) == 0


def test_a_log_can_be_cut_and_go_on_after_it_was_compacted():
    kept = KeptLog()
    for version in range(6):
        kept.write((b"k%d" % (version % 2), b"%d" % version))
    rolled(kept).clean()
    kept.write((b"k0", b"x"), (b"k1", b"x"))
    kept.log.truncate(5)
    assert (kept.shown, kept.log.end_offset) == ([(4, b"k0", b"4")], 5)
    assert kept.dirt.first_dirty_offset == 5
    kept.write((b"k0", b"again"))
    kept.roll()
    kept.clean()
    assert kept.shown == [(5, b"k0", b"again")]
    assert kept.log.size == len(kept.content)


def test_a_record_below_the_log_start_is_not_found_but_that_of_the_next_batch_is():
    kept = KeptLog()
    kept.write((b"a", b"1", 9000), (b"b", b"1", 1000))
    kept.write((b"c", b"1", 8000))
    kept.write((b"d", b"1", 9000))
    kept.log.move_start(1)
    assert kept.log.find_timestamp(7000) == (8000, 2, 0)
