"""Records in flight: transitions that are kept or rolled back, and batches that are split."""

from __future__ import annotations

import pytest

from mockbroker.core.share.in_flight import (
    NO_LOCK,
    InFlightBatch,
    InFlightBatches,
    InFlightState,
)
from mockbroker.core.share.states import RecordEvent, RecordState

LIMIT = 5


def acquired(count: int = 1, lock_ms: int = 100) -> InFlightState:
    return InFlightState(RecordState.ACQUIRED, count, "m1", lock_ms)


def test_an_acquired_record_counts_the_delivery_and_has_an_owner_and_a_lock():
    state = InFlightState(RecordState.AVAILABLE, 2)
    state.acquire("m1", 100)
    assert (state.state, state.delivery_count) == (RecordState.ACQUIRED, 3)
    assert state.is_acquired_by("m1")
    assert not state.is_acquired_by("m2")
    assert not state.is_acquirable
    assert [state.lock_is_over(now) for now in (99, 100)] == [False, True]


@pytest.mark.parametrize(
    ("event", "state"),
    [
        (RecordEvent.ACCEPT, RecordState.ACKNOWLEDGED),
        (RecordEvent.RELEASE, RecordState.AVAILABLE),
        (RecordEvent.REJECT, RecordState.ARCHIVED),
        (RecordEvent.GAP, RecordState.ARCHIVED),
        (RecordEvent.LEAVE, RecordState.AVAILABLE),
    ],
)
def test_a_written_transition_is_kept_and_ends_the_lock(event, state):
    record = acquired()
    record.begin(event, LIMIT)
    assert (record.state, record.member_id) == (state, "")
    assert record.has_ongoing_transition
    assert not record.is_acquirable
    record.complete(written=True, now_ms=0)
    assert (record.state, record.lock_deadline_ms) == (state, NO_LOCK)
    assert not record.has_ongoing_transition


def test_a_failed_write_gives_the_record_back_to_its_member_with_the_same_lock():
    record = acquired(lock_ms=100)
    record.begin(RecordEvent.ACCEPT, LIMIT)
    record.complete(written=False, now_ms=99)
    assert record.is_acquired_by("m1")
    assert record.lock_deadline_ms == 100


@pytest.mark.parametrize(
    ("count", "state"), [(LIMIT - 1, RecordState.AVAILABLE), (LIMIT, RecordState.ARCHIVED)]
)
def test_a_failed_write_after_the_end_of_the_lock_releases_the_record(count, state):
    record = acquired(count, lock_ms=100)
    record.begin(RecordEvent.ACCEPT, LIMIT)
    record.complete(written=False, now_ms=100)
    assert (record.state, record.member_id, record.lock_deadline_ms) == (state, "", NO_LOCK)


@pytest.mark.parametrize("written", [True, False])
def test_a_record_that_the_log_loses_during_a_write_stays_archived(written):
    record = acquired()
    record.begin(RecordEvent.RELEASE, LIMIT)
    record.archive(RecordEvent.REMOVE)
    record.complete(written=written, now_ms=0)
    assert record.state is RecordState.ARCHIVED


def test_an_archived_record_has_no_owner_and_no_lock():
    record = acquired()
    record.archive(RecordEvent.ABORT)
    assert (record.member_id, record.lock_deadline_ms) == ("", NO_LOCK)


def test_only_an_acquired_record_has_a_lock_to_renew():
    record = acquired()
    record.renew(200)
    assert (record.state, record.lock_deadline_ms) == (RecordState.ACQUIRED, 200)
    record.begin(RecordEvent.RELEASE, LIMIT)
    with pytest.raises(AssertionError, match="RENEW in AVAILABLE"):
        record.renew(300)


@pytest.mark.parametrize("event", [RecordEvent.RELEASE, RecordEvent.LEAVE])
def test_a_record_at_the_delivery_limit_is_archived_in_place_of_its_release(event):
    record = acquired(LIMIT)
    record.begin(event, LIMIT)
    assert record.state is RecordState.ARCHIVED


def test_the_end_of_a_lock_takes_effect_at_once():
    record = acquired()
    record.expire(LIMIT, below_start=False)
    assert record.is_acquirable
    below = acquired()
    below.expire(LIMIT, below_start=True)
    assert below.state is RecordState.ARCHIVED


def test_a_split_batch_has_a_state_for_each_offset_with_lock_and_ongoing_transition():
    batch = InFlightBatch(10, 12, acquired())
    assert batch.whole is not None
    batch.whole.begin(RecordEvent.RELEASE, LIMIT)
    states = batch.split()
    assert batch.whole is None
    assert all(each.has_ongoing_transition and each.lock_deadline_ms == 100 for each in states)
    states[1].archive(RecordEvent.REMOVE)
    for each in states:
        each.complete(written=False, now_ms=0)
    assert [each.state.name for each in states] == ["ACQUIRED", "ARCHIVED", "ACQUIRED"]
    assert batch.split() is states
    assert [offset for offset, _ in batch.states(0, 11)] == [10, 11]


def test_batches_are_found_by_offset():
    batches = InFlightBatches()
    for first, last in ((0, 4), (10, 14), (5, 7)):
        batches.add(InFlightBatch(first, last, acquired()))
    assert [each.first_offset for each in batches] == [0, 5, 10]
    floors = {at: batches.floor(at) for at in (-1, 0, 9, 99)}
    assert [each and each.first_offset for each in floors.values()] == [None, 0, 5, 10]
    assert [each.first_offset for each in batches.beginning_in(5, 10)] == [5, 10]
    following = batches.first_after(5)
    assert following is not None
    assert following.first_offset == 10
    assert batches.first_after(10) is None
    batches.drop_before(10)
    assert (len(batches), batches.first.first_offset, batches.last.last_offset) == (1, 10, 14)


def test_a_batch_replaces_one_that_begins_with_it():
    batches = InFlightBatches()
    for first, last in ((0, 4), (5, 4), (5, 7), (8, 9), (5, 6)):
        batches.add(InFlightBatch(first, last, acquired()))
    assert [(each.first_offset, each.last_offset) for each in batches] == [(0, 4), (5, 6), (8, 9)]
