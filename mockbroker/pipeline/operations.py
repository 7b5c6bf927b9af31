"""The operations of an application: a log that it writes, and the table made of it.

    with OperationLog("ops.jsonl", process="billing-1", group="billing") as log:
        log.processed("orders", 0, 17, id="order-17")

The wire shows deliveries, not processing. Each line is JSON and is written at once, so that the log
of a killed process is complete. Needs nothing but Python.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mockbroker.pipeline.store import StoreError
from mockbroker.pipeline.tables import TABLES
from mockbroker.pipeline.write import replace_table

OPERATIONS = (
    "send",
    "acked",
    "failed",
    "processed",
    "assigned",
    "revoked",
    "seek",
    "committed",
)
_COLUMNS = {column.name: column.kind for column in TABLES["operations"]}


class OperationLog:
    """Logs the operations of one producer or consumer of an application; a context manager.

    `process` is its name, unique in the run; `group` is its consumer group.
    Lines are appended to the file. May be used by several threads, and by one process alone.
    """

    def __init__(self, path: Path | str, process: str = "", group: str | None = None) -> None:
        self.process = process or f"process-{os.getpid()}"
        self.group = group
        self._seq = 0
        self._lock = threading.Lock()
        self._file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115 - closed by `close`

    def send(self, topic: str, partition: int | None = None, *, id: str | None = None) -> None:  # noqa: A002
        """A record was passed to the client."""
        self._write("send", topic, partition, None, id)

    def acked(
        self,
        topic: str,
        partition: int | None,
        offset: int | None,
        *,
        id: str | None = None,  # noqa: A002
    ) -> None:
        """The client reported the record as acknowledged, at this offset."""
        self._write("acked", topic, partition, offset, id)

    def failed(self, topic: str, partition: int | None = None, *, id: str | None = None) -> None:  # noqa: A002
        """The client reported that the record could not be sent."""
        self._write("failed", topic, partition, None, id)

    def processed(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        id: str | None = None,  # noqa: A002
    ) -> None:
        """The application has processed a record."""
        self._write("processed", topic, partition, offset, id)

    def assigned(self, topic: str, partition: int, offset: int | None = None) -> None:
        """The consumer was assigned a partition, to begin at `offset` if that is given."""
        self._write("assigned", topic, partition, offset, None)

    def revoked(self, topic: str, partition: int) -> None:
        """A partition of the consumer was revoked."""
        self._write("revoked", topic, partition, None, None)

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """The application changed its position."""
        self._write("seek", topic, partition, offset, None)

    def committed(self, topic: str, partition: int, offset: int) -> None:
        """The client reported an offset as committed."""
        self._write("committed", topic, partition, offset, None)

    def _write(
        self, op: str, topic: str, partition: int | None, offset: int | None, id_: str | None
    ) -> None:
        with self._lock:
            self._seq += 1
            row: dict[str, object] = {
                "seq": self._seq,
                "real_ns": time.time_ns(),
                "process": self.process,
                "op": op,
                "group": self.group,
                "topic": topic,
                "partition": partition,
                "offset": offset,
                "id": id_,
            }
            known = {name: value for name, value in row.items() if value is not None}
            self._file.write(json.dumps(known, ensure_ascii=False) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> OperationLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_operations(path: Path | str) -> Iterator[dict[str, Any]]:
    """The rows of one log. An unfinished last line is left out.

    Raises StoreError that names a line without an operation.
    """
    try:
        text = Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from None
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            if number == len(lines):
                return  # the process was killed
            raise StoreError(f"{path}, line {number}: this is not JSON") from None
        wrong = _wrong(row)
        if wrong:
            raise StoreError(f"{path}, line {number}: {wrong}")
        yield row


def _wrong(row: object) -> str:
    """The fault of a row; empty if the row is an operation."""
    if not isinstance(row, dict):
        return "an operation is an object"
    unknown = row.keys() - _COLUMNS.keys()
    if unknown:
        return f"there is no {sorted(unknown)[0]!r}; there are {', '.join(_COLUMNS)}"
    if row.get("op") not in OPERATIONS:
        return f"op is one of {', '.join(OPERATIONS)}, not {row.get('op')!r}"
    for name, value in row.items():
        fits = isinstance(value, str) if _COLUMNS[name] == "string" else type(value) is int
        if value is not None and not fits:
            return f"{name} cannot be {value!r}"
    if not row.get("process") or not row.get("topic"):
        return "process and topic are needed"
    return ""


def add_operations(directory: Path | str, run: str, *logs: Path | str) -> int:
    """Add the operations of logs to a run, in place of earlier ones; returns their number.

    Raises StoreError if the run does not exist or a log is invalid; then nothing has changed.
    """
    rows = [row for log in logs for row in read_operations(log)]
    return replace_table(directory, run, "operations", rows)
