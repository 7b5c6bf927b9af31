"""The leader epochs of one log (KIP-101).

An *entry* is a leader epoch with its start offset. Records of the epoch end at the next entry's
start offset or at the log end. Epochs and start offsets rise strictly. Clients and followers
compare the end offsets of epochs to find the offset at which two logs diverge.

Source: LeaderEpochFileCache.
"""

from __future__ import annotations

from bisect import bisect_right

NO_EPOCH = -1
NO_OFFSET = -1


class LeaderEpochCache:
    """The entries of one log, at most one per epoch, in order."""

    __slots__ = ("_epochs", "_starts", "latest")

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.latest = NO_EPOCH  # an attribute, because each append reads it

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset), oldest first."""
        return list(zip(self._epochs, self._starts, strict=True))

    def fork(self, log_end_offset: int) -> LeaderEpochCache:
        """A copy for a log that ends at `log_end_offset`, without epochs that have no record."""
        copy = LeaderEpochCache()
        copy._epochs, copy._starts = list(self._epochs), list(self._starts)
        copy.truncate_from_end(log_end_offset)
        return copy

    def between(self, begin: int, end: int) -> list[tuple[int, int]]:
        """(epoch, first offset) of the epochs of the offsets in [begin, end)."""
        found = []
        for epoch, start in zip(self._epochs, self._starts, strict=True):
            if start <= begin:
                found = [(epoch, begin)]
            elif start < end:
                found.append((epoch, start))
        return found

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add an entry, and remove the entries that contradict it.

        An epoch without records is removed too, because it has the start offset of its successor.
        Raises ValueError for a negative epoch or offset.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} at offset {start_offset}")
        epochs, starts = self._epochs, self._starts
        if epochs and epochs[-1] == epoch and start_offset >= starts[-1]:
            return
        while epochs and (epochs[-1] >= epoch or starts[-1] >= start_offset):
            epochs.pop()
            starts.pop()
        epochs.append(epoch)
        starts.append(start_offset)
        self.latest = epoch

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The answer of OffsetForLeaderEpoch: (epoch, end offset), (-1, -1) if unknown.

        The epoch is the largest known one that is not above the requested `epoch`. Below the first
        known epoch it is the requested one, with the first start offset.
        """
        if epoch == NO_EPOCH:
            return NO_EPOCH, NO_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        following = bisect_right(self._epochs, epoch)
        if following == len(self._epochs):
            return NO_EPOCH, NO_OFFSET
        floor = self._epochs[following - 1] if following else epoch
        return floor, self._starts[following]

    def epoch_at(self, offset: int) -> int:
        """The epoch of the record at `offset`, or -1 below the first entry."""
        index = bisect_right(self._starts, offset)
        return self._epochs[index - 1] if index else NO_EPOCH

    def earliest(self, log_start_offset: int) -> int:
        """The epoch at the log start offset for ListOffsets, or -1."""
        if self._starts and self._starts[0] <= log_start_offset:
            return self._epochs[0]
        return NO_EPOCH

    def truncate_from_start(self, log_start_offset: int) -> None:
        """Remove epochs that ended at or before the new log start; the next one starts there."""
        count = bisect_right(self._starts, log_start_offset)
        if count:
            del self._epochs[: count - 1]
            del self._starts[: count - 1]
            self._starts[0] = log_start_offset

    def truncate_from_end(self, log_end_offset: int) -> None:
        """Remove epochs that start at or after the new log end."""
        while self._starts and self._starts[-1] >= log_end_offset:
            self._starts.pop()
            self._epochs.pop()
        self.latest = self._epochs[-1] if self._epochs else NO_EPOCH
