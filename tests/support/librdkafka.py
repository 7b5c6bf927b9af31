"""confluent-kafka in few words, against whatever listens at a bootstrap address.

Settings are librdkafka's, with underscores for dots: `open_consumer(b, group_id="g")`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    TopicMetadata,
)

from mockbroker import Cluster

TIMEOUT_S = 20.0
# What is produced before a flush is one batch, however long that takes: the flush ends it.
LINGER_MS = 30_000
# How long one of several polls waits.
POLL_S = 0.02

# Settings of confluent-kafka's own, and the one of librdkafka's, that have no dots.
UNDERSCORED = ("error_cb", "log_level", "on_commit", "stats_cb", "throttle_cb")

# What `Consumer.position` and `committed` give where there is none (OFFSET_INVALID).
NO_OFFSET = -1001


def addresses(kafka: Cluster, *node_ids: int) -> str:
    """These brokers as bootstrap servers."""
    return ",".join(f"{host}:{port}" for host, port in map(kafka.endpoint, node_ids))


def settings(bootstrap: str, **config: Any) -> dict[str, Any]:
    """A client's configuration."""
    dotted = {
        name if name in UNDERSCORED else name.replace("_", "."): value
        for name, value in config.items()
    }
    return {"bootstrap.servers": bootstrap, "log_level": 0, **dotted}


def admin_client(bootstrap: str) -> AdminClient:
    return AdminClient(settings(bootstrap))


def create_topic(bootstrap: str, topic: str, partitions: int = 1, **configs: str) -> None:
    """Create a topic and wait until it is known; `min_insync_replicas="2"` is a config."""
    config = {name.replace("_", "."): value for name, value in configs.items()}
    new = NewTopic(topic, partitions, 1, config=config)
    admin = admin_client(bootstrap)  # its futures fail when it is gone
    admin.create_topics([new])[topic].result(TIMEOUT_S)
    deadline = time.monotonic() + TIMEOUT_S
    while not _known(admin.list_topics(topic, TIMEOUT_S).topics[topic]):
        assert time.monotonic() < deadline, f"no broker knows {topic}"


def _known(topic: TopicMetadata) -> bool:
    return topic.error is None and all(each.leader >= 0 for each in topic.partitions.values())


def set_group_configs(bootstrap: str, group: str, **configs: str) -> None:
    """Set configs of a group: `share_auto_offset_reset="earliest"`."""
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in configs.items()
    ]
    resource = ConfigResource("group", group, incremental_configs=entries)
    admin = admin_client(bootstrap)
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic and wait until it is gone."""
    admin = admin_client(bootstrap)
    admin.delete_topics([topic])[topic].result(TIMEOUT_S)


def delete_records(bootstrap: str, topic: str, before: int, partition: int = 0) -> int:
    """Move a log's start; returns the low watermark that the broker tells."""
    admin = admin_client(bootstrap)
    [future] = admin.delete_records([TopicPartition(topic, partition, before)]).values()
    low: int = future.result(TIMEOUT_S).low_watermark
    return low


class Delivery:
    """Collects delivery reports in the order in which they come."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.errors: list[Any] = []

    def __call__(self, error: Any, message: Message) -> None:
        self.messages.append(message)
        if error is not None:
            self.errors.append(error)

    @property
    def offsets(self) -> list[int]:
        return [message.offset() for message in self.messages]

    @property
    def values(self) -> list[bytes]:
        return [message.value() for message in self.messages]


def produce(
    bootstrap: str, topic: str, values: Iterable[Any], partition: int | None = 0, **config: Any
) -> Delivery:
    """Produce with a producer of its own and wait for the reports: one batch, unless the config
    says otherwise. Raises on the first error.
    """
    producer = Producer(settings(bootstrap, **({"linger_ms": LINGER_MS} | config)))
    delivery = Delivery()
    where = {} if partition is None else {"partition": partition}
    for value in values:
        producer.produce(topic, value, on_delivery=delivery, **where)
    flush(producer)
    if delivery.errors:
        raise KafkaException(delivery.errors[0])
    return delivery


def flush(producer: Producer) -> None:
    """Wait for every delivery report."""
    assert producer.flush(TIMEOUT_S) == 0, "records are still under way"


@contextmanager
def open_consumer(bootstrap: str, **config: Any) -> Iterator[Consumer]:
    """A consumer that starts at the earliest offset and commits only when told to."""
    defaults = {
        "group_id": "nobody",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        # A Fetch that waits holds up whatever else is asked of that broker.
        "fetch_wait_max_ms": 100,
    }
    consumer = Consumer(settings(bootstrap, **(defaults | config)))
    try:
        yield consumer
    finally:
        consumer.close()


def poll(consumer: Consumer, count: int, timeout_s: float = TIMEOUT_S) -> list[Message]:
    """`count` records, or fewer after the timeout. Raises KafkaException for an error."""
    deadline = time.monotonic() + timeout_s
    found: list[Message] = []
    while len(found) < count and (left_s := deadline - time.monotonic()) > 0:
        message = consumer.poll(left_s)
        if message is None:
            break
        if message.error() is not None:
            raise KafkaException(message.error())
        found.append(message)
    return found


def wait_until_fetching(consumer: Consumer, topic: str, end: int) -> None:
    """Wait until a Fetch of partition 0 has been answered whose high watermark is `end`.

    From then on the position is settled, which no other call tells before the first record.
    """
    partition = TopicPartition(topic, 0)

    def high_watermark() -> int:
        known: int = consumer.get_watermark_offsets(partition, cached=True)[1]
        return known

    assert until(lambda: high_watermark() == end, consumer) == [], "records came before"


def values(messages: Iterable[Message]) -> list[str]:
    return [(message.value() or b"").decode() for message in messages]


def offsets(messages: Iterable[Message]) -> list[int]:
    return [message.offset() for message in messages]


def read_all(
    bootstrap: str, topic: str, count: int, partitions: int = 1, **config: Any
) -> list[Message]:
    """Read a topic from its start, without a group."""
    with open_consumer(bootstrap, **config) as consumer:
        consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        return poll(consumer, count)


def owned(consumer: Consumer) -> list[int]:
    """The partitions of one topic that the consumer has."""
    return sorted(each.partition for each in consumer.assignment())


def until(condition: Callable[[], bool], *consumers: Consumer) -> list[Message]:
    """Poll the consumers in turn until the condition holds; return the records that came.

    Raises AssertionError when it does not in time.
    """
    deadline = time.monotonic() + TIMEOUT_S
    found: list[Message] = []
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come to hold"
        for consumer in consumers:
            # It looks after its heartbeats when something wakes its main thread; this does.
            consumer.memberid()
            message = consumer.poll(POLL_S)
            if message is not None:
                if message.error() is not None:
                    raise KafkaException(message.error())
                found.append(message)
    return found
