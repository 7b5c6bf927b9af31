"""confluent-kafka's AdminClient: topics, configs, groups and their offsets."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ElectionType,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from tests.support.librdkafka import (
    TIMEOUT_S,
    admin_client,
    create_topic,
    flush,
    open_consumer,
    poll,
    produce,
    read_all,
    settings,
    until,
    values,
)
from tests.support.waiting import wait_until

TEN = [str(n) for n in range(10)]

CLIENT_CONFIGS = Path(__file__).resolve().parents[2] / "docs" / "_data" / "client_configs.toml"


@pytest.fixture
def admin(bootstrap_servers: str) -> AdminClient:
    return admin_client(bootstrap_servers)


def only(futures: Mapping[Any, Future[Any]]) -> Any:
    """The result of the one thing asked for. Raises KafkaException with the broker's error."""
    [future] = futures.values()
    return future.result(TIMEOUT_S)


def refused(futures: Mapping[Any, Future[Any]]) -> int:
    """The error code that the one thing asked for was answered with."""
    with pytest.raises(KafkaException) as failure:
        only(futures)
    code: int = failure.value.args[0].code()
    return code


def created(admin: AdminClient, topic: NewTopic) -> None:
    """A real broker hears of a new topic after the controller has answered."""
    only(admin.create_topics([topic]))
    wait_until(lambda: topic.topic in admin.list_topics(timeout=TIMEOUT_S).topics)


# -- topics ----------------------------------------------------------------------------------------


@pytest.mark.covers("S31", "S32", "S33")
def test_topics_are_created_described_grown_and_deleted(admin: AdminClient, name: str) -> None:
    created(admin, NewTopic(name, 2, 1))
    assert refused(admin.create_topics([NewTopic(name, 2, 1)])) == KafkaError.TOPIC_ALREADY_EXISTS
    only(admin.create_partitions([NewPartitions(name, 5)]))
    assert refused(admin.create_partitions([NewPartitions(name, 5)])) == (
        KafkaError.INVALID_PARTITIONS
    )

    def described() -> TopicDescription:
        return only(admin.describe_topics(TopicCollection([name])))

    wait_until(lambda: len(described().partitions) == 5)  # a real broker hears of it later
    description = described()
    assert (description.name, description.is_internal) == (name, False)
    assert [partition.id for partition in description.partitions] == [0, 1, 2, 3, 4]
    for partition in description.partitions:
        [replica], [in_sync] = partition.replicas, partition.isr
        assert replica.id == in_sync.id == partition.leader.id
    only(admin.delete_topics([name]))
    wait_until(lambda: name not in admin.list_topics(timeout=TIMEOUT_S).topics)
    assert refused(admin.describe_topics(TopicCollection([name]))) == (
        KafkaError.UNKNOWN_TOPIC_OR_PART
    )
    assert refused(admin.delete_topics([name])) == KafkaError.UNKNOWN_TOPIC_OR_PART


