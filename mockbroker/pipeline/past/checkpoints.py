"""Images at any entry, fast: from the nearest checkpoint before it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Protocol

from msgspec.structs import replace

from mockbroker.core.brokers.broker_life import RUNNING
from mockbroker.core.journal.entries import Entry
from mockbroker.core.journal.reader import ReadableJournal
from mockbroker.pipeline.past.fold import Fold
from mockbroker.pipeline.past.image import CapturedImage, PastCluster
from mockbroker.pipeline.past.members import MEMBER_APIS, Members
from mockbroker.pipeline.past.undo import undone

# A moment is at most so many entries behind a checkpoint.
STEP_ENTRIES = 10_000


class Entries(ReadableJournal, Protocol):
    """Entries of a journal that may be read in any thread, and what reading them needs."""

    first_seq: int

    @property
    def last_seq(self) -> int: ...

    def facts(self, apis: frozenset[int]) -> Iterator[Entry]:
        """The entries but requests and the answers of other APIs."""
        ...

    def topic_name(self, topic_id: bytes, /) -> str | None: ...


class Checkpoints:
    """The checkpoints of one journal. Not for use from several threads at once."""

    def __init__(self) -> None:
        self._seqs: list[int] = []
        self._images: list[PastCluster] = []

    def needed_after(self, seq: int, first_seq: int) -> int:
        """The number behind which entries are needed for the image at `seq`; the whole journal
        begins at `first_seq`.

        If it is below the first checkpoint, `begin` needs the image at the journal's end.
        """
        at = bisect_right(self._seqs, seq) - 1
        if at < 0 or self._seqs[at] < first_seq - 1:
            return first_seq - 1
        return self._seqs[at]

    def has_begun(self, after: int) -> bool:
        """Whether there is a checkpoint at this number."""
        at = bisect_right(self._seqs, after) - 1
        return at >= 0 and self._seqs[at] == after

    def begin(self, entries: Entries, captured: CapturedImage | None) -> None:
        """Set the image at the beginning of a journal, from all its entries and the image behind
        them; without one, nothing is known at the beginning. Former checkpoints are dropped.
        """
        image = PastCluster()
        if captured is not None:
            image = undone(PastCluster.of(captured), list(entries.facts(frozenset())))
        if entries.first_seq == 1:
            _start(image)
        self._seqs, self._images = [entries.first_seq - 1], [image]

    def image_at(self, entries: Entries, seq: int) -> PastCluster:
        """The image at `seq`, from entries that begin right behind a checkpoint."""
        at = bisect_right(self._seqs, entries.first_seq - 1) - 1
        fold = Fold(self._images[at].copy(), members_of(entries))
        reached = self._seqs[at]
        for chunk_end, chunk in _chunks(entries, seq):
            fold.apply(chunk)
            if chunk_end - reached >= STEP_ENTRIES and chunk_end not in self._seqs:
                place = bisect_right(self._seqs, chunk_end)
                self._seqs.insert(place, chunk_end)
                self._images.insert(place, fold.image.copy())
                reached = chunk_end
        return fold.image


def _start(image: PastCluster) -> None:
    """A cluster starts with all its brokers running and registered."""
    for node_id, broker in image.brokers.items():
        if broker.state is None:
            image.brokers[node_id] = replace(broker, state=RUNNING, fenced=False, registered=True)


def members_of(entries: Entries) -> Members:
    """The reader of answers to members."""
    return Members(entries.entry, entries.connection, entries.topic_name)


def _chunks(entries: Entries, seq: int) -> Iterator[tuple[int, list[Entry]]]:
    """The facts up to `seq`, each time to a multiple of the step, with the last number."""
    chunk: list[Entry] = []
    border = (entries.first_seq // STEP_ENTRIES + 1) * STEP_ENTRIES
    for entry in entries.facts(MEMBER_APIS):
        if entry.seq > seq:
            break
        while entry.seq > border:
            yield border, chunk
            chunk = []
            border += STEP_ENTRIES
        chunk.append(entry)
    yield min(seq, border), chunk
