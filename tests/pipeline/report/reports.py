"""Reports for tests: of a handmade journal, and of plain data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mockbroker.pipeline.duck import judge, open_session
from mockbroker.pipeline.findings import ANOMALIES, Finding
from mockbroker.pipeline.report.build import build_report
from mockbroker.pipeline.report.model import JournalGap, Report
from mockbroker.pipeline.report.outcomes import outcomes
from mockbroker.pipeline.store import RunManifest, open_store
from mockbroker.pipeline.write import TableWriter
from tests.pipeline.duck.journal import Journal

HOSTILE = "<script>alert(1)</script>\"'&]]>\x1b[31m\u202e\x00"


def write(journal: Journal, directory: Path, run: str = "r", *, complete: bool = True) -> Path:
    """The journal's tables as a run in a directory."""
    writer = TableWriter(directory, run, cluster_id="a-cluster")
    for table, rows in journal.tables.items():
        writer.rows(table, rows)
    writer.close(complete=complete, reason="" if complete else "killed")
    return directory


def report_of(journal: Journal, directory: Path, *, complete: bool = True) -> Report:
    """The report about a journal."""
    store = open_store(write(journal, directory, complete=complete))
    with open_session(store) as session:
        return build_report(store, session, judge(session), engine="DuckDB")


def finding(anomaly: str = "lost_write", verdict: str = "bug", **columns: Any) -> Finding:
    """A finding, with what a test does not care about filled in."""
    known: dict[str, Any] = {
        "run": "r", "anomaly": anomaly, "verdict": verdict, "level": "wire", "topic": "t",
        "topic_id": "id-t", "partition": 0, "offset": 7, "subject": "client:c", "first_seq": 10,
        "last_seq": 20,
    }  # fmt: skip
    return Finding(**{**known, **columns})


def plain_report(
    *findings: Finding, gaps: tuple[JournalGap, ...] = (), complete: bool = True, lacking: str = ""
) -> Report:
    """A report of plain data; of the rule `lacking` there was nothing to judge."""
    runs = [RunManifest("r", complete=complete, last_seq=100)]
    material = {anomaly: anomaly != lacking for anomaly in ANOMALIES}
    return Report(
        source="a-directory",
        engine="DuckDB",
        runs=runs,
        gaps=gaps,
        outcomes=outcomes(findings, material, False, gaps, runs),
        findings=findings,
    )


def lossy() -> Journal:
    """A rule makes an election unclean, and an acknowledged record is gone."""
    journal = Journal()
    times = {"virtual_ms": 1_700_000_000_000, "real_ns": 5}
    journal.row("faults", seq=8, kind="fault", change="elect_unclean", rules=["bad-night"], **times)
    journal.batch(10, 0, 2, ids=["a", "b"], **times)
    journal.fetch(15, 0, 1, group="g", member="m", **times)
    journal.commit(17, 1, **times)
    journal.removal(20, 1, 1, "unclean_election", "bad-night")
    journal.row("watermarks", topic="t", topic_id="id-t", partition=0, seq=12, high_watermark=2,
                last_stable_offset=1, log_end_offset=2, broker=1, **times)  # fmt: skip
    journal.row("groups", seq=3, group="g", protocol="classic", former="Empty",
                state="PreparingRebalance", generation=0, reason="m joins", **times)  # fmt: skip
    journal.row("groups", seq=4, group="g", protocol="classic", former="CompletingRebalance",
                state="Stable", generation=1, members=1, **times)  # fmt: skip
    journal.row("assignments", seq=5, group="g", generation=1, member="m", client_id="c",
                topic="t", topic_id="id-t", partition=0, **times)  # fmt: skip
    journal.row("requests", seq=9, response_seq=11, api="Produce", client_id="c",
                elapsed_ns=2_500_000, rules=["bad-night"], **times)  # fmt: skip
    return journal
