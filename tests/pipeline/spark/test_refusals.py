"""The error of a job that cannot run: one line, which ends with the remedy."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mockbroker.pipeline.spark.audit import audit
from mockbroker.pipeline.spark.errors import JobError
from mockbroker.pipeline.spark.inputs import from_rows, read
from mockbroker.pipeline.spark.lag import lag
from mockbroker.pipeline.spark.program import CANNOT_RUN, run
from mockbroker.pipeline.spark.session import session
from mockbroker.pipeline.write import TableWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        with TableWriter(tmp_path, name) as writer:
            writer.rows("gaps", [{"first_seq": 1, "last_seq": 2, "reason": "a test"}])
    return tmp_path


@pytest.fixture(params=["with pyarrow", "without pyarrow"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a cluster elsewhere pyarrow may not be installed."""
    if request.param == "without pyarrow":
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


@pytest.mark.usefixtures("either_way")
def test_runs_are_read_all_or_by_name(spark: SparkSession, tables: Path) -> None:
    """A table that is not there is empty."""
    assert read(spark, tables).table("gaps").count() == 2
    named = read(spark, tables, ["two"])
    assert [row["run"] for row in named.table("gaps").collect()] == ["two"]
    assert [each.run for each in named.runs] == ["two"]
    assert not named.has("records")


@pytest.mark.usefixtures("either_way")
def test_a_directory_that_is_not_whole_is_refused(spark: SparkSession, tables: Path) -> None:
    """Nothing there, a run that has not ended, files that are missing, a table of another shape."""
    with pytest.raises(JobError, match="there is no directory"):
        read(spark, tables / "nowhere")
    shutil.rmtree(tables / "gaps" / "run=two")
    with pytest.raises(JobError, match=r"gaps of run two .* 0 rows, but 1 .*export"):
        read(spark, tables)
    assert read(spark, tables, ["one"]).has("gaps")
    with TableWriter(tables, "three") as writer:
        writer.rows("gaps", [{"first_seq": 1, "last_seq": 2, "reason": "a test"}])
        writer.roll()
        with pytest.raises(JobError, match=r"run three .* is not complete"):
            read(spark, tables, ["three"])
        assert read(spark, tables, ["three"], incomplete=True).has("gaps")


def test_tables_elsewhere_are_checked_by_their_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Where no manifest can be seen; a missing column would be read as nulls."""
    with pytest.raises(JobError, match="holds no table of a run"):
        read(spark, f"FILE://{tmp_path}")
    spark.range(1).write.parquet(str(tmp_path / "gaps" / "run=one"))
    with pytest.raises(JobError, match=r"has no column first_seq.*export"):
        read(spark, f"FILE://{tmp_path}")


def test_a_program_that_cannot_run_says_so_in_a_line(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its exit code is not that of a run without findings."""
    assert run(lag, argv=[str(tmp_path)]) == CANNOT_RUN
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert "holds no run of a journal" in said.err


@pytest.mark.parametrize("setting", ["spark.ui.enabled", "=true", ""])
def test_a_setting_without_a_value_is_refused(
    setting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(lag, argv=[str(tmp_path), "--conf", setting])
    assert ended.value.code == CANNOT_RUN
    assert f"argument --conf: {setting!r} is not NAME=VALUE" in capsys.readouterr().err


def test_without_java_no_session_is_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """JAVA_HOME outranks the PATH, as in Spark's own scripts."""
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JobError, match=r"JAVA_HOME is .* Java 17"):
        session()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JobError, match="there is no Java: install Java 17"):
        session()


def test_an_unknown_anomaly_is_refused(spark: SparkSession) -> None:
    """Before anything is computed."""
    tables: dict[str, list[dict[str, Any]]] = {}
    with pytest.raises(KeyError, match="lost_writes"):
        audit(from_rows(spark, tables), ["lost_writes"])
