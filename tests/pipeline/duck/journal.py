"""A handmade journal of one partition, row by row, and DuckDB's findings in it."""

from __future__ import annotations

from typing import Any

from mockbroker.pipeline.duck import DuckSession, judge
from mockbroker.pipeline.findings import Finding
from mockbroker.pipeline.store import arrow_schema
from mockbroker.pipeline.tables import TABLES

Row = dict[str, Any]
# Verdict, offset, subject, first and last seq.
Brief = tuple[str, int | None, str | None, int | None, int | None]
PLACE: Row = {"topic": "t", "topic_id": "id-t", "partition": 0}


def value(offset: int) -> int:
    """What stands at an offset unless a test says otherwise."""
    return offset * 1_000_003


class Journal:
    """Rows of the tables of run `r`, partition 0 of topic t."""

    def __init__(self) -> None:
        self.tables: dict[str, list[Row]] = {name: [] for name in TABLES}

    def row(self, table: str, **columns: Any) -> None:
        self.tables[table].append(columns)

    def batch(
        self, append_seq: int, base: int, count: int, *, values: list[int] | None = None,
        ids: list[str] | None = None, **columns: Any,
    ) -> None:  # fmt: skip
        """A batch that was appended and acknowledged, with its records."""
        row = {
            "seq": append_seq - 1, "append_seq": append_seq, "response_seq": append_seq + 1,
            "client_id": "c", "base_offset": base, "last_offset": base + count - 1,
            "records": count, "acks": -1, "acknowledged": True,
        }  # fmt: skip
        self.row("batches", **PLACE, **{**row, **columns})
        for index in range(count):
            offset = base + index
            self.row(
                "records",
                **PLACE,
                append_seq=append_seq,
                offset=offset,
                value_hash=values[index] if values else value(offset),
                id=ids[index] if ids else None,
            )

    def retry(self, seq: int, base: int, count: int, **columns: Any) -> None:
        """A batch that was sent again, and acknowledged without being appended."""
        row = {
            "seq": seq, "response_seq": seq + 1, "client_id": "c", "base_offset": base,
            "last_offset": base + count - 1, "records": count, "acks": -1, "acknowledged": True,
        }  # fmt: skip
        self.row("batches", **PLACE, **{**row, **columns})

    def refused(self, seq: int, error: str, **columns: Any) -> None:
        """A batch that was refused."""
        row = {"seq": seq, "response_seq": seq + 1, "error": error, "acknowledged": False}
        self.row("batches", **PLACE, **{**row, **columns})

    def fetch(
        self, response_seq: int, asked: int, next_offset: int, offsets: list[int] | None = None,
        *, values: dict[int, int] | None = None, **columns: Any,
    ) -> None:  # fmt: skip
        """An answer that brought all offsets, or those named, in their order."""
        brought = list(range(asked, next_offset)) if offsets is None else offsets
        row = {
            "seq": response_seq - 1, "response_seq": response_seq, "connection": 7,
            "read_span": 1, "isolation_level": 0, "fetch_offset": asked,
            "next_offset": next_offset, "delivered": len(brought),
            "last_stable_offset": 1_000, "high_watermark": 1_000,
        }  # fmt: skip
        self.row("fetches", **PLACE, **{**row, **columns})
        for position, offset in enumerate(brought):
            told = (values or {}).get(offset, value(offset))
            self.row(
                "deliveries", **PLACE, response_seq=response_seq, position=position, offset=offset,
                value_hash=told,
            )  # fmt: skip

    def commit(self, seq: int, offset: int | None, **columns: Any) -> None:
        """A commit of member m of group g that was taken."""
        row = {
            "seq": seq, "response_seq": seq + 1, "group": "g", "member": "m", "generation": 1,
            "offset": offset, "applied": True, "reset": False,
        }  # fmt: skip
        self.row("commits", **PLACE, **{**row, **columns})

    def removal(
        self, seq: int, first: int, last: int, reason: str, cause: str | None = None
    ) -> None:
        self.row(
            "removals", **PLACE, seq=seq, first_offset=first, last_offset=last, reason=reason,
            cause=cause,
        )  # fmt: skip

    def marker(
        self, seq: int, offset: int, transaction: str, *, committed: bool, leader_epoch: int = 0
    ) -> None:
        self.row(
            "markers", **PLACE, seq=seq, leader_epoch=leader_epoch, offset=offset,
            transaction=transaction, committed=committed,
        )  # fmt: skip

    def expiration(self, seq: int, producer_id: int, **columns: Any) -> None:
        self.row("expirations", **{**PLACE, "seq": seq, "producer_id": producer_id, **columns})

    def unclean_election(self, seq: int, leader_epoch: int) -> None:
        self.row(
            "cluster", **PLACE, seq=seq, change="LeaderChanged", leader=2, unclean=True,
            leader_epoch=leader_epoch,
        )  # fmt: skip

    def gap(self, first: int, last: int) -> None:
        self.row("gaps", first_seq=first, last_seq=last, reason="for a test")

    def operation(self, seq: int, op: str, **columns: Any) -> None:
        row = {"process": "app", "topic": "t", "partition": 0}
        self.row("operations", seq=seq, op=op, **{**row, **columns})

    def session(self) -> DuckSession:
        """DuckDB over these tables."""
        import pyarrow as pa

        session = DuckSession()
        for name, rows in self.tables.items():
            if not rows:
                session.view(name, [])
                continue
            schema = arrow_schema(name).append(pa.field("run", pa.string()))
            table = pa.Table.from_pylist([{**row, "run": "r"} for row in rows], schema)
            session.connection.register(name, table)
        return session

    def findings(self, anomaly: str) -> list[Finding]:
        """What is found of one anomaly."""
        with self.session() as session:
            return judge(session, [anomaly])

    def brief(self, anomaly: str) -> list[Brief]:
        """The same in short."""
        return [
            (found.verdict, found.offset, found.subject, found.first_seq, found.last_seq)
            for found in self.findings(anomaly)
        ]
