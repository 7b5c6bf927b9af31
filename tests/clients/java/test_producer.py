"""KafkaProducer: acknowledgements, idempotence, compression, headers, timestamps, partitioning."""

from __future__ import annotations

import time

import pytest

from tests.clients.java.steps import Steps

pytestmark = pytest.mark.java

VALUES = [f"value {n} " + "x" * (n % 97) for n in range(200)]


@pytest.mark.covers("S1", "S99")
@pytest.mark.parametrize("acks", ["all", "1"])
def test_acknowledged_records_have_consecutive_offsets(java: Steps, acks: str) -> None:
    topic = java.topic()
    producer = java.producer(acks=acks, enable_idempotence="false")
    sent = java.send(producer, *({"value": v} for v in VALUES), topic=topic)
    assert [each["offset"] for each in sent] == list(range(len(VALUES)))
    assert [each["value"] for each in java.read_all(topic, len(VALUES))] == VALUES
    latest = java.admin("listOffsets", specs={f"{topic}-0": "latest"})
    assert latest[f"{topic}-0"]["offset"] == len(VALUES)


@pytest.mark.covers("S99")
def test_unacknowledged_records_have_no_offset_but_arrive(java: Steps) -> None:
    topic = java.topic()
    producer = java.producer(acks="0", enable_idempotence="false")
    sent = java.send(producer, *({"value": v} for v in VALUES), topic=topic)
    assert {each["offset"] for each in sent} == {None}
    assert [each["value"] for each in java.read_all(topic, len(VALUES))] == VALUES


@pytest.mark.covers("S116")
def test_the_default_producer_is_idempotent(java: Steps) -> None:
    topic = java.topic()
    producer = java.producer()
    java.send(producer, *({"value": v} for v in VALUES[:10]), topic=topic)
    java.send(producer, *({"value": v} for v in VALUES[10:15]), topic=topic)
    (state,) = java.admin("describeProducers", partitions=[f"{topic}-0"])[f"{topic}-0"]
    assert state["id"] >= 0
    assert (state["epoch"], state["lastSequence"]) == (0, 14)
    assert (state["coordinatorEpoch"], state["txnStart"]) == (None, None)
    assert abs(state["lastTimestamp"] - time.time() * 1000) < 60_000


@pytest.mark.covers("S116")
def test_idempotent_producers_get_different_ids(java: Steps) -> None:
    topic = java.topic()
    for _ in range(2):
        java.send(java.producer(), {"value": "v"}, topic=topic)
    states = java.admin("describeProducers", partitions=[f"{topic}-0"])[f"{topic}-0"]
    assert len({state["id"] for state in states}) == 2


@pytest.mark.covers("S101", "S326")
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_is_read_back(java: Steps, codec: str) -> None:
    topic = java.topic()
    producer = java.producer(compression_type=codec, linger_ms=50)
    records = [{"value": v, "key": f"k{n}"} for n, v in enumerate(VALUES)]
    sent = java.send(producer, *records, topic=topic)
    assert [each["offset"] for each in sent] == list(range(len(VALUES)))
    read = java.read_all(topic, len(VALUES))
    assert [(each["key"], each["value"]) for each in read] == [
        (record["key"], record["value"]) for record in records
    ]


@pytest.mark.covers("S102")
@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_with_its_own_compression_is_read_back(java: Steps, codec: str) -> None:
    topic = java.topic(compression_type=codec)
    java.send(java.producer(compression_type="lz4"), *({"value": v} for v in VALUES), topic=topic)
    assert [each["value"] for each in java.read_all(topic, len(VALUES))] == VALUES


@pytest.mark.covers("S317")
def test_null_and_empty_keys_values_and_headers_stay_apart(java: Steps) -> None:
    topic = java.topic()
    records = [
        {"key": None, "value": None, "headers": []},
        {"key": "", "value": "", "headers": [["h", None]]},
        {"key": "k", "value": None, "headers": [["h", ""], ["h", "again"], ["", "unnamed"]]},
        {"key": "schlüssel", "value": "wert ✓", "headers": [["köpf", "✓"]]},
    ]
    java.send(java.producer(), *records, topic=topic)
    read = java.read_all(topic, len(records))
    assert [{part: each[part] for part in ("key", "value", "headers")} for each in read] == records


def test_create_time_is_the_producers_word(java: Steps) -> None:
    topic = java.topic()
    now = int(time.time() * 1000)
    stamps = [now - 5_000, now - 9_000, now]
    sent = java.send(
        java.producer(), *({"value": "v", "timestamp": stamp} for stamp in stamps), topic=topic
    )
    assert [each["timestamp"] for each in sent] == stamps
    read = java.read_all(topic, len(stamps))
    assert [each["timestamp"] for each in read] == stamps
    assert {each["timestampType"] for each in read} == {"CreateTime"}


