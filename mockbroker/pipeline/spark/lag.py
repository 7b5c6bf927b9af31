"""The lag of groups over time, to the high watermark and to the last stable offset.

The last stable offset is the limit of read_committed consumers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.pipeline.spark.program import main

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs

# Lag is never negative: a committed offset may lie above the log end. A negative one counts as 0.
# Spark's greatest() ignores nulls, but an unknown lag is not 0.
_COMMITTED = "IF(committed < 0, 0, committed)"
LAGS = f"""
    IF(high_watermark < committed, 0, high_watermark - {_COMMITTED}) AS lag,
    IF(last_stable_offset < committed, 0, last_stable_offset - {_COMMITTED})
        AS lag_read_committed"""


def lag(inputs: Inputs) -> DataFrame:
    """A row for each new committed offset, and for each new offset of a partition's log.

    The newer report of the two bounds the other one: the last stable offset is never above the high
    watermark. `committed` is null before the group's first commit and after a removal. Answers of
    followers count too: a follower is never ahead of its leader.
    """
    return inputs.sql(f"""
        WITH groups_there AS (
            SELECT DISTINCT k, `group` FROM {{commits}} WHERE applied
        ), steps AS (
            SELECT w.run, w.k, g.`group`, w.topic, w.topic_id, w.partition, w.seq, w.virtual_ms,
                   w.high_watermark, w.last_stable_offset, w.log_end_offset,
                   CAST(NULL AS struct<offset: bigint>) AS commit
            FROM {{watermarks}} w JOIN groups_there g ON g.k = w.k
            WHERE w.high_watermark IS NOT NULL OR w.last_stable_offset IS NOT NULL
            UNION ALL
            SELECT run, k, `group`, topic, topic_id, partition, seq, virtual_ms, NULL, NULL, NULL,
                   struct(offset)
            FROM {{commits}} WHERE applied
        ), known AS (
            SELECT run, k, `group`, topic, topic_id, partition, seq, virtual_ms,
                   last_value(commit) IGNORE NULLS OVER so_far AS last_commit,
                   last_value(last_stable_offset) IGNORE NULLS OVER so_far AS last_stable_offset,
                   last_value(high_watermark) IGNORE NULLS OVER so_far AS high_watermark,
                   last_value(log_end_offset) IGNORE NULLS OVER so_far AS log_end_offset,
                   last_value(IF(high_watermark IS NULL, NULL, seq)) IGNORE NULLS OVER so_far
                       AS high_seq,
                   last_value(IF(last_stable_offset IS NULL, NULL, seq)) IGNORE NULLS OVER so_far
                       AS stable_seq
            FROM steps
            WINDOW so_far AS (PARTITION BY k, `group` ORDER BY seq
                              ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
        ), bounded AS (
            SELECT run, `group`, topic, topic_id, partition, seq, virtual_ms, log_end_offset,
                   last_commit.offset AS committed,
                   IF(stable_seq > high_seq, greatest(high_watermark, last_stable_offset),
                      high_watermark) AS high_watermark,
                   IF(high_seq > stable_seq, least(high_watermark, last_stable_offset),
                      last_stable_offset) AS last_stable_offset
            FROM known
        )
        SELECT run, `group`, topic, topic_id, partition, seq, virtual_ms, committed,
               last_stable_offset, high_watermark, log_end_offset, {LAGS}
        FROM bounded
        ORDER BY run, `group`, topic, partition, seq
    """)


def lag_by_interval(inputs: Inputs, interval_ms: int = 1000) -> DataFrame:
    """The lag at the end of each interval of the cluster's clock with a report, and the highest in
    it (`lag_max`).
    """
    return inputs.sql(
        f"""
        SELECT run, `group`, topic, topic_id, partition,
               virtual_ms - virtual_ms % {int(interval_ms)} AS from_ms,
               max_by(committed, seq) AS committed, max_by(lag, seq) AS lag,
               max_by(lag_read_committed, seq) AS lag_read_committed, max(lag) AS lag_max
        FROM {{lag}}
        GROUP BY run, `group`, topic, topic_id, partition,
                 virtual_ms - virtual_ms % {int(interval_ms)}
        ORDER BY run, `group`, topic, partition, from_ms
        """,
        lag=lag(inputs),
    )


def latest_lag(inputs: Inputs) -> DataFrame:
    """The lag at the end of each run, as in the admin API and `mockbroker groups`."""
    return inputs.sql(
        """
        SELECT run, `group`, topic, partition, max_by(committed, seq) AS committed,
               max_by(last_stable_offset, seq) AS last_stable_offset,
               max_by(high_watermark, seq) AS high_watermark,
               max_by(log_end_offset, seq) AS log_end_offset, max_by(lag, seq) AS lag,
               max_by(lag_read_committed, seq) AS lag_read_committed
        FROM {lag}
        GROUP BY run, `group`, topic, topic_id, partition
        ORDER BY run, `group`, topic, partition
        """,
        lag=lag(inputs),
    )


if __name__ == "__main__":
    main(lag, latest_lag)
