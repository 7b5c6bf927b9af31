"""A broker's own replica, and the leader's state of a follower."""

from __future__ import annotations

import pytest

from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.replication.replica import NEVER, FollowerState, Replica


def log_of(end_offset: int) -> ReplicaLog:
    log = ReplicaLog()
    log.end_offset = end_offset
    return log


def state_at(end_offset: int) -> FollowerState:
    return FollowerState.caught_up(2, log_of(end_offset), 1000)


def test_a_follower_with_the_whole_log_counts_as_caught_up():
    state = state_at(10)
    assert (state.fetched_offset, state.fetched_log_start) == (10, 0)
    assert state.is_caught_up(10, 1000, 500)
    assert state.is_caught_up(11, 1499, 500)
    assert not state.is_caught_up(11, 1500, 500)


def test_a_follower_that_fetches_at_the_end_is_caught_up_then():
    state = state_at(10)
    state.update_fetch_state(12, 1, 12, 5000)
    assert (state.fetched_offset, state.fetched_log_start, state.caught_up_ms) == (12, 1, 5000)


def test_a_follower_at_the_end_of_its_last_fetch_was_caught_up_then():
    state = state_at(10)
    state.update_fetch_state(10, 0, 20, 5000)
    assert state.caught_up_ms == 1000, "at the end of before, at the time of before"
    state.update_fetch_state(20, 0, 30, 6000)
    assert state.caught_up_ms == 5000
    state.update_fetch_state(25, 0, 40, 7000)
    assert state.caught_up_ms == 5000


def test_a_follower_that_has_never_fetched_at_the_end_was_never_caught_up():
    state = FollowerState.reset(2, in_sync=False, now_ms=4000)
    state.update_fetch_state(5, 0, 10, 5000)
    state.update_fetch_state(6, 0, 10, 6000)
    assert state.caught_up_ms == NEVER


@pytest.mark.parametrize(("in_sync", "caught_up_ms"), [(True, 9000), (False, NEVER)])
def test_a_new_leader_knows_only_which_followers_are_in_sync(in_sync, caught_up_ms):
    state = FollowerState.reset(2, in_sync=in_sync, now_ms=9000)
    assert (state.fetched_offset, state.caught_up_ms) == (-1, caught_up_ms)


def test_the_watermark_stays_within_the_log():
    replica = Replica(2, log_of(10), 0)
    replica.log.start_offset = 3
    assert replica.update_high_watermark(99)
    assert replica.high_watermark == replica.last_stable_offset == 10
    assert not replica.update_high_watermark(99)
    assert replica.update_high_watermark(0)
    assert replica.high_watermark == 3


def test_a_truncation_lowers_the_watermark():
    replica = Replica(2, log_of(10), 8)
    assert replica.truncate(5)
    assert (replica.log.end_offset, replica.high_watermark) == (5, 5)
    assert not replica.truncate(5)
    replica.truncate_fully_and_start_at(40)
    assert (replica.log.start_offset, replica.high_watermark) == (40, 40)
