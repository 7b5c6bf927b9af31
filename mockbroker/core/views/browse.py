"""Pages of partitions and batches, for views of a part of a large cluster."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import msgspec

from mockbroker.core.views.topics import PartitionView, control_type, partition_view
from mockbroker_protocol.records import (
    BatchHeader,
    CompressionType,
    Record,
    RecordsError,
    iter_records,
    split_batches,
)

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.log.replica_log import ReplicaLog
    from mockbroker.core.replication.partition import Partition

READ_BYTES_MAX = 1 << 20

Trouble: TypeAlias = Literal["any", "under_replicated", "offline", "not_preferred", "transaction"]


class PartitionSearch(NamedTuple):
    """Partitions with a replica on `broker`, of topics with `topic` in their name, in any case, or
    of the topic of this name if it is `exact`; `only` those with a trouble.
    """

    topic: str = ""
    exact: bool = False
    broker: int | None = None
    only: Trouble = "any"


class PartitionPage(msgspec.Struct, frozen=True):
    """Some of the requested partitions, by topic and number, internal topics
    last; `total` counts all.
    """

    partitions: list[PartitionView]
    total: int


class BrowsedRecord(msgspec.Struct, frozen=True):
    """One record of a batch. In JSON, bytes are base64.

    Key and values are cut to the requested number of bytes; `key_bytes` and `value_bytes` are their
    sizes, -1 for null. For a control record, `control` is "commit", "abort" or "other". `found`:
    the record has what was searched for.
    """

    offset: int
    timestamp_ms: int
    key: bytes | None
    key_bytes: int
    value: bytes | None
    value_bytes: int
    headers: list[tuple[str, bytes | None]]
    sequence: int
    control: str | None
    found: bool


class BatchView(msgspec.Struct, frozen=True):
    """One record batch as it lies in the log. `bytes` is its size there, `codec` its compression.

    Ids and sequences are -1 without a producer. `note` says why records are not shown; `records`
    then has those before that.
    """

    base_offset: int
    last_offset: int
    leader_epoch: int
    bytes: int
    codec: str
    timestamp_type: str
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool
    control: bool
    count: int
    records: list[BrowsedRecord]
    note: str


class BatchPage(msgspec.Struct, frozen=True):
    """Batches of one log from an offset on, and the bounds of the log.

    `next` is the offset behind the last batch that was looked at, `looked_at` their number. The
    log's end is `log_end_offset`.
    """

    batches: list[BatchView]
    next: int
    looked_at: int
    log_start_offset: int
    last_stable_offset: int
    high_watermark: int
    log_end_offset: int


def partition_page(
    cluster: Cluster, wanted: PartitionSearch, offset: int, limit: int
) -> PartitionPage:
    """Partitions `offset` to `offset + limit` of the requested ones."""
    found = list(_selected(cluster, wanted))
    page = found[offset : offset + limit]
    return PartitionPage([partition_view(each) for each in page], len(found))


def _selected(cluster: Cluster, wanted: PartitionSearch) -> Iterator[Partition]:
    text = wanted.topic.lower()
    # Internal topics come last: readers look for their own.
    for topic in sorted(cluster.topics.values(), key=lambda each: (each.is_internal, each.name)):
        if topic.name == wanted.topic if wanted.exact else text in topic.name.lower():
            for each in topic.partitions:
                has_replica = wanted.broker is None or wanted.broker in each.replicas
                if has_replica and _has(each, wanted.only):
                    yield each


def _has(partition: Partition, only: Trouble) -> bool:
    match only:
        case "any":
            return True
        case "under_replicated":
            return len(partition.isr) < len(partition.replicas)
        case "offline":
            return partition.leader_id < 0
        case "not_preferred":
            return partition.leader_id != partition.replicas[0]
        case "transaction":
            return partition.last_stable_offset < partition.high_watermark


class BatchSearch(msgspec.Struct, frozen=True):
    """A search in a log: batches from `offset` on, at most `limit` records.

    With `text` only batches are given that have it in a key, a value or a header, in any case.
    """

    offset: int
    limit: int
    text: bytes = b""
    value_bytes_max: int = 1_000


def batches(log: ReplicaLog, wanted: BatchSearch) -> tuple[list[BatchView], int, int]:
    """The batches of one read of about a MiB, the offset behind them, and how many were read."""
    position = max(wanted.offset, log.start_offset)
    found: list[BatchView] = []
    records = looked_at = 0
    pieces, _ = log.read(position, log.end_offset, READ_BYTES_MAX, at_least_one=True)
    for piece in pieces:
        for header, batch in split_batches(piece):
            if records >= wanted.limit:
                return found, position, looked_at
            position, looked_at = header.next_offset, looked_at + 1
            view = _batch(header, batch, wanted)
            if not wanted.text or any(each.found for each in view.records):
                found.append(view)
                records += max(len(view.records), 1)
    return found, position, looked_at


def _batch(header: BatchHeader, batch: memoryview, wanted: BatchSearch) -> BatchView:
    records, note = _records(header, batch, wanted)
    return BatchView(
        base_offset=header.base_offset,
        last_offset=header.next_offset - 1,
        leader_epoch=header.leader_epoch,
        bytes=header.size,
        codec=CompressionType(header.codec).name.lower(),
        timestamp_type=header.timestamp_type.name.lower(),
        max_timestamp_ms=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        control=header.is_control,
        count=header.count,
        records=records,
        note=note,
    )


def _records(
    header: BatchHeader, batch: memoryview, wanted: BatchSearch
) -> tuple[list[BrowsedRecord], str]:
    shown: list[BrowsedRecord] = []
    opened = enumerate(iter_records(header, batch))
    try:
        for number, record in islice(opened, wanted.limit):
            shown.append(_record(header, number, record, wanted))
        if next(opened, None) is not None:
            return shown, f"{header.count - len(shown)} more records of this batch are not shown"
    except RecordsError as error:  # the leader has checked only the header
        return shown, f"the records cannot be read: {error}"
    return shown, ""


def _record(header: BatchHeader, number: int, record: Record, wanted: BatchSearch) -> BrowsedRecord:
    cut = wanted.value_bytes_max
    return BrowsedRecord(
        offset=record.offset,
        timestamp_ms=record.timestamp,
        key=None if record.key is None else bytes(record.key[:cut]),
        key_bytes=-1 if record.key is None else len(record.key),
        value=None if record.value is None else bytes(record.value[:cut]),
        value_bytes=-1 if record.value is None else len(record.value),
        headers=[
            (name, None if value is None else bytes(value[:cut])) for name, value in record.headers
        ],
        sequence=-1 if header.base_sequence < 0 else header.base_sequence + number,
        control=control_type(header, record),
        found=bool(wanted.text) and _contains(record, wanted.text),
    )


def _contains(record: Record, text: bytes) -> bool:
    parts = [record.key, record.value]
    for name, value in record.headers:
        parts += [name.encode(), value]
    return any(part is not None and text in bytes(part).lower() for part in parts)
