"""Fetch: bytes and limits, errors in Kafka's order, long polls, sessions, followers."""

from __future__ import annotations

import random

import pytest

from mockbroker.core.log.producer_state import AbortedTransaction
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.replication.partition import NO_LEADER
from mockbroker.core.replication.reassignment import reassign
from mockbroker.core.replication.replica import Replica
from mockbroker.core.replication.replica_selector import RACK_AWARE
from mockbroker.handlers.base import Parked
from mockbroker.handlers.fetch import fetch
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.fetch import FetchResponse, ForgottenTopic, ReplicaState
from mockbroker_protocol.records import update_crc
from tests.support.replicas import follow
from tests.support.requests import Node, batch_of, done, fetch_request, values_of

SIZE = len(batch_of(b"0"))


def error_of(data) -> ErrorCode:
    return ErrorCode(data.error_code)


def fill(node: Node, count: int, topic: str = "t", partition: int = 0) -> None:
    """Produce so many batches of one record; the values are the offsets' digits."""
    start = node.cluster.topics[topic].partitions[partition].log_end_offset
    for offset in range(start, start + count):
        node.produced(batch_of(b"%d" % offset), topic=topic, partition=partition, acks=1)


def indexes(response: FetchResponse) -> list[tuple[str, int]]:
    return [
        (topic.topic, data.partition_index)
        for topic in response.responses
        for data in topic.partitions
    ]


@pytest.fixture
def node() -> Node:
    node = Node()
    node.topic("t", 3)
    return node


# -- bytes and limits ------------------------------------------------------------------------------


@pytest.mark.covers("S26", "S157")
def test_batches_come_as_they_were_sent_from_the_one_that_holds_the_offset(node):
    node.produced(batch_of(b"a", b"b", b"c"))
    data = node.fetched(("t", 0, 2))
    assert values_of(data) == [b"a", b"b", b"c"]
    assert b"".join(data.records)[16:] == batch_of(b"a", b"b", b"c")[16:]
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (3, 3, 0)


@pytest.mark.covers("S120", "S157")
def test_nobody_looks_into_the_records_of_a_large_batch(node):
    """What stands there is no records at all: it goes in and comes out if nobody parses it."""
    batch = batch_of(b"x" * 50_000)
    batch[61:] = random.Random(5).randbytes(len(batch) - 61)
    update_crc(batch)
    assert node.produced(bytearray(batch)).error_code == ErrorCode.NONE
    (piece,) = node.fetched(("t", 0, 0)).records
    assert bytes(piece)[16:] == batch[16:]
    assert node.produced(bytearray(batch), topic="t", partition=1, acks=1).base_offset == 0


def test_at_the_end_of_the_log_there_is_nothing_and_that_is_no_error(node):
    fill(node, 2)
    data = node.fetched(("t", 0, 2))
    assert (error_of(data), data.records) == (ErrorCode.NONE, b"")


@pytest.mark.covers("S140")
def test_limits_hold_but_for_the_first_batch_of_the_first_partition_with_data(node):
    fill(node, 3)
    fill(node, 3, partition=1)
    assert values_of(node.fetched(("t", 0, 0), partition_max_bytes=1)) == [b"0"]
    assert values_of(node.fetched(("t", 0, 0), partition_max_bytes=2 * SIZE + 1)) == [b"0", b"1"]
    wanted = (("t", 2, 0), ("t", 0, 0), ("t", 1, 0))
    (topic,) = done(node.fetch(*wanted, max_bytes=1)).responses[:1]
    answers = done(node.fetch(*wanted, max_bytes=1)).responses
    parts = {data.partition_index: data for topic in answers for data in topic.partitions}
    assert values_of(parts[0]) == [b"0"]
    assert parts[1].records == b""
    answers = done(node.fetch(*wanted, max_bytes=4 * SIZE)).responses
    parts = {data.partition_index: data for topic in answers for data in topic.partitions}
    assert [len(values_of(parts[index])) for index in (0, 1)] == [3, 1]
    assert topic.topic == "t"


