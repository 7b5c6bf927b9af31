"""What producers live through: slow brokers, errors, lost answers, answers that never come.

Waits of the broker's side are on the cluster's clock, which may run faster than real time; what
clients count by themselves is scaled down by their settings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise

import pytest
from confluent_kafka import KafkaError
from kafka import KafkaProducer

from mockbroker import Cluster
from mockbroker.core.journal.events import JournalEvent
from tests.support.faulty import begin, open_producer, polled, send, stored, warm
from tests.support.librdkafka import TIMEOUT_S, Delivery, flush
from tests.support.waiting import wait_until


@pytest.fixture
def fast(kafka: Cluster) -> Iterator[Cluster]:
    """The cluster's clock runs ten times as fast as real time."""
    kafka.clock.set_rate(10)
    yield kafka
    kafka.clock.thaw()


def answered(kafka: Cluster, topic: str, after: int = 0, **wanted: object) -> list[JournalEvent]:
    """What became of the Produce requests about a topic."""
    return kafka.journal.events(
        kind="response", api="Produce", topic=topic, after_seq=after, **wanted
    )


@pytest.mark.covers("S95")
def test_waiting_for_each_record_costs_as_many_round_trips(fast: Cluster, topic: str) -> None:
    """A thousand records and a broker that takes 5 ms: five seconds one by one, well below one all
    together; every record is reported both ways.
    """
    producer = open_producer(fast, linger_ms=50)
    warm(producer, topic)
    fast.faults.add(match={"api": "Produce", "topic": topic}, do={"delay": 5})
    began, delivered, trips = {}, {}, {}
    for way in ("each", "together"):
        began[way] = fast.journal.last_seq
        delivery = Delivery()
        for number in range(1000):
            producer.produce(topic, str(number), partition=0, on_delivery=delivery)
            if way == "each":
                flush(producer)
        flush(producer)
        delivered[way] = len(delivery.messages)
        trips[way] = answered(fast, topic, began[way])
    assert delivered == {"each": 1000, "together": 1000}
    [first, *_] = fast.journal.events(kind="request", api="Produce", after_seq=began["each"])
    one_by_one = [each for each in trips["each"] if each.seq < began["together"]]
    assert one_by_one[-1].virtual_ms - first.virtual_ms >= 5_000
    assert len(trips["together"]) * 5 < 1_000


@pytest.mark.covers("S100")
def test_a_full_buffer_refuses_what_comes_next(kafka: Cluster, topic: str) -> None:
    """While the broker stalls, nothing leaves librdkafka's queue; then there is room again."""
    producer = open_producer(kafka, queue_buffering_max_messages=10, socket_timeout_ms=60_000)
    warm(producer, topic)
    kafka.faults.add(match={"api": "Produce", "topic": topic}, when={"times": 1}, do={"hold": {}})
    delivery = begin(producer, topic, "0")
    held = kafka.faults.wait_held()
    for number in range(1, 10):
        producer.produce(topic, str(number), partition=0, on_delivery=delivery)
    with pytest.raises(BufferError, match="Queue full"):
        producer.produce(topic, "too many", partition=0)
    held.release()
    flush(producer)
    assert (delivery.errors, len(delivery.messages)) == ([], 10)
    producer.produce(topic, "10", partition=0)
    flush(producer)
    assert stored(kafka, topic) == ["warm", *map(str, range(11))]


@pytest.mark.covers("S103")
def test_what_may_be_retried_is_after_a_pause_and_the_rest_is_not(
    kafka: Cluster, topic: str
) -> None:
    """Three errors make four attempts, each some 100 ms behind the last: the client's jitter takes
    a fifth off. A record that is too large is not tried again.
    """
    producer = open_producer(kafka, retry_backoff_ms=100, retry_backoff_max_ms=1000)
    warm(producer, topic)
    mark = kafka.journal.last_seq
    kafka.faults.add(
        match={"api": "Produce", "topic": topic},
        when={"times": 3},
        do={"error": "NOT_ENOUGH_REPLICAS"},
    )
    assert send(producer, topic, "x").errors == []
    asked = kafka.journal.events(kind="request", api="Produce", topic=topic, after_seq=mark)
    assert len(asked) == 4
    gaps_ms = [(b.real_ns - a.real_ns) / 1e6 for a, b in pairwise(asked)]
    assert min(gaps_ms) >= 75
    mark = kafka.journal.last_seq
    kafka.faults.add(match={"api": "Produce", "topic": topic}, do={"error": "MESSAGE_TOO_LARGE"})
    [error] = send(producer, topic, "y").errors
    assert error.code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert len(answered(kafka, topic, mark)) == 1
    assert stored(kafka, topic) == ["warm", "x"]


@pytest.mark.covers("S104")
@pytest.mark.parametrize(("idempotent", "copies"), [(False, 2), (True, 1)])
def test_a_lost_acknowledgement_is_a_duplicate_unless_the_producer_is_idempotent(
    kafka: Cluster, topic: str, idempotent: bool, copies: int
) -> None:
    """The batch is appended, the answer lost. A duplicate is there at two offsets; to find it, a
    consumer needs an id in the record, as the offset is none. (Removing them in Spark is shown with
    Spark's tests.)
    """
    producer = open_producer(kafka, enable_idempotence=idempotent)
    warm(producer, topic)
    kafka.faults.add(
        match={"api": "Produce", "topic": topic}, when={"times": 1}, do={"drop_reply": "reset"}
    )
    assert send(producer, topic, "id-1").errors == []
    found = [each.offset for each in kafka.records(topic) if each.value == b"id-1"]
    assert found == list(range(1, 1 + copies))
    kafka.journal.exactly(copies, kind="append", topic=topic, offset=found)


