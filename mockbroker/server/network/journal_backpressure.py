"""Requests wait for room in the journal, unless its readers have stopped."""

from __future__ import annotations

import logging

import trio

from mockbroker.core.journal.journal import Journal
from mockbroker.core.journal.reader_positions import ReaderPosition
from mockbroker.server.clock.real_time import call_after

# The time for which clients wait for a stalled reader: less than their request timeout. Real time,
# because the cluster's clock may be frozen.
READER_TIMEOUT_S = 10.0

log = logging.getLogger("mockbroker")


async def room_in(journal: Journal) -> None:
    """Wait until there is room; at most READER_TIMEOUT_S for stalled readers."""
    while journal.readers.full:
        room = trio.Event()
        if journal.readers.when_room(room.set):
            _check_later(journal)  # the first waiter does so for all
        await room.wait()


def _check_later(journal: Journal) -> None:
    """Check the readers after READER_TIMEOUT_S, unless there is room before."""
    seen = journal.readers.positions()
    timer = call_after(READER_TIMEOUT_S, lambda: _check(journal, seen))
    journal.readers.when_room(timer.cancel)


def _check(journal: Journal, seen: dict[ReaderPosition, int]) -> None:
    if not journal.readers.full:
        return
    for reader in journal.readers.give_up_stalled(seen):
        log.warning(
            "a reader of the journal has not moved from entry %d for %g s while clients waited; "
            "it may miss entries from now on",
            reader.position,
            READER_TIMEOUT_S,
        )
    if journal.readers.full:
        _check_later(journal)
