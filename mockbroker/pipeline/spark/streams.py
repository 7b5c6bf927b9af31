"""Jobs over the growing tables of a live run (`serve --journal-dir`).

The rules of watermarks need a row and the one before, and lag needs the last row of each, so they
can be computed as rows arrive. Rules that need the whole run are in the audit.
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
    """A table of a directory of runs as a stream of its files; the table must exist."""
    reader = spark.readStream.schema(spark_schema(table))
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    return reader.parquet(f"{directory.rstrip('/')}/{table}")


def broken_orders(watermarks: DataFrame) -> DataFrame:
    """Rows in which the marks of a log are out of order, with the first one: `watermark_order`,
    live. Output mode append.
    """
    return watermarks.selectExpr(
        "run", "seq", "virtual_ms", "topic", "topic_id", "partition", "broker", "cause",
        f"{order_broken()} AS offset", *MARKS,
    ).where("offset IS NOT NULL")  # fmt: skip


def ends(watermarks: DataFrame) -> DataFrame:
    """The last `high_watermark` and `last_stable_offset` of each log. Output mode update."""
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
    """The last committed offsets of each group. Output mode update. Joined with `ends`, this is the
    lag.
    """
    return _last_of(
        commits.where("applied"),
        ["run", "group", "topic", "topic_id", "partition"],
        ["max_by(offset, seq) AS committed"],
    )


def _last_of(frame: DataFrame, keys: list[str], values: list[str]) -> DataFrame:
    from pyspark.sql import functions

    columns = [*values, "max(seq) AS seq", "max(virtual_ms) AS virtual_ms"]
    return frame.groupBy(*(f"`{key}`" for key in keys)).agg(*map(functions.expr, columns))
