"""The laws of watermarks: `watermark_order` and `watermark_back`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.pipeline.findings import WIRE
from mockbroker.pipeline.spark.audit.facts import findings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs

MARKS = ("log_start_offset", "last_stable_offset", "high_watermark", "log_end_offset")


def order_broken(alias: str = "") -> str:
    """SQL for the first known mark below the known one before it; null if all are in order."""
    prefix = f"{alias}." if alias else ""
    cases = []
    for number, mark in enumerate(MARKS[1:], 1):
        before = ", ".join(f"{prefix}{name}" for name in reversed(MARKS[:number]))
        former = f"coalesce({before})" if number > 1 else before
        cases.append(f"WHEN {prefix}{mark} < {former} THEN {prefix}{mark}")
    return f"CASE {' '.join(cases)} END"


def watermark_order(inputs: Inputs) -> DataFrame:
    """Rows in which the marks of a log are out of order."""
    found = inputs.sql(f"""
        SELECT run, topic, topic_id, partition, offset, concat('broker:', broker) AS subject,
               IF(cause IS NULL, 'bug', 'report') AS verdict, seq AS first_seq, seq AS last_seq,
               cause AS rule, details
        FROM (
            SELECT *, {order_broken()} AS offset,
                   to_json(struct({", ".join(MARKS)})) AS details
            FROM {{watermarks}}
        )
        WHERE offset IS NOT NULL
    """)
    return findings(found, "watermark_order", WIRE)


def watermark_back(inputs: Inputs) -> DataFrame:
    """High watermarks that decreased within a leader epoch."""
    found = inputs.sql("""
        SELECT run, topic, topic_id, partition, high_watermark AS offset,
               concat('broker:', broker) AS subject,
               IF(cause IS NULL, 'bug', 'report') AS verdict, before_seq AS first_seq,
               seq AS last_seq, cause AS rule,
               to_json(named_struct('before', before, 'leader_epoch', leader_epoch)) AS details
        FROM (
            SELECT *, lag(high_watermark) OVER line AS before, lag(seq) OVER line AS before_seq
            FROM {watermarks}
            WHERE high_watermark IS NOT NULL AND leader_epoch IS NOT NULL
            WINDOW line AS (PARTITION BY k, broker, leader_epoch ORDER BY seq)
        )
        WHERE high_watermark < before
    """)
    return findings(found, "watermark_back", WIRE)
