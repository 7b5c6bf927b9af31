"""ShareFetch: sessions, acquired records, acknowledgements on the way, long polls, and refusals."""

from __future__ import annotations

import itertools

import pytest

from mockbroker.core.quotas.client_quotas import entity_of
from mockbroker.core.security.authorizer import STANDARD_AUTHORIZER
from mockbroker.core.share import acknowledgement as texts
from mockbroker.core.share.partition import SharePartition
from mockbroker.handlers.base import Parked
from mockbroker.handlers.share_fetch_read import bytes_each, rotated
from mockbroker.handlers.share_requests import are_valid
from mockbroker.handlers.slices import PARTITIONS_PER_SLICE
from mockbroker.handlers.throttling import RequestUsage
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.share_fetch import (
    AcknowledgementBatch,
    ForgottenTopic,
    ShareFetchResponse,
)
from mockbroker_protocol.records.control import ControlType, build_marker
from tests.support.requests import NOW_MS, batch_of, done, values_of
from tests.support.share import GROUP, MEMBER, ShareNode, ranges_of, row_of, rows_of, summary

LOCK_MS = 30_000
EVERYONE = {"allow.everyone.if.no.acl.found": "true"}


@pytest.fixture
def node() -> ShareNode:
    node = ShareNode()
    node.topic("t", 3)
    return node


def fetched(node: ShareNode, epoch: int, *topics, **fields) -> ShareFetchResponse:
    """The answer, which must be there at once."""
    response = done(node.share_fetch(epoch, *topics, **fields))
    assert isinstance(response, ShareFetchResponse)
    return response


# -- records ---------------------------------------------------------------------------------------


def test_records_come_as_they_are_stored_with_the_acquired_ranges(node):
    node.produced(batch_of(b"a", b"b"))
    node.produced(batch_of(b"c"))
    response = fetched(node, 0, node.wanted())
    row = row_of(response)
    assert values_of(row) == [b"a", b"b", b"c"]
    assert ranges_of(row) == [(0, 2, 1)]
    assert response.acquisition_lock_timeout_ms == LOCK_MS


def test_only_the_batches_with_acquired_records_are_sent(node):
    for value in (b"a", b"b", b"c", b"d"):
        node.produced(batch_of(value))
    row = row_of(fetched(node, 0, node.wanted(), max_records=2))
    assert (values_of(row), ranges_of(row)) == ([b"a", b"b"], [(0, 1, 1)])
    fetched(node, 1, max_records=2)
    row = row_of(fetched(node, 2, node.wanted(acks=[(1, 1, [2]), (2, 2, [2])])))
    assert (values_of(row), ranges_of(row)) == ([b"b", b"c"], [(1, 1, 2), (2, 2, 2)])


def test_two_members_never_get_the_same_record(node):
    node.produced(batch_of(b"a"))
    node.produced(batch_of(b"b"))
    first = row_of(fetched(node, 0, node.wanted(), max_records=1))
    second = row_of(fetched(node, 0, node.wanted(), member="m2"))
    assert [values_of(first), values_of(second)] == [[b"a"], [b"b"]]


def test_the_maximum_of_records_is_for_all_partitions(node):
    for index in range(3):
        for value in (b"a", b"b"):
            node.produced(batch_of(value), partition=index)
    rows = rows_of(fetched(node, 0, node.wanted(0, 1, 2), max_records=3))
    assert {index: ranges_of(row) for index, row in rows.items()} == {
        0: [(0, 1, 1)],
        1: [(0, 0, 1)],
        2: [],
    }


def test_the_record_limit_of_the_newer_version_is_strict(node):
    node.produced(batch_of(b"a", b"b", b"c"))
    row = row_of(fetched(node, 0, node.wanted(), max_records=2, share_acquire_mode=1))
    assert ranges_of(row) == [(0, 1, 1)]
    row = row_of(fetched(node, 0, node.wanted(), member="m2", max_records=2, share_acquire_mode=1))
    assert ranges_of(row) == [(2, 2, 1)]


