"""Metadata: by name, by id or all; auto-creation, listeners, answers kept until stale."""

from __future__ import annotations

import pytest

from mockbroker.core.replication.partition import NO_LEADER
from mockbroker.core.security.authorized_operations import (
    CLUSTER_OPERATIONS,
    NOT_ASKED,
    TOPIC_OPERATIONS,
)
from mockbroker.handlers.base import APIS, Parked
from mockbroker.handlers.metadata import CREATIONS_PER_SLICE
from mockbroker.handlers.rows import perform
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from mockbroker_protocol.types import ZERO_UUID
from tests.support.ask import ask, context, nodes
from tests.support.requests import Node

ALL = MetadataRequest(topics=None)
VERSIONS = range(14)


AS_KAFKA = {"mockbroker_auto_created_at_once": "false"}


@pytest.fixture
def node() -> Node:
    return nodes(3, **AS_KAFKA)


def metadata(node: Node, *names: str, version: int = 12, **fields: object) -> MetadataResponse:
    """The answer for these topics; fields of the request by name, and `broker` or `listener`."""
    where = {key: fields.pop(key) for key in ("broker", "listener") if key in fields}
    topics = [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=topics, **fields)  # type: ignore[arg-type]
    return ask(node, ApiKey.METADATA, request, version, **where)


def by_id(node: Node, *ids: bytes, version: int = 12) -> list[MetadataResponseTopic]:
    topics = [MetadataRequestTopic(topic_id, None) for topic_id in ids]
    return ask(node, ApiKey.METADATA, MetadataRequest(topics=topics), version).topics


def everything(node: Node, version: int = 12, **where: object) -> MetadataResponse:
    request = MetadataRequest(topics=[]) if version == 0 else ALL
    return ask(node, ApiKey.METADATA, request, version, **where)


def partition_of(response: MetadataResponse) -> MetadataResponsePartition:
    (topic,) = response.topics
    (partition,) = topic.partitions
    return partition


@pytest.mark.covers("S33")
@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_tells_brokers_topics_and_partitions(node, version):
    topic = node.cluster.create_topic("t", assignments={0: [3, 1], 1: [1, 2]})
    response = metadata(node, "t", "none", version=version, allow_auto_topic_creation=False)
    assert [(b.node_id, b.host, b.port) for b in response.brokers] == [
        (n, "127.0.0.1", 9000 + n) for n in (1, 2, 3)
    ]
    found, missing = response.topics
    assert (found.name, found.error_code) == ("t", ErrorCode.NONE)
    assert [(p.partition_index, p.leader_id, p.replica_nodes) for p in found.partitions] == [
        (0, 3, [3, 1]),
        (1, 1, [1, 2]),
    ]
    if version >= 4:  # before, a request creates what it names
        assert "none" not in node.cluster.topics
    assert (missing.name, missing.error_code) == ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if version >= 1:
        assert response.controller_id == 1
        assert not found.is_internal
    if version >= 2:
        assert response.cluster_id == node.cluster.cluster_id
    if version >= 10:
        assert (found.topic_id, missing.topic_id) == (topic.topic_id, ZERO_UUID)


@pytest.mark.covers("S32")
@pytest.mark.parametrize("version", VERSIONS)
def test_all_topics_are_asked_for_by_null_or_in_version_0_by_none(node, version):
    for name in ("a", "b"):
        node.cluster.create_topic(name)
    assert [topic.name for topic in everything(node, version).topics] == ["a", "b"]
    if version >= 1:
        assert metadata(node, version=version).topics == []


def test_a_topic_named_twice_is_told_once(node):
    node.cluster.create_topic("t")
    assert [t.name for t in metadata(node, "t", "t").topics] == ["t"]


