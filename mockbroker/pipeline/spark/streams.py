"""Jobs over tables that grow: a run whose broker still writes (`serve --journal-dir`).

Laws of watermarks need no more than a row, or a row and the one before, and lag no more than the
last of each; so they can be told as they come. What needs the whole run is the audit's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.pipeline.spark.audit.watermarks import MARKS, order_broken
from mockbroker.pipeline.tables import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def stream(
    spark: SparkSession, directory: str, table: str, *, files_per_batch: int | None = None
) -> DataFrame:
    """A table of a directory of runs as a stream of its files; the table has to be there."""
    reader = spark.readStream.schema(spark_schema(table))
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    return reader.parquet(f"{directory.rstrip('/')}/{table}")


def broken_orders(watermarks: DataFrame) -> DataFrame:
    """Rows in which the marks of a log are out of order, with the first that is: `watermark_order`
    as it happens. Appends.
    """
    return watermarks.selectExpr(
        "run", "seq", "virtual_ms", "topic", "topic_id", "partition", "broker", "cause",
        f"{order_broken()} AS offset", *MARKS,
    ).where("offset IS NOT NULL")  # fmt: skip


def highest_watermarks(watermarks: DataFrame) -> DataFrame:
    """Of each partition on a broker, within a leader epoch: the last high watermark, and the
    highest. A log went back, and has not caught up again, where they differ. Updates.
    """
    known = watermarks.where("high_watermark IS NOT NULL AND leader_epoch IS NOT NULL")
    return _last_of(
        known,
        ["run", "topic", "topic_id", "partition", "broker", "leader_epoch"],
        ["max_by(high_watermark, seq) AS high_watermark", "max(high_watermark) AS highest"],
    )


def ends(watermarks: DataFrame) -> DataFrame:
    """Where each log stands: `high_watermark` and `last_stable_offset` as told last. Updates."""
    return _last_of(
        watermarks,
        ["run", "topic", "topic_id", "partition"],
        [
            "max_by(high_watermark, IF(high_watermark IS NULL, NULL, seq)) AS high_watermark",
            "max_by(last_stable_offset, IF(last_stable_offset IS NULL, NULL, seq)) "
            "AS last_stable_offset",
        ],
    )


def positions(commits: DataFrame) -> DataFrame:
    """What each group committed last. Updates. Joined with `ends`, that is the lag."""
    return _last_of(
        commits.where("applied"),
        ["run", "group", "topic", "topic_id", "partition"],
        ["max_by(offset, seq) AS committed"],
    )


def _last_of(frame: DataFrame, keys: list[str], values: list[str]) -> DataFrame:
    from pyspark.sql import functions

    told = [*values, "max(seq) AS seq", "max(virtual_ms) AS virtual_ms"]
    return frame.groupBy(*(f"`{key}`" for key in keys)).agg(*map(functions.expr, told))