def test_an_unknown_acquire_mode_refuses_the_request(node):
    response = fetched(node, 0, node.wanted(), share_acquire_mode=7)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_bytes_are_shared_and_the_first_partition_may_exceed_its_part(node):
    for index in range(2):
        for _ in range(4):
            node.produced(batch_of(b"x" * 100), partition=index)
    size = len(batch_of(b"x" * 100))
    rows = rows_of(fetched(node, 0, node.wanted(0, 1), max_bytes=3 * size))
    assert [len(values_of(row)) for row in rows.values()] == [1, 1]
    rows = rows_of(fetched(node, 0, node.wanted(0, 1), max_bytes=10, member="m2"))
    assert sorted(len(values_of(row)) for row in rows.values()) == [0, 1]


@pytest.mark.parametrize(
    ("bytes_max", "count", "each"),
    [(10, 2, [5, 5]), (11, 2, [6, 5]), (2, 3, [1, 1, 0]), (0, 2, [0, 0]), (7, 0, [])],
)
def test_bytes_are_shared_equally(bytes_max, count, each):
    assert bytes_each(bytes_max, count) == each


def test_a_negative_maximum_of_bytes_fails_the_partitions(node):
    node.produced(batch_of(b"a"))
    row = row_of(fetched(node, 0, node.wanted(), max_bytes=-1))
    assert row.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_partitions_take_turns_at_being_first():
    targets = ["a", "b", "c"]
    turns = ["".join(rotated(targets, epoch)) for epoch in (-1, 0, 1, 2, 3)]
    assert turns == ["abc", "abc", "bca", "cab", "abc"]


def test_read_committed_leaves_out_aborted_transactions(node):
    node.group_config("share.isolation.level", "read_committed")
    producer = {"producer_id": 5, "producer_epoch": 0}
    partition = node.cluster.topics["t"].partitions[0]
    batch = batch_of(b"aborted", base_sequence=0, transactional=True, **producer)
    partition.append_records(batch, NOW_MS)
    node.produced(batch_of(b"open for all"))
    assert row_of(fetched(node, 0, node.wanted())).records == b""
    marker = build_marker(ControlType.ABORT, coordinator_epoch=0, timestamp=NOW_MS, **producer)
    partition.append_records(marker, NOW_MS)
    row = row_of(fetched(node, 1, node.wanted()))
    assert ranges_of(row) == [(1, 2, 1)]
    assert summary(node.share()) == "0:archived/1 1-2:acquired/1"


def test_a_transaction_after_an_aborted_one_of_its_producer_is_read(node):
    node.group_config("share.isolation.level", "read_committed")
    producer = {"producer_id": 5, "producer_epoch": 0}
    partition = node.cluster.topics["t"].partitions[0]
    for sequence, kind in enumerate((ControlType.ABORT, ControlType.COMMIT)):
        batch = batch_of(b"%d" % sequence, base_sequence=sequence, transactional=True, **producer)
        partition.append_records(batch, NOW_MS)
        marker = build_marker(kind, coordinator_epoch=0, timestamp=NOW_MS, **producer)
        partition.append_records(marker, NOW_MS)
    fetched(node, 0, node.wanted())
    assert summary(node.share()) == "0:archived/1 1-3:acquired/1"


# -- waiting ---------------------------------------------------------------------------------------


def test_a_fetch_waits_for_records(node):
    parked = node.share_fetch(0, node.wanted(), max_wait_ms=500)
    assert isinstance(parked, Parked)
    assert not parked.done
    node.produced(batch_of(b"a"))
    assert values_of(row_of(done(parked))) == [b"a"]


def test_a_fetch_waits_for_as_many_bytes_as_it_wants(node):
    size = len(batch_of(b"a"))
    parked = node.share_fetch(0, node.wanted(), max_wait_ms=500, min_bytes=size + 1)
    node.produced(batch_of(b"a"))
    assert not parked.done
    node.produced(batch_of(b"b"))
    assert values_of(row_of(done(parked))) == [b"a", b"b"]


def test_a_fetch_that_is_answered_waits_for_nothing_any_more(node):
    share = node.share()
    parked = node.share_fetch(0, node.wanted(), max_wait_ms=500)
    assert len(share._watchers) == 1
    node.advance(500)
    assert parked.done
    assert not share._watchers


