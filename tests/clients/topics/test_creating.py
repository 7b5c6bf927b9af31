"""Making topics: by an administrator, by a producer, by a consumer, by the cluster itself."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
    TopicDescription,
)
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from kafka import KafkaConsumer

from mockbroker import Cluster
from mockbroker.client import Client, Resource
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.metadata import MetadataRequest
from tests.support.members import settings
from tests.support.request_log import RequestLog

# Topics are what these tests make.
pytestmark = pytest.mark.mock_kafka(topics={})


def create(admin: AdminClient, *topics: NewTopic, **options: Any) -> None:
    """Create topics and wait. Raises KafkaException with the first error."""
    for future in admin.create_topics(list(topics), **options).values():
        future.result(20)


def error_of(admin: AdminClient, topic: NewTopic, **options: Any) -> KafkaError:
    with pytest.raises(KafkaException) as refused:
        create(admin, topic, **options)
    error: KafkaError = refused.value.args[0]
    return error


def describe(admin: AdminClient, topic: str) -> TopicDescription:
    described: TopicDescription = admin.describe_topics(TopicCollection([topic]))[topic].result(20)
    return described


def replicas(admin: AdminClient, topic: str) -> list[list[int]]:
    return [[node.id for node in each.replicas] for each in describe(admin, topic).partitions]


@pytest.mark.covers("S31")
@pytest.mark.mock_kafka(brokers=2)
def test_a_topic_with_two_replicas_has_them_on_two_brokers(admin: AdminClient) -> None:
    create(admin, NewTopic("jinx01", 1, 2))
    (both,) = replicas(admin, "jinx01")
    assert sorted(both) == [1, 2]


@pytest.mark.covers("S31")
@pytest.mark.mock_kafka(brokers=1)
def test_more_replicas_than_brokers_are_refused(admin: AdminClient) -> None:
    error = error_of(admin, NewTopic("jinx01", 1, 2))
    assert error.code() == KafkaError.INVALID_REPLICATION_FACTOR
    assert "jinx01" not in admin.list_topics(timeout=20).topics


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (NewTopic("exists", 1, 1), KafkaError.TOPIC_ALREADY_EXISTS),
        (NewTopic("no spaces", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("..", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("x" * 250, 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("exists.too", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("none", 0, 1), KafkaError.INVALID_PARTITIONS),
        (NewTopic("t", 1, 1, config={"no.such": "1"}), KafkaError.INVALID_CONFIG),
        (NewTopic("t", 1, 1, config={"retention.ms": "never"}), KafkaError.INVALID_CONFIG),
        (NewTopic("t", 1, replica_assignment=[[1, 1]]), KafkaError.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", 1, replica_assignment=[[9]]), KafkaError.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=lambda value: value if isinstance(value, int) else str(value.topic)[:12],
)
def test_a_topic_that_cannot_be_is_refused(
    kafka: Cluster, admin: AdminClient, topic: NewTopic, code: int
) -> None:
    """Each with Kafka's own error, and nothing is made."""
    kafka.topic("exists").create()
    kafka.topic("exists_too").create()
    assert error_of(admin, topic).code() == code
    assert set(admin.list_topics(timeout=20).topics) == {"exists", "exists_too"}


def test_a_topic_can_be_checked_without_being_made(admin: AdminClient) -> None:
    create(admin, NewTopic("t", 3, 3), validate_only=True)
    refused = error_of(admin, NewTopic("t", 3, 9), validate_only=True)
    assert refused.code() == KafkaError.INVALID_REPLICATION_FACTOR
    assert admin.list_topics(timeout=20).topics == {}


@pytest.mark.covers("S32")
def test_topics_are_listed_and_internal_ones_told_apart(kafka: Cluster, admin: AdminClient) -> None:
    """Metadata names them all; those that are Kafka's own bear a mark, by which tools leave them
    out.
    """
    create(admin, NewTopic("jinx01", 1, 1))
    with Client(kafka.bootstrap_servers) as client:
        client.coordinator("g")
        assert [topic.name for topic in client.topics.all()] == ["jinx01"]
        listed = {topic.name: topic.is_internal for topic in client.topics.all(internal=True)}
    assert listed == {"jinx01": False, "__consumer_offsets": True}
    assert set(admin.list_topics(timeout=20).topics) == set(listed)
    assert describe(admin, "__consumer_offsets").is_internal
    assert not describe(admin, "jinx01").is_internal
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers)
    try:
        assert consumer.topics() == {"jinx01"}  # exclude_internal_topics is on by default
    finally:
        consumer.close()


