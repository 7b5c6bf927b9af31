"""Spark finds in hundreds of histories, taken at one go, what the oracle finds in each, and in
journals made by hand what DuckDB finds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mockbroker.pipeline.findings import ANOMALIES, Finding
from mockbroker.pipeline.write import TableWriter
from mockbroker.spark.settings import FAST_JVM
from tests.pipeline.oracle import audit_by_force
from tests.pipeline.spark.conftest import Audited, found_by_duckdb
from tests.support.maven import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Rules that look at single records, which are elsewhere then.
IN_A_CLUSTER = (
    "inconsistent_offset",
    "duplicate",
    "lost_write",
    "aborted_read",
    "skip",
    "committed_not_read",
)


def bare(finding: Finding) -> Finding:
    return finding._replace(details=None)


@pytest.mark.covers("S267")
def test_spark_agrees_with_the_oracle_on_every_history(audited: Audited) -> None:
    """Every finding with its verdict, place, subject, evidence and rule; none twice."""
    wanted = {
        bare(finding)
        for story in audited.stories
        for finding in audit_by_force(story.run, story.tables)
    }
    found = [each for each in audited.findings if not each.run.startswith("handmade-")]
    assert {finding.anomaly for finding in wanted} == set(ANOMALIES)
    assert set(found) - wanted == set()
    assert wanted - set(found) == set()
    assert len(found) == len(wanted)


def test_spark_agrees_with_duckdb_on_journals_made_by_hand(audited: Audited) -> None:
    """Each anomaly with what is one, and with what looks like one and is none."""
    by_duckdb = found_by_duckdb(audited.directory)
    assert {case.anomaly for case in audited.handmade} == set(ANOMALIES)
    quiet = set(ANOMALIES)
    for case in audited.handmade:
        wanted = {f for f in by_duckdb if (f.run, f.anomaly) == (case.run, case.anomaly)}
        found = {f for f in audited.findings if (f.run, f.anomaly) == (case.run, case.anomaly)}
        assert found == wanted, case.tables
        if not wanted:
            quiet.discard(case.anomaly)
    assert not quiet, "an anomaly has no journal in which it only seems to be"
    assert len(by_duckdb) == len(audited.findings)


def test_a_cluster_of_processes_gives_the_same_verdicts(audited: Audited, tmp_path: Path) -> None:
    """The audit as a program, on two executors of their own, over a directory of several runs."""
    runs = {
        next(f.run for f in audited.findings if f.anomaly == anomaly and f.run.startswith("run-"))
        for anomaly in IN_A_CLUSTER
    }
    for story in (story for story in audited.stories if story.run in runs):
        with TableWriter(tmp_path / "tables", story.run) as writer:
            for table, rows in story.tables.items():
                if rows:
                    writer.rows(table, rows)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mockbroker.pipeline.spark.audit", str(tmp_path / "tables")),
            *("--master", "local-cluster[2,1,1024]"),
            *("--conf", f"spark.driver.extraJavaOptions={FAST_JVM}"),
            *("--conf", f"spark.executor.extraJavaOptions={FAST_JVM}"),
            *(f"--anomaly={anomaly}" for anomaly in IN_A_CLUSTER),
        ],
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "protocol")])},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = {bare(Finding(**{k: v for k, v in row.items() if k != "job"})) for row in rows}
    assert {finding.anomaly for finding in found} == set(IN_A_CLUSTER)
    assert found == {
        finding
        for finding in audited.findings
        if finding.run in runs and finding.anomaly in IN_A_CLUSTER
    }
