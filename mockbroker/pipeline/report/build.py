"""From findings to a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from mockbroker.pipeline.duck.measures import MEASURES, measure
from mockbroker.pipeline.duck.session import DuckSession
from mockbroker.pipeline.findings import Finding
from mockbroker.pipeline.report.evidence import cases
from mockbroker.pipeline.report.model import JournalGap, Report, Row
from mockbroker.pipeline.report.outcomes import MATERIAL, outcomes
from mockbroker.pipeline.store import RunStore

# The number of findings of an anomaly with the journal around them.
CASES_MAX = 20


def build_report(
    store: RunStore,
    session: DuckSession,
    findings: Sequence[Finding],
    *,
    engine: str,
    source: str = "",
    measures: Mapping[str, Sequence[Row]] | None = None,
    with_cases: bool = True,
) -> Report:
    """The report about a store's runs. `session` is over the same store; the findings may come from
    either engine. `source` stands for a directory that is deleted afterwards. Without `measures`,
    DuckDB measures.
    """
    gaps = [
        JournalGap(row["run"], row["first_seq"], row["last_seq"], row["reason"])
        for row in session.rows(
            "SELECT run, first_seq, last_seq, reason FROM gaps ORDER BY run, first_seq"
        )
    ]
    has_material = {
        anomaly: any(_any(session, *where) for where in wanted)
        for anomaly, wanted in MATERIAL.items()
    }
    if measures is None:
        names = MEASURES if with_cases else ()
        measures = {name: measure(session, name, thinned=True) for name in names}
    return Report(
        source=source or str(store.path),
        engine=engine,
        runs=store.runs,
        gaps=gaps,
        outcomes=outcomes(
            findings, has_material, _any(session, "operations", ""), gaps, store.runs
        ),
        findings=findings,
        cases=cases(session, _shown(findings)) if with_cases else (),
        measures=measures,
        version=_version(),
        made_at=f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
    )


def _version() -> str:
    try:
        return version("mockbroker")
    except PackageNotFoundError:
        return "unknown"


def _shown(findings: Sequence[Finding]) -> list[Finding]:
    """The first of each anomaly, bugs before all others."""
    order = {"bug": 0, "undecided": 1, "report": 2}
    seen: Counter[str] = Counter()
    shown = []
    for finding in sorted(findings, key=lambda f: order.get(f.verdict, 3)):
        seen[finding.anomaly] += 1
        if seen[finding.anomaly] <= CASES_MAX:
            shown.append(finding)
    return shown


def _any(session: DuckSession, table: str, condition: str) -> bool:
    where = f"WHERE {condition}" if condition else ""
    return bool(session.rows(f"SELECT 1 FROM {table} {where} LIMIT 1"))  # noqa: S608
