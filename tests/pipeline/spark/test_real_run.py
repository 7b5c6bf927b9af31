"""The jobs over the journal of a cluster with real clients, over its topics, and as streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from mockbroker import Cluster
from mockbroker.core.views.groups import LagView, lag_views
from mockbroker.pipeline.findings import Finding
from mockbroker.pipeline.spark.audit import audit
from mockbroker.pipeline.spark.from_kafka import ANOMALIES, from_topics
from mockbroker.pipeline.spark.inputs import Inputs, read
from mockbroker.pipeline.spark.isr import elections, under_replicated
from mockbroker.pipeline.spark.lag import latest_lag
from mockbroker.pipeline.spark.log_lines import log_events
from mockbroker.pipeline.spark.rebalances import ownership, rebalances
from mockbroker.pipeline.spark.streams import broken_orders, ends, positions, stream
from mockbroker.pipeline.write import TableWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TOPIC, GROUP = "orders", "billing"
PLACE = {"topic": "t", "topic_id": "id", "partition": 0}


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=3) as cluster:
        cluster.topic(TOPIC).create(2, 3)
        yield cluster


@pytest.fixture(scope="module")
def told_by_admin(kafka: Cluster) -> list[LagView]:
    """A group reads and falls behind, an id is sent twice, a transaction stays open, and a broker
    goes; the lag as the admin API tells it then.
    """
    servers = {"bootstrap.servers": kafka.bootstrap_servers}
    producer = Producer({**servers, "client.id": "shop"})
    for number in range(8):
        headers = {"mb-id": str(number % 7)}  # the last is the first once more
        producer.produce(TOPIC, f"v{number}", partition=0, headers=headers)
        producer.flush()
    consumer = Consumer(
        {
            **servers,
            "group.id": GROUP,
            "client.id": "till",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_uncommitted",
        }
    )
    consumer.subscribe([TOPIC])
    assert len(consumer.consume(8, timeout=60)) == 8
    for offset in (6, 3):
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    payer = Producer({**servers, "transactional.id": "payer"})
    payer.init_transactions(60)
    payer.begin_transaction()
    payer.produce(TOPIC, "held", partition=0)
    payer.flush()
    assert len(consumer.consume(1, timeout=60)) == 1
    told = kafka.call(lag_views)
    consumer.close()
    kafka.broker(3).stop()
    payer.abort_transaction(60)
    return told


@pytest.fixture(scope="module")
def inputs(
    spark: SparkSession,
    kafka: Cluster,
    told_by_admin: list[LagView],
    tmp_path_factory: pytest.TempPathFactory,
) -> Inputs:
    directory = tmp_path_factory.mktemp("journal")
    kafka.journal.export(directory, "run")
    return read(spark, directory)


@pytest.mark.covers("S299", "S334")
def test_lag_is_what_the_admin_api_tells(inputs: Inputs, told_by_admin: list[LagView]) -> None:
    """To the high watermark and to the last stable offset, below which no transaction is open."""
    [admin] = [view for view in told_by_admin if view.partition == 0]
    assert (admin.committed, admin.lag, admin.lag_read_committed) == (3, 6, 5)
    last_seen = inputs.sql(
        """
        SELECT max(w.seq) AS seq FROM {watermarks} w
        WHERE w.topic = 'orders' AND w.partition = 0 AND w.high_watermark = 9
          AND w.last_stable_offset = 8
        """
    ).collect()[0]["seq"]
    before = Inputs(
        inputs.spark,
        {
            "watermarks": inputs.table("watermarks").where(f"seq <= {last_seen}").drop("k"),
            "commits": inputs.table("commits").drop("k"),
        },
    )
    [row] = [row for row in latest_lag(before).collect() if row["partition"] == 0]
    assert (row["group"], row["committed"]) == (admin.group, admin.committed)
    assert row["high_watermark"] == admin.high_watermark
    assert row["last_stable_offset"] == admin.last_stable_offset
    assert (row["lag"], row["lag_read_committed"]) == (admin.lag, admin.lag_read_committed)


@pytest.mark.covers("S306", "S311", "S335")
def test_a_group_that_came_and_went(inputs: Inputs) -> None:
    """Two rebalances with their causes, and who owned what from when to when."""
    came, went = rebalances(inputs).collect()
    assert (came["group"], came["generation"], came["members"], came["moved"]) == (GROUP, 1, 1, 2)
    assert came["start_ms"] <= came["stable_ms"] <= came["back_ms"]
    assert came["took_ms"] >= 0
    assert "joined" in came["cause"] or "member" in came["cause"]
    assert (went["members"], went["partitions"]) == (0, 0)
    owned = ownership(inputs).collect()
    assert [(row["topic"], row["partition"]) for row in owned] == [(TOPIC, 0), (TOPIC, 1)]
    assert all(row["from_ms"] <= row["to_ms"] for row in owned)


@pytest.mark.covers("S336", "S301")
def test_a_broker_that_left(inputs: Inputs) -> None:
    """It is out of the ISRs, its partitions got other leaders, and the lines of the log say so."""
    out = [row for row in under_replicated(inputs).collect() if row["topic"] == TOPIC]
    assert {(row["partition"], row["broker"], row["to_ms"]) for row in out} == {
        (0, 3, None), (1, 3, None),
    }  # fmt: skip
    held = [row for row in elections(inputs).collect() if row["former_leader"] == 3]
    assert {row["outcome"] for row in held} == {"other"}
    events = log_events(inputs).collect()
    assert all(row["event"] is not None for row in events)
    leads = {(row["topic"], row["partition"]) for row in events if row["event"] == "leads"}
    assert leads == {(row["topic"], row["partition"]) for row in held}
    states = [row["state"] for row in events if row["event"] == "broker state"]
    assert states == ["SHUTTING_DOWN", "SHUTDOWN"]


@pytest.mark.slow
def test_the_same_audit_over_topics(
    spark: SparkSession, kafka: Cluster, told_by_admin: list[LagView]
) -> None:
    """Without a journal: what the topics themselves tell, and the offsets of groups."""
    inputs = from_topics(spark, kafka.bootstrap_servers, [TOPIC])
    found = [Finding(*row) for row in audit(inputs, ANOMALIES).collect()]
    briefs = {(f.anomaly, f.verdict, f.partition, f.offset, f.subject) for f in found}
    assert briefs == {
        ("duplicate", "report", 0, 7, "id:0"),
        ("commit_regression", "report", 0, 3, GROUP),
    }
    rows = latest_lag(inputs).collect()
    told = {row["partition"]: (row["committed"], row["lag"]) for row in rows}
    assert told[0] == (3, 5)  # the record of the aborted transaction is not read


@pytest.mark.slow
def test_tables_that_grow_are_told_as_they_grow(spark: SparkSession, tmp_path: Path) -> None:
    """Broken orders are appended once; ends and positions are those of the last row."""
    mark = {**PLACE, "broker": 1, "leader_epoch": 0, "log_start_offset": 0}
    with TableWriter(tmp_path / "tables", "run") as writer:
        for seq, (stable, high) in enumerate([(1, 2), (5, 3), (4, 4)], 1):
            row = {**mark, "seq": seq, "last_stable_offset": stable, "high_watermark": high}
            writer.rows("watermarks", [row])
            commit = {**PLACE, "seq": seq, "group": "g", "offset": seq, "applied": True}
            writer.rows("commits", [commit])
            writer.roll()
    jobs = {
        "broken": (broken_orders, "watermarks", "append"),
        "ends": (ends, "watermarks", "complete"),
        "positions": (positions, "commits", "complete"),
    }
    for name, (job, table, mode) in jobs.items():
        growing = stream(spark, str(tmp_path / "tables"), table, files_per_batch=1)
        query = (
            job(growing)
            .writeStream.format("memory")
            .queryName(f"grown_{name}")
            .outputMode(mode)
            .option("checkpointLocation", str(tmp_path / name))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        batches = Counter(each["numInputRows"] for each in query.recentProgress)
        assert batches[1] == 3, "each file is a batch of its own"
    [broken] = spark.table("grown_broken").collect()
    assert (broken["seq"], broken["offset"]) == (2, 3)
    [end] = spark.table("grown_ends").collect()
    assert (end["high_watermark"], end["last_stable_offset"], end["seq"]) == (4, 4, 3)
    [position] = spark.table("grown_positions").collect()
    assert (position["group"], position["committed"]) == ("g", 3)
