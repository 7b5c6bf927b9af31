"""Waiting until a journal has room again, but not for readers that do not read."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress

import trio

from mockbroker.core.journal.following import Following
from mockbroker.core.journal.journal import Journal

# How long clients wait for a reader that does not move: real time, as the cluster's clock may stand
# still, and less than what clients wait for an answer.
PATIENCE_S = 10.0

log = logging.getLogger("mockbroker")


async def room_in(journal: Journal) -> None:
    """Wait until there is room; for readers that stand still, no longer than PATIENCE_S."""
    while journal.readers.full:
        room = trio.Event()
        if journal.readers.when_room(room.set):
            _mind_the_time(journal)  # the first one does it for all
        await room.wait()


def _mind_the_time(journal: Journal) -> None:
    """Come back later, by a thread: no clock of this run tells real time."""
    here = trio.lowlevel.current_trio_token()
    seen = journal.readers.places()

    def ring() -> None:
        with suppress(trio.RunFinishedError):
            here.run_sync_soon(_look, journal, seen)

    timer = threading.Timer(PATIENCE_S, ring)
    timer.daemon = True
    timer.start()


def _look(journal: Journal, seen: dict[Following, int]) -> None:
    if not journal.readers.full:
        return
    for reader in journal.readers.lose_patience(seen):
        log.warning(
            "a reader of the journal has stood still at entry %d for %g s while clients waited; "
            "it may miss entries from now on",
            reader.position,
            PATIENCE_S,
        )
    if journal.readers.full:
        _mind_the_time(journal)
