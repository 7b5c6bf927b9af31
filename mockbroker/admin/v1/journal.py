"""The journal: pages, a stream, waits, and expectations."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Annotated

import msgspec
import trio

from mockbroker.admin.bridge import ClusterBusyError, ClusterUnavailableError
from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall, Stream
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.admin.v1.waiting import Stop, observe, watching
from mockbroker.core.cluster import Cluster
from mockbroker.core.journal.events import WIRE_KINDS, JournalEvent
from mockbroker.core.journal.filters import EventMatcher, Filter
from mockbroker.core.journal.reader import JournalReader
from mockbroker.core.journal.reader_positions import ReaderPosition
from mockbroker.core.journal.verify import (
    Expectation,
    VerificationResult,
    parse_expectation,
    verify,
)
from mockbroker.core.limits import ADMIN_STREAMS_MAX
from mockbroker.core.validation import Count64, Ms, Range

PAGE_ENTRIES = 500
# Entries that are not opened take less than a microsecond.
FACTS_PAGE_ENTRIES = 10_000

endpoints = ApiEndpoints()

EventCount = Annotated[int, Range(1, 10_000)]  # of one page

JOURNAL = "/v1/journal"
UNKEPT = (409,)


class JournalQuery(Filter, kw_only=True, frozen=True):
    """A filter for the events after entry `after`; at most `limit` are returned. Without `messages`
    the decoded requests and answers are left out.
    """

    after: Count64 = 0
    limit: EventCount = 1_000
    messages: bool = True


class JournalPage(msgspec.Struct, frozen=True):
    """Events; the next page is `after=next`. `last_seq` is the newest entry of the journal."""

    events: list[JournalEvent]
    next: int
    last_seq: int


class JournalSearch(msgspec.Struct, frozen=True):
    """As the query for journal events, with conditions that do not fit into a query: at most
    `limit` events after entry `after`. Without `messages` the decoded requests and answers are left
    out.
    """

    match: Filter = Filter()
    after: Count64 = 0
    limit: EventCount = 1_000
    messages: bool = True


class JournalMark(msgspec.Struct, frozen=True):
    """The number of the newest entry."""

    last_seq: int


class JournalWait(msgspec.Struct, frozen=True):
    """Wait until `count` events after entry `after` meet `match`; the timeout is real time."""

    match: Filter
    count: Annotated[int, Range(1, 1_000_000)] = 1
    after: Count64 = 0
    timeout_ms: Ms = 10_000


@endpoints.get(JOURNAL, "Journal events", query=JournalQuery, problems=UNKEPT)
async def page(backend: AdminBackend, call: EndpointCall) -> JournalPage:
    return await _found(backend, call.query, call.query, "")


@endpoints.delete(JOURNAL, "Remove all entries", problems=UNKEPT)
async def clear(backend: AdminBackend, _call: EndpointCall) -> None:
    _ = backend.journal  # refused without one
    await backend.cluster(_clear)


@endpoints.get(f"{JOURNAL}/last", "Number of the newest entry", problems=UNKEPT)
async def mark(backend: AdminBackend, _: EndpointCall) -> JournalMark:
    return JournalMark(backend.journal.last_seq)


@endpoints.post(
    f"{JOURNAL}/search",
    "Journal events, by a filter of any size",
    body=JournalSearch,
    problems=UNKEPT,
)
async def search(backend: AdminBackend, call: EndpointCall) -> JournalPage:
    return await _found(backend, call.body.match, call.body, "match")


@endpoints.get(
    f"{JOURNAL}/stream",
    "New journal events, as server-sent events",
    query=JournalQuery,
    media=("text/event-stream",),
    problems=(409, 429),
)
async def stream(backend: AdminBackend, call: EndpointCall) -> Stream[JournalEvent]:
    query: JournalQuery = call.query
    matcher = EventMatcher(query, backend.now_ms())
    streams = backend.kept(_streams)
    if streams.available_tokens < 1:
        backend.exceeded(ADMIN_STREAMS_MAX)
        raise ProblemError(429, "too many streams", _too_many(streams))
    lines = _follow(backend, matcher, max(query.after, matcher.after_seq), streams)
    return Stream(lines, "text/event-stream")


@endpoints.post(f"{JOURNAL}/wait", "Wait for journal events", body=JournalWait, problems=(408, 409))
async def wait(backend: AdminBackend, call: EndpointCall) -> list[JournalEvent]:
    wanted: JournalWait = call.body
    matcher = EventMatcher(wanted.match, backend.now_ms(), "match")
    found: list[JournalEvent] = []
    with backend.limit(wanted.timeout_ms / 1000):
        async with aclosing(_matching(backend, matcher, wanted.after)) as events:
            async for event in events:
                found.append(event)
                if len(found) >= wanted.count:
                    return found
    raise ProblemError(
        408,
        "timeout",
        f"{len(found)} events match after {wanted.timeout_ms} ms, not {wanted.count}",
    )


@endpoints.post(
    "/v1/verify",
    "Check an expectation against the journal",
    body=dict,
    body_schema=lambda taken: taken.struct(Expectation),
    problems=UNKEPT,
)
async def check(backend: AdminBackend, call: EndpointCall) -> VerificationResult:
    wanted = parse_expectation(call.body)
    reader = JournalReader(backend.journal, backend.topic_name)
    events = await backend.read(lambda: list(reader.events(wanted.after_seq)))
    return verify(wanted, events, backend.now_ms())


def _streams(backend: AdminBackend) -> trio.CapacityLimiter:
    return trio.CapacityLimiter(backend.config_int(ADMIN_STREAMS_MAX))


def _too_many(streams: trio.CapacityLimiter) -> str:
    return f"at most {streams.total_tokens} can be open ({ADMIN_STREAMS_MAX})"


async def _found(
    backend: AdminBackend, wanted: Filter, query: JournalQuery | JournalSearch, at: str
) -> JournalPage:
    matcher = EventMatcher(wanted, backend.now_ms(), at)
    reader = JournalReader(backend.journal, backend.topic_name)
    found: list[JournalEvent] = []
    after = max(query.after, matcher.after_seq)
    # Messages are decoded only if they are shown or matched.
    messages = query.messages or matcher.needs_message
    while len(found) < query.limit:
        events, last = await _page(
            backend, reader, after, messages=messages, facts_only=matcher.facts_only
        )
        for event in events:
            if len(found) >= query.limit and event.seq > found[-1].seq:
                break
            if event.kind == "gap" or matcher(event):
                found.append(event if query.messages else _brief(event))
            after = event.seq
        else:
            after = max(after, reader.last_seq)  # that of an entry without an event
            if after >= last:
                break
    return JournalPage(found, after, backend.journal.last_seq)


def _clear(cluster: Cluster) -> None:
    if cluster.runtime.journal is not None:
        cluster.runtime.journal.clear()


async def _page(
    backend: AdminBackend,
    reader: JournalReader,
    after: int,
    *,
    messages: bool,
    facts_only: bool = False,
    position: ReaderPosition | None = None,
) -> tuple[list[JournalEvent], int]:
    """The events of the next entries, and the number of the newest entry."""
    entries = FACTS_PAGE_ENTRIES if facts_only else PAGE_ENTRIES

    def read() -> tuple[list[JournalEvent], int]:
        events = list(reader.events(after, entries, messages=messages, facts_only=facts_only))
        if position is not None and events:
            position.has_read(events[-1].seq)
        return events, backend.journal.last_seq

    return await backend.read(read)


async def _matching(
    backend: AdminBackend, matcher: EventMatcher, after: int
) -> AsyncGenerator[JournalEvent, None]:
    """All matching events, past ones first, without an end."""
    journal = backend.journal
    reader = JournalReader(journal, backend.topic_name)
    position: ReaderPosition | None = None

    def follow(changed: Callable[[], None]) -> Stop:
        nonlocal position
        position = reading = journal.readers.add(after)
        unfollow = observe(journal.followers, lambda _: changed())

        def stop() -> None:
            unfollow()
            reading.close()

        return stop

    async with watching(backend, follow) as signal:
        while True:
            try:
                events, last = await _page(backend, reader, after, messages=True, position=position)
            except ClusterBusyError:
                continue  # the head of the answer is sent: there is nothing to say but later
            for event in events:
                after = event.seq
                if event.kind == "gap" or matcher(event):
                    yield event
            if after >= last:
                await signal.wait()


async def _follow(
    backend: AdminBackend, matcher: EventMatcher, after: int, streams: trio.CapacityLimiter
) -> AsyncIterator[bytes]:
    """The lines of a stream of server-sent events.

    Of streams that begin together, those above the limit end at once: their status has been sent.
    """
    holder = object()
    try:
        streams.acquire_on_behalf_of_nowait(holder)
    except trio.WouldBlock:
        backend.exceeded(ADMIN_STREAMS_MAX)
        yield b": too many streams: %s\n\n" % _too_many(streams).encode()
        return
    try:
        yield b": mockbroker journal\n\n"
        async with aclosing(_matching(backend, matcher, after)) as events:
            async for event in events:
                yield from_event(event)
    except ClusterUnavailableError:
        pass  # the cluster has stopped, and the stream ends
    finally:
        streams.release_on_behalf_of(holder)


def from_event(event: JournalEvent) -> bytes:
    """One event as a server-sent event; its id is the entry's number."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (
        event.seq,
        event.kind.encode(),
        msgspec.json.encode(event),
    )


def _brief(event: JournalEvent) -> JournalEvent:
    """Without the decoded message. The further fields of a fact stay: they are few."""
    if event.message and event.kind in WIRE_KINDS:
        return msgspec.structs.replace(event, message={})
    return event
