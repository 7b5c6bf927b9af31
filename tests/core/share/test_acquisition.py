"""Which records a fetch acquires: batches, limits, gaps, and records that fail again and again."""

from __future__ import annotations

import pytest

from mockbroker.core.log.producer_state import AbortedTransaction
from mockbroker.core.share import forcing
from mockbroker.core.share.acknowledgement import NOT_OWNER_OF_BATCH
from mockbroker.core.share.acquisition import NOTHING, AcquireRequest, acquire
from mockbroker.core.share.states import AcquireMode, RecordState
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import BatchHeader
from tests.support.requests import NOW_MS, batch_of
from tests.support.share import ShareNode, acknowledged, acquired, states_of, summary

STRICT = AcquireMode.RECORD_LIMIT


def fill(node: ShareNode, *sizes: int) -> None:
    """Produce batches of so many records."""
    for size in sizes:
        node.produced(batch_of(*[b"v"] * size))


def test_whole_batches_are_acquired_up_to_the_one_that_reaches_the_maximum(node):
    fill(node, 3, 3, 3)
    assert acquired(node, most=4) == [(0, 5, 1)]
    assert acquired(node, most=1) == [(6, 8, 1)]


def test_batches_of_the_log_are_joined_up_to_the_batch_size(node):
    fill(node, 2, 2, 2, 1)
    assert acquired(node, batch_size=4) == [(0, 3, 1), (4, 6, 1)]


def test_a_batch_size_below_one_gives_an_empty_range_before_each_batch(node):
    """As SharePartition.createBatches does. Nothing remains of it: the batch takes its place."""
    node.produced(batch_of(b"a", b"b"))
    assert acquired(node, batch_size=0) == [(0, -1, 1), (0, 1, 1)]
    assert acknowledged(node.share(), (0, 1, [2])) is None
    assert acquired(node) == [(0, 1, 2)]


def test_no_batch_of_the_log_is_divided_by_the_batch_size(node):
    fill(node, 5, 1)
    assert acquired(node, batch_size=2) == [(0, 4, 1), (5, 5, 1)]


def test_the_record_limit_is_never_exceeded_and_the_rest_of_the_batch_is_available(node):
    fill(node, 5)
    assert acquired(node, mode=STRICT, most=2) == [(0, 1, 1)]
    assert summary(node.share()) == "0-1:acquired/1 2-4:available/0"
    assert acquired(node, "m2", mode=STRICT, most=2) == [(2, 3, 1)]
    assert acquired(node, "m3", mode=STRICT, most=2) == [(4, 4, 1)]


def test_the_record_limit_makes_one_range_of_several_batches(node):
    fill(node, 2, 2)
    assert acquired(node, mode=STRICT, most=10, batch_size=1) == [(0, 3, 1)]


def test_released_records_are_acquired_again_in_their_batches(node):
    fill(node, 3, 3)
    assert acquired(node, batch_size=1) == [(0, 2, 1), (3, 5, 1)]
    assert acknowledged(node.share(), (0, 2, [2])) is None
    assert acquired(node, "m2") == [(0, 2, 2)]
    assert summary(node.share()) == "0-2:acquired/2 3-5:acquired/1"


def test_new_records_come_with_released_ones(node):
    fill(node, 2)
    acquired(node)
    fill(node, 2)
    acknowledged(node.share(), (1, 1, [2]))
    assert acquired(node) == [(1, 1, 2), (2, 3, 1)]


def test_no_new_records_come_with_as_many_released_ones_as_wanted(node):
    fill(node, 2)
    acquired(node)
    fill(node, 2)
    acknowledged(node.share(), (0, 1, [2]))
    assert acquired(node, most=2) == [(0, 1, 2)]
    assert acquired(node, most=2) == [(2, 3, 1)]


