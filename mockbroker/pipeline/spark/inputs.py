"""The tables of runs as DataFrames."""

from __future__ import annotations

import importlib.util
import itertools
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mockbroker.pipeline.spark.errors import JobError
from mockbroker.pipeline.spark.session import fit
from mockbroker.pipeline.store import RunManifest, StoreError, open_store
from mockbroker.pipeline.tables import SCHEMA_VERSION, TABLES, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

Derived = Callable[["Inputs"], "DataFrame"]

# A partition of a topic of a run as one number, for joins.
K = "xxhash64(run, topic_id, partition) AS k"

# A checkpoint of at most so many rows is broadcast to all tasks of a join.
BROADCAST_ROWS = 100_000

_AGAIN = "export the run again (mockbroker journal export)"

_numbers = itertools.count(1)


class Inputs:
    """The tables of one or more runs, each a DataFrame with the columns `run` and `k`.

    `k` stands for run, topic id and partition, because a join by one number is cheaper than by two
    texts. In the queries of `sql` a name in braces is a table, or a frame derived from tables
    (`derive`).
    """

    def __init__(
        self, spark: SparkSession, frames: Mapping[str, DataFrame], runs: Iterable[RunManifest] = ()
    ) -> None:
        self.spark = spark
        self.runs = tuple(runs)
        self._plain = {name: frames.get(name) for name in TABLES}
        self._frames: dict[str, DataFrame] = {}
        self._counts: dict[str, int] = {}
        self._views: dict[str, str] = {}

    def table(self, name: str) -> DataFrame:
        """A table. Raises KeyError for an unknown name."""
        if name not in self._frames:
            plain = self._plain[name]
            if plain is None:
                plain = empty(self.spark, name)
            if "topic_id" in plain.columns:
                plain = plain.selectExpr("*", K)
            self._frames[name] = plain
        return self._frames[name]

    def has(self, name: str) -> bool:
        """Whether a table has any row."""
        if name not in self._counts:
            plain = self._plain[name]
            self._counts[name] = 0 if plain is None else len(plain.limit(1).collect())
        return self._counts[name] > 0

    def sql(self, query: str, **frames: DataFrame) -> DataFrame:
        """The result of a query; names in braces are tables, derived frames, or `frames`."""
        wanted = {field for _, field, _, _ in string.Formatter().parse(query) if field}
        views = {
            name: self._view(name, frames[name]) if name in frames else self._known(name)
            for name in wanted
        }
        return self.spark.sql(query.format(**views))

    def derive(self, name: str, how: Derived, *, checkpoint: bool = False) -> DataFrame:
        """A frame for several rules, computed once; see `checkpoint`."""
        if name not in self._frames:
            frame = how(self)
            self._frames[name] = self.checkpoint(frame, name) if checkpoint else frame
        return self._frames[name]

    def frame(self, name: str) -> DataFrame:
        """A derived frame. Raises KeyError if it is not derived yet."""
        return self._frames[name]

    def checkpoint(self, frame: DataFrame, name: str) -> DataFrame:
        """Compute a frame now, and keep its rows on the executors under a name.

        Frames made of it start from these rows. Without checkpoints Spark would plan for minutes,
        because rules build on each other. Spark knows that a frame without rows is empty; a small
        frame is broadcast in joins.
        """
        found = frame.localCheckpoint()
        self._counts[name] = count = found.count()
        if count == 0:
            return nothing(self.spark, found)
        return found.hint("broadcast") if count <= BROADCAST_ROWS else found

    def rows(self, name: str) -> int:
        """The number of rows of a checkpoint. Raises KeyError for an unknown name."""
        return self._counts[name]

    def forget(self) -> None:
        """Drop the derived frames; Spark frees their rows after the last use."""
        for view in set(self._views.values()):
            self.spark.catalog.dropTempView(view)
        self._views.clear()
        self._frames.clear()

    def _known(self, name: str) -> str:
        """The view of a table or of a derived frame."""
        if name not in self._views:
            self._views[name] = self._view(
                name, self.table(name) if name in TABLES else self._frames[name]
            )
        return self._views[name]

    def _view(self, name: str, frame: DataFrame) -> str:
        view = f"mockbroker_{name}_{next(_numbers)}"
        frame.createOrReplaceTempView(view)
        self._views.setdefault(view, view)
        return view


