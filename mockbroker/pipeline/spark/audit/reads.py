"""Reads: aborted and dirty reads, skips, decreasing offsets, records read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.pipeline.findings import WIRE
from mockbroker.pipeline.spark.audit.facts import findings, no_findings
from mockbroker.pipeline.spark.audit.index import first_missing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs


def aborted_read(inputs: Inputs) -> DataFrame:
    """Records of aborted transactions that a read_committed consumer got."""
    if not inputs.has("markers"):
        return no_findings(inputs)
    found = inputs.sql("""
        WITH candidates AS (
            SELECT d.run, d.k, d.topic, d.topic_id, d.partition, d.offset, d.response_seq,
                   r.connection
            FROM {doubtful_deliveries} d
            JOIN {readings} r ON r.k = d.k AND r.response_seq = d.response_seq AND r.committed
            LEFT SEMI JOIN {aborted} a ON a.k = d.k AND d.offset BETWEEN a.lo AND a.hi
        ), last AS (
            SELECT c.run, c.k, c.topic, c.topic_id, c.partition, c.offset, c.response_seq,
                   c.connection, max(r.append_seq) AS append_seq
            FROM candidates c
            JOIN {records} r ON r.k = c.k AND r.offset = c.offset AND r.append_seq < c.response_seq
            LEFT ANTI JOIN {diverging} v ON v.k = r.k AND v.append_seq = r.append_seq
            LEFT ANTI JOIN {removals} x ON x.k = r.k AND x.seq > r.append_seq
                AND x.seq < c.response_seq AND r.offset BETWEEN x.first_offset AND x.last_offset
            GROUP BY c.run, c.k, c.topic, c.topic_id, c.partition, c.offset, c.response_seq,
                     c.connection
        )
        SELECT l.run, l.topic, l.topic_id, l.partition, l.offset,
               concat('connection:', l.connection) AS subject, 'bug' AS verdict,
               l.append_seq AS first_seq, l.response_seq AS last_seq
        FROM last l
        LEFT SEMI JOIN {aborted} a ON a.k = l.k AND a.append_seq = l.append_seq
    """)
    return findings(found, "aborted_read", WIRE)


def dirty_read(inputs: Inputs) -> DataFrame:
    """Records at or above the last stable offset that a read_committed consumer got."""
    inputs.derive("unstable", _unstable, checkpoint=True)
    if not inputs.rows("unstable"):
        return no_findings(inputs)
    found = inputs.sql("""
        SELECT d.run, d.topic, d.topic_id, d.partition, d.offset,
               concat('connection:', a.connection) AS subject, 'bug' AS verdict,
               a.response_seq AS first_seq, a.response_seq AS last_seq,
               to_json(named_struct('last_stable_offset', a.last_stable_offset)) AS details
        FROM {deliveries} d
        JOIN {unstable} a ON a.k = d.k AND a.response_seq = d.response_seq
        WHERE d.offset >= a.last_stable_offset
    """)
    return findings(found, "dirty_read", WIRE)


def _unstable(inputs: Inputs) -> DataFrame:
    return inputs.sql("""
        SELECT k, response_seq, connection, last_stable_offset FROM {readings}
        WHERE committed AND hi >= last_stable_offset
    """)


def skip(inputs: Inputs) -> DataFrame:
    """Answers, and pairs of answers, that omitted a record."""
    ranges = inputs.derive("skipped_ranges", _skipped_ranges, checkpoint=True)
    if not inputs.rows("skipped_ranges"):
        return no_findings(inputs)
    found = first_missing(inputs, ranges, "skip")
    found = found.selectExpr("*", "to_json(named_struct('from', a, 'to', b)) AS details")
    return findings(found, "skip", WIRE)


def _skipped_ranges(inputs: Inputs) -> DataFrame:
    return inputs.sql("""
        SELECT r.run, r.k, r.topic, r.topic_id, r.partition,
               concat('connection:', r.connection) AS subject, 'bug' AS verdict,
               r.response_seq AS first_seq, r.response_seq AS last_seq,
               r.fetch_offset AS a, r.next_offset AS b, r.response_seq AS horizon, r.committed,
               r.response_seq AS answer
        FROM {readings} r
        LEFT SEMI JOIN {doubtful} d ON d.k = r.k AND d.response_seq = r.response_seq
        WHERE r.error IS NULL AND r.fetch_offset < r.next_offset
        UNION ALL
        SELECT run, k, topic, topic_id, partition, concat('connection:', connection), verdict,
               before_seq, response_seq, expected, fetch_offset, response_seq, committed, NULL
        FROM {pairs}
        WHERE fetch_offset > expected
    """)


def non_monotonic_poll(inputs: Inputs) -> DataFrame:
    """Answers, and pairs of answers, with a decreasing offset."""
    inputs.derive("disordered", _disordered, checkpoint=True)
    found = inputs.sql("""
        SELECT run, topic, topic_id, partition, lo AS offset,
               concat('connection:', connection) AS subject, verdict,
               before_seq AS first_seq, response_seq AS last_seq
        FROM {pairs} WHERE lo < expected
        UNION ALL
        SELECT run, topic, topic_id, partition, offset, concat('connection:', connection),
               'bug', response_seq, response_seq
        FROM (
            SELECT d.run, d.topic, d.topic_id, d.partition, d.offset, r.connection,
                   d.response_seq,
                   lag(d.offset) OVER (PARTITION BY d.k, d.response_seq ORDER BY d.position)
                       AS before
            FROM {disordered} d
            JOIN {readings} r ON r.k = d.k AND r.response_seq = d.response_seq
        )
        WHERE offset <= before
    """)
    return findings(found, "non_monotonic_poll", WIRE)


def _disordered(inputs: Inputs) -> DataFrame:
    """The deliveries of answers whose offsets do not only increase; all of these are doubtful."""
    return inputs.sql("""
        SELECT d.* FROM {doubtful_deliveries} d
        LEFT SEMI JOIN {readings} r
          ON r.k = d.k AND r.response_seq = d.response_seq AND NOT r.orderly
    """)


def read_again(inputs: Inputs) -> DataFrame:
    """Read spans of a group that began below its earlier deliveries."""
    found = inputs.sql("""
        WITH read_spans AS (
            SELECT run, k, topic, topic_id, partition, `group`, read_span,
                   min(response_seq) AS first_answer, min(lo) AS lo, max(hi) AS hi
            FROM {readings}
            WHERE `group` IS NOT NULL AND brought > 0
            GROUP BY run, k, topic, topic_id, partition, `group`, read_span
        )
        SELECT run, topic, topic_id, partition, lo AS offset, `group` AS subject,
               'report' AS verdict, first_of_all AS first_seq, first_answer AS last_seq,
               to_json(named_struct('read_up_to', before)) AS details
        FROM (
            SELECT *, max(hi) OVER earlier AS before,
                   coalesce(min(first_answer) OVER earlier, first_answer) AS first_of_all
            FROM read_spans
            WINDOW earlier AS (
                PARTITION BY k, `group` ORDER BY first_answer
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )
        )
        WHERE lo <= before
    """)
    return findings(found, "read_again", WIRE)
