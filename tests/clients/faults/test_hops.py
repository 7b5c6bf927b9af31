"""Rules for what brokers send each other, and what clients notice of them."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from mockbroker import Cluster
from tests.support.librdkafka import TIMEOUT_S, produce, settings
from tests.support.replicated import TOPIC, Brokers, brokers
from tests.support.watched import kafka

__all__ = ["brokers", "kafka"]

REQUEST_TIMEOUT_MS = 30_000  # Kafka's default of request.timeout.ms
LAG_MS = 30_000  # replica.lag.time.max.ms


def isr(brokers: Brokers) -> list[int]:
    """The ISR as a fresh client is told."""
    return sorted(brokers.metadata().isrs)


@pytest.mark.fault("from_broker")
def test_an_isr_does_not_grow_while_its_leader_reaches_no_controller_with_alter_partition(
    kafka: Cluster, brokers: Brokers
) -> None:
    brokers.create((2, 1, 3))
    produce(brokers.bootstrap, TOPIC, ["a"])
    rule = kafka.faults.add(
        match={"api": "AlterPartition", "from_broker": 2}, do={"drop_request": {}}
    )
    kafka.broker(3).stop(how="unclean")
    kafka.broker(3).start()
    rule.wait(1)
    produce(brokers.bootstrap, TOPIC, ["b"])
    assert isr(brokers) == [1, 2]
    [lost] = kafka.journal.wait(1, kind="hop_answer", api="AlterPartition")
    assert (lost.from_broker, lost.outcome, lost.targets) == (2, "request dropped", ((TOPIC, 0),))
    rule.remove()
    # The leader waits for an answer, and sends the request again after that time.
    kafka.clock.advance(REQUEST_TIMEOUT_MS)
    brokers.settle()
    assert isr(brokers) == [1, 2, 3]


@pytest.mark.fault("from_broker", "to_broker")
def test_a_follower_whose_fetches_are_dropped_leaves_the_isr_on_the_clock(
    kafka: Cluster, brokers: Brokers
) -> None:
    """A producer with acks=all is answered when the follower is out."""
    brokers.create((1, 2, 3))
    rule = kafka.faults.add(
        match={"api": "Fetch", "from_broker": 2, "to_broker": 1}, do={"drop_request": {}}
    )
    failed: list[object] = []
    with Producer(settings(brokers.bootstrap, acks="all")) as producer:
        producer.produce(TOPIC, "a", on_delivery=lambda error, _: failed.append(error))
        kafka.journal.wait(1, kind="append", topic=TOPIC)
        assert (producer.poll(0), isr(brokers)) == (0, [1, 2, 3])
        kafka.clock.advance(LAG_MS)
        assert producer.flush(TIMEOUT_S) == 0
    assert (failed, isr(brokers)) == ([None], [1, 3])
    rule.remove()
    kafka.clock.advance(LAG_MS)
    brokers.settle()


@pytest.mark.fault("between_brokers")
def test_late_markers_keep_the_next_transaction_waiting(kafka: Cluster, brokers: Brokers) -> None:
    """EndTxn is answered; read_committed consumers stay before the transaction, and the same id
    meets CONCURRENT_TRANSACTIONS until the markers are written.
    """
    brokers.create((1, 2, 3))
    rule = kafka.faults.add(
        match={"api": "WriteTxnMarkers", "between_brokers": True, "transactional_id": "x"},
        when={"times": 1},
        do={"hold": {}},
    )
    producer = Producer(settings(brokers.bootstrap, transactional_id="x"))
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(TOPIC, "a")
    producer.commit_transaction(TIMEOUT_S)
    rule.wait(1)
    assert brokers.partition(lambda p: (p.last_stable_offset, p.high_watermark)) == (0, 1)
    producer.begin_transaction()
    producer.produce(TOPIC, "b")
    kafka.journal.wait(1, kind="response", error="CONCURRENT_TRANSACTIONS")
    kafka.faults.wait_held().release()
    producer.commit_transaction(TIMEOUT_S)
    brokers.until(lambda: brokers.partition(lambda p: p.last_stable_offset) == 4)
    kafka.journal.in_order(
        {"kind": "response", "api": "EndTxn", "error": "none"},
        {"kind": "response", "error": "CONCURRENT_TRANSACTIONS"},
        {"kind": "hop_answer", "api": "WriteTxnMarkers", "error": "none"},
        {"kind": "marker", "topic": TOPIC},
    )
