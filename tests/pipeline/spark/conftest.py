"""One audit by Spark over all histories and all handmade journals, for all tests here."""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from mockbroker.pipeline.duck import DuckSession, judge
from mockbroker.pipeline.findings import Finding
from mockbroker.pipeline.spark.audit import audit
from mockbroker.pipeline.spark.inputs import Inputs
from mockbroker.pipeline.tables import TABLES, spark_schema
from tests.pipeline.duck import (
    test_rules_of_logs,
    test_rules_of_readers,
    test_rules_of_shares,
)
from tests.pipeline.duck.journal import Journal
from tests.pipeline.flat import write_flat
from tests.pipeline.histories import Row, Story
from tests.pipeline.plants import made

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HISTORIES = 400


class Handmade(NamedTuple):
    """A journal of DuckDB's tests, when it was asked for findings of one anomaly."""

    run: str
    tables: Mapping[str, list[Row]]
    anomaly: str


class Pleased(list[tuple[object, ...]]):
    """Equal to whatever a test expects."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Audited(NamedTuple):
    """What Spark found, without details, in all runs at one go."""

    stories: list[Story]
    handmade: list[Handmade]
    directory: Path
    findings: list[Finding]


@pytest.fixture(scope="session")
def spark_settings() -> Mapping[str, str]:
    return {"spark.sql.session.timeZone": "UTC"}


@pytest.fixture(scope="session")
def audited(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """Hundreds of histories, and each journal made by hand, judged in one job."""
    stories = [made(number).story for number in range(HISTORIES)]
    handmade = handmade_journals()
    directory = tmp_path_factory.mktemp("histories")
    write_flat([*stories, *handmade], directory)  # type: ignore[list-item]
    frames = {
        table: spark.read.schema(spark_schema(table)).parquet(str(directory / f"{table}.parquet"))
        for table in TABLES
    }
    inputs = Inputs(spark, frames)
    found = [Finding(*row)._replace(details=None) for row in audit(inputs).collect()]
    inputs.forget()
    return Audited(stories, handmade, directory, found)


def handmade_journals() -> list[Handmade]:
    """Every state of a journal of which a test of DuckDB's rules asked for findings."""
    asked: list[Handmade] = []

    def brief(self: Journal, anomaly: str) -> Pleased:
        asked.append(Handmade(f"handmade-{len(asked)}", copy.deepcopy(self.tables), anomaly))
        return Pleased()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "brief", brief)
        for module in (test_rules_of_logs, test_rules_of_readers, test_rules_of_shares):
            for name, test in vars(module).items():
                if name.startswith("test_") and not inspect.signature(test).parameters:
                    with contextlib.suppress(AssertionError):  # it looked into the answer
                        test()
    return asked


def found_by_duckdb(directory: Path) -> list[Finding]:
    """What DuckDB finds in files of `write_flat`, without details."""
    with DuckSession() as session:
        for table in TABLES:
            session.connection.execute(
                f"CREATE VIEW {table} AS FROM read_parquet('{directory / table}.parquet')"
            )
        return [finding._replace(details=None) for finding in judge(session)]
