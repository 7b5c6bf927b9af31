"""Values at offsets: `inconsistent_offset` and `duplicate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.pipeline.findings import WIRE, WITHOUT_ID
from mockbroker.pipeline.spark.audit.facts import excused_by_expiration, findings, no_findings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs


def inconsistent_offset(inputs: Inputs) -> DataFrame:
    """One offset with several values, over acknowledged records and all deliveries.

    Answers that are not doubtful brought the values of the records, and offsets that are not reused
    have one record each. Only doubtful answers and reused offsets can therefore have a second
    value.
    """
    inputs.derive("suspects", _suspects, checkpoint=True)
    if not inputs.rows("suspects"):
        return no_findings(inputs)
    found = inputs.sql("""
        WITH reported AS (
            SELECT r.run, r.k, r.topic, r.topic_id, r.partition, r.offset, r.value_hash,
                   r.append_seq AS seq, e.excuse IS NOT NULL AS forgiven
            FROM {records} r
            LEFT JOIN {excused} e ON e.k = r.k AND e.offset = r.offset
                AND e.append_seq = r.append_seq
            LEFT SEMI JOIN {suspects} s ON s.k = r.k AND s.offset = r.offset
            LEFT SEMI JOIN {acks} a ON a.k = r.k AND a.append_seq = r.append_seq
                AND r.offset BETWEEN a.lo AND a.hi
            UNION ALL
            SELECT d.run, d.k, d.topic, d.topic_id, d.partition, d.offset, d.value_hash,
                   d.response_seq AS seq, e.k IS NOT NULL AS forgiven
            FROM {deliveries} d
            LEFT SEMI JOIN {suspects} s ON s.k = d.k AND s.offset = d.offset
            LEFT JOIN (
                -- Delivered, a record is promised, with acks=1 as well.
                SELECT DISTINCT k, offset, value_hash FROM {excused} WHERE excuse <> 'acks=1'
            ) e ON e.k = d.k AND e.offset = d.offset AND e.value_hash = d.value_hash
        ), found AS (
            SELECT run, k, topic, topic_id, partition, offset,
                   min(seq) AS first_seq, max(seq) AS last_seq,
                   coalesce(min(value_hash) FILTER (WHERE NOT forgiven)
                            <> max(value_hash) FILTER (WHERE NOT forgiven), false) AS is_bug,
                   to_json(named_struct('values', sort_array(collect_set(value_hash)))) AS details
            FROM reported
            GROUP BY run, k, topic, topic_id, partition, offset
            HAVING min(value_hash) <> max(value_hash)
        )
        SELECT f.*, IF(is_bug, 'bug', 'report') AS verdict, IF(is_bug, NULL, e.excuse) AS rule
        FROM found f
        LEFT JOIN (
            SELECT k, offset, min_by(excuse, append_seq) AS excuse
            FROM {excused} GROUP BY k, offset
        ) e ON e.k = f.k AND e.offset = f.offset
    """)
    return findings(found, "inconsistent_offset", WIRE)


def _suspects(inputs: Inputs) -> DataFrame:
    """Offsets with several values among doubtful answers and their records."""
    if not inputs.rows("doubtful") and not inputs.rows("reused"):
        return inputs.sql("SELECT k, offset FROM {deliveries} WHERE false")
    inputs.derive("looked_at", _looked_at)
    return inputs.sql("""
        SELECT k, offset
        FROM (
            SELECT k, offset, value_hash FROM {doubtful_deliveries}
            UNION ALL
            SELECT r.k, r.offset, r.value_hash FROM {records} r
            LEFT SEMI JOIN {looked_at} o ON o.k = r.k AND o.offset = r.offset
            UNION ALL
            SELECT r.k, r.offset, r.value_hash FROM {records} r
            LEFT SEMI JOIN {reused} u ON u.k = r.k AND r.offset BETWEEN u.lo AND u.hi
        )
        GROUP BY k, offset HAVING min(value_hash) <> max(value_hash)
    """)


def _looked_at(inputs: Inputs) -> DataFrame:
    return inputs.sql("SELECT DISTINCT k, offset FROM {doubtful_deliveries}")


def duplicate(inputs: Inputs) -> DataFrame:
    """One id at several offsets of a topic, or one batch of a producer appended twice; and, counted
    by topic, records without an id that have the key and value of another.
    """
    inputs.derive("alike", _alike, checkpoint=True)
    found = excused_by_expiration(inputs, _by_sequence(inputs).unionByName(_by_id(inputs)))
    found = found.unionByName(_by_value(inputs), allowMissingColumns=True)
    return findings(found, "duplicate", WIRE)


def _alike(inputs: Inputs) -> DataFrame:
    """Records with the id of another in their topic or, without an id, with its key and value, that
    are neither aborted nor removed nor diverging.

    They are compared by hashes, because one number shuffles faster.
    """
    twin = "xxhash64(run, topic_id, id, IF(id IS NULL, value_hash, NULL))"
    return inputs.sql(f"""
        WITH twins AS (
            SELECT twin FROM (SELECT {twin} AS twin FROM {{records}})
            GROUP BY twin HAVING count(*) > 1
        )
        SELECT r.run, r.k, r.topic, r.topic_id, r.partition, r.offset, r.id, r.value_hash,
               r.append_seq
        FROM (SELECT *, {twin} AS twin FROM {{records}}) r
        LEFT SEMI JOIN twins t ON t.twin = r.twin
        LEFT ANTI JOIN {{aborted}} a ON a.k = r.k AND a.append_seq = r.append_seq
        LEFT ANTI JOIN {{diverging}} v ON v.k = r.k AND v.append_seq = r.append_seq
        LEFT ANTI JOIN {{unwanted}} u ON u.k = r.k AND u.seq > r.append_seq
            AND r.offset BETWEEN u.first_offset AND u.last_offset
    """)


def _by_id(inputs: Inputs) -> DataFrame:
    return inputs.sql("""
        WITH named AS (
            SELECT run, k, topic, topic_id, partition, offset, id, min(append_seq) AS append_seq
            FROM {alike} WHERE id IS NOT NULL
            GROUP BY run, k, topic, topic_id, partition, offset, id
        ), ordered AS (
            SELECT n.*, b.producer_id, b.producer_epoch, row_number() OVER same AS number,
                   first_value(b.producer_id) OVER same AS first_producer,
                   first_value(b.producer_epoch) OVER same AS first_epoch,
                   first_value(n.offset) OVER same AS first_offset,
                   first_value(n.append_seq) OVER same AS first_append,
                   lag(n.append_seq) OVER own AS former_append
            FROM named n
            LEFT JOIN {batches} b ON b.k = n.k AND b.append_seq = n.append_seq
            WINDOW same AS (
                PARTITION BY n.run, n.topic_id, n.id ORDER BY n.append_seq, n.partition, n.offset
            ), own AS (
                PARTITION BY n.k, n.id, b.producer_id, b.producer_epoch
                ORDER BY n.append_seq, n.offset
            )
        )
        SELECT run, k, topic, topic_id, partition, offset, concat('id:', id) AS subject,
               IF(producer_id = first_producer AND producer_epoch <=> first_epoch,
                  'bug', 'report') AS verdict,
               producer_id, append_seq, former_append,
               least(append_seq, first_append) AS first_seq,
               greatest(append_seq, first_append) AS last_seq,
               to_json(named_struct('first_offset', first_offset)) AS details
        FROM ordered WHERE number > 1
    """)


def _by_value(inputs: Inputs) -> DataFrame:
    return inputs.sql(f"""
        SELECT run, min(topic) AS topic, topic_id, CAST(NULL AS int) AS partition,
               CAST(NULL AS bigint) AS offset, concat('{WITHOUT_ID}', sum(copies)) AS subject,
               'undecided' AS verdict, min(first_seq) AS first_seq, max(last_seq) AS last_seq,
               CAST(NULL AS string) AS details
        FROM (
            SELECT run, topic_id, value_hash, min(topic) AS topic,
                   count(DISTINCT k, offset) - 1 AS copies,
                   min(append_seq) AS first_seq, max(append_seq) AS last_seq
            FROM {{alike}} WHERE id IS NULL
            GROUP BY run, topic_id, value_hash
        )
        WHERE copies > 0
        GROUP BY run, topic_id
    """)


def _by_sequence(inputs: Inputs) -> DataFrame:
    inputs.derive("sent", sent)
    return inputs.sql("""
        SELECT run, k, topic, topic_id, partition, base_offset AS offset,
               concat('producer:', producer_id) AS subject, 'bug' AS verdict,
               producer_id, append_seq, former_append,
               least(append_seq, first_append) AS first_seq,
               greatest(append_seq, first_append) AS last_seq,
               to_json(named_struct('first_offset', first_offset,
                                    'base_sequence', base_sequence)) AS details
        FROM (
            SELECT *, first_value(base_offset) OVER same AS first_offset,
                   first_value(append_seq) OVER same AS first_append,
                   row_number() OVER same AS number, lag(append_seq) OVER own AS former_append
            FROM {sent}
            WINDOW same AS (
                PARTITION BY k, producer_id, producer_epoch, base_sequence
                ORDER BY base_offset, append_seq
            ), own AS (
                PARTITION BY k, producer_id, producer_epoch, base_sequence ORDER BY append_seq
            )
        )
        WHERE number > 1
    """)


def sent(inputs: Inputs) -> DataFrame:
    """Appended batches with a sequence that do not diverge and whose first record stayed."""
    return inputs.sql("""
        SELECT b.* FROM {batches} b
        LEFT ANTI JOIN {diverging} v ON v.k = b.k AND v.append_seq = b.append_seq
        LEFT ANTI JOIN {unwanted} u ON u.k = b.k AND u.seq > b.append_seq
            AND b.base_offset BETWEEN u.first_offset AND u.last_offset
        WHERE b.append_seq IS NOT NULL AND b.producer_id IS NOT NULL AND b.base_sequence >= 0
    """)
