"""Frames for several rules: aborted, acknowledged and removed batches; answers; ranges.

Each frame is derived once (`Inputs.derive`) and named in the rules' queries in braces. Records and
deliveries are read as rarely as possible: `appends` and `answers` reduce them to one row for each
batch and answer, with a checksum of its records. Rules read single records only where these
disagree (`index.doubtful`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.pipeline.findings import EXPIRATION, FINDING_COLUMNS
from mockbroker.pipeline.tables import WANTED_REMOVALS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs

_FINDING_TYPES = {
    "partition": "int",
    "offset": "bigint",
    "first_seq": "bigint",
    "last_seq": "bigint",
}

_WANTED = ", ".join(f"'{reason}'" for reason in WANTED_REMOVALS)

# Sums of these two halves of a hash cannot overflow, and both agree only if the rows do.
_SUMS = """
    sum(hash & 4294967295) AS low, sum(shiftrightunsigned(hash, 32)) AS high"""


def findings(frame: DataFrame, anomaly: str, level: str) -> DataFrame:
    """Rows with some of a finding's columns, as whole findings.

    Of several findings that differ only in their details one is kept.
    """
    given = set(frame.columns)
    fixed = {"anomaly": f"'{anomaly}'", "level": f"'{level}'"}
    columns = [
        f"CAST({fixed.get(name, f'`{name}`' if name in given else 'NULL')} AS "
        f"{_FINDING_TYPES.get(name, 'string')}) AS `{name}`"
        for name in FINDING_COLUMNS
    ]
    whole = frame.selectExpr(*columns)
    return whole.dropDuplicates([name for name in FINDING_COLUMNS if name != "details"])


def no_findings(inputs: Inputs) -> DataFrame:
    columns = [
        f"CAST(NULL AS {_FINDING_TYPES.get(name, 'string')}) AS `{name}`"
        for name in FINDING_COLUMNS
    ]
    return inputs.spark.sql(f"SELECT {', '.join(columns)} WHERE false")


def excused_by_expiration(inputs: Inputs, found: DataFrame) -> DataFrame:
    """Bugs of a producer's appends, with `k`, `producer_id`, `append_seq` and `former_append`, the
    append that it is held against. If the partition forgot the producer between the two, the bug is
    a report, and the config its rule.
    """
    if not inputs.has("expirations"):
        return found
    judged = inputs.sql(
        f"""
        SELECT f.*, IF(e.k IS NULL, f.verdict, 'report') AS judged,
               IF(e.k IS NULL, NULL, '{EXPIRATION}') AS rule
        FROM {{found}} f
        LEFT JOIN {{expirations}} e
          ON f.verdict = 'bug' AND e.k = f.k AND e.producer_id = f.producer_id
         AND e.seq > f.former_append AND e.seq < f.append_seq
        """,
        found=found,
    )
    return judged.drop("verdict").withColumnRenamed("judged", "verdict")


def prepare(inputs: Inputs) -> None:
    """Derive all frames that the rules use."""
    inputs.derive("unwanted", _unwanted, checkpoint=True)
    inputs.derive("aborted", _aborted, checkpoint=True)
    inputs.derive("reopened", _reopened, checkpoint=True)
    inputs.derive("diverging", _diverging, checkpoint=True)
    inputs.derive("acks", _acks)
    inputs.derive("excused", _excused, checkpoint=True)
    inputs.derive("appends", _appends, checkpoint=True)
    inputs.derive("contiguous", _contiguous, checkpoint=True)
    inputs.derive("answers", _answers)
    inputs.derive("readings", _readings, checkpoint=True)
    inputs.derive("pairs", _pairs, checkpoint=True)


def _unwanted(inputs: Inputs) -> DataFrame:
    """Removals for an unwanted reason."""
    return inputs.sql(f"SELECT * FROM {{removals}} WHERE coalesce(reason, '') NOT IN ({_WANTED})")


def _aborted(inputs: Inputs) -> DataFrame:
    """Batches of aborted transactions."""
    return inputs.sql("""
        SELECT DISTINCT b.k, b.append_seq, b.base_offset AS lo, b.last_offset AS hi
        FROM {batches} b
        LEFT SEMI JOIN {markers} m
          ON m.k = b.k AND m.transaction = b.transaction AND NOT m.committed
        WHERE b.append_seq IS NOT NULL
    """)


def _reopened(inputs: Inputs) -> DataFrame:
    """Batches whose transaction is open again, because all its markers were thrown out, and since
    when.
    """
    return inputs.sql("""
        WITH fates AS (
            SELECT m.k, m.transaction, m.seq, min(u.seq) AS thrown_seq
            FROM {markers} m
            LEFT JOIN {unwanted} u
              ON u.k = m.k AND m.offset BETWEEN u.first_offset AND u.last_offset AND u.seq > m.seq
            GROUP BY m.k, m.transaction, m.seq
        ), open AS (
            SELECT k, transaction, max(thrown_seq) AS since_seq
            FROM fates
            GROUP BY k, transaction
            HAVING count(*) = count(thrown_seq)
        )
        SELECT b.k, b.append_seq, o.since_seq
        FROM {batches} b JOIN open o ON o.k = b.k AND o.transaction = b.transaction
        WHERE b.append_seq IS NOT NULL
    """)


def _diverging(inputs: Inputs) -> DataFrame:
    """Batches that a later leader did not have: it has written at their offsets, or below."""
    return inputs.sql("""
        WITH epochs AS (
            SELECT k, leader_epoch, min(offset) AS first_offset
            FROM (
                SELECT k, leader_epoch, base_offset AS offset FROM {batches}
                UNION ALL
                SELECT k, leader_epoch, offset FROM {markers}
            )
            WHERE leader_epoch IS NOT NULL
            GROUP BY k, leader_epoch
        )
        SELECT b.k, b.append_seq
        FROM {batches} b
        LEFT SEMI JOIN epochs e
          ON e.k = b.k AND e.leader_epoch > b.leader_epoch AND e.first_offset <= b.base_offset
        WHERE b.append_seq IS NOT NULL
    """)


def _acks(inputs: Inputs) -> DataFrame:
    """The acknowledged offsets of an appended batch, in its answer or that of a retry, which found
    the last append before it. They are promised with acks=all.
    """
    return inputs.sql("""
        SELECT k, append_seq, base_offset AS lo, last_offset AS hi,
               coalesce(acks = -1, false) AS promised, append_seq AS since_seq
        FROM {batches} WHERE acknowledged AND append_seq IS NOT NULL
        UNION ALL
        SELECT r.k, max(b.append_seq), r.base_offset, r.last_offset,
               coalesce(r.acks = -1, false), r.seq
        FROM {batches} r
        JOIN {batches} b
          ON b.k = r.k AND b.producer_id = r.producer_id
         AND b.producer_epoch = r.producer_epoch AND b.base_sequence = r.base_sequence
        WHERE r.acknowledged AND r.append_seq IS NULL AND b.append_seq < r.seq
        GROUP BY r.k, r.seq, r.base_offset, r.last_offset, r.acks, r.producer_id,
                 r.producer_epoch, r.base_sequence
    """)


def _excused(inputs: Inputs) -> DataFrame:
    """Removed or diverging records with an accepted reason, each with the reason."""
    if not inputs.rows("unwanted") and not inputs.rows("diverging"):
        return inputs.sql("""
            SELECT k, append_seq, offset, value_hash, '' AS excuse FROM {records} WHERE false
        """)
    return inputs.sql("""
        WITH lost AS (
            SELECT r.k, r.append_seq, r.offset, r.value_hash, u.seq, u.cause
            FROM {records} r
            JOIN {unwanted} u ON u.k = r.k AND u.seq > r.append_seq
                AND r.offset BETWEEN u.first_offset AND u.last_offset
            UNION ALL
            SELECT r.k, r.append_seq, r.offset, r.value_hash, CAST(NULL AS bigint), NULL
            FROM {records} r
            LEFT SEMI JOIN {diverging} v ON v.k = r.k AND v.append_seq = r.append_seq
        ), named AS (
            SELECT k, append_seq, offset, value_hash,
                   min_by(struct(cause), seq).cause AS cause
            FROM lost
            GROUP BY k, append_seq, offset, value_hash
        ), unclean AS (
            SELECT k, max(leader_epoch) AS leader_epoch FROM {cluster} WHERE unclean GROUP BY k
        ), promises AS (
            SELECT n.k, n.append_seq, n.offset, bool_or(a.promised) AS promised
            FROM named n
            JOIN {acks} a ON a.k = n.k AND a.append_seq = n.append_seq
                AND n.offset BETWEEN a.lo AND a.hi
            GROUP BY n.k, n.append_seq, n.offset
        )
        SELECT * FROM (
            SELECT n.k, n.append_seq, n.offset, n.value_hash,
                   CASE WHEN n.cause IS NOT NULL THEN n.cause
                        WHEN u.leader_epoch > b.leader_epoch THEN 'unclean_election'
                        WHEN NOT p.promised THEN 'acks=1'
                   END AS excuse
            FROM named n
            JOIN {batches} b ON b.k = n.k AND b.append_seq = n.append_seq
            LEFT JOIN unclean u ON u.k = n.k
            LEFT JOIN promises p ON p.k = n.k AND p.append_seq = n.append_seq
                AND p.offset = n.offset
        )
        WHERE excuse IS NOT NULL
    """)


def _appends(inputs: Inputs) -> DataFrame:
    """The number, offsets and checksum of the records of each append."""
    return inputs.sql(f"""
        SELECT k, append_seq, count(*) AS n, min(offset) AS lo, max(offset) AS hi, {_SUMS}
        FROM (SELECT *, xxhash64(offset, value_hash) AS hash FROM {{records}})
        GROUP BY k, append_seq
    """)


def _contiguous(inputs: Inputs) -> DataFrame:
    """The deliveries of each answer, grouped by offset minus position.

    Within such a row offsets increase by one, so single deliveries need no check.
    """
    return inputs.sql(f"""
        SELECT k, response_seq, offset - position AS shift, count(*) AS n,
               min(position) AS first_position, max(position) AS last_position,
               min(offset) AS lo, max(offset) AS hi, {_SUMS}
        FROM (SELECT *, xxhash64(offset, value_hash) AS hash FROM {{deliveries}})
        GROUP BY k, response_seq, offset - position
    """)


def _answers(inputs: Inputs) -> DataFrame:
    """The deliveries of each answer by partition; `orderly` if their offsets only increase."""
    return inputs.sql("""
        SELECT k, response_seq, sum(n) AS n, min(lo) AS lo, max(hi) AS hi,
               sum(low) AS low, sum(high) AS high, bool_and(orderly) AS orderly
        FROM (
            SELECT *,
                   n = last_position - first_position + 1
                   AND coalesce(first_position > lag(last_position) OVER positions, true)
                   AND coalesce(shift > lag(shift) OVER positions, true) AS orderly
            FROM {contiguous}
            WINDOW positions AS (PARTITION BY k, response_seq ORDER BY first_position, shift)
        )
        GROUP BY k, response_seq
    """)


def _readings(inputs: Inputs) -> DataFrame:
    """The rows of `fetches` with their deliveries; `brought` is 0 without any."""
    return inputs.sql("""
        SELECT f.run, f.k, f.topic, f.topic_id, f.partition, f.response_seq, f.connection,
               f.read_span, f.start, f.`group`, f.member, f.candidates, f.error,
               coalesce(f.isolation_level, 0) = 1 AS committed,
               f.fetch_offset, f.next_offset, f.last_stable_offset,
               coalesce(a.n, 0) AS brought, a.lo, a.hi, a.orderly,
               coalesce(a.low, 0) AS low, coalesce(a.high, 0) AS high
        FROM {fetches} f
        LEFT JOIN {answers} a ON a.k = f.k AND a.response_seq = f.response_seq
    """)


def _pairs(inputs: Inputs) -> DataFrame:
    """Answers without an error, each with the one before it for comparison."""
    return inputs.sql("""
        SELECT run, k, topic, topic_id, partition, connection, committed, fetch_offset, lo,
               IF(jumped, connection_next, span_next) AS expected,
               IF(jumped, 'report', 'bug') AS verdict, response_seq,
               IF(jumped, connection_seq, span_seq) AS before_seq
        FROM (
            SELECT *, coalesce(start = 'jump', false) AS jumped,
                   lag(next_offset) OVER by_connection AS connection_next,
                   lag(response_seq) OVER by_connection AS connection_seq,
                   lag(next_offset) OVER by_span AS span_next,
                   lag(response_seq) OVER by_span AS span_seq
            FROM {readings} WHERE error IS NULL
            WINDOW by_connection AS (PARTITION BY k, connection ORDER BY response_seq),
                   by_span AS (PARTITION BY k, read_span ORDER BY response_seq)
        )
        WHERE IF(jumped, connection_seq, span_seq) IS NOT NULL
    """)
