"""Produce: refusals of whole requests and of partitions, and the time of the answer."""

from __future__ import annotations

import pytest

from mockbroker.core.events import Event, RequestUnanswered
from mockbroker.core.replication.replica import FollowerState
from mockbroker.handlers.base import CLOSE_CONNECTION, NO_RESPONSE, Parked
from mockbroker.handlers.produce import produce
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.records import CompressionType, Record, build_batch
from tests.support.requests import NOW_MS, Node, batch_of, done, only, produce_request, values_of

TRANSACTIONAL = {"producer_id": 4, "producer_epoch": 0, "base_sequence": 0, "transactional": True}


def error_of(response) -> ErrorCode:
    return ErrorCode(response.error_code)


def sized(batch: bytearray, length: int) -> bytearray:
    """The batch with another length in its header."""
    batch[8:12] = length.to_bytes(4, "big", signed=True)
    return batch


@pytest.fixture
def node() -> Node:
    node = Node()
    node.topic("t", 2)
    return node


@pytest.mark.covers("S99")
@pytest.mark.parametrize("acks", [1, -1])
def test_an_append_is_answered_with_its_place_in_the_log(node, acks):
    node.produced(batch_of(b"before", b"it"))
    answer = node.produced(batch_of(b"a", b"b"), acks=acks)
    assert error_of(answer) is ErrorCode.NONE
    assert (answer.base_offset, answer.log_append_time_ms, answer.log_start_offset) == (2, -1, 0)


@pytest.mark.covers("S99")
def test_acks_0_gets_no_answer_and_a_closed_connection_when_something_failed(node):
    assert node.produce(batch_of(b"a"), acks=0) is NO_RESPONSE
    assert node.produce(batch_of(b"a"), topic="missing", acks=0) is CLOSE_CONNECTION
    assert node.produce(batch_of(b"a", base_offset=1), acks=0) is CLOSE_CONNECTION
    assert node.produce(sized(batch_of(b"a"), 5), acks=0) is CLOSE_CONNECTION
    assert node.cluster.topics["t"].partitions[0].log_end_offset == 1


def test_partitions_of_one_request_fail_on_their_own(node):
    request = produce_request(
        {("t", 0): batch_of(b"a"), ("t", 7): batch_of(b"b"), ("t", 1): batch_of(b"c")}
    )
    (topic,) = done(produce(node.ctx(9), request)).responses
    errors = [(answer.index, error_of(answer)) for answer in topic.partition_responses]
    assert errors == [
        (0, ErrorCode.NONE),
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (1, ErrorCode.NONE),
    ]


