"""The audit of many records: how long, how much a hot partition costs, and how it grows."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from bench.model import TIMES, Figures, Measure, Running, Scale, UnavailableError, Unit

SECONDS = Unit("s", 1, 1)
BYTES = Unit("B", 1, 1)

# The smaller tables of which the growth is told.
_SMALLER = 10
_ALONE: Mapping[str, str] = dict.fromkeys(
    ("real", "kfake", "librdkafka-mock"), "the audit is of mockbroker's journal"
)


@functools.cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="mockbroker-bench-")


@functools.cache
def _tables(records: int, skewed: bool) -> Path:
    """A directory of tables with so many records; written once."""
    from bench.journal_tables import Shape, write_tables

    directory = Path(_directory().name) / f"{records}-{'skewed' if skewed else 'even'}"
    write_tables(directory, Shape(records, skewed=skewed))
    return directory


def _seconds(engine: str, directory: Path) -> float:
    """How long an audit took that found what is planted. Raises RuntimeError if it did not."""
    from bench.journal_tables import PLANTED

    done = subprocess.run(
        [sys.executable, "-m", "bench.workloads.audit_run", engine, str(directory)],
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    if Counter(told["found"]) != PLANTED:
        raise RuntimeError(f"{engine} found {told['found']} in {directory.name}")
    return float(told["seconds"])


class Audit:
    """Spark on two threads with 4 GB, and DuckDB, over the same tables."""

    fresh = True
    excluded = _ALONE

    def __init__(self, engine: str, title: str) -> None:
        self.name = f"audit-{engine}"
        self._engine = engine
        self.measures: tuple[Measure, ...] = (
            Measure(self.name, f"audit by {title}, 10 M records and 10 M deliveries", SECONDS),
            Measure(f"{self.name}-skew", "… 90 % of them in one partition, against even", TIMES),
            Measure(f"{self.name}-growth", "… against ten times a tenth of them", TIMES),
        )

    def prepare(self) -> None:
        try:
            import numpy  # noqa: F401
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise UnavailableError(f"{error.name} is not installed") from None

    def run(self, running: Running, scale: Scale) -> Figures:
        even = _seconds(self._engine, _tables(scale.audit_records, False))
        skewed = _seconds(self._engine, _tables(scale.audit_records, True))
        smaller = _seconds(self._engine, _tables(scale.audit_records // _SMALLER, False))
        return {
            self.name: even,
            f"{self.name}-skew": skewed / even,
            f"{self.name}-growth": even / (smaller * _SMALLER),
        }


class RowBytes(Audit):
    """What a row of the big tables takes on disk."""

    def __init__(self) -> None:
        super().__init__("spark", "")
        self.name = "journal-bytes"
        self.measures = (
            Measure("record-bytes", "a record in the tables of a run", BYTES),
            Measure("delivery-bytes", "a delivery in them", BYTES),
        )

    def run(self, running: Running, scale: Scale) -> Figures:
        directory = _tables(scale.audit_records, False)
        rows = json.loads(next((directory / "_runs").glob("*.json")).read_text())["rows"]

        def of(table: str) -> float:
            files = (directory / table).rglob("*.parquet")
            return sum(file.stat().st_size for file in files) / float(rows[table])

        return {"record-bytes": of("records"), "delivery-bytes": of("deliveries")}


def audit_workloads() -> tuple[Audit, ...]:
    return RowBytes(), Audit("spark", "Spark"), Audit("duckdb", "DuckDB")
