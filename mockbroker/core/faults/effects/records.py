"""Effects on the records of a Produce or a Fetch: damaged, duplicated or hidden batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from mockbroker.core.faults.partial import Selection, fresh, selected_partitions
from mockbroker.core.faults.rows import RowArray
from mockbroker.core.log.compacted_batch import emptied, rebuild
from mockbroker.core.validation import Count, Positive, Range
from mockbroker_protocol.records import (
    BatchHeader,
    RecordsError,
    batch_payload,
    split_batches,
    update_crc,
)
from mockbroker_protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    CODEC_MASK,
    CRC_OFFSET,
    MAGIC_OFFSET,
)
from mockbroker_protocol.records.keys import scan_keys

_COUNT_OFFSET = 57
TIMES_MAX = 1_000  # the answer has all of them
JOINED_BYTES_MAX = 256 << 20
_NO_CODEC = 7
_NO_MAGIC = 9


Change = Callable[[bytes], bytes | list[memoryview]]
"""Makes other records of those of one partition: a buffer, or the pieces of one."""


class CorruptBatch(msgspec.Struct, frozen=True):
    """The first batch of each partition is damaged, in the answer to a Fetch or in a Produce: its
    checksum, magic, codec, or record count (with a valid checksum).
    """

    SHORT: ClassVar[str] = "how"

    how: Literal["crc", "magic", "codec", "count"] = "crc"


class DuplicateRecords(msgspec.Struct, frozen=True):
    """Every batch of a Fetch is sent `times` times, with the same offsets."""

    SHORT: ClassVar[str] = "times"

    times: Annotated[int, Range(1, TIMES_MAX)] = 2


class HideRecords(msgspec.Struct, frozen=True, kw_only=True):
    """Records are missing from a Fetch, as if compacted: those at `offsets`, or every k-th offset;
    without either, all. The log keeps them.
    """

    SHORT: ClassVar[str] = "offsets"

    offsets: list[Count] | None = None
    every: Positive | None = None

    def hides(self, offset: int) -> bool:
        if self.offsets is not None and offset in self.offsets:
            return True
        if self.every is not None:
            return offset % self.every == 0
        return self.offsets is None


def with_records(
    message: Any, layout: Sequence[RowArray], selection: Selection, change: Change
) -> Any:
    """A copy of a Produce, or of the answer to a Fetch, with changed records.

    Raises ValueError if an earlier effect has made too many bytes of them.
    """
    changed = fresh(message)
    for _, partition in selected_partitions(changed, layout, selection):
        records = joined(partition.records)
        if records:
            found = change(records)
            partition.records = memoryview(found) if isinstance(found, bytes) else found
    return changed


def joined(records: Any) -> bytes:
    """The records of a partition as one buffer. Raises ValueError for very many bytes."""
    if records is None:
        return b""
    if isinstance(records, bytes | bytearray | memoryview):
        return bytes(records)
    size = sum(map(len, records))
    if size > JOINED_BYTES_MAX:
        raise ValueError(f"effects have made {size:,} bytes of the records of a partition")
    return b"".join(records)


def corrupted(records: bytes, effect: CorruptBatch) -> bytes:
    """The records with their first batch damaged."""
    out = bytearray(records)
    if len(out) < _COUNT_OFFSET + 4:
        return records
    if effect.how == "crc":
        out[CRC_OFFSET] ^= 0x01
    elif effect.how == "magic":
        out[MAGIC_OFFSET] = _NO_MAGIC
    elif effect.how == "codec":
        out[ATTRIBUTES_OFFSET + 1] |= _NO_CODEC & CODEC_MASK
        update_crc(out)
    else:
        count = int.from_bytes(out[_COUNT_OFFSET : _COUNT_OFFSET + 4], "big")
        # A producer may send any count.
        out[_COUNT_OFFSET : _COUNT_OFFSET + 4] = ((count + 3) % (1 << 32)).to_bytes(4, "big")
        update_crc(out)
    return bytes(out)


def duplicated(records: bytes, effect: DuplicateRecords) -> list[memoryview]:
    """The records with each whole batch repeated, which takes no memory."""
    return [batch for _, batch in _batches(records) for _ in range(effect.times)]


def hidden(records: bytes, effect: HideRecords) -> bytes:
    """The records without the hidden ones; their batches keep their offsets."""
    return b"".join(_without(header, batch, effect) for header, batch in _batches(records))


def _without(header: BatchHeader, batch: memoryview, effect: HideRecords) -> bytes:
    if header.is_control:
        return bytes(batch)
    payload = bytes(batch_payload(header, batch))
    spans = scan_keys(payload, 0, header.count)
    kept = [span for span in spans if not effect.hides(header.base_offset + span[4])]
    if len(kept) == len(spans):
        return bytes(batch)
    return bytes(rebuild(header, payload, kept, None) if kept else emptied(header))


def _batches(records: bytes) -> Iterable[tuple[BatchHeader, memoryview]]:
    """The whole batches; a Fetch may end within a batch."""
    try:
        yield from split_batches(records)
    except RecordsError:
        return
