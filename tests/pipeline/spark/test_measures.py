"""The measures of the jobs on handmade rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pytest

from mockbroker.pipeline.spark.faults import faults
from mockbroker.pipeline.spark.inputs import Inputs, from_rows
from mockbroker.pipeline.spark.isr import (
    elections,
    imbalance,
    replication_summary,
    under_replicated,
)
from mockbroker.pipeline.spark.lag import lag, lag_by_interval, latest_lag
from mockbroker.pipeline.spark.latency import latency
from mockbroker.pipeline.spark.rebalances import ownership, rebalance_summary, rebalances
from mockbroker.pipeline.spark.skew import hot_keys, skew

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

Row = dict[str, Any]
PLACE: Row = {"run": "r", "topic": "t", "topic_id": "id-t", "partition": 0}


def told(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of a frame in their order, of these columns."""
    return [tuple(row[name] for name in columns) for row in frame.collect()]


def rows(start: Row, more: Iterable[Row]) -> list[Row]:
    return [{**start, **row} for row in more]


@pytest.mark.covers("S299", "S334")
def test_lag_counts_to_the_high_watermark_and_to_the_last_stable_offset(
    spark: SparkSession,
) -> None:
    """Each time one of the three becomes known; by intervals; and at the end."""
    at = {**PLACE, "broker": 1}
    inputs = from_rows(
        spark,
        {
            "watermarks": [
                {**at, "seq": 1, "virtual_ms": 1000, "high_watermark": 5, "last_stable_offset": 5},
                {**at, "seq": 4, "virtual_ms": 1900, "high_watermark": 9, "last_stable_offset": 6},
                {**at, "seq": 8, "virtual_ms": 2100, "last_stable_offset": 9},
                {**at, "seq": 9, "virtual_ms": 2200, "log_end_offset": 9},
            ],
            "commits": rows(
                {**PLACE, "group": "g", "applied": True},
                [
                    {"seq": 3, "virtual_ms": 1500, "offset": 4},
                    {"seq": 5, "virtual_ms": 1950, "offset": 12},
                    {"seq": 6, "virtual_ms": 1960, "offset": 13, "applied": False},
                    {"seq": 7, "virtual_ms": 2000, "offset": None},
                ],
            ),
        },
    )
    assert told(lag(inputs), "seq", "committed", "lag", "lag_read_committed") == [
        (1, None, None, None),
        (3, 4, 1, 1),
        (4, 4, 5, 2),
        (5, 12, 0, 0),
        (7, None, None, None),
        (8, None, None, None),
    ]
    by_second = lag_by_interval(inputs, 1000)
    assert told(by_second, "from_ms", "lag", "lag_max") == [(1000, 0, 5), (2000, None, None)]
    last = told(latest_lag(inputs), "group", "committed", "high_watermark", "last_stable_offset")
    assert last == [("g", None, 9, 9)]


def test_a_negative_committed_offset_counts_as_0(spark: SparkSession) -> None:
    """See the same test of DuckDB's query."""
    mark = {**PLACE, "broker": 1, "seq": 1, "virtual_ms": 1, "high_watermark": 5,
            "last_stable_offset": 3}  # fmt: skip
    commits = [
        {**PLACE, "group": "g", "applied": True, "seq": seq, "virtual_ms": seq, "offset": offset}
        for seq, offset in ((2, -(2**63)), (3, -1), (4, 2**63 - 1))
    ]
    inputs = from_rows(spark, {"watermarks": [mark], "commits": commits})
    assert told(lag(inputs), "committed", "lag", "lag_read_committed") == [
        (None, None, None), (-(2**63), 5, 3), (-1, 5, 3), (2**63 - 1, 0, 0),
    ]  # fmt: skip