@pytest.mark.parametrize(
    ("mode", "most", "ranges"),
    [
        (AcquireMode.BATCH_OPTIMIZED, 3, [(0, 2, 2)]),
        (AcquireMode.BATCH_OPTIMIZED, 4, [(0, 2, 2), (3, 5, 2)]),
        (STRICT, 3, [(0, 2, 2)]),
        (STRICT, 4, [(0, 2, 2), (3, 3, 2)]),
        (STRICT, 6, [(0, 2, 2), (3, 5, 2)]),
    ],
)
def test_released_batches_are_acquired_up_to_the_maximum(node, mode, most, ranges):
    fill(node, 3, 3)
    acquired(node, batch_size=1)
    acknowledged(node.share(), (0, 2, [2]), (3, 5, [2]))
    assert acquired(node, mode=mode, most=most) == ranges


def test_single_released_offsets_are_acquired_in_ranges_of_equal_counts(node):
    fill(node, 6)
    acquired(node)
    acknowledged(node.share(), (0, 5, [2, 2, 1, 2, 1, 2]))
    assert acquired(node) == [(0, 1, 2), (3, 3, 2), (5, 5, 2)]


def test_no_more_records_than_locks_are_in_flight(node):
    """The limit is soft: a batch of the log is not divided."""
    node.group_config("share.partition.max.record.locks", "100")
    fill(node, *[30] * 5)
    assert acquired(node) == [(0, 119, 1)]
    share = node.share()
    assert not share.can_acquire
    acknowledged(share, (0, 29, [1]))
    assert share.can_acquire
    assert acquired(node) == [(120, 149, 1)]


def test_there_are_as_many_locks_as_the_group_says(node):
    node.group_config("share.partition.max.record.locks", "100")
    fill(node, 150)
    assert acquired(node, mode=STRICT) == [(0, 99, 1)]


def test_a_batch_that_is_as_large_as_the_record_limit_stays_whole(node):
    """The words of an error tell."""
    fill(node, 3)
    acquired(node)
    acknowledged(node.share(), (0, 2, [2]))
    assert acquired(node, mode=STRICT, most=3) == [(0, 2, 2)]
    assert acknowledged(node.share(), (0, 2, [1]), member="m2") == (
        ErrorCode.INVALID_RECORD_STATE,
        NOT_OWNER_OF_BATCH,
    )


def test_the_last_lock_is_given_to_a_record(node):
    node.group_config("share.partition.max.record.locks", "100")
    fill(node, 99, 5)
    assert acquired(node, most=99) == [(0, 98, 1)]
    assert acquired(node, mode=STRICT) == [(99, 99, 1)]


def test_batches_below_the_start_are_not_acquired(node):
    fill(node, 2, 2, 2)
    node.persister.put(("g", node.topic_id("t"), 0), 4)
    assert acquired(node, offset=0, bytes_max=1) == []
    assert acquired(node, offset=2, bytes_max=1) == []
    assert acquired(node, offset=4, bytes_max=1) == [(4, 5, 1)]


@pytest.mark.parametrize("offset", [0, 60, 98, 99])
def test_records_in_flight_are_acquired_again_although_there_is_no_room(node, offset):
    node.group_config("share.partition.max.record.locks", "100")
    fill(node, *[50] * 3)
    assert acquired(node) == [(0, 99, 1)]
    acknowledged(node.share(), (offset, offset, [2]))
    assert node.share().can_acquire
    assert acquired(node, "m2") == [(offset, offset, 2)]
    assert not node.share().can_acquire


def test_a_batch_at_half_of_the_delivery_limit_comes_in_halves(node):
    """With a limit of 5, batches are halved from the fourth delivery on, and divided to single
    records at the last one.
    """
    fill(node, 8)
    for count in (1, 2, 3):
        assert acquired(node) == [(0, 7, count)]
        acknowledged(node.share(), (0, 7, [2]))
    assert acquired(node) == [(0, 3, 4)]
    acknowledged(node.share(), (0, 3, [2]))
    assert [acquired(node) for _ in range(4)] == [[(at, at, 5)] for at in range(4)]
    assert acquired(node) == [(4, 7, 4)]


@pytest.mark.parametrize(
    ("count", "records"), [(3, 8), (4, 8), (5, 4), (6, 2), (7, 1), (8, 1), (9, 1)]
)
def test_each_delivery_from_half_of_the_limit_on_halves_the_batch(node, count, records):
    node.group_config("share.delivery.count.limit", "10")
    fill(node, 8)
    acquired(node)
    share = node.share()
    acknowledged(share, (0, 7, [2]))
    forcing.set_delivery_count(share, None, count)
    assert acquired(node) == [(0, records - 1, count + 1)]


