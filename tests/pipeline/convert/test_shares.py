"""Share groups and streams groups: their events as rows, and the converter's numbers."""

from __future__ import annotations

from typing import Any

from mockbroker import Cluster
from mockbroker.client import Client
from mockbroker.core.events import ShareRecordsMoved, ShareSessionChanged, ShareStartMoved
from mockbroker.core.ids import uuid_text
from mockbroker.core.journal.entries import EventEntry
from mockbroker.pipeline.convert.cluster_state import RunState
from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.convert.shares import ShareTables
from tests.pipeline.convert.support import Kept, tables_of
from tests.pipeline.convert.told_run import TOPIC_ID, ToldRun
from tests.support.streams_member import StreamsMember, assign_at_once


class Events:
    """Events of one share partition, converted."""

    def __init__(self) -> None:
        self._kept = Kept()
        self._rows = Rows(self._kept)
        self._tables = ShareTables(self._rows, RunState())
        self._seq = 0

    def _entry(self, event: Any) -> EventEntry:
        self._seq += 1
        return EventEntry(self._seq, 0, 0, event)

    def start(self, change: str, node_id: int = 1, epoch: int = 1) -> None:
        event = ShareStartMoved(0, node_id, "g", "t", "id", 0, epoch, change, -1, 5, "", "")
        self._tables.start(self._entry(event), event)

    def acquired(self, node_id: int = 1, epoch: int = 1) -> None:
        event = ShareRecordsMoved(
            0, node_id, "g", "m", "t", "id", 0, epoch, "acquired", 5, 6, "Acquired", 1, 5, "", ""
        )
        self._tables.records(self._entry(event), event)

    def numbers(self) -> list[tuple[int, int | None]]:
        """State and life of each row, in the order of the events."""
        self._rows.flush()
        rows = sorted(
            self._kept.of("share_records") + self._kept.of("share_starts"),
            key=lambda row: row["seq"],
        )
        return [(row["share_state"], row["life"]) for row in rows]


def test_each_load_begins_a_life_of_its_broker() -> None:
    """A deposed leader goes on in the life that it had."""
    events = Events()
    events.start("initialized")
    events.start("reset")
    events.acquired()
    events.start("loaded", node_id=2)
    events.acquired(node_id=2)
    events.acquired(node_id=1)
    assert events.numbers() == [(1, None), (1, 1), (1, 1), (1, 2), (1, 2), (1, 1)]


def test_an_initialization_begins_a_state_even_with_the_same_epoch() -> None:
    """So does a deletion. A leader that does not know keeps its epoch, and is apart by that."""
    events = Events()
    events.start("initialized")
    events.start("loaded")
    events.start("deleted", epoch=-1)
    events.start("initialized")
    events.acquired(epoch=0)
    events.start("loaded")
    events.acquired()
    assert events.numbers() == [(1, None), (1, 1), (2, None), (3, None), (4, 1), (3, 2), (3, 2)]


def test_events_before_the_first_load_have_no_life() -> None:
    """The journal may begin in the middle of one."""
    events = Events()
    events.acquired()
    assert events.numbers() == [(1, None)]


def test_an_event_without_a_name_has_that_of_its_topics_id_and_no_empty_text() -> None:
    run = ToldRun()
    topic_id = uuid_text(TOPIC_ID)
    for member, reason, cause in (("", "", ""), ("m", "rejected", "rule")):
        run.event(
            ShareRecordsMoved(
                0, 1, "g", member, "", topic_id, 0, -1, "gap", 5, 6, "Archived", 1, 5, reason, cause
            )
        )
    run.event(ShareStartMoved(0, 1, "g", "", topic_id, 0, 0, "reset", -1, 0, "", ""))
    names = ("topic", "member", "reason", "cause", "state_epoch")
    assert [tuple(row[name] for name in names) for row in run.rows("share_records")] == [
        ("t", None, None, None, None),
        ("t", "m", "rejected", "rule", None),
    ]
    [start] = run.rows("share_starts")
    assert (start["topic"], start["former_offset"], start["offset"]) == ("t", None, 0)
    assert (start["state_epoch"], start["reason"], start["cause"]) == (0, None, None)


def test_a_session_that_is_opened_or_closed_is_a_row() -> None:
    run = ToldRun()
    run.event(ShareSessionChanged(0, 2, "g", "m", "opened", ""))
    run.event(ShareSessionChanged(0, 2, "g", "m", "closed", "connection"))
    names = ("broker", "group", "member", "change", "reason")
    assert [tuple(row[name] for name in names) for row in run.rows("share_sessions")] == [
        (2, "g", "m", "opened", None),
        (2, "g", "m", "closed", "connection"),
    ]


def test_tasks_and_statuses_of_a_streams_group() -> None:
    """A row for each task; a status as often as it is sent."""
    with Cluster(brokers=1, topics={"t": 2}) as kafka:
        kafka.act("create_internal_topics")
        kafka.call(lambda cluster: assign_at_once(cluster, "app"))
        with Client(kafka.bootstrap_servers) as client:
            member = StreamsMember(client, "app", "t", "m1")
            member.until(active=[0, 1])
            kafka.group("app").report_stale_topology()
            member.beat()
            member.beat()
        tables = tables_of(kafka)
        tasks = [
            (row["change"], row["role"], row["subtopology"], row["partition"], row["member"])
            for row in tables.rows("tasks", group="app")
        ]
        assert tasks == [("assigned", "active", "0", index, "m1") for index in (0, 1)]
        stale = tables.rows("statuses", group="app", status="STALE_TOPOLOGY")
        assert [row["member"] for row in stale] == ["m1", "m1"]
        assert {row["protocol"] for row in tables.rows("groups", group="app")} == {"streams"}
