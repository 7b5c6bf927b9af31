"""`mockbroker pipeline`: verdicts, measures, and unusable directories."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from click.testing import Result

from mockbroker.cli.progress import stages
from tests.pipeline.duck.journal import Journal
from tests.pipeline.report.reports import lossy, write

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which a rule lost a record, and one in which nothing happened."""
    directory = tmp_path_factory.mktemp("tables")
    write(Journal(), directory, "quiet")
    return write(lossy(), directory, "lossy")


@pytest.fixture
def broken(tables: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may break."""
    return Path(shutil.copytree(tables, tmp_path / "broken"))


def test_an_audit_says_what_was_found_and_writes_its_reports(run: Run, tables: Path, tmp_path):
    """A report is a failure unless it is allowed."""
    files = [tmp_path / name for name in ("a.html", "a.json", "a.xml")]
    options = ("--html", files[0], "--json", files[1], "--junit", files[2])
    result = run("pipeline", "audit", tables, *options)
    assert result.exit_code == 1, result.output
    assert "report lost_write: lossy: t-0 offset 1" in result.stdout
    assert "because of bad-night" in result.stdout
    assert "bad-night" in files[0].read_text()
    assert len(json.loads(files[1].read_text())["findings"]) == 1
    assert ElementTree.parse(files[2]).getroot().get("failures") == "1"
    for allowed in (["--bugs-only"], ["--allow", "lost_write"]):
        result = run("pipeline", "audit", tables, *allowed, "--junit", files[2])
        assert result.exit_code == 0, result.output
        assert ElementTree.parse(files[2]).getroot().get("failures") == "0"
    refused = run("pipeline", "audit", tables, "--allow", "lost_writes")
    assert refused.exit_code == 2
    assert "did you mean 'lost_write'?" in refused.stderr


def test_one_run_of_several_is_judged(run: Run, tables: Path):
    """In JSON alone, when that is what goes to standard output."""
    result = run("pipeline", "audit", tables, "--run", "quiet", "--json", "-")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["findings"] == []
    assert [each["run"] for each in told["runs"]] == ["quiet"]


def test_a_bug_fails_the_audit(run: Run, tmp_path: Path):
    journal = Journal()
    journal.batch(10, 0, 3)
    journal.fetch(20, 0, 3, [0, 2])
    result = run("pipeline", "audit", write(journal, tmp_path))
    assert result.exit_code == 1
    assert "bug skip: t-0 offset 1" in result.stdout


def test_over_a_gap_there_is_no_verdict(run: Run, tmp_path: Path):
    journal = Journal()
    journal.fetch(20, 0, 3)
    journal.gap(30, 40)
    result = run("pipeline", "audit", write(journal, tmp_path))
    assert result.exit_code == 2
    assert result.stdout.startswith("! not checked: entries 30 to 40 of run r")
    assert "clean" not in result.stdout
    assert "gaps" in run("pipeline", "skew", tmp_path).stderr


def test_equal_records_without_an_id_are_no_verdict(run: Run, tmp_path: Path):
    """By either engine: nobody knows whether they are duplicates."""
    journal = Journal()
    journal.batch(10, 0, 3, values=[1, 2, 1])
    result = run("pipeline", "audit", write(journal, tmp_path))
    assert result.exit_code == 2
    assert result.stdout.splitlines()[-1].startswith("nothing found; not checked: duplicates in t")


def test_a_run_that_did_not_end_is_judged_only_when_asked_to(run: Run, tmp_path: Path):
    """And then the report says so, and nothing is clean."""
    write(Journal(), tmp_path, complete=False)
    result = run("pipeline", "audit", tmp_path)
    assert result.exit_code == 2
    assert "is not complete" in result.stderr
    assert result.stdout == ""
    asked = run("pipeline", "audit", tmp_path, "--incomplete")
    assert asked.exit_code == 2
    assert asked.stdout.startswith(
        "! not checked: the rest of run r, which is not complete: killed"
    )


@pytest.mark.parametrize(
    ("measure", "cells"),
    [
        ("lag", ["g", "t", "1", "2"]),
        ("rebalances", ["g", "classic", "joins"]),
        ("ownership", ["g", "m"]),
        ("latency", ["Produce", "2500"]),
        ("faults", ["bad-night", "elect_unclean"]),
        ("skew", ["t", "2", "1.0"]),
    ],
)
def test_what_was_measured_is_a_table_or_json(run: Run, tables: Path, measure: str, cells):
    """Names, numbers and times of day."""
    result = run("pipeline", measure, tables)
    assert result.exit_code == 0, result.output
    [row] = result.stdout.splitlines()[1:]
    assert set(cells) <= set(row.split())
    told = run("pipeline", measure, tables, "--json", "-")
    assert {row["run"] for row in json.loads(told.stdout)} == {"lossy"}


def test_nothing_measured_is_said(run: Run, tables: Path):
    result = run("pipeline", "lag", tables, "--run", "quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "nothing\n")


def refused(result: Result, *words: str) -> None:
    """One line that says what is wrong, and nothing that could be taken for a report."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    for word in words:
        assert word in line


@pytest.mark.parametrize("command", ["audit", "lag"])
def test_what_is_no_journal_is_refused(run: Run, broken: Path, tmp_path: Path, command: str):
    """No directory, a foreign one, an unknown run, a newer schema."""
    refused(run("pipeline", command, tmp_path / "nowhere"), "no directory", "journal export")
    refused(run("pipeline", command, tmp_path), "holds no run of a journal")
    refused(run("pipeline", command, broken, "--run", "x"), "no run x", "lossy, quiet")
    manifest = broken / "_runs" / "lossy.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "schema_version": 99}))
    refused(run("pipeline", command, broken), "schema version 99", "upgrade")


def test_a_broken_table_is_refused(run: Run, broken: Path):
    """A file that is no Parquet, one that lacks columns, and one that is not there."""
    [file] = broken.glob("records/run=lossy/*.parquet")
    good = file.read_bytes()
    file.write_bytes(good[:100])
    refused(run("pipeline", "audit", broken), "part-00000.parquet is broken", "again")
    [other] = broken.glob("batches/run=lossy/*.parquet")
    file.write_bytes(other.read_bytes())
    refused(run("pipeline", "audit", broken), "has no column offset")
    file.unlink()
    refused(run("pipeline", "audit", broken), "has 0 rows, but 2 were written")


def test_a_report_that_cannot_be_written_is_an_error(run: Run, tables: Path, tmp_path: Path):
    refused(run("pipeline", "audit", tables, "--json", tmp_path / "no" / "a.json"), "cannot write")


@pytest.mark.parametrize("missing", ["duckdb", "jinja2"])
def test_what_is_not_installed_is_named(
    run: Run, tables: Path, tmp_path, monkeypatch: pytest.MonkeyPatch, missing: str
):
    """With the way to install it."""
    from mockbroker.pipeline.report.html import _template

    _template.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, missing, None)
    result = run("pipeline", "audit", tables, "--html", tmp_path / "a.html")
    refused(result, f"needs {missing}: pip install '", "[pipeline]'")


