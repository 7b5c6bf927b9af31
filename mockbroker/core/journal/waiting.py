"""Waiting until enough events match a filter. It belongs to the cluster's thread."""

from __future__ import annotations

from collections.abc import Callable

from mockbroker.core.journal.entries import Entry
from mockbroker.core.journal.events import JournalEvent
from mockbroker.core.journal.filters import EventMatcher
from mockbroker.core.journal.journal import Journal
from mockbroker.core.journal.reader import JournalReader


class Waiter:
    """Collects the first `count` matching events, past ones included.

    `enough` is called at the last of them, perhaps at once. `stop` ends the wait.
    """

    def __init__(
        self,
        journal: Journal,
        reader: JournalReader,
        matcher: EventMatcher,
        count: int,
        enough: Callable[[], None],
    ) -> None:
        self.found: list[JournalEvent] = []
        self._journal = journal
        self._reader = reader
        self._matcher = matcher
        self._count = count
        self._enough = enough
        for event in reader.events(matcher.after_seq):
            self._take(event)
        journal.followers.append(self._follow)

    def stop(self) -> None:
        """Stop following the journal."""
        self._journal.followers.remove(self._follow)

    def _follow(self, entry: Entry) -> None:
        for event in self._reader.open(entry):
            self._take(event)

    def _take(self, event: JournalEvent) -> None:
        if len(self.found) < self._count and self._matcher(event):
            self.found.append(event)
            if len(self.found) == self._count:
                self._enough()
