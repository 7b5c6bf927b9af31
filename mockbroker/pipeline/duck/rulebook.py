"""The audit by DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from mockbroker.pipeline.duck.session import DuckSession, open_session, sql_file
from mockbroker.pipeline.findings import ANOMALIES, Finding
from mockbroker.pipeline.store import open_store

# A rule's rows as findings: each once, and undecided if the journal has a gap there.
_AS_FINDINGS = """
WITH found AS (
{rule}
)
SELECT DISTINCT f.run, '{anomaly}' AS anomaly,
       CASE WHEN EXISTS (
         SELECT 1 FROM gaps AS g
         WHERE g.run = f.run AND g.first_seq <= f.last_seq AND g.last_seq >= f.first_seq
       ) THEN 'undecided' ELSE f.verdict END AS verdict,
       f.level, f.topic, f.topic_id, f."partition", f."offset", f.subject, f.first_seq, f.last_seq,
       f.rule
FROM found AS f
"""

Progress = Callable[[str, int, int], None]


def audit(
    directory: Path | str,
    runs: Iterable[str] | None = None,
    memory_limit: str | None = None,
    *,
    incomplete: bool = False,
    progress: Progress | None = None,
) -> list[Finding]:
    """All findings in the runs of a directory, or in those named, in their order.

    `memory_limit` is DuckDB's ("4GB"). With `incomplete`, runs that were not stopped cleanly are
    included. Raises StoreError if the directory cannot be used.
    """
    store = open_store(directory, runs)
    store.check(incomplete=incomplete)
    with open_session(store, memory_limit) as session:
        return judge(session, progress=progress)


def judge(
    session: DuckSession,
    anomalies: Iterable[str] = tuple(ANOMALIES),
    *,
    progress: Progress | None = None,
) -> list[Finding]:
    """The findings in a session's tables. `progress` is called at the start of each step, with its
    name, the number of steps done and the number of all steps.
    """
    wanted = list(anomalies)
    findings: list[Finding] = []
    if progress is not None:
        progress("tables", 0, len(wanted) + 1)
    session.connection.execute(sql_file("prepare.sql"))
    for done, anomaly in enumerate(wanted, 1):
        if progress is not None:
            progress(anomaly, done, len(wanted) + 1)
        rule = sql_file(f"rules/{anomaly}.sql")
        query = _AS_FINDINGS.format(rule=rule, anomaly=anomaly)
        findings += (Finding(*row) for row in session.connection.execute(query).fetchall())
    return sorted(findings, key=_in_order)


def _in_order(finding: Finding) -> tuple[str, ...]:
    order = list(ANOMALIES).index(finding.anomaly)
    numbers = (finding.partition, finding.offset, finding.first_seq, finding.last_seq)
    return (
        finding.run,
        f"{order:02}",
        finding.topic or "",
        *(f"{-1 if number is None else number:020}" for number in numbers),
        *map(str, finding),
    )
