"""Kafka's log lines, and ours, become one table of events."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mockbroker.pipeline.spark.inputs import from_rows
from mockbroker.pipeline.spark.log_lines import log_lines
from mockbroker.pipeline.spark.logs import parse_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.covers("S301")]

HERE = Path(__file__).parent


def events_of(spark: SparkSession, name: str) -> list[dict[str, Any]]:
    """The events of a file of lines, in their order."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    frame = spark.createDataFrame(
        [(line, at) for at, line in enumerate(lines)], "line string, at int"
    )
    rows = parse_lines(frame).orderBy("at").collect()
    return [{k: v for k, v in row.asDict().items() if v is not None} for row in rows]


@pytest.mark.covers("S335")
def test_lines_of_an_old_broker(spark: SparkSession) -> None:
    """A group loses its member: one removal, one rebalance, one empty, one dead."""
    events = events_of(spark, "kafka_2_lines.txt")
    of_group = [event for event in events if event.get("group") == "TEST-SZL"]
    assert Counter(event["event"] for event in of_group) == {
        "removal": 1, "rebalance": 1, "empty": 1, "dead": 1,
    }  # fmt: skip
    assert {event["broker"] for event in events} == {1}
    assert [event.get("generation") for event in of_group] == [None, 5, 6, 6]
    assert of_group[1]["reason"].startswith("removing member consumer-1-")
    assert str(of_group[0]["time"]) == "2019-09-23 10:02:17.118000"
    shrinks, grows, partition, replica = (e for e in events if "group" not in e)
    assert (shrinks["event"], shrinks["former_isr"], shrinks["isr"]) == (
        "isr shrinks", "1,2,4", "1,2",
    )  # fmt: skip
    assert (shrinks["high_watermark"], shrinks["log_end_offset"]) == (40, 42)
    assert (grows["event"], grows["isr"], grows["topic"], grows["partition"]) == (
        "isr grows", "1,2,4", "orders", 0,
    )  # fmt: skip
    assert (grows["time"] - shrinks["time"]).total_seconds() == 0.242
    assert (partition["former_state"], partition["state"]) == (
        "OnlinePartition", "OfflinePartition",
    )  # fmt: skip
    assert (replica["event"], replica["node"], replica["component"]) == (
        "replica state", 4, "Controller",
    )  # fmt: skip


def test_lines_of_a_new_broker(spark: SparkSession) -> None:
    """As a broker of 4.3 wrote them; a stack trace is no event."""
    events = events_of(spark, "kafka_lines.txt")
    told = [event["event"] for event in events if "event" in event]
    assert told == [
        "controller", "unfenced", "topic created", "partition created", "leads", "follows",
        "rebalance", "stable", "leave", "rebalance", "empty", "dead", "fenced", "leads",
    ]  # fmt: skip
    by_name = {event["event"]: event for event in events if "event" in event}
    assert by_name["partition created"]["replicas"] == "3,1,2"
    leads = by_name["leads"]
    assert (leads["isr"], leads["broker"], leads["former_leader"]) == ("3,1", 3, 2)
    assert (leads["leader_epoch"], leads["high_watermark"]) == (1, 5)
    assert by_name["follows"]["leader"] == 3
    assert by_name["stable"]["members"] == 1
    assert by_name["dead"]["group"] == by_name["empty"]["group"] == "TEST-SZL"
    assert {event.get("broker") for event in events if "event" in event} == {1, 2, 3}


def test_what_is_no_number_or_time_is_null(spark: SparkSession) -> None:
    """Brokers have plugins, and logs have other programs' lines."""
    lines = [
        "[2026-01-01 00:00:00,000] INFO session id=99999999999 ends (a.B)",
        "[2026-13-41 25:00:00,000] INFO Fencing broker 7 (a.B)",
        "[2026-01-01 00:00:00,001] INFO Fencing broker 99999999999 (a.B)",
    ]
    events = parse_lines(spark.createDataFrame([(each,) for each in lines], "line string"))
    found = {(row["level"], row["time"] is None, row["event"], row["node"], row["broker"])
             for row in events.collect()}  # fmt: skip
    assert found == {
        ("INFO", False, None, None, None),
        ("INFO", True, "fenced", 7, None),
        ("INFO", False, "fenced", None, None),
    }


def test_a_journal_that_begins_with_an_empty_isr_has_lines(spark: SparkSession) -> None:
    """Its leader is unknown: older entries had gone when the journal was exported."""
    grown = {
        "run": "r", "seq": 9, "virtual_ms": 1, "change": "IsrChanged", "topic": "t",
        "topic_id": "id", "partition": 0, "former_isr": "", "isr": "2",
    }  # fmt: skip
    [event] = parse_lines(log_lines(from_rows(spark, {"cluster": [grown]}))).collect()
    assert (event["event"], event["isr"], event["former_isr"]) == ("isr grows", "2", None)