def test_the_bytes_of_all_partitions_count_for_a_fetch_that_waits(node):
    size = len(batch_of(b"a"))
    parked = node.share_fetch(0, node.wanted(0, 1, 2), max_wait_ms=500, min_bytes=size + 1)
    node.produced(batch_of(b"a"), partition=2)
    assert not parked.done
    node.produced(batch_of(b"b"))
    assert {at for at, row in rows_of(done(parked)).items() if row.records} == {0, 2}


def test_a_fetch_that_waits_looks_only_at_the_partition_that_changes(node, monkeypatch):
    node.topic("many", 50)
    parked = node.share_fetch(
        0, node.wanted(*range(50), topic="many"), max_wait_ms=500, min_bytes=1
    )
    looked_at = []
    next_fetch_offset = SharePartition.next_fetch_offset

    def looked(share):
        looked_at.append(share.partition.index)
        return next_fetch_offset(share)

    monkeypatch.setattr(SharePartition, "next_fetch_offset", looked)
    held = done(node.share_fetch(0, node.wanted(7, topic="many"), member="m2", max_wait_ms=0))
    assert not any(row.records for row in rows_of(held).values())
    looked_at.clear()
    node.cluster.topics["many"].partitions[8].notify()
    assert set(looked_at) == {8}
    assert not parked.done


def many_fetched(node):
    """A fetch of very many partitions with a record each, which are read in slices."""
    count = 2 * PARTITIONS_PER_SLICE + 10
    node.topic("many", count)
    for index in range(count):
        node.produced(batch_of(b"a"), topic="many", partition=index)
    return count, node.share_fetch(0, node.wanted(*range(count), topic="many"), max_records=1 << 20)


def turn(node):
    node.cluster.runtime.timers.run_due(node.now_ms)


def test_very_many_partitions_are_read_in_slices(node):
    count, parked = many_fetched(node)
    acquired = []
    while not parked.done:
        turn(node)
        acquired.append(sum(bool(summary(node.share("many", index))) for index in range(count)))
    rows = rows_of(done(parked))
    assert len(rows) == count
    assert all(values_of(row) == [b"a"] for row in rows.values())
    assert sorted(set(acquired)) == [0, PARTITIONS_PER_SLICE, 2 * PARTITIONS_PER_SLICE, count]


def test_all_slices_count_as_time_of_the_handler(node, monkeypatch):
    """`request_percentage` measures it. Each slice after the first one takes one tick: two that get
    share partitions, the last of which reads some of them, and two that read the others.
    """
    quota = {"request_percentage": 1.0}
    node.cluster.quotas.alter(entity_of([("user", "u")]), quota, validate_only=False)
    usage = RequestUsage(node.cluster.quotas.throttling, 0, itertools.count().__next__)
    make = node.share_ctx

    def measured(*values, **options):
        ctx = make(*values, **options)
        ctx.usage = usage
        return ctx

    monkeypatch.setattr(node, "share_ctx", measured)
    _, parked = many_fetched(node)
    spent = []
    parked.on_complete = lambda: spent.append(usage.spent_ns)
    while not parked.done:
        turn(node)
    assert spent == [4]


def test_what_another_member_acquires_between_two_slices_is_not_sent_twice(node):
    count, parked = many_fetched(node)
    last = count - 1
    while not summary(node.share("many", 0)):
        turn(node)
    other = row_of(done(node.share_fetch(0, node.wanted(last, topic="many"), member="m2")))
    assert values_of(other) == [b"a"]
    while not parked.done:
        turn(node)
    sent = {at for at, row in rows_of(done(parked)).items() if row.records}
    assert sent == set(range(last))


def test_a_fetch_ends_with_what_there_is_when_its_time_is_over(node):
    parked = node.share_fetch(0, node.wanted(), max_wait_ms=500, min_bytes=1 << 20)
    node.produced(batch_of(b"a"))
    node.advance(499)
    assert not parked.done
    node.advance(1)
    assert values_of(row_of(done(parked))) == [b"a"]


