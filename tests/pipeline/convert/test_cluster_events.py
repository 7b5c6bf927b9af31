"""Changes of the cluster, and records that logs lost, as rows."""

from __future__ import annotations

import itertools
import json

import pytest

from mockbroker.core.events import (
    BrokerChanged,
    ChangedConfig,
    ChangedTopic,
    ConfigsChanged,
    IsrChanged,
    LeaderChanged,
    LogTruncated,
    RecordsRemoved,
    ReplicasChanged,
    TopicsChanged,
)
from mockbroker.core.ids import uuid_text
from mockbroker.core.journal.entries import AppendEntry, EventEntry
from mockbroker.pipeline.convert.cluster_events import ClusterEvents
from mockbroker.pipeline.convert.cluster_state import RunState
from mockbroker.pipeline.convert.rows import Rows
from tests.pipeline.convert.support import Kept
from tests.pipeline.convert.told_run import TOPIC_ID, ToldRun

ONE, TWO = bytes(15) + b"\1", bytes(15) + b"\2"


class Told:
    """Entries of a run about partition 0 of topic `t`, whose leader is broker 1."""

    def __init__(self) -> None:
        self.state, self.kept = RunState(), Kept()
        self.rows = Rows(self.kept)
        self.events = ClusterEvents(self.rows, self.state)
        self._seqs = itertools.count(1)

    def changed(self, created: tuple[bytes, ...], deleted: tuple[bytes, ...]) -> None:
        topics = [
            tuple(ChangedTopic("t", uuid_text(each), ((1, 2),)) for each in ids)
            for ids in (created, deleted)
        ]
        event = TopicsChanged(0, *topics)
        entry = EventEntry(next(self._seqs), 0, 0, event)
        self.state.topics_changed(entry, event)
        self.events.topics(entry, event)
        if created:
            leads = LeaderChanged(0, "t", 0, 1, 1, 2, (1,), False, "")
            self.state.leader_changed(EventEntry(next(self._seqs), 0, 0, leads), leads)

    def appended(self, node_id: int, topic_id: bytes, last_offset: int) -> None:
        """Records from offset 0 on."""
        count = last_offset + 1
        entry = AppendEntry(
            next(self._seqs), 0, 0, node_id, 0, "t", topic_id, 0, 0, 0, last_offset, count, 99,
            -1, -1, -1, False, 0,
        )  # fmt: skip
        self.events.appended(entry)

    def truncated(self, node_id: int, offset: int) -> None:
        cut = LogTruncated(0, "t", 0, node_id, 5, offset)
        self.events.truncated(EventEntry(next(self._seqs), 0, 0, cut), cut)

    def removals(self) -> list[tuple[object, object]]:
        self.rows.flush()
        return [(row["first_offset"], row["last_offset"]) for row in self.kept.of("removals")]


@pytest.mark.parametrize("recreated", [False, True])
def test_a_truncation_loses_what_a_deposed_leader_wrote_to_a_topic_that_still_exists(
    recreated: bool,
) -> None:
    run = Told()
    run.changed((ONE,), ())
    run.appended(2, ONE, 4)
    if recreated:
        run.changed((), (ONE,))
        run.changed((TWO,), ())
    run.truncated(2, 0)
    assert run.removals() == ([] if recreated else [(0, 4)])


def test_the_log_of_a_topic_that_is_made_anew_begins_anew() -> None:
    """What the leader had in the former one replaces no record of a deposed leader."""
    run = Told()
    run.changed((ONE,), ())
    run.appended(1, ONE, 9)
    run.changed((), (ONE,))
    run.changed((TWO,), ())
    run.appended(2, TWO, 4)
    run.truncated(2, 0)
    assert run.removals() == [(0, 4)]


