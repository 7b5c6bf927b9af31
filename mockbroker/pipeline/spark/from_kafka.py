"""The tables of a run from the topics of any Kafka cluster, as far as possible.

Records are read through Spark's Kafka source, commits from `__consumer_offsets`. The jobs therefore
run against a cluster without a journal. Batches, answers, past transactions and watermarks are not
in topics, so only these rules and measures remain:
- `duplicate` by id (a report: its producer is unknown), `commit_regression` (resets are not
  distinguished), and with the application's own operations `lost_write`, `non_monotonic_send`,
  `committed_not_processed` and `processed_again`;
- the present lag, and skew.

Numbers of evidence are offsets: of a record in its partition, of a commit in its partition of
`__consumer_offsets`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mockbroker.pipeline.spark.errors import JobError
from mockbroker.pipeline.spark.inputs import Inputs
from mockbroker.pipeline.tables import TABLES, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OFFSETS_TOPIC = "__consumer_offsets"
ID_HEADER = "mb-id"
# The rules that apply here; the last four need operations.
ANOMALIES = (
    "duplicate",
    "commit_regression",
    "lost_write",
    "non_monotonic_send",
    "committed_not_processed",
    "processed_again",
)

_AS_CONSUMER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"

# The last number: the ends of logs come after all records.
_LAST_SEQ = 1 << 62
# Versions of the keys in __consumer_offsets that hold a committed offset (OffsetCommitKey).
_OFFSET_KEYS = "(0, 1)"


def from_topics(
    spark: SparkSession,
    bootstrap_servers: str,
    topics: Iterable[str],
    *,
    run: str = "kafka",
    options: Mapping[str, str] | None = None,
    operations: DataFrame | None = None,
    read_committed: bool = True,
) -> Inputs:
    """The topics of a cluster, and the commits of groups on them, as a run.

    `options` go to Spark's Kafka source ("kafka.security.protocol" and the like); `operations` is a
    table of that name, with its `run`. Records of aborted transactions are left out, unless
    `read_committed` is false. Commits are read at once. Raises JobError if Spark has no Kafka
    source.
    """
    names = list(topics)
    given = {
        "kafka.bootstrap.servers": bootstrap_servers,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        **(options or {}),
    }
    level = "read_committed" if read_committed else "read_uncommitted"
    records = _source(
        spark, {**given, "subscribe": ",".join(names), "kafka.isolation.level": level}
    )
    offsets = _source(
        spark,
        {**given, "subscribe": OFFSETS_TOPIC, "kafka.isolation.level": "read_committed"},
    )
    commits = commits_of(offsets)
    commits = commits.where(commits["topic"].isin(names))
    with _internal_topics(spark):
        commits = commits.localCheckpoint()
    frames = {
        "records": in_table("records", records_of(records), run),
        "commits": in_table("commits", commits, run),
        "watermarks": in_table("watermarks", _ends_of(records), run),
    }
    if operations is not None:
        frames["operations"] = operations
    return Inputs(spark, frames)


@contextmanager
def _internal_topics(spark: SparkSession) -> Iterator[None]:
    """For the block, let Spark read internal topics too.

    By default Spark looks up offsets as an administrator, and then silently leaves them out
    (Spark's ConsumerStrategy); as a consumer it does not.
    """
    before = spark.conf.get(_AS_CONSUMER, None)
    spark.conf.set(_AS_CONSUMER, "true")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_AS_CONSUMER)
        else:
            spark.conf.set(_AS_CONSUMER, before)


def records_of(source: DataFrame) -> DataFrame:
    """Rows of Spark's Kafka source, with headers, as columns of `records`.

    The id is the first header of its name that has a value. Values have a hash of Spark's own, not
    the journal's.
    """
    with_id = f"filter(headers, h -> h.key = '{ID_HEADER}' AND h.value IS NOT NULL)"
    return source.selectExpr(
        "offset AS append_seq",
        "topic",
        "topic AS topic_id",
        "partition",
        "offset",
        "unix_millis(timestamp) AS timestamp",
        f"CAST(get({with_id}, 0).value AS string) AS id",
        "xxhash64(key, value) AS value_hash",
        "IF(key IS NULL, NULL, xxhash64(key)) AS key_hash",
    )


def commits_of(source: DataFrame) -> DataFrame:
    """Rows of `__consumer_offsets` as columns of `commits`; other records are left out.

    Keys and values are as in Kafka's OffsetCommitKey and OffsetCommitValue: a version, then the
    fields; texts have their length first. The offset is the first field of the value in every
    version. A record without a value removes the offset.
    """
    keys = source.where(f"{_number('key', '1', 2)} IN {_OFFSET_KEYS}").selectExpr(
        "*", f"{_number('key', '3', 2)} AS group_length"
    )
    topics = keys.selectExpr("*", f"{_number('key', '5 + group_length', 2)} AS topic_length")
    topic = "CAST(substring(key, 7 + group_length, topic_length) AS string)"
    return (
        topics.selectExpr(
            "offset AS seq",
            "unix_millis(timestamp) AS virtual_ms",
            "unix_millis(timestamp) * 1000000 AS real_ns",
            "CAST(substring(key, 5, group_length) AS string) AS `group`",
            f"{topic} AS topic",
            f"{topic} AS topic_id",
            f"CAST({_number('key', '7 + group_length + topic_length', 4)} AS int) AS partition",
            "value IS NULL AS removed",
            f"{_number('value', '3', 8)} AS offset",
            "true AS applied",
        )
        .where("partition IS NOT NULL AND (removed OR offset IS NOT NULL)")
        .drop("removed")
    )


def _ends_of(source: DataFrame) -> DataFrame:
    """The last known log end of each partition."""
    ends = source.groupBy("topic", "partition").agg({"offset": "max", "timestamp": "max"})
    return ends.selectExpr(
        f"CAST({_LAST_SEQ} AS bigint) AS seq",
        "unix_millis(`max(timestamp)`) AS virtual_ms",
        "topic",
        "topic AS topic_id",
        "partition",
        "`max(offset)` + 1 AS last_stable_offset",
        "`max(offset)` + 1 AS high_watermark",
        "'list_offsets' AS source",
    )


def _number(column: str, position: str, size: int) -> str:
    """SQL for a signed number in the bytes from `position` (from 1) on; null if they end before."""
    raw = f"substring({column}, {position}, {size})"
    above = 64 - 8 * size  # the bits that take the sign
    number = f"CAST(conv(hex({raw}), 16, -10) AS bigint)"
    return f"IF(length({raw}) = {size}, shiftright(shiftleft({number}, {above}), {above}), NULL)"


def in_table(name: str, frame: DataFrame, run: str) -> DataFrame:
    """A table with all its columns; unknown columns are null."""
    from pyspark.sql.functions import lit

    kinds = dict(column.split(" ") for column in spark_schema(name).split(", "))
    known = set(frame.columns)
    columns = [
        f"CAST({f'`{column.name}`' if column.name in known else 'NULL'} AS "
        f"{kinds[f'`{column.name}`']}) AS `{column.name}`"
        for column in TABLES[name]
    ]
    return frame.selectExpr(*columns).withColumn("run", lit(run))


def _source(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    from pyspark.errors import AnalysisException

    try:
        return spark.read.format("kafka").options(**options).load()
    except AnalysisException as error:
        if "kafka" not in str(error).lower():
            raise
        raise JobError(
            "this Spark has no Kafka source: start it with --packages "
            f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}, or with "
            "`mockbroker spark-submit`"
        ) from None
