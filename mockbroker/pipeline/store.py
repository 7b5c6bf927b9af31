"""A directory of runs, and checks of its files.

    <directory>/_runs/<run>.json                      the run's manifest
    <directory>/<table>/run=<run>/part-00000.parquet  its rows
    <directory>/_spool/<run>/                         the entries of a run, until they are converted

A table without rows has no directory. Files are renamed into place when they are whole, so that
they can be read. The manifest says which schema they have and whether the run is complete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mockbroker.extras import missing
from mockbroker.pipeline.tables import SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    import pyarrow as pa

RUNS = "_runs"
SPOOL = "_spool"
UNFINISHED = "_tmp"
_RUN_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_AGAIN = "export the run again (mockbroker journal export)"


class StoreError(Exception):
    """The directory cannot be used; the message has the reason and the remedy."""


@dataclass(frozen=True)
class RunManifest:
    """One run's manifest. Times of the cluster in ms, real times in ns since the epoch; -1 if
    unknown. `rows` counts the rows of each table that has any. `complete` is false while the broker
    runs, and stays false if it was not stopped cleanly; `reason` then explains it.
    """

    run: str
    schema_version: int = SCHEMA_VERSION
    mockbroker_version: str = ""
    cluster_id: str = ""
    started_virtual_ms: int = -1
    started_real_ns: int = -1
    ended_virtual_ms: int = -1
    ended_real_ns: int = -1
    last_seq: int = 0
    complete: bool = False
    reason: str = ""
    rows: Mapping[str, int] = field(default_factory=dict)


class RunStore:
    """The runs of a directory, or some of them. Made by `open_store`."""

    def __init__(self, path: Path, runs: Sequence[RunManifest]) -> None:
        self.path = path
        self.runs = tuple(runs)

    def files(self, table: str) -> list[Path]:
        """The Parquet files of a table, by run and part; none if the table has no row.

        Raises KeyError for an unknown table.
        """
        TABLES[table]
        return [file for run in self.runs for file in parts(self.path, table, run.run)]

    def check(self, *, incomplete: bool = False) -> None:
        """Raises StoreError unless every file can be read, has all columns, and every run has all
        its rows. With `incomplete`, runs that were not stopped cleanly pass too.
        """
        for run in self.runs:
            if not (run.complete or incomplete):
                why = run.reason or "it is still being written, or its broker was killed"
                raise StoreError(
                    f"run {run.run} in {self.path} is not complete: {why}; stop the cluster, or "
                    f"finish the run with `mockbroker journal export {self.path} --from spool`"
                )
            for table in TABLES:
                self._check_table(run, table)

    def _check_table(self, run: RunManifest, table: str) -> None:
        found = sum(_checked_rows(file, table) for file in parts(self.path, table, run.run))
        wanted = run.rows.get(table, 0)
        if found < wanted or (run.complete and found != wanted):
            raise StoreError(
                f"table {table} of run {run.run} in {self.path} has {found} rows, but {wanted} "
                f"were written: files are missing or not its own; {_AGAIN}"
            )


def open_store(path: Path | str, runs: Iterable[str] | None = None) -> RunStore:
    """The runs of a directory, or the named ones. Opens no table: see `Store.check`.

    Raises StoreError if it is no such directory, if a run is missing, or if a newer mockbroker
    wrote it.
    """
    path = Path(path)
    if not path.is_dir():
        raise StoreError(
            f"there is no directory {path}: `mockbroker journal export {path}` makes one"
        )
    known = {file.stem: file for file in sorted((path / RUNS).glob("*.json"))}
    if not known and any((path / SPOOL).glob("*")):
        raise StoreError(
            f"the run in {path} was never converted, because its broker was killed: "
            f"`mockbroker journal export {path} --from spool` does it"
        )
    if not known:
        raise StoreError(
            f"{path} holds no run of a journal (no {RUNS}/*.json): give the directory that "
            "`mockbroker journal export` or `serve --journal-dir` wrote"
        )
    wanted = list(known) if runs is None else list(runs)
    for name in wanted:
        if name not in known:
            raise StoreError(f"{path} has no run {name}; it has {', '.join(known)}")
    return RunStore(path, [read_manifest(known[name]) for name in wanted])


def read_manifest(file: Path) -> RunManifest:
    """A run's manifest. Raises StoreError if it is invalid or from a newer mockbroker."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        version = data["schema_version"]
        newer = version > SCHEMA_VERSION
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StoreError(f"{file} is not a manifest of a run ({_said(error)}); {_AGAIN}") from None
    if newer:
        raise StoreError(
            f"{file} has schema version {version}, this mockbroker reads up to {SCHEMA_VERSION}: "
            f"it is of mockbroker {data.get('mockbroker_version')}, so upgrade to that"
        )
    if not isinstance(data.get("rows", {}), dict):
        raise StoreError(f"{file} is not a manifest of a run (rows is no mapping); {_AGAIN}")
    try:
        return RunManifest(
            **{name: data[name] for name in data if name in RunManifest.__dataclass_fields__}
        )
    except TypeError as error:
        raise StoreError(f"{file} is not a manifest of a run ({_said(error)}); {_AGAIN}") from None


def write_manifest(directory: Path, run: RunManifest) -> None:
    """Replace the manifest atomically."""
    file = directory / RUNS / f"{run.run}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(run), indent=1) + "\n", encoding="utf-8")
    partial.replace(file)


def parts(directory: Path, table: str, run: str) -> list[Path]:
    """The files of one table of one run, in order."""
    return sorted((directory / table / f"run={run}").glob("part-*.parquet"))


def check_run_name(run: str) -> str:
    """The name. Raises StoreError if it is not valid in a path."""
    if not _RUN_NAME.fullmatch(run) or run.startswith("."):
        raise StoreError(f"invalid name of a run, {run!r}: use letters, digits, `_`, `.` and `-`")
    return run


def arrow() -> Any:
    """The module pyarrow. Raises StoreError if it is not installed."""
    try:
        import pyarrow
    except ImportError:
        raise StoreError(missing("tables need", "pyarrow")) from None
    return pyarrow


def arrow_schema(table: str) -> pa.Schema:
    """The Arrow schema of a table without `run`, which is in the path."""
    pa = arrow()
    kinds = {
        "int64": pa.int64(),
        "int32": pa.int32(),
        "int16": pa.int16(),
        "int8": pa.int8(),
        "bool": pa.bool_(),
        "string": pa.string(),
        "strings": pa.list_(pa.string()),
    }
    return pa.schema([(column.name, kinds[column.kind]) for column in TABLES[table]])


def _checked_rows(file: Path, table: str) -> int:
    """The number of rows of a part, from its footer."""
    pa = arrow()
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as part:
            found = part.schema_arrow
            rows = int(part.metadata.num_rows)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{file} is broken ({_said(error)}); {_AGAIN}") from None
    wanted = arrow_schema(table)
    for column in wanted:
        if column.name not in found.names:
            raise StoreError(
                f"{file} has no column {column.name}: it is not of schema version "
                f"{SCHEMA_VERSION}; {_AGAIN}"
            )
        is_there = found.field(column.name).type
        if is_there != column.type and str(is_there) != str(column.type):
            raise StoreError(
                f"{file} has {is_there} in column {column.name}, not {column.type}; {_AGAIN}"
            )
    return rows


def _said(error: BaseException) -> str:
    """An error's message in one short line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return f"{type(error).__name__} {text}" if isinstance(error, KeyError) else text[:200]
