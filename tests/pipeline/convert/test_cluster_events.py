"""Changes of the cluster, and records that logs lost, as rows."""

from __future__ import annotations

import pytest

from mockbroker.core.events import ChangedTopic, LeaderChanged, LogTruncated, TopicsChanged
from mockbroker.core.ids import uuid_text
from mockbroker.core.journal.entries import AppendEntry, EventEntry
from mockbroker.pipeline.convert.cluster_events import ClusterEvents
from mockbroker.pipeline.convert.cluster_state import RunState
from mockbroker.pipeline.convert.rows import Rows
from tests.pipeline.convert.support import Kept

ONE, TWO = bytes(15) + b"\1", bytes(15) + b"\2"


@pytest.mark.parametrize("recreated", [False, True])
def test_a_truncation_loses_what_a_deposed_leader_wrote_to_a_topic_that_still_exists(
    recreated: bool,
) -> None:
    state, kept = RunState(), Kept()
    rows = Rows(kept)
    events = ClusterEvents(rows, state)

    def changed(seq: int, created: tuple[bytes, ...], deleted: tuple[bytes, ...]) -> None:
        topics = [
            tuple(ChangedTopic("t", uuid_text(each), ((1, 2),)) for each in ids)
            for ids in (created, deleted)
        ]
        event = TopicsChanged(0, *topics)
        state.topics_changed(EventEntry(seq, 0, 0, event), event)
        events.topics(EventEntry(seq, 0, 0, event), event)

    changed(1, (ONE,), ())
    leads = LeaderChanged(0, "t", 0, 1, 1, 2, (1,), False, "")
    state.leader_changed(EventEntry(2, 0, 0, leads), leads)
    events.appended(AppendEntry(3, 0, 0, 2, 0, "t", ONE, 0, 0, 0, 4, 5, 99, -1, -1, -1, False, 0))
    if recreated:
        changed(4, (), (ONE,))
        changed(5, (TWO,), ())
    cut = LogTruncated(0, "t", 0, 2, 5, 0)
    events.truncated(EventEntry(6, 0, 0, cut), cut)
    rows.flush()
    lost = [(row["first_offset"], row["last_offset"]) for row in kept.of("removals")]
    assert lost == ([] if recreated else [(0, 4)])
