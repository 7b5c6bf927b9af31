"""`format("mockbroker")` in real Spark: batch and streaming, without a jar."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from mockbroker import Cluster
from mockbroker.pipeline.source import MockbrokerDataSource
from tests.support.librdkafka import TIMEOUT_S, settings

pytestmark = pytest.mark.spark


@pytest.fixture
def source(spark, mock_kafka: Cluster):
    """A cluster with forty records, and readers of its journal."""
    spark.dataSource.register(MockbrokerDataSource)
    mock_kafka.topic("orders").create(2)
    send(mock_kafka, 40)
    return mock_kafka


def send(kafka: Cluster, count: int) -> None:
    producer = Producer(settings(kafka.bootstrap_servers, client_id="shop", linger_ms=0))
    for number in range(count):
        producer.produce("orders", str(number), partition=number % 2)
        assert producer.flush(TIMEOUT_S) == 0


def test_spark_reads_events_and_tables_of_a_live_cluster(spark, source):
    reader = spark.read.format("mockbroker").option("url", source.admin_url)
    events = reader.load().where("kind = 'append'").select("topic").collect()
    assert [row["topic"] for row in events] == ["orders"] * 40
    records = reader.option("table", "records").load()
    found = records.groupBy("partition").agg({"offset": "max", "*": "count"}).collect()
    assert sorted(map(tuple, found)) == [(0, 20, 19), (1, 20, 19)] or sorted(map(tuple, found)) == [
        (0, 19, 20),
        (1, 19, 20),
    ]


def test_spark_streams_a_live_cluster_in_batches_of_our_size(
    spark, source, checkpoint_dir, tmp_path
):
    """A query that is restarted goes on where it was."""
    sizes: list[int] = []
    for turn in (1, 2):
        query = (
            spark.readStream.format("mockbroker")
            .option("url", source.admin_url)
            .option("table", "records")
            .option("maxEntriesPerBatch", 50)
            .load()
            .writeStream.format("parquet")
            .option("checkpointLocation", str(checkpoint_dir))
            .start(str(tmp_path / "records"))
        )
        try:
            query.processAllAvailable()
            sizes += [each["numInputRows"] for each in query.recentProgress]
        finally:
            query.stop()
        rows = spark.read.parquet(str(tmp_path / "records")).select("partition", "offset")
        count = 20 * turn
        assert sorted(map(tuple, rows.collect())) == [(p, o) for p in (0, 1) for o in range(count)]
        send(source, 40)
    assert max(sizes) <= 50
    assert sum(size > 0 for size in sizes) >= 4


def test_a_wrong_option_is_named_in_spark(spark, source):
    reader = spark.read.format("mockbroker").option("url", source.admin_url)
    with pytest.raises(Exception, match="is not one of events, requests"):
        reader.option("table", "nonsense").load().collect()
