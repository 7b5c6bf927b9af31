"""A follower's fetcher: every event in every state, and its truncation."""

from __future__ import annotations

from itertools import product

import pytest

from mockbroker.core.log.leader_epoch_cache import LeaderEpochCache
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.log.segments import RollLimits
from mockbroker.core.replication.fetcher import (
    TRANSITIONS,
    Advanced,
    Diverged,
    EpochEnd,
    Event,
    Fetch,
    Fetched,
    FetcherAction,
    FetcherState,
    Follow,
    Halt,
    OffsetForLeaderEpoch,
    OutOfRange,
    Pause,
    RefusedPartition,
    ReplicaFetcher,
    RetryDue,
    Truncated,
    Truncation,
    TruncationPoint,
    truncation_point,
)
from mockbroker.core.replication.replica import Replica
from tests.support.requests import NOW_MS, batch_of

LIMITS = RollLimits(segment_bytes=1 << 20, segment_ms=1 << 40)
LEADER = Follow(1, 5)


def log_of(*epochs: int) -> ReplicaLog:
    """A log of one-record batches, written under these epochs."""
    log = ReplicaLog()
    for epoch in epochs:
        batch = batch_of(b"v")
        log.maybe_roll(len(batch), NOW_MS, NOW_MS, LIMITS)
        log.append(memoryview(batch), 0, NOW_MS, epoch)
    return log


def follower(
    *epochs: int, high_watermark: int = 0, truncation: Truncation = Truncation.FETCH
) -> ReplicaFetcher:
    return ReplicaFetcher(Replica(2, log_of(*epochs), high_watermark), LIMITS, truncation)


def in_state(state: FetcherState) -> tuple[ReplicaFetcher, int]:
    """A follower in this state, and the number of the question it waits for."""
    truncation = Truncation.EPOCH if state is FetcherState.TRUNCATING else Truncation.FETCH
    machine = follower(0, 0, 0, high_watermark=1, truncation=truncation)
    if state is FetcherState.IDLE:
        return machine, 0
    (question,) = machine.handle(LEADER, NOW_MS)
    assert isinstance(question, Fetch | OffsetForLeaderEpoch)
    if state is FetcherState.WAITING:
        machine.handle(RefusedPartition(question.number, 6), NOW_MS)
    assert machine.state is state
    return machine, question.number


def event(kind: type[Event], number: int) -> Event:
    made: dict[type[Event], Event] = {
        Follow: LEADER,
        Halt: Halt(),
        Fetched: Fetched(number, None, 1, 0),
        Diverged: Diverged(number, 0, 2),
        OutOfRange: OutOfRange(number, 5, 9),
        EpochEnd: EpochEnd(number, 0, 2),
        RefusedPartition: RefusedPartition(number, 6),
        RetryDue: RetryDue(number),
    }
    return made[kind]


# -- the table -------------------------------------------------------------------------------------


def test_the_table_has_a_cell_for_every_event_in_every_state():
    assert set(TRANSITIONS) == set(Event.__args__)
    assert {len(row) for row in TRANSITIONS.values()} == {len(FetcherState)}


AFTER = {
    FetcherAction.STOP: FetcherState.IDLE,
    FetcherAction.APPEND: FetcherState.FETCHING,
    FetcherAction.DIVERGE: FetcherState.FETCHING,
    FetcherAction.MOVE: FetcherState.FETCHING,
    FetcherAction.TRUNCATE: FetcherState.FETCHING,
    FetcherAction.BACK_OFF: FetcherState.WAITING,
}


@pytest.mark.parametrize(("kind", "state"), list(product(TRANSITIONS, FetcherState)))
def test_every_cell_carries_out_its_action(kind, state):
    machine, number = in_state(state)
    step = TRANSITIONS[kind][list(FetcherState).index(state)]
    asked_before = machine.following
    effects = machine.handle(event(kind, number), NOW_MS)
    if step is FetcherAction.DROP:
        assert (effects, machine.state) == ([], state)
    elif step is FetcherAction.BEGIN:
        # The same leader again changes nothing.
        assert machine.state is (FetcherState.FETCHING if asked_before is None else state)
        assert len(effects) == (asked_before is None)
    elif step is FetcherAction.RETRY:
        (question,) = effects
        assert question.number == number + 1
        assert machine.state is (
            FetcherState.TRUNCATING if state is FetcherState.TRUNCATING else FetcherState.FETCHING
        )
    else:
        assert machine.state is AFTER[step]


