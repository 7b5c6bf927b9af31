"""Reported high watermarks: evidence, or reports that are out of date."""

from __future__ import annotations

from mockbroker.core.events import LogTruncated, WatermarkMoved
from mockbroker.core.journal.entries import EventEntry
from mockbroker.pipeline.convert.cluster_state import RunState
from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.convert.watermarks import Watermarks, _ReportedMarks
from mockbroker.pipeline.spool.format import InitialTopic, RunStarted


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
