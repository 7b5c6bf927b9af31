"""KafkaConsumer without a group's help: positions, seeks, offsets by time, limits, pauses."""

from __future__ import annotations

import time

import pytest

from tests.clients.java.steps import Steps

pytestmark = pytest.mark.java


def values(records: list[dict[str, object]]) -> list[object]:
    return [record["value"] for record in records]


@pytest.mark.covers("S126")
def test_an_assigned_consumer_reads_in_order_of_each_partition(java: Steps) -> None:
    topic = java.topic(partitions=2)
    java.fill(topic, range(10), partition=0)
    java.fill(topic, range(10, 20), partition=1)
    read = java.read_all(topic, 20, partitions=2)
    for partition, first in ((0, 0), (1, 10)):
        of_partition = [record for record in read if record["partition"] == partition]
        assert values(of_partition) == [str(n) for n in range(first, first + 10)]
        assert [record["offset"] for record in of_partition] == list(range(10))


@pytest.mark.covers("S26", "S129")
def test_seek_may_start_in_the_middle_of_a_batch(java: Steps) -> None:
    topic = java.topic()
    producer = java.producer(linger_ms=100)
    java.send(producer, *({"value": str(n)} for n in range(10)), topic=topic)
    consumer = java.consumer()
    java("assign", consumer, partitions=[f"{topic}-0"])
    java("seek", consumer, partition=f"{topic}-0", offset=7)
    assert [record["offset"] for record in java.poll(consumer, 3)] == [7, 8, 9]
    assert java("position", consumer, partition=f"{topic}-0") == 10
    java("seek", consumer, partition=f"{topic}-0", to="beginning")
    assert java("position", consumer, partition=f"{topic}-0") == 0
    java("seek", consumer, partition=f"{topic}-0", to="end")
    assert java("position", consumer, partition=f"{topic}-0") == 10


@pytest.mark.covers("S127")
@pytest.mark.parametrize(("reset", "position"), [("earliest", 0), ("latest", 10)])
def test_without_a_committed_offset_the_reset_policy_decides(
    java: Steps, reset: str, position: int
) -> None:
    topic = java.topic()
    java.fill(topic, range(10))
    consumer = java.consumer(java.unique("group"), auto_offset_reset=reset)
    java("assign", consumer, partitions=[f"{topic}-0"])
    assert java("position", consumer, partition=f"{topic}-0") == position


@pytest.mark.covers("S127")
def test_without_a_reset_policy_the_consumer_throws(java: Steps) -> None:
    topic = java.topic()
    java.fill(topic, range(10))
    consumer = java.consumer(java.unique("group"), auto_offset_reset="none")
    java("assign", consumer, partitions=[f"{topic}-0"])
    (answer,) = java.tour.ask("consumer.poll", name=consumer, timeoutMs=10_000)
    assert answer["error"] == "NoOffsetForPartitionException"


@pytest.mark.covers("S128")
@pytest.mark.parametrize(("reset", "first"), [("earliest", 6), ("latest", None), ("none", None)])
def test_a_position_before_the_log_start_is_reset_by_policy(
    java: Steps, reset: str, first: int | None
) -> None:
    topic = java.topic()
    java.fill(topic, range(10))
    java.admin("deleteRecords", before={f"{topic}-0": 6})
    consumer = java.consumer(auto_offset_reset=reset)
    java("assign", consumer, partitions=[f"{topic}-0"])
    java("seek", consumer, partition=f"{topic}-0", offset=2)
    if reset == "none":
        (answer,) = java.tour.ask("consumer.poll", name=consumer, timeoutMs=10_000)
        assert answer["error"] == "OffsetOutOfRangeException"
    elif reset == "earliest":
        assert java.poll(consumer, 4)[0]["offset"] == first
    else:
        assert java.poll(consumer, 1, timeout_ms=1000) == []
        assert java("position", consumer, partition=f"{topic}-0") == 10


def test_beginning_and_end_offsets_bound_the_log(java: Steps) -> None:
    topic = java.topic(partitions=2)
    java.fill(topic, range(5), partition=1)
    java.admin("deleteRecords", before={f"{topic}-1": 2})
    consumer = java.consumer()
    both = [f"{topic}-0", f"{topic}-1"]
    assert java("beginningOffsets", consumer, partitions=both) == {both[0]: 0, both[1]: 2}
    assert java("endOffsets", consumer, partitions=both) == {both[0]: 0, both[1]: 5}


def test_offsets_for_times_finds_the_first_record_at_or_after(java: Steps) -> None:
    topic = java.topic()
    now = int(time.time() * 1000) - 100_000
    stamps = [now, now + 1000, now + 500, now + 3000]
    producer = java.producer(linger_ms=100)  # one batch, searched inside
    java.send(producer, *({"value": "v", "timestamp": s} for s in stamps), topic=topic)
    consumer = java.consumer()
    found = {
        after: java("offsetsForTimes", consumer, times={f"{topic}-0": now + after})[f"{topic}-0"]
        for after in (-1, 0, 1, 1000, 1001, 3001)
    }
    assert {after: answer and answer[:2] for after, answer in found.items()} == {
        -1: [0, now],
        0: [0, now],
        1: [1, now + 1000],
        1000: [1, now + 1000],
        1001: [3, now + 3000],
        3001: None,
    }


