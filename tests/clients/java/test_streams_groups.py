"""Kafka Streams with `group.protocol=streams` (KIP-1071): the word count of the docs.

Each count of each word is told exactly once and in order, whatever dies: "1", "2", "3", …
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from mockbroker import Cluster
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.groups.streams.group import StreamsGroup
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC
from mockbroker.server.config import TopicSpec
from tests.clients.java.test_streams import is_whole
from tests.support import doc_examples, maven
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

GROUP = "word-count"
# Clients heartbeat as often as the broker tells them; tests should not wait for it.
CONFIGS = {
    "group.streams.min.heartbeat.interval.ms": 100,
    "group.streams.heartbeat.interval.ms": 200,
    "group.streams.assignment.interval.ms": 0,
}


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    topics = [TopicSpec(name, PARTITIONS, 3) for name in (LINES, COUNTS)]
    with Cluster(brokers=3, topics=topics, configs=CONFIGS) as cluster:
        yield cluster


@pytest.fixture
def app(kafka: Cluster, tmp_path: Path) -> Iterator[WordCount]:
    with contextlib.closing(WordCount(kafka, tmp_path, group_protocol="streams")) as app:
        yield app


def group_of(cluster: CoreCluster) -> StreamsGroup | None:
    shard = cluster.group_shard(GROUP)
    return None if shard is None or GROUP not in shard.groups else shard.streams.get(GROUP)


def group_members(cluster: CoreCluster) -> list[str]:
    group = group_of(cluster)
    return [] if group is None else sorted(group.members)


def counts_of_tasks(kafka: Cluster) -> list[tuple[int, int]]:
    """The numbers of active and standby tasks of each member."""

    def count(cluster: CoreCluster) -> list[tuple[int, int]]:
        group = group_of(cluster)
        return sorted(
            (
                sum(map(len, each.assigned.active.values())),
                sum(map(len, each.assigned.standby.values())),
            )
            for each in (() if group is None else group.members.values())
        )

    return kafka.call(count)


def test_counts_are_right_after_a_kill(kafka: Cluster, app: WordCount) -> None:
    """The broker has created the internal topics; a second instance goes on with the counts."""
    app.write(*some_lines(300))
    first = app.start()
    wait_until(lambda: stored(kafka) > 0, 120, f"a first count {app.logs()}")
    topics = kafka.call(lambda cluster: cluster.topics)
    assert [len(topics[name].partitions) for name in (REPARTITION, CHANGELOG)] == [2, 2]
    assert topics[CHANGELOG].configs.cleanup_policy == ("compact",)
    app.kill(first)
    app.write(*some_lines(200))
    app.start()
    app.check()
    assert kafka.call(lambda cluster: getattr(group_of(cluster), "state_name", "")) == "Stable"


def test_two_instances_share_the_tasks_with_standbys(kafka: Cluster, app: WordCount) -> None:
    """Each keeps a copy of the other's state; the one that is left takes all."""
    story = doc_examples.module("cookbook/queues.md", "lose_an_instance.py")
    story.prepare(kafka, GROUP)
    app.write(*some_lines(100))
    first = app.start()
    app.start()
    balanced = [(2, 1), (2, 1)]
    wait_until(lambda: counts_of_tasks(kafka) == balanced, 120, f"standbys {app.logs()}")
    app.write(*some_lines(100))
    app.check()
    story.lose_an_instance(kafka, first)
    app.write(*some_lines(100))
    app.check()
    wait_until(lambda: counts_of_tasks(kafka) == [(4, 0)], 120, "one member with all tasks")


def test_the_coordinator_moves_and_dies_under_it(kafka: Cluster, app: WordCount) -> None:
    app.write(*some_lines(50))
    app.start()
    app.check()
    index = kafka.call(lambda cluster: cluster.find_coordinator_partition(GROUP))
    for how in ("controlled", "unclean"):
        broker_id = kafka.call(lambda cluster: leader_of(cluster, GROUP_METADATA_TOPIC, index))
        kafka.broker(broker_id).stop(how=how)
        app.write(*some_lines(100))
        app.check()
        kafka.broker(broker_id).start()
    assert len(counts_of_tasks(kafka)) == 1


def test_brokers_die_and_restart_under_it(kafka: Cluster, app: WordCount) -> None:
    """First the leaders of what it reads, writes and keeps die, one after the other. Then each
    broker is restarted as in an upgrade.
    """
    app.write(*some_lines(50))
    app.start()
    app.check()
    for topic in (LINES, REPARTITION, CHANGELOG, COUNTS):
        app.write(*some_lines(100))
        broker_id = kafka.call(partial(leader_of, topic=topic))
        kafka.broker(broker_id).stop(how="unclean")
        app.write(*some_lines(100))
        app.check()
        kafka.broker(broker_id).start()
        wait_until(lambda: kafka.call(is_whole), 120, "full ISRs")
    for broker_id in (1, 2, 3):
        kafka.broker(broker_id).stop()
        app.write(*some_lines(50))
        kafka.broker(broker_id).start()
        app.check()
        wait_until(lambda: kafka.call(is_whole), 120, "full ISRs")
    assert len(counts_of_tasks(kafka)) == 1


def test_the_clock_jumps_under_it(kafka: Cluster, app: WordCount) -> None:
    """Sessions of connected members outlast a jump: nobody joins again, and no count is wrong."""
    app.write(*some_lines(50))
    app.start()
    app.check()
    [member] = kafka.call(group_members)
    kafka.clock.advance("1h", only="groups")
    app.write(*some_lines(50))
    app.check()
    assert kafka.call(group_members) == [member]


def test_kafka_streams_groups_describes_and_deletes_a_group(
    kafka: Cluster, app: WordCount, tmp_path: Path
) -> None:
    """StreamsGroupCommand of Kafka 4.3 against ours."""

    def command(*args: str) -> str:
        done = maven.java(
            maven.jars("kafka-server"),
            "org.apache.kafka.tools.streams.StreamsGroupCommand",
            "--bootstrap-server",
            kafka.bootstrap_servers,
            *args,
            stdout=(tmp_path / "out").open("wb"),
            stderr=(tmp_path / "err").open("wb"),
        )
        done.wait(120)
        return (tmp_path / "out").read_text() + (tmp_path / "err").read_text()

    app.write(*some_lines(10))
    instance = app.start()
    app.check()
    assert "Stable" in command("--list", "--state")
    state = command("--describe", "--group", GROUP, "--state")
    assert "Stable" in state
    members = command("--describe", "--group", GROUP, "--members", "--verbose")
    assert "ACTIVE:" in members
    offsets = command("--describe", "--group", GROUP, "--offsets")
    assert LINES in offsets
    assert REPARTITION in offsets
    assert "not empty" in command("--delete", "--group", GROUP).lower()
    app.kill(instance)
    wait_until(lambda: counts_of_tasks(kafka) == [], 120, "an empty group")
    command("--delete", "--group", GROUP, "--delete-all-internal-topics")
    assert kafka.call(group_of) is None
    assert GROUP not in command("--list")
