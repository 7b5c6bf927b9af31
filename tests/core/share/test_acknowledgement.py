"""Acknowledged, released, and left: what members and locks do with records in flight."""

from __future__ import annotations

import pytest

from mockbroker.core.share import acknowledgement as texts
from mockbroker.core.share.acknowledgement import release_acquired
from mockbroker.core.share.states import RecordState
from mockbroker_protocol import ErrorCode
from tests.support.requests import batch_of, done
from tests.support.share import (
    ShareNode,
    acknowledged,
    acquired,
    ranges_of,
    row_of,
    states_of,
    summary,
)

LOCK_MS = 30_000
INVALID = ErrorCode.INVALID_RECORD_STATE
REQUEST = ErrorCode.INVALID_REQUEST


def fill(node: ShareNode, *sizes: int) -> None:
    for size in sizes:
        node.produced(batch_of(*[b"v"] * size))


@pytest.mark.parametrize(
    ("kind", "state"),
    [(0, "archived/1"), (1, "acknowledged/1"), (2, "available/1"), (3, "archived/1")],
)
def test_each_type_has_its_state(node, kind, state):
    fill(node, 2)
    acquired(node)
    assert acknowledged(node.share(), (1, 1, [kind])) is None
    assert summary(node.share()) == f"0:acquired/1 1:{state}"


def test_final_records_at_the_start_move_it(node):
    fill(node, 2, 2)
    acquired(node, batch_size=1)
    share = node.share()
    acknowledged(share, (0, 0, [1]))
    assert (share.start_offset, share.delivery_complete_count) == (1, 0)
    acknowledged(share, (3, 3, [3]))
    assert (share.start_offset, share.delivery_complete_count) == (1, 1)
    acknowledged(share, (1, 1, [0]))
    assert share.start_offset == 2
    assert summary(share) == "2:acquired/1 3:archived/1"
    acknowledged(share, (2, 2, [1]))
    assert (share.start_offset, share.end_offset, share.delivery_complete_count) == (4, 4, 0)
    assert not share.batches
    assert share.next_fetch_offset() == 4


def test_types_may_be_given_for_each_offset_of_several_batches(node):
    fill(node, 2, 2)
    acquired(node, batch_size=1)
    assert acknowledged(node.share(), (0, 3, [1, 2, 3, 2])) is None
    assert summary(node.share()) == "0:acknowledged/1 1:available/1 2:archived/1 3:available/1"


def test_states_are_written_with_the_start_before_they_move_it(node):
    fill(node, 3)
    acquired(node)
    acknowledged(node.share(), (0, 2, [1, 1, 2]))
    (topic,) = node.persister.writes[-1].topics
    (data,) = topic.partitions
    assert (data.start_offset, data.delivery_complete_count) == (0, 2)
    batches = [
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in data.state_batches
    ]
    assert batches == [(0, 1, RecordState.ACKNOWLEDGED, 1), (2, 2, RecordState.AVAILABLE, 1)]


@pytest.mark.parametrize(
    ("batch", "error", "text"),
    [
        ((0, 3, [1]), REQUEST, texts.LAST_PAST),
        ((3, 3, [1]), REQUEST, texts.FIRST_PAST),
        ((3, 9, [1]), REQUEST, texts.FIRST_PAST),
        ((0, 2, [9]), REQUEST, "Invalid acknowledge type: [9]"),
        ((0, 2, [1, 5, 1]), REQUEST, "Invalid acknowledge type: [1, 5, 1]"),
    ],
)
def test_offsets_and_types_that_make_no_sense_are_refused(node, batch, error, text):
    fill(node, 3)
    acquired(node)
    assert acknowledged(node.share(), batch) == (error, text)
    assert not node.persister.writes


def test_offsets_below_everything_in_flight_are_not_found(node):
    fill(node, 2, 2)
    node.persister.put(("g", node.topic_id("t"), 0), 2)
    acquired(node)
    share = node.share()
    assert share.batches.first.first_offset == 2
    assert acknowledged(share, (0, 1, [1])) is None, "they are final already"
    assert acknowledged(share, (1, 2, [1])) is None
    assert summary(share) == "2:acknowledged/1 3:acquired/1"
    node.persister.put(("h", node.topic_id("t"), 0), 0, (2, 3, 0, 1))
    assert acknowledged(node.share(group="h"), (0, 0, [1])) == (INVALID, texts.NOT_FOUND)


