"""What a test of Spark says: fill a topic, read it, stream it, write to it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from mockbroker import Cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming import DataStreamReader, StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

# A query that does not end in this time hangs.
QUERY_TIMEOUT_S = 120
FLUSH_TIMEOUT_S = 20

# (partition, offset, value)
Read = tuple[int, int, str]


class SparkKafka:
    """Spark on one cluster. Streams keep their checkpoint in the test's own folder."""

    def __init__(self, spark: SparkSession, kafka: Cluster, folder: Path) -> None:
        self.spark = spark
        self.kafka = kafka
        self.checkpoint = folder / "checkpoint"

    # -- without Spark -----------------------------------------------------------------------------

    def fill(self, topic: str, values: Iterable[Any], **record: Any) -> None:
        """Produce one record for each value with librdkafka, and wait until all are stored.

        Settings of the producer go in `config`, everything else into each record.
        """
        config = record.pop("config", {})
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap_servers, **config})
        failures: list[object] = []

        def delivered(error: object, _message: object) -> None:
            if error is not None:
                failures.append(error)

        for value in values:
            producer.produce(topic, value, on_delivery=delivered, **record)
        assert producer.flush(FLUSH_TIMEOUT_S) == 0
        assert failures == []

    def stored(self, topic: str) -> list[Read]:
        """What the partitions hold, in the shape of `sorted_reads`."""
        return [
            (record.partition, record.offset, (record.value or b"").decode())
            for record in self.kafka.records(topic)
        ]

    # -- batch -------------------------------------------------------------------------------------

    def read(self, topic: str | None = None, **options: Any) -> DataFrame:
        """The connector's data frame; `startingOffsets` and the like may be given as objects."""
        reader = self.spark.read.format("kafka").options(**self._options(topic, options))
        return reader.load()

    def write(self, frame: DataFrame, topic: str, **options: Any) -> None:
        """Send a data frame's rows to a topic."""
        options = self._options(None, options) | {"topic": topic}
        frame.write.format("kafka").options(**options).save()

    # -- streams -----------------------------------------------------------------------------------

    def stream(self, topic: str, **options: Any) -> DataFrame:
        """A stream from the earliest offset on, unless options say otherwise."""
        settings = {"startingOffsets": "earliest"} | self._options(topic, options)
        reader: DataStreamReader = self.spark.readStream.format("kafka")
        return reader.options(**settings).load()

    def into(self, batches: list[list[Read]], frame: DataFrame) -> DataStreamWriter:
        """Write a stream to a list, one item for each micro-batch, under this test's checkpoint."""

        def append(batch: DataFrame, _number: int) -> None:
            batches.append(sorted_reads(batch.collect()))

        return self.writer(frame).foreachBatch(append)

    def writer(self, frame: DataFrame) -> DataStreamWriter:
        return frame.writeStream.option("checkpointLocation", str(self.checkpoint))

    def read_available(self, frame: DataFrame) -> list[list[Read]]:
        """Run an availableNow query to its end and return its micro-batches."""
        batches: list[list[Read]] = []
        finish(self.into(batches, frame).trigger(availableNow=True).start())
        return batches

    # -- options -----------------------------------------------------------------------------------

    def _options(self, topic: str | None, options: dict[str, Any]) -> dict[str, str]:
        settings = {"kafka.bootstrap.servers": self.kafka.bootstrap_servers}
        if topic is not None:
            settings["subscribe"] = topic
        for name, value in options.items():
            dotted = name.replace("_", ".")
            settings[dotted] = value if isinstance(value, str) else json.dumps(value)
        return settings


def finish(query: StreamingQuery) -> None:
    """Wait for a query that ends by itself. Raises StreamingQueryException with why it failed."""
    try:
        assert query.awaitTermination(QUERY_TIMEOUT_S), "the query does not end"
    finally:
        query.stop()


def progress_of(query: StreamingQuery) -> list[dict[str, Any]]:
    """What a query has told of its triggers, as Spark writes it in JSON."""
    # Spark 3.5 has parsed it already.
    return [each if type(each) is dict else json.loads(each.json) for each in query.recentProgress]


def sorted_reads(rows: Sequence[Row]) -> list[Read]:
    """Rows of the connector by partition and offset."""
    return sorted((row.partition, row.offset, bytes(row.value or b"").decode()) for row in rows)
