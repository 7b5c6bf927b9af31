"""Writes the tables of a run: rows in, rolled Parquet files and a manifest out.

Numbers that increase row by row (offsets, sequence numbers, times) are written as deltas, names as
dictionaries; hashes are random. A record or a delivery therefore takes some ten bytes.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mockbroker.disk import DISK, sync_file
from mockbroker.pipeline.store import (
    RUNS,
    UNFINISHED,
    RunManifest,
    StoreError,
    arrow,
    arrow_schema,
    check_run_name,
    parts,
    read_manifest,
    write_manifest,
)
from mockbroker.pipeline.tables import TABLES

if TYPE_CHECKING:
    import pyarrow as pa

# The rows of a file, and those of a row group, which engines read in parallel.
PART_ROWS = 1 << 20
GROUP_ROWS = 1 << 17
# Rows that are collected before they become Arrow columns.
_ROWS_MAX = 8192
_HASHES = ("value_hash", "key_hash")


class TableWriter:
    """Writes one run into a directory; a context manager, whose end completes the run.

    Rows of a table are added as mappings (`rows`) or as columns (`columns`), in any order of
    tables; absent values are null. Files roll after `part_rows` rows and with `roll`. In the
    manifest the run is incomplete until `close`, and also after an exception. Raises StoreError if
    the run exists, unless `replace`.
    """

    def __init__(
        self,
        directory: Path | str,
        run: str,
        *,
        replace: bool = False,
        part_rows: int = PART_ROWS,
        cluster_id: str = "",
    ) -> None:
        arrow()
        self.directory = Path(directory)
        self.run = check_run_name(run)
        self._part_rows = part_rows
        self._tables: dict[str, _TableFiles] = {}
        self._closed = False
        self._at: tuple[int, int, int] | None = None
        self._manifest = RunManifest(run, mockbroker_version=_version(), cluster_id=cluster_id)
        if (self.directory / RUNS / f"{run}.json").exists():
            if not replace:
                raise StoreError(
                    f"{self.directory} has a run {run} already: name another, or delete that"
                )
            remove_run(self.directory, run)
        try:
            write_manifest(self.directory, self._manifest)
        except OSError as error:
            raise StoreError(f"cannot write into {self.directory}: {error.strerror}") from None

    @property
    def manifest(self) -> RunManifest:
        """The run's manifest in its next version."""
        return self._manifest

    def rows(self, table: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Append rows. Raises KeyError for an unknown table or column."""
        self._files(table).rows(rows)

    def columns(self, table: str, columns: Mapping[str, Any]) -> None:
        """Append columns of one length: lists, NumPy's arrays or Arrow's.

        Raises KeyError for an unknown table or column.
        """
        self._files(table).columns(columns)

    def describe(self, **facts: Any) -> None:
        """Set fields of the manifest, by the names of `Run`."""
        self._manifest = replace(self._manifest, **facts)

    def at(self, seq: int, virtual_ms: int, real_ns: int) -> None:
        """Set the newest entry of the run and its times, for the manifest."""
        self._at = (seq, virtual_ms, real_ns)

    def roll(self) -> None:
        """Close the open files, so that readers see all rows."""
        for files in self._tables.values():
            files.roll()
        self._write_manifest()

    def close(self, *, complete: bool = True, reason: str = "") -> RunManifest:
        """End the run and return its manifest; `reason` is why it is not complete."""
        for files in self._tables.values():
            files.roll()
        self.describe(complete=complete, reason=reason)
        self._closed = True
        self._write_manifest()
        return self._manifest

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is None:
            if not self._closed:
                self.close()
        else:
            self.close(complete=False, reason=f"writing it was broken off by {exc!r}")

    def _files(self, table: str) -> _TableFiles:
        files = self._tables.get(table)
        if files is None:
            files = _TableFiles(self.directory, table, self.run, self._part_rows)
            self._tables[table] = files
        return files

    def _write_manifest(self) -> None:
        rows = {name: files.written for name, files in self._tables.items() if files.written}
        self.describe(rows=rows)
        if self._at is not None:
            seq, virtual_ms, real_ns = self._at
            self.describe(last_seq=seq, ended_virtual_ms=virtual_ms, ended_real_ns=real_ns)
        write_manifest(self.directory, self._manifest)


class _TableFiles:
    """The files of one table of one run."""

    def __init__(self, directory: Path, table: str, run: str, part_rows: int) -> None:
        self.written = 0  # rows in complete files
        self._schema = arrow_schema(table)
        self._unfinished = directory / UNFINISHED / f"{run}.{table}.{os.getpid()}.parquet"
        self._place = directory / table / f"run={run}"
        self._part_rows = part_rows
        self._part = len(parts(directory, table, run))
        self._file: Any = None
        self._file_rows = 0
        self._rows: list[Mapping[str, object]] = []
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._names = frozenset(self._schema.names)
        self._options = _write_options(table)

    def rows(self, rows: Iterable[Mapping[str, object]]) -> None:
        for row in rows:
            if not row.keys() <= self._names:
                raise KeyError(f"no columns {sorted(row.keys() - self._names)}")
            self._rows.append(row)
            if len(self._rows) >= _ROWS_MAX:
                self._rows_to_columns()

    def columns(self, columns: Mapping[str, Any]) -> None:
        if not columns.keys() <= self._names:
            raise KeyError(f"no columns {sorted(columns.keys() - self._names)}")
        self._rows_to_columns()  # in order of arrival
        self._add(columns)

    def roll(self) -> None:
        self._rows_to_columns()
        self._write_waiting()
        if self._file is None:
            return
        self._file.close()
        self._file = None
        self._place.mkdir(parents=True, exist_ok=True)
        self._unfinished.replace(self._place / f"part-{self._part:05}.parquet")
        with contextlib.suppress(OSError):
            self._unfinished.parent.rmdir()  # after the last one was renamed into place
        self._part += 1
        self.written += self._file_rows
        self._file_rows = 0

    def _rows_to_columns(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, []
            self._add({name: [row.get(name) for row in rows] for name in self._schema.names})

    def _add(self, columns: Mapping[str, Any]) -> None:
        table = arrow_table(self._schema, columns)
        self._waiting.append(table)
        self._waiting_rows += table.num_rows
        if self._waiting_rows >= GROUP_ROWS:
            self._write_waiting()

    def _write_waiting(self) -> None:
        if not self._waiting_rows:
            return
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.concat_tables(self._waiting)
        self._waiting, self._waiting_rows = [], 0
        if self._file is None:
            self._unfinished.parent.mkdir(parents=True, exist_ok=True)
            self._file = pq.ParquetWriter(self._unfinished, self._schema, **self._options)
        self._file.write_table(table, row_group_size=GROUP_ROWS)
        self._file_rows += table.num_rows
        if self._file_rows >= self._part_rows:
            self.roll()


def replace_table(
    directory: Path | str, run: str, table: str, rows: Iterable[Mapping[str, object]]
) -> int:
    """Replace the rows of one table of a run; returns their number.

    Raises StoreError if the run does not exist.
    """
    place = Path(directory)
    file = place / RUNS / f"{run}.json"
    if not file.exists():
        raise StoreError(f"{place} has no run {run}: export the journal first")
    manifest = read_manifest(file)
    for former in parts(place, table, run):
        former.unlink()
    files = _TableFiles(place, table, run, PART_ROWS)
    files.rows(rows)
    files.roll()
    counts = {**manifest.rows, table: files.written}
    write_manifest(
        place, replace(manifest, rows={n: count for n, count in counts.items() if count})
    )
    return files.written


def remove_run(directory: Path, run: str) -> None:
    """Delete a run's tables and its manifest; its spool stays."""
    for name in TABLES:
        shutil.rmtree(directory / name / f"run={run}", ignore_errors=True)
    for file in (directory / UNFINISHED).glob(f"{run}.*.parquet"):
        file.unlink(missing_ok=True)
    (directory / RUNS / f"{run}.json").unlink(missing_ok=True)


def sync_run(directory: Path, run: str) -> None:
    """Return once the disk has the tables of a run and its manifest. Raises StoreError."""
    files = [file for table in TABLES for file in parts(directory, table, run)]
    files.append(directory / RUNS / f"{run}.json")
    places = {place for file in files for place in (file.parent, file.parent.parent)}
    try:
        for file in files:
            sync_file(DISK, file)
        for place in sorted(places):
            DISK.sync_directory(place)
    except OSError as error:
        raise StoreError(f"cannot write into {directory}: {error.strerror}") from None


def _version() -> str:
    try:
        return importlib.metadata.version("mockbroker")
    except (
        importlib.metadata.PackageNotFoundError
    ):  # a package without metadata, as from --py-files
        return ""


def arrow_table(schema: pa.Schema, columns: Mapping[str, Any]) -> pa.Table:
    """A table of the columns; absent ones are null."""
    import pyarrow as pa

    rows = max((len(column) for column in columns.values()), default=0)
    arrays = []
    for column in schema:
        values = columns.get(column.name)
        if values is None:
            array = pa.nulls(rows, column.type)
        elif isinstance(values, pa.Array | pa.ChunkedArray):
            array = values if values.type == column.type else values.cast(column.type)
        else:
            array = pa.array(values, column.type)
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=schema)


def _write_options(table: str) -> dict[str, Any]:
    """The Parquet options of a table's columns: see the module's docstring."""
    encodings: dict[str, str] = {}
    dictionaries: list[str] = []
    for column in TABLES[table]:
        if column.name == "id":
            encodings["id"] = "DELTA_BYTE_ARRAY"  # ids are often one prefix and a number
        elif column.name == "value_hash":
            encodings[column.name] = "PLAIN"
        elif column.kind == "strings":
            dictionaries.append(f"{column.name}.list.element")
        elif column.kind == "string" or column.name in (*_HASHES, "partition", "broker"):
            dictionaries.append(column.name)
        elif column.kind in ("int64", "int32"):
            encodings[column.name] = "DELTA_BINARY_PACKED"
    return {
        "compression": "zstd",
        "use_dictionary": dictionaries,
        "column_encoding": encodings,
        "store_schema": False,
    }