@pytest.mark.covers("S141")
def test_a_poll_returns_at_most_max_poll_records(java: Steps) -> None:
    topic = java.topic()
    java("sendMany", java.producer(), topic=topic, count=1200)
    consumer = java.consumer(max_poll_records=500)
    java("assign", consumer, partitions=[f"{topic}-0"])
    # One poll of the step's loop: the first to bring records ends it.
    assert len(java.poll(consumer, 1)) == 500
    assert len(java.poll(consumer, 501)) == 700


@pytest.mark.covers("S140")
def test_a_batch_larger_than_every_limit_is_still_read(java: Steps) -> None:
    topic = java.topic()
    java.fill(topic, ["x" * 5000, "y" * 5000, "z" * 5000])
    records = java.read_all(
        topic, 3, max_partition_fetch_bytes=100, fetch_max_bytes=100, fetch_min_bytes=1
    )
    assert [str(each["value"])[0] for each in records] == ["x", "y", "z"]


@pytest.mark.covers("S130", "S133")
def test_a_poll_waits_for_data_and_returns_when_it_comes(java: Steps) -> None:
    topic = java.topic()
    consumer = java.consumer(fetch_max_wait_ms=6_000)
    java("assign", consumer, partitions=[f"{topic}-0"])
    assert java.poll(consumer, 1, timeout_ms=300) == []  # now a Fetch waits at the broker
    java.fill(topic, ["here"])
    begun = time.monotonic()
    assert values(java.poll(consumer, 1)) == ["here"]
    assert time.monotonic() - begun < 5


def test_a_paused_partition_gives_nothing_until_resumed(java: Steps) -> None:
    topic = java.topic(partitions=2)
    paused, other = f"{topic}-0", f"{topic}-1"
    java.fill(topic, ["paused"], partition=0)
    java.fill(topic, ["other"], partition=1)
    consumer = java.consumer()
    java("assign", consumer, partitions=[paused, other])
    assert java("pause", consumer, partitions=[paused]) == [paused]
    assert values(java.poll(consumer, 1)) == ["other"]
    assert java.poll(consumer, 1, timeout_ms=500) == []
    assert java("resume", consumer, partitions=[paused]) == []
    assert values(java.poll(consumer, 1)) == ["paused"]


def test_topics_and_partitions_can_be_listed(java: Steps) -> None:
    topic = java.topic(partitions=3)
    consumer = java.consumer()
    assert topic in java("listTopics", consumer)
    partitions = java("partitionsFor", consumer, topic=topic)
    assert sorted(each["partition"] for each in partitions) == [0, 1, 2]


@pytest.mark.covers("S136")
def test_a_topic_deleted_and_made_anew_is_read_on(java: Steps) -> None:
    topic = java.topic()
    java.fill(topic, range(3))
    consumer = java.consumer(metadata_max_age_ms=500)
    java("assign", consumer, partitions=[f"{topic}-0"])
    assert values(java.poll(consumer, 3)) == ["0", "1", "2"]
    assert java.admin("deleteTopics", topics=[topic]) == {topic: None}
    java.until(lambda: topic not in java.admin("listTopics"))
    java.create({"name": topic, "partitions": 1, "replicas": 1})
    java.fill(topic, ["anew"])
    # The position is reset, or cut to the new log's end where a leader epoch is looked up first.
    read = values(java.poll(consumer, 1, timeout_ms=1000))
    java.fill(topic, ["again"])
    assert (read + values(java.poll(consumer, 1)))[-1] == "again"


def test_a_consumer_of_an_unknown_topic_creates_it_only_where_allowed(java: Steps) -> None:
    forbidden, allowed = java.unique("absent"), java.unique("auto")
    consumer = java.consumer(java.unique("group"), allow_auto_create_topics="false")
    java("subscribe", consumer, topics=[forbidden])
    java.poll(consumer, 1, timeout_ms=500)
    consumer = java.consumer(java.unique("group"), allow_auto_create_topics="true")
    java("subscribe", consumer, topics=[allowed])

    def is_created() -> bool:
        assert java.poll(consumer, 1, timeout_ms=200) == []
        return allowed in java.admin("listTopics")

    java.until(is_created)
    assert forbidden not in java.admin("listTopics")


@pytest.mark.covers("S142")
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_isolation_makes_no_difference_without_transactions(java: Steps, isolation: str) -> None:
    topic = java.topic()
    java.fill(topic, range(5))
    assert len(java.read_all(topic, 5, isolation_level=isolation)) == 5
