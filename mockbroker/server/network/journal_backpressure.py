"""Requests wait for room in the journal, unless its readers have stopped."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress

import trio

from mockbroker.core.journal.journal import Journal
from mockbroker.core.journal.reader_positions import ReaderPosition

# How long clients wait for a reader that does not move: less than their request timeout. Real time,
# because the cluster's clock may be frozen.
PATIENCE_S = 10.0

log = logging.getLogger("mockbroker")


async def room_in(journal: Journal) -> None:
    """Wait until there is room; for readers that do not move, at most PATIENCE_S."""
    while journal.readers.full:
        room = trio.Event()
        if journal.readers.when_room(room.set):
            _check_later(journal)  # the first that waits does so for all
        await room.wait()


def _check_later(journal: Journal) -> None:
    """Check the readers after PATIENCE_S, by a thread: no clock of this run is real time."""
    here = trio.lowlevel.current_trio_token()
    seen = journal.readers.positions()

    def ring() -> None:
        with suppress(trio.RunFinishedError):
            here.run_sync_soon(_check, journal, seen)

    timer = threading.Timer(PATIENCE_S, ring)
    timer.daemon = True
    timer.start()


def _check(journal: Journal, seen: dict[ReaderPosition, int]) -> None:
    if not journal.readers.full:
        return
    for reader in journal.readers.give_up_stalled(seen):
        log.warning(
            "a reader of the journal has not moved from entry %d for %g s while clients waited; "
            "it may miss entries from now on",
            reader.position,
            PATIENCE_S,
        )
    if journal.readers.full:
        _check_later(journal)
