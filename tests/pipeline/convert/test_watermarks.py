"""Reported high watermarks: evidence, or reports that are out of date."""

from __future__ import annotations

import pytest

from mockbroker.core.events import (
    ChangedTopic,
    LeaderChanged,
    LogTruncated,
    TopicsChanged,
    WatermarkMoved,
)
from mockbroker.core.journal.entries import EventEntry
from mockbroker.pipeline.convert.cluster_state import RunState
from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.convert.watermarks import MARKS_MAX, Watermarks, _ReportedMarks
from mockbroker.pipeline.spool.format import InitialTopic, RunStarted
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from tests.pipeline.convert.told_run import ToldRun


def told(*marks: tuple[int, int]) -> _ReportedMarks:
    """Marks that were told one behind the other, each asked for just before: (entry, mark)."""
    found = _ReportedMarks()
    for seq, mark in marks:
        assert found.add(seq, mark, seq - 1)
    return found


def test_a_mark_that_rises_or_stays_is_evidence():
    assert told((10, 3), (20, 5), (30, 5)).add(40, 9, 35)


def test_a_lower_mark_is_old_news_if_it_was_asked_for_before_the_higher_was_told():
    assert not told((10, 3), (20, 5)).add(30, 3, 15)


def test_a_lower_mark_went_back_if_it_was_asked_for_after_the_higher_was_told():
    found = told((10, 3), (20, 5))
    assert found.add(30, 3, 25)
    # From now on that is where it stands.
    assert found.add(40, 3, 35)
    assert found.add(50, 4, 45)


def test_a_higher_mark_that_was_asked_for_before_it_went_back_is_old_news():
    found = told((10, 3), (20, 5))
    assert found.add(30, 3, 25)
    assert not found.add(40, 5, 28)
    assert found.add(50, 3, 45)


def test_what_a_rule_had_a_hand_in_counts_only_where_it_went_back_for_sure_or_is_known():
    found = told((10, 3), (20, 5))
    assert found.is_known(5, 25)
    assert found.is_known(2, 25)
    assert not found.is_known(3, 15)  # late, by the rule
    assert not found.is_known(1_000_000, 25)  # a lie, perhaps
    assert found.add(30, 5, 29)


def test_a_log_that_is_reported_for_ever_keeps_few_marks():
    """The newer half of them complete: a decrease by one is still seen. A request that has waited
    for longer is compared with a mark that is lower than that of its time, not higher.
    """
    found = told(*((seq, seq) for seq in range(10, 100_000)))
    assert len(found.seqs) == len(found.marks) <= MARKS_MAX
    half = MARKS_MAX // 2
    recent = range(100_000 - half, 100_000)
    assert found.seqs[-half:] == found.marks[-half:] == list(recent)
    assert all(0 < found.before(seq) <= seq for seq in range(10, 100_000))
    assert not found.add(100_001, recent[0], recent[0])
    assert found.add(100_001, recent[0] - 1, recent[0])


class Causes(Rows):
    """Notes the cause of each row."""

    def __init__(self) -> None:
        self.noted: list[tuple[object, object, object]] = []

    def add(self, table: str, row: dict[str, object]) -> None:
        self.noted.append((row["broker"], row["high_watermark"], row["cause"]))


def test_a_mark_that_follows_a_lowered_one_has_its_cause():
    """A follower's, after the leader's was set; a replica's, after it was truncated. Once only."""
    cluster = RunState()
    cluster.begin(RunStarted(1, "r", "c", 0, 0, 0, [InitialTopic("t", "id", [(-1, 0)])]))
    rows = Causes()
    watermarks = Watermarks(rows, cluster)

    def moved(node_id: int, former: int, mark: int, cause: str = "") -> None:
        event = WatermarkMoved(0, "t", 0, node_id, former, mark, 9, cause)
        watermarks.moved(EventEntry(len(rows.noted) + 1, 0, 0, event), event)

    moved(1, 0, 5)
    moved(2, 0, 5)
    moved(1, 5, 3, "set_high_watermark")
    moved(2, 5, 3)
    moved(2, 3, 4)
    cut = LogTruncated(0, "t", 0, 2, 9, 2, "stop_broker")
    watermarks.truncated(EventEntry(9, 0, 0, cut), cut)
    moved(2, 4, 2)
    moved(2, 2, 4)
    assert rows.noted == [
        (1, 5, None),
        (2, 5, None),
        (1, 3, "set_high_watermark"),
        (2, 3, "set_high_watermark"),
        (2, 4, None),
        (2, 2, "stop_broker"),
        (2, 4, None),
    ]