@pytest.mark.parametrize("state", FetcherState)
def test_only_the_last_request_is_in_flight_and_only_until_it_is_answered(state):
    machine, number = in_state(state)
    requesting = state in (FetcherState.TRUNCATING, FetcherState.FETCHING)
    assert machine.is_in_flight(number) is requesting
    assert not machine.is_in_flight(number - 1)


@pytest.mark.parametrize("kind", [k for k in TRANSITIONS if k not in (Follow, Halt)])
def test_an_answer_to_an_earlier_request_is_dropped(kind):
    machine, number = in_state(FetcherState.FETCHING)
    before = machine.replica.log.end_offset
    assert machine.handle(event(kind, number - 1), NOW_MS) == []
    assert (machine.state, machine.replica.log.end_offset) == (FetcherState.FETCHING, before)


# -- fetching --------------------------------------------------------------------------------------


def test_a_fetch_has_the_followers_log_end_and_leader_epoch():
    machine = follower(0, 0, 3)
    assert machine.handle(LEADER, NOW_MS) == [Fetch(1, 1, 5, 3, 3, 0)]


def test_fetched_records_are_appended_with_their_epochs_before_the_next_fetch():
    machine = follower(0)
    machine.handle(LEADER, NOW_MS)
    taken = log_of(0, 2, 2).read_slice(1, 1 << 20)
    effects = machine.handle(Fetched(1, taken, 2, 0), NOW_MS)
    assert effects == [Advanced(0), Fetch(2, 1, 5, 3, 2, 0)]
    replica = machine.replica
    assert (replica.log.end_offset, replica.high_watermark) == (3, 2)
    assert replica.log.epochs.entries == [(0, 0), (2, 1)]


def test_the_watermark_follows_the_leaders_but_not_beyond_the_log():
    machine = follower(0, 0)
    machine.handle(LEADER, NOW_MS)
    machine.handle(Fetched(1, None, 9, 0), NOW_MS)
    assert machine.replica.high_watermark == 2
    machine.handle(Fetched(2, None, 1, 0), NOW_MS)
    assert machine.replica.high_watermark == 1, "a new leader may know less"
    assert machine.handle(Fetched(3, None, 1, 0), NOW_MS) == [Fetch(4, 1, 5, 2, 0, 0)]


def test_the_log_start_follows_the_leaders():
    machine = follower(0, 0)
    machine.handle(LEADER, NOW_MS)
    machine.handle(Fetched(1, None, 2, 1), NOW_MS)
    assert machine.replica.log.start_offset == 1


def test_a_follower_below_the_leaders_log_start_begins_again_at_that_offset():
    machine = follower(0, 0)
    machine.handle(LEADER, NOW_MS)
    effects = machine.handle(OutOfRange(1, 7, 9), NOW_MS)
    assert effects == [Truncated(2, 7), Fetch(2, 1, 5, 7, -1, 7)]
    assert machine.replica.high_watermark == 7


def test_a_follower_above_the_leaders_log_end_truncates_to_it():
    machine = follower(0, 0, 0, high_watermark=3)
    machine.handle(LEADER, NOW_MS)
    effects = machine.handle(OutOfRange(1, 0, 1), NOW_MS)
    assert effects == [Truncated(3, 1), Fetch(2, 1, 5, 1, 0, 0)]
    assert machine.replica.high_watermark == 1


def test_a_follower_that_ends_with_the_leaders_log_keeps_all_and_fetches_again():
    """Also its last epoch, which has no record yet."""
    machine = follower(0, 0)
    machine.replica.log.epochs.assign(1, 2)
    machine.handle(LEADER, NOW_MS)
    assert machine.handle(OutOfRange(1, 0, 2), NOW_MS) == [Fetch(2, 1, 5, 2, 1, 0)]
    assert machine.replica.log.epochs.entries == [(0, 0), (1, 2)]


def test_a_leader_of_a_later_epoch_is_followed_at_once():
    machine = follower(0)
    machine.handle(LEADER, NOW_MS)
    (fetch,) = machine.handle(Follow(3, 6), NOW_MS)
    assert (fetch.leader_id, fetch.leader_epoch, fetch.number) == (3, 6, 2)
    assert machine.handle(Fetched(1, None, 1, 0), NOW_MS) == []