def test_events_have_columns_for_places_and_brokers_and_details_for_the_rest() -> None:
    run = ToldRun()
    run.event(BrokerChanged(0, 3, "paused", 5))
    run.event(LeaderChanged(0, "t", 1, 2, 4, 1, (2, 3), True, "moved"))
    run.event(IsrChanged(0, "t", 1, (2, 3), (2,), 7, 9, "lagging"))
    run.event(ReplicasChanged(0, "t", 1, (1, 2), (1, 3), (3,), (2,)))
    broker, leader, isr, replicas = run.rows("cluster")
    place = {"topic": "t", "topic_id": uuid_text(TOPIC_ID), "partition": 1}
    assert (broker["change"], broker["broker"], broker["details"]) == (
        "paused", 3, '{"broker_epoch": 5}',
    )  # fmt: skip
    assert "topic_id" not in broker
    assert leader.items() >= {
        **place, "change": "LeaderChanged", "leader": 2, "leader_epoch": 4, "former_leader": 1,
        "isr": "2,3", "unclean": True, "reason": "moved", "details": None,
    }.items()  # fmt: skip
    assert isr.items() >= {**place, "isr": "2", "former_isr": "2,3", "reason": "lagging"}.items()
    assert json.loads(isr["details"]) == {"high_watermark": 7, "log_end_offset": 9}
    assert replicas.items() >= {**place, "replicas": "1,3"}.items()
    assert json.loads(replicas["details"]) == {"former": [1, 2], "adding": [3], "removing": [2]}


@pytest.mark.parametrize(
    ("reason", "cause", "told"),
    [
        ("truncation", "", None),
        ("truncation", "cut-off", "cut-off"),
        ("unclean_election", "", "unclean_election"),
        ("unclean_election", "hurry", "hurry"),
        ("log_dir_failed", "", "fail_log_dir"),
        ("retention", "", None),
    ],
)
def test_what_is_removed_has_the_cause_that_its_reason_implies(
    reason: str, cause: str, told: str | None
) -> None:
    run = ToldRun()
    run.event(RecordsRemoved(0, "t", uuid_text(TOPIC_ID), 0, 3, 8, reason, cause))
    [row] = run.rows("removals")
    assert (row["first_offset"], row["last_offset"], row["cause"]) == (3, 8, told)


@pytest.mark.parametrize(
    ("resource_type", "name", "place"),
    [
        ("topic", "t", {"topic": "t", "topic_id": uuid_text(TOPIC_ID)}),
        ("topic", "gone", {"topic": "gone", "topic_id": None}),
        ("broker", "2", {"broker": 2}),
        ("broker", "", {}),
        ("group", "t", {}),
    ],
)
def test_the_configs_of_topics_and_brokers_have_their_place(
    resource_type: str, name: str, place: dict[str, object]
) -> None:
    """A row for each config, whose text stays readable."""
    run = ToldRun()
    configs = (ChangedConfig("a", None, "straße"), ChangedConfig("b", "1", None))
    run.event(ConfigsChanged(0, resource_type, name, configs))
    first, second = run.rows("cluster")
    names = ("topic", "topic_id", "broker")
    assert {each: first[each] for each in names if each in first} == place
    resource = {"resource_type": resource_type, "resource_name": name}
    assert "straße" in first["details"]
    assert json.loads(first["details"]) == {
        **resource, "name": "a", "former": None, "value": "straße",
    }  # fmt: skip
    assert json.loads(second["details"]) == {**resource, "name": "b", "former": "1", "value": None}


def test_what_an_action_names_has_a_column_if_it_is_a_single_one() -> None:
    """All arguments are in the details."""
    run = ToldRun()
    one = {"topic": "t", "partition": 1, "group": "g", "broker": 2, "offset": 5}
    several = {"topic": ["t", "u"], "partition": [0, 1], "group": ["g"], "broker": "all"}
    nothing = dict.fromkeys(one)
    arguments = (one, several, nothing)
    for each in arguments:
        run.fact("action", change="act", arguments=each)
    rows = run.rows("faults")
    names = ("topic", "partition", "group", "broker", "offset")
    assert [{name: row[name] for name in names if name in row} for row in rows] == [
        {"topic": "t", "partition": 1, "group": "g", "broker": 2},
        {},
        {},
    ]
    assert [json.loads(row["details"])["arguments"] for row in rows] == list(arguments)
