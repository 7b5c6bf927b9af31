"""The tables of a test's cluster, as lists of rows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from mockbroker import Cluster
from mockbroker.pipeline.store import open_store

Row = dict[str, Any]


class Kept:
    """A `Sink` that keeps all rows in their order, but no columns."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Row]] = {}

    def of(self, table: str) -> list[Row]:
        return self._rows.get(table, [])

    def rows(self, table: str, rows: Iterable[Mapping[str, object]]) -> None:
        self._rows.setdefault(table, []).extend(map(dict, rows))

    def columns(self, table: str, columns: Mapping[str, Any]) -> None: ...

    def describe(self, **facts: Any) -> None: ...

    def at(self, seq: int, virtual_ms: int, real_ns: int) -> None: ...


class Tables:
    """The tables of one run."""

    def __init__(self, directory: Path, run: str | None = None) -> None:
        self.store = open_store(directory, None if run is None else [run])
        self.store.check()

    def rows(self, table: str, **conditions: object) -> list[Row]:
        """The rows that have these values, in the order in which they were written."""
        found: list[Row] = []
        for file in self.store.files(table):
            found += pq.ParquetFile(file).read().to_pylist()
        return [
            row for row in found if all(row[name] == value for name, value in conditions.items())
        ]

    def delivered(self, client_id: str, topic: str) -> dict[int, list[int]]:
        """partition -> the offsets that a client's answers brought, in order."""
        found: dict[int, list[int]] = {}
        answers = {
            (row["response_seq"], row["topic_id"], row["partition"])
            for row in self.rows("fetches", client_id=client_id)
        }
        rows = self.rows("deliveries", topic=topic)
        rows.sort(key=lambda row: (row["response_seq"], row["partition"], row["position"]))
        for row in rows:
            if (row["response_seq"], row["topic_id"], row["partition"]) in answers:
                found.setdefault(row["partition"], []).append(row["offset"])
        return found


def tables_of(kafka: Cluster) -> Tables:
    """What a cluster's journal holds, as tables."""
    with tempfile.TemporaryDirectory() as directory:
        run = kafka.journal.export(directory)
        tables = Tables(Path(directory), run.run)
        return _Read(tables)


class _Read(Tables):
    """Tables that were read into memory."""

    def __init__(self, tables: Tables) -> None:
        self._all = {
            file.parent.parent.name: tables.rows(file.parent.parent.name)
            for file in tables.store.path.glob("*/*/*.parquet")
        }

    def rows(self, table: str, **conditions: object) -> list[Row]:
        return [
            row
            for row in self._all.get(table, [])
            if all(row[name] == value for name, value in conditions.items())
        ]


def seen(messages: Any) -> Iterator[tuple[int, int]]:
    """(partition, offset) of what confluent-kafka delivered."""
    for message in messages:
        assert message.error() is None
        yield message.partition(), message.offset()
