"""Transactions that ended differently in different partitions: `torn_transaction`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.pipeline.findings import WIRE
from mockbroker.pipeline.spark.audit.facts import findings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs


def torn_transaction(inputs: Inputs) -> DataFrame:
    """Ended transactions with a commit marker in some of their partitions only."""
    found = inputs.sql("""
        WITH ended AS (
            SELECT run, transaction, max(seq) AS seq, max_by(state, seq) AS state
            FROM {transactions} WHERE transaction IS NOT NULL
            GROUP BY run, transaction
            HAVING state IN ('CompleteCommit', 'CompleteAbort')
        ), parts AS (
            SELECT b.run, b.transaction, b.k, min(b.append_seq) AS append_seq
            FROM {batches} b
            LEFT ANTI JOIN {removals} x ON x.k = b.k AND x.reason = 'topic_deleted'
            WHERE b.transaction IS NOT NULL AND b.append_seq IS NOT NULL
            GROUP BY b.run, b.transaction, b.k
        ), marked AS (
            SELECT run, transaction, k, max(seq) AS seq, bool_or(committed) AS committed
            FROM {markers} GROUP BY run, transaction, k
        ), last_markers AS (
            SELECT run, transaction, max(seq) AS seq FROM marked GROUP BY run, transaction
        ), began AS (
            SELECT run, transaction, min(append_seq) AS seq FROM {batches}
            WHERE append_seq IS NOT NULL GROUP BY run, transaction
        ), verdicts AS (
            SELECT p.run, p.transaction,
                   count_if(coalesce(m.committed, false)) AS committed,
                   count_if(NOT coalesce(m.committed, false)) AS others
            FROM parts p
            LEFT JOIN marked m
              ON m.run = p.run AND m.transaction = p.transaction AND m.k = p.k
            GROUP BY p.run, p.transaction
        )
        SELECT v.run, v.transaction AS subject, 'bug' AS verdict, g.seq AS first_seq,
               greatest(e.seq, l.seq) AS last_seq,
               to_json(named_struct('committed_partitions', v.committed,
                                    'other_partitions', v.others)) AS details
        FROM verdicts v
        JOIN ended e ON e.run = v.run AND e.transaction = v.transaction
        JOIN began g ON g.run = v.run AND g.transaction = v.transaction
        LEFT JOIN last_markers l ON l.run = v.run AND l.transaction = v.transaction
        WHERE v.committed > 0 AND v.others > 0
    """)
    return findings(found, "torn_transaction", WIRE)
