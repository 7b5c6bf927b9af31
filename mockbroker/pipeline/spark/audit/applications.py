"""The operations of applications, compared with the journal.

An application names topics, not topic ids. A name that several topics had is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.pipeline.findings import APPLICATION
from mockbroker.pipeline.spark.audit.facts import findings, no_findings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs


def _claims(inputs: Inputs) -> DataFrame:
    """Operations on topics whose name only one topic ever had."""
    return inputs.sql("""
        SELECT o.* FROM {operations} o
        LEFT ANTI JOIN (
            SELECT run, topic FROM {records}
            GROUP BY run, topic HAVING min(topic_id) <> max(topic_id)
        ) t ON t.run = o.run AND t.topic = o.topic
    """)


def lost_acknowledged(inputs: Inputs) -> DataFrame:
    """`lost_write`: records acknowledged by an application's log that no broker's log ever had."""
    if not inputs.has("operations"):
        return no_findings(inputs)
    inputs.derive("claims", _claims, checkpoint=True)
    found = inputs.sql("""
        WITH acked AS (SELECT * FROM {claims} WHERE op = 'acked'), nowhere AS (
            SELECT * FROM acked a
            LEFT ANTI JOIN {records} r ON r.run = a.run AND r.topic = a.topic
                AND r.partition = a.partition AND r.offset = a.offset
            WHERE a.offset IS NOT NULL
            UNION ALL
            SELECT * FROM acked a
            LEFT ANTI JOIN {records} r ON r.run = a.run AND r.topic = a.topic AND r.id = a.id
            WHERE a.offset IS NULL AND a.id IS NOT NULL
        )
        SELECT n.run, n.topic, n.partition, n.offset, n.process AS subject,
               IF(g.run IS NULL, 'bug', 'undecided') AS verdict,
               to_json(named_struct('id', n.id)) AS details
        FROM nowhere n
        LEFT JOIN (SELECT DISTINCT run FROM {gaps}) g ON g.run = n.run
    """)
    return findings(found, "lost_write", APPLICATION)


def sent_out_of_order(inputs: Inputs) -> DataFrame:
    """`non_monotonic_send`: a record that was sent later has a lower offset."""
    if not inputs.has("operations"):
        return no_findings(inputs)
    inputs.derive("claims", _claims, checkpoint=True)
    found = inputs.sql("""
        WITH sends AS (
            SELECT run, process, topic, id, min(seq) AS sent
            FROM {claims} WHERE op = 'send' AND id IS NOT NULL
            GROUP BY run, process, topic, id
        ), places AS (
            SELECT s.process, s.sent, r.run, r.k, r.topic, r.topic_id, r.partition, r.id,
                   min(struct(r.offset, r.append_seq)) AS at
            FROM {records} r
            JOIN sends s ON s.run = r.run AND s.topic = r.topic AND s.id = r.id
            LEFT ANTI JOIN {aborted} a ON a.k = r.k AND a.append_seq = r.append_seq
            LEFT ANTI JOIN {diverging} v ON v.k = r.k AND v.append_seq = r.append_seq
            LEFT ANTI JOIN {unwanted} u ON u.k = r.k AND u.seq > r.append_seq
                AND r.offset BETWEEN u.first_offset AND u.last_offset
            GROUP BY s.process, s.sent, r.run, r.k, r.topic, r.topic_id, r.partition, r.id
        ), steps AS (
            SELECT *, lag(sent) OVER line AS sent_before, lag(at.append_seq) OVER line AS other
            FROM places
            WINDOW line AS (PARTITION BY process, k ORDER BY at.offset, at.append_seq, sent)
        )
        SELECT s.run, s.topic, s.topic_id, s.partition, s.at.offset AS offset,
               s.process AS subject,
               IF(b.producer_id IS NULL OR f.producer_id IS NULL, 'report', 'bug') AS verdict,
               least(s.at.append_seq, s.other) AS first_seq,
               greatest(s.at.append_seq, s.other) AS last_seq,
               to_json(named_struct('id', s.id)) AS details
        FROM steps s
        LEFT JOIN {batches} b ON b.k = s.k AND b.append_seq = s.at.append_seq
        LEFT JOIN {batches} f ON f.k = s.k AND f.append_seq = s.other
        WHERE s.sent < s.sent_before
    """)
    return findings(found, "non_monotonic_send", APPLICATION)


def committed_not_processed(inputs: Inputs) -> DataFrame:
    """Unprocessed records below the last committed offset of a group."""
    if not inputs.has("operations"):
        return no_findings(inputs)
    inputs.derive("claims", _claims, checkpoint=True)
    inputs.derive("work", _work, checkpoint=True)
    found = inputs.sql("""
        SELECT r.run, r.topic, r.topic_id, r.partition, r.offset, w.`group` AS subject,
               'report' AS verdict, least(r.append_seq, w.seq) AS first_seq,
               greatest(r.append_seq, w.seq) AS last_seq,
               to_json(named_struct('committed', w.committed)) AS details
        FROM {records} r
        JOIN {work} w ON w.k = r.k AND r.offset >= w.began AND r.offset < w.committed
        LEFT ANTI JOIN {aborted} a ON a.k = r.k AND a.append_seq = r.append_seq
        LEFT ANTI JOIN {diverging} v ON v.k = r.k AND v.append_seq = r.append_seq
        LEFT ANTI JOIN {removals} x ON x.k = r.k AND x.seq > r.append_seq AND x.seq < w.seq
            AND r.offset BETWEEN x.first_offset AND x.last_offset
        LEFT ANTI JOIN (SELECT * FROM {claims} WHERE op = 'processed') p
            ON p.run = r.run AND p.`group` = w.`group` AND p.topic = r.topic
            AND p.partition = r.partition AND p.offset = r.offset
    """)
    return findings(found, "committed_not_processed", APPLICATION)


def _work(inputs: Inputs) -> DataFrame:
    """The first and the last committed offset of each group that processes a partition."""
    return inputs.sql("""
        WITH processed AS (
            SELECT run, `group`, topic, partition, min(offset) AS lowest
            FROM {claims} WHERE op = 'processed' AND offset IS NOT NULL
            GROUP BY run, `group`, topic, partition
        ), commits AS (
            SELECT run, `group`, topic, partition, k, max(struct(seq, offset)) AS last
            FROM {commits} WHERE applied AND offset IS NOT NULL
            GROUP BY run, `group`, topic, partition, k
        ), asked AS (
            SELECT `group`, k, min(fetch_offset) AS lowest FROM {readings}
            WHERE `group` IS NOT NULL GROUP BY `group`, k
        )
        SELECT c.`group`, c.k, c.last.seq AS seq, c.last.offset AS committed,
               coalesce(a.lowest, p.lowest) AS began
        FROM processed p
        JOIN commits c ON c.run = p.run AND c.`group` = p.`group` AND c.topic = p.topic
            AND c.partition = p.partition
        LEFT JOIN asked a ON a.`group` = c.`group` AND a.k = c.k
    """)


def processed_again(inputs: Inputs) -> DataFrame:
    """Records that a group processed several times."""
    if not inputs.has("operations"):
        return no_findings(inputs)
    inputs.derive("claims", _claims, checkpoint=True)
    found = inputs.sql("""
        SELECT run, topic, partition, offset, `group` AS subject, 'report' AS verdict,
               to_json(named_struct('times', count(*))) AS details
        FROM {claims}
        WHERE op = 'processed' AND offset IS NOT NULL AND `group` IS NOT NULL
        GROUP BY run, topic, partition, offset, `group` HAVING count(*) > 1
    """)
    return findings(found, "processed_again", APPLICATION)