def test_only_the_owner_acknowledges(node):
    fill(node, 2)
    acquired(node)
    share = node.share()
    assert acknowledged(share, (0, 1, [1]), member="m2") == (INVALID, texts.NOT_OWNER_OF_BATCH)
    acknowledged(share, (0, 0, [2]))
    assert acknowledged(share, (1, 1, [1]), member="m2") == (INVALID, texts.NOT_OWNER_OF_OFFSET)
    assert acknowledged(share, (0, 0, [1])) == (INVALID, texts.OFFSET_NOT_ACQUIRED)


def test_a_batch_is_not_acknowledged_twice(node):
    fill(node, 2, 2)
    acquired(node, batch_size=1)
    share = node.share()
    acknowledged(share, (2, 3, [1]))
    assert acknowledged(share, (2, 3, [1])) == (INVALID, texts.BATCH_NOT_ACQUIRED)
    assert acknowledged(share, (2, 2, [1])) == (INVALID, texts.BATCH_NOT_ACQUIRED)


def test_records_whose_acknowledgement_is_being_written_are_not_acknowledged_again(node):
    fill(node, 2)
    acquired(node)
    share = node.share()
    node.persister.holds = True
    told: list[object] = []
    from mockbroker.core.share.acknowledgement import AcknowledgementBatch, acknowledge

    acknowledge(share, "m1", [AcknowledgementBatch(0, 1, [2])], told.append)
    assert acknowledged(share, (0, 1, [1])) == (INVALID, texts.BATCH_NOT_ACQUIRED)
    assert not told
    assert not share.batches.first.whole.is_acquirable  # type: ignore[union-attr]
    assert share.next_fetch_offset() == 2
    node.persister.answer()
    assert told == [None]
    assert share.next_fetch_offset() == 0