def test_a_fetch_waits_for_records_that_are_released(node):
    node.produced(batch_of(b"a"))
    fetched(node, 0, node.wanted())
    parked = node.share_fetch(0, node.wanted(), member="m2", max_wait_ms=500)
    assert not parked.done
    done(node.share_acknowledge(1, node.acks((0, 0, [2]))))
    assert ranges_of(row_of(done(parked))) == [(0, 0, 2)]


def test_a_fetch_waits_for_the_end_of_a_lock(node):
    node.produced(batch_of(b"a"))
    fetched(node, 0, node.wanted())
    parked = node.share_fetch(0, node.wanted(), member="m2", max_wait_ms=LOCK_MS + 1)
    node.advance(LOCK_MS)
    assert ranges_of(row_of(done(parked))) == [(0, 0, 2)]


def test_a_fetch_waits_until_the_state_is_read(node):
    node.produced(batch_of(b"a"))
    node.persister.holds_reads = True
    parked = node.share_fetch(0, node.wanted(), max_wait_ms=500)
    assert not parked.done
    node.persister.answer()
    assert values_of(row_of(done(parked))) == [b"a"]


def test_a_fetch_is_answered_empty_if_its_share_partition_ends_meanwhile(node):
    parked = node.share_fetch(0, node.wanted(), max_wait_ms=500)
    node.manager.fence(node.share())
    node.advance(500)
    assert done(parked).responses == []


def test_a_fetch_below_the_log_start_is_empty_and_the_next_one_continues(node):
    for value in (b"a", b"b"):
        node.produced(batch_of(value))
    node.share()
    node.cluster.topics["t"].partitions[0].delete_records(1)
    row = row_of(fetched(node, 0, node.wanted(), max_wait_ms=500))
    assert (row.error_code, row.records) == (ErrorCode.NONE, b"")
    assert values_of(row_of(fetched(node, 1))) == [b"b"]


def test_a_share_partition_of_a_former_leader_epoch_cannot_follow_the_log_start(node):
    """A leader that goes on in a new epoch, as after a reassignment, keeps its share partitions
    with their epoch. ShareFetchUtils asks for the log start with it, and SharePartitionManager does
    not fence them for the error. They end with the group's last connection to the broker.
    """
    for value in (b"a", b"b"):
        node.produced(batch_of(value))
    former, partition = node.share(), node.cluster.topics["t"].partitions[0]
    partition.become_leader(partition.leader_id, partition.leader_epoch + 1, partition.isr)
    assert values_of(row_of(fetched(node, 0, node.wanted(), max_records=1))) == [b"a"]
    node.produced(batch_of(b"c"))
    partition.delete_records(2)
    for epoch in (1, 2):
        row = row_of(fetched(node, epoch))
        assert (row.error_code, row.records) == (ErrorCode.FENCED_LEADER_EPOCH, b"")
    node.close()
    assert row_of(fetched(node, 0, node.wanted())).error_code == ErrorCode.NONE
    assert values_of(row_of(fetched(node, 1))) == [b"c"]
    assert former.leader_epoch < node.share().leader_epoch


@pytest.mark.parametrize("field", ["max_records", "max_bytes"])
def test_a_fetch_of_nothing_does_not_wait(node, field):
    node.produced(batch_of(b"a"))
    assert fetched(node, 0, node.wanted(), max_wait_ms=500, **{field: 0}).responses == []


def test_another_request_ends_the_wait_of_a_fetch(node):
    """As of a plain Fetch; Kafka answers the second request late."""
    parked = node.share_fetch(0, node.wanted(), max_wait_ms=500)
    assert parked.force_complete is not None
    parked.force_complete()
    assert row_of(done(parked)).acquired_records == []


# -- sessions --------------------------------------------------------------------------------------


def test_an_incremental_answer_has_partitions_with_news_only(node):
    node.produced(batch_of(b"a"))
    assert set(rows_of(fetched(node, 0, node.wanted(0, 1)))) == {0, 1}
    assert fetched(node, 1).responses == []
    assert set(rows_of(fetched(node, 2, node.wanted(2)))) == {2}, "it is new"
    node.produced(batch_of(b"b"), partition=1)
    assert set(rows_of(fetched(node, 3))) == {1}
    assert fetched(node, 4, forgotten_topics_data=[node.forgotten(0, 1)]).responses == []
    node.produced(batch_of(b"b"), partition=1)
    assert fetched(node, 5).responses == []