@pytest.mark.parametrize(
    ("topic", "version", "error"),
    [
        ("missing", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("missing", 13, ErrorCode.UNKNOWN_TOPIC_ID),
        ("no/such", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_unknown_topics(node, topic, version, error):
    answer = node.produced(batch_of(b"a"), topic=topic, version=version)
    assert error_of(answer) is error
    assert (answer.base_offset, answer.log_start_offset) == (-1, -1)


def test_version_13_names_topics_by_id_in_both_directions(node):
    (topic,) = done(node.produce(batch_of(b"a"), version=13)).responses
    assert (topic.name, topic.topic_id) == ("", node.cluster.topics["t"].topic_id)
    assert error_of(topic.partition_responses[0]) is ErrorCode.NONE


# -- records ---------------------------------------------------------------------------------------


def old_message() -> bytearray:
    """A message set of format v1 with one empty message."""
    return bytearray(8) + bytes((0, 0, 0, 22)) + bytes(4) + b"\1\0" + bytes(8) + b"\xff" * 8


@pytest.mark.parametrize(
    ("records", "error"),
    [
        pytest.param(b"", ErrorCode.INVALID_RECORD, id="empty"),
        pytest.param(batch_of(b"a")[:-1], ErrorCode.INVALID_RECORD, id="cut in the records"),
        pytest.param(batch_of(b"a")[:15], ErrorCode.INVALID_RECORD, id="cut in the header"),
        pytest.param(batch_of(b"a") * 2, ErrorCode.INVALID_RECORD, id="two batches"),
        pytest.param(old_message(), ErrorCode.INVALID_RECORD, id="message format v1"),
        pytest.param(sized(batch_of(b"a"), 13), ErrorCode.CORRUPT_MESSAGE, id="tiny size"),
        pytest.param(sized(batch_of(b"a"), -1), ErrorCode.CORRUPT_MESSAGE, id="negative size"),
        pytest.param(
            batch_of(b"a") + bytes(8) + bytes((0, 0, 0, 5)), ErrorCode.CORRUPT_MESSAGE, id="junk"
        ),
        pytest.param(batch_of(b"a") + b"junk", ErrorCode.NONE, id="bytes behind the batch"),
    ],
)
def test_a_request_carries_exactly_one_whole_batch(node, records, error):
    assert error_of(node.produced(bytearray(records))) is error
    expected = 1 if error is ErrorCode.NONE else 0
    assert node.cluster.topics["t"].partitions[0].log_end_offset == expected


def test_a_partition_named_again_takes_the_place_of_the_first_and_topics_are_merged(node):
    def data(*entries):
        return TopicProduceData(
            "t",
            partition_data=[
                PartitionProduceData(index, memoryview(batch_of(*values)))
                for index, values in entries
            ],
        )

    request = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[data((0, [b"a"]), (0, [b"b", b"c"])), data((1, [b"d"])), data()],
    )
    (topic,) = done(produce(node.ctx(9), request)).responses
    assert [answer.index for answer in topic.partition_responses] == [0, 1]
    assert values_of(node.fetched(("t", 0, 0))) == [b"b", b"c"]


@pytest.mark.parametrize(
    ("size", "error"),
    [(26, -1), (50, -1), (51, 2), (60, 2)],
)
def test_a_batch_without_room_for_its_header_fails_where_kafka_first_reads_past_its_end(
    node, size, error
):
    assert node.produced(sized(batch_of(b"a"), size - 12)[:size]).error_code == error


def test_bytes_behind_the_batch_are_dropped(node):
    node.produced(batch_of(b"a") + b"junk")
    data = node.fetched(("t", 0, 0))
    assert values_of(data) == [b"a"]
    assert sum(len(piece) for piece in data.records) == len(batch_of(b"a"))


def test_corruption_at_the_front_refuses_the_whole_request(node):
    request = produce_request({("t", 0): batch_of(b"a"), ("t", 1): sized(batch_of(b"b"), 5)})
    (topic,) = done(produce(node.ctx(9), request)).responses
    assert [error_of(answer) for answer in topic.partition_responses] == [
        ErrorCode.CORRUPT_MESSAGE
    ] * 2
    assert node.cluster.topics["t"].partitions[0].log_end_offset == 0


def test_an_unknown_magic_refuses_the_whole_request(node):
    batch = batch_of(b"a")
    batch[16] = 3
    answer = node.produced(batch)
    assert error_of(answer) is ErrorCode.CORRUPT_MESSAGE
    assert answer.error_message == "Invalid magic found in record: 3"


def test_null_records_leave_the_request_without_an_answer(node):
    events: list[Event] = []
    node.cluster.runtime.on_event.append(events.append)
    answer = node.produce(None)
    assert isinstance(answer, Parked)
    node.advance(10**9)
    assert not answer.done
    (event,) = (event for event in events if isinstance(event, RequestUnanswered))
    assert (event.api, event.reason) == ("PRODUCE", "records are null")


def test_null_records_of_an_unknown_topic_are_answered(node):
    answer = node.produced(None, topic="missing")
    assert error_of(answer) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.covers("S101")
@pytest.mark.parametrize(
    ("version", "error"),
    [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, ErrorCode.NONE)],
)
def test_zstd_needs_version_7(node, version, error):
    batch = batch_of(b"a" * 100, codec=CompressionType.ZSTD)
    assert error_of(node.produced(batch, version=version)) is error


def test_failures_of_the_batch_tell_the_log_start_and_earlier_ones_do_not(node):
    node.produced(batch_of(b"a", b"b", b"c"))
    node.cluster.topics["t"].partitions[0].delete_records(2)
    assert node.produced(batch_of(b"a", base_offset=5)).log_start_offset == 2
    assert node.produced(b"").log_start_offset == -1
    flipped = batch_of(b"a")
    flipped[-1] ^= 1
    assert node.produced(flipped).log_start_offset == -1


def test_refused_records_are_named(node):
    late = NOW_MS + 10**8
    answer = node.produced(build_batch([Record(0, 1, b"k"), Record(1, late, b"k")]))
    assert error_of(answer) is ErrorCode.INVALID_TIMESTAMP
    assert answer.error_message == "One or more records have been rejected due to invalid timestamp"
    (record_error,) = answer.record_errors
    assert record_error.batch_index == 1
    assert str(late) in record_error.batch_index_error_message


@pytest.mark.covers("S122")
def test_the_append_time_is_answered_where_the_broker_sets_it(node):
    node.topic("stamped", message_timestamp_type="LogAppendTime")
    node.advance(5)
    answer = node.produced(batch_of(b"a", timestamp=3), topic="stamped")
    assert answer.log_append_time_ms == NOW_MS + 5


# -- who may write where ---------------------------------------------------------------------------


@pytest.mark.covers("S99")
def test_other_acks_are_refused_where_nothing_else_is_wrong(node):
    assert error_of(node.produced(batch_of(b"a"), acks=2)) is ErrorCode.INVALID_REQUIRED_ACKS
    missing = node.produced(batch_of(b"a"), topic="missing", acks=2)
    assert error_of(missing) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert error_of(node.produced(b"", acks=2)) is ErrorCode.INVALID_RECORD


def test_only_the_admin_client_writes_to_internal_topics(node):
    node.cluster.ensure_internal_topic("__consumer_offsets")
    leader = node.cluster.topics["__consumer_offsets"].partitions[0].leader_id
    batch = batch_of(b"a")
    refused = node.produced(bytearray(batch), topic="__consumer_offsets", broker=leader)
    assert error_of(refused) is ErrorCode.INVALID_TOPIC_EXCEPTION
    accepted = node.produced(
        batch, topic="__consumer_offsets", broker=leader, client_id="__admin_client"
    )
    assert error_of(accepted) is ErrorCode.NONE


@pytest.mark.parametrize(("version", "hinted"), [(9, False), (10, True)])
def test_a_broker_that_does_not_lead_says_who_does(version, hinted):
    node = Node(racks=(None, "b"))
    node.topic().become_leader(2, 3, [2, 1])
    response = done(node.produce(batch_of(b"a"), version=version))
    answer = only(response)
    assert error_of(answer) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.log_start_offset == -1
    leader = (answer.current_leader.leader_id, answer.current_leader.leader_epoch)
    endpoints = [(e.node_id, e.host, e.port, e.rack) for e in response.node_endpoints]
    assert leader == ((2, 3) if hinted else (-1, -1))
    assert endpoints == ([(2, "127.0.0.1", 9002, "b")] if hinted else [])


def test_a_transactional_batch_needs_a_transactional_id(node):
    request = produce_request(
        {("t", 0): batch_of(b"plain"), ("t", 1): batch_of(b"a", **TRANSACTIONAL)}
    )
    (topic,) = done(produce(node.ctx(9), request)).responses
    assert {error_of(answer) for answer in topic.partition_responses} == {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    }


def test_a_transactional_batch_is_refused_while_nobody_coordinates_it(node):
    answer = node.produced(batch_of(b"a", **TRANSACTIONAL), transactional_id="x")
    assert error_of(answer) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert "COORDINATOR_NOT_AVAILABLE" in answer.error_message


@pytest.mark.covers("S117")
def test_a_retry_gets_the_offsets_of_the_first_attempt(node):
    def send():
        batch = batch_of(b"a", timestamp=9, producer_id=1, producer_epoch=0, base_sequence=0)
        return node.produced(batch)

    node.produced(batch_of(b"before"))
    first, again = send(), send()
    assert (first.base_offset, again.base_offset) == (1, 1)
    assert error_of(again) is ErrorCode.NONE
    assert node.cluster.topics["t"].partitions[0].log_end_offset == 2


# -- waiting for the high watermark ----------------------------------------------------------------


@pytest.fixture
def lagging() -> tuple[Node, FollowerState]:
    """Two brokers; the second one's copy stands still."""
    node = Node(racks=(None, None))
    partition = node.topic(min_insync_replicas="2")
    node.cluster.replication.hold(partition, 2)
    return node, partition.followers[2]


def catch_up(node: Node, state: FollowerState, offset: int) -> None:
    partition = node.cluster.topics["t"].partitions[0]
    state.fetched_offset = offset
    partition.advance_high_watermark()
    partition.notify()


def test_acks_all_waits_for_the_followers(lagging):
    node, state = lagging
    parked = node.produce(batch_of(b"a", b"b"))
    assert not parked.done
    catch_up(node, state, 1)
    assert not parked.done
    catch_up(node, state, 2)
    answer = only(parked)
    assert (error_of(answer), answer.base_offset) == (ErrorCode.NONE, 0)


def test_acks_1_does_not_wait(lagging):
    node, _ = lagging
    assert error_of(node.produced(batch_of(b"a"), acks=1)) is ErrorCode.NONE


def test_acks_all_times_out_with_the_offset_it_got(lagging):
    node, _ = lagging
    parked = node.produce(batch_of(b"a"), timeout_ms=200)
    node.advance(199)
    assert not parked.done
    node.advance(1)
    answer = only(parked)
    assert error_of(answer) is ErrorCode.REQUEST_TIMED_OUT
    assert (answer.base_offset, answer.log_start_offset) == (0, 0)
    assert node.cluster.topics["t"].partitions[0].log_end_offset == 1


def test_an_isr_that_shrinks_below_the_minimum_meanwhile_is_told_once_the_data_is_there(lagging):
    node, _ = lagging
    partition = node.cluster.topics["t"].partitions[0]
    parked = node.produce(batch_of(b"a"), timeout_ms=200)
    partition.isr = [1]
    partition.notify()
    assert not parked.done  # the high watermark does not move below the minimum ISR
    partition.high_watermark = 1
    partition.notify()
    assert error_of(only(parked)) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_a_leader_change_meanwhile_is_told_with_the_new_leader(lagging):
    node, _ = lagging
    parked = node.produce(batch_of(b"a"), version=10)
    node.cluster.topics["t"].partitions[0].become_leader(2, 1, [2])
    answer = only(parked)
    assert error_of(answer) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader.leader_id == 2
    assert [endpoint.node_id for endpoint in done(parked).node_endpoints] == [2]


def test_a_topic_deleted_meanwhile_is_unknown(lagging):
    node, _ = lagging
    parked = node.produce(batch_of(b"a"))
    node.cluster.delete_topic("t")
    assert error_of(only(parked)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
