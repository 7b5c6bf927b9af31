"""A broker's own copy, as it is and as the leader knows it."""

from __future__ import annotations

import pytest

from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.replication.replica import NEVER, Replica


def copy(end_offset: int, high_watermark: int = 0, now_ms: int = 1000) -> Replica:
    log = ReplicaLog()
    log.end_offset = end_offset
    return Replica(2, log, high_watermark, now_ms)


def test_a_fresh_copy_counts_as_caught_up():
    replica = copy(10)
    assert (replica.fetched_offset, replica.fetched_log_start) == (10, 0)
    assert replica.is_caught_up(10, 1000, 500)
    assert replica.is_caught_up(11, 1499, 500)
    assert not replica.is_caught_up(11, 1500, 500)


def test_who_fetches_at_the_end_is_caught_up_then():
    replica = copy(10)
    replica.fetched(12, 1, 12, 5000)
    assert (replica.fetched_offset, replica.fetched_log_start, replica.caught_up_ms) == (
        12,
        1,
        5000,
    )


def test_who_has_come_to_where_the_end_was_at_its_last_fetch_was_caught_up_then():
    replica = copy(10)
    replica.fetched(10, 0, 20, 5000)
    assert replica.caught_up_ms == 1000, "at the end of before, at the time of before"
    replica.fetched(20, 0, 30, 6000)
    assert replica.caught_up_ms == 5000
    replica.fetched(25, 0, 40, 7000)
    assert replica.caught_up_ms == 5000


@pytest.mark.parametrize(("in_sync", "caught_up_ms"), [(True, 9000), (False, NEVER)])
def test_a_new_leader_knows_only_who_is_in_sync(in_sync, caught_up_ms):
    replica = copy(10)
    replica.forget_fetches(in_sync=in_sync, now_ms=9000)
    assert (replica.fetched_offset, replica.caught_up_ms) == (-1, caught_up_ms)


def test_the_watermark_stays_within_the_log():
    replica = copy(10)
    replica.log.start_offset = 3
    assert replica.follow_high_watermark(99)
    assert replica.high_watermark == replica.last_stable_offset == 10
    assert not replica.follow_high_watermark(99)
    assert replica.follow_high_watermark(0)
    assert replica.high_watermark == 3


def test_a_cut_takes_the_watermark_with_it():
    replica = copy(10, high_watermark=8)
    assert replica.truncate(5)
    assert (replica.log.end_offset, replica.high_watermark) == (5, 5)
    assert not replica.truncate(5)
    replica.start_anew(40)
    assert (replica.log.start_offset, replica.high_watermark) == (40, 40)
