"""Events of a cluster: each class sets its kind, and the journal shows it."""

from __future__ import annotations

from typing import ClassVar

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.configs.resources import ConfigResourceType, overrides_of, set_overrides
from mockbroker.core.events import Event
from mockbroker.core.ids import uuid_text
from mockbroker.core.journal.filters import EventMatcher, Filter
from mockbroker.core.journal.journal import Journal
from mockbroker.core.journal.reader import JournalReader


@pytest.mark.parametrize("kind", [{}, {"kind": "no such kind"}, {"kind": None}])
def test_an_event_class_without_a_known_kind_cannot_be_declared(kind):
    declared = {"__annotations__": {"node_id": int}, "__module__": __name__, **kind}
    with pytest.raises(TypeError, match="Lonely does not set its kind"):
        type(Event)("Lonely", (Event,), declared, frozen=True)


def test_a_new_event_is_declared_in_one_place_and_shown_by_the_journal():
    class DiskFull(Event, frozen=True):
        kind: ClassVar[str] = "broker"
        node_id: int
        free_bytes: int

    journal = Journal(lambda: 0)
    journal.event(DiskFull(5, 2, 17))
    [event] = JournalReader(journal, lambda _: None).events()
    assert (event.kind, event.change, event.broker) == ("broker", "DiskFull", 2)
    assert event.message == {"free_bytes": 17}


def test_topics_that_come_and_go_are_one_event_that_a_filter_finds_by_their_names():
    """It has their ids, the replicas of their partitions, and their configs."""
    cluster = Cluster(now_ms=lambda: 7, seed=1)
    journal = Journal(lambda: 0)
    cluster.runtime.on_event.append(journal.event)
    configs = {"segment.ms": "7"}
    topic = cluster.create_topic("t", assignments={0: [1, 2], 1: [3, 1]}, configs=configs)
    cluster.recreate_topic("t")
    reader = JournalReader(journal, lambda _: None)
    by_name = EventMatcher(Filter(kind=["topics"], topic="t"), 7)
    first, second = filter(by_name, reader.events())
    described = {
        "topic": "t",
        "topic_id": uuid_text(topic.topic_id),
        "assignment": ((1, 2), (3, 1)),
        "configs": {"segment.ms": "7"},
    }
    assert first.message == {"created": (described,), "deleted": ()}
    assert second.message["deleted"] == (described,)
    again = uuid_text(cluster.topics["t"].topic_id)
    assert second.message["created"] == ({**described, "topic_id": again},)


@pytest.mark.parametrize(
    ("resource", "config", "condition"),
    [
        ((ConfigResourceType.TOPIC, "t"), "segment.ms", {"topic": "t"}),
        ((ConfigResourceType.BROKER, "2"), "log.cleaner.threads", {"broker": 2}),
        ((ConfigResourceType.GROUP, "t"), "consumer.session.timeout.ms", {"group": "t"}),
        (
            (ConfigResourceType.BROKER, ""),
            "log.retention.ms",
            {"where": {"resource_type": "broker"}},
        ),
        (
            (ConfigResourceType.CLIENT_METRICS, "m"),
            "interval.ms",
            {"where": {"resource_name": "m"}},
        ),
    ],
)
def test_a_filter_finds_a_changed_config_by_its_resource(resource, config, condition):
    cluster = Cluster(now_ms=lambda: 7, seed=1)
    cluster.create_topic("t")
    journal = Journal(lambda: 0)
    cluster.runtime.on_event.append(journal.event)
    kind, name = resource
    present = overrides_of(cluster, kind, name)
    set_overrides(cluster, ConfigResourceType.BROKER, "1", {"log.segment.bytes": "46000"})
    set_overrides(cluster, kind, name, {**present, config: "46000"})
    matches = EventMatcher(Filter(kind=["configs"], **condition), 7)
    found = list(filter(matches, JournalReader(journal, lambda _: None).events(messages=True)))
    assert found[-1].message == {
        "resource_type": kind.name.lower(),
        "resource_name": name,
        "configs": ({"name": config, "former": None, "value": "46000"},),
    }
    assert len(found) == (2 if condition.get("where") == {"resource_type": "broker"} else 1)


def test_what_concerns_a_topic_comes_behind_the_event_that_it_was_created():
    """Also where one request creates several: its readers know the topic by then."""
    cluster = Cluster(now_ms=lambda: 7, seed=1)
    seen: list[Event] = []
    cluster.runtime.on_event.append(seen.append)
    with cluster.states.one_event():
        cluster.create_topic("a", assignments={0: [1, 2]})
        cluster.create_topic("b", assignments={0: [2, 3]})
    assert [each.topic for each in seen[0].created] == ["a", "b"]
    assert {each.topic for each in seen[1:]} == {"a", "b"}
