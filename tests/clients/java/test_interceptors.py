"""Interceptors of Java's clients: what they do to records, and what of it a broker sees."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mockbroker import Cluster
from tests.clients.java.steps import Peer, Steps
from tests.support.http import HttpClient
from tests.support.tour import Tour

pytestmark = [pytest.mark.java, pytest.mark.parametrize("tour", ["4.3.1"], indirect=True)]

PREFIX, COUNTER, DETOUR, SHOUTING = (
    f"mockbroker.tour.Interceptors${name}"
    for name in ("TimePrefix", "Counter", "Detour", "Shouting")
)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=1) as cluster:
        yield cluster


@pytest.fixture
def java(tour: Tour, kafka: Cluster) -> Iterator[Steps]:
    kafka.faults.clear()
    steps = Steps(tour, Peer("mockbroker", kafka.bootstrap_servers, 1))
    yield steps
    steps.close_all()


@pytest.mark.covers("S112", "S114")
def test_values_are_prefixed_once_whatever_comes_behind(java: Steps, kafka: Cluster) -> None:
    """The chain is gone through in the order of the config: first the prefix, then the counter. The
    time in the value and that of the append tell how long a record was on its way. (Splitting them
    in Spark is no different from splitting them here.)
    """
    topic = java.topic(message_timestamp_type="LogAppendTime")
    producer = java.producer(interceptor_classes=f"{PREFIX},{COUNTER}")
    java.send(producer, *({"value": f"v{n}"} for n in range(5)), topic=topic)
    stored = kafka.records(topic)
    split = [(each.value or b"").decode().split(",") for each in stored]
    assert [words[1:] for words in split] == [[f"v{n}"] for n in range(5)]
    for record, (sent_ms, _) in zip(stored, split, strict=True):
        # The cluster's clock is monotonic, so that the two may differ by some milliseconds.
        assert abs(record.timestamp_ms - int(sent_ms)) < 60_000
    assert java("counted", producer) == [5, 0]


@pytest.mark.covers("S113")
def test_a_counter_knows_what_was_acknowledged_and_what_failed(java: Steps, kafka: Cluster) -> None:
    """Three of ten are refused for good. The journal has seven appends, and three refusals."""
    topic = java.topic()
    producer = java.producer(interceptor_classes=COUNTER, enable_idempotence="false")
    kafka.faults.add(
        match={"api": "Produce", "topic": topic},
        when={"nth": [2, 5, 9]},
        do={"error": "TOPIC_AUTHORIZATION_FAILED"},
    )
    sent = [java.send(producer, {"value": str(n)}, topic=topic)[0] for n in range(10)]
    failed = [n for n, each in enumerate(sent, 1) if "error" in each]
    assert failed == [2, 5, 9]
    assert java("counted", producer) == [7, 3]
    kafka.journal.exactly(7, kind="append", topic=topic)
    kafka.journal.exactly(
        3, kind="response", api="Produce", topic=topic, error="TOPIC_AUTHORIZATION_FAILED"
    )


@pytest.mark.covers("S114")
def test_a_record_that_was_sent_elsewhere_is_found_where_it_went(
    java: Steps, kafka: Cluster
) -> None:
    """An interceptor may change topic and partition; the journal tells the final ones."""
    topic = java.topic()
    java.create({"name": f"{topic}-audit", "partitions": 2, "replicas": 1})
    producer = java.producer(interceptor_classes=DETOUR)
    [sent] = java.send(producer, {"value": "x", "partition": 0}, topic=topic)
    assert (sent["topic"], sent["partition"]) == (f"{topic}-audit", 1)
    [batch] = kafka.journal.exactly(1, kind="append", client_id=producer)
    assert (batch.topic, batch.partition) == (f"{topic}-audit", 1)
    assert kafka.records(topic) == []


@pytest.mark.covers("S152")
def test_what_the_application_sees_may_be_another_value_than_the_stored_one(
    java: Steps, kafka: Cluster
) -> None:
    """onConsume alters the record on its way to the application; the log keeps what it has, and
    another consumer reads it.
    """
    topic = java.topic()
    java.fill(topic, ["quiet"])
    [seen] = java.read_all(topic, 1, interceptor_classes=SHOUTING)
    assert (seen["value"], seen["offset"]) == ("QUIET", 0)
    assert [each.value for each in kafka.records(topic)] == [b"quiet"]
    assert [each["value"] for each in java.read_all(topic, 1)] == ["quiet"]


@pytest.mark.covers("S100")
def test_a_producer_whose_buffer_is_full_waits_for_max_block_ms(
    java: Steps, kafka: Cluster
) -> None:
    """The broker stalls; buffer.memory is 32 KiB here, and max.block.ms 1000 (32 MiB and 60 s by
    default). What found no room fails, what did arrives once the broker goes on.
    """
    topic = java.topic()
    producer = java.producer(
        buffer_memory=32_768, max_block_ms=1000, batch_size=16_384, linger_ms=0
    )
    kafka.faults.add(
        match={"api": "Produce", "topic": topic}, when={"times": 1}, do={"hold": {"at_most": "4s"}}
    )
    values = [{"value": str(number) * 12_000} for number in range(4)]
    sent = java.send(producer, *values, topic=topic)
    errors = [each["error"] for each in sent if "error" in each]
    assert set(errors) == {"BufferExhaustedException"}  # a TimeoutException
    assert 1 <= len(errors) < 4
    assert len(kafka.records(topic)) == 4 - len(errors)


@pytest.mark.covers("S156")
def test_records_lag_is_what_is_left_to_the_end_that_the_consumer_sees(
    java: Steps, kafka: Cluster
) -> None:
    """To the high watermark, or with read_committed to the last stable offset. The broker has its
    own side of it: the lag of what is committed, and bytes and times of Fetch by client.
    """
    api, topic = HttpClient(kafka.admin_url), java.topic()
    java.fill(topic, range(10))
    producer = java.producer(transactional_id=java.unique("open"))
    java("initTransactions", producer)
    java("begin", producer)
    java.send(producer, *({"value": "open"} for _ in range(3)), topic=topic)
    for level, end in (("read_uncommitted", 13), ("read_committed", 10)):
        group = java.unique("g")
        consumer = java.consumer(group, isolation_level=level, max_poll_records=4)
        java("assign", consumer, partitions=[f"{topic}-0"])
        assert len(java.poll(consumer, 4)) == 4
        position = java("position", consumer, partition=f"{topic}-0")
        assert java("metric", consumer, metric="records-lag") == end - position == end - 4
        java("commit", consumer)
        java.close(consumer)
        [lag] = api.get("/v1/lag", group=group)
        assert (lag["committed"], lag["lag"], lag["lag_read_committed"]) == (4, 9, 6)
        answers = kafka.journal.events(kind="response", api="Fetch", client_id=consumer)
        took_ms = [(each.elapsed_ns or 0) / 1e6 for each in answers]
        [client] = [each for each in api.get("/v1/clients") if each["client_id"] == consumer]
        assert client["requests"]["Fetch"] >= len(answers)
        assert client["fetch_ms_max"] >= max(took_ms) > 0
        assert client["bytes_out"] > sum(each.bytes or 0 for each in answers) > 0
    java("abort", producer)
