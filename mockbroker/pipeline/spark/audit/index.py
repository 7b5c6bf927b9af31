"""The dense index: finds the answers with other records than those in their range.

The number of records between two offsets, and their checksum, follow from sums over all batches
below each offset. A partition's sums are taken in buckets of offsets and then over the buckets, so
that a partition with most of the rows is the work of all tasks. If an answer's number and checksum
are those of its range, it left out nothing and brought no other value. Rules read single rows only
for the other answers: those that did not begin and end between batches, that crossed reused or
emptied offsets, and wrong ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs

# Offsets of a bucket, as a power of 2: of the index, and of joins by range.
INDEX_BITS = 16
RANGE_BITS = 11


def prepare(inputs: Inputs) -> None:
    """Derive the index, and the answers that disagree with it."""
    inputs.derive("points", _points, checkpoint=True)
    inputs.derive("buckets", _buckets, checkpoint=True)
    inputs.derive("index", _index, checkpoint=True)
    inputs.derive("reused", _reused, checkpoint=True)
    inputs.derive("doubtful", _doubtful, checkpoint=True)
    inputs.derive("doubtful_deliveries", _doubtful_deliveries, checkpoint=True)
    inputs.derive("extents", _extents, checkpoint=True)


def _points(inputs: Inputs) -> DataFrame:
    """Batches at their base offset (`x`), and the offsets where answers begin or end (n is null).

    Each has the sums below it: `n…` of all records, `stay_…` of those that were not aborted, and
    `reach`, the highest offset of these. Columns are of the point's own bucket only.
    """
    return inputs.sql(f"""
        WITH points AS (
            SELECT DISTINCT k, explode(array(fetch_offset, next_offset)) AS x, 0 AS batch,
                   0L AS n, 0L AS low, 0L AS high, 0L AS stay_n, 0L AS stay_low, 0L AS stay_high,
                   CAST(NULL AS bigint) AS hi
            FROM {{readings}} WHERE error IS NULL
            UNION ALL
            SELECT s.k, s.lo AS x, 1 AS batch, n, low, high,
                   IF(a.k IS NULL, n, 0), IF(a.k IS NULL, low, 0), IF(a.k IS NULL, high, 0), s.hi
            FROM {{appends}} s
            LEFT JOIN {{aborted}} a ON a.k = s.k AND a.append_seq = s.append_seq
        )
        SELECT k, x, shiftright(x, {INDEX_BITS}) AS bucket, batch, n AS own_n, low AS own_low,
               high AS own_high, stay_n AS own_stay_n, stay_low AS own_stay_low,
               stay_high AS own_stay_high, hi,
               coalesce(sum(n) OVER below, 0) AS n, coalesce(sum(low) OVER below, 0) AS low,
               coalesce(sum(high) OVER below, 0) AS high,
               coalesce(sum(stay_n) OVER below, 0) AS stay_n,
               coalesce(sum(stay_low) OVER below, 0) AS stay_low,
               coalesce(sum(stay_high) OVER below, 0) AS stay_high,
               max(hi) OVER below AS reach
        FROM points
        WINDOW below AS (
            PARTITION BY k, shiftright(x, {INDEX_BITS}) ORDER BY x, batch
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
    """)


def _buckets(inputs: Inputs) -> DataFrame:
    """The sums of the buckets below each."""
    return inputs.sql("""
        SELECT k, bucket,
               coalesce(sum(n) OVER below, 0) AS n, coalesce(sum(low) OVER below, 0) AS low,
               coalesce(sum(high) OVER below, 0) AS high,
               coalesce(sum(stay_n) OVER below, 0) AS stay_n,
               coalesce(sum(stay_low) OVER below, 0) AS stay_low,
               coalesce(sum(stay_high) OVER below, 0) AS stay_high,
               max(reach) OVER below AS reach
        FROM (
            SELECT k, bucket, sum(own_n) AS n, sum(own_low) AS low, sum(own_high) AS high,
                   sum(own_stay_n) AS stay_n, sum(own_stay_low) AS stay_low,
                   sum(own_stay_high) AS stay_high, max(hi) AS reach
            FROM {points} GROUP BY k, bucket
        )
        WINDOW below AS (
            PARTITION BY k ORDER BY bucket ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
    """)


def _index(inputs: Inputs) -> DataFrame:
    """The sums below each offset at which an answer begins or ends.

    `straddled` if a batch spans the offset: then the sums are too high.
    """
    return inputs.sql("""
        SELECT p.k, p.x, p.n + b.n AS n, p.low + b.low AS low, p.high + b.high AS high,
               p.stay_n + b.stay_n AS stay_n, p.stay_low + b.stay_low AS stay_low,
               p.stay_high + b.stay_high AS stay_high,
               coalesce(greatest(p.reach, b.reach) >= p.x, false) AS straddled
        FROM {points} p JOIN {buckets} b ON b.k = p.k AND b.bucket = p.bucket
        WHERE p.batch = 0
    """)


def _reused(inputs: Inputs) -> DataFrame:
    """Offsets that two batches had."""
    return inputs.sql("""
        SELECT p.k, p.x AS lo, least(p.hi, greatest(p.reach, b.reach)) AS hi
        FROM {points} p JOIN {buckets} b ON b.k = p.k AND b.bucket = p.bucket
        WHERE p.batch = 1 AND greatest(p.reach, b.reach) >= p.x
    """)


def _doubtful(inputs: Inputs) -> DataFrame:
    """Answers whose deliveries may differ from the records of their range."""
    return inputs.sql("""
        SELECT r.k, r.response_seq
        FROM {readings} r
        JOIN {index} a ON a.k = r.k AND a.x = r.fetch_offset
        JOIN {index} b ON b.k = r.k AND b.x = r.next_offset
        WHERE r.error IS NULL
          AND (a.straddled OR b.straddled OR r.next_offset < r.fetch_offset
               OR NOT coalesce(r.orderly, true)
               OR r.brought <> IF(r.committed, b.stay_n - a.stay_n, b.n - a.n)
               OR r.low <> IF(r.committed, b.stay_low - a.stay_low, b.low - a.low)
               OR r.high <> IF(r.committed, b.stay_high - a.stay_high, b.high - a.high))
        UNION
        SELECT r.k, r.response_seq
        FROM {readings} r
        JOIN {reused} u ON u.k = r.k AND u.lo < r.next_offset AND u.hi >= r.fetch_offset
        UNION
        SELECT r.k, r.response_seq
        FROM {readings} r
        JOIN {removals} x
          ON x.k = r.k AND x.seq < r.response_seq
         AND x.first_offset < r.next_offset AND x.last_offset >= r.fetch_offset
        UNION
        SELECT a.k, a.response_seq
        FROM {contiguous} a
        LEFT ANTI JOIN {readings} r
          ON r.k = a.k AND r.response_seq = a.response_seq AND r.error IS NULL
    """)


def _doubtful_deliveries(inputs: Inputs) -> DataFrame:
    return inputs.sql("""
        SELECT d.* FROM {deliveries} d
        LEFT SEMI JOIN {doubtful} s ON s.k = d.k AND s.response_seq = d.response_seq
    """)


def _extents(inputs: Inputs) -> DataFrame:
    """The lowest and highest offset of each partition that ever had a record."""
    return inputs.sql("SELECT k, min(lo) AS lo, max(hi) AS hi FROM {appends} GROUP BY k")


def first_missing(inputs: Inputs, ranges: DataFrame, name: str) -> DataFrame:
    """The ranges with a missing record, with the first such as `offset`.

    A range has `k`, `a`, `b`, `horizon` (the number of the answer or commit), `committed` (whether
    aborted and reopened records may be missing), `answer` (its deliveries are not missing; may be
    null), and other columns, which stay. Equal ranges are one. `name` is that of the checkpoint.
    """
    columns = ", ".join(f"g.`{name}`" for name in ranges.columns)
    spread = inputs.sql(
        f"""
        SELECT g.*, explode(sequence(shiftright(greatest(g.a, e.lo), {RANGE_BITS}),
                                     shiftright(least(g.b - 1, e.hi), {RANGE_BITS}))) AS bucket
        FROM {{ranges}} g JOIN {{extents}} e ON e.k = g.k
        WHERE greatest(g.a, e.lo) <= least(g.b - 1, e.hi)
        """,
        ranges=ranges,
    )
    spread = inputs.checkpoint(spread, f"spread {name}")
    return inputs.sql(
        f"""
        SELECT {columns}, min(g.offset) AS offset
        FROM (
            SELECT g.*, r.offset, r.append_seq
            FROM {{spread}} g
            JOIN {{records}} r
              ON r.k = g.k AND shiftright(r.offset, {RANGE_BITS}) = g.bucket
             AND r.offset >= g.a AND r.offset < g.b AND r.append_seq < g.horizon
        ) g
        LEFT ANTI JOIN {{removals}} x
          ON x.k = g.k AND g.offset BETWEEN x.first_offset AND x.last_offset
         AND x.seq > g.append_seq AND x.seq < g.horizon
        LEFT ANTI JOIN {{diverging}} v ON v.k = g.k AND v.append_seq = g.append_seq
        LEFT ANTI JOIN {{aborted}} t ON t.k = g.k AND t.append_seq = g.append_seq AND g.committed
        LEFT ANTI JOIN {{reopened}} o
          ON o.k = g.k AND o.append_seq = g.append_seq AND o.since_seq < g.horizon AND g.committed
        LEFT ANTI JOIN {{doubtful_deliveries}} d
          ON d.k = g.k AND d.response_seq = g.answer AND d.offset = g.offset
        GROUP BY {columns}
        """,
        spread=spread,
    )