@pytest.mark.covers("S122")
def test_log_append_time_is_the_brokers_word(java: Steps) -> None:
    topic = java.topic(message_timestamp_type="LogAppendTime")
    old = int(time.time() * 1000) - 3_600_000
    records = ({"value": "v", "timestamp": old} for _ in range(3))
    sent = java.send(java.producer(), *records, topic=topic)
    read = java.read_all(topic, 3)
    assert [each["timestamp"] for each in sent] == [each["timestamp"] for each in read]
    assert all(each["timestamp"] > old for each in read)
    assert {each["timestampType"] for each in read} == {"LogAppendTime"}


@pytest.mark.covers("S109")
def test_keys_are_partitioned_by_murmur2(java: Steps) -> None:
    topic = java.topic(partitions=4)
    sent = java.send(
        java.producer(), *({"key": k, "value": "v"} for k in ("haha", "hehe", "eeee")), topic=topic
    )
    assert [each["partition"] for each in sent] == [0, 1, 3]


def test_a_named_partition_outranks_the_key(java: Steps) -> None:
    topic = java.topic(partitions=4)
    sent = java.send(java.producer(), {"key": "haha", "value": "v", "partition": 2}, topic=topic)
    assert sent[0]["partition"] == 2


@pytest.mark.covers("S110")
def test_records_without_a_key_reach_every_partition(java: Steps) -> None:
    topic = java.topic(partitions=3)
    producer = java.producer(batch_size=500)
    ends = java("sendMany", producer, topic=topic, count=600, size=50)
    assert len(ends) == 3
    assert sum(end + 1 for end in ends.values()) == 600


@pytest.mark.covers("S107")
def test_a_record_above_the_topics_limit_is_refused(java: Steps) -> None:
    topic = java.topic(max_message_bytes=1000)
    producer = java.producer()
    # Apart, for a batch of several that is too large would be split, again and again.
    (big,) = java.send(producer, {"value": "x" * 2000}, topic=topic)
    (small,) = java.send(producer, {"value": "small"}, topic=topic)
    assert big["error"] == "RecordTooLargeException"
    assert small["offset"] == 0


def test_a_compacted_topic_refuses_records_without_a_key(java: Steps) -> None:
    topic = java.topic(cleanup_policy="compact")
    without, keyed = (
        java.send(java.producer(linger_ms=0), {"value": "v"}, topic=topic),
        java.send(java.producer(), {"key": "k", "value": "v"}, topic=topic),
    )
    assert without[0]["error"] == "InvalidRecordException"
    assert keyed[0]["offset"] == 0


def test_a_timestamp_out_of_bounds_is_refused(java: Steps) -> None:
    topic = java.topic(message_timestamp_before_max_ms=60_000)
    stamp = int(time.time() * 1000) - 3_600_000
    (sent,) = java.send(java.producer(), {"value": "v", "timestamp": stamp}, topic=topic)
    assert sent["error"] == "InvalidTimestampException"


@pytest.mark.covers("S43")
def test_producing_to_an_unknown_topic_creates_it(java: Steps) -> None:
    topic = java.unique("auto")
    (sent,) = java.send(java.producer(), {"value": "v"}, topic=topic)
    assert sent["offset"] == 0
    (described,) = java.described(topic)
    assert len(described["partitions"]) == 1


def test_an_invalid_topic_name_is_refused(java: Steps) -> None:
    (sent,) = java.tour.ask(  # the client throws as soon as it has metadata
        "producer.send",
        name=java.producer(max_block_ms=5000),
        records=[{"topic": "not a name", "value": "v"}],
    )
    assert "InvalidTopicException" in str(sent)


def test_partitions_for_names_leaders_and_replicas(java: Steps) -> None:
    replicas = java.peer.brokers
    topic = java.topic(partitions=3, replicas=replicas)
    partitions = java("partitionsFor", java.producer(), topic=topic)
    assert [each["partition"] for each in sorted(partitions, key=lambda p: p["partition"])] == [
        0,
        1,
        2,
    ]
    for each in partitions:
        assert sorted(each["replicas"]) == list(range(1, replicas + 1))
        assert sorted(each["isr"]) == sorted(each["replicas"])
        assert each["leader"] in each["isr"]
    if replicas == 3:
        assert {each["leader"] for each in partitions} == {1, 2, 3}