@pytest.mark.covers("S31")
def test_topics_that_cannot_be_are_refused(admin: AdminClient, name: str) -> None:
    for topic, code in (
        (NewTopic(name, 1, 9), KafkaError.INVALID_REPLICATION_FACTOR),
        (NewTopic("no spaces", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic(name, 1, 1, config={"retention.ms": "soon"}), KafkaError.INVALID_CONFIG),
        (NewTopic(name, 1, 1, config={"no.such": "1"}), KafkaError.INVALID_CONFIG),
    ):
        assert refused(admin.create_topics([topic])) == code
    assert name not in admin.list_topics(timeout=TIMEOUT_S).topics


def test_a_topic_can_be_tried_without_being_made(admin: AdminClient, name: str) -> None:
    only(admin.create_topics([NewTopic(name, 1, 1)], validate_only=True))
    assert name not in admin.list_topics(timeout=TIMEOUT_S).topics


@pytest.mark.covers("S37")
def test_configs_tell_where_they_come_from(admin: AdminClient, name: str) -> None:
    created(admin, NewTopic(name, 1, 1, config={"cleanup.policy": "compact"}))
    resource = ConfigResource(ResourceType.TOPIC, name)
    found = only(admin.describe_configs([resource]))
    policy, retention = found["cleanup.policy"], found["retention.ms"]
    assert (policy.value, ConfigSource(policy.source)) == (
        "compact",
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
    )
    assert (retention.value, ConfigSource(retention.source)) == (
        "604800000",
        ConfigSource.DEFAULT_CONFIG,
    )


@pytest.mark.covers("S303")
def test_configs_are_set_appended_to_subtracted_from_and_unset(
    admin: AdminClient, name: str
) -> None:
    created(admin, NewTopic(name, 1, 1))

    def alter(key: str, operation: AlterConfigOpType, value: str | None = None) -> None:
        entry = ConfigEntry(key, value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
        only(admin.incremental_alter_configs([resource]))

    def await_value(key: str, value: str) -> None:
        """A real broker hears of a change after the controller has answered."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        wait_until(lambda: only(admin.describe_configs([resource]))[key].value == value, what=value)

    alter("retention.ms", AlterConfigOpType.SET, "5000")
    await_value("retention.ms", "5000")
    alter("retention.ms", AlterConfigOpType.DELETE)
    await_value("retention.ms", "604800000")
    alter("cleanup.policy", AlterConfigOpType.APPEND, "compact")
    await_value("cleanup.policy", "delete,compact")
    alter("cleanup.policy", AlterConfigOpType.SUBTRACT, "delete")
    await_value("cleanup.policy", "compact")
    with pytest.raises(KafkaException, match="INVALID_CONFIG"):
        alter("retention.ms", AlterConfigOpType.SET, "soon")


@pytest.mark.covers("S303")
def test_what_only_clients_know_is_no_config_of_a_topic_and_read_only_ones_stay(
    admin: AdminClient, name: str
) -> None:
    """All that the docs call a client's; and of a broker's what can be set at its start only."""
    created(admin, NewTopic(name, 1, 1))

    def refusal(resource_type: ResourceType, of: str, key: str) -> str:
        entry = ConfigEntry(key, "1", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(resource_type, of, incremental_configs=[entry])
        with pytest.raises(KafkaException) as refused:
            only(admin.incremental_alter_configs([resource]))
        return str(refused.value.args[0].name())

    catalogue = tomllib.loads(CLIENT_CONFIGS.read_text(encoding="utf-8"))["configs"]
    assert len(catalogue) >= 50
    refused = {key: refusal(ResourceType.TOPIC, name, key) for key in catalogue}
    assert set(refused.values()) == {"INVALID_CONFIG"}
    broker = str(min(admin.list_topics(timeout=20).brokers))
    assert refusal(ResourceType.BROKER, broker, "num.partitions") == "INVALID_REQUEST"
    assert refusal(ResourceType.BROKER, broker, "auto.create.topics.enable") == "INVALID_REQUEST"


def test_the_cluster_names_its_nodes(admin: AdminClient, bootstrap_servers: str) -> None:
    described = admin.describe_cluster().result(TIMEOUT_S)
    nodes = {f"{node.host}:{node.port}" for node in described.nodes}
    assert nodes == set(bootstrap_servers.split(","))
    assert described.controller.id in {node.id for node in described.nodes}
    assert admin.list_topics(timeout=TIMEOUT_S).cluster_id == described.cluster_id


@pytest.mark.covers("S308")
def test_a_preferred_leader_that_leads_needs_no_election(admin: AdminClient, name: str) -> None:
    created(admin, NewTopic(name, 1, 1))
    partition = TopicPartition(name, 0)
    answers = admin.elect_leaders(ElectionType.PREFERRED, [partition]).result(TIMEOUT_S)
    assert answers[partition].code() == KafkaError.ELECTION_NOT_NEEDED


# -- offsets and records ---------------------------------------------------------------------------


def listed(admin: AdminClient, topic: str, spec: OffsetSpec) -> int:
    result = only(admin.list_offsets({TopicPartition(topic, 0): spec}))
    offset: int = result.offset
    return offset


@pytest.mark.covers("S18", "S27")
def test_offsets_are_listed_by_their_special_names_and_by_time(
    admin: AdminClient, bootstrap_servers: str, name: str
) -> None:
    create_topic(bootstrap_servers, name)
    assert listed(admin, name, OffsetSpec.latest()) == 0
    assert listed(admin, name, OffsetSpec.max_timestamp()) == -1
    start_ms = int(time.time() * 1000) - 100_000
    producer = Producer(settings(bootstrap_servers, linger_ms=50))
    for after_ms in (0, 3000, 1000):
        producer.produce(name, "v", partition=0, timestamp=start_ms + after_ms)
    flush(producer)
    assert listed(admin, name, OffsetSpec.earliest()) == 0
    assert listed(admin, name, OffsetSpec.latest()) == 3
    assert listed(admin, name, OffsetSpec.max_timestamp()) == 1
    assert listed(admin, name, OffsetSpec.for_timestamp(start_ms + 1)) == 1
    assert listed(admin, name, OffsetSpec.for_timestamp(start_ms + 3001)) == -1


@pytest.mark.covers("S5", "S307")
def test_records_are_deleted_up_to_an_offset(
    admin: AdminClient, bootstrap_servers: str, name: str
) -> None:
    create_topic(bootstrap_servers, name)
    produce(bootstrap_servers, name, TEN)
    deleted = only(admin.delete_records([TopicPartition(name, 0, 4)]))
    assert deleted.low_watermark == 4
    assert listed(admin, name, OffsetSpec.earliest()) == 4
    assert values(read_all(bootstrap_servers, name, 6)) == TEN[4:]
    assert refused(admin.delete_records([TopicPartition(name, 0, 11)])) == (
        KafkaError.OFFSET_OUT_OF_RANGE
    )
    assert only(admin.delete_records([TopicPartition(name, 0, -1)])).low_watermark == 10


# -- groups ----------------------------------------------------------------------------------------


@pytest.mark.covers("S225")
def test_a_group_with_a_member_is_described(
    admin: AdminClient, bootstrap_servers: str, name: str
) -> None:
    create_topic(bootstrap_servers, name, 2)
    with open_consumer(bootstrap_servers, group_id=name, client_id="reader") as consumer:
        consumer.subscribe([name])
        until(lambda: len(consumer.assignment()) == 2, consumer)
        group = only(admin.describe_consumer_groups([name]))
        assert (group.group_id, group.state) == (name, ConsumerGroupState.STABLE)
        assert group.partition_assignor == "range"
        [member] = group.members
        assert member.client_id == "reader"
        assert member.host.strip("/") == "127.0.0.1"
        assigned = sorted(each.partition for each in member.assignment.topic_partitions)
        assert assigned == [0, 1]
        assert states(admin, name) == {ConsumerGroupState.STABLE}
        assert refused(admin.delete_consumer_groups([name])) == KafkaError.NON_EMPTY_GROUP
    assert states(admin, name) == {ConsumerGroupState.EMPTY}


def states(admin: AdminClient, group: str) -> set[ConsumerGroupState]:
    found = admin.list_consumer_groups().result(TIMEOUT_S)
    assert found.errors == []
    return {each.state for each in found.valid if each.group_id == group}


def committed(admin: AdminClient, group: str) -> dict[int, int]:
    """Partition -> committed offset of a group's one topic."""
    wanted = [ConsumerGroupTopicPartitions(group)]
    found = only(admin.list_consumer_group_offsets(wanted)).topic_partitions
    return {each.partition: each.offset for each in found}


def alter(admin: AdminClient, group: str, offsets: Iterable[TopicPartition]) -> Any:
    return admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, list(offsets))])