@pytest.mark.parametrize(("limit", "records"), [(6, 4), (5, 4), (4, 2), (3, 1), (2, 4)])
def test_half_of_an_odd_limit_is_rounded_up(node, limit, records):
    """A limit of two is too low for fewer records."""
    node.group_config("share.delivery.count.limit", str(limit))
    fill(node, 4)
    acquired(node)
    share = node.share()
    acknowledged(share, (0, 3, [2]))
    count = min(2, limit - 1)
    forcing.set_delivery_count(share, None, count)
    assert acquired(node) == [(0, records - 1, count + 1)]


def test_a_record_at_its_last_delivery_does_not_come_with_others(node):
    fill(node, 2)
    node.group_config("share.delivery.count.limit", "3")
    for _ in range(2):
        acquired(node)
        acknowledged(node.share(), (0, 1, [2]))
    fill(node, 2)
    assert acquired(node) == [(0, 0, 3)]
    assert acquired(node) == [(1, 1, 3)]
    assert acquired(node) == [(2, 3, 1)]


def test_records_of_aborted_transactions_are_archived_and_not_counted(node):
    fill(node, 2)
    share = node.share()
    batch = memoryview(
        batch_of(*[b"v"] * 3, producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    )
    assert share.partition.append(batch, BatchHeader(batch), -1, NOW_MS).error == 0
    fill(node, 2)
    log = share.partition.log
    _, size = log.read(0, 7, 1 << 20, at_least_one=True)
    request = AcquireRequest("m1", AcquireMode.BATCH_OPTIMIZED, 500, 500)
    aborted = [AbortedTransaction(9, 2, 5, 0)]
    found = acquire(share, request, 0, log.batches_read(0, size), aborted)
    ranges = [(each.first_offset, each.last_offset) for each in found.ranges]
    assert (ranges, found.offsets) == ([(0, 1), (5, 6)], 4)
    assert [each for each in states_of(share).values() if each[0] is RecordState.ARCHIVED] == [
        (RecordState.ARCHIVED, 1)
    ] * 3


def test_records_before_one_at_its_last_delivery_come_without_it(node):
    fill(node, 3)
    node.group_config("share.delivery.count.limit", "3")
    acquired(node)
    acknowledged(node.share(), (0, 2, [2]))
    acquired(node)
    acknowledged(node.share(), (1, 1, [2]))
    node.share().batches.first.state_at(0).delivery_count = 1
    acknowledged(node.share(), (0, 0, [2]))
    assert acquired(node) == [(0, 0, 2)]
    assert acquired(node) == [(1, 1, 3)]


def test_records_that_were_delivered_often_wait_until_the_others_are_fetched(node):
    fill(node, 1, 4)
    acquired(node, batch_size=1)
    for _ in range(2):
        acknowledged(node.share(), (1, 4, [2]))
        acquired(node)
    acknowledged(node.share(), (0, 0, [2]), (1, 4, [2]))
    assert acquired(node) == [(0, 0, 2)]
    assert acquired(node) == [(1, 2, 4)]


@pytest.mark.parametrize("types", [[2], [2, 2, 2]], ids=["a whole batch", "single records"])
def test_a_limit_of_two_deliveries_isolates_no_record(node, types):
    node.group_config("share.delivery.count.limit", "2")
    fill(node, 3)
    acquired(node)
    acknowledged(node.share(), (0, 2, types))
    assert acquired(node) == [(0, 2, 2)]


def test_the_gap_that_a_former_leader_left_is_acquired_first(node):
    fill(node, 4, 4, 4)
    key = ("g", node.topic_id("t"), 0)
    node.persister.put(key, 2, (6, 7, 2, 1))
    assert acquired(node) == [(2, 5, 1), (8, 11, 1)]
    assert node.share().start_offset == 2
    assert summary(node.share()) == "2-5:acquired/1 6-7:acknowledged/1 8-11:acquired/1"
    assert node.share().read_gap is None


def test_a_gap_is_acquired_in_parts(node):
    fill(node, *[1] * 8)
    node.persister.put(("g", node.topic_id("t"), 0), 0, (3, 3, 2, 1), (6, 7, 0, 1))
    assert acquired(node, most=1) == [(0, 0, 1)]
    assert acquired(node, most=1) == [(1, 1, 1)]
    assert acquired(node, most=3) == [(2, 2, 1), (4, 5, 1)]
    assert acquired(node) == [(6, 7, 2)]


def test_a_gap_begins_behind_what_a_small_fetch_has_acquired_of_it(node):
    """No record in flight is among those that were read."""
    fill(node, *[1] * 4)
    node.persister.put(("g", node.topic_id("t"), 0), 0, (3, 3, 0, 1))
    assert [acquired(node, bytes_max=1) for _ in range(4)] == [
        [(0, 0, 1)],
        [(1, 1, 1)],
        [(2, 2, 1)],
        [(3, 3, 2)],
    ]


def test_a_gap_in_the_middle_of_a_batch_of_the_log_is_acquired_up_to_what_is_in_flight(node):
    fill(node, 4)
    node.persister.put(("g", node.topic_id("t"), 0), 0, (2, 2, 2, 1))
    assert acquired(node, most=1) == [(0, 1, 1)]
    assert acquired(node) == [(3, 3, 1)]


def test_what_is_acquired_before_a_gap_leaves_less_room_in_it(node):
    fill(node, *[1] * 6)
    node.persister.put(("g", node.topic_id("t"), 0), 0, (0, 1, 0, 1), (5, 5, 2, 1))
    assert acquired(node, most=3) == [(0, 1, 2), (2, 2, 1)]
    assert acquired(node, most=3) == [(3, 4, 1)]


def test_final_records_of_a_batch_that_a_gap_divides_do_not_move_the_start(node):
    """The read gap begins at the record that was not acquired yet."""
    fill(node, 3, 1)
    node.persister.put(("g", node.topic_id("t"), 0), 0, (3, 3, 2, 1))
    assert acquired(node, mode=STRICT, most=2) == [(0, 1, 1)]
    share = node.share()
    assert acknowledged(share, (0, 1, [1])) is None
    assert share.start_offset == 0
    assert acquired(node) == [(2, 2, 1)]


def test_a_gap_that_is_acquired_does_not_hold_the_start(node):
    fill(node, *[1] * 8)
    node.persister.put(("g", node.topic_id("t"), 0), 0, (3, 3, 2, 1), (6, 7, 0, 1))
    assert acquired(node) == [(0, 2, 1), (4, 5, 1), (6, 7, 2)]
    share = node.share()
    assert acknowledged(share, (0, 2, [1]), (4, 7, [1])) is None
    assert (share.start_offset, len(share.batches)) == (8, 0)


def test_final_records_before_a_gap_move_the_start_no_further_than_the_gap(node):
    fill(node, *[1] * 8)
    node.persister.put(("g", node.topic_id("t"), 0), 0, (3, 3, 2, 1), (6, 7, 0, 1))
    acquired(node, most=1)
    share = node.share()
    assert acknowledged(share, (0, 0, [1])) is None
    assert (share.start_offset, share.next_fetch_offset()) == (1, 1)
    assert acquired(node, most=2) == [(1, 2, 1)]


def test_offsets_behind_the_last_known_ones_are_no_gap(node):
    fill(node, *[1] * 4)
    node.persister.put(("g", node.topic_id("t"), 0), 0, (0, 1, 2, 1))
    share = node.share()
    assert (share.start_offset, share.read_gap) == (2, None)
    assert acquired(node) == [(2, 3, 1)]


@pytest.mark.parametrize("most", [0, -1])
def test_a_fetch_of_no_records_acquires_none(node, most):
    fill(node, 1)
    assert acquired(node, most=most) == []


def test_a_fenced_share_partition_gives_no_records(node):
    fill(node, 1)
    share = node.share()
    node.manager.fence(share)
    assert acquired(node, share=share) == []


def test_available_records_that_compaction_removed_are_archived(node):
    """The next batch begins behind them."""
    fill(node, 2, 2)
    acquired(node, batch_size=1)
    share = node.share()
    acknowledged(share, (0, 1, [2]), (2, 3, [2]))
    assert acquired(node, offset=2) == [(2, 3, 2)]
    assert summary(share) == "0-1:available/1 2-3:acquired/2"
    log = share.partition.log
    _, size = log.read(2, 4, 1 << 20, at_least_one=True)
    request = AcquireRequest("m2", AcquireMode.BATCH_OPTIMIZED, 500, 500)
    acquire(share, request, 0, log.batches_read(2, size))
    assert summary(share) == "0-1:archived/1 2-3:acquired/2"
    acknowledged(share, (2, 3, [1]))
    assert share.start_offset == 4


def test_nothing_is_acquired_behind_removed_records_if_there_is_no_room(node):
    """What was released could be acquired again, but compaction has removed it."""
    node.group_config("share.partition.max.record.locks", "100")
    fill(node, 60, 60, 10)
    assert acquired(node) == [(0, 119, 1)]
    share = node.share()
    acknowledged(share, (110, 119, [2]))
    assert (share.can_acquire, share.next_fetch_offset()) == (True, 110)
    _, size = share.partition.log.read(120, 130, 1 << 20, at_least_one=True)
    request = AcquireRequest("m2", AcquireMode.BATCH_OPTIMIZED, 500, 500)
    found = acquire(share, request, 110, share.partition.log.batches_read(120, size))
    assert found == NOTHING
    assert (share.end_offset, share.next_fetch_offset()) == (119, 120)
    acknowledged(share, (0, 109, [1]))
    assert acquired(node) == [(120, 129, 1)]


def test_batches_are_archived_up_to_the_one_that_compaction_has_left(node):
    """That one stays whole: the words of an error tell."""
    fill(node, 1, 1, 2)
    acquired(node, batch_size=1)
    share = node.share()
    acknowledged(share, (0, 0, [2]), (1, 1, [2]), (2, 3, [2]))
    _, size = share.partition.log.read(2, 4, 1 << 20, at_least_one=True)
    request = AcquireRequest("m2", AcquireMode.BATCH_OPTIMIZED, 500, 500)
    acquire(share, request, 0, share.partition.log.batches_read(2, size))
    assert summary(share) == "0-1:archived/1 2-3:acquired/2"
    assert share.delivery_complete_count == 2
    assert acknowledged(share, (2, 3, [1])) == (
        ErrorCode.INVALID_RECORD_STATE,
        NOT_OWNER_OF_BATCH,
    )


def test_a_batch_is_archived_up_to_what_compaction_has_left_of_it(node):
    fill(node, 2, 2)
    assert acquired(node) == [(0, 3, 1)]
    share = node.share()
    acknowledged(share, (0, 3, [2]))
    _, size = share.partition.log.read(2, 4, 1 << 20, at_least_one=True)
    request = AcquireRequest("m2", AcquireMode.BATCH_OPTIMIZED, 500, 500)
    acquire(share, request, 0, share.partition.log.batches_read(2, size))
    assert summary(share) == "0-1:archived/1 2-3:acquired/2"


def test_an_available_record_at_the_end_of_a_batch_that_compaction_removed_is_archived(node):
    fill(node, 2, 2)
    acquired(node, batch_size=1)
    share = node.share()
    acknowledged(share, (0, 1, [1, 2]), (2, 3, [2]))
    assert share.next_fetch_offset() == 1
    _, size = share.partition.log.read(2, 4, 1 << 20, at_least_one=True)
    request = AcquireRequest("m2", AcquireMode.BATCH_OPTIMIZED, 500, 500)
    acquire(share, request, 1, share.partition.log.batches_read(2, size))
    assert summary(share) == "0:acknowledged/1 1:archived/1 2-3:acquired/2"
    assert (share.start_offset, share.delivery_complete_count) == (1, 1)
    acknowledged(share, (2, 3, [1]), member="m2")
    assert (share.start_offset, share.delivery_complete_count) == (4, 0)
