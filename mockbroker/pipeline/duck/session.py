"""DuckDB over the tables of a store: each table is a view of its name, with the column `run`."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mockbroker.extras import missing
from mockbroker.pipeline.store import RunStore, StoreError
from mockbroker.pipeline.tables import TABLES, duckdb_columns

if TYPE_CHECKING:
    import duckdb

# DuckDB's memory; for more, it uses the disk.
MEMORY_LIMIT = "2GB"


class DuckSession:
    """A DuckDB in memory with a temporary directory; a context manager."""

    def __init__(self, memory_limit: str | None = None) -> None:
        self._spill = tempfile.TemporaryDirectory(prefix="mockbroker-duckdb-")
        config = {
            "memory_limit": memory_limit or MEMORY_LIMIT,
            "temp_directory": self._spill.name,
            "preserve_insertion_order": False,
            # Nothing is downloaded at run time.
            "autoinstall_known_extensions": False,
        }
        try:
            self.connection: duckdb.DuckDBPyConnection = _duckdb().connect(config=config)
        except BaseException:
            self._spill.cleanup()
            raise

    def close(self) -> None:
        self.connection.close()
        self._spill.cleanup()

    def __enter__(self) -> DuckSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def view(self, table: str, files: Sequence[Path]) -> None:
        """Make a view of these Parquet files; the run of each is in its path."""
        if not files:
            self.connection.execute(f"CREATE TABLE {table} ({duckdb_columns(table)})")
            return
        names = ", ".join(_quoted(str(file)) for file in files)
        self.connection.execute(
            f"CREATE VIEW {table} AS SELECT * FROM read_parquet([{names}], "  # noqa: S608
            "hive_partitioning = true, hive_types = {'run': VARCHAR})"
        )

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[dict[str, Any]]:
        """The rows of a query, by the names of their columns."""
        answer = self.connection.execute(sql, parameters)
        names = [column[0] for column in answer.description or ()]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def open_session(store: RunStore, memory_limit: str | None = None) -> DuckSession:
    """A session over the runs of a store. Raises StoreError without DuckDB."""
    session = DuckSession(memory_limit)
    try:
        for table in TABLES:
            session.view(table, store.files(table))
    except BaseException:
        session.close()
        raise
    return session


@cache
def sql_file(name: str) -> str:
    """A file of SQL of this package, without its comments."""
    text = resources.files("mockbroker.pipeline.duck").joinpath(name).read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise StoreError(f"{missing('this needs', 'duckdb')}, or use --engine spark") from None
    return duckdb


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
