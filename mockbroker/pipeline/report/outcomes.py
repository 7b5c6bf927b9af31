"""The outcome of each rule: found, clean, undecided, or not applicable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from mockbroker.pipeline.findings import ANOMALIES, APPLICATION, BUG, REPORT, UNDECIDED, Finding
from mockbroker.pipeline.report.model import (
    BUGS,
    LEVELS,
    NOT_APPLICABLE,
    NOTHING,
    REPORTS,
    UNKNOWN,
    JournalGap,
    RuleOutcome,
    is_unattributed,
    is_without_id,
)
from mockbroker.pipeline.store import RunManifest

# Rule -> SQL conditions for its subjects, as (table, condition). One of them must hold.
MATERIAL: Mapping[str, tuple[tuple[str, str], ...]] = {
    "inconsistent_offset": (("records", ""), ("deliveries", "")),
    "duplicate": (("records", ""),),
    "lost_write": (("batches", "acknowledged"), ("operations", "op = 'acked'")),
    "aborted_read": (("fetches", "isolation_level = 1"),),
    "dirty_read": (("fetches", "isolation_level = 1"),),
    "torn_transaction": (("transactions", "transaction IS NOT NULL"),),
    "skip": (("fetches", ""),),
    "non_monotonic_poll": (("fetches", ""),),
    "non_monotonic_send": (("batches", "producer_id IS NOT NULL"), ("operations", "op = 'send'")),
    "commit_regression": (("commits", ""),),
    "committed_not_read": (("commits", "member IS NOT NULL"),),
    "read_again": (("fetches", '"group" IS NOT NULL'),),
    "zombie_write": (("batches", "producer_id IS NOT NULL"),),
    "zombie_commit": (("commits", ""),),
    "delivered_above_limit": (("share_records", ""),),
    "delivered_again": (("share_records", ""),),
    "acquired_twice": (("share_records", ""),),
    "archived_unprocessed": (("share_records", ""),),
    "passed_over": (("share_starts", ""),),
    "watermark_order": (("watermarks", ""),),
    "watermark_back": (("watermarks", "high_watermark IS NOT NULL"),),
    "committed_not_processed": (("operations", "op = 'processed'"),),
    "processed_again": (("operations", "op = 'processed'"),),
}

_SHARED = "members that share a client id may have read it"
_ALIKE = "records without an id have the key and value of another"

# Condition on a table -> the reason why a rule is not applicable without it.
_LACKING = {
    "records": "nothing was produced",
    "batches": "no such batch was produced",
    "fetches": "there was no Fetch",
    "commits": "nothing was committed",
    "share_records": "no share group fetched",
    "share_starts": "there was no share group",
    "transactions": "there was no transaction",
    "watermarks": "no watermark was reported",
    "operations": "there are no operations of an application",
}


def outcomes(
    findings: Sequence[Finding],
    has_material: Mapping[str, bool],
    has_operations: bool,
    gaps: Sequence[JournalGap],
    runs: Sequence[RunManifest],
) -> list[RuleOutcome]:
    """An outcome for every rule, in the order of ANOMALIES."""
    counts = Counter((finding.anomaly, finding.verdict) for finding in findings)
    lacking = _missing_evidence(gaps, runs)
    unnamed = any(is_without_id(finding) for finding in findings)
    unattributed = any(is_unattributed(finding) for finding in findings)
    found = []
    for anomaly in ANOMALIES:
        bugs, reports, undecided = (counts[anomaly, v] for v in (BUG, REPORT, UNDECIDED))
        levels = tuple(
            level
            for level in LEVELS.get(anomaly, ("wire",))
            if has_operations or level != APPLICATION
        )
        why = lacking
        if unnamed and anomaly == "duplicate":
            why = _ALIKE
        elif unattributed and anomaly == "committed_not_read":
            why = _SHARED
        outcome, why = _outcome(bugs, reports, undecided, why)
        if not (bugs or reports or undecided or has_material[anomaly]):
            outcome, why = NOT_APPLICABLE, _why_not_applicable(anomaly)
        found.append(RuleOutcome(anomaly, outcome, bugs, reports, undecided, levels, why))
    return found


def _outcome(bugs: int, reports: int, undecided: int, lacking: str) -> tuple[str, str]:
    if bugs:
        return BUGS, lacking
    if undecided:
        return UNKNOWN, lacking or "a gap of the journal lies within the evidence"
    if reports:
        return REPORTS, lacking
    if lacking:
        return UNKNOWN, lacking
    return NOTHING, ""


def _missing_evidence(gaps: Sequence[JournalGap], runs: Sequence[RunManifest]) -> str:
    """The reason why an anomaly without a finding may have occurred."""
    if gaps:
        return "the journal has gaps: there may be more"
    if any(not run.complete for run in runs):
        return "a run is not complete: there may be more"
    return ""


def _why_not_applicable(anomaly: str) -> str:
    table, condition = MATERIAL[anomaly][0]
    if condition == "isolation_level = 1":
        return "there was no read_committed Fetch"
    if condition == "producer_id IS NOT NULL":
        return "no producer was idempotent"
    if condition == '"group" IS NOT NULL':
        return "no group fetched"
    return _LACKING[table]
