"""State batches, and how new ones are combined with those so far.

Batches of one share partition must not overlap. Where two overlap, the one with the higher
delivery count wins, then the one with the higher delivery state. Neighbours with the same count and
state become one batch.

Source: PersisterStateBatch, PersisterStateBatchCombiner.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

NO_START_OFFSET = -1


class StateBatch(NamedTuple):
    """The offsets from first to last, both inclusive. Tuples have Kafka's order."""

    first_offset: int
    last_offset: int
    delivery_count: int
    delivery_state: int

    @property
    def delivery(self) -> tuple[int, int]:
        """Count and state; of two batches the greater one wins."""
        return self.delivery_count, self.delivery_state


def combine(batches: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """The batches without overlaps, from `start_offset` on (-1: all).

    Fewer than two batches stay as they are. A batch whose last offset is below its first is dropped
    where it meets another. (Kafka's combiner does not return for some of them.)
    """
    kept = _from_start(batches, start_offset)
    if len(kept) < 2:
        return tuple(kept)
    waiting = sorted(set(kept))
    done: list[StateBatch] = []
    while waiting:
        first = waiting.pop(0)
        if waiting and _meet(first, waiting[0]):
            for piece in _pieces(first, waiting.pop(0)):
                at = bisect_left(waiting, piece)
                if at == len(waiting) or waiting[at] != piece:
                    waiting.insert(at, piece)
        else:
            done.append(first)
    return tuple(done)


def _from_start(batches: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    if start_offset == NO_START_OFFSET:
        return list(batches)
    return [
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in batches
        if batch.last_offset >= start_offset
    ]


def _meet(first: StateBatch, second: StateBatch) -> bool:
    """Whether two batches overlap, or are neighbours with the same delivery."""
    if second.first_offset <= first.last_offset:
        return True
    return second.first_offset == first.last_offset + 1 and second.delivery == first.delivery


def _pieces(first: StateBatch, second: StateBatch) -> Sequence[StateBatch]:
    """What two batches that meet become; `first` sorts before `second`."""
    if first.delivery == second.delivery:
        end = max(first.last_offset, second.last_offset)
        return (first._replace(last_offset=end),)
    if second.delivery > first.delivery:
        before = first._replace(last_offset=second.first_offset - 1)
        after = first._replace(first_offset=second.last_offset + 1)
        return [piece for piece in (before, second, after) if _has_offsets(piece)]
    after = second._replace(first_offset=first.last_offset + 1)
    return [piece for piece in (first, after) if _has_offsets(piece)]


def _has_offsets(batch: StateBatch) -> bool:
    return batch.first_offset <= batch.last_offset