def test_one_refused_batch_rolls_all_of_them_back(node):
    fill(node, 2, 2)
    acquired(node, batch_size=1)
    share = node.share()
    before = states_of(share)
    assert acknowledged(share, (0, 1, [1]), (2, 3, [1]), (2, 3, [1])) is not None
    assert states_of(share) == before
    assert share.delivery_complete_count == 0
    assert not node.persister.writes
    assert acknowledged(share, (0, 1, [1]), (2, 3, [1])) is None


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
        (ErrorCode.NETWORK_EXCEPTION, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_failed_write_is_rolled_back_and_told(node, answer, told):
    fill(node, 2)
    acquired(node)
    share = node.share()
    node.persister.error, node.persister.message = answer, "why"
    assert acknowledged(share, (0, 1, [1])) == (told, "why")
    assert summary(share) == "0-1:acquired/1"
    assert share.delivery_complete_count == 0
    node.persister.error = 0
    assert acknowledged(share, (0, 1, [1])) is None


def test_single_records_count_as_final_only_while_their_write_may_succeed(node):
    fill(node, 3)
    acquired(node)
    share = node.share()
    node.persister.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert acknowledged(share, (0, 1, [1, 3])) is not None
    assert (summary(share), share.delivery_complete_count) == ("0-2:acquired/1", 0)


def test_a_start_that_moves_makes_room_for_a_fetch_that_waits(node):
    node.group_config("share.partition.max.record.locks", "100")
    fill(node, 50, 50, 1)
    acquired(node, most=1, batch_size=1)
    acquired(node, most=1, batch_size=1)
    parked = node.share_fetch(0, node.wanted(), member="m2", max_wait_ms=500)
    assert not parked.done
    assert acknowledged(node.share(), (0, 49, [1])) is None
    assert ranges_of(row_of(done(parked))) == [(100, 100, 1)]


# -- locks -----------------------------------------------------------------------------------------


def test_a_lock_holds_until_its_deadline(node):
    fill(node, 2)
    acquired(node)
    share = node.share()
    node.advance(LOCK_MS - 1)
    assert summary(share) == "0-1:acquired/1"
    node.advance(1)
    assert summary(share) == "0-1:available/1"
    assert acquired(node, "m2") == [(0, 1, 2)]


def test_each_lock_has_its_own_deadline(node):
    fill(node, 1)
    acquired(node)
    node.advance(10_000)
    fill(node, 1)
    acquired(node)
    node.advance(20_000)
    assert summary(node.share()) == "0:available/1 1:acquired/1"
    node.advance(10_000)
    assert summary(node.share()) == "0-1:available/1"


def test_a_lock_of_a_batch_that_was_acknowledged_in_part_goes_on(node):
    fill(node, 3)
    acquired(node)
    node.advance(10_000)
    acknowledged(node.share(), (1, 1, [1]))
    node.advance(20_000)
    assert summary(node.share()) == "0:available/1 1:acknowledged/1 2:available/1"


def test_a_record_is_archived_when_its_last_delivery_runs_out(node):
    node.group_config("share.delivery.count.limit", "2")
    fill(node, 2)
    for _ in range(2):
        acquired(node)
        node.advance(LOCK_MS)
    share = node.share()
    assert (share.start_offset, len(share.batches)) == (2, 0)
    assert [data.delivery_state for data in _last_write(node)] == [RecordState.ARCHIVED]


def test_the_end_of_a_lock_counts_although_its_write_fails(node):
    fill(node, 1)
    acquired(node)
    node.persister.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    node.advance(LOCK_MS)
    assert summary(node.share()) == "0:available/1"


def test_a_renewed_lock_holds_for_another_duration_and_is_not_written(node):
    fill(node, 3)
    acquired(node)
    share = node.share()
    node.advance(20_000)
    assert acknowledged(share, (0, 1, [4])) is None
    assert not node.persister.writes
    node.advance(10_000)
    assert summary(share) == "0-1:acquired/1 2:available/1"
    node.advance(20_000)
    assert summary(share) == "0-2:available/1"


def test_a_whole_batch_is_renewed_without_being_split(node):
    fill(node, 3)
    acquired(node)
    node.advance(20_000)
    acknowledged(node.share(), (0, 2, [4]))
    assert node.share().batches.first.offsets is None
    node.advance(29_999)
    assert summary(node.share()) == "0-2:acquired/1"


def test_a_group_may_forbid_to_renew(node):
    node.group_config("share.renew.acknowledge.enable", "false")
    fill(node, 2)
    acquired(node)
    share = node.share()
    assert acknowledged(share, (0, 1, [4])) == (INVALID, texts.RENEW_DISABLED)
    assert acknowledged(share, (0, 0, [4])) == (INVALID, texts.RENEW_DISABLED)


def test_the_duration_of_locks_is_the_groups(node):
    node.group_config("share.record.lock.duration.ms", "15000")
    fill(node, 1)
    acquired(node)
    node.advance(15_000)
    assert summary(node.share()) == "0:available/1"


def test_locks_can_be_advanced_alone(node):
    fill(node, 1)
    acquired(node)
    locks = node.cluster.clock_domains.locks
    locks.jump_to(locks.now_ms() + LOCK_MS)
    assert summary(node.share()) == "0:available/1"


def test_a_lock_that_runs_out_during_a_failing_write_is_over(node):
    fill(node, 1)
    acquired(node)
    share = node.share()
    node.persister.holds = True
    from mockbroker.core.share.acknowledgement import AcknowledgementBatch, acknowledge

    acknowledge(share, "m1", [AcknowledgementBatch(0, 0, [1])], lambda _: None)
    node.advance(LOCK_MS)
    assert summary(share) == "0:acknowledged/1"
    node.persister.answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert summary(share) == "0:available/1"
    assert share.next_fetch_offset() == 0


def test_a_rolled_back_record_keeps_its_lock(node):
    """Also if another lock has ended meanwhile."""
    fill(node, 1)
    acquired(node)
    node.advance(10_000)
    fill(node, 1)
    acquired(node)
    share = node.share()
    node.persister.holds = True
    from mockbroker.core.share.acknowledgement import AcknowledgementBatch, acknowledge

    acknowledge(share, "m1", [AcknowledgementBatch(1, 1, [1])], lambda _: None)
    node.advance(20_000)
    node.persister.answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert summary(share) == "0:available/1 1:acquired/1"
    node.advance(10_000)
    assert summary(share) == "0-1:available/1"


# -- members that leave ----------------------------------------------------------------------------


def test_a_member_that_leaves_gives_back_what_it_has_and_nothing_else(node):
    fill(node, 2, 2)
    acquired(node, most=1)
    acquired(node, "m2", most=1)
    share = node.share()
    told: list[object] = []
    acknowledged(share, (0, 0, [1]))
    release_acquired(share, "m1", told.append)
    assert told == [None]
    assert summary(share) == "0:acknowledged/1 1:available/1 2-3:acquired/1"
    release_acquired(share, "m1", told.append)
    assert len(node.persister.writes) == 2, "nothing was left to write"


# -- the log start ---------------------------------------------------------------------------------


def test_available_records_below_the_log_start_are_archived_at_once(node):
    fill(node, 4)
    acquired(node)
    share = node.share()
    acknowledged(share, (0, 3, [2]))
    share.log_start_moved(2)
    assert summary(share) == "0-1:archived/1 2-3:available/1"
    assert (share.start_offset, share.next_fetch_offset()) == (2, 2)


@pytest.mark.parametrize("log_start", [1, 2, 3])
def test_available_batches_below_the_log_start_are_archived_up_to_it(node, log_start):
    fill(node, 1, 1, 1, 1)
    acquired(node, batch_size=1)
    share = node.share()
    acknowledged(share, *((at, at, [2]) for at in range(4)))
    share.log_start_moved(log_start)
    states = [state.name for state, _ in states_of(share).values()]
    assert states == ["ARCHIVED"] * log_start + ["AVAILABLE"] * (4 - log_start)


def test_acquired_records_below_the_log_start_are_archived_with_their_lock(node):
    fill(node, 4)
    acquired(node)
    share = node.share()
    share.log_start_moved(2)
    assert summary(share) == "0-3:acquired/1"
    node.advance(LOCK_MS)
    assert summary(share) == "0-1:archived/1 2-3:available/1"
    assert share.start_offset == 2


def test_only_the_last_record_of_a_batch_is_above_the_log_start(node):
    fill(node, 4)
    acquired(node)
    share = node.share()
    share.log_start_moved(3)
    node.advance(LOCK_MS)
    assert summary(share) == "0-2:archived/1 3:available/1"


def test_the_part_of_a_batch_above_the_log_start_is_acknowledged(node):
    fill(node, 4)
    acquired(node)
    share = node.share()
    share.log_start_moved(2)
    assert acknowledged(share, (0, 3, [1])) is None
    assert not [data for data in _last_write(node) if data.first_offset < 2]
    assert summary(share) == "0-1:acquired/1 2-3:acknowledged/1"
    assert share.start_offset == 2, "the lost records are archived with their lock"
    node.advance(LOCK_MS)
    assert share.start_offset == 4


def test_batches_that_the_log_has_lost_are_passed_over(node):
    """The log start is between the batches in flight."""
    fill(node, 2, 2, 2)
    node.persister.put(("g", node.topic_id("t"), 0), 0, (0, 1, 0, 1), (4, 5, 0, 1))
    share = node.share()
    assert acquired(node, most=1) == [(0, 1, 2)]
    assert acquired(node, offset=4) == [(4, 5, 2)]
    share.log_start_moved(3)
    assert acknowledged(share, (0, 5, [1])) is None
    assert summary(share) == "0-1:acquired/2 4-5:acknowledged/2"


def test_a_log_start_above_everything_in_flight_begins_anew(node):
    fill(node, 2)
    acquired(node)
    share = node.share()
    share.log_start_moved(9)
    assert (share.start_offset, share.end_offset, share.next_fetch_offset()) == (9, 9, 9)
    node.advance(LOCK_MS)
    assert (share.start_offset, share.next_fetch_offset()) == (9, 9)


def test_a_lower_log_start_changes_nothing(node):
    fill(node, 2)
    acquired(node)
    share = node.share()
    acknowledged(share, (0, 0, [1]))
    share.log_start_moved(1)
    assert (share.start_offset, summary(share)) == (1, "0:acknowledged/1 1:acquired/1")


def _last_write(node: ShareNode) -> list:
    (topic,) = node.persister.writes[-1].topics
    (data,) = topic.partitions
    return data.state_batches
