"""DuckDB finds in many histories, in one session, the same as the oracle in each."""

from __future__ import annotations

from pathlib import Path

import pytest

from mockbroker.pipeline.duck import DuckSession, judge
from mockbroker.pipeline.findings import ANOMALIES, Finding
from mockbroker.pipeline.tables import TABLES
from tests.pipeline.flat import write_flat
from tests.pipeline.oracle import audit_by_force
from tests.pipeline.plants import made


@pytest.mark.covers("S267")
@pytest.mark.parametrize("histories", [500, pytest.param(2_000, marks=pytest.mark.slow)])
def test_duckdb_agrees_with_the_oracle_on_every_history(tmp_path: Path, histories: int) -> None:
    """Every finding with its verdict, place, subject, evidence and rule; none twice."""
    stories = [made(number).story for number in range(histories)]
    write_flat(stories, tmp_path)
    with DuckSession() as session:
        for table in TABLES:
            session.connection.execute(
                f"CREATE VIEW {table} AS FROM read_parquet('{tmp_path / table}.parquet')"
            )
        findings = judge(session)
    wanted = {
        bare(finding) for story in stories for finding in audit_by_force(story.run, story.tables)
    }
    assert {finding.anomaly for finding in wanted} == set(ANOMALIES)
    found = [bare(finding) for finding in findings]
    assert set(found) - wanted == set()
    assert wanted - set(found) == set()
    assert len(found) == len(wanted)


def bare(finding: Finding) -> Finding:
    return finding._replace(details=None)
