"""Writes of producers: `lost_write`, `non_monotonic_send` and `zombie_write`, from the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.pipeline.findings import WIRE
from mockbroker.pipeline.spark.audit.facts import excused_by_expiration, findings, no_findings
from mockbroker.pipeline.spark.audit.values import sent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs


def lost_write(inputs: Inputs) -> DataFrame:
    """Acknowledged records that left the log for an unwanted reason."""
    if not inputs.has("removals"):
        return no_findings(inputs)
    found = inputs.sql("""
        WITH gone AS (
            SELECT r.run, r.k, r.topic, r.topic_id, r.partition, r.offset, r.append_seq,
                   min(struct(u.seq, u.cause, u.reason)) AS removal
            FROM {records} r
            JOIN {unwanted} u ON u.k = r.k AND u.seq > r.append_seq
                AND r.offset BETWEEN u.first_offset AND u.last_offset
            GROUP BY r.run, r.k, r.topic, r.topic_id, r.partition, r.offset, r.append_seq
        )
        SELECT g.run, g.topic, g.topic_id, g.partition, g.offset,
               concat('client:', coalesce(b.client_id, '')) AS subject,
               IF(e.excuse IS NULL, 'bug', 'report') AS verdict,
               g.append_seq AS first_seq, g.removal.seq AS last_seq, e.excuse AS rule,
               to_json(named_struct('reason', g.removal.reason)) AS details
        FROM gone g
        LEFT SEMI JOIN {acks} a ON a.k = g.k AND a.append_seq = g.append_seq
            AND g.offset BETWEEN a.lo AND a.hi AND a.since_seq < g.removal.seq
        LEFT ANTI JOIN {removals} w ON w.k = g.k AND w.seq > g.append_seq
            AND w.seq < g.removal.seq AND g.offset BETWEEN w.first_offset AND w.last_offset
        LEFT JOIN {excused} e ON e.k = g.k AND e.append_seq = g.append_seq
            AND e.offset = g.offset
        LEFT JOIN {batches} b ON b.k = g.k AND b.append_seq = g.append_seq
    """)
    return findings(found, "lost_write", WIRE)


def non_monotonic_send(inputs: Inputs) -> DataFrame:
    """Batches of one producer in another order than their sequences."""
    inputs.derive("sent", sent)
    found = inputs.sql("""
        SELECT run, k, topic, topic_id, partition, base_offset AS offset,
               concat('producer:', producer_id) AS subject, 'bug' AS verdict,
               producer_id, append_seq, before_append AS former_append,
               least(append_seq, before_append) AS first_seq,
               greatest(append_seq, before_append) AS last_seq,
               to_json(named_struct('base_sequence', base_sequence,
                                    'before', before_sequence)) AS details
        FROM (
            SELECT *, lag(base_sequence) OVER line AS before_sequence,
                   lag(records) OVER line AS before_records,
                   lag(append_seq) OVER line AS before_append
            FROM {sent}
            WINDOW line AS (
                PARTITION BY k, producer_id, producer_epoch ORDER BY base_offset, append_seq
            )
        )
        WHERE base_sequence < before_sequence
          AND CAST(before_sequence AS bigint) + before_records < 2147483648
    """)
    return findings(excused_by_expiration(inputs, found), "non_monotonic_send", WIRE)


def zombie_write(inputs: Inputs) -> DataFrame:
    """Writes of a producer whose id already had a higher epoch."""
    found = inputs.sql("""
        SELECT b.run, b.topic, b.topic_id, b.partition, b.base_offset AS offset,
               concat('producer:', b.producer_id) AS subject,
               IF(b.append_seq IS NULL OR v.append_seq IS NOT NULL OR o.append_seq IS NOT NULL,
                  'report', 'bug') AS verdict,
               min(t.seq) AS first_seq, b.decided AS last_seq,
               to_json(named_struct('epoch', b.producer_epoch, 'error', b.error)) AS details
        FROM (SELECT *, coalesce(append_seq, seq) AS decided FROM {batches}
              WHERE append_seq IS NOT NULL OR error IS NOT NULL) b
        JOIN {transactions} t ON t.run = b.run AND t.producer_id = b.producer_id
            AND t.producer_epoch > b.producer_epoch AND t.seq < b.decided
        LEFT JOIN {diverging} v ON v.k = b.k AND v.append_seq = b.append_seq
        LEFT JOIN {aborted} o ON o.k = b.k AND o.append_seq = b.append_seq
        GROUP BY b.run, b.topic, b.topic_id, b.partition, b.base_offset, b.producer_id,
                 b.append_seq, v.append_seq, o.append_seq, b.decided, b.producer_epoch, b.error
    """)
    return findings(found, "zombie_write", WIRE)
