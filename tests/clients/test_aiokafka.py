"""aiokafka: producing, reading, groups, administration."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import (
    CommitFailedError,
    MessageSizeTooLargeError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)

from tests.support.aio import (
    TIMEOUT_S,
    assigned,
    asynchronous,
    fill,
    offsets,
    open_consumer,
    poll,
    settle,
    until,
    values,
)
from tests.support.librdkafka import create_topic, delete_records

TEN = [str(n) for n in range(10)]


# -- producing -------------------------------------------------------------------------------------


@pytest.mark.covers("S1", "S99")
@pytest.mark.parametrize("acks", [0, 1, "all"])
@asynchronous
async def test_records_are_stored_whatever_is_acknowledged(
    bootstrap_servers: str, topic: str, acks: object
) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers, acks=acks) as producer:
        told = [await producer.send_and_wait(topic, value.encode()) for value in TEN]
    if acks == 0:
        assert told == [None] * 10
    else:
        assert offsets(told) == list(range(10))
    async with assigned(bootstrap_servers, topic) as consumer:
        assert values(await poll(consumer, 10)) == TEN


@pytest.mark.covers("S116")
@asynchronous
async def test_an_idempotent_producer_is_given_an_id(bootstrap_servers: str, topic: str) -> None:
    told = await fill(bootstrap_servers, topic, TEN, enable_idempotence=True)
    assert told == list(range(10))


@pytest.mark.covers("S107")
@asynchronous
async def test_a_record_that_the_topic_does_not_take_fails_alone(
    bootstrap_servers: str, name: str
) -> None:
    create_topic(bootstrap_servers, name, max_message_bytes="1000")
    async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers) as producer:
        await producer.send_and_wait(name, b"small")
        with pytest.raises(MessageSizeTooLargeError):
            await producer.send_and_wait(name, b"x" * 2000)
        await producer.send_and_wait(name, b"small again")
    async with assigned(bootstrap_servers, name) as consumer:
        assert values(await poll(consumer, 2)) == ["small", "small again"]


@pytest.mark.covers("S106")
@asynchronous
async def test_a_batch_can_be_made_by_hand(bootstrap_servers: str, topic: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers) as producer:
        batch = producer.create_batch()
        for value in TEN:
            batch.append(key=None, value=value.encode(), timestamp=None)
        sent = await (await producer.send_batch(batch, topic, partition=0))
    assert sent.offset == 0
    async with assigned(bootstrap_servers, topic) as consumer:
        assert values(await poll(consumer, 10)) == TEN


@pytest.mark.covers("S109")
@asynchronous
async def test_keys_go_where_java_puts_them(bootstrap_servers: str, wide_topic: str) -> None:
    """murmur2 of the key, without its sign, modulo four."""
    keys = [b"haha", b"hehe", b"eeee", *(n.to_bytes(4, "big") for n in range(8))]
    async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers) as producer:
        sent = [await producer.send_and_wait(wide_topic, b"v", key=key) for key in keys]
    assert [each.partition for each in sent] == [0, 1, 3, 0, 0, 3, 3, 3, 2, 3, 3]


# -- reading ---------------------------------------------------------------------------------------


@pytest.mark.covers("S17", "S20", "S21", "S26", "S129")
@asynchronous
async def test_positions_are_set_by_seeking(bootstrap_servers: str, topic: str) -> None:
    """Into a batch, to the start, to the end, after which only new records come."""
    await fill(bootstrap_servers, topic, TEN, linger_ms=50)
    partition = TopicPartition(topic, 0)
    async with assigned(bootstrap_servers, topic) as consumer:
        consumer.seek(partition, 7)
        assert offsets(await poll(consumer, 3)) == [7, 8, 9]
        assert await consumer.position(partition) == 10
        await consumer.seek_to_beginning(partition)
        assert offsets(await poll(consumer, 1)) == [0]
        await consumer.seek_to_end(partition)
        assert await poll(consumer, 1, 0.3) == []
        await fill(bootstrap_servers, topic, ["new"])
        assert offsets(await poll(consumer, 1)) == [10]
        assert consumer.highwater(partition) == 11


@pytest.mark.covers("S18", "S27", "S348")
@asynchronous
async def test_offsets_are_found_at_both_ends_and_by_time(
    bootstrap_servers: str, topic: str
) -> None:
    """The end offset is the next one to be written; of an empty partition it is 0."""
    partition = TopicPartition(topic, 0)
    start_ms = int(time.time() * 1000) - 100_000
    async with open_consumer(bootstrap_servers) as consumer:
        assert await consumer.end_offsets([partition]) == {partition: 0}
        async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=50) as producer:
            for after_ms in (0, 1000, 500, 3000):
                await producer.send(topic, b"v", timestamp_ms=start_ms + after_ms)
        assert await consumer.beginning_offsets([partition]) == {partition: 0}
        assert await consumer.end_offsets([partition]) == {partition: 4}
        found = {}
        for after_ms in (0, 1, 1001, 3001):
            answer = await consumer.offsets_for_times({partition: start_ms + after_ms})
            found[after_ms] = answer[partition] and answer[partition].offset
    assert found == {0: 0, 1: 1, 1001: 3, 3001: None}


@pytest.mark.covers("S127")
@asynchronous
async def test_the_reset_policy_decides_where_nothing_was_committed(
    bootstrap_servers: str, topic: str
) -> None:
    await fill(bootstrap_servers, topic, TEN)
    partition = TopicPartition(topic, 0)
    for policy, position in (("earliest", 0), ("latest", 10)):
        config = {"group_id": topic, "auto_offset_reset": policy}
        async with assigned(bootstrap_servers, topic, **config) as consumer:
            assert await consumer.position(partition) == position
    config = {"group_id": topic, "auto_offset_reset": "none"}
    async with assigned(bootstrap_servers, topic, **config) as consumer:
        with pytest.raises(NoOffsetForPartitionError):
            await poll(consumer, 1)


@pytest.mark.covers("S128")
@asynchronous
async def test_a_deleted_position_is_reset_or_raises(bootstrap_servers: str, topic: str) -> None:
    await fill(bootstrap_servers, topic, TEN)
    delete_records(bootstrap_servers, topic, 6)
    partition = TopicPartition(topic, 0)
    async with assigned(bootstrap_servers, topic) as consumer:
        consumer.seek(partition, 2)
        assert offsets(await poll(consumer, 4)) == [6, 7, 8, 9]
    async with assigned(bootstrap_servers, topic, auto_offset_reset="none") as consumer:
        consumer.seek(partition, 2)
        with pytest.raises(OffsetOutOfRangeError):
            await poll(consumer, 1)


@asynchronous
async def test_a_paused_partition_gives_nothing_until_resumed(
    bootstrap_servers: str, wide_topic: str
) -> None:
    await fill(bootstrap_servers, wide_topic, ["paused"], partition=0)
    await fill(bootstrap_servers, wide_topic, ["other"], partition=1)
    paused = TopicPartition(wide_topic, 0)
    async with assigned(bootstrap_servers, wide_topic, 0, 1) as consumer:
        consumer.pause(paused)
        assert values(await poll(consumer, 2, 0.5)) == ["other"]
        consumer.resume(paused)
        assert values(await poll(consumer, 1)) == ["paused"]


# -- groups ----------------------------------------------------------------------------------------


@pytest.mark.covers("S153")
@pytest.mark.parametrize(
    "assignor",
    [RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor],
    ids=lambda assignor: assignor.name,
)
@asynchronous
async def test_two_members_share_the_partitions_and_one_inherits_them(
    bootstrap_servers: str, wide_topic: str, assignor: Any
) -> None:
    config = {"group_id": wide_topic, "partition_assignment_strategy": [assignor]}
    async with open_consumer(bootstrap_servers, wide_topic, **config) as first:
        assert await settle(first) == [[0, 1, 2, 3]]
        async with open_consumer(bootstrap_servers, wide_topic, **config) as second:
            assert [len(share) for share in await settle(first, second)] == [2, 2]
        assert await settle(first) == [[0, 1, 2, 3]]


@pytest.mark.covers("S22", "S178")
@asynchronous
async def test_a_restart_begins_at_the_last_commit(bootstrap_servers: str, topic: str) -> None:
    await fill(bootstrap_servers, topic, TEN)
    partition = TopicPartition(topic, 0)
    async with open_consumer(bootstrap_servers, topic, group_id=topic) as consumer:
        assert await consumer.committed(partition) is None
        await poll(consumer, 6)
        await consumer.commit({partition: (1, "so far")})
    async with open_consumer(bootstrap_servers, topic, group_id=topic) as consumer:
        assert offsets(await poll(consumer, 9)) == list(range(1, 10))
        await consumer.seek_to_committed(partition)
        assert offsets(await poll(consumer, 1)) == [1]


@pytest.mark.covers("S165", "S166")
@asynchronous
async def test_offsets_are_committed_by_the_clock_and_on_closing(
    bootstrap_servers: str, topic: str
) -> None:
    partition = TopicPartition(topic, 0)
    config = {"group_id": topic, "enable_auto_commit": True}
    async with assigned(bootstrap_servers, topic, group_id=topic) as other:
        await fill(bootstrap_servers, topic, TEN)
        async with open_consumer(
            bootstrap_servers, topic, auto_commit_interval_ms=50, **config
        ) as consumer:
            await poll(consumer, 10)
            deadline = time.monotonic() + TIMEOUT_S
            while await other.committed(partition) != 10:
                assert time.monotonic() < deadline
        await fill(bootstrap_servers, topic, TEN)
        async with open_consumer(bootstrap_servers, topic, **config) as consumer:
            await poll(consumer, 10)
        assert await other.committed(partition) == 20


@asynchronous
async def test_a_static_member_comes_back_to_its_partitions(
    bootstrap_servers: str, wide_topic: str
) -> None:
    told: list[str] = []

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            told.append("revoked")

        def on_partitions_assigned(self, assigned: Any) -> None:
            told.append("assigned")

    def member(instance: str) -> AbstractAsyncContextManager[AIOKafkaConsumer]:
        return open_consumer(bootstrap_servers, group_id=wide_topic, group_instance_id=instance)

    async with member("b") as steady:
        steady.subscribe([wide_topic], listener=Listener())
        async with member("a") as restarted:
            restarted.subscribe([wide_topic])
            before = await settle(steady, restarted)
        told.clear()
        async with member("a") as restarted:
            restarted.subscribe([wide_topic])
            assert await settle(steady, restarted) == before
        assert told == []


@pytest.mark.covers("S126")
@asynchronous
async def test_a_commit_from_outside_is_refused_while_there_are_members(
    bootstrap_servers: str, wide_topic: str
) -> None:
    position = {TopicPartition(wide_topic, 0): 0}
    async with assigned(bootstrap_servers, wide_topic, group_id=wide_topic) as outsider:
        await outsider.commit(position)
        async with open_consumer(bootstrap_servers, wide_topic, group_id=wide_topic) as member:
            await settle(member)
            with pytest.raises(CommitFailedError):
                await outsider.commit(position)


# -- administration --------------------------------------------------------------------------------


@asynccontextmanager
async def open_admin(bootstrap: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


@pytest.mark.covers("S31", "S32", "S37")
@asynchronous
async def test_topics_are_administered(bootstrap_servers: str, name: str) -> None:
    async with open_admin(bootstrap_servers) as admin:
        created = await admin.create_topics(
            [NewTopic(name, 2, 1, topic_configs={"cleanup.policy": "compact"})]
        )
        assert [error for _, error, *_ in created.topic_errors] == [0]
        await admin.create_partitions({name: NewPartitions(4)})

        async def has_grown() -> bool:
            [described] = await admin.describe_topics([name])
            return len(described["partitions"]) == 4

        await until(has_grown)
        resource = ConfigResource(ConfigResourceType.TOPIC, name)

        async def is_policy(wanted: str) -> bool:
            [answer] = await admin.describe_configs([resource])
            entries = {entry[0]: entry[1] for entry in answer.resources[0][4]}
            return entries["cleanup.policy"] == wanted

        assert await is_policy("compact")
        changed = ConfigResource(
            ConfigResourceType.TOPIC, name, configs={"cleanup.policy": "delete"}
        )
        await admin.alter_configs([changed])
        await until(lambda: is_policy("delete"))
        assert name in await admin.list_topics()
        await admin.delete_topics([name])

        async def is_gone() -> bool:
            return name not in await admin.list_topics()

        await until(is_gone)


@pytest.mark.covers("S5", "S225", "S307")
@asynchronous
async def test_groups_and_records_are_administered(bootstrap_servers: str, topic: str) -> None:
    await fill(bootstrap_servers, topic, TEN)
    partition = TopicPartition(topic, 0)
    async with open_admin(bootstrap_servers) as admin:
        async with open_consumer(bootstrap_servers, topic, group_id=topic) as consumer:
            await poll(consumer, 10)
            await consumer.commit()
            [answer] = await admin.describe_consumer_groups([topic])
            [group] = answer.groups
            assert group[:4] == (0, topic, "Stable", "consumer")
            assert topic in {each[0] for each in await admin.list_consumer_groups()}
        found = await admin.list_consumer_group_offsets(topic)
        assert {tp: each.offset for tp, each in found.items()} == {partition: 10}
        deleted = await admin.delete_records({partition: RecordsToDelete(before_offset=6)})
        assert deleted == {partition: 6}
