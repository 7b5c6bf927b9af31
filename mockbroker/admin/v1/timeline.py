"""The timeline: requests as spans, by connection."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Annotated, TypeVar

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall
from mockbroker.core.cluster import Cluster
from mockbroker.core.journal.filters import EventMatcher, Filter
from mockbroker.core.journal.slices import JournalSlice, slice_of
from mockbroker.core.journal.timeline import Timeline, TimelineView
from mockbroker.core.validation import Count64, Range
from mockbroker.pipeline.saved import SavedJournal, SavedPart

T = TypeVar("T")

# A tenth of a millisecond.
TURN_ENTRIES = 20
# The newest entries that a window without a beginning has.
WINDOW_ENTRIES = 20_000

endpoints = ApiEndpoints()


class TimelineQuery(Filter, kw_only=True, frozen=True):
    """A filter for the requests of a window; a request or its answer meets it.

    The window has the entries behind number `after`, by default the newest 20,000, up to number
    `until`. At most `limit` spans are returned.
    """

    after: Count64 | None = None
    until: Count64 | None = None
    limit: Annotated[int, Range(1, 10_000)] = 2_000


_FILTERS = frozenset(Filter.__struct_fields__)


@endpoints.get(
    "/v1/journal/timeline",
    "Requests with their answers, by connection, for a picture",
    query=TimelineQuery,
    problems=(409,),
)
async def show(backend: AdminBackend, call: EndpointCall) -> TimelineView:
    wanted: TimelineQuery = call.query
    journal = backend.journal
    last_seq = journal.last_seq if wanted.until is None else min(wanted.until, journal.last_seq)
    after = max(last_seq - WINDOW_ENTRIES, 0) if wanted.after is None else wanted.after
    first_seq = journal.first_seq
    matcher = None
    if any(getattr(wanted, name) is not None for name in _FILTERS):
        matcher = EventMatcher(wanted, backend.now_ms())
    held: dict[int, int] = {}
    window: JournalSlice | SavedPart
    if isinstance(journal, SavedJournal):
        window = journal.part(after, last_seq)
    else:
        held = await backend.cluster(_held)
        requested = [] if wanted.after is not None else list(held)
        window = await backend.read(
            lambda: slice_of(journal, backend.topic_name, after, last_seq, requested)
        )

    def make() -> TimelineView:
        messages = matcher is not None and matcher.needs_message
        timeline = Timeline(window, held, matcher, messages=messages)
        timeline.add(window.requested())
        timeline.add(_in_turns(window))
        return timeline.view(
            wanted.limit, max(window.last_seq, after), window.first_seq, first_seq, last_seq
        )

    return await backend.compute(make)


def _in_turns(entries: Iterable[T]) -> Iterator[T]:
    """The same entries. The interpreter's lock is released now and then.

    Python takes it from a thread that computes after 5 ms only. A cluster that answers one request
    after the other would wait that long for each, as long as this thread has entries.
    """
    for number, entry in enumerate(entries):
        if number % TURN_ENTRIES == 0:
            time.sleep(0)
        yield entry


def _held(cluster: Cluster) -> dict[int, int]:
    """The ids of held requests of clients, by their numbers."""
    if cluster.faults is None:
        return {}
    return {held.facts.seq: held.id for held in cluster.faults.held.values()}
