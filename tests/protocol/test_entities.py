"""What a message is about, found in any API by what its fields are declared to name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase as fnmatch
from typing import Any

import pytest

from mockbroker_protocol import ApiKey
from mockbroker_protocol.declarations import declared_keys, messages_of, schema_module
from mockbroker_protocol.declare import (
    BROKER_ID,
    GROUP_ID,
    INSTANCE_ID,
    MEMBER_ID,
    PARTITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    TOPIC_ID,
    TOPIC_NAME,
    TRANSACTIONAL_ID,
    Array,
    Entity,
    EntityBy,
    Field,
    Scalar,
    Shape,
)
from mockbroker_protocol.entities import (
    Mention,
    means_all_topics,
    mentions,
    plain_fields,
    shape_of,
    targets,
    values,
)
from mockbroker_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
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
from mockbroker_protocol.messages.init_producer_id import InitProducerIdRequest
from mockbroker_protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mockbroker_protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockbroker_protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
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
from mockbroker_protocol.records import BatchHeader, Record, build_batch
from tests.support.populated import populated

ORDERS_ID = bytes(range(16))


def name_of(topic_id: bytes) -> str | None:
    return {ORDERS_ID: "orders"}.get(topic_id)


@pytest.mark.parametrize(
    ("version", "message", "expected"),
    [
        (
            12,
            ProduceRequest(topic_data=[TopicProduceData("t", b"", [PartitionProduceData(3)])]),
            [("t", 3)],
        ),
        (
            12,
            FetchRequest(
                topics=[FetchTopic("t", partitions=[FetchPartition(1)])],
                forgotten_topics_data=[ForgottenTopic("gone", partitions=[4, 5])],
            ),
            [("t", 1), ("gone", 4), ("gone", 5)],
        ),
        (
            13,
            FetchRequest(topics=[FetchTopic(topic_id=ORDERS_ID, partitions=[FetchPartition(1)])]),
            [("orders", 1)],
        ),
        (
            12,
            FetchResponse(responses=[FetchableTopicResponse("t", partitions=[PartitionData(7)])]),
            [("t", 7)],
        ),
        (12, MetadataRequest(topics=[MetadataRequestTopic(name="t")]), [("t", -1)]),
        (12, MetadataRequest(topics=None), []),
        (7, CreateTopicsRequest(topics=[CreatableTopic("new", 3)]), [("new", -1)]),
        (
            8,
            OffsetCommitRequest(
                topics=[OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(2)])]
            ),
            [("t", 2)],
        ),
        (
            3,
            AddPartitionsToTxnRequest(v3_and_below_topics=[AddPartitionsToTxnTopic("t", [0, 1])]),
            [("t", 0), ("t", 1)],
        ),
        (
            1,
            WriteTxnMarkersRequest([WritableTxnMarker(topics=[WritableTxnMarkerTopic("t", [9])])]),
            [("t", 9)],
        ),
        (
            4,
            DescribeConfigsRequest(
                [DescribeConfigsResource(2, "t"), DescribeConfigsResource(4, "1")]
            ),
            [("t", -1)],
        ),
        (
            1,
            ConsumerGroupHeartbeatRequest(group_id="g", subscribed_topic_names=["a", "b"]),
            [("a", -1), ("b", -1)],
        ),
        (9, JoinGroupRequest("g", protocols=[JoinGroupRequestProtocol("range")]), []),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, list) else "",
)
def test_every_topic_and_partition_is_named_in_order(version, message, expected):
    found = targets(message, version, name_of)
    assert [(each.topic, each.partition) for each in found] == expected


def test_an_unknown_topic_id_is_shown_in_hex():
    message = FetchRequest(topics=[FetchTopic(topic_id=b"\xff" * 16, partitions=[])])
    assert [each.topic for each in targets(message, 13, name_of)] == ["ff" * 16]


def test_a_target_comes_with_the_struct_that_speaks_of_it():
    partition = PartitionProduceData(3)
    message = ProduceRequest(topic_data=[TopicProduceData("t", b"", [partition])])
    assert targets(message, 12, name_of)[0].item is partition


def test_things_have_one_kind_in_all_apis_and_come_with_the_struct_that_names_them():
    joining = JoinGroupRequest("g", member_id="m", group_instance_id="i")
    kinds = frozenset((GROUP_ID, MEMBER_ID, INSTANCE_ID))
    assert mentions(joining, 9, kinds) == [
        Mention(GROUP_ID, "g", joining),
        Mention(MEMBER_ID, "m", joining),
        Mention(INSTANCE_ID, "i", joining),
    ]
    leaving = LeaveGroupRequest("g", members=[MemberIdentity("m"), MemberIdentity("n", "i")])
    found = mentions(leaving, 5, kinds)
    assert [each.value for each in found] == ["g", "m", "n", "i"]
    assert [each.item for each in found[1:]] == [leaving.members[0], *leaving.members[1:] * 2]


def test_fields_that_a_version_lacks_name_nothing():
    """The default of a producer id is 0, which is a producer."""
    old = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x", v3_and_below_producer_id=0, v3_and_below_producer_epoch=1
    )
    assert values(old, 3, PRODUCER_ID) == [0]
    new = AddPartitionsToTxnRequest(
        transactions=[AddPartitionsToTxnTransaction("x", producer_id=7, producer_epoch=1)]
    )
    assert values(new, 5, PRODUCER_ID) == [7]
    assert values(new, 5, TRANSACTIONAL_ID) == ["x"]


def test_values_by_which_clients_say_nothing_name_nothing():
    assert values(InitProducerIdRequest(transactional_id=None), 4, TRANSACTIONAL_ID) == []
    assert values(InitProducerIdRequest(producer_id=-1), 4, PRODUCER_ID) == []
    assert values(OffsetFetchRequest(group_id=""), 7, GROUP_ID) == []


def test_a_resource_is_what_its_type_says():
    request = DescribeConfigsRequest(
        [
            DescribeConfigsResource(2, "orders"),
            DescribeConfigsResource(4, "3"),
            DescribeConfigsResource(4, ""),
            DescribeConfigsResource(16, "metrics"),
            DescribeConfigsResource(32, "billing"),
        ]
    )
    kinds = frozenset((TOPIC_NAME, BROKER_ID, GROUP_ID))
    found = [(each.kind, each.value) for each in mentions(request, 4, kinds)]
    assert found == [(TOPIC_NAME, "orders"), (BROKER_ID, 3), (GROUP_ID, "billing")]


def test_the_producer_of_a_produce_stands_in_its_batches():
    batch = build_batch([Record(timestamp=1, value=b"x")], producer_id=0, producer_epoch=4)
    plain = build_batch([Record(timestamp=1, value=b"x")])
    data = [
        PartitionProduceData(number, memoryview(records))
        for number, records in enumerate((batch, plain, b"too short"))
    ]
    request = ProduceRequest(topic_data=[TopicProduceData("t", partition_data=data)])
    assert mentions(request, 9, frozenset((PRODUCER_ID, PRODUCER_EPOCH))) == [
        Mention(PRODUCER_ID, 0, data[0]),
        Mention(PRODUCER_EPOCH, 4, data[0]),
    ]


def test_null_stands_for_all_topics_where_kafka_says_so():
    assert means_all_topics(MetadataRequest(topics=None), 12)
    assert not means_all_topics(MetadataRequest(topics=[]), 12)
    everything = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=None)])
    assert means_all_topics(everything, 9)
    # A member that owns what it owned before says so with null.
    assert not means_all_topics(ConsumerGroupHeartbeatRequest(topic_partitions=None), 1)


@pytest.mark.parametrize(
    ("request_", "version", "fields"),
    [
        (ProduceRequest(), 9, ()),
        (JoinGroupRequest(), 9, ("group_id",)),
        (OffsetFetchRequest(), 7, ("group_id",)),
        (OffsetFetchRequest(), 9, None),
        (DescribeConfigsRequest(), 4, None),
    ],
)
def test_plain_fields_are_told_where_they_are_all(request_, version, fields):
    assert plain_fields(shape_of(type(request_)), version, GROUP_ID) == fields


# -- all messages ----------------------------------------------------------------------------------

EVERY = frozenset(Entity)


def in_fields(item: Any, shape: Shape, version: int) -> Iterator[tuple[Entity, object]]:
    """What the fields of a struct name, read off field by field."""
    for field in shape.fields:
        if version not in field.versions:
            continue
        elements = getattr(item, field.name)
        inner = field.type.element if isinstance(field.type, Array) else field.type
        for each in elements if isinstance(field.type, Array) else [elements]:
            if isinstance(inner, Shape):
                yield from in_fields(each, inner, version)
            elif field.type is Scalar.RECORDS and field.names is not None:
                header = BatchHeader(each)
                yield PRODUCER_ID, header.producer_id
                if header.producer_epoch >= 0:
                    yield PRODUCER_EPOCH, header.producer_epoch
            elif isinstance(field.names, EntityBy):
                kind = field.names.kinds.get(getattr(item, field.names.field))
                if kind is not None:
                    yield kind, int(each) if kind is BROKER_ID else each
            elif field.names is not None:
                yield field.names, each


@pytest.mark.parametrize("is_request", [True, False], ids=["request", "response"])
@pytest.mark.parametrize("key", declared_keys(), ids=lambda key: key.name)
def test_all_that_is_declared_is_found_in_every_version(key: ApiKey, is_request: bool) -> None:
    schema = schema_module(key.name.lower())
    declared = schema.REQUEST if is_request else schema.RESPONSE
    for version in range(declared.versions.low, declared.versions.high + 1):
        message = populated(key, version, request=is_request)
        expected = list(in_fields(message, declared.shape, version))
        found = mentions(message, version, EVERY)
        # The batch's epoch is told if it has one; -1 is none.
        assert [(each.kind, each.value) for each in found if each.value != -1] == expected
        named = {value for kind, value in expected if kind is TOPIC_NAME}
        known = {value.hex() for kind, value in expected if kind is TOPIC_ID}  # type: ignore[attr-defined]
        topics = {each.topic for each in targets(message, version, lambda _: None)}
        assert named <= topics <= named | known
        assert bool(topics) is bool(named | known)
        numbers = {value for kind, value in expected if kind is PARTITION}
        assert {each.partition for each in targets(message, version, str)} - {-1} == numbers


# Names that fields have which name something.
LOOKS = re.compile(
    r"(^|_)(topics?|topic_names?|topic_ids?|groups?|group_ids?|groups_names|transactional_ids?|"
    r"producer_ids?|producer_epoch|member_ids?|member_epoch|generation_id|instance_ids?|brokers?|"
    r"broker_ids?|nodes?|node_ids?|partitions?|partition_(index|indexes|ids?)|index|leader|"
    r"leader_id|replicas?|replica_id|voter_id|controller_id|coordinator_keys|resource_name|owner)"
    r"(_filters?|_pattern|_regex)?$"
)
# Fields that are called so and name nothing: message and path, as globs -> why.
NAMELESS = {
    "ProduceResponse *.batch_index": "a record's place in its batch",
    "*Telemetry* client_instance_id": "a client by itself, member of no group",
    "SyncGroupRequest assignments.member_id": "the message is its own member's, the leader's",
    "CreateTopicsRequest topics.assignments.partition_index": "of a topic that is not there yet",
    "CreateTopics* topics.num_partitions": "how many",
    "DescribeClusterRequest include_fenced_brokers": "yes or no",
    "*Acls* *resource_name*": "a pattern: literal, prefix or *",
    "ListTransactionsRequest transactional_id_pattern": "a pattern",
    "ConsumerGroup* *subscribed_topic_regex": "a pattern",
    "StreamsGroup* *source_topic_regex": "a pattern",
    "StreamsGroupHeartbeatRequest *.copartition_groups.*": "places in other arrays",
    "StreamsGroup* *_topics.partitions": "how many",
    "StreamsGroup* *_tasks.partitions": "of a task, which reads several topics",
    "StreamsGroup* *task_*offsets.partition": "of a task, which reads several topics",
}


def looking_like_entities() -> list[tuple[str, Entity | EntityBy | None]]:
    """Message and path of every field that is called like an entity, and what it names."""
    found = []
    for key in declared_keys():
        for message in messages_of(schema_module(key.name.lower())):
            for path, holder, field in leaves(message.shape):
                of_topic = field.name == "name" and "Topic" in holder and "Config" not in holder
                if of_topic or LOOKS.search(field.name):
                    found.append((f"{message.name} {path}", field.names))
    return found


def leaves(shape: Shape, above: str = "") -> Iterator[tuple[str, str, Field]]:
    for field in shape.fields:
        inner = field.type.element if isinstance(field.type, Array) else field.type
        if isinstance(inner, Shape):
            yield from leaves(inner, f"{above}{field.name}.")
        else:
            yield above + field.name, shape.name, field


def test_every_field_that_is_called_like_an_entity_says_which_or_why_not() -> None:
    fields = looking_like_entities()
    assert len(fields) > 300
    bare = {name for name, names in fields if names is None}
    excused = {name: [glob for glob in NAMELESS if fnmatch(name, glob)] for name in bare}
    assert [name for name, globs in excused.items() if not globs] == []
    used = {glob for globs in excused.values() for glob in globs}
    assert used == set(NAMELESS)
    declared = {name for name, names in fields if names is not None}
    assert [name for name in declared if any(fnmatch(name, glob) for glob in NAMELESS)] == []


def test_no_field_is_declared_twice_over() -> None:
    """Kafka's entity type or ours; ours of the kinds that Kafka has only where it has none."""
    for key in declared_keys():
        for message in messages_of(schema_module(key.name.lower())):
            for path, _, field in leaves(message.shape):
                assert field.entity is None or field.own_entity is None, (message.name, path)


@pytest.mark.parametrize("name", ["9" * 5_000, "²", "x", "-1"])
def test_a_config_resource_that_is_no_broker_id_names_no_broker(name: str) -> None:
    """Any client may send one, while rules are in force or the journal is read."""
    request = DescribeConfigsRequest(
        [DescribeConfigsResource(4, name, None), DescribeConfigsResource(4, "1", None)]
    )
    assert values(request, 4, BROKER_ID) == [1]
