"""The epoch history of a log and the answers it gives."""

from __future__ import annotations

import pytest

from mockbroker.core.log.leader_epoch_cache import LeaderEpochCache


def cache(*entries: tuple[int, int]) -> LeaderEpochCache:
    made = LeaderEpochCache()
    for epoch, start in entries:
        made.assign(epoch, start)
    return made


@pytest.mark.covers("S86")
@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, (-1, -1)),
        (0, (0, 2)),
        (1, (1, 5)),
        (2, (1, 5)),
        (3, (3, 9)),
        (7, (-1, -1)),
    ],
)
def test_end_offset_of_an_epoch_is_where_the_next_one_starts(asked, answer):
    assert cache((0, 0), (1, 2), (3, 5)).end_offset_for(asked, 9) == answer


def test_below_the_first_known_epoch_the_one_asked_for_is_echoed_with_the_first_start():
    assert cache((4, 10), (6, 20)).end_offset_for(2, 30) == (2, 10)


def test_an_empty_history_knows_no_epoch():
    assert cache().end_offset_for(0, 5) == (-1, -1)
    assert cache().latest == -1


def test_an_epoch_without_records_gives_way_to_its_successor():
    assert cache((0, 0), (1, 0), (2, 5), (3, 5)).entries == [(1, 0), (3, 5)]


def test_an_entry_that_goes_back_removes_what_contradicts_it():
    history = cache((0, 0), (1, 10), (2, 20))
    history.assign(3, 15)
    assert history.entries == [(0, 0), (1, 10), (3, 15)]
    assert history.latest == 3


def test_the_same_epoch_again_changes_nothing():
    history = cache((0, 0), (5, 10))
    history.assign(5, 12)
    assert history.entries == [(0, 0), (5, 10)]


def test_negative_entries_are_refused():
    with pytest.raises(ValueError, match="epoch -1"):
        cache((-1, 0))


def test_cutting_the_start_moves_the_entry_that_is_in_force_there():
    history = cache((0, 0), (1, 10), (2, 20))
    history.truncate_from_start(15)
    assert history.entries == [(1, 15), (2, 20)]
    history.truncate_from_start(20)
    assert history.entries == [(2, 20)]
    assert history.earliest(20) == 2
    assert history.earliest(19) == -1


def test_cutting_the_end_removes_epochs_that_start_there_or_later():
    history = cache((0, 0), (1, 10), (2, 20))
    history.truncate_from_end(10)
    assert history.entries == [(0, 0)]
    assert history.latest == 0
    history.truncate_from_end(0)
    assert history.latest == -1


def test_each_offset_belongs_to_the_epoch_before_it():
    history = cache((1, 5), (4, 8))
    assert [history.epoch_at(offset) for offset in (4, 5, 7, 8, 100)] == [-1, 1, 1, 4, 4]


@pytest.mark.parametrize(
    ("begin", "end", "epochs"),
    [(0, 2, [(0, 0)]), (2, 5, [(1, 2)]), (1, 6, [(0, 1), (1, 2), (3, 5)]), (7, 9, [(3, 7)])],
)
def test_a_range_of_offsets_has_the_epochs_of_its_records(begin, end, epochs):
    assert cache((0, 0), (1, 2), (3, 5)).between(begin, end) == epochs
