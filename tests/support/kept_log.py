"""A replica's log with everything around it that upkeep needs, driven in a few words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mockbroker.core.configs.values import ClusterConfigs, TopicConfigs
from mockbroker.core.log.cleaner import CleanerStats, Cleaning, LogToClean, log_to_clean
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.log.retention import DeletedSegments, enforce
from mockbroker_protocol.records import (
    BatchHeader,
    ControlType,
    Record,
    build_batch,
    build_marker,
    check_crc,
    iter_records,
)

NOW_MS = 1_700_000_000_000
KEYS_MAX = 1 << 20

# A record in short: (key, value), or (key, value, timestamp).
Short = tuple[bytes | None, bytes | None] | tuple[bytes | None, bytes | None, int]


class KeptLog:
    """One log of a compacted topic, its clock and its configs.

    The high watermark is the log's end unless `high_watermark` is set.
    """

    def __init__(self, **configs: str | int) -> None:
        self.now_ms = NOW_MS
        self.log = ReplicaLog()
        self.high_watermark: int | None = None
        self.configs = self.topic_configs({"cleanup_policy": "compact", **configs})

    def topic_configs(self, configs: dict[str, str | int]) -> TopicConfigs:
        """`a_b="x"` means config a.b."""
        named = {key.replace("_", "."): str(value) for key, value in configs.items()}
        return TopicConfigs(ClusterConfigs({}), named)

    # -- writing -----------------------------------------------------------------------------------

    def put(self, batch: bytearray) -> int:
        """Append a whole batch as a leader would; its base offset."""
        header, log = BatchHeader(batch), self.log
        log.maybe_roll(len(batch), header.max_timestamp, self.now_ms, self.configs.roll_limits)
        base_offset = log.append(
            memoryview(batch), header.last_offset_delta, header.max_timestamp, 0
        )
        log.producers.replay(batch)
        log.producers.high_watermark_moved(self.settled)
        return base_offset

    def write(self, *records: Short, **more: Any) -> int:
        """Append records in one batch; its base offset. `more` is for `build_batch`."""
        full = [
            Record(at, record[2] if len(record) > 2 else self.now_ms, record[0], record[1])
            for at, record in enumerate(records)
        ]
        return self.put(build_batch(full, **more))

    def write_as(
        self, producer_id: int, sequence: int, *records: Short, epoch: int = 0, **more: Any
    ) -> int:
        """Append records as an idempotent or, with `transactional=True`, transactional producer."""
        return self.write(
            *records,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            **more,
        )

    def end(self, producer_id: int, kind: ControlType, *, epoch: int = 0) -> int:
        """Append the marker that ends a transaction; its offset."""
        return self.put(
            build_marker(
                kind,
                producer_id=producer_id,
                producer_epoch=epoch,
                coordinator_epoch=0,
                timestamp=self.now_ms,
            )
        )

    def roll(self) -> None:
        """Close the active segment, so that everything may be cleaned."""
        self.log.roll()

    # -- upkeep ------------------------------------------------------------------------------------

    @property
    def settled(self) -> int:
        return self.log.end_offset if self.high_watermark is None else self.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self.log.last_stable_offset(self.settled)

    @property
    def dirt(self) -> LogToClean:
        return log_to_clean(self.log, self.configs, self.last_stable_offset, self.now_ms)

    def cleaning(self, keys_max: int = KEYS_MAX) -> Cleaning:
        return Cleaning(self.log, self.dirt, self.configs, self.now_ms, keys_max)

    def clean(self, keys_max: int = KEYS_MAX) -> CleanerStats | None:
        """One whole cleaning, in small steps; None if it broke off or there was nothing."""
        cleaning = self.cleaning(keys_max)
        while not cleaning.step(1):
            pass
        return cleaning.result

    def retain(self) -> DeletedSegments | None:
        """One look of retention."""
        return enforce(self.log, self.configs, self.settled, self.now_ms)

    # -- looking -----------------------------------------------------------------------------------

    @property
    def headers(self) -> list[BatchHeader]:
        """The header of each batch, after a look at its checksum and its place."""
        found = []
        for batch in self.log.batches():
            check_crc(batch)
            header = BatchHeader(batch)
            assert header.size == len(batch)
            assert not found or header.base_offset >= found[-1].next_offset
            found.append(header)
        return found

    @property
    def records(self) -> list[Record]:
        """Every data record in the log."""
        return [
            record
            for batch in self.log.batches()
            if not (header := BatchHeader(batch)).is_control
            for record in iter_records(header, batch)
        ]

    @property
    def shown(self) -> list[tuple[int, bytes | None, bytes | None]]:
        """(offset, key, value) of every data record."""
        return [(record.offset, record.key, record.value) for record in self.records]

    @property
    def content(self) -> bytes:
        """Every byte of the log."""
        return b"".join(self.log.batches())

    def fetched_bases(self, offset: int, bytes_max: int = 1 << 30) -> list[int]:
        """The base offsets of the batches that a fetch from `offset` gets."""
        pieces, size = self.log.read(offset, self.settled, bytes_max, at_least_one=True)
        stored = b"".join(pieces)
        assert len(stored) == size
        return list(bases_of(stored))


def bases_of(stored: bytes) -> Iterable[int]:
    """The base offset of each batch."""
    at = 0
    while at < len(stored):
        header = BatchHeader(stored, at)
        yield header.base_offset
        at += header.size