@pytest.mark.covers("S105")
@pytest.mark.parametrize(
    ("idempotent", "order"), [(False, ["B", "A"]), (True, ["A", "B"])], ids=["plain", "idempotent"]
)
def test_of_several_in_flight_a_later_one_overtakes_a_retry_unless_numbers_tell(
    kafka: Cluster, topic: str, idempotent: bool, order: list[str]
) -> None:
    """The first of two batches fails once. The second one of an idempotent producer is refused,
    because its number is not the next.
    """
    stats: list[str] = []
    producer = open_producer(
        kafka,
        retry_backoff_ms=500,
        retry_backoff_max_ms=500,
        max_in_flight=5,
        enable_idempotence=idempotent,
        statistics_interval_ms=20,
        stats_cb=stats.append,
    )

    def are_in_flight(count: int) -> bool:
        producer.poll(0.02)
        told = json.loads(stats[-1])["topics"].get(topic, {}).get("partitions", {}).get("0", {})
        return bool(told.get("msgs_inflight") == count)

    warm(producer, topic)
    mark = kafka.journal.last_seq
    kafka.faults.add(match={"api": "Produce", "topic": topic}, when={"times": 1}, do={"hold": {}})
    delivery = begin(producer, topic, "A")
    held = kafka.faults.wait_held()
    producer.produce(topic, "B", partition=0, on_delivery=delivery)
    wait_until(lambda: are_in_flight(2), what="B in flight behind A")
    held.answer("NOT_ENOUGH_REPLICAS")
    polled(producer, delivery, 2)
    assert delivery.errors == []
    assert stored(kafka, topic)[1:] == order
    refused = answered(kafka, topic, mark, error="OUT_OF_ORDER_SEQUENCE_NUMBER")
    assert bool(refused) is idempotent


@pytest.mark.covers("S105")
def test_with_one_in_flight_the_later_one_waits_for_the_retry(kafka: Cluster, topic: str) -> None:
    """As in kafka-python and Java's producer; librdkafka lets it pass even then, while the retry
    waits for its time.
    """
    producer = KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers,
        enable_idempotence=False,
        max_in_flight_requests_per_connection=1,
        retries=5,
        retry_backoff_ms=300,
    )
    kafka.faults.add(match={"api": "Produce", "topic": topic}, when={"times": 1}, do={"hold": {}})
    try:
        sent = [producer.send(topic, b"A", partition=0)]
        held = kafka.faults.wait_held()
        sent.append(producer.send(topic, b"B", partition=0))
        held.answer("NOT_ENOUGH_REPLICAS")
        assert [each.get(TIMEOUT_S).offset for each in sent] == [0, 1]
    finally:
        producer.close(timeout=TIMEOUT_S)
    assert stored(kafka, topic) == ["A", "B"]


@pytest.mark.covers("S108")
def test_a_request_that_is_not_answered_is_given_up_and_at_last_the_record_too(
    kafka: Cluster, topic: str
) -> None:
    """request.timeout.ms and delivery.timeout.ms, 30 s and 2 min by default, scaled down: the
    client ends the connection, asks again on another, and gives the record up.
    """
    producer = open_producer(
        kafka, socket_timeout_ms=300, request_timeout_ms=300, message_timeout_ms=3000
    )
    warm(producer, topic)
    mark = kafka.journal.last_seq
    rule = kafka.faults.add(match={"api": "Produce", "topic": topic}, do={"drop_request": {}})
    delivery = polled(producer, begin(producer, topic, "x"))
    assert [each.code() for each in delivery.errors] == [KafkaError._MSG_TIMED_OUT]
    assert rule.hits >= 2
    asked = kafka.journal.events(kind="request", api="Produce", topic=topic, after_seq=mark)
    assert len({each.connection for each in asked}) == len(asked)
    wait_until(
        lambda: (
            {each.connection for each in asked}
            <= {
                each.connection
                for each in kafka.journal.events(kind="connection", change="closed", after_seq=mark)
            }
        ),
        what="the end of each of the connections",
    )
    assert stored(kafka, topic) == ["warm"]


@pytest.mark.covers("S289")
@pytest.mark.parametrize("idempotent", [False, True])
def test_one_lost_answer_in_a_hundred_makes_duplicates_without_idempotence(
    kafka: Cluster, topic: str, idempotent: bool
) -> None:
    """Ten thousand records, each reported once; what is stored tells the difference."""
    producer = open_producer(
        kafka, enable_idempotence=idempotent, batch_num_messages=20, linger_ms=5
    )
    warm(producer, topic)
    plan = kafka.faults.add(
        {
            "seed": 289,
            "rules": [
                {
                    "match": {"api": "Produce", "topic": topic},
                    "when": {"probability": 0.01},
                    "do": {"drop_reply": "reset"},
                }
            ],
        }
    )
    delivery = Delivery()
    for number in range(10_000):
        producer.produce(topic, str(number), partition=0, on_delivery=delivery)
    flush(producer)
    assert (delivery.errors, len(delivery.messages)) == ([], 10_000)
    assert plan.hits > 0
    values = stored(kafka, topic)[1:]
    assert set(values) == set(map(str, range(10_000)))
    if idempotent:
        assert values == list(map(str, range(10_000)))
    else:
        assert len(values) > 10_000