def test_former_epochs_and_deleted_topics_are_forgotten():
    """In a run of days leaders move often, and tests have topics of their own."""
    cluster = RunState()
    cluster.begin(RunStarted(1, "r", "c", 0, 0, 0, []))
    watermarks = Watermarks(Causes(), cluster)
    for number in range(1, 50):
        name, seq = f"t{number}", 1000 * number
        made = TopicsChanged(0, (ChangedTopic(name, name, ((1, 2),)),), ())
        gone = TopicsChanged(0, (), made.created)
        cluster.topics_changed(EventEntry(seq, 0, 0, made), made)
        for epoch in range(1, 20):
            seq += 10
            leads = LeaderChanged(0, name, 0, 1, epoch, 1, (1,), False, "")
            cluster.leader_changed(EventEntry(seq, 0, 0, leads), leads)
            for by, (former, mark, cause) in enumerate([(0, 5, ""), (5, 3, "set_high_watermark")]):
                moved = WatermarkMoved(0, name, 0, 1, former, mark, 9, cause)
                watermarks.moved(EventEntry(seq + 1 + by, 0, 0, moved), moved)
            cut = LogTruncated(0, name, 0, 2, 9, 2)
            watermarks.truncated(EventEntry(seq + 4, 0, 0, cut), cut)
        [in_epoch] = watermarks._reported.values()
        assert in_epoch.epoch == 19
        assert len(watermarks._lowered) == 1
        cluster.topics_changed(EventEntry(seq + 5, 0, 0, gone), gone)
        watermarks.topics_changed(EventEntry(seq + 5, 0, 0, gone), gone)
        assert watermarks._reported == {}
        assert watermarks._lowered == {}


def test_an_answer_tells_the_offsets_that_it_knows() -> None:
    """0 is one, and -1 stands for none."""
    run = ToldRun()
    run.fetch_ends(run.fetch_begins(7, {0: 0}), [0], log_start_offset=0, high_watermark=3)
    run.fetch_ends(run.fetch_begins(7, {0: 0}), [0], last_stable_offset=2, high_watermark=-1)
    run.fetch_ends(run.fetch_begins(7, {0: 0}), [0], high_watermark=-1)
    names = ("log_start_offset", "last_stable_offset", "high_watermark")
    rows = [[row.get(name) for name in names] for row in run.rows("watermarks")]
    assert rows == [[0, None, 3], [None, 2, None]]
    assert [[row.get(name) for name in names] for row in run.rows("fetches")] == [
        *rows,
        [None, None, None],
    ]


def test_an_answer_with_an_old_mark_is_no_evidence_of_a_last_stable_offset_either() -> None:
    """It was made before the other one, and sent behind it."""
    run = ToldRun()
    early = run.fetch_begins(7, {0: 0})
    run.fetch_ends(run.fetch_begins(8, {0: 0}), [0], high_watermark=5, last_stable_offset=5)
    run.fetch_ends(early, [0], high_watermark=3, last_stable_offset=3, log_start_offset=0)
    rows = run.rows("watermarks")
    assert [(row.get("high_watermark"), row.get("last_stable_offset")) for row in rows] == [
        (5, 5),
        (None, None),
    ]
    assert rows[1]["log_start_offset"] == 0


NAMES = ("log_start_offset", "last_stable_offset", "high_watermark", "log_end_offset")


@pytest.mark.parametrize(
    ("replica_id", "isolation_level", "timestamp", "error", "offset", "told"),
    [
        (-1, 0, -1, 0, 7, {"high_watermark": 7}),
        (-1, 0, -1, 0, 0, {"high_watermark": 0}),
        (-1, 1, -1, 0, 7, {"last_stable_offset": 7}),
        (2, 0, -1, 0, 7, {"log_end_offset": 7}),
        (0, 1, -1, 0, 7, {"log_end_offset": 7}),
        (-1, 0, -2, 0, 7, {"log_start_offset": 7}),
        (-1, 0, 1_700_000_000_000, 0, 7, None),
        (-1, 0, -3, 0, 7, None),
        (-1, 0, -1, 6, 7, None),
        (-1, 0, -1, 0, -1, None),
    ],
)
def test_the_answer_to_list_offsets_tells_one_offset_of_a_log(
    replica_id: int,
    isolation_level: int,
    timestamp: int,
    error: int,
    offset: int,
    told: dict[str, int] | None,
) -> None:
    """Which one depends on who asks for what. That of a time says nothing of the log."""
    run = ToldRun()
    asked = [ListOffsetsTopic("t", [ListOffsetsPartition(1, timestamp=timestamp)])]
    request = ListOffsetsRequest(replica_id, isolation_level, asked)
    seq = run.request(7, (ApiKey.LIST_OFFSETS, 8), request)
    found = [ListOffsetsPartitionResponse(1, error, offset=offset)]
    run.answer(seq, ListOffsetsResponse(topics=[ListOffsetsTopicResponse("t", found)]))
    rows = run.rows("watermarks")
    assert [{name: row[name] for name in NAMES if name in row} for row in rows] == (
        [] if told is None else [told]
    )
    assert {(row["partition"], row["source"], row["leader_epoch"]) for row in rows} <= {
        (1, "list_offsets", 0)
    }