@pytest.mark.covers("S299")
def test_the_last_stable_offset_is_never_above_the_high_watermark(spark: SparkSession) -> None:
    """As after an unclean election; see the same test of DuckDB's query."""
    reports = ((1, 9, 9), (2, None, 4), (3, 3, None), (4, 6, None), (5, None, 8))
    marks = [
        {
            **PLACE,
            "broker": 1,
            "seq": seq,
            "virtual_ms": seq,
            "last_stable_offset": stable,
            "high_watermark": high,
        }
        for seq, stable, high in reports
    ]
    commit = {**PLACE, "group": "g", "applied": True, "seq": 6, "virtual_ms": 6, "offset": 2}
    inputs = from_rows(spark, {"watermarks": marks, "commits": [commit]})
    columns = ("seq", "last_stable_offset", "high_watermark", "lag", "lag_read_committed")
    assert told(lag(inputs), *columns) == [
        (1, 9, 9, None, None),
        (2, 4, 4, None, None),
        (3, 3, 4, None, None),
        (4, 6, 6, None, None),
        (5, 6, 8, None, None),
        (6, 6, 8, 6, 4),
    ]


@pytest.mark.covers("S306", "S311", "S335")
def test_a_rebalance_ends_when_the_last_member_is_back_at_work(spark: SparkSession) -> None:
    """Cause, generation, duration, what was moved, and how long the world stood still."""
    group = {"run": "r", "group": "g", "protocol": "classic"}
    states = [
        (1, 100, "Empty", "PreparingRebalance", 0, 1, "a joins"),
        (2, 110, "PreparingRebalance", "CompletingRebalance", 1, 1, None),
        (3, 120, "CompletingRebalance", "Stable", 1, 1, None),
        (20, 500, "Stable", "PreparingRebalance", 1, 1, "b joins"),
        (22, 520, "PreparingRebalance", "CompletingRebalance", 2, 2, None),
        (23, 530, "CompletingRebalance", "PreparingRebalance", 2, 2, "c joins"),
        (24, 540, "PreparingRebalance", "CompletingRebalance", 3, 2, None),
        (25, 550, "CompletingRebalance", "Stable", 3, 2, None),
        (40, 900, "Stable", "PreparingRebalance", 3, 2, "all left"),
        (41, 910, "PreparingRebalance", "Empty", 4, 0, None),
    ]
    names = ("seq", "virtual_ms", "former", "state", "generation", "members", "reason")
    given = [(4, 125, 1, "a", 0), (4, 125, 1, "a", 1), (26, 560, 3, "a", 0), (27, 570, 3, "b", 1)]
    fetched = [(6, 150, "a"), (19, 495, "a"), (21, 510, "a"), (30, 610, "a"), (31, 640, "b")]
    inputs = from_rows(
        spark,
        {
            "groups": [group | dict(zip(names, state, strict=True)) for state in states],
            "assignments": [
                {**PLACE, "group": "g", "seq": seq, "virtual_ms": ms, "generation": generation,
                 "member": member, "client_id": member, "partition": partition}
                for seq, ms, generation, member, partition in given
            ],
            "fetches": [
                {**PLACE, "group": "g", "response_seq": seq, "virtual_ms": ms, "member": member}
                for seq, ms, member in fetched
            ],
        },
    )  # fmt: skip
    columns = ("generation", "cause", "start_ms", "stable_ms", "back_ms", "took_ms", "stopped_ms",
               "restarts", "members", "partitions", "moved")  # fmt: skip
    assert told(rebalances(inputs), *columns) == [
        (1, "a joins", 100, 120, 150, 50, 50, 0, 1, 2, 2),
        (3, "b joins", 500, 550, 640, 140, 100, 1, 2, 2, 1),
        (4, "all left", 900, 910, None, 10, 10, 0, 0, 0, 0),
    ]
    assert told(ownership(inputs), "partition", "member", "from_ms", "to_ms") == [
        (0, "a", 125, 560), (0, "a", 560, 910), (1, "a", 125, 570), (1, "b", 570, 910),
    ]  # fmt: skip
    [(number, took, longest, stopped, moved)] = told(
        rebalance_summary(inputs), "rebalances", "took_ms", "longest_ms", "stopped_ms", "moved"
    )
    assert (number, took, longest, stopped, moved) == (3, 200, 140, 160, 3)