@pytest.mark.covers("S34", "S35")
@hypothesis_settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    brokers=st.integers(1, 6),
    partitions=st.integers(1, 20),
    data=st.data(),
)
def test_replicas_of_a_partition_never_share_a_broker(
    brokers: int, partitions: int, data: st.DataObject
) -> None:
    """For any number of brokers and any replication factor up to it; leaders differ by at most one
    a broker.
    """
    factor = data.draw(st.integers(1, brokers))
    with Cluster(brokers=brokers) as kafka, Client(kafka.bootstrap_servers) as client:
        client.topics.create("t", partitions=partitions, replication_factor=factor)
        described = client.topics.describe("t").partitions
    assert len(described) == partitions
    for partition in described:
        assert len(set(partition.replica_nodes)) == len(partition.replica_nodes) == factor
        assert partition.leader_id == partition.replica_nodes[0]
    leaders = Counter(partition.leader_id for partition in described)
    assert max(leaders.values()) <= -(-partitions // brokers)


@pytest.mark.covers("S35")
def test_leaders_are_spread_evenly(admin: AdminClient) -> None:
    """Six partitions on three brokers: two leaders each, and four replicas of six."""
    create(admin, NewTopic("t", 6, 2))
    leaders = Counter(each.leader.id for each in describe(admin, "t").partitions)
    assert leaders == {1: 2, 2: 2, 3: 2}
    spread = Counter(node for nodes in replicas(admin, "t") for node in nodes)
    assert spread == {1: 4, 2: 4, 3: 4}


@pytest.mark.covers("S35")
@pytest.mark.mock_kafka(brokers=6, racks=["a", "a", "b", "b", "c", "c"])
def test_replicas_are_spread_over_racks(admin: AdminClient) -> None:
    """With three racks and three replicas each partition is in all of them."""
    create(admin, NewTopic("t", 12, 3))
    rack_of = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
    for nodes in replicas(admin, "t"):
        assert sorted(rack_of[node] for node in nodes) == ["a", "b", "c"]


@pytest.mark.covers("S35")
def test_a_manual_assignment_is_honoured(admin: AdminClient) -> None:
    wanted = [[3, 1], [2, 3], [1, 2]]
    create(admin, NewTopic("t", 3, replica_assignment=wanted))
    assert replicas(admin, "t") == wanted
    assert [each.leader.id for each in describe(admin, "t").partitions] == [3, 2, 1]


@pytest.mark.covers("S37")
def test_configs_given_at_creation_are_the_topics_own(admin: AdminClient) -> None:
    given = {"min.insync.replicas": "2", "cleanup.policy": "compact"}
    create(admin, NewTopic("t", 1, 3, config=given))
    resource = ConfigResource(ResourceType.TOPIC, "t")
    configs = admin.describe_configs([resource])[resource].result(20)
    for name, value in given.items():
        assert configs[name].value == value
        assert configs[name].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert configs["retention.ms"].source == ConfigSource.DEFAULT_CONFIG.value
    own = {n for n, c in configs.items() if c.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}
    assert own == set(given)


# ------------------------------------------------------------------------------------- by use


@pytest.mark.covers("S43")
@pytest.mark.mock_kafka(configs={"num.partitions": 3, "default.replication.factor": 2})
def test_a_producer_makes_a_topic_by_writing_to_it(kafka: Cluster, admin: AdminClient) -> None:
    """With num.partitions and default.replication.factor."""
    producer = Producer(settings(kafka))
    producer.produce("new", b"x")
    assert producer.flush(20) == 0
    assert len(kafka.expect_records("new", 1)) == 1
    assert [len(nodes) for nodes in replicas(admin, "new")] == [2, 2, 2]


@pytest.mark.covers("S43")
def test_consumers_make_a_topic_only_where_their_client_asks_for_it(
    kafka: Cluster, admin: AdminClient, log: RequestLog
) -> None:
    """librdkafka does not by default, and may be told to; kafka-python does."""

    def asked(name: str) -> list[bool]:
        requests = [each.request for each in log.of(ApiKey.METADATA)]
        named = [r for r in requests if name in {topic.name for topic in r.topics or []}]
        return [request.allow_auto_topic_creation for request in named]

    for name, config in (
        ("refused", {}),
        ("made", {"allow_auto_create_topics": True}),
    ):
        consumer = Consumer(settings(kafka, group_id="g", **config))
        consumer.assign([TopicPartition(name, 0)])
        while not asked(name):
            consumer.poll(0.05)
        consumer.close()
    assert (asked("refused")[0], asked("made")[0]) == (False, True)
    python = KafkaConsumer("made.too", bootstrap_servers=kafka.bootstrap_servers)
    try:
        while not asked("made.too"):
            python.poll(timeout_ms=50)
    finally:
        python.close()
    assert set(admin.list_topics(timeout=20).topics) - {"__consumer_offsets"} == {
        "made",
        "made.too",
    }


@pytest.mark.covers("S43")
@pytest.mark.mock_kafka(configs={"auto.create.topics.enable": "false"})
def test_without_auto_creation_an_unknown_topic_stays_unknown(
    kafka: Cluster, admin: AdminClient
) -> None:
    producer = Producer(settings(kafka, topic_metadata_propagation_max_ms=0))
    errors: list[KafkaError] = []
    while not errors:
        with contextlib.suppress(KafkaException):  # once the client knows, it refuses at once
            producer.produce("new", b"x", on_delivery=lambda error, _: errors.append(error))
        producer.poll(0.05)
    assert errors[0].code() in (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART)
    consumer = Consumer(settings(kafka, group_id="g", allow_auto_create_topics=True))
    consumer.subscribe(["new"])
    message = consumer.poll(20)
    assert message is not None
    assert message.error().code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    consumer.close()
    assert "new" not in admin.list_topics(timeout=20).topics


# --------------------------------------------------------------------------------- internal topics


@pytest.mark.covers("S44")
@pytest.mark.parametrize(
    ("key_type", "topic"), [(0, "__consumer_offsets"), (1, "__transaction_state")]
)
def test_looking_for_a_coordinator_makes_its_topic(
    kafka: Cluster, key_type: int, topic: str
) -> None:
    """50 partitions, three replicas, compacted; the first answer may say it is not there yet."""
    with Client(kafka.bootstrap_servers) as client:
        connection = client.router.any()
        assert connection.send(MetadataRequest(topics=None)).topics == []
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g"])
        (first,) = connection.send(request).coordinators
        assert first.error_code in (ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        while first.error_code:
            (first,) = connection.send(request).coordinators
        described = client.topics.describe(topic)
        assert described.is_internal
        assert len(described.partitions) == 50
        assert {len(each.replica_nodes) for each in described.partitions} == {3}
        configs = {
            config.name: config.value for config in client.configs.describe(Resource.TOPIC, topic)
        }
        assert configs["cleanup.policy"] == "compact"


@pytest.mark.covers("S44")
def test_the_first_member_of_a_fresh_cluster_finds_its_coordinator(
    kafka: Cluster, log: RequestLog
) -> None:
    """However the first look-up ends, the client gets there."""
    kafka.topic("t").create()
    assert "__consumer_offsets" not in kafka.call(lambda cluster: set(cluster.topics))
    producer = Producer(settings(kafka))
    producer.produce("t", b"x")
    producer.flush(20)
    consumer = Consumer(settings(kafka, group_id="g", auto_offset_reset="earliest"))
    consumer.subscribe(["t"])
    message = consumer.poll(20)
    assert message is not None
    assert message.value() == b"x"
    consumer.close()
    topic = kafka.call(lambda cluster: len(cluster.topics["__consumer_offsets"].partitions))
    assert topic == 50
    assert log.of(ApiKey.FIND_COORDINATOR)


@pytest.mark.covers("S45")
def test_only_the_coordinator_writes_its_topic(kafka: Cluster, admin: AdminClient) -> None:
    """INVALID_TOPIC_EXCEPTION for everybody else; nor can it be made by hand under another shape.
    Deleting it is allowed, as it is in Kafka.
    """
    with Client(kafka.bootstrap_servers) as client:
        client.coordinator("g")
    delivered: list[KafkaError | None] = []
    producer = Producer(settings(kafka))
    producer.produce(
        "__consumer_offsets", b"x", on_delivery=lambda error, _: delivered.append(error)
    )
    producer.flush(20)
    (error,) = delivered
    assert error is not None
    assert error.code() == KafkaError.TOPIC_EXCEPTION
    assert kafka.records("__consumer_offsets") == []
    admin.delete_topics(["__consumer_offsets"])["__consumer_offsets"].result(20)
    assert "__consumer_offsets" not in admin.list_topics(timeout=20).topics


def test_several_topics_in_one_request_fail_or_succeed_one_by_one(kafka: Cluster) -> None:
    """A name given twice in one request fails for itself only."""
    with Client(kafka.bootstrap_servers) as client:
        topics = [
            CreatableTopic(name="good", num_partitions=1, replication_factor=1),
            CreatableTopic(name="bad/name", num_partitions=1, replication_factor=1),
            CreatableTopic(name="twice", num_partitions=1, replication_factor=1),
            CreatableTopic(name="twice", num_partitions=1, replication_factor=1),
        ]
        response = client.router.any().send(CreateTopicsRequest(topics=topics, timeout_ms=5_000))
        answers = [(each.name, each.error_code) for each in response.topics]
        assert sorted(set(answers)) == [
            ("bad/name", ErrorCode.INVALID_TOPIC_EXCEPTION),
            ("good", ErrorCode.NONE),
            ("twice", ErrorCode.INVALID_REQUEST),
        ]
        assert [topic.name for topic in client.topics.all()] == ["good"]
