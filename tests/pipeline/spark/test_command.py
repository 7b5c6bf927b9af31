"""`mockbroker pipeline … --engine spark` prints the same as with DuckDB."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from mockbroker.cli import main
from mockbroker.pipeline.duck.measures import MEASURES
from mockbroker.pipeline.write import TableWriter
from tests.pipeline.plants import made
from tests.pipeline.report.reports import lossy, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal made by hand, and a history with groups that rebalance and commit."""
    directory = write(lossy(), tmp_path_factory.mktemp("tables"), "lossy")
    story = made(4).story
    with TableWriter(directory, story.run) as writer:
        for table, rows in story.tables.items():
            writer.rows(table, rows)
    return directory


def told(status: int, *arguments: object) -> Any:
    """What a command prints as JSON; it ends with this exit code."""
    command = ["pipeline", *map(str, arguments), "--json", "-"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == status, result.output
    return json.loads(result.stdout)


@pytest.mark.slow
def test_both_engines_find_the_same(spark: SparkSession, tables: Path) -> None:
    """Findings, outcomes and the exit code."""
    by_spark = told(1, "audit", tables, "--engine", "spark")
    by_duckdb = told(1, "audit", tables)
    assert by_spark["engine"] == "Spark"
    for report in (by_spark, by_duckdb):
        for finding in report["findings"]:
            finding.pop("details")
        report["findings"].sort(key=str)
    assert by_spark["findings"] == by_duckdb["findings"]
    assert by_spark["outcomes"] == by_duckdb["outcomes"]


@pytest.mark.covers("S299", "S306")
@pytest.mark.parametrize("measure", MEASURES)
def test_both_engines_measure_the_same(spark: SparkSession, tables: Path, measure: str) -> None:
    """Row by row."""
    by_spark = told(0, measure, tables, "--engine", "spark")
    by_duckdb = told(0, measure, tables)
    assert by_duckdb
    assert sorted(by_spark, key=str) == sorted(by_duckdb, key=str)
