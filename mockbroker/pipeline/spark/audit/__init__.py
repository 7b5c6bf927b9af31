"""The audit as a Spark job: docs/explanation/audit.md, rule by rule.

A rule is a function from the inputs to a DataFrame of findings; `RULES` has them all, by anomaly.
`audit` runs them one after the other, because they share inputs, and drops equal findings of two
rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from mockbroker.pipeline.findings import ANOMALIES
from mockbroker.pipeline.spark.audit import (
    applications,
    commits,
    facts,
    index,
    reads,
    shares,
    transactions,
    values,
    watermarks,
    writes,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs

AuditRule = Callable[["Inputs"], "DataFrame"]
Progress = Callable[[str, int], None]

RULES: Mapping[str, tuple[AuditRule, ...]] = {
    "inconsistent_offset": (values.inconsistent_offset,),
    "duplicate": (values.duplicate,),
    "lost_write": (writes.lost_write, applications.lost_acknowledged),
    "aborted_read": (reads.aborted_read,),
    "dirty_read": (reads.dirty_read,),
    "torn_transaction": (transactions.torn_transaction,),
    "skip": (reads.skip,),
    "non_monotonic_poll": (reads.non_monotonic_poll,),
    "non_monotonic_send": (writes.non_monotonic_send, applications.sent_out_of_order),
    "commit_regression": (commits.commit_regression,),
    "committed_not_read": (commits.committed_not_read,),
    "read_again": (reads.read_again,),
    "zombie_write": (writes.zombie_write,),
    "zombie_commit": (commits.zombie_commit,),
    "delivered_above_limit": (shares.delivered_above_limit,),
    "delivered_again": (shares.delivered_again,),
    "acquired_twice": (shares.acquired_twice,),
    "archived_unprocessed": (shares.archived_unprocessed,),
    "passed_over": (shares.passed_over,),
    "watermark_order": (watermarks.watermark_order,),
    "watermark_back": (watermarks.watermark_back,),
    "committed_not_processed": (applications.committed_not_processed,),
    "processed_again": (applications.processed_again,),
}


def audit(
    inputs: Inputs,
    anomalies: Iterable[str] = tuple(ANOMALIES),
    progress: Progress | None = None,
) -> DataFrame:
    """The findings of all runs, with the columns of `Finding`; computed now.

    `progress` is called with each anomaly and its number of findings. Raises KeyError for an
    unknown anomaly.
    """
    chosen = {anomaly: RULES[anomaly] for anomaly in anomalies}
    facts.prepare(inputs)
    index.prepare(inputs)
    found = [facts.no_findings(inputs)]
    for anomaly, rules in chosen.items():
        rows = reduce(lambda one, other: one.unionByName(other), (rule(inputs) for rule in rules))
        rows = inputs.checkpoint(rows, f"findings of {anomaly}")
        count = inputs.rows(f"findings of {anomaly}")
        if count:
            found.append(rows)
        if progress is not None:
            progress(anomaly, count)
    return _judged_over_gaps(inputs, reduce(lambda one, other: one.unionByName(other), found))


def _judged_over_gaps(inputs: Inputs, found: DataFrame) -> DataFrame:
    """The findings, undecided where a gap of the journal lies within the evidence."""
    if not inputs.has("gaps"):
        return found
    columns = ", ".join(
        "'undecided' AS verdict" if name == "verdict" else f"f.`{name}`" for name in found.columns
    )
    within = "g.run = f.run AND g.first_seq <= f.last_seq AND g.last_seq >= f.first_seq"
    return inputs.sql(
        f"""
        SELECT {columns} FROM {{found}} f LEFT SEMI JOIN {{gaps}} g ON {within}
        UNION ALL
        SELECT f.* FROM {{found}} f LEFT ANTI JOIN {{gaps}} g ON {within}
        """,
        found=found,
    )
