"""librdkafka's share consumer, by confluent-kafka (KIP-932)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, Message, ShareConsumer

from tests.support.librdkafka import produce, set_group_configs, settings
from tests.support.waiting import wait_until

Members = Callable[..., ShareConsumer]
Records = list[tuple[int, int]]
"""Offsets and delivery counts."""

_numbers = itertools.count(1)


@pytest.fixture
def group(bootstrap_servers: str) -> str:
    """A share group that begins with the first record."""
    name = f"shared-{next(_numbers)}"
    set_group_configs(bootstrap_servers, name, share_auto_offset_reset="earliest")
    return name


@pytest.fixture
def member(bootstrap_servers: str, group: str, topic: str) -> Iterator[Members]:
    """Open a member that has subscribed to the topic."""
    with ExitStack() as opened:

        def open_member(**config: Any) -> ShareConsumer:
            consumer = ShareConsumer(settings(bootstrap_servers, group_id=group, **config))
            opened.callback(consumer.close)
            consumer.subscribe([topic])
            return consumer

        yield open_member


def poll(consumer: ShareConsumer, count: int) -> list[Message]:
    """Poll until as many records have come, all of them by one poll in explicit mode."""
    got: list[Message] = []

    def is_done() -> bool:
        got.extend(consumer.poll(0.2))
        return len(got) >= count

    wait_until(is_done)
    assert not [each.error() for each in got if each.error() is not None]
    return got


def deliveries(records: list[Message]) -> Records:
    return [(each.offset(), each.delivery_count()) for each in records]


def test_records_are_accepted_by_the_next_poll(
    bootstrap_servers: str, topic: str, member: Members
) -> None:
    produce(bootstrap_servers, topic, "abcde")
    first = member()
    assert deliveries(poll(first, 5)) == [(offset, 1) for offset in range(5)]
    [(partition, error)] = first.commit_sync().items()
    assert (partition.topic, partition.partition, error) == (topic, 0, None)
    first.unsubscribe()
    produce(bootstrap_servers, topic, ["last"])
    assert deliveries(poll(member(), 1)) == [(5, 1)]


def test_records_are_accepted_released_and_rejected(
    bootstrap_servers: str, topic: str, member: Members
) -> None:
    produce(bootstrap_servers, topic, "abc")
    consumer = member(share_acknowledgement_mode="explicit")
    told: list[tuple[list[int], Any]] = []
    consumer.set_acknowledgement_commit_callback(
        lambda offsets, error: told.append((sorted(*offsets.values()), error))
    )
    good, again, bad = poll(consumer, 3)
    consumer.acknowledge(good)
    consumer.acknowledge(again, AcknowledgeType.RELEASE)
    consumer.acknowledge(bad, AcknowledgeType.REJECT)
    consumer.commit_async()
    [once_more] = poll(consumer, 1)
    assert deliveries([once_more]) == [(1, 2)]
    assert told == [([0, 1, 2], None)]
    consumer.acknowledge(once_more)
    [error] = consumer.commit_sync().values()
    assert error is None
    produce(bootstrap_servers, topic, ["last"])
    [last] = poll(consumer, 1)
    assert last.offset() == 3
    consumer.acknowledge(last)


def test_two_members_get_each_record_once(
    bootstrap_servers: str, topic: str, member: Members
) -> None:
    members = [member(max_poll_records=5) for _ in range(2)]
    written = 0
    got: list[list[int]] = [[], []]

    def is_done() -> bool:
        nonlocal written
        for each, of_member in zip(members, got, strict=True):
            of_member += [int(record.value() or b"") for record in each.poll(0.05)]
        if written >= 100 and all(got):
            return len(got[0]) + len(got[1]) >= written
        # A member that is closed before its first assignment comes hangs (librdkafka 2.16).
        values = [str(number) for number in range(written, written + 20)]
        produce(bootstrap_servers, topic, values, batch_num_messages=5)
        written += len(values)
        return False

    wait_until(is_done)
    assert sorted(got[0] + got[1]) == [*range(written)]