@pytest.mark.parametrize("epoch", [0, 3, -3])
def test_an_invalid_epoch_is_refused(node, epoch):
    fetched(node, 0, node.wanted())
    fetched(node, 1)
    response = fetched(node, epoch, node.wanted(acks=[(0, 0, [1])] if not epoch else ()))
    expected = ErrorCode.INVALID_SHARE_SESSION_EPOCH if epoch else ErrorCode.INVALID_REQUEST
    assert response.error_code == expected


def test_a_member_without_a_session_is_told_so(node):
    assert fetched(node, 1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert fetched(node, -1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_epoch_minus_1_acknowledges_and_releases_the_rest(node):
    node.produced(batch_of(b"a", b"b"))
    fetched(node, 0, node.wanted())
    response = fetched(node, -1, node.wanted(acks=[(0, 0, [1])]))
    assert row_of(response).acknowledge_error_code == ErrorCode.NONE
    assert summary(node.share()) == "0:acknowledged/1 1:available/1"
    assert fetched(node, 1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_without_room_for_a_session_the_answer_takes_as_long_as_a_fetch():
    node = ShareNode(configs={"group.share.max.share.sessions": "1"})
    node.topic("t")
    fetched(node, 0, node.wanted())
    parked = node.share_fetch(0, node.wanted(), member="m2", max_wait_ms=500)
    assert not parked.done
    node.advance(500)
    assert done(parked).error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED


def test_a_closed_connection_releases_what_its_member_has(node):
    node.produced(batch_of(b"a"))
    fetched(node, 0, node.wanted())
    fetched(node, 0, node.wanted(), member="m2")
    share = node.share()
    node.close()
    assert summary(share) == "0:available/1"
    assert share.is_active, "the group has another member"
    node.close("m2")
    assert not share.is_active
    assert fetched(node, 1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_waiting_fetch_of_a_closed_connection_may_get_what_is_released(node):
    """As in Kafka: nothing ends a fetch that waits, and the lock returns the record in time."""
    for index in range(3):
        node.produced(batch_of(b"a"), partition=index)
    fetched(node, 0, node.wanted(0, 1, 2))
    parked = node.share_fetch(1, max_wait_ms=500)
    fetched(node, 0, node.wanted(), member="m2")
    node.close()
    assert ranges_of(row_of(done(parked))) == [(0, 0, 2)]
    assert [summary(node.share(index=index)) for index in range(3)] == [
        "0:acquired/2",
        "0:available/1",
        "0:available/1",
    ]


def test_a_session_that_was_used_meanwhile_answers_a_parked_fetch_with_an_error(node):
    fetched(node, 0, node.wanted())
    parked = node.share_fetch(1, max_wait_ms=500)
    done(node.share_acknowledge(2, node.acks()))
    node.produced(batch_of(b"a"))
    response = done(parked)
    assert response.error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert response.responses == []


# -- acknowledgements ------------------------------------------------------------------------------


def test_acknowledgements_are_applied_before_records_are_acquired(node):
    node.produced(batch_of(b"a", b"b"))
    fetched(node, 0, node.wanted())
    row = row_of(fetched(node, 1, node.wanted(acks=[(0, 1, [1, 2])])))
    assert (row.acknowledge_error_code, ranges_of(row)) == (ErrorCode.NONE, [(1, 1, 2)])


def test_the_answer_waits_for_the_write(node):
    node.produced(batch_of(b"a"))
    fetched(node, 0, node.wanted())
    node.persister.holds = True
    parked = node.share_fetch(1, node.wanted(acks=[(0, 0, [1])]))
    assert not parked.done
    node.persister.answer()
    assert row_of(done(parked)).acknowledge_error_code == ErrorCode.NONE


def test_an_error_of_an_acknowledgement_is_beside_the_records(node):
    node.produced(batch_of(b"a"))
    fetched(node, 0, node.wanted(), member="m2")
    fetched(node, 0, node.wanted())
    node.produced(batch_of(b"b"))
    row = row_of(fetched(node, 1, node.wanted(acks=[(0, 0, [1])])))
    assert values_of(row) == [b"b"]
    assert (row.acknowledge_error_code, row.acknowledge_error_message) == (
        ErrorCode.INVALID_RECORD_STATE,
        texts.NOT_OWNER_OF_BATCH,
    )


def test_acknowledgements_of_other_partitions_have_rows_of_their_own(node):
    fetched(node, 0, node.wanted(0))
    response = fetched(node, 1, node.wanted(5, acks=[(0, 0, [1])]))
    row = row_of(response)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (row.partition_index, row.error_code, row.acknowledge_error_code) == (
        5,
        unknown,
        unknown,
    )


def test_the_last_request_of_a_session_may_acknowledge_records_of_an_unknown_topic(node):
    """It fetches nothing, so that no row of a fetch is without a name."""
    fetched(node, 0, node.wanted(0))
    row = row_of(fetched(node, -1, node.wanted(0, topic="missing", acks=[(0, 0, [1])])))
    assert (row.error_code, row.acknowledge_error_code) == (0, ErrorCode.UNKNOWN_TOPIC_ID)


def test_a_renewal_fetches_nothing_and_does_not_wait(node):
    node.produced(batch_of(b"a"))
    fetched(node, 0, node.wanted())
    node.produced(batch_of(b"b"))
    node.advance(20_000)
    wanted = node.wanted(acks=[(0, 0, [4])])
    nothing = {"max_records": 0, "min_bytes": 0, "max_bytes": 0}
    response = fetched(node, 1, wanted, is_renew_ack=True, **nothing)
    assert row_of(response).acknowledge_error_code == ErrorCode.NONE
    assert row_of(response).records == b""
    node.advance(20_000)
    assert summary(node.share()) == "0:acquired/1"


@pytest.mark.parametrize("field", ["max_records", "min_bytes", "max_bytes", "max_wait_ms"])
def test_a_renewal_that_wants_records_is_refused(node, field):
    fetched(node, 0, node.wanted())
    fields = {"max_records": 0, "min_bytes": 0, "max_bytes": 0, field: 1}
    response = fetched(node, 1, is_renew_ack=True, **fields)
    assert response.error_code == ErrorCode.INVALID_REQUEST


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("member", [None, "", "m" * 37])
def test_a_member_id_must_be_valid(node, member):
    assert fetched(node, 0, member=member).error_code == ErrorCode.INVALID_REQUEST


def test_a_request_needs_a_group(node):
    assert fetched(node, 0, group=None).error_code == ErrorCode.INVALID_REQUEST


def test_without_the_feature_there_are_no_share_groups(node):
    node.cluster.features.set_levels({"share.version": 0})
    assert fetched(node, 0, node.wanted()).error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    "index",
    [9, -1],
)
def test_unknown_partitions_have_an_error_and_do_not_wait(node, index):
    row = row_of(fetched(node, 0, node.wanted(index), max_wait_ms=500))
    assert row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_unknown_topic_fails_each_request_of_its_session(node):
    """BrokerTopicStats throws for a topic without a name, after the records were acquired."""
    node.produced(batch_of(b"a"))
    missing = node.wanted(topic="missing")
    response = fetched(node, 0, node.wanted(), missing)
    assert (response.error_code, response.responses) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
    assert response.acquisition_lock_timeout_ms == 0
    assert summary(node.share()) == "0:acquired/1"
    assert fetched(node, 1).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    forgotten = [ForgottenTopic(node.topic_id("missing"), [0])]
    assert fetched(node, 2, forgotten_topics_data=forgotten).error_code == ErrorCode.NONE


def test_with_an_authorizer_an_unknown_topic_fails_the_request_before_it_is_served():
    """AuthHelper throws for a topic without a name: nothing is acknowledged or acquired."""
    node = ShareNode(configs={"authorizer.class.name": STANDARD_AUTHORIZER, **EVERYONE})
    node.topic("t")
    node.produced(batch_of(b"a"))
    node.produced(batch_of(b"b"))
    missing = node.wanted(topic="missing")
    fetched(node, 0, node.wanted(), max_records=1)
    response = fetched(node, 1, node.wanted(acks=[(0, 0, [1])]), missing)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert fetched(node, 2).error_code == ErrorCode.UNKNOWN_SERVER_ERROR, "it is in the session"
    assert summary(node.share()) == "0:acquired/1"
    assert fetched(node, -1, missing).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert node.manager.sessions.get((GROUP, MEMBER)) is not None


def test_a_throttled_fetch_brings_only_the_errors_of_acknowledgements(node):
    node.produced(batch_of(b"a"))
    fetched(node, 0, node.wanted())
    throttling_quota(node)
    node.produced(batch_of(bytes(5_000)))
    response = fetched(node, 1, node.wanted(acks=[(0, 0, [1])]))
    assert response.throttle_time_ms > 0
    row = row_of(response)
    assert (row.partition_index, row.records, row.acknowledge_error_code) == (0, b"", 0)
    assert summary(node.share()) == "1:acquired/1", "the client has them when their lock ends"


def test_a_throttled_fetch_owes_the_client_a_new_partition(node):
    node.produced(batch_of(bytes(5_000)))
    fetched(node, 0, node.wanted(1))
    throttling_quota(node)
    assert fetched(node, 1, node.wanted(0, 2)).responses == []
    session = node.manager.sessions.get((GROUP, MEMBER))
    assert session is not None
    assert session.must_send((node.topic_id("t"), 2))


def throttling_quota(node: ShareNode) -> None:
    entity = entity_of([("client-id", None)])
    node.cluster.quotas.alter(entity, {"consumer_byte_rate": 100.0}, validate_only=False)


def test_another_leader_is_named(node):
    node = ShareNode(racks=(None, None))
    partition = node.topic("t")
    partition.become_leader(2, 1, [1, 2])
    response = fetched(node, 0, node.wanted(), max_wait_ms=500)
    row = row_of(response)
    assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (row.current_leader.leader_id, row.current_leader.leader_epoch) == (2, 1)
    assert [each.node_id for each in response.node_endpoints] == [2]


def test_an_error_of_the_share_coordinator_is_told_and_the_next_fetch_tries_again(node):
    node.produced(batch_of(b"a"))
    node.persister.error = ErrorCode.GROUP_ID_NOT_FOUND
    row = row_of(fetched(node, 0, node.wanted()))
    assert row.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    node.persister.error = 0
    assert values_of(row_of(fetched(node, 1))) == [b"a"]


def test_a_topic_that_is_created_again_is_another_one(node):
    fetched(node, 0, node.wanted())
    node.cluster.delete_topic("t")
    assert fetched(node, 1).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    node.topic("t")
    assert fetched(node, 2).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert row_of(fetched(node, 0, node.wanted())).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("batches", "valid"),
    [
        ([(0, 1, [1])], True),
        ([(0, 1, [1, 2])], True),
        ([(0, 1, [1]), (1, 2, [1])], True),
        ([(0, 1, [1]), (0, 0, [1])], False),
        ([(2, 1, [1])], False),
        ([(0, 1, [])], False),
        ([(0, 1, [1, 1, 1])], False),
        ([(0, 1, [5])], False),
        ([(0, 1, [-1])], False),
        ([(0, 1, [4])], False),
        ([(-1, 1, [1])], True),
        ([(-2, 1, [1])], False),
    ],
)
def test_ranges_and_types_of_acknowledgements_are_checked(batches, valid):
    listed = [AcknowledgementBatch(first, last, types) for first, last, types in batches]
    assert are_valid(listed, may_renew=True, is_renew=False) is valid


def test_renewals_need_the_newer_version_and_the_flag():
    batches = [AcknowledgementBatch(0, 0, [4])]
    assert are_valid(batches, may_renew=True, is_renew=True)
    assert not are_valid(batches, may_renew=False, is_renew=True)
    assert not are_valid(batches, may_renew=True, is_renew=False)
