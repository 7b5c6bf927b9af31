"""kafka-python's KafkaAdminClient: topics, configs, groups and their offsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, MemberToRemove, OffsetSpec
from kafka.errors import (
    BrokerResponseError,
    InvalidReplicationFactorError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from kafka.structs import OffsetAndMetadata

from tests.support.kafka_python import TIMEOUT_S, settle, subscribe
from tests.support.waiting import wait_until


@pytest.fixture
def admin(bootstrap_servers: str) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    yield admin
    admin.close()


@pytest.fixture
def topic(admin: KafkaAdminClient, name: str) -> str:
    """A topic of two partitions."""
    create(admin, name, num_partitions=2)
    return name


def create(admin: KafkaAdminClient, topic: str, **options: Any) -> None:
    options = {"num_partitions": 1, "replication_factor": 1, **options}
    admin.create_topics({topic: options}, wait_for_metadata=True)


def fill(bootstrap: str, topic: str, count: int) -> None:
    """`count` records in partition 0, a second apart."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=50)
    for n in range(count):
        producer.send(topic, b"%d" % n, partition=0, timestamp_ms=1_700_000_000_000 + 1000 * n)
    producer.flush(TIMEOUT_S)
    producer.close()


@pytest.mark.covers("S31", "S32", "S33")
def test_topics_are_created_described_grown_and_deleted(admin: KafkaAdminClient, name: str) -> None:
    create(admin, name, num_partitions=2)
    with pytest.raises(TopicAlreadyExistsError):
        create(admin, name)
    with pytest.raises(InvalidReplicationFactorError):
        create(admin, f"{name}-wide", replication_factor=9)
    assert name in admin.list_topics()
    admin.create_partitions({name: 4})

    def described() -> list[dict[str, Any]]:
        [topic] = admin.describe_topics([name])
        return sorted(topic["partitions"], key=lambda each: each["partition_index"])

    wait_until(lambda: len(described()) == 4)  # a real broker hears of it later
    admin.wait_for_topics([name])
    partitions = described()
    assert [each["partition_index"] for each in partitions] == [0, 1, 2, 3]
    for each in partitions:
        assert each["replica_nodes"] == each["isr_nodes"] == [each["leader_id"]]
    admin.delete_topics([name])
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([name])
    wait_until(lambda: name not in admin.list_topics())


@pytest.mark.covers("S37", "S303")
def test_configs_are_described_altered_and_reset(admin: KafkaAdminClient, name: str) -> None:
    create(admin, name, configs={"cleanup.policy": "compact"})

    def modified() -> dict[str, str]:
        found = admin.describe_configs([ConfigResource("TOPIC", name)])["topic"][name]
        return {key: entry["value"] for key, entry in found.items()}

    before = modified()
    assert before["cleanup.policy"] == "compact"
    admin.alter_configs([ConfigResource("TOPIC", name, {"retention.ms": "12345"})])
    changed = before | {"retention.ms": "12345"}
    wait_until(lambda: modified() == changed)  # a real broker hears of it later
    admin.reset_configs([ConfigResource("TOPIC", name, ["retention.ms"])])
    wait_until(lambda: modified() == before)


def test_the_cluster_names_its_nodes(admin: KafkaAdminClient, bootstrap_servers: str) -> None:
    described = admin.describe_cluster()
    nodes = {f"{node['host']}:{node['port']}" for node in described["brokers"]}
    assert nodes == set(bootstrap_servers.split(","))


@pytest.mark.covers("S5", "S27", "S307")
def test_offsets_are_listed_and_records_deleted(
    admin: KafkaAdminClient, bootstrap_servers: str, topic: str
) -> None:
    fill(bootstrap_servers, topic, 10)
    partition = TopicPartition(topic, 0)

    def listed(spec: object) -> int:
        found: int = admin.list_partition_offsets({partition: spec})[partition].offset
        return found

    assert listed(OffsetSpec.LATEST) == 10
    assert listed(OffsetSpec.EARLIEST) == 0
    assert listed(OffsetSpec.MAX_TIMESTAMP) == 9
    assert listed(1_700_000_000_000 + 3500) == 4
    assert admin.delete_records({partition: 6})[partition]["low_watermark"] == 6
    assert listed(OffsetSpec.EARLIEST) == 6


@pytest.mark.covers("S178", "S182")
def test_offsets_of_a_group_are_altered_reset_and_deleted(
    admin: KafkaAdminClient, bootstrap_servers: str, topic: str
) -> None:
    fill(bootstrap_servers, topic, 10)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

    def committed() -> dict[int, int]:
        found = admin.list_group_offsets(topic)[topic]
        return {each.partition: value.offset for each, value in found.items()}

    assert committed() == {}
    altered = admin.alter_group_offsets(
        topic, {first: OffsetAndMetadata(7, "", -1), second: OffsetAndMetadata(0, "", -1)}
    )
    assert {error.__name__ for error in altered.values()} == {"NoError"}
    assert committed() == {0: 7, 1: 0}
    admin.reset_group_offsets(topic, {first: OffsetSpec.EARLIEST})
    assert committed() == {0: 0, 1: 0}
    deleted = admin.delete_group_offsets(topic, [second])
    assert {error.__name__ for error in deleted.values()} == {"NoError"}
    assert committed() == {0: 0}


@pytest.mark.covers("S225")
def test_groups_are_listed_described_emptied_and_deleted(
    admin: KafkaAdminClient, bootstrap_servers: str, topic: str
) -> None:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        group_id=topic,
        group_instance_id="instance",
        client_id="reader",
        heartbeat_interval_ms=100,
    )
    subscribe(consumer, topic)
    settle(consumer, partitions=2)
    described = admin.describe_groups([topic])[topic]
    assert described["group_state"] == "Stable"
    [member] = described["members"]
    assert (member["client_id"], member["group_instance_id"]) == ("reader", "instance")
    assert member["member_assignment"]["assigned_partitions"] == [
        {"topic": topic, "partitions": [0, 1]}
    ]
    assert states(admin, topic) == ["Stable"]
    assert admin.delete_groups([topic]) == {topic: "NonEmptyGroupError"}
    with pytest.raises(BrokerResponseError, match="GroupSubscribedToTopic"):
        raise_errors(admin.delete_group_offsets(topic, [TopicPartition(topic, 0)]))
    # A static member stays when its client closes, until it is removed.
    consumer.close()
    assert states(admin, topic) == ["Stable"]
    admin.remove_group_members(topic, [MemberToRemove(group_instance_id="instance")])
    assert states(admin, topic) == ["Empty"]
    assert admin.delete_groups([topic]) == {topic: "OK"}
    assert states(admin, topic) == []


def states(admin: KafkaAdminClient, group: str) -> list[str]:
    return [each["group_state"] for each in admin.list_groups() if each["group_id"] == group]


def raise_errors(answers: dict[object, type[Exception]]) -> None:
    for error in answers.values():
        raise error(error.__name__)