@pytest.mark.covers("S336")
def test_a_replica_is_out_of_its_isr_for_a_while(spark: SparkSession) -> None:
    """Under-replicated intervals, elections with how they came out, and the imbalance ratio."""
    created = '{"change": "created", "assignment": [[1, 2, 4], [2, 4, 1]]}'
    change = {
        "run": "r", "topic": "t", "topic_id": "id-t", "partition": 0, "unclean": False,
        "former_leader": 1, "leader_epoch": 1,
    }  # fmt: skip
    inputs = from_rows(
        spark,
        {
            "cluster": [
                {"run": "r", "seq": 1, "virtual_ms": 0, "change": "TopicsChanged",
                 "topic": "t", "topic_id": "id-t", "details": created},
                {**change, "seq": 2, "virtual_ms": 300, "change": "IsrChanged",
                 "former_isr": "1,2,4", "isr": "1,2", "reason": "slow"},
                {**change, "seq": 3, "virtual_ms": 542, "change": "IsrChanged",
                 "former_isr": "1,2", "isr": "1,2,4"},
                {**change, "seq": 4, "virtual_ms": 600, "change": "LeaderChanged", "leader": 2,
                 "isr": "2,4"},
                {**change, "seq": 5, "virtual_ms": 700, "change": "LeaderChanged", "leader": -1,
                 "former_leader": 2, "isr": ""},
                {**change, "seq": 6, "virtual_ms": 800, "change": "LeaderChanged", "leader": 4,
                 "former_leader": -1, "isr": "4", "unclean": True},
                {**change, "seq": 7, "virtual_ms": 900, "change": "LeaderChanged", "leader": 1,
                 "former_leader": 4, "isr": "4,1"},
                {**change, "seq": 8, "virtual_ms": 950, "change": "PreferredElectionFailed",
                 "partition": 1, "leader": 4},
            ]
        },
    )  # fmt: skip
    columns = ("partition", "broker", "from_ms", "to_ms", "lasted_ms", "reason")
    assert told(under_replicated(inputs), *columns) == [
        (0, 4, 300, 542, 242, "slow"),
        (0, 1, 600, 900, 300, None),
        (0, 2, 700, None, None, None),
        (0, 4, 700, 800, 100, None),
    ]
    held = told(elections(inputs), "partition", "leader", "outcome")
    assert held == [
        (0, 2, "other"), (0, -1, "failed"), (0, 4, "unclean"), (0, 1, "preferred"),
        (1, 4, "failed"),
    ]  # fmt: skip
    ratios = told(imbalance(inputs), "broker", "virtual_ms", "ratio")
    of_all = [(at, ratio) for broker, at, ratio in ratios if broker is None]
    assert of_all == [(0, 0.0), (300, 0.0), (542, 0.0), (600, 0.5), (700, 0.5), (800, 0.5),
                      (900, 0.0)]  # fmt: skip
    assert [each for each in ratios if each[:2] == (1, 600)] == [(1, 600, 1.0)]
    assert {ratio for broker, _, ratio in ratios if broker == 2} == {0.0}


def test_a_deleted_topic_lacks_no_replica(spark: SparkSession) -> None:
    """Another one with its name begins anew."""

    def topics(seq: int, topic_id: str, change: str, assignment: str = "") -> Row:
        details = f'{{"change": "{change}"{assignment}}}'
        return {"run": "r", "seq": seq, "virtual_ms": 10 * seq, "change": "TopicsChanged",
                "topic": "t", "topic_id": topic_id, "details": details}  # fmt: skip

    place = {"run": "r", "topic": "t", "topic_id": "first", "partition": 0}
    inputs = from_rows(
        spark,
        {
            "cluster": [
                topics(1, "first", "created", ', "assignment": [[1, 2]]'),
                {**place, "seq": 2, "virtual_ms": 20, "change": "IsrChanged",
                 "former_isr": "1,2", "isr": "2"},
                {**place, "seq": 3, "virtual_ms": 30, "change": "LeaderChanged", "leader": 2,
                 "former_leader": 1, "leader_epoch": 1, "isr": "2"},
                topics(4, "first", "deleted"),
                topics(5, "second", "created", ', "assignment": [[1, 2]]'),
                topics(6, "second", "deleted"),
            ]
        },
    )  # fmt: skip
    columns = ("broker", "from_ms", "to_ms", "lasted_ms", "last_seq")
    assert told(under_replicated(inputs), *columns) == [(1, 20, 40, 20, 4)]
    assert [row["still_out"] for row in replication_summary(inputs).collect()] == [0]
    of_all = [row for row in told(imbalance(inputs), "broker", "virtual_ms", "imbalanced")
              if row[0] is None]  # fmt: skip
    assert of_all == [(None, 10, 0), (None, 20, 0), (None, 30, 1), (None, 50, 0)]


