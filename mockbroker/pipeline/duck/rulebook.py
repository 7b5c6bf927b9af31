"""The audit by DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib import resources
from pathlib import Path

from mockbroker.pipeline.duck.session import Session, open_session
from mockbroker.pipeline.findings import ANOMALIES, Finding
from mockbroker.pipeline.store import open_store

# A rule's rows as findings: each once, and without a verdict where the journal has a gap.
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
    """Everything the audit finds in the runs of a directory, or in those named, in their order.

    `memory_limit` is DuckDB's ("4GB"). With `incomplete`, also runs that did not end in peace are
    judged. Raises StoreError when the directory cannot be used, whatever the reason.
    """
    store = open_store(directory, runs)
    store.check(incomplete=incomplete)
    with open_session(store, memory_limit) as session:
        return judge(session, progress=progress)


def judge(
    session: Session,
    anomalies: Iterable[str] = tuple(ANOMALIES),
    *,
    progress: Progress | None = None,
) -> list[Finding]:
    """The findings in a session's tables. `progress` hears what is begun, how many steps are done,
    and how many there are.
    """
    wanted = list(anomalies)
    findings: list[Finding] = []
    _tell(progress, "tables", 0, wanted)
    session.connection.execute(_sql("prepare.sql"))
    for done, anomaly in enumerate(wanted, 1):
        _tell(progress, anomaly, done, wanted)
        rule = _sql(f"rules/{anomaly}.sql")
        query = _AS_FINDINGS.format(rule=rule, anomaly=anomaly)
        findings += (Finding(*row) for row in session.connection.execute(query).fetchall())
    return sorted(findings, key=_in_order)


def _tell(progress: Progress | None, step: str, done: int, wanted: list[str]) -> None:
    if progress is not None:
        progress(step, done, len(wanted) + 1)


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


@cache
def _sql(name: str) -> str:
    text = resources.files("mockbroker.pipeline.duck").joinpath(name).read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))
