"""Tables of a run of any size, made up in columns, for measuring the audit.

Producers append batches to the partitions of one topic in turn; a group reads all of it, an answer
after the other, and commits. All is well but for three rows that are planted: an answer that leaves
out a record, an answer with another value, and an id that stands in the log twice. An audit that
does not find exactly these measured nothing (`PLANTED`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mockbroker.pipeline.write import TableWriter

RUN = "bench"
TOPIC = "orders"
TOPIC_ID = "b3JkZXJzLW9mLWEtYmVuY2g"
PLANTED = Counter({"skip": 1, "inconsistent_offset": 1, "duplicate": 1})

BATCH = 100  # records
ANSWER = 500
COMMIT_EVERY = 10  # answers
KEYS = 5000
HOT_SHARE = 0.9
_CHUNK = 10_000  # batches
_START_MS = 1_700_000_000_000

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shape:
    """`records` appended and as many delivered; with `skewed`, partition 0 has 90 % of them."""

    records: int
    partitions: int = 16
    skewed: bool = False

    def batches_of(self) -> list[int]:
        """Batches of each partition, in whole answers."""
        batches = self.records // BATCH
        step = ANSWER // BATCH
        if not self.skewed:
            share = batches // self.partitions // step * step
            return [share] * self.partitions
        rest = int(batches * (1 - HOT_SHARE)) // (self.partitions - 1) // step * step
        hot = (batches - rest * (self.partitions - 1)) // step * step
        return [hot] + [rest] * (self.partitions - 1)


def write_tables(directory: Path, shape: Shape, run: str = RUN) -> int:
    """Write the tables of one run; how many records there are, which is what deliveries there are.

    It may be a few less than was asked for, because every partition has whole answers.
    """
    with TableWriter(directory, run) as writer:
        lots = shape.batches_of()
        partition_of = _in_turn(lots)
        appended = _write_batches(writer, partition_of)
        _write_answers(writer, [lot * BATCH // ANSWER for lot in lots], appended)
    return sum(lots) * BATCH


def _in_turn(lots: list[int]) -> Numbers:
    """The partition of every batch or answer, so that all partitions end at the same time."""
    partitions = np.repeat(np.arange(len(lots)), lots)
    due = np.concatenate([(np.arange(lot) + 0.5) / lot for lot in lots if lot])
    return partitions[np.argsort(due, kind="stable")].astype(np.int64)


def _numbers_within(partition_of: Numbers) -> Numbers:
    """How many of the same partition came before each."""
    order = np.argsort(partition_of, kind="stable")
    ordered = partition_of[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]]
    starts = np.maximum.accumulate(np.where(first, np.arange(len(ordered)), 0))
    numbers = np.empty_like(partition_of)
    numbers[order] = np.arange(len(ordered)) - starts
    return numbers


def _hash(partition: Numbers, offset: Numbers) -> Numbers:
    """What stands for a record's value: the same wherever it is asked for (SplitMix64)."""
    with np.errstate(over="ignore"):
        bits = (partition.astype(np.uint64) << np.uint64(40)) + offset.astype(np.uint64)
        bits = bits * np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (bits ^ (bits >> np.uint64(31))).view(np.int64)


def _place(partition: Numbers) -> dict[str, object]:
    rows = len(partition)
    return {
        "topic": _same(TOPIC, rows),
        "topic_id": _same(TOPIC_ID, rows),
        "partition": partition.astype(np.int32),
    }


def _same(text: str, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(text), rows)