def read(
    spark: SparkSession,
    path: Path | str,
    runs: Iterable[str] | None = None,
    *,
    incomplete: bool = False,
) -> Inputs:
    """The runs of a directory, or the named ones.

    A directory that this process can read is first checked against its manifests; of another one
    (`s3a://…`, `hdfs://…`) only the columns are checked. Raises JobError for a directory without
    runs, for broken files and, without `incomplete`, for incomplete runs.
    """
    if "://" in str(path) and not str(path).startswith("file:"):
        return _read_elsewhere(spark, str(path), runs)
    directory = Path(str(path).removeprefix("file://"))
    try:
        store = open_store(directory, runs)
        if importlib.util.find_spec("pyarrow") is None:
            return _read_by_spark_alone(spark, directory, store.runs, incomplete=incomplete)
        store.check(incomplete=incomplete)
    except StoreError as error:
        raise JobError(str(error)) from None
    names = [run.run for run in store.runs]
    files = {table: store.files(table) for table in TABLES}
    fit(spark, sum(file.stat().st_size for table in files for file in files[table]))
    frames = {
        table: _parquet(spark, table, str(directory / table), None if runs is None else names)
        for table in TABLES
        if files[table]
    }
    return Inputs(spark, frames, store.runs)


def from_rows(spark: SparkSession, tables: Mapping[str, Iterable[Mapping[str, Any]]]) -> Inputs:
    """Small tables from rows, for tests and notebooks; absent values are null."""
    frames = {}
    for name, rows in tables.items():
        columns = [*(column.name for column in TABLES[name]), "run"]
        data = [tuple(row.get(column) for column in columns) for row in rows]
        if data:
            frames[name] = spark.createDataFrame(data, spark_schema(name))
    return Inputs(spark, frames)


def empty(spark: SparkSession, table: str) -> DataFrame:
    """A table without rows."""
    return _nothing(spark, [column.split(" ", 1) for column in spark_schema(table).split(", ")])


def nothing(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """A frame with the columns of another, and without rows."""
    fields = frame.schema.fields
    return _nothing(spark, [[f"`{f.name}`", f.dataType.simpleString()] for f in fields])


def _nothing(spark: SparkSession, columns: Iterable[Sequence[str]]) -> DataFrame:
    """An empty frame that Spark recognises when it plans, so that it drops whole joins."""
    nulls = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in columns)
    return spark.sql(f"SELECT {nulls} WHERE false")


def _parquet(spark: SparkSession, table: str, place: str, runs: Iterable[str] | None) -> DataFrame:
    frame = spark.read.schema(spark_schema(table)).option("basePath", place).parquet(place)
    return frame if runs is None else frame.where(frame["run"].isin(list(runs)))


def _read_elsewhere(spark: SparkSession, path: str, runs: Iterable[str] | None) -> Inputs:
    frames = {}
    for table in TABLES:
        place = f"{path.rstrip('/')}/{table}"
        if _has_columns(spark, table, place):
            frames[table] = _parquet(spark, table, place, runs)
    if not frames:
        raise JobError(f"{path} holds no table of a run: give the directory that was exported")
    return Inputs(spark, frames)


def _has_columns(spark: SparkSession, table: str, place: str) -> bool:
    """Whether the table exists. Raises JobError if it has another schema."""
    from pyspark.errors import PySparkException

    try:
        found = spark.read.parquet(place).columns
    except PySparkException as error:
        if "PATH_NOT_FOUND" in str(error):
            return False
        why = str(error).strip().splitlines()[0]
        raise JobError(f"{place} cannot be read ({why[:200]}); {_AGAIN}") from None
    for column in TABLES[table]:
        if column.name not in found:
            raise JobError(
                f"{place} has no column {column.name}: it is not of schema version "
                f"{SCHEMA_VERSION}; {_AGAIN}"
            )
    return True


def _read_by_spark_alone(
    spark: SparkSession, directory: Path, runs: Sequence[RunManifest], *, incomplete: bool
) -> Inputs:
    """A directory with manifests, read without pyarrow."""
    for run in runs:
        if not (run.complete or incomplete):
            raise JobError(
                f"run {run.run} in {directory} is not complete: stop the cluster, or finish the "
                f"run with `mockbroker journal export {directory} --from spool`"
            )
    inputs = _read_elsewhere(spark, str(directory), [run.run for run in runs])
    for table in TABLES:
        found = {row["run"]: row["count"] for row in _row_counts(inputs, table)}
        for run in runs:
            wanted, there = run.rows.get(table, 0), found.get(run.run, 0)
            if there < wanted or (run.complete and there != wanted):
                raise JobError(
                    f"table {table} of run {run.run} in {directory} has {there} rows, but {wanted} "
                    f"were written: files are missing or not its own; {_AGAIN}"
                )
    inputs.runs = tuple(runs)
    return inputs


def _row_counts(inputs: Inputs, table: str) -> list[Row]:
    return inputs.table(table).groupBy("run").count().collect() if inputs.has(table) else []
