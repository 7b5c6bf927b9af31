"""Topics that keep the newest record of each key, as producers and consumers see them."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import pytest
from confluent_kafka import Message, Producer, TopicPartition

from mockbroker import Cluster
from mockbroker.core.errors import ApiError
from mockbroker_protocol.records import BatchHeader
from tests.support.librdkafka import (
    LINGER_MS,
    TIMEOUT_S,
    admin_client,
    flush,
    offsets,
    open_consumer,
    poll,
    produce,
    read_all,
    settings,
)

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def write(
    kafka: Cluster, topic: str, records: Iterable[tuple[str, str | None]], **config: object
) -> None:
    """Produce keys and values; None is a tombstone."""
    producer = Producer(settings(kafka.bootstrap_servers, **({"linger_ms": LINGER_MS} | config)))
    for key, value in records:
        producer.produce(topic, value, key, partition=0)
    flush(producer)


def shown(messages: Iterable[Message]) -> dict[str, tuple[int, str | None]]:
    """Key -> offset and value; no key may be there twice."""
    found: dict[str, tuple[int, str | None]] = {}
    for message in messages:
        key, value = message.key(), message.value()
        assert key is not None
        assert key.decode() not in found
        found[key.decode()] = (message.offset(), None if value is None else value.decode())
    return found


def codecs(kafka: Cluster, topic: str) -> set[int]:
    return kafka.call(
        lambda cluster: {
            BatchHeader(batch).codec for batch in cluster.topics[topic].partitions[0].log.batches()
        }
    )


@pytest.mark.covers("S28")
@pytest.mark.parametrize("codec", CODECS)
def test_a_thousand_keys_in_ten_versions_become_a_thousand_records(
    kafka: Cluster, codec: str
) -> None:
    kafka.topic("latest").create(configs={"cleanup.policy": "compact"})
    versions = [(f"key-{key}", f"{key}:{version}") for version in range(10) for key in range(1000)]
    write(kafka, "latest", versions, compression_type=codec, batch_num_messages=300)
    [gone] = kafka.topic("latest").run_compaction()
    assert (gone.records_removed, gone.records_kept, gone.end_offset) == (9000, 1000, 10_000)
    found = shown(read_all(kafka.bootstrap_servers, "latest", 1000))
    assert found == {f"key-{key}": (9000 + key, f"{key}:9") for key in range(1000)}
    assert codecs(kafka, "latest") == {CODECS.index(codec)}
    with open_consumer(kafka.bootstrap_servers) as consumer:
        bounds = consumer.get_watermark_offsets(TopicPartition("latest", 0), TIMEOUT_S)
    assert bounds == (0, 10_000)


@pytest.mark.covers("S28")
def test_a_tombstone_is_read_for_delete_retention_ms(kafka: Cluster) -> None:
    kafka.topic("t2").create(configs={"cleanup.policy": "compact", "delete.retention.ms": "60000"})
    write(kafka, "t2", [("a", "1"), ("b", "1"), ("a", None), ("c", "1")])
    kafka.clock.freeze()
    kafka.topic("t2").run_compaction()
    kept = {"b": (1, "1"), "a": (2, None), "c": (3, "1")}
    assert shown(read_all(kafka.bootstrap_servers, "t2", 3)) == kept
    kafka.clock.advance("59s")
    kafka.topic("t2").run_compaction()
    assert shown(read_all(kafka.bootstrap_servers, "t2", 3)) == kept
    kafka.clock.advance("2s")
    kafka.topic("t2").run_compaction()
    del kept["a"]
    assert shown(read_all(kafka.bootstrap_servers, "t2", 2)) == kept
    kafka.clock.thaw()


@pytest.mark.covers("S28")
def test_the_cleaner_runs_by_itself(kafka: Cluster) -> None:
    """Once a segment is closed, every 15 seconds."""
    configs = {"cleanup.policy": "compact", "segment.ms": "60000"}
    kafka.topic("by-itself").create(configs={**configs, "message.timestamp.type": "LogAppendTime"})
    write(kafka, "by-itself", [("a", "1"), ("a", "2"), ("a", "3")])
    kafka.clock.advance("61s")
    write(kafka, "by-itself", [("a", "4")])
    assert len(kafka.records("by-itself")) == 4
    kafka.clock.advance("15s")
    assert [(r.offset, r.value) for r in kafka.records("by-itself")] == [(2, b"3"), (3, b"4")]


@pytest.mark.covers("S28")
def test_a_consumer_that_reads_all_the_time_sees_every_newest_value(kafka: Cluster) -> None:
    kafka.topic("busy").create(configs={"cleanup.policy": "compact"})
    stop = threading.Event()
    rounds = 40

    def compact() -> None:
        while not stop.is_set():
            kafka.topic("busy").run_compaction()

    cleaner = threading.Thread(target=compact)
    cleaner.start()
    seen: list[tuple[int, bytes | None]] = []
    try:
        with open_consumer(kafka.bootstrap_servers) as consumer:
            consumer.assign([TopicPartition("busy", 0, 0)])
            for version in range(rounds):
                write(kafka, "busy", [(f"k{key}", str(version)) for key in range(25)])
            end = 25 * rounds
            while not seen or seen[-1][0] < end - 1:
                seen += [(m.offset(), m.value()) for m in poll(consumer, 1)]
    finally:
        stop.set()
        cleaner.join()
    assert [offset for offset, _ in seen] == sorted({offset for offset, _ in seen})
    assert [value for _, value in seen[-25:]] == [str(rounds - 1).encode()] * 25
    kafka.topic("busy").run_compaction()
    left = shown(read_all(kafka.bootstrap_servers, "busy", 25))
    assert left == {f"k{key}": (end - 25 + key, str(rounds - 1)) for key in range(25)}


def test_a_fetch_from_an_offset_that_is_gone_goes_on_with_the_next_record(kafka: Cluster) -> None:
    kafka.topic("holes").create(configs={"cleanup.policy": "compact"})
    write(kafka, "holes", [("a", "1"), ("a", "2"), ("a", "3"), ("b", "1")], batch_num_messages=1)
    kafka.topic("holes").run_compaction()
    with open_consumer(kafka.bootstrap_servers, auto_offset_reset="error") as consumer:
        for start, expected in ((0, [2, 3]), (1, [2, 3]), (2, [2, 3]), (3, [3])):
            consumer.assign([TopicPartition("holes", 0, start)])
            assert offsets(poll(consumer, len(expected))) == expected


def test_offsets_for_times_finds_what_is_left(kafka: Cluster) -> None:
    kafka.topic("timed").create(configs={"cleanup.policy": "compact"})
    producer = Producer(settings(kafka.bootstrap_servers, linger_ms=0))
    base_ms = kafka.clock.now_ms
    for key, at_ms in (("a", 1000), ("b", 2000), ("a", 3000), ("c", 4000)):
        producer.produce("timed", b"v", key, partition=0, timestamp=base_ms + at_ms)
    flush(producer)
    kafka.topic("timed").run_compaction()
    with open_consumer(kafka.bootstrap_servers) as consumer:

        def offset_at(at_ms: int) -> int:
            wanted = [TopicPartition("timed", 0, base_ms + at_ms)]
            [found] = consumer.offsets_for_times(wanted, TIMEOUT_S)
            return int(found.offset)

        assert [offset_at(at_ms) for at_ms in (0, 1000, 2000, 2001, 4000)] == [1, 1, 1, 2, 3]


@pytest.mark.covers("S176")
def test_a_hundred_commits_become_one_record(kafka: Cluster) -> None:
    """And the group, read anew by the next coordinator, is what it was."""
    produce(kafka.bootstrap_servers, "t", [str(n) for n in range(100)])
    with open_consumer(kafka.bootstrap_servers, group_id="steady") as consumer:
        for offset in range(1, 101):
            consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
    before = kafka.records("__consumer_offsets")
    keys = {(record.partition, record.key) for record in before}
    assert len(before) >= 100 > len(keys)
    kafka.topic("__consumer_offsets").run_compaction()
    after = kafka.records("__consumer_offsets")
    assert len(after) == len(keys)
    newest = {(record.partition, record.key): record for record in before}
    assert {(record.partition, record.key): record for record in after} == newest
    [partition] = {record.partition for record in after}

    def move(cluster: object) -> int:
        moved = cluster.partition("__consumer_offsets", partition)  # type: ignore[attr-defined]
        leader = next(node for node in moved.isr if node != moved.leader_id)
        moved.become_leader(leader, moved.leader_epoch + 1, moved.isr)
        cluster.metadata.changed(moved.topic)  # type: ignore[attr-defined]
        return int(leader)

    kafka.call(move)
    with open_consumer(kafka.bootstrap_servers, group_id="steady") as consumer:
        [committed] = consumer.committed([TopicPartition("t", 0)], TIMEOUT_S)
        assert committed.offset == 100
    admin = admin_client(kafka.bootstrap_servers)
    groups = admin.list_consumer_groups(request_timeout=TIMEOUT_S).result(TIMEOUT_S).valid
    assert [group.group_id for group in groups] == ["steady"]


def test_only_compacted_topics_are_compacted(kafka: Cluster) -> None:
    with pytest.raises(ApiError, match=r"cleanup\.policy=compact"):
        kafka.topic("t").run_compaction()
    assert kafka.run_compaction() == []


def test_a_clock_that_stands_still_does_not_stop_a_compaction(kafka: Cluster) -> None:
    """It takes dozens of slices, none of which waits for time to pass."""
    kafka.topic("frozen").create(configs={"cleanup.policy": "compact"})
    write(kafka, "frozen", [(f"k{number % 100}", str(number)) for number in range(20_000)])
    kafka.clock.freeze()
    [gone] = kafka.topic("frozen").run_compaction()
    assert (gone.records_removed, gone.records_kept) == (19_900, 100)
    kafka.clock.thaw()
