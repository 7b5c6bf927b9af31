"""Kafka Streams with `exactly_once_v2`: the word count of the docs, killed and cut off on its way.

Each count of each word is told exactly once and in order, whatever dies: "1", "2", "3", …
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from mockbroker import Cluster
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC
from mockbroker.server.config import TopicSpec
from mockbroker_protocol import ErrorCode
from tests.support.librdkafka import TIMEOUT_S, settings
from tests.support.waiting import wait_until
from tests.support.word_count import (
    CHANGELOG,
    COUNTS,
    LINES,
    PARTITIONS,
    REPARTITION,
    WordCount,
    leader_of,
    some_lines,
    stored,
)

pytestmark = pytest.mark.java


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    topics = [TopicSpec(name, PARTITIONS, 3) for name in (LINES, COUNTS)]
    with Cluster(brokers=3, topics=topics) as cluster:
        yield cluster


@pytest.fixture
def app(kafka: Cluster, tmp_path: Path) -> Iterator[WordCount]:
    with contextlib.closing(WordCount(kafka, tmp_path)) as app:
        yield app


@pytest.mark.covers("S256", "S329")
def test_counts_are_right_after_a_kill(kafka: Cluster, app: WordCount) -> None:
    """What the first instance left open is aborted; the second reads its counts from the log."""
    app.write(*some_lines(1000))
    first = app.start()
    wait_until(lambda: stored(kafka) > 0, 120, f"a first count {app.logs()}")
    app.kill(first)
    app.write(*some_lines(500))
    app.start()
    app.check()


def coordinator_of_transactions(cluster: CoreCluster) -> int:
    """The broker that coordinates the transactions of the app's one thread."""
    [found] = {
        broker_id
        for broker_id, broker in cluster.brokers.items()
        for shard in broker.transactions.shards()
        if not isinstance(shard, ErrorCode) and shard.transactions
    }
    return found


def coordinator_of_the_group(cluster: CoreCluster) -> int:
    index = cluster.find_coordinator_partition("word-count")
    return leader_of(cluster, GROUP_METADATA_TOPIC, index)


def test_brokers_die_under_it(kafka: Cluster, app: WordCount) -> None:
    """Whoever coordinates its transactions or its group, or leads what it reads and writes."""
    app.write(*some_lines(10))
    app.start()
    app.check()
    for find in (
        coordinator_of_transactions,
        coordinator_of_the_group,
        lambda cluster: leader_of(cluster, COUNTS),
    ):
        before = stored(kafka)
        app.write(*some_lines(300))
        wait_until(lambda before=before: stored(kafka) > before, 120, "a count")
        broker_id = kafka.call(find)
        kafka.broker(broker_id).stop(how="unclean")
        app.write(*some_lines(300))
        app.check()
        kafka.broker(broker_id).start()
        wait_until(lambda: kafka.call(is_whole), 120, "full ISRs")


def is_whole(cluster: CoreCluster) -> bool:
    """Whether every partition has all its replicas in sync."""
    return all(
        len(partition.isr) == len(partition.replicas)
        for topic in cluster.topics.values()
        for partition in topic.partitions
    )


@pytest.mark.covers("S329")
def test_another_instance_takes_over(kafka: Cluster, app: WordCount) -> None:
    """Two share the work until one is killed; with a standby replica it has the counts at hand."""
    admin = AdminClient(settings(kafka.bootstrap_servers))

    def has_members(count: int) -> bool:
        [found] = admin.describe_consumer_groups(["word-count"]).values()
        members = found.result(TIMEOUT_S).members
        return len(members) == count and all(m.assignment.topic_partitions for m in members)

    app.write(*some_lines(200))
    # The group misses the killed one after ten seconds, and not after three quarters of a minute.
    configs = {
        "num_standby_replicas": 1,
        "heartbeat_interval_ms": 200,
        "session_timeout_ms": 10_000,
    }
    first = app.start(**configs)
    app.start(**configs)
    wait_until(lambda: has_members(2), 120, f"two members with partitions {app.logs()}")
    app.write(*some_lines(200))
    app.check()
    app.write(*some_lines(500))
    app.kill(first)
    app.write(*some_lines(200))
    app.check()
    wait_until(lambda: has_members(1), 120, "one member")


@pytest.mark.covers("S331")
def test_output_offsets_rise_by_two(kafka: Cluster, app: WordCount) -> None:
    """One count in a transaction, and the marker of its end.

    The topics of its own are as Streams wants them, and what was counted it deletes there.
    """
    app.start(repartition_purge_interval_ms=100)
    for _ in range(4):
        app.write("word")
        app.check()
    assert app.offsets == [0, 2, 4, 6]
    topics = kafka.call(lambda cluster: cluster.topics)
    assert topics[CHANGELOG].configs.cleanup_policy == ("compact",)
    assert topics[REPARTITION].configs.cleanup_policy == ("delete",)
    assert topics[REPARTITION].configs.retention_ms == -1

    def is_purged() -> bool:
        app.write("word")
        app.check()
        return any(p.log_start_offset > 0 for p in topics[REPARTITION].partitions)

    wait_until(is_purged, 120, "DeleteRecords")
