"""A buffer between consumer and writer: what is in it may be another's by now."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from mockbroker import Cluster
from tests.support.librdkafka import produce, read_all, settings, until, values

BUFFERED = 20

pytestmark = pytest.mark.mock_kafka(brokers=1, topics={"in": 1, "out": 1})


class App:
    """Reads ahead into a buffer and writes from there.

    The member whose client id is first in the alphabet gets the one partition.
    """

    def __init__(
        self, kafka: Cluster, client_id: str, *, drops: bool = False, transactional_id: str = ""
    ) -> None:
        self.buffer: deque[Message] = deque(maxlen=BUFFERED)
        self.written = 0
        self.drops = drops
        own = {"transactional_id": transactional_id} if transactional_id else {}
        self.producer = Producer(settings(kafka.bootstrap_servers, **own))
        self.transactional = bool(transactional_id)
        if self.transactional:
            self.producer.init_transactions(30)
        self.consumer = Consumer(
            settings(
                kafka.bootstrap_servers,
                client_id=client_id,
                group_id="buffered",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                heartbeat_interval_ms=100,
            )
        )
        self.consumer.subscribe(["in"], on_revoke=self.revoked)

    def fill(self, count: int) -> None:
        self.buffer.extend(self.consumer.consume(count, 30))

    def drain(self, count: int) -> None:
        if self.transactional:
            self.producer.begin_transaction()
        for _ in range(count):
            self.producer.produce("out", self.buffer.popleft().value())
            self.written += 1
        if self.transactional:
            self.producer.commit_transaction(30)
        assert self.producer.flush(30) == 0

    def revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Tell how far the writing is, whatever has been read."""
        consumer.commit(offsets=[TopicPartition("in", 0, self.written)], asynchronous=False)
        if self.drops:
            self.buffer.clear()


def hand_over(kafka: Cluster, old: App, make_heir: Callable[[], App]) -> App:
    """The old one has written five of what it has read when another gets its partition."""
    produce(kafka.bootstrap_servers, "in", [str(n) for n in range(BUFFERED)])
    old.fill(BUFFERED)
    old.drain(5)
    heir = make_heir()
    heir.buffer.extend(until(lambda: bool(heir.consumer.assignment()), old.consumer, heir.consumer))
    heir.fill(BUFFERED - 5 - len(heir.buffer))
    return heir


def doubled(kafka: Cluster) -> int:
    found = values(read_all(kafka.bootstrap_servers, "out", count_of(kafka)))
    counts = Counter(found)
    assert len(counts) == BUFFERED, "none is lost"
    return len(found) - len(counts)


def count_of(kafka: Cluster) -> int:
    return len(kafka.records("out"))


@pytest.mark.covers("S263", "S343")
@pytest.mark.parametrize(("drops", "expected"), [(False, 15), (True, 0)])
def test_what_is_buffered_is_no_longer_ours_after_the_revocation(
    kafka: Cluster, drops: bool, expected: int
) -> None:
    old = App(kafka, "b", drops=drops)
    heir = hand_over(kafka, old, lambda: App(kafka, "a", drops=drops))
    old.drain(len(old.buffer))
    heir.drain(len(heir.buffer))
    assert doubled(kafka) == expected
    old.consumer.close()
    heir.consumer.close()


@pytest.mark.covers("S263", "S265")
def test_a_transactional_id_for_the_partition_fences_who_forgot_to_drop(kafka: Cluster) -> None:
    old = App(kafka, "b", transactional_id="out-0")
    heir = hand_over(kafka, old, lambda: App(kafka, "a", transactional_id="out-0"))
    with pytest.raises(KafkaException, match="fenced"):
        old.drain(len(old.buffer))
    heir.drain(len(heir.buffer))
    assert doubled(kafka) == 0
    old.consumer.close()
    heir.consumer.close()