def test_the_brokers_own_limit_caps_the_request(node):
    fill(node, 20)
    node.cluster.configs.static["fetch.max.bytes"] = "1024"
    node.cluster.configs_changed()
    assert len(values_of(node.fetched(("t", 0, 0)))) < 1024 // SIZE + 1


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "version", "error"),
    [
        (("missing", 0, 0), 12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("missing", 0, 0), 13, ErrorCode.UNKNOWN_TOPIC_ID),
        (("t", 9, 0), 13, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("t", -1, 0), 12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("t", 0, 4), 12, ErrorCode.OFFSET_OUT_OF_RANGE),
        (("t", 0, 0), 12, ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
def test_errors_come_with_no_offsets(node, wanted, version, error):
    fill(node, 3)
    node.cluster.topics["t"].partitions[0].delete_records(1)
    data = node.fetched(wanted, version=version)
    assert error_of(data) is error
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (-1, -1, -1)
    assert data.records == b""


@pytest.mark.covers("S88")
@pytest.mark.parametrize("version", [12, 15, 16])
def test_leader_epochs_are_compared_before_leadership(version):
    node = Node(racks=(None,) * 2)
    node.topic().become_leader(1, 4, [1, 2])
    for broker in (1, 2):
        for epoch, error in ((3, 74), (5, 75)):
            response = done(
                node.fetch(("t", 0, 0), version=version, broker=broker, current_leader_epoch=epoch)
            )
            data = response.responses[0].partitions[0]
            assert data.error_code == error
            hinted = error == ErrorCode.FENCED_LEADER_EPOCH and version >= 16
            assert data.current_leader.leader_id == (1 if hinted else -1)
            assert [e.node_id for e in response.node_endpoints] == ([1] if hinted else [])
    for epoch in (4, -1, -2):
        data = node.fetched(("t", 0, 0), current_leader_epoch=epoch)
        assert error_of(data) is ErrorCode.NONE


@pytest.mark.covers("S159")
def test_a_broker_without_a_copy_points_to_the_leader():
    node = Node(racks=(None,) * 3)
    node.cluster.create_topic("t", assignments={0: [2]})
    response = done(node.fetch(("t", 0, 0), version=16, current_leader_epoch=7))
    data = response.responses[0].partitions[0]
    assert error_of(data) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (2, 0)
    assert [(e.node_id, e.port) for e in response.node_endpoints] == [(2, 9002)]


def test_a_history_that_parted_ways_is_told_where(node):
    partition = node.cluster.topics["t"].partitions[0]
    fill(node, 3)
    partition.become_leader(1, 2, [1])
    fill(node, 2)
    agreed = node.fetched(("t", 0, 3), last_fetched_epoch=0)
    assert values_of(agreed) == [b"3", b"4"]
    parted = node.fetched(("t", 0, 5), last_fetched_epoch=0)
    assert (parted.diverging_epoch.epoch, parted.diverging_epoch.end_offset) == (0, 3)
    assert (error_of(parted), parted.records, parted.high_watermark) == (ErrorCode.NONE, b"", 5)
    between = node.fetched(("t", 0, 4), last_fetched_epoch=1)
    assert (between.diverging_epoch.epoch, between.diverging_epoch.end_offset) == (0, 3)
    unknown = node.fetched(("t", 0, 4), last_fetched_epoch=9)
    assert error_of(unknown) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_zstd_topic_is_sent_to_old_fetchers_too(node):
    """KIP-110 refused them with 76; a 4.3 broker sends what is stored."""
    node.topic("packed", compression_type="zstd")
    fill(node, 1, "packed")
    assert error_of(node.fetched(("packed", 0, 0), version=9)) is ErrorCode.NONE


# -- isolation -------------------------------------------------------------------------------------


@pytest.mark.covers("S8", "S142", "S143")
def test_read_committed_ends_at_the_last_stable_offset_and_is_told_what_was_aborted(node):
    partition = node.cluster.topics["t"].partitions[0]
    fill(node, 5)
    partition.last_stable_offset = 3
    committed = node.fetched(("t", 0, 0), isolation_level=1)
    assert values_of(committed) == [b"0", b"1", b"2"]
    assert committed.aborted_transactions == []
    uncommitted = node.fetched(("t", 0, 0))
    assert len(values_of(uncommitted)) == 5
    assert uncommitted.aborted_transactions is None
    assert uncommitted.last_stable_offset == 3
    partition.log.producers.aborted.append(AbortedTransaction(8, 1, 2, 3))
    (aborted,) = node.fetched(("t", 0, 2), isolation_level=1).aborted_transactions
    assert (aborted.producer_id, aborted.first_offset) == (8, 1)
    assert node.fetched(("t", 0, 3), isolation_level=1).aborted_transactions == []


# -- long polls ------------------------------------------------------------------------------------


def parked_fetch(node: Node, *wanted, **more) -> Parked:
    answer = node.fetch(*wanted, **{"max_wait_ms": 500, **more})
    assert isinstance(answer, Parked)
    assert not answer.done
    return answer


@pytest.mark.covers("S133")
def test_a_fetch_waits_for_data_and_is_answered_by_the_append(node):
    answer = parked_fetch(node, ("t", 0, 0))
    fill(node, 1)
    data = done(answer).responses[0].partitions[0]
    assert values_of(data) == [b"0"]


@pytest.mark.covers("S133")
def test_a_fetch_that_finds_nothing_is_answered_empty_when_its_time_is_up(node):
    answer = parked_fetch(node, ("t", 0, 0))
    node.advance(499)
    assert not answer.done
    node.advance(1)
    assert done(answer).responses[0].partitions[0].records == b""


@pytest.mark.covers("S133")
def test_a_fetch_waits_until_all_its_partitions_have_min_bytes_together(node):
    answer = parked_fetch(node, ("t", 0, 0), ("t", 1, 0), min_bytes=3 * SIZE)
    fill(node, 2)
    assert not answer.done
    fill(node, 1, partition=1)
    (topic,) = done(answer).responses
    assert [len(values_of(data)) for data in topic.partitions] == [2, 1]


def test_min_bytes_is_no_more_than_max_bytes(node):
    fill(node, 1)
    data = node.fetched(("t", 0, 0), min_bytes=1 << 30, max_bytes=SIZE, max_wait_ms=500)
    assert values_of(data) == [b"0"]


def test_appends_above_the_high_watermark_do_not_wake_a_consumer():
    node = Node(racks=(None, None))
    partition = node.topic()
    node.cluster.replication.hold(partition, 2)
    answer = parked_fetch(node, ("t", 0, 0))
    fill(node, 1)
    assert not answer.done
    node.cluster.replication.release(partition, 2)
    node.advance(0)
    assert values_of(done(answer).responses[0].partitions[0]) == [b"0"]


def test_a_consumer_beyond_the_high_watermark_does_not_wait():
    """It is the batch that holds its offset which counts (KAFKA-17803)."""
    node = Node(racks=(None, None))
    partition = node.topic()
    fill(node, 1)
    node.cluster.replication.hold(partition, 2)
    node.produce(batch_of(b"1", b"2"))
    node.produce(batch_of(b"3", b"4"))
    assert (partition.high_watermark, partition.log_end_offset) == (1, 5)
    for offset in (3, 4, 5):
        (topic,) = done(node.fetch(("t", 0, offset), max_wait_ms=500, min_bytes=1)).responses
        assert (topic.partitions[0].error_code, topic.partitions[0].records) == (0, b"")
    waiting = [parked_fetch(node, ("t", 0, offset)) for offset in (1, 2)]
    node.cluster.replication.release(partition, 2)
    node.advance(0)
    assert [len(done(each).responses[0].partitions[0].records) > 0 for each in waiting] == [
        True
    ] * 2


def test_a_high_watermark_that_goes_back_ends_the_wait_of_a_consumer_above_it(node):
    fill(node, 3)
    waiting = parked_fetch(node, ("t", 0, 3))
    node.cluster.set_high_watermark("t", 0, 1)
    (topic,) = done(waiting).responses
    assert (topic.partitions[0].high_watermark, topic.partitions[0].records) == (1, b"")


def test_an_error_is_told_at_once_but_an_unknown_topic_only_if_there_is_nothing_else(node):
    assert done(node.fetch(("t", 0, 5), ("t", 1, 0), max_wait_ms=500)) is not None
    assert done(node.fetch(("missing", 0, 5), max_wait_ms=500)) is not None
    answer = parked_fetch(node, ("missing", 0, 0), ("t", 1, 0))
    node.advance(500)
    assert indexes(done(answer)) == [("t", 1), ("missing", 0)]


def test_a_deletion_and_a_truncation_end_the_wait(node):
    for name in ("deleted", "cut"):
        node.topic(name)
    fill(node, 2, "cut")
    deleted = parked_fetch(node, ("deleted", 0, 0))
    cut = parked_fetch(node, ("cut", 0, 2))
    node.cluster.delete_topic("deleted")
    node.cluster.topics["cut"].partitions[0].truncate(1)
    errors = [error_of(done(answer).responses[0].partitions[0]) for answer in (deleted, cut)]
    assert errors == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OFFSET_OUT_OF_RANGE]


# What a fetcher sends that waits at broker 1, the leader of epoch 0: version, leader epoch.
OLD, FOLLOWERS_TOO, WITH_EPOCH = (10, -1), (12, -1), (12, 0)


@pytest.mark.covers("S88")
@pytest.mark.parametrize(
    ("fetcher", "error"),
    [
        (OLD, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ((4, -1), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (FOLLOWERS_TOO, None),
        ((11, -1), None),
        (WITH_EPOCH, ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
@pytest.mark.parametrize("leader", [2, NO_LEADER])
def test_who_waits_at_a_leader_that_is_none_any_more(fetcher, error, leader):
    """Kafka 4.3 answers those that it cannot serve as a follower, and lets the others wait: they
    get what the new leader takes.
    """
    node = Node(racks=(None, None))
    partition = node.topic()
    version, epoch = fetcher
    answer = parked_fetch(node, ("t", 0, 0), version=version, current_leader_epoch=epoch)
    partition.become_leader(leader, 1, [2])
    if error is not None:
        assert error_of(done(answer).responses[0].partitions[0]) is error
        return
    assert not answer.done
    partition.become_leader(2, 2, [2, 1])
    assert not answer.done
    node.produced(batch_of(b"new"), broker=2)
    assert values_of(done(answer).responses[0].partitions[0]) == [b"new"]


@pytest.mark.parametrize("fetcher", [OLD, FOLLOWERS_TOO, WITH_EPOCH])
@pytest.mark.parametrize("produced", [True, False])
def test_who_waits_at_a_leader_that_leads_on_under_a_higher_epoch(fetcher, produced):
    """Kafka 4.3 looks when there is something to read, or when the time is over; it is then that a
    fetcher with the former epoch is fenced.
    """
    node = Node(racks=(None, None))
    partition = node.topic()
    version, epoch = fetcher
    answer = parked_fetch(node, ("t", 0, 0), version=version, current_leader_epoch=epoch)
    partition.become_leader(1, 1, [1])
    assert not answer.done
    if produced:
        node.produced(batch_of(b"new"))
    else:
        node.advance(500)
    data = done(answer).responses[0].partitions[0]
    if fetcher == WITH_EPOCH:
        assert (error_of(data), data.records) == (ErrorCode.FENCED_LEADER_EPOCH, b"")
    else:
        assert (error_of(data), values_of(data)) == (0, [b"new"] if produced else [])


@pytest.mark.parametrize("fetcher", [OLD, FOLLOWERS_TOO, WITH_EPOCH])
def test_who_waits_at_a_broker_that_loses_its_replica_is_sent_away(fetcher):
    node = Node(racks=(None, None))
    node.topic()
    version, epoch = fetcher
    answer = parked_fetch(node, ("t", 0, 0), version=version, current_leader_epoch=epoch)
    reassign(node.cluster.replication_control, "t", 0, [2], may_change_factor=True)
    node.advance(0)
    data = done(answer).responses[0].partitions[0]
    assert error_of(data) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_that_follows_another_leader_now_fences_who_names_the_former_epoch():
    node = Node(racks=(None, None, None))
    partition = node.topic()
    named = parked_fetch(node, ("t", 0, 0), broker=2, current_leader_epoch=0)
    other = parked_fetch(node, ("t", 0, 0), broker=2)
    partition.become_leader(3, 1, [1, 2, 3])
    data = done(named).responses[0].partitions[0]
    assert error_of(data) is ErrorCode.FENCED_LEADER_EPOCH
    node.produced(batch_of(b"new"), broker=3)
    assert values_of(done(other).responses[0].partitions[0]) == [b"new"]


def test_a_history_that_parts_from_the_fetchers_ends_the_wait():
    """The second record was cut off, and the next epoch has another one in its place."""
    node = Node()
    partition = node.topic()
    fill(node, 2)
    answer = parked_fetch(node, ("t", 0, 2), last_fetched_epoch=0)
    partition.log.truncate(1)
    partition.log.epochs.assign(1, 1)
    partition.leader_epoch = 1
    fill(node, 1)
    data = done(answer).responses[0].partitions[0]
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 1)


def test_nobody_is_watching_once_the_answer_is_there(node):
    partition = node.cluster.topics["t"].partitions[0]
    answer = parked_fetch(node, ("t", 0, 0))
    fill(node, 1)
    first = done(answer)
    fill(node, 1)
    node.advance(1000)
    assert done(answer) is first
    assert (
        node.cluster.runtime.timers.deadline_ms() > node.now_ms + 10_000
    )  # when logs are looked after
    assert not partition._watchers


# -- sessions --------------------------------------------------------------------------------------


def incremental(node: Node, session: int, epoch: int, *wanted, forget=(), **more) -> FetchResponse:
    request = fetch_request(
        node.cluster, wanted, 12, session_id=session, session_epoch=epoch, **more
    )
    if forget:
        request.forgotten_topics_data = [ForgottenTopic("t", partitions=list(forget))]
    return done(fetch(node.ctx(12), request))


@pytest.mark.covers("S134", "S137")
def test_a_full_answer_has_all_partitions_and_an_incremental_one_only_news(node):
    fill(node, 1)
    opened = done(node.fetch(("t", 0, 0), ("t", 1, 0), ("t", 2, 0), session_epoch=0))
    session = opened.session_id
    assert session > 0
    assert indexes(opened) == [("t", 0), ("t", 1), ("t", 2)]
    quiet = incremental(node, session, 1, ("t", 0, 1))
    assert (quiet.session_id, quiet.error_code, indexes(quiet)) == (session, 0, [])
    fill(node, 1, partition=2)
    assert indexes(incremental(node, session, 2)) == [("t", 2)]
    assert indexes(incremental(node, session, 3, ("t", 2, 1), forget=(1,))) == []
    fill(node, 1, partition=1)
    assert indexes(incremental(node, session, 4)) == []


def test_a_partition_that_had_data_has_its_next_turn_last(node):
    for index in range(3):
        fill(node, 1, partition=index)
    wanted = (("t", 0, 0), ("t", 1, 0), ("t", 2, 0))
    session = done(node.fetch(*wanted, session_epoch=0, max_bytes=SIZE)).session_id
    turns = [
        [index for _, index in indexes(incremental(node, session, epoch, max_bytes=SIZE))]
        for epoch in (1, 2, 3, 4)
    ]
    assert turns == [[0], [1], [2], [0]]


def test_watermarks_and_log_starts_are_news(node):
    fill(node, 3)
    session = done(node.fetch(("t", 0, 3), ("t", 1, 0), session_epoch=0)).session_id
    node.cluster.topics["t"].partitions[0].delete_records(2)
    (data,) = incremental(node, session, 1).responses[0].partitions
    assert (data.log_start_offset, data.records) == (2, b"")
    assert indexes(incremental(node, session, 2)) == []


def test_after_an_error_the_partition_is_told_again(node):
    fill(node, 1)
    session = done(node.fetch(("t", 0, 9), ("t", 1, 0), session_epoch=0)).session_id
    (data,) = incremental(node, session, 1).responses[0].partitions
    assert error_of(data) is ErrorCode.OFFSET_OUT_OF_RANGE
    recovered = incremental(node, session, 2, ("t", 0, 1))
    assert indexes(recovered) == [("t", 0)]
    assert indexes(incremental(node, session, 3)) == []


@pytest.mark.covers("S135")
def test_session_errors_come_alone(node):
    session = done(node.fetch(("t", 0, 0), session_epoch=0)).session_id
    unknown = incremental(node, session + 1, 1)
    assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (unknown.session_id, unknown.responses) == (0, [])
    assert incremental(node, session, 5).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_session_used_by_another_request_meanwhile_is_an_epoch_error(node):
    session = done(node.fetch(("t", 0, 0), session_epoch=0)).session_id
    request = fetch_request(
        node.cluster, (), 12, session_id=session, session_epoch=1, max_wait_ms=500
    )
    answer = fetch(node.ctx(12), request)
    assert isinstance(answer, Parked)
    incremental(node, session, 2)
    node.advance(500)
    late = done(answer)
    assert late.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert late.session_id == session


@pytest.mark.covers("S136")
def test_an_id_that_is_not_known_yet_is_looked_up_again_and_a_recreated_topic_differs(node):
    def ask(epoch: int, *wanted) -> list[ErrorCode]:
        request = fetch_request(node.cluster, wanted, 13, session_id=session, session_epoch=epoch)
        response = done(fetch(node.ctx(13), request))
        return [error_of(data) for topic in response.responses for data in topic.partitions]

    opened = done(node.fetch(("t", 0, 0), ("missing", 0, 0), version=13, session_epoch=0))
    session = opened.session_id
    assert [error_of(topic.partitions[0]) for topic in opened.responses] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]
    assert ask(1) == [ErrorCode.UNKNOWN_TOPIC_ID]
    missing = node.topic("missing").topic
    del node.cluster.topics_by_id[missing.topic_id]
    node.cluster.topics_by_id[b"\x09" * 16] = missing
    missing.topic_id = b"\x09" * 16
    assert ask(2) == [ErrorCode.NONE]
    node.cluster.delete_topic("t")
    assert ask(3) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    node.topic("t", 1)
    assert ask(4) == [ErrorCode.INCONSISTENT_TOPIC_ID]


# -- followers and replicas ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "error"),
    [(10, ErrorCode.NOT_LEADER_OR_FOLLOWER), (11, ErrorCode.NONE)],
)
def test_followers_serve_consumers_from_version_11(version, error):
    node = Node(racks=(None, None))
    node.topic()
    fill(node, 2)
    data = node.fetched(("t", 0, 0), version=version, broker=2)
    assert error_of(data) is error
    if error is ErrorCode.NONE:
        assert values_of(data) == [b"0", b"1"]


def test_a_follower_serves_up_to_the_high_watermark_it_knows():
    node = Node(racks=(None, None))
    partition = node.topic()
    fill(node, 3)
    follow(partition, Replica(2, partition.log.fork(), 1))
    assert values_of(node.fetched(("t", 0, 0), broker=2)) == [b"0"]
    at_its_end = node.fetched(("t", 0, 2), broker=2)
    assert (error_of(at_its_end), at_its_end.records) == (ErrorCode.NONE, b"")
    assert error_of(node.fetched(("t", 0, 4), broker=2)) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_replica_reads_to_the_log_end_and_a_stranger_is_refused():
    node = Node(racks=(None, None))
    partition = node.topic()
    follow(partition, Replica(2, ReplicaLog(), 0))
    fill(node, 2)
    as_replica = node.fetched(("t", 0, 0), replica_id=2)
    assert (values_of(as_replica), as_replica.high_watermark) == ([b"0", b"1"], 0)
    assert node.fetched(("t", 0, 0)).records == b""
    state = ReplicaState(2, -1)
    assert len(values_of(node.fetched(("t", 0, 0), version=15, replica_state=state))) == 2
    for stranger in (9, 1):  # the leader does not fetch from itself
        state = ReplicaState(stranger, -1)
        response = done(node.fetch(("t", 0, 0), version=16, replica_state=state))
        (data,) = response.responses[0].partitions
        assert error_of(data) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert data.current_leader.leader_id == 1
        assert response.node_endpoints == []  # replicas know where the brokers are
    stranger = node.fetched(("t", 0, 0), replica_id=9)
    assert error_of(stranger) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    stranger = node.fetched(("t", 0, 0), replica_id=9, current_leader_epoch=0)
    assert error_of(stranger) is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_rack_aware_cluster_sends_consumers_to_the_replica_in_their_rack():
    node = Node(racks=("a", "b", "b"), configs={"replica.selector.class": RACK_AWARE})
    node.topic()
    fill(node, 1)
    for offset in (0, 1):  # at the log end, too, and without waiting
        data = node.fetched(("t", 0, offset), rack_id="b", max_wait_ms=500)
        assert (data.preferred_read_replica, data.records) == (3, b"")
        assert data.high_watermark == 1
    assert node.fetched(("t", 0, 0), rack_id="a").preferred_read_replica == -1
    assert node.fetched(("t", 0, 0), rack_id="c").preferred_read_replica == -1
    assert node.fetched(("t", 0, 0), rack_id="b", version=10).preferred_read_replica == -1
    at_follower = node.fetched(("t", 0, 0), rack_id="b", broker=3)
    assert values_of(at_follower) == [b"0"]


def test_without_the_rack_aware_selector_consumers_stay_at_the_leader():
    node = Node(racks=("a", "b"))
    node.topic()
    assert node.fetched(("t", 0, 0), rack_id="b").preferred_read_replica == -1