def _times(seq: Numbers) -> dict[str, object]:
    return {"virtual_ms": _START_MS + seq // 8, "real_ns": (_START_MS + seq // 8) * 1_000_000}


def _write_batches(writer: TableWriter, partition_of: Numbers) -> int:
    """Write `batches` and `records`; the last number given."""
    numbers = _numbers_within(partition_of)
    total = len(partition_of)
    for start in range(0, total, _CHUNK):
        batch = np.arange(start, min(start + _CHUNK, total))
        partition, number = partition_of[batch], numbers[batch]
        append_seq = batch * 3 + 2
        rows = len(batch)
        base = number * BATCH
        writer.columns(
            "batches",
            {
                "seq": append_seq - 1,
                "append_seq": append_seq,
                "response_seq": append_seq + 1,
                **_times(append_seq),
                "broker": np.ones(rows, np.int32),
                "connection": partition + 1,
                "client_id": _same("shop", rows),
                **_place(partition),
                "base_offset": base,
                "last_offset": base + BATCH - 1,
                "records": np.full(rows, BATCH, np.int32),
                "bytes": np.full(rows, 70 * BATCH, np.int32),
                "producer_id": partition + 1000,
                "producer_epoch": np.zeros(rows, np.int16),
                "base_sequence": base % 2**31,
                "acks": np.full(rows, -1, np.int16),
                "acknowledged": np.ones(rows, np.bool_),
            },
        )
        _write_records(writer, partition, base, append_seq, batch, last=start + rows == total)
        _write_watermarks(writer, append_seq + 1, partition, base + BATCH, "produce")
    return 3 * total + 3


def _write_records(
    writer: TableWriter,
    partition: Numbers,
    base: Numbers,
    append_seq: Numbers,
    batch: Numbers,
    *,
    last: bool,
) -> None:
    within = np.tile(np.arange(BATCH), len(batch))
    partitions = np.repeat(partition, BATCH)
    offset = np.repeat(base, BATCH) + within
    number = np.repeat(batch * BATCH, BATCH) + within
    if last:
        of_it = np.flatnonzero(partitions == partitions[-1])
        number[of_it[-1]] = number[of_it[0]]  # the last has the id of a former
    value_hash = _hash(partitions, offset)
    writer.columns(
        "records",
        {
            "append_seq": np.repeat(append_seq, BATCH),
            **_place(partitions),
            "offset": offset,
            "timestamp": _START_MS + np.repeat(append_seq, BATCH) // 8,
            "id": pc.binary_join_element_wise("order", pa.array(number).cast(pa.string()), "-"),
            "value_hash": value_hash,
            "key_hash": _hash(value_hash % KEYS, np.zeros_like(offset)),
        },
    )


def _write_answers(writer: TableWriter, lots: list[int], seq: int) -> None:
    """Write `fetches`, `deliveries` and `commits`."""
    partition_of = _in_turn(lots)
    numbers = _numbers_within(partition_of)
    total = len(partition_of)
    step = _CHUNK * BATCH // ANSWER
    for start in range(0, total, step):
        answer = np.arange(start, min(start + step, total))
        partition, number = partition_of[answer], numbers[answer]
        response_seq = seq + answer * 3 + 1
        rows = len(answer)
        offset = number * ANSWER
        writer.columns(
            "fetches",
            {
                "seq": response_seq - 1,
                "response_seq": response_seq,
                **_times(response_seq),
                "broker": np.ones(rows, np.int32),
                "connection": partition + 100,
                "client_id": _same("billing", rows),
                "group": _same("billing", rows),
                "member": _same("billing-1", rows),
                **_place(partition),
                "read_span": partition,
                "start": pc.if_else(
                    pa.array(number == 0), "rebalance", pa.scalar(None, pa.string())
                ),
                "isolation_level": np.ones(rows, np.int8),
                "fetch_offset": offset,
                "next_offset": offset + ANSWER,
                "delivered": np.full(rows, ANSWER, np.int32),
                "log_start_offset": np.zeros(rows, np.int64),
                "last_stable_offset": np.take(np.array(lots), partition) * ANSWER,
                "high_watermark": np.take(np.array(lots), partition) * ANSWER,
            },
        )
        _write_deliveries(writer, partition, offset, response_seq, first=start == 0)
        ends = np.take(np.array(lots), partition) * ANSWER
        _write_watermarks(writer, response_seq, partition, ends, "fetch")
        told = number % COMMIT_EVERY == COMMIT_EVERY - 1
        _write_commits(writer, response_seq[told] + 1, partition[told], offset[told] + ANSWER)


def _write_deliveries(
    writer: TableWriter, partition: Numbers, base: Numbers, response_seq: Numbers, *, first: bool
) -> None:
    position = np.tile(np.arange(ANSWER), len(base))
    partitions = np.repeat(partition, ANSWER)
    offset = np.repeat(base, ANSWER) + position
    value_hash = _hash(partitions, offset)
    kept = np.ones(len(offset), np.bool_)
    if first:
        value_hash[ANSWER // 3] += 1  # another value
        kept[ANSWER + ANSWER // 2] = False  # and in another answer one left out
        position[ANSWER + ANSWER // 2 : 2 * ANSWER] -= 1
    columns: dict[str, npt.NDArray[np.int64 | np.int32]] = {
        "response_seq": np.repeat(response_seq, ANSWER),
        "partition": partitions.astype(np.int32),
        "position": position.astype(np.int32),
        "offset": offset,
        "value_hash": value_hash,
    }
    columns = {name: column[kept] for name, column in columns.items()}
    names = {"topic": _same(TOPIC, int(kept.sum())), "topic_id": _same(TOPIC_ID, int(kept.sum()))}
    writer.columns("deliveries", {**columns, **names})


def _write_commits(writer: TableWriter, seq: Numbers, partition: Numbers, offset: Numbers) -> None:
    rows = len(seq)
    writer.columns(
        "commits",
        {
            "seq": seq,
            "response_seq": seq + 1,
            **_times(seq),
            "group": _same("billing", rows),
            "member": _same("billing-1", rows),
            "generation": np.ones(rows, np.int32),
            "client_id": _same("billing", rows),
            "connection": partition + 100,
            **_place(partition),
            "offset": offset,
            "applied": np.ones(rows, np.bool_),
            "reset": np.zeros(rows, np.bool_),
        },
    )


def _write_watermarks(
    writer: TableWriter, seq: Numbers, partition: Numbers, end: Numbers, source: str
) -> None:
    rows = len(seq)
    writer.columns(
        "watermarks",
        {
            "seq": seq,
            **_times(seq),
            "broker": np.ones(rows, np.int32),
            **_place(partition),
            "leader_epoch": np.zeros(rows, np.int32),
            "log_start_offset": np.zeros(rows, np.int64),
            "last_stable_offset": end,
            "high_watermark": end,
            "log_end_offset": end if source == "produce" else pa.nulls(rows, pa.int64()),
            "source": _same(source, rows),
        },
    )
