"""Spark's Kafka source: reading a topic in one batch, and micro-batches over a growing one."""

from __future__ import annotations

from collections.abc import Mapping

from bench.drivers import LIBRDKAFKA
from bench.drivers.spark import Spark
from bench.model import MILLISECONDS, Figures, Measure, Running, Scale, Unit
from bench.workloads.support import fresh_topic, percentile

RECORD_BYTES = 100
RECORDS_PER_SECOND = Unit("M/s", 1e-6, 2, better="higher")

_SPARK = Spark()
_NO_SPARK: Mapping[str, str] = {
    "kfake": "answers DescribeTopicPartitions with null where Kafka has arrays; Spark dies of it",
    "librdkafka-mock": "has no DescribeTopicPartitions",
}


class _SparkSource:
    fresh = False
    excluded = _NO_SPARK

    def prepare(self) -> None:
        LIBRDKAFKA.prepare()
        _SPARK.prepare()


class BulkRead(_SparkSource):
    """A batch read of a topic that is already there."""

    name = "spark-read"
    measures = (Measure("spark-read", "Spark batch read, 100 B records", RECORDS_PER_SECOND),)

    def run(self, running: Running, scale: Scale) -> Figures:
        with fresh_topic(running) as topic:
            LIBRDKAFKA.produce(running.bootstrap_servers, topic, scale.spark_records, RECORD_BYTES)
            answer = _SPARK.ask(op="read", bootstrap=running.bootstrap_servers, topic=topic)
        if answer["records"] != scale.spark_records:
            raise RuntimeError(f"Spark read {answer['records']} of {scale.spark_records} records")
        return {"spark-read": answer["records"] / answer["seconds"]}


class MicroBatches(_SparkSource):
    """A hundred records, and the time until a streaming query is through with them."""

    name = "spark-batches"
    measures = (Measure("spark-batch-p50", "Spark micro-batch p50", MILLISECONDS),)

    def run(self, running: Running, scale: Scale) -> Figures:
        with fresh_topic(running) as topic:
            answer = _SPARK.ask(
                op="batches",
                bootstrap=running.bootstrap_servers,
                topic=topic,
                count=scale.spark_batches,
            )
        return {"spark-batch-p50": percentile(answer["seconds"], 50)}
