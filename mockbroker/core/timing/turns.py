"""Long work of the cluster in turns: requests are handled between two of them.

One thread does everything. Work on very many groups, partitions or transactional ids would keep all
clients waiting if it were done at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from mockbroker.core.timing.timers import TimerHeap

T = TypeVar("T")
_DONE = object()


def in_turns(timers: TimerHeap, work: Iterator[object]) -> None:
    """Run `work` up to its next yield now, and on from there each time others had their turn."""

    def go_on() -> None:
        if next(work, _DONE) is not _DONE:
            timers.call_soon(go_on)

    go_on()


def in_parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items, at most `size` at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))
