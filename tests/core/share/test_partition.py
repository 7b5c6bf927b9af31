"""A share partition: it begins with the share coordinator's state, and ends with its leadership."""

from __future__ import annotations

import pytest

from mockbroker.core.errors import ApiError
from mockbroker.core.share.acknowledgement import NOT_OWNER_OF_BATCH
from mockbroker.core.share.states import SharePartitionState
from mockbroker_protocol import ErrorCode
from tests.support.requests import NOW_MS, batch_of, timed_batch
from tests.support.share import (
    ShareNode,
    acknowledged,
    acquired,
    states_of,
    summary,
)


def initialized(node: ShareNode, **more: str) -> list[ApiError | None]:
    """What the initialization of a new share partition tells."""
    from mockbroker.core.share.sessions import ShareTarget

    target = ShareTarget(node.topic_id("t"), 0, "t")
    told: list[ApiError | None] = []
    node.manager.get_or_create(more.get("group", "g"), target).initialize(told.append)
    return told


def error_of(told: list[ApiError | None]) -> tuple[ErrorCode, str | None]:
    (error,) = told
    assert error is not None
    return error.error, error.message


# -- the beginning ---------------------------------------------------------------------------------


def test_a_new_group_begins_at_the_end_unless_it_says_otherwise(node):
    node.produced(batch_of(b"a", b"b"))
    offsets = {}
    for reset in ("latest", "earliest"):
        node.group_config("share.auto.offset.reset", reset, group=reset)
        offsets[reset] = node.share(group=reset).start_offset
    assert offsets == {"latest": 2, "earliest": 0}


def test_a_group_may_begin_a_duration_ago(node):
    node.produced(timed_batch(NOW_MS - 60_000, NOW_MS - 1_000, NOW_MS))
    node.group_config("share.auto.offset.reset", "by_duration:PT30S")
    assert node.share().start_offset == 1


def test_a_group_that_begins_after_all_records_has_to_wait(node):
    node.produced(timed_batch(NOW_MS - 60_000))
    node.group_config("share.auto.offset.reset", "by_duration:PT1S")
    error, message = error_of(initialized(node))
    assert error is ErrorCode.OFFSET_NOT_AVAILABLE
    assert message is not None
    assert message.startswith(f"Offset for timestamp {NOW_MS - 1_000} not found")
    assert node.share().state is SharePartitionState.FAILED


def test_a_known_state_is_continued(node):
    node.produced(batch_of(*[b"v"] * 8))
    key = "g", node.topic_id("t"), 0
    node.persister.put(key, 2, (2, 3, 0, 1), (4, 5, 2, 1), (6, 6, 4, 3), epoch=7)
    share = node.share()
    assert summary(share) == "2-3:available/1 4-5:acknowledged/1 6:archived/3"
    assert (share.start_offset, share.end_offset, share.state_epoch) == (2, 6, 7)
    assert share.delivery_complete_count == 3
    assert share.next_fetch_offset() == 2
    assert acquired(node) == [(2, 3, 2), (7, 7, 1)]


def test_final_records_at_the_known_start_are_left_behind(node):
    node.persister.put(("g", node.topic_id("t"), 0), 0, (0, 3, 2, 1), (4, 5, 0, 1))
    share = node.share()
    assert (share.start_offset, summary(share)) == (4, "4-5:available/1")


def test_a_gap_at_the_start_is_not_left_behind(node):
    node.persister.put(("g", node.topic_id("t"), 0), 0, (2, 3, 2, 1))
    share = node.share()
    assert (share.start_offset, share.next_fetch_offset()) == (0, 0)


@pytest.mark.parametrize(
    "batches", [((0, 1, 0, 1),), ((6, 6, 9, 1),)], ids=["below the start", "unknown state"]
)
def test_a_state_that_makes_no_sense_fails(node, batches):
    node.persister.put(("g", node.topic_id("t"), 0), 5, *batches)
    error, message = error_of(initialized(node))
    assert error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert message is not None
    assert message.startswith("Failed to initialize the share partition g-")
    assert message.endswith(":t-0")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_an_error_of_the_share_coordinator_is_told(node, answer, told):
    node.persister.error, node.persister.message = answer, "why"
    hidden = answer is ErrorCode.UNSUPPORTED_VERSION
    text = "Unable to complete operation due to server error." if hidden else "why"
    assert error_of(initialized(node)) == (told, text)


def test_other_requests_wait_while_the_state_is_read(node):
    node.persister.holds_reads = True
    assert initialized(node) == []
    error, message = error_of(initialized(node))
    assert error is ErrorCode.LEADER_NOT_AVAILABLE
    assert message is not None
    assert message.startswith("Share partition is already initializing g-")
    node.persister.answer()
    assert initialized(node) == [None]


def test_all_is_zero_until_the_state_is_read(node):
    """Listings show it."""
    node.persister.holds_reads = True
    node.persister.put(("g", node.topic_id("t"), 0), 5, epoch=7)
    share = node.share()
    assert share.state is SharePartitionState.INITIALIZING
    assert (share.start_offset, share.end_offset, share.state_epoch) == (0, 0, 0)
    node.persister.answer()
    assert (share.start_offset, share.end_offset, share.state_epoch) == (5, 5, 7)


