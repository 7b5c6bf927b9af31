"""Changes of the cluster, and records that logs lost, as rows."""

from __future__ import annotations

import itertools

import pytest

from mockbroker.core.events import ChangedTopic, LeaderChanged, LogTruncated, TopicsChanged
from mockbroker.core.ids import uuid_text
from mockbroker.core.journal.entries import AppendEntry, EventEntry
from mockbroker.pipeline.convert.cluster_events import ClusterEvents
from mockbroker.pipeline.convert.cluster_state import RunState
from mockbroker.pipeline.convert.rows import Rows
from tests.pipeline.convert.support import Kept

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