@pytest.mark.covers("S43")
@pytest.mark.parametrize("version", [0, 3, 4, 12])
def test_an_unknown_topic_is_created_for_the_next_request(version):
    node = nodes(3, num_partitions="2", default_replication_factor="3", **AS_KAFKA)
    first, again = (metadata(node, "new", version=version).topics[0] for _ in range(2))
    assert (first.error_code, first.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
    assert again.error_code == ErrorCode.NONE
    assert [len(p.replica_nodes) for p in again.partitions] == [3, 3]


@pytest.mark.parametrize("version", [0, 3, 4, 12])
def test_a_created_topic_is_in_the_answer_unless_it_is_to_be_as_kafkas(version):
    """A client then need not ask again. What cannot be created comes last."""
    node = nodes(3, num_partitions="2", default_replication_factor="3")
    bad, new = metadata(node, "new", "b/d", version=version).topics[::-1]
    assert (new.name, new.error_code) == ("new", ErrorCode.NONE)
    assert [len(p.replica_nodes) for p in new.partitions] == [3, 3]
    assert all(partition.leader_id in (1, 2, 3) for partition in new.partitions)
    assert bad.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.covers("S43")
@pytest.mark.parametrize(
    ("configs", "fields"),
    [({"auto_create_topics_enable": "false"}, {}), ({}, {"allow_auto_topic_creation": False})],
)
def test_nothing_is_created_where_broker_or_client_do_not_want_it(configs, fields):
    node = nodes(1, **configs)
    for _ in range(2):
        (topic,) = metadata(node, "new", **fields).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert node.cluster.topics == {}


def test_what_the_controller_would_refuse_is_missing_for_ever(node):
    node.cluster.create_topic("a.b")
    for name in ("a_b", "__cluster_metadata"):
        for _ in range(2):
            (topic,) = metadata(node, name).topics
            assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list(node.cluster.topics) == ["a.b"]


@pytest.mark.parametrize("name", ["a/b", "", "..", "x" * 250])
@pytest.mark.parametrize("version", [0, 9, 13])
def test_an_illegal_name_is_an_invalid_topic(node, name, version):
    (topic,) = metadata(node, name, version=version).topics
    assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert node.cluster.topics == {}


@pytest.mark.covers("S44")
def test_internal_topics_are_marked_and_created_as_they_must_be(node):
    first, again = (metadata(node, "__consumer_offsets").topics[0] for _ in range(2))
    assert (first.is_internal, first.error_code) == (True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert (again.is_internal, len(again.partitions)) == (True, 50)


@pytest.mark.parametrize("version", [12, 13])
def test_unknown_topic_ids_come_before_topics(node, version):
    """In the order of KafkaApis.handleTopicMetadataRequest."""
    topic = node.cluster.create_topic("t")
    unknown = bytes(15) + b"\x09"
    missing, found = by_id(node, topic.topic_id, unknown, version=version)
    assert (found.name, found.error_code) == ("t", ErrorCode.NONE)
    assert (missing.name, missing.topic_id) == (None, unknown)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_topics_that_exist_come_before_those_that_do_not(node):
    """In the order of KafkaApis.getTopicMetadata."""
    node.cluster.create_topic("t")
    names = [MetadataRequestTopic(name=name) for name in ("missing", "t", "gone")]
    request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
    topics = ask(node, ApiKey.METADATA, request).topics
    assert [topic.name for topic in topics] == ["t", "missing", "gone"]


def test_names_beside_ids_are_not_looked_at(node):
    topic = node.cluster.create_topic("t")
    named, identified = MetadataRequestTopic(name="new"), MetadataRequestTopic(topic.topic_id, None)
    request = MetadataRequest(topics=[named, identified])
    assert [t.name for t in ask(node, ApiKey.METADATA, request, 13).topics] == ["t"]
    assert "new" not in node.cluster.topics


@pytest.mark.parametrize(
    ("topic", "version", "error"),
    [
        (MetadataRequestTopic(b"\x01" * 16, "t"), 10, ErrorCode.INVALID_REQUEST),
        (MetadataRequestTopic(ZERO_UUID, None), 11, ErrorCode.INVALID_REQUEST),
        (MetadataRequestTopic(ZERO_UUID, None), 12, ErrorCode.UNKNOWN_SERVER_ERROR),
        (MetadataRequestTopic(ZERO_UUID, None), 13, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_ids_before_their_version_and_topics_without_name_or_id_fail_the_request(
    node, topic, version, error
):
    response = ask(node, ApiKey.METADATA, MetadataRequest(topics=[topic]), version)
    assert (response.brokers, response.controller_id, response.cluster_id) == ([], -1, None)
    assert [(t.error_code, t.name) for t in response.topics] == [(error, topic.name or "")]
    assert response.error_code == (error if version >= 13 else ErrorCode.NONE)


def test_authorized_operations_are_told_when_asked(node):
    node.cluster.create_topic("t")
    asked = {
        "include_topic_authorized_operations": True,
        "include_cluster_authorized_operations": True,
        "allow_auto_topic_creation": False,
    }
    for version, cluster_operations in ((8, CLUSTER_OPERATIONS), (10, CLUSTER_OPERATIONS)):
        response = metadata(node, "t", "none", version=version, **asked)
        assert [t.topic_authorized_operations for t in response.topics] == [TOPIC_OPERATIONS] * 2
        assert response.cluster_authorized_operations == cluster_operations
    del asked["include_cluster_authorized_operations"]
    assert metadata(node, "t", version=12, **asked).topics[0].topic_authorized_operations == 3576
    unasked = metadata(node, "t", version=10)
    assert unasked.topics[0].topic_authorized_operations == NOT_ASKED
    assert unasked.cluster_authorized_operations == NOT_ASKED


# -- listeners and the dead ------------------------------------------------------------------------


def test_each_listener_has_its_own_addresses(node):
    for node_id in (1, 2):
        node.cluster.brokers[node_id].set_endpoint("INSIDE", "in", 100 + node_id)
    response = everything(node, listener="INSIDE")
    assert [(b.node_id, b.host, b.port) for b in response.brokers] == [
        (1, "in", 101),
        (2, "in", 102),
    ]
    assert len(everything(node).brokers) == 3


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (1, ErrorCode.LEADER_NOT_AVAILABLE),
        (5, ErrorCode.LEADER_NOT_AVAILABLE),
        (6, ErrorCode.LISTENER_NOT_FOUND),
        (13, ErrorCode.LISTENER_NOT_FOUND),
    ],
)
def test_a_leader_without_the_listener_cannot_be_told(node, version, error):
    node.cluster.brokers[1].set_endpoint("INSIDE", "in", 101)
    node.cluster.create_topic("t", assignments={0: [2, 1]})
    partition = partition_of(metadata(node, "t", version=version, listener="INSIDE"))
    assert (partition.error_code, partition.leader_id) == (error, -1)
    assert (partition.replica_nodes, partition.isr_nodes) == ([2, 1], [2, 1])
    if version >= 5:
        assert partition.offline_replicas == [2]


@pytest.mark.parametrize("version", [1, 13])
def test_a_partition_without_a_leader(node, version):
    (stored,) = node.cluster.create_topic("t", assignments={0: [1, 2]}).partitions
    stored.become_leader(NO_LEADER, 1, [])
    node.cluster.metadata.changed(stored.topic)
    partition = partition_of(metadata(node, "t", version=version))
    assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert (partition.leader_id, partition.isr_nodes) == (-1, [])


def test_a_dead_replica_is_offline_and_in_version_0_an_error(node):
    (stored,) = node.cluster.create_topic("t", assignments={0: [1, 2, 3]}).partitions
    node.cluster.brokers[3].fenced = True
    stored.set_isr([1, 2])
    node.cluster.metadata.changed()
    partition = partition_of(metadata(node, "t"))
    assert partition.error_code == ErrorCode.NONE
    assert (partition.replica_nodes, partition.offline_replicas) == ([1, 2, 3], [3])
    oldest = partition_of(metadata(node, "t", version=0))
    assert oldest.error_code == ErrorCode.REPLICA_NOT_AVAILABLE
    assert oldest.replica_nodes == [1, 2]
    assert [b.node_id for b in metadata(node, "t").brokers] == [1, 2]


def test_leader_epochs_and_racks_are_told():
    node = Node(racks=["r1", None])
    (stored,) = node.cluster.create_topic("t", assignments={0: [1, 2]}).partitions
    stored.become_leader(2, 5, [1, 2])
    node.cluster.metadata.changed(stored.topic)
    response = metadata(node, "t")
    assert partition_of(response).leader_epoch == 5
    assert [b.rack for b in response.brokers] == ["r1", None]


# -- kept answers ----------------------------------------------------------------------------------


def test_a_full_answer_is_kept_until_something_changes(node):
    node.cluster.create_topic("t")
    ctx = context(node, ApiKey.METADATA, 12)
    handle = APIS[int(ApiKey.METADATA)].handle
    ask(node, ApiKey.METADATA, ALL, 12)
    first = handle(ctx, ALL)
    assert handle(ctx, ALL) is first
    node.cluster.create_topic("u")
    assert handle(ctx, ALL) is not first


@pytest.mark.parametrize("version", VERSIONS)
def test_every_kind_of_change_shows_in_the_next_answer(node, version):
    cluster = node.cluster
    topic = cluster.create_topic("t", assignments={0: [1, 2]})

    def seen() -> MetadataResponse:
        response = everything(node, version)
        (named,) = (t for t in metadata(node, "t", version=version).topics)
        (listed,) = (t for t in response.topics if t.name == "t")
        assert named == listed
        return response

    assert len(seen().topics[0].partitions) == 1
    cluster.topic_control.add_partitions(topic, 2)
    assert len(seen().topics[0].partitions) == 2
    topic.partitions[0].become_leader(2, 1, [1, 2])
    cluster.metadata.changed(topic)
    assert seen().topics[0].partitions[0].leader_id == 2
    cluster.create_topic("u")
    assert len(seen().topics) == 2
    cluster.delete_topic("u")
    assert len(seen().topics) == 1
    cluster.brokers[3].set_endpoint("PLAINTEXT", "moved", 1)
    assert seen().brokers[2].host == "moved"
    cluster.brokers[1].fenced = True
    cluster.metadata.changed()
    assert [b.node_id for b in seen().brokers] == [2, 3]


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("count", [0, 1, 126, 127, 128, 300])
def test_answers_of_any_number_of_topics_are_put_together_right(version, count):
    node = nodes(1)
    names = [f"t{n}" for n in range(count)]
    for name in names:
        node.cluster.create_topic(name)
    assert [topic.name for topic in everything(node, version).topics] == names


def test_very_many_topics_are_created_in_slices() -> None:
    """A frame may name 20,000; others are served between them. The answer has them in order."""
    node = nodes(1)
    names = [f"t{number}" for number in range(2 * CREATIONS_PER_SLICE + 1)]
    request = MetadataRequest([MetadataRequestTopic(name=name) for name in names])
    reply = perform(APIS[int(ApiKey.METADATA)], context(node, ApiKey.METADATA, 12), request)
    assert isinstance(reply, Parked)
    created = [len(node.cluster.topics)]
    while not reply.done:
        node.advance(0)
        created.append(len(node.cluster.topics))
    assert created == [31, 63, 65]
    body = b"".join(reply.response.parts)
    answer, _ = response_codec(ApiKey.METADATA, 12).decode(body)
    assert [topic.name for topic in answer.topics] == names
    assert {topic.error_code for topic in answer.topics} == {0}
