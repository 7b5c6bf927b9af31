"""Entries that are missing, connections that end, and requests without an answer."""

from __future__ import annotations

import pytest

from mockbroker.core.events import LeaderChanged
from mockbroker.core.journal.entries import (
    AppendEntry,
    EventEntry,
    FactEntry,
    HopEntry,
    RequestEntry,
    ResponseEntry,
)
from mockbroker.pipeline.convert.converter import Converter
from mockbroker.pipeline.spool.format import RunEnded, SpoolEntry
from tests.pipeline.convert.support import Kept
from tests.pipeline.convert.told_run import NOBODY, TOPIC_ID, ToldRun


def test_behind_a_gap_the_offsets_of_a_fetch_session_are_unknown() -> None:
    """An incremental Fetch may go on from an offset that one of the missing Fetches named."""
    run = ToldRun()
    run.fetch(7, {0: 5, 1: 0}, session=3, epoch=0)
    run.fetch(7, {1: 2}, [0, 1], session=3, epoch=1)
    known = [(0, 5), (1, 0), (0, 5), (1, 2)]
    assert run.fetched() == known
    run.gap()
    run.fetch(7, {1: 4}, [0, 1], session=3, epoch=2)
    assert run.fetched() == [*known, (1, 4)]
    run.fetch(7, {0: 8, 1: 4}, session=4, epoch=0)
    run.fetch(7, {}, [0], session=4, epoch=1)
    assert run.fetched()[5:] == [(0, 8), (1, 4), (0, 8)]


def test_behind_a_gap_no_member_is_known_until_an_answer_assigns_it_partitions() -> None:
    """Neither on a connection that named it, nor on one that it fetched on."""
    run = ToldRun()
    run.heartbeat(1, "m", [0])
    run.fetch(2, {0: 0})
    run.fetch(1, {0: 0})
    assert run.readers() == [("g", "m", None)] * 2
    run.gap()
    run.fetch(1, {0: 1})
    run.fetch(2, {0: 1})
    run.fetch(3, {0: 1})
    assert run.readers()[2:] == [NOBODY] * 3
    run.heartbeat(1, "m", [0])
    run.fetch(1, {0: 2})
    assert run.readers()[5:] == [("g", "m", None)]


def test_a_gap_is_a_row() -> None:
    run = ToldRun()
    run.gap()
    [row] = run.rows("gaps")
    assert (row["first_seq"], row["last_seq"]) == (1, 1)


def test_a_session_ends_with_its_connection() -> None:
    """Another connection may have one of the same number."""
    run = ToldRun()
    run.fetch(7, {0: 5}, session=3, epoch=0)
    run.fetch(8, {0: 6}, session=3, epoch=0)
    run.closed(7)
    run.fetch(7, {}, [0], session=3, epoch=1)
    run.fetch(8, {}, [0], session=3, epoch=1)
    assert run.fetched() == [(0, 5), (0, 6), (0, 6)]


def test_a_request_has_a_row_without_an_answer_once_its_connection_is_closed() -> None:
    """At once, not at the end of the run; requests on other connections still wait."""
    run = ToldRun()
    waiting = run.fetch_begins(8, {0: 0})
    lost = run.fetch_begins(7, {0: 0})
    run.closed(7)
    assert [(row["seq"], row.get("response_seq")) for row in run.rows("requests")] == [(lost, None)]
    run.fetch_ends(waiting, [0])
    assert [row["seq"] for row in run.rows("requests")] == [lost, waiting]
    assert [row["seq"] for row in run.rows("fetches")] == [waiting]
    run.fetch_ends(lost, [0])  # an answer to nothing
    assert len(run.rows("requests")) == 2


def test_an_answer_has_its_size_and_the_time_that_it_took() -> None:
    run = ToldRun()
    run.fetch(7, {0: 0})
    [row] = run.rows("requests")
    assert row["elapsed_ns"] == row["response_seq"] - row["seq"] == 1
    assert row["request_bytes"] > row["response_bytes"] > 20
    assert (row["outcome"], row["rules"]) == (None, None)


def test_at_the_end_of_a_run_requests_that_wait_have_rows_without_an_answer() -> None:
    run = ToldRun()
    waiting = [run.fetch_begins(connection, {0: 0}) for connection in (7, 8)]
    assert run.rows("requests") == []
    run.converter.finish()
    assert [row["seq"] for row in run.rows("requests")] == waiting
    assert run.rows("fetches") == []


def test_a_read_span_ends_with_its_connection() -> None:
    run = ToldRun()
    run.fetch(7, {0: 0})
    run.fetch(7, {0: 0})
    run.closed(7)
    run.fetch(7, {0: 0})
    spans = [(row["read_span"], row["start"]) for row in run.rows("fetches")]
    assert spans == [(1, "connection"), (1, None), (2, "connection")]


ENTRIES = (
    RequestEntry(4, 5, 6, 1, 7, b"\0\x12\0\0\0\0\0\1\xff\xff"),  # ApiVersions
    ResponseEntry(4, 5, 6, 1, 7, 1, 18, 0, 1, None, "dropped", ()),
    AppendEntry(
        4, 5, 6, 1, 0, "t", TOPIC_ID, 0, 0, 0, 0, 1, 99, -1, -1, -1, transactional=False,
        high_watermark=1,
    ),
    HopEntry(4, 5, 6, 1, 2, 1, 12, "", 0, None, "", ()),
    EventEntry(4, 5, 6, LeaderChanged(0, "t", 0, 1, 1, 2, (1,), False, "")),
    FactEntry(4, 5, 6, "clock", {"change": "advanced"}),
    FactEntry(4, 5, 6, "connection", {"change": "opened", "connection": 7}),
    RunEnded(4, 5, 6),
)  # fmt: skip


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: type(entry).__name__)
def test_of_each_entry_the_writer_is_told_its_number_and_times(entry: SpoolEntry) -> None:
    """A run that breaks off behind it has got so far."""
    told: list[tuple[int, int, int]] = []

    class Sink(Kept):
        def at(self, seq: int, virtual_ms: int, real_ns: int) -> None:
            told.append((seq, virtual_ms, real_ns))

    Converter(Sink()).convert(entry)
    assert told == [(4, 5, 6)]


def test_a_client_is_named_until_its_connection_is_closed() -> None:
    """Another one may have the number of the connection later."""
    run = ToldRun()
    run.client(7, "host-a")
    run.fetch(7, {0: 0})
    run.closed(7)
    run.fetch(7, {0: 0})
    assert [row.get("source") for row in run.rows("requests")] == ["host-a:1", None]
