"""A program whose offsets are refused aborts, goes back and reads again: the docs' worker."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition

from mockbroker import Cluster
from tests.support.doc_examples import module
from tests.support.librdkafka import NO_OFFSET, TIMEOUT_S


class Mistaken(Consumer):
    """Takes itself for another member, the first time that it is asked."""

    other: object = None

    def consumer_group_metadata(self) -> object:
        told, self.other = self.other or super().consumer_group_metadata(), None
        return told


def committed_offset(consumer: Consumer) -> int:
    [partition] = consumer.committed([TopicPartition("orders", 0)], TIMEOUT_S)
    return partition.offset


@pytest.mark.covers("S248", "S249")
@pytest.mark.mock_kafka(brokers=1, topics={"orders": 1, "bills": 1})
def test_what_was_refused_is_done_again(kafka: Cluster) -> None:
    example = module("explanation/exactly-once.md", "test_zombie.py", "reading.py")
    example.Consumer = Mistaken  # type: ignore[attr-defined]
    orders = ["one", "two", "three", "four"]
    example.write(kafka, "orders", orders)
    before = example.Worker(kafka, "billing-before")
    before.read()
    gone = before.consumer.consumer_group_metadata()
    before.consumer.close()

    worker = example.Worker(kafka, "billing")
    worker.read()
    worker.write()
    worker.producer.flush(30)  # so that there is something to take back
    worker.consumer.other = gone
    assert not worker.commit()
    assert committed_offset(worker.consumer) == NO_OFFSET
    worker.consumer.seek(TopicPartition("orders", 0, 0))
    for _ in range(2):
        worker.read()
        worker.write()
        assert worker.commit()
    assert example.read_committed(kafka, "bills") == orders
    bills = [record.value for record in kafka.records("bills")]
    assert bills == [b"one", b"two", b"one", b"two", b"three", b"four"]
    assert committed_offset(worker.consumer) == 4
    worker.consumer.close()