@pytest.mark.covers("S85")
def test_a_refused_request_is_repeated_after_a_pause():
    """Each partition by itself: the machine of another one does not notice."""
    machine, other = follower(0, 0), follower(0, 0)
    for each in (machine, other):
        each.truncation = Truncation.EPOCH
        each.handle(LEADER, NOW_MS)
    assert machine.handle(RefusedPartition(1, 56), NOW_MS) == [Pause(1)]
    assert other.handle(EpochEnd(1, 0, 1), NOW_MS)[0] == Truncated(2, 1)
    assert machine.handle(RetryDue(1), NOW_MS) == [OffsetForLeaderEpoch(2, 1, 5, 0)]
    assert machine.handle(EpochEnd(2, 0, 1), NOW_MS)[0] == Truncated(2, 1)


# -- truncating ------------------------------------------------------------------------------------


@pytest.mark.covers("S84")
@pytest.mark.parametrize(
    ("reply", "offset"),
    [((-1, -1), 1), ((0, 5), 3), ((0, 2), 2)],
    ids=["undefined: its own watermark", "beyond its end: keep all", "below: cut there"],
)
def test_the_three_answers_to_offset_for_leader_epoch(reply, offset):
    """Log end 3, high watermark 1."""
    machine = follower(0, 0, 0, high_watermark=1, truncation=Truncation.EPOCH)
    assert machine.handle(LEADER, NOW_MS) == [OffsetForLeaderEpoch(1, 1, 5, 0)]
    machine.handle(EpochEnd(1, *reply), NOW_MS)
    assert machine.state is FetcherState.FETCHING
    assert machine.replica.log.end_offset == offset


def test_a_diverging_epoch_in_a_fetch_truncates_the_log():
    machine = follower(0, 0, 1, 1, high_watermark=4)
    machine.handle(LEADER, NOW_MS)
    effects = machine.handle(Diverged(1, 1, 3), NOW_MS)
    assert effects == [Truncated(4, 3), Fetch(2, 1, 5, 3, 1, 0)]
    assert machine.replica.high_watermark == 3


def test_a_follower_that_led_without_writing_sends_its_last_record_s_epoch_next():
    """Else it is told of the same divergence for ever."""
    machine = follower(0)
    machine.replica.log.epochs.assign(1, 1)
    assert machine.handle(LEADER, NOW_MS) == [Fetch(1, 1, 5, 1, 1, 0)]
    assert machine.handle(Diverged(1, 0, 1), NOW_MS) == [Fetch(2, 1, 5, 1, 0, 0)]


def test_an_epoch_that_only_the_leader_has_takes_another_request():
    """The follower has 0, 3; the leader knows 1 below 3: what is of 3 goes, then it asks about 0
    (KIP-279).
    """
    machine = follower(0, 0, 3, 3, truncation=Truncation.EPOCH)
    machine.handle(LEADER, NOW_MS)
    effects = machine.handle(EpochEnd(1, 1, 9), NOW_MS)
    assert effects == [Truncated(4, 2), OffsetForLeaderEpoch(2, 1, 5, 0)]
    assert machine.state is FetcherState.TRUNCATING
    effects = machine.handle(EpochEnd(2, 0, 1), NOW_MS)
    assert effects == [Truncated(2, 1), Fetch(3, 1, 5, 1, -1, 0)]


@pytest.mark.parametrize("truncation", Truncation)
def test_without_epochs_the_log_is_truncated_to_the_watermark(truncation):
    machine = follower(truncation=truncation)
    machine.replica.log.end_offset = 3
    machine.replica.high_watermark = 2
    assert machine.handle(LEADER, NOW_MS) == [Truncated(3, 2), Fetch(1, 1, 5, 2, -1, 0)]


@pytest.mark.parametrize(
    ("answer", "point"),
    [
        ((-1, -1), TruncationPoint(4, True)),
        ((-1, 3), TruncationPoint(3, True)),
        ((2, 9), TruncationPoint(8, True)),
        ((2, 6), TruncationPoint(6, True)),
        ((1, 9), TruncationPoint(5, True)),
        ((0, 1), TruncationPoint(1, True)),
        ((3, 9), TruncationPoint(8, True)),
    ],
)
def test_where_a_log_is_truncated(answer, point):
    """Epochs 0, 1 and 2 from 0, 2 and 5 on; the log ends at 8, the watermark is 4."""
    epochs = LeaderEpochCache()
    for epoch, start in ((0, 0), (1, 2), (2, 5)):
        epochs.assign(epoch, start)
    assert truncation_point(epochs, 8, 4, *answer) == point