def test_a_late_answer_to_a_fenced_share_partition_does_not_revive_it(node):
    node.persister.holds_reads = True
    share = node.share()
    node.manager.fence(share)
    node.persister.answer()
    assert share.state is SharePartitionState.FENCED


# -- the end ---------------------------------------------------------------------------------------


def test_a_deleted_topic_ends_its_share_partitions(node):
    share = node.share()
    node.cluster.delete_topic("t")
    assert share.state is SharePartitionState.FENCED
    assert node.manager.all() == []


def test_a_new_leader_continues_where_the_share_coordinator_knows(node):
    """What was acquired and not acknowledged is delivered again, and no delivery of it counts."""
    node = ShareNode(racks=(None, None))
    node.topic("t")
    node.produced(batch_of(*[b"v"] * 6))
    acquired(node)
    first = node.share()
    acknowledged(first, (0, 5, [1, 2, 1, 1, 3, 1]))
    acquired(node, "m2")
    assert summary(first) == (
        "0:acknowledged/1 1:acquired/2 2-3:acknowledged/1 4:archived/1 5:acknowledged/1"
    )
    node.cluster.broker_stopped(1) if hasattr(node.cluster, "broker_stopped") else None
    partition = node.cluster.topics["t"].partitions[0]
    partition.become_leader(2, partition.leader_epoch + 1, [2])
    assert first.state is SharePartitionState.FENCED
    second = node.cluster.brokers[2].share_partitions
    from mockbroker.core.share.sessions import ShareTarget

    share = second.get_or_create("g", ShareTarget(node.topic_id("t"), 0, "t"))
    share.initialize(lambda _: None)
    assert share.leader_epoch == first.leader_epoch + 1
    assert summary(share) == ("1:available/1 2-3:acknowledged/1 4:archived/1 5:acknowledged/1")
    assert states_of(share)[1][1] == 1


def test_a_broker_that_does_not_lead_has_no_share_partitions(node):
    partition = node.cluster.topics["t"].partitions[0]
    partition.become_leader(9, 1, [9])
    with pytest.raises(ApiError) as error:
        node.share()
    assert error.value.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_process_forgets_share_partitions_and_their_locks(node):
    node.produced(batch_of(b"a"))
    acquired(node)
    share = node.share()
    node.cluster.brokers[1].drop_memory()
    assert node.manager.all() == []
    node.advance(60_000)
    assert summary(share) == "0:acquired/1"


# -- the next fetch offset -------------------------------------------------------------------------


def test_the_next_fetch_offset_is_that_of_the_first_available_record(node):
    node.produced(batch_of(*[b"v"] * 4))
    share = node.share()
    assert share.next_fetch_offset() == 0
    acquired(node)
    assert share.next_fetch_offset() == 4
    acknowledged(share, (2, 2, [2]))
    assert share.next_fetch_offset() == 2
    acquired(node)
    assert share.next_fetch_offset() == 4
    acknowledged(share, (0, 3, [1]))
    assert share.next_fetch_offset() == 4


def test_the_next_fetch_offset_is_sought_anew_when_the_log_loses_available_records(node):
    node.produced(batch_of(b"a", b"b"))
    node.produced(batch_of(b"c"))
    share = node.share()
    acquired(node, batch_size=1)
    acquired(node)
    acknowledged(share, (0, 1, [2]))
    assert share.next_fetch_offset() == 0
    share.log_start_moved(2)
    assert share.next_fetch_offset() == 3


@pytest.mark.parametrize(("log_start", "count"), [(1, 3), (2, 2), (3, 2), (4, 1), (5, 0)])
def test_final_records_count_until_the_log_has_lost_them(node, log_start, count):
    node.produced(batch_of(*[b"v"] * 6))
    acquired(node)
    share = node.share()
    acknowledged(share, (1, 1, [1]), (3, 4, [1]))
    assert share.delivery_complete_count == 3
    share.log_start_moved(log_start)
    assert (share.start_offset, share.delivery_complete_count) == (log_start, count)


@pytest.mark.parametrize(("log_start", "count"), [(1, 5), (2, 4), (3, 3), (5, 1), (6, 0)])
def test_batches_of_final_records_count_until_the_log_has_lost_them(node, log_start, count):
    for size in (1, 3, 2, 1):
        node.produced(batch_of(*[b"v"] * size))
    acquired(node, batch_size=1)
    share = node.share()
    acknowledged(share, (1, 3, [1]), (4, 5, [3]))
    assert share.delivery_complete_count == 5
    share.log_start_moved(log_start)
    assert share.delivery_complete_count == count


def test_a_batch_that_begins_at_the_new_log_start_stays_whole(node):
    """The words of an error tell: another member is not the owner of the batch."""
    for _ in range(2):
        node.produced(batch_of(b"a", b"b"))
    acquired(node, batch_size=1)
    share = node.share()
    acknowledged(share, (0, 1, [2]), (2, 3, [2]))
    share.log_start_moved(2)
    assert acquired(node) == [(2, 3, 2)]
    assert acknowledged(share, (2, 3, [1]), member="m2") == (
        ErrorCode.INVALID_RECORD_STATE,
        NOT_OWNER_OF_BATCH,
    )
