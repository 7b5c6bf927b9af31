"""Requests for very many partitions: in slices, between which others are served."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mockbroker.core.quotas.client_quotas import entity_of
from mockbroker.core.share.operations import INITIALIZE, READ
from mockbroker.handlers.alter_configs import alter_configs
from mockbroker.handlers.alter_user_scram_credentials import (
    CREDENTIALS_PER_SLICE,
    alter_user_scram_credentials,
)
from mockbroker.handlers.base import NO_RESPONSE, Parked
from mockbroker.handlers.config_authorization import RESOURCES_PER_SLICE
from mockbroker.handlers.create_topics import TOPICS_PER_SLICE, create_topics
from mockbroker.handlers.delete_records import delete_records
from mockbroker.handlers.delete_topics import delete_topics
from mockbroker.handlers.incremental_alter_configs import incremental_alter_configs
from mockbroker.handlers.list_offsets import list_offsets
from mockbroker.handlers.produce import produce
from mockbroker.handlers.slices import PARTITIONS_PER_SLICE
from mockbroker.handlers.write_txn_markers import write_txn_markers
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.messages import alter_configs as alter_configs_messages
from mockbroker_protocol.messages import (
    incremental_alter_configs as incremental_alter_configs_messages,
)
from mockbroker_protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from mockbroker_protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mockbroker_protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from mockbroker_protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeStateData,
)
from mockbroker_protocol.messages.initialize_share_group_state import (
    PartitionData as InitialState,
)
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mockbroker_protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.support.requests import Node, batch_of, done, produce_request
from tests.support.share_node import ShareNode
from tests.support.share_states import read_request
from tests.support.txn_node import TxnNode

COUNT = 2 * PARTITIONS_PER_SLICE + 100
E = ErrorCode


@pytest.fixture
def node() -> Node:
    node = Node()
    node.topic(partitions=COUNT)
    return node


def written(node: Node, topic: str = "t") -> int:
    """How many partitions of the topic have records."""
    return sum(1 for each in node.cluster.topics[topic].partitions if each.log_end_offset)


def turn(node: Node) -> None:
    """What an event loop does between two requests."""
    node.cluster.runtime.timers.run_due(node.now_ms)


def slices(node: Node, reply: Any, measure: Callable[[], int]) -> list[int]:
    """What `measure` says after each slice, up to the answer."""
    found = [measure()]
    while isinstance(reply, Parked) and not reply.done:
        turn(node)
        found.append(measure())
        assert len(found) < COUNT
    return found


def produce_to_all(node: Node, acks: int = -1) -> Any:
    batch = batch_of(b"v")
    request = produce_request({("t", index): batch for index in range(COUNT)}, acks=acks)
    return produce(node.ctx(9), request)


def test_batches_are_appended_in_slices(node: Node) -> None:
    reply = produce_to_all(node)
    assert slices(node, reply, lambda: written(node)) == [500, 1000, 1100, 1100]
    (topic,) = done(reply).responses
    assert [each.index for each in topic.partition_responses] == list(range(COUNT))
    assert {(each.error_code, each.base_offset) for each in topic.partition_responses} == {(0, 0)}


def test_without_acks_there_is_no_answer_in_the_end_either(node: Node) -> None:
    reply = produce_to_all(node, acks=0)
    slices(node, reply, lambda: 0)
    assert reply.response is NO_RESPONSE
    assert written(node) == COUNT


def test_a_topic_that_is_deleted_between_two_slices_is_unknown_from_then_on(node: Node) -> None:
    reply = produce_to_all(node)
    node.cluster.delete_topic("t")
    slices(node, reply, lambda: 0)
    (topic,) = done(reply).responses
    errors = [each.error_code for each in topic.partition_responses]
    missing = E.UNKNOWN_TOPIC_OR_PARTITION
    assert errors == [0] * PARTITIONS_PER_SLICE + [missing] * (COUNT - PARTITIONS_PER_SLICE)


def without_a_client(node: Node) -> None:
    """Produce to all partitions, with a client that leaves after the first slice."""
    ctx = node.ctx(9)
    batch = batch_of(b"v")
    produce(ctx, produce_request({("t", index): batch for index in range(COUNT)}))
    ctx.connection.closed = True


def test_a_change_is_made_to_the_end_when_its_client_has_left(node: Node) -> None:
    without_a_client(node)
    turn(node)
    turn(node)
    assert written(node) == COUNT


def test_a_change_ends_with_its_broker(node: Node) -> None:
    without_a_client(node)
    node.cluster.stop_broker(1)
    turn(node)
    assert written(node) == PARTITIONS_PER_SLICE


def test_a_question_ends_when_its_client_has_left(node: Node) -> None:
    ctx = node.ctx(7)
    partitions = [ListOffsetsPartition(index, timestamp=-1) for index in range(COUNT)]
    reply = list_offsets(ctx, ListOffsetsRequest(topics=[ListOffsetsTopic("t", partitions)]))
    ctx.connection.closed = True
    turn(node)
    turn(node)
    assert isinstance(reply, Parked)
    assert not reply.done


def test_topics_are_created_in_slices(node: Node) -> None:
    count = 2 * TOPICS_PER_SLICE + 10
    topics = [CreatableTopic(f"new-{number}", 1, 1) for number in range(count)]
    reply = create_topics(node.ctx(7), CreateTopicsRequest([*topics, topics[0]]))
    made = slices(node, reply, lambda: len(node.cluster.topics) - 1)
    assert made[:3] == [TOPICS_PER_SLICE, 2 * TOPICS_PER_SLICE, count - 1]
    assert len(made) > 5  # they are encoded in slices too
    codec = response_codec(ApiKey.CREATE_TOPICS, 7)
    encoded = b"".join(done(reply).parts)
    response, _ = codec.decode(encoded)
    assert b"".join(codec.encode(response)) == encoded
    errors = {each.name: each.error_code for each in response.topics}
    assert errors.pop("new-0") == E.INVALID_REQUEST  # named twice
    assert set(errors.values()) == {0}
    assert len(errors) == count - 1


def test_very_many_created_topics_tell_to_wait_as_few_do(node: Node) -> None:
    entity = entity_of([("client-id", None)])
    node.cluster.quotas.alter(entity, {"controller_mutation_rate": 1.0}, validate_only=False)
    topics = [CreatableTopic(f"new-{number}", 1, 1) for number in range(TOPICS_PER_SLICE + 1)]
    reply = create_topics(node.ctx(5), CreateTopicsRequest(topics))
    slices(node, reply, lambda: 0)
    encoded = done(reply)
    response, _ = response_codec(ApiKey.CREATE_TOPICS, 5).decode(b"".join(encoded.parts))
    assert response.throttle_time_ms == encoded.throttle_time_ms > 0


def test_topics_are_deleted_in_slices(node: Node) -> None:
    names = [f"old-{number}" for number in range(60)]
    for name in names:
        node.topic(name)
    states = [DeleteTopicState("t"), *map(DeleteTopicState, names)]
    reply = delete_topics(node.ctx(6), DeleteTopicsRequest(states, timeout_ms=1000))
    assert len(node.cluster.topics) == 60  # the large one is a slice of its own
    node.cluster.delete_topic("old-59")
    left = slices(node, reply, lambda: len(node.cluster.topics))
    assert left[0] == 59
    assert left[-1] == 0
    assert len(left) > 3
    errors = [each.error_code for each in done(reply).responses]
    assert errors == [0] * 60 + [E.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize("incrementally", [False, True])
def test_configs_are_altered_in_slices(node: Node, incrementally: bool) -> None:
    count = 2 * RESOURCES_PER_SLICE + 10
    name, value = "consumer.session.timeout.ms", "50000"
    reply: Any
    if incrementally:
        ops = [incremental_alter_configs_messages.AlterableConfig(name, 0, value)]
        reply = incremental_alter_configs(
            node.ctx(1),
            incremental_alter_configs_messages.IncrementalAlterConfigsRequest(
                [
                    incremental_alter_configs_messages.AlterConfigsResource(32, f"g{n}", ops)
                    for n in range(count)
                ]
            ),
        )
    else:
        configs = [alter_configs_messages.AlterableConfig(name, value)]
        reply = alter_configs(
            node.ctx(2),
            alter_configs_messages.AlterConfigsRequest(
                [
                    alter_configs_messages.AlterConfigsResource(32, f"g{n}", configs)
                    for n in range(count)
                ]
            ),
        )
    altered = slices(node, reply, lambda: len(node.cluster.configs.groups))
    assert altered[:3] == [RESOURCES_PER_SLICE, 2 * RESOURCES_PER_SLICE, count]
    assert [each.resource_name for each in done(reply).responses] == [f"g{n}" for n in range(count)]
    assert {each.error_code for each in done(reply).responses} == {0}


def test_many_batches_wait_for_the_replicas_as_one() -> None:
    """With acks=all the answer comes when the last of them is replicated."""
    node = Node(racks=(None, None))
    partition = node.topic(partitions=COUNT)
    node.cluster.replication.hold(partition, 2)
    reply = produce_to_all(node)
    for _ in range(5):
        turn(node)
    assert not reply.done
    node.cluster.replication.release(partition, 2)
    turn(node)
    (topic,) = done(reply).responses
    assert {each.error_code for each in topic.partition_responses} == {0}


def test_records_are_deleted_in_slices(node: Node) -> None:
    slices(node, produce_to_all(node), lambda: 0)
    wanted = [DeleteRecordsPartition(index, -1) for index in range(COUNT)]
    request = DeleteRecordsRequest([DeleteRecordsTopic("t", wanted)], 1000)
    reply = delete_records(node.ctx(2, key=ApiKey.DELETE_RECORDS), request)

    def deleted() -> int:
        return sum(1 for each in node.cluster.topics["t"].partitions if each.log_start_offset)

    assert slices(node, reply, deleted) == [499, 999, 1100]
    (topic,) = done(reply).topics
    assert {(each.error_code, each.low_watermark) for each in topic.partitions} == {(0, 1)}


def test_offsets_are_listed_in_slices(node: Node) -> None:
    """The first half is named twice: refused, each once."""
    wanted = [ListOffsetsPartition(index, -1, -1) for index in (*range(COUNT), *range(COUNT // 2))]
    request = ListOffsetsRequest(-1, 0, [ListOffsetsTopic("t", wanted)])
    reply = list_offsets(node.ctx(7, key=ApiKey.LIST_OFFSETS), request)
    assert len(slices(node, reply, lambda: 0)) == 4
    (topic,) = done(reply).topics
    errors = [(each.partition_index, each.error_code) for each in topic.partitions]
    half = COUNT // 2
    assert errors == [
        (index, E.INVALID_REQUEST if index < half else E.NONE) for index in range(COUNT)
    ]


def transaction(node: TxnNode) -> Any:
    """A transaction of every partition."""
    txn = node.txn()
    assert txn.add(*range(COUNT), topic="many") == E.NONE
    return txn


@pytest.fixture
def txn_node() -> TxnNode:
    node = TxnNode()
    node.topic("many", COUNT)
    return node


def markers(node: TxnNode) -> int:
    return written(node, "many")


def test_the_markers_of_an_end_are_sent_in_slices(txn_node: TxnNode) -> None:
    txn = transaction(txn_node)
    assert txn.end().error_code == E.NONE
    found = [markers(txn_node)]
    while txn.state != "CompleteCommit":
        turn(txn_node)
        found.append(markers(txn_node))
    assert found[-1] == COUNT
    assert len(found) > COUNT // PARTITIONS_PER_SLICE


def test_a_paused_coordinator_sends_the_rest_of_its_markers_when_it_goes_on(
    txn_node: TxnNode,
) -> None:
    txn = transaction(txn_node)
    assert txn.end().error_code == E.NONE
    while not markers(txn_node):
        turn(txn_node)
    sent = markers(txn_node)
    assert sent < COUNT
    txn_node.cluster.pause_broker(txn.broker, fence_after_ms=3_600_000)
    for _ in range(5):
        turn(txn_node)
    assert markers(txn_node) == sent
    txn_node.cluster.resume_broker(txn.broker)
    for _ in range(10):
        turn(txn_node)
    assert (markers(txn_node), txn.state) == (COUNT, "CompleteCommit")


def test_markers_of_an_administrator_are_written_in_slices(txn_node: TxnNode) -> None:
    topic = WritableTxnMarkerTopic("many", list(range(COUNT)))
    marker = WritableTxnMarker(
        producer_id=7, producer_epoch=0, transaction_result=False, topics=[topic]
    )
    ctx = txn_node.ctx(1, key=ApiKey.WRITE_TXN_MARKERS)
    reply = write_txn_markers(ctx, WriteTxnMarkersRequest([marker]))
    assert len(slices(txn_node, reply, lambda: markers(txn_node))) > COUNT // PARTITIONS_PER_SLICE
    (line,) = done(reply).markers
    assert {each.error_code for topic in line.topics for each in topic.partitions} == {0}
    assert markers(txn_node) == COUNT


def test_share_states_are_sent_and_handled_in_slices() -> None:
    node = ShareNode()
    topic_id = node.topic("many", COUNT).topic.topic_id
    data = InitializeStateData(topic_id, [InitialState(index, 1, 5) for index in range(COUNT)])
    request = InitializeShareGroupStateRequest("g", [data])
    persister = node.cluster.brokers[1].share_persister
    answers: list[Any] = []
    persister.send(INITIALIZE, request, answers.append)
    turns = 0
    while not answers:
        turn(node)
        turns += 1
    assert turns == 1  # after the first flight, which is answered at once
    (topic,) = answers[0].results
    assert sorted((each.partition, each.error_code) for each in topic.partitions) == [
        (index, E.NONE) for index in range(COUNT)
    ]
    read = read_request(topic_id, *range(COUNT))
    handled: list[Any] = []
    node.cluster.brokers[1].share_coordinator.handle(READ, read, handled.append)
    assert not handled
    turn(node)
    turn(node)
    (topic,) = handled[0].results
    assert {each.start_offset for each in topic.partitions} == {5}


def test_scram_credentials_are_made_in_slices_and_set_together(node: Node) -> None:
    """A user who has two sees both or none."""
    credentials = node.cluster.scram_credentials
    upsertions = [
        ScramCredentialUpsertion(f"user {n}", mechanism, 4096, b"salt", b"password")
        for n in range(CREDENTIALS_PER_SLICE)
        for mechanism in (1, 2)
    ]
    request = AlterUserScramCredentialsRequest(upsertions=upsertions)
    ctx = node.ctx(0, key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
    reply = alter_user_scram_credentials(ctx, request)
    assert slices(node, reply, lambda: len(credentials)) == [0, 0, CREDENTIALS_PER_SLICE]
    assert {each.error_code for each in done(reply).results} == {E.NONE}
    assert {frozenset(each) for each in credentials.values()} == {frozenset((1, 2))}