def test_an_engine_that_fails_gives_no_report(run: Run, tables: Path):
    """As when it is given nonsense, or runs out of memory; the message is its own."""
    refused(run("pipeline", "audit", tables, "--memory", "a lot"), "DuckDB failed", "no report")
    refused(run("pipeline", "audit", tables, "--memory", "1KB"), "DuckDB failed", "no report")


def test_without_java_spark_says_so(tables: Path):
    """In one line, before it tries."""
    command = "from mockbroker.cli import main; main()"
    done = subprocess.run(  # in a process without a session that has its Java already
        [sys.executable, "-c", command, "pipeline", "audit", str(tables), "--engine", "spark"],
        env={**os.environ, "JAVA_HOME": "/no/java/here"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "/no/java/here" in done.stderr
    assert "Java 17" in done.stderr


def test_how_far_spark_is_counts_the_stages_of_its_jobs():
    """Of those it knows; a stage that has not begun has no tasks yet."""
    tasks = {1: SimpleNamespace(numTasks=4, numCompletedTasks=4), 2: None,
             3: SimpleNamespace(numTasks=8, numCompletedTasks=2)}  # fmt: skip
    tracker = SimpleNamespace(
        getActiveJobsIds=lambda: [7],
        getJobInfo={7: SimpleNamespace(stageIds=[1, 2, 3])}.get,
        getStageInfo=tasks.get,
    )
    assert stages(tracker) == "stages 1/3, tasks 6/12"
    tracker.getActiveJobsIds = list
    assert stages(tracker) == ""
