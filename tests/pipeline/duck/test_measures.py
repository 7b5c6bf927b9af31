"""Lag, rebalances, ownership, latency, faults and skew, on handmade journals."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.pipeline.duck.measures import measure
from tests.pipeline.duck.journal import PLACE, Journal

Row = dict[str, Any]


def measured(journal: Journal, name: str) -> list[Row]:
    with journal.session() as session:
        return measure(session, name)


def picked(rows: list[Row], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in rows]


@pytest.mark.covers("S299")
def test_lag_counts_to_the_high_watermark_and_to_the_last_stable_offset() -> None:
    """At each commit and at each move of a watermark; before the first commit it is not known."""
    journal = Journal()
    for seq, stable, high in ((1, 0, 2), (5, 3, 9)):
        journal.row(
            "watermarks", **PLACE, seq=seq, virtual_ms=seq, last_stable_offset=stable,
            high_watermark=high, log_end_offset=high,
        )  # fmt: skip
    journal.commit(3, 1, virtual_ms=3)
    journal.commit(6, 9, virtual_ms=6)
    journal.commit(7, None, virtual_ms=7)
    assert picked(measured(journal, "lag"), "seq", "committed", "lag", "lag_read_committed") == [
        (1, None, None, None),
        (3, 1, 1, 0),
        (5, 1, 8, 2),
        (6, 9, 0, 0),
        (7, None, None, None),
    ]


def test_a_negative_committed_offset_counts_as_0() -> None:
    """Kafka commits whatever a client names; the difference may be too large for an int64."""
    journal = Journal()
    journal.row("watermarks", **PLACE, seq=1, virtual_ms=1, last_stable_offset=3, high_watermark=5)
    for seq, offset in ((2, -(2**63)), (3, -1), (4, 2**63 - 1)):
        journal.commit(seq, offset, virtual_ms=seq)
    assert picked(measured(journal, "lag"), "committed", "lag", "lag_read_committed") == [
        (None, None, None), (-(2**63), 5, 3), (-1, 5, 3), (2**63 - 1, 0, 0),
    ]  # fmt: skip


@pytest.mark.covers("S299")
def test_the_last_stable_offset_is_never_above_the_high_watermark() -> None:
    """After an unclean election the high watermark is known to be lower before a last stable
    offset is reported again; and a last stable offset shows how high the watermark is at least.
    """
    journal = Journal()
    for seq, stable, high in ((1, 9, 9), (2, None, 4), (3, 3, None), (4, 6, None), (5, None, 8)):
        journal.row(
            "watermarks", **PLACE, seq=seq, virtual_ms=seq, last_stable_offset=stable,
            high_watermark=high, log_end_offset=10,
        )  # fmt: skip
    journal.commit(6, 2, virtual_ms=6)
    columns = ("seq", "last_stable_offset", "high_watermark", "lag", "lag_read_committed")
    assert picked(measured(journal, "lag"), *columns) == [
        (1, 9, 9, None, None),
        (2, 4, 4, None, None),
        (3, 3, 4, None, None),
        (4, 6, 6, None, None),
        (5, 6, 8, None, None),
        (6, 6, 8, 6, 4),
    ]


def test_a_long_line_is_thinned_out_for_drawings_and_keeps_its_peak() -> None:
    """A short one is left as it is."""
    journal = Journal()
    journal.commit(1, 0, virtual_ms=1)
    for seq in range(2, 5_002):
        high = 9_000 if seq == 1_234 else seq
        journal.row("watermarks", **PLACE, seq=seq, virtual_ms=seq, high_watermark=high)
    with journal.session() as session:
        all_rows, few = (measure(session, "lag", thinned=thinned) for thinned in (False, True))
    assert len(all_rows) == 5_001
    assert len(few) <= 400
    assert all(row in all_rows for row in few)
    assert few[-1] == all_rows[-1]
    assert max(row["lag"] or 0 for row in few) == 9_000


@pytest.mark.covers("S306")
def test_a_rebalance_ends_when_the_last_member_is_back_at_work() -> None:
    """Who has what it had before is not moved; the time without any Fetch is told."""
    journal = Journal()
    for seq, former, state, generation, reason in (
        (10, "Empty", "PreparingRebalance", 0, "m joins"),
        (12, "CompletingRebalance", "Stable", 1, None),
        (30, "Stable", "PreparingRebalance", 1, "n joins"),
        (32, "PreparingRebalance", "CompletingRebalance", 2, None),
        (34, "CompletingRebalance", "Stable", 2, None),
    ):
        journal.row(
            "groups", seq=seq, virtual_ms=seq, group="g", protocol="classic", former=former,
            state=state, generation=generation, members=generation, reason=reason,
        )  # fmt: skip
    for seq, generation, member, partition in (
        (13, 1, "m", 0), (13, 1, "m", 1), (35, 2, "m", 0), (36, 2, "n", 1)
    ):  # fmt: skip
        journal.row(
            "assignments", **{**PLACE, "partition": partition}, seq=seq, virtual_ms=seq, group="g",
            generation=generation, member=member, client_id=member,
        )  # fmt: skip
    for seq, member in ((20, "m"), (37, "m"), (50, "n")):
        journal.fetch(seq, 0, 0, virtual_ms=seq, group="g", member=member)
    columns = ("generation", "cause", "start_ms", "back_ms", "took_ms", "stopped_ms", "moved")
    assert picked(measured(journal, "rebalances"), *columns) == [
        (1, "m joins", 10, 20, 10, 10, 2),
        (2, "n joins", 30, 50, 20, 13, 1),
    ]
    assert picked(measured(journal, "ownership"), "partition", "member", "from_ms", "to_ms") == [
        (0, "m", 13, 35),
        (0, "m", 35, None),
        (1, "m", 13, 36),
        (1, "n", 36, None),
    ]


def test_nobody_owns_a_partition_of_an_empty_group() -> None:
    journal = Journal()
    journal.row("assignments", **PLACE, seq=5, virtual_ms=5, group="g", generation=1, member="m")
    journal.row("groups", seq=9, virtual_ms=9, group="g", former="Stable", state="Empty")
    assert picked(measured(journal, "ownership"), "from_ms", "to_ms") == [(5, 9)]


def test_latency_is_told_by_api_and_client() -> None:
    """In microseconds; what never was answered has none."""
    journal = Journal()
    for seq in range(1, 101):
        journal.row(
            "requests", seq=seq, api="Fetch", client_id="c", elapsed_ns=seq * 1_000_000,
            errors=["NOT_LEADER_OR_FOLLOWER"] if seq == 7 else [],
        )  # fmt: skip
    journal.row("requests", seq=101, api="Fetch", client_id="c", outcome="dropped")
    [row] = measured(journal, "latency")
    assert (row["requests"], row["with_errors"], row["max_us"]) == (100, 1, 100_000)
    assert row["p50_us"] == 50_500


def test_a_fault_is_over_for_a_client_with_its_next_good_answer() -> None:
    """Retries up to that one are counted; what was done by hand has no rule."""
    journal = Journal()
    for seq, ms, errors, rules in (
        (10, 0, ["REQUEST_TIMED_OUT"], ["slow"]),
        (20, 40, ["NOT_LEADER_OR_FOLLOWER"], []),
        (30, 90, [], []),
        (40, 95, [], []),
    ):
        journal.row(
            "requests", seq=seq, virtual_ms=ms, api="Produce", client_id="c", errors=errors,
            rules=rules,
        )  # fmt: skip
    journal.row("faults", seq=11, virtual_ms=0, kind="fault", change="error", rules=["slow"],
                request_seq=10)  # fmt: skip
    journal.row("faults", seq=50, virtual_ms=99, kind="action", change="stop_broker", rules=[])
    columns = ("rule", "effects", "times", "requests", "retries", "recovered", "recovery_ms")
    assert picked(measured(journal, "faults"), *columns) == [
        ("slow", "error", 1, 1, 2, 1, 90),
        (None, "stop_broker", 1, 0, 0, 0, None),
    ]


def test_a_request_recovers_once_however_many_effects_touched_it() -> None:
    """A rule delays it, and drops its answer later."""
    journal = Journal()
    for seq, ms in ((10, 0), (30, 90)):
        touched = ["slow"] if seq == 10 else []
        journal.row("requests", seq=seq, virtual_ms=ms, api="Produce", client_id="c", errors=[],
                    rules=touched)  # fmt: skip
    for seq, ms, change in ((11, 0, "delay"), (12, 20, "drop_reply")):
        journal.row("faults", seq=seq, virtual_ms=ms, kind="fault", change=change, rules=["slow"],
                    request_seq=10)  # fmt: skip
    columns = ("times", "requests", "recovered", "recovery_ms")
    assert picked(measured(journal, "faults"), *columns) == [(2, 1, 1, 90)]


def test_skew_holds_a_partition_against_an_even_share() -> None:
    journal = Journal()
    for partition, keys in ((0, [1, 1, 2]), (1, [None])):
        for offset, key in enumerate(keys):
            journal.row(
                "records", **{**PLACE, "partition": partition}, append_seq=5, offset=offset,
                value_hash=offset, key_hash=key,
            )  # fmt: skip
    columns = ("partition", "records", "share", "skew", "keys", "records_of_hottest_key",
               "without_key")  # fmt: skip
    assert picked(measured(journal, "skew"), *columns) == [
        (0, 3, 0.75, 1.5, 2, 2, 0),
        (1, 1, 0.25, 0.5, 0, None, 1),
    ]