def test_what_a_rule_did_and_how_long_clients_took(spark: SparkSession) -> None:
    """Requests hit, the retries until a good answer, and the longest wait for that."""
    request = {"run": "r", "api": "Produce", "client_id": "c"}
    asked = rows(
        request,
        [
            {"seq": 1, "virtual_ms": 100, "elapsed_ns": 2_000_000, "rules": ["slow"], "errors": []},
            {"seq": 3, "virtual_ms": 150, "elapsed_ns": 4_000_000, "errors": ["NOT_LEADER"],
             "rules": []},
            {"seq": 5, "virtual_ms": 190, "elapsed_ns": 6_000_000, "errors": [], "rules": []},
            {"seq": 7, "virtual_ms": 200, "errors": [], "rules": [], "outcome": "closed"},
        ],
    )  # fmt: skip
    fault = {"run": "r", "kind": "fault", "virtual_ms": 100, "request_seq": 1}
    inputs = from_rows(
        spark,
        {
            "requests": asked,
            "faults": [
                {**fault, "seq": 2, "change": "delay", "rules": ["slow"]},
                {**fault, "seq": 2, "virtual_ms": 120, "change": "error", "rules": ["slow"]},
                {"run": "r", "kind": "action", "seq": 9, "virtual_ms": 300,
                 "change": "stop_broker", "rules": []},
            ],
        },
    )  # fmt: skip
    columns = ("rule", "effects", "times", "requests", "apis", "retries", "recovered",
               "recovery_ms")  # fmt: skip
    assert told(faults(inputs), *columns) == [
        ("slow", "delay, error", 2, 1, "Produce", 2, 1, 90),
        (None, "stop_broker", 1, 0, "", 0, 0, None),
    ]
    columns = ("api", "client_id", "requests", "p50_us", "p90_us", "max_us", "with_errors")
    assert told(latency(inputs), *columns) == [("Produce", "c", 3, 4000, 5600, 6000, 1)]


def test_one_partition_and_one_key_have_most(spark: SparkSession) -> None:
    """Shares of partitions against an even one, and the keys with the most records."""
    keys: list[tuple[int, int | None]] = [(0, 7)] * 6 + [(0, 8), (1, 9), (1, None), (1, 9)]
    records = [
        {**PLACE, "append_seq": at, "offset": at, "partition": partition, "key_hash": key}
        for at, (partition, key) in enumerate(keys)
    ]
    inputs = from_rows(spark, {"records": records})
    columns = ("partition", "records", "share", "skew", "keys", "records_of_hottest_key",
               "without_key")  # fmt: skip
    assert told(skew(inputs), *columns) == [
        (0, 7, 0.7, 1.4, 2, 6, 0), (1, 3, 0.3, 0.6, 1, 2, 1),
    ]  # fmt: skip
    assert told(hot_keys(inputs, 2), "key_hash", "records") == [(7, 6), (9, 2)]


@pytest.mark.parametrize("job", [lag, rebalances, latency, faults, skew, elections])
def test_a_run_without_anything_gives_nothing(
    spark: SparkSession, job: Callable[[Inputs], DataFrame]
) -> None:
    """Tables that are not there are empty."""
    assert job(Inputs(spark, {})).collect() == []