def test_a_cluster_without_controller_and_leaders_has_lines(spark: SparkSession) -> None:
    """Of the last ones that there were."""
    place = {"topic": "t", "topic_id": "id", "partition": 0}
    rows = [
        {"change": "ControllerChanged", "broker": 2, "details": '{"epoch": 4}'},
        {"change": "LeaderChanged", **place, "leader": 3, "former_leader": 1, "leader_epoch": 5,
         "isr": "3"},
        {"change": "LeaderChanged", **place, "leader": -1, "former_leader": 3, "leader_epoch": 6,
         "isr": ""},
        {"change": "IsrChanged", **place, "former_isr": "3", "isr": ""},
        {"change": "ControllerChanged", "broker": -1, "details": '{"epoch": 5}'},
    ]  # fmt: skip
    cluster = [{"run": "r", "seq": at, "virtual_ms": at, **row} for at, row in enumerate(rows, 1)]
    lines = log_lines(from_rows(spark, {"cluster": cluster})).orderBy("seq")
    told = [row["line"].split("] ", 2)[1:] for row in lines.collect()]
    assert [where.removeprefix("INFO [") for where, _ in told] == [
        "QuorumController id=2", "Broker id=3", "Partition t-0 broker=3", "QuorumController id=2",
    ]  # fmt: skip
    assert told[-1][1].startswith("In the new epoch 5, the leader is (none).")
    found = [(row["event"], row["node"], row["isr"]) for row in parse_lines(lines).collect()]
    assert found == [
        ("controller", 2, None), ("leads", None, "3"), ("isr shrinks", None, None),
        ("controller", None, None),
    ]  # fmt: skip


def test_what_happened_is_told_in_kafkas_words_and_read_back(spark: SparkSession) -> None:
    """Leaders, ISRs, states, brokers, topics and groups, each by its log."""
    place = {"topic": "a-b", "topic_id": "id", "partition": 3}
    moved = '{"partitions": [0, 3], "former": "NewPartition", "state": "OnlinePartition"}'
    cluster: list[dict[str, Any]] = [
        {"change": "TopicsChanged", **place, "details": '{"change": "created"}'},
        {"change": "PartitionsMoved", "topic": "a-b", "topic_id": "id", "details": moved},
        {"change": "ControllerChanged", "broker": 2, "details": '{"epoch": 4}'},
        {
            "change": "LeaderChanged", **place, "leader": 2, "former_leader": 1,
            "leader_epoch": 5, "isr": "2", "unclean": False,
        },
        {"change": "IsrChanged", **place, "former_isr": "1,2", "isr": "2"},
        {"change": "fenced", "broker": 1},
        {"change": "stopped", "broker": 1},
    ]  # fmt: skip
    rows = [
        {"run": "r", "seq": seq, "virtual_ms": 1_700_000_000_000 + seq, **row}
        for seq, row in enumerate(cluster, 1)
    ]
    states = ("PreparingRebalance", "CompletingRebalance", "Stable", "Empty", "Dead")
    groups = [
        {
            "run": "r", "seq": 50 + at, "virtual_ms": 1_700_000_001_000, "group": "g",
            "protocol": "classic", "state": state, "generation": 7, "members": 2,
            "reason": "a member left (so it said)",
        }
        for at, state in enumerate(states)
    ]  # fmt: skip
    stood = {"run": "r", "seq": 0, "broker": 1, **place, "high_watermark": 11, "log_end_offset": 12}
    tables = {"cluster": rows, "groups": groups, "watermarks": [stood]}
    inputs = from_rows(spark, tables)
    lines = log_lines(inputs)
    events = [row.asDict() for row in parse_lines(lines).orderBy("seq").collect()]
    assert [(event["file"], event["event"]) for event in events] == [
        ("controller", "topic created"),
        ("state-change", "partition state"),
        ("state-change", "partition state"),
        ("controller", "controller"),
        ("state-change", "leads"),
        ("server", "isr shrinks"),
        ("controller", "fenced"),
        ("server", "broker state"),
        ("server", "rebalance"),
        ("server", "stable"),
        ("server", "empty"),
        ("server", "dead"),
    ]
    assert {event["partition"] for event in events[1:3]} == {0, 3}
    leader = events[4]
    assert (leader["topic"], leader["partition"], leader["former_leader"]) == ("a-b", 3, 1)
    assert (leader["broker"], leader["leader_epoch"], leader["log_end_offset"]) == (2, 5, 12)
    assert (events[5]["former_isr"], events[5]["isr"]) == ("1,2", "2")
    assert events[8]["reason"] == "a member left (so it said)"
    assert [event["generation"] for event in events[8:]] == [7] * 4