@pytest.mark.covers("S12")
def test_lag_is_the_high_watermark_less_the_commit(
    admin: AdminClient, bootstrap_servers: str, name: str
) -> None:
    """100 produced, 40 consumed and committed: 60 to go."""
    create_topic(bootstrap_servers, name)
    produce(bootstrap_servers, name, map(str, range(100)))
    with open_consumer(bootstrap_servers, group_id=name) as consumer:
        consumer.subscribe([name])
        [*_, last] = poll(consumer, 40)
        consumer.commit(message=last, asynchronous=False)
    assert listed(admin, name, OffsetSpec.latest()) - committed(admin, name)[0] == 60


@pytest.mark.covers("S182")
def test_offsets_of_an_empty_group_are_altered_by_hand(
    admin: AdminClient, bootstrap_servers: str, name: str
) -> None:
    create_topic(bootstrap_servers, name)
    produce(bootstrap_servers, name, TEN)
    only(alter(admin, name, [TopicPartition(name, 0, 7)]))
    assert committed(admin, name) == {0: 7}
    with open_consumer(bootstrap_servers, group_id=name) as consumer:
        consumer.subscribe([name])
        assert values(poll(consumer, 3)) == TEN[7:]
        [answer] = only(alter(admin, name, [TopicPartition(name, 0, 0)])).topic_partitions
        assert answer.error.code() == KafkaError.UNKNOWN_MEMBER_ID
    assert committed(admin, name) == {0: 7}


def test_a_deleted_group_has_no_offsets_any_more(
    admin: AdminClient, bootstrap_servers: str, name: str
) -> None:
    create_topic(bootstrap_servers, name)
    only(alter(admin, name, [TopicPartition(name, 0, 0)]))
    only(admin.delete_consumer_groups([name]))
    assert committed(admin, name) == {}
    assert states(admin, name) == set()
    assert refused(admin.delete_consumer_groups([name])) == KafkaError.GROUP_ID_NOT_FOUND
