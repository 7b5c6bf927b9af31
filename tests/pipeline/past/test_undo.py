"""What an entry changed is taken back: forth and back, an image is what it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockbroker.core.cluster import Cluster
from mockbroker.core.configs.resources import ConfigResourceType, overrides_of, set_overrides
from mockbroker.core.journal.entries import Entry
from mockbroker.core.journal.journal import Journal
from mockbroker.pipeline.past.fold import Fold
from mockbroker.pipeline.past.image import PastCluster, capture
from mockbroker.pipeline.past.members import Members
from mockbroker.pipeline.past.undo import undone
from mockbroker_protocol.records import BatchHeader, Record, build_batch

TOPICS = ("a", "b")
VALUES = ("1000", "2000", None)
RESOURCES = (
    (ConfigResourceType.TOPIC, "a", "retention.ms"),
    (ConfigResourceType.TOPIC, "a", "segment.ms"),
    (ConfigResourceType.TOPIC, "b", "retention.ms"),
    (ConfigResourceType.BROKER, "", "log.retention.ms"),
    (ConfigResourceType.BROKER, "2", "log.cleaner.threads"),
    (ConfigResourceType.BROKER, "2", "ssl.keystore.password"),
    (ConfigResourceType.BROKER, "2", "of.a.plugin"),
    (ConfigResourceType.GROUP, "g", "consumer.session.timeout.ms"),
    (ConfigResourceType.CLIENT_METRICS, "m", "interval.ms"),
)
Step: TypeAlias = Callable[[Cluster], None]


def alter(resource: tuple[ConfigResourceType, str, str], value: str | None) -> Step:
    kind, name, config = resource

    def step(cluster: Cluster) -> None:
        if kind is ConfigResourceType.TOPIC and name not in cluster.topics:
            return
        kept = {k: v for k, v in overrides_of(cluster, kind, name).items() if k != config}
        set_overrides(cluster, kind, name, kept if value is None else {**kept, config: value})

    return step


def come_or_go(topic: str, value: str | None) -> Step:
    """Delete the topic, or create it with or without a config."""

    def step(cluster: Cluster) -> None:
        if topic in cluster.topics:
            cluster.delete_topic(topic)
        else:
            cluster.create_topic(topic, configs={"retention.ms": value} if value else {})

    return step


steps = st.lists(
    st.one_of(
        st.builds(alter, st.sampled_from(RESOURCES), st.sampled_from(VALUES)),
        st.builds(come_or_go, st.sampled_from(TOPICS), st.sampled_from(VALUES)),
    ),
    max_size=12,
)


def topics_and_configs(image: PastCluster) -> object:
    return image.topics, image.configs


@settings(max_examples=60, deadline=None)
@given(before=steps, after=steps)
def test_topics_and_configs_are_the_same_from_both_ends(
    before: list[Step], after: list[Step]
) -> None:
    """At each entry behind `before`: from the beginning, and back from the end."""
    cluster = Cluster(now_ms=lambda: 7, seed=1)
    for step in before:
        step(cluster)
    journal = Journal(lambda: 0)
    cluster.runtime.on_event.append(journal.event)
    began = PastCluster.of(capture(cluster))
    for step in after:
        step(cluster)
    ended = PastCluster.of(capture(cluster))
    entries: list[Entry] = journal.since()[1]
    fold = Fold(began.copy(), Members(journal.entry, lambda _: None, cluster.topic_name))
    for at, entry in enumerate(entries):
        assert topics_and_configs(fold.image) == topics_and_configs(undone(ended, entries[at:]))
        fold.apply([entry])
    assert topics_and_configs(fold.image) == topics_and_configs(ended)
    assert topics_and_configs(undone(ended, entries)) == topics_and_configs(began)


def elect_another(cluster: Cluster) -> None:
    cluster.elect_unclean("t", 0, 3)


def fail_the_directory(cluster: Cluster) -> None:
    """One of two: the broker goes on without its replica."""
    (partition,) = cluster.topics["t"].partitions
    cluster.fail_log_dir(1, cluster.brokers[1].log_dirs.dir_of(partition))


@pytest.mark.parametrize("lose", [elect_another, fail_the_directory])
def test_records_that_a_new_leader_lacks_go_from_the_end_of_the_log(lose: Step) -> None:
    cluster = Cluster(now_ms=lambda: 7, seed=1, configs={"log.dirs": "/a,/b"})
    (partition,) = cluster.create_topic("t", assignments={0: [1, 3]}).partitions
    cluster.lag_follower("t", 0, node=3)
    batch = memoryview(build_batch([Record(at, 0, None, b"v") for at in range(3)]))
    partition.append(batch, BatchHeader(batch), 1, 0)
    journal = Journal(lambda: 0)
    cluster.runtime.on_event.append(journal.event)
    began = PastCluster.of(capture(cluster))
    lose(cluster)
    ended = PastCluster.of(capture(cluster))
    entries: list[Entry] = journal.since()[1]
    fold = Fold(began.copy(), Members(journal.entry, lambda _: None, cluster.topic_name))
    fold.apply(entries)
    ends = [each.partitions["t", 0].log_end_offset for each in (began, ended)]
    assert ends == [3, 0]
    assert fold.image.partitions["t", 0].log_end_offset == 0
    assert undone(ended, entries).partitions["t", 0].log_end_offset == 3
