"""What a message is about, found in any API by the names of its fields."""

from __future__ import annotations

import pytest

from mockbroker.core.message_facts import scalars, targets
from mockbroker_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from mockbroker_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from mockbroker_protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from mockbroker_protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

ORDERS_ID = bytes(range(16))


def name_of(topic_id: bytes) -> str | None:
    return {ORDERS_ID: "orders"}.get(topic_id)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            ProduceRequest(topic_data=[TopicProduceData("t", b"", [PartitionProduceData(3)])]),
            [("t", 3)],
        ),
        (
            FetchRequest(
                topics=[FetchTopic(topic_id=ORDERS_ID, partitions=[FetchPartition(1)])],
                forgotten_topics_data=[ForgottenTopic("gone", partitions=[4, 5])],
            ),
            [("orders", 1), ("gone", 4), ("gone", 5)],
        ),
        (
            FetchResponse(responses=[FetchableTopicResponse("t", partitions=[PartitionData(7)])]),
            [("t", 7)],
        ),
        (MetadataRequest(topics=[MetadataRequestTopic(name="t")]), [("t", -1)]),
        (MetadataRequest(topics=None), []),
        (CreateTopicsRequest(topics=[CreatableTopic("new", 3)]), [("new", -1)]),
        (
            OffsetCommitRequest(
                topics=[OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(2)])]
            ),
            [("t", 2)],
        ),
        (
            AddPartitionsToTxnRequest(v3_and_below_topics=[AddPartitionsToTxnTopic("t", [0, 1])]),
            [("t", 0), ("t", 1)],
        ),
        (
            WriteTxnMarkersRequest([WritableTxnMarker(topics=[WritableTxnMarkerTopic("t", [9])])]),
            [("t", 9)],
        ),
        (
            DescribeConfigsRequest(
                [DescribeConfigsResource(2, "t"), DescribeConfigsResource(4, "1")]
            ),
            [("t", -1)],
        ),
        (
            ConsumerGroupHeartbeatRequest(group_id="g", subscribed_topic_names=["a", "b"]),
            [("a", -1), ("b", -1)],
        ),
        (JoinGroupRequest("g", protocols=[JoinGroupRequestProtocol("range")]), []),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, list) else "",
)
def test_every_topic_and_partition_is_named_in_order(message, expected):
    assert [(each.topic, each.partition) for each in targets(message, name_of)] == expected


def test_an_unknown_topic_id_is_shown_in_hex():
    message = FetchRequest(topics=[FetchTopic(topic_id=b"\xff" * 16, partitions=[])])
    assert [each.topic for each in targets(message, name_of)] == ["ff" * 16]


def test_a_target_comes_with_the_struct_that_speaks_of_it():
    partition = PartitionProduceData(3)
    message = ProduceRequest(topic_data=[TopicProduceData("t", b"", [partition])])
    assert next(targets(message, name_of)).item is partition


def test_facts_at_the_top_level_have_one_name_in_all_apis():
    assert scalars(JoinGroupRequest("g", member_id="m", group_instance_id="i")) == {
        "group": "g",
        "member": "m",
        "instance_id": "i",
    }
    assert scalars(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=7,
            v3_and_below_producer_epoch=1,
        )
    ) == {"transactional_id": "x", "producer_id": 7, "producer_epoch": 1}
