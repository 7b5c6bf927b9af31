"""A range of a log's batches, as a share fetch reads them.

The base offsets come from the index of the log. The bytes of a batch are touched only for its last
offset, and for the producer of a transactional batch. A range is valid until the log changes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mockbroker_protocol.records import BatchHeader

if TYPE_CHECKING:
    from mockbroker.core.log.batch_store import BatchStore


class FetchedBatches:
    """The batches [first, last) of a log."""

    __slots__ = ("_first", "_store", "base_offsets")

    def __init__(self, store: BatchStore, first: int, base_offsets: Sequence[int]) -> None:
        """`base_offsets` are those of the batches from index `first` of the store on."""
        self._store = store
        self._first = first
        self.base_offsets = base_offsets

    def __len__(self) -> int:
        return len(self.base_offsets)

    @property
    def base_offset(self) -> int:
        """The base offset of the first batch, which may be below the offset of the fetch."""
        return self.base_offsets[0]

    @property
    def last_offset(self) -> int:
        """The last offset of the last batch."""
        return self._store.last_offset_at(self._first + len(self.base_offsets) - 1)

    def batch_end(self, offset: int) -> int:
        """The last offset of the batch with `offset`; `offset` itself if no batch has it."""
        index = bisect_right(self.base_offsets, offset) - 1
        if index < 0:
            return offset
        return max(offset, self._store.last_offset_at(self._first + index))

    def headers(self) -> Iterator[tuple[BatchHeader, memoryview]]:
        """The header and the bytes of each batch."""
        for index in range(self._first, self._first + len(self.base_offsets)):
            batch = self._store.batch_at(index)
            yield BatchHeader(batch), batch

    def records(self, first_offset: int, last_offset: int) -> list[memoryview]:
        """The bytes of the batches that reach into a range of offsets, as views.

        A batch between two others counts if it begins in the range. The first batch counts in any
        case if no other has `first_offset` (ShareFetchUtils.maybeSliceFetchRecords).
        """
        low = max(bisect_right(self.base_offsets, first_offset) - 1, 0)
        high = max(bisect_right(self.base_offsets, last_offset), low + 1)
        return self._store.pieces_of(self._first + low, self._first + high)
