"""confluent-kafka (librdkafka) where not everyone may do everything."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from mockbroker import Cluster
from mockbroker.core.security import acls
from tests.clients.authorized.ways import allow, librdkafka, revoke
from tests.support.waiting import wait_until

TIMEOUT_S = 30.0
READ, WRITE = acls.AclOperation.READ, acls.AclOperation.WRITE
TOPIC, GROUP = acls.ResourceType.TOPIC, acls.ResourceType.GROUP


def binding(name: str, operation: AclOperation = AclOperation.READ) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        name,
        ResourcePatternType.PREFIXED,
        "User:alice",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )


def everything(name: str | None = None) -> AclBindingFilter:
    return AclBindingFilter(
        ResourceType.TOPIC,
        name,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )


def sent(producer: Producer, topic: str) -> str:
    """The name of the error that a record met with, or nothing."""
    outcome: list[KafkaError | None] = []
    try:
        producer.produce(topic, b"v", on_delivery=lambda error, _: outcome.append(error))
    except KafkaException as refused:  # the client knows already, from Metadata
        return str(refused.args[0].name())
    assert producer.flush(TIMEOUT_S) == 0
    return "" if outcome[0] is None else outcome[0].name()


def test_acls_are_created_described_and_deleted(kafka: Cluster) -> None:
    admin = AdminClient(librdkafka(kafka, "admin"))
    wanted = [binding("a"), binding("b", AclOperation.ALL)]
    for created in admin.create_acls(wanted).values():
        assert created.result(TIMEOUT_S) is None
    assert sorted(admin.describe_acls(everything()).result(TIMEOUT_S)) == sorted(wanted)
    (deleted,) = admin.delete_acls([everything("a")]).values()
    assert deleted.result(TIMEOUT_S) == wanted[:1]
    assert admin.describe_acls(everything()).result(TIMEOUT_S) == wanted[1:]


def test_who_may_not_alter_the_cluster_is_told(kafka: Cluster) -> None:
    admin = AdminClient(librdkafka(kafka))
    (created,) = admin.create_acls([binding("a")]).values()
    with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
        created.result(TIMEOUT_S)
    (deleted,) = admin.delete_acls([everything()]).values()
    with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
        deleted.result(TIMEOUT_S)


def test_a_right_that_is_taken_back_ends_with_the_next_request(kafka: Cluster, topic: str) -> None:
    """On the connections that are open already."""
    allow(kafka, WRITE, TOPIC, topic)
    producer = Producer(librdkafka(kafka))
    assert sent(producer, topic) == ""
    revoke(kafka, WRITE, TOPIC, topic)
    assert sent(producer, topic) == "TOPIC_AUTHORIZATION_FAILED"
    allow(kafka, WRITE, TOPIC, topic)
    assert sent(Producer(librdkafka(kafka)), topic) == ""
    kafka.expect_records(topic, 2)


def heard(kafka: Cluster, topic: str, group: str) -> set[str]:
    """Errors, or values, until there is one."""
    consumer = Consumer(librdkafka(kafka) | {"group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: set[str] = set()

    def listens() -> bool:
        message = consumer.poll(0.2)
        if message is not None:
            error = message.error()
            found.add(message.value().decode() if error is None else error.name())
        return bool(found)

    try:
        wait_until(listens, what="an error or a record")
    finally:
        consumer.close()
    return found


def test_a_consumer_needs_its_group_and_its_topic(kafka: Cluster, topic: str) -> None:
    assert sent(Producer(librdkafka(kafka, "admin")), topic) == ""
    assert heard(kafka, topic, "readers") <= {
        "GROUP_AUTHORIZATION_FAILED",
        "TOPIC_AUTHORIZATION_FAILED",
    }
    allow(kafka, READ, GROUP, "readers")
    assert heard(kafka, topic, "readers") == {"TOPIC_AUTHORIZATION_FAILED"}
    allow(kafka, READ, TOPIC, topic)
    assert heard(kafka, topic, "readers") == {"v"}


def test_topics_that_may_not_be_described_are_not_listed(kafka: Cluster, topic: str) -> None:
    alice = AdminClient(librdkafka(kafka))
    assert topic not in alice.list_topics(timeout=TIMEOUT_S).topics
    allow(kafka, WRITE, TOPIC, topic)
    assert list(alice.list_topics(timeout=TIMEOUT_S).topics) == [topic]
    allow(kafka, acls.AclOperation.DESCRIBE, acls.ResourceType.CLUSTER, acls.CLUSTER_NAME)
    described = alice.describe_cluster(include_authorized_operations=True).result(TIMEOUT_S)
    assert described.authorized_operations == [AclOperation.DESCRIBE]


def test_a_transactional_producer_needs_its_id(kafka: Cluster, topic: str) -> None:
    allow(kafka, WRITE, TOPIC, topic)
    producer = Producer(librdkafka(kafka) | {"transactional.id": "writer"})
    with pytest.raises(KafkaException, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        producer.init_transactions(TIMEOUT_S)
    allow(kafka, WRITE, acls.ResourceType.TRANSACTIONAL_ID, "writer")
    producer = Producer(librdkafka(kafka) | {"transactional.id": "writer"})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(topic, b"v")
    producer.commit_transaction(TIMEOUT_S)
    kafka.expect_records(topic, 1)
