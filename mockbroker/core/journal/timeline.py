"""The timeline: each connection is a lane, each request a span, each event of the cluster a mark.

A span lasts from the request to its answer. A window has more requests than a picture has room for,
so spans are sampled: those with errors, rules or without an answer are kept first, then the
longest, then every n-th; `left_out` counts the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Protocol

import msgspec

from mockbroker.core.faults.rules import api_name
from mockbroker.core.journal.entries import (
    Entry,
    EventEntry,
    FactEntry,
    RequestEntry,
    ResponseEntry,
)
from mockbroker.core.journal.events import JournalEvent, one_line
from mockbroker.core.journal.journal import ConnectedClient
from mockbroker.core.journal.messages import decode_request, decode_response, error_names
from mockbroker.core.journal.reader import JournalReader, ReadableJournal
from mockbroker_protocol.entities import targets
from mockbroker_protocol.headers import decode_request_header

MARKS_MAX = 500
TARGETS_MAX = 8
# The share of a window's spans that go to the longest ones.
LONGEST_PART = 4

# The events that are marks.
MARK_KINDS = frozenset(
    (
        "election",
        "broker",
        "group",
        "transaction",
        "topics",
        "configs",
        "unanswered",
        "share_session",
    )
)
_FACT_MARKS = frozenset(("fault", "action", "clock"))

ANSWERED = "answered"
WAITING = "waiting"
HELD = "held"
LOST = "lost"


class LaneView(msgspec.Struct, frozen=True):
    """A connection. `opened_seq` and `closed_seq` are entries of the window, or null."""

    connection: int
    broker: int
    client_id: str | None
    client_software: str | None
    source: str | None
    principal: str | None
    opened_seq: int | None
    closed_seq: int | None


class SpanView(msgspec.Struct, frozen=True):
    """A request, from its arrival to its answer.

    `state` is "answered", "waiting", "held" (by a breakpoint, `held_id`) or "lost" (without a whole
    answer, `outcome` says why). Times are those of the cluster's clock in ms, and real ones in ns;
    those of the end are null without an answer. `targets` are the first partitions that it names.
    """

    seq: int
    connection: int
    api: str
    api_version: int
    client_id: str | None
    start_ms: int
    start_ns: int
    end_ms: int | None
    end_ns: int | None
    response_seq: int | None
    bytes_in: int
    bytes_out: int
    state: str
    outcome: str
    errors: tuple[str, ...]
    rules: tuple[str, ...]
    targets: list[tuple[str, int]]
    group: str | None
    transactional_id: str | None
    held_id: int | None


class MarkView(msgspec.Struct, frozen=True):
    """An event of the cluster, a fault, an action or a change of the clock, in one line."""

    seq: int
    kind: str
    at_ms: int
    at_ns: int
    text: str


class TimelineView(msgspec.Struct, frozen=True):
    """The lanes, spans and marks of a window of the journal, in their order.

    `left_out` counts the spans and `marks_left_out` the marks that sampling left out. The next
    window is `after=next`; it has new spans, and those of this window that have ended since.
    `first_seq` and `last_seq` are the oldest and the newest entry of the journal, `from_seq` is the
    first entry of the window.
    """

    lanes: list[LaneView]
    spans: list[SpanView]
    marks: list[MarkView]
    left_out: int
    marks_left_out: int
    next: int
    from_seq: int
    first_seq: int
    last_seq: int


class Window(ReadableJournal, Protocol):
    """The entries of a window."""

    @property
    def connections(self) -> Mapping[int, ConnectedClient]: ...

    def topic_name(self, topic_id: bytes, /) -> str | None: ...


class _Span:
    """A request, as it is known before it is decoded."""

    __slots__ = ("errors", "matches", "request", "response")

    def __init__(self, request: RequestEntry) -> None:
        self.request = request
        self.response: ResponseEntry | None = None
        self.errors: tuple[str, ...] = ()
        self.matches = True

    @property
    def lasted_ns(self) -> int:
        return 0 if self.response is None else self.response.real_ns - self.request.real_ns

    @property
    def stands_out(self) -> bool:
        answer = self.response
        return answer is None or bool(self.errors or answer.rules or answer.outcome)


class Timeline:
    """Makes the timeline of a window. `held` are the ids of held requests, by their numbers.

    `matches` returns whether an event meets a filter; without one every request is shown.
    """

    def __init__(
        self,
        window: Window,
        held: Mapping[int, int],
        matches: Callable[[JournalEvent], bool] | None = None,
        *,
        messages: bool = False,
    ) -> None:
        self._window = window
        self._held = held
        self._matches = matches
        self._messages = messages
        self._reader = JournalReader(window, window.topic_name)
        self._spans: dict[int, _Span] = {}
        self._marks: list[MarkView] = []
        self._opened: dict[int, int] = {}
        self._closed: dict[int, int] = {}
        self._lost: dict[int, FactEntry] = {}  # connection -> the fact of its end
        self._first: dict[int, RequestEntry] = {}  # connection -> a request

    def add(self, entries: Iterable[Entry]) -> None:
        """Add the entries of the window, oldest first."""
        for entry in entries:
            if isinstance(entry, RequestEntry):
                self._request(entry)
            elif isinstance(entry, ResponseEntry):
                self._response(entry)
            elif isinstance(entry, FactEntry):
                self._fact(entry)
            elif isinstance(entry, EventEntry) and entry.event.kind in MARK_KINDS:
                self._mark(entry)

    def _request(self, entry: RequestEntry) -> None:
        span = self._spans[entry.seq] = _Span(entry)
        self._first.setdefault(entry.connection_id, entry)
        if self._matches is not None:
            span.matches = self._meets(entry)

    def _response(self, entry: ResponseEntry) -> None:
        span = self._spans.get(entry.request_seq)
        if span is None:
            request = self._window.entry(entry.request_seq)
            if not isinstance(request, RequestEntry):
                return
            self._request(request)
            span = self._spans[request.seq]
        span.response = entry
        span.errors = error_names(decode_response(entry))
        if self._matches is not None and not span.matches:
            span.matches = self._meets(entry)

    def _meets(self, entry: Entry) -> bool:
        assert self._matches is not None
        return any(map(self._matches, self._reader.open(entry, messages=self._messages)))

    def _fact(self, entry: FactEntry) -> None:
        if entry.kind in _FACT_MARKS:
            self._mark(entry)
        elif entry.kind == "connection":
            connection = entry.facts["connection"]
            if entry.facts["change"] == "opened":
                self._opened[connection] = entry.seq
            else:
                self._closed[connection] = entry.seq
                self._lost[connection] = entry

    def _mark(self, entry: Entry) -> None:
        [event] = self._reader.open(entry, messages=False)
        text = one_line(event).partition(" ")[2]
        self._marks.append(MarkView(entry.seq, event.kind, entry.virtual_ms, entry.real_ns, text))

    # -- the view ----------------------------------------------------------------------------------

    def view(
        self, limit: int, next_seq: int, from_seq: int, first_seq: int, last_seq: int
    ) -> TimelineView:
        """The timeline with at most `limit` spans."""
        known = [span for span in self._spans.values() if span.matches]
        chosen = _sample(known, limit)
        spans = [self._span_view(span) for span in chosen]
        marks = self._marks[-MARKS_MAX:]
        return TimelineView(
            lanes=self._lanes(spans),
            spans=spans,
            marks=marks,
            left_out=len(known) - len(chosen),
            marks_left_out=len(self._marks) - len(marks),
            next=next_seq,
            from_seq=from_seq,
            first_seq=first_seq,
            last_seq=last_seq,
        )

    def _span_view(self, span: _Span) -> SpanView:
        request, answer = span.request, span.response
        opened = decode_request(request.frame)
        header, facts = opened.header, opened.facts()
        found: list[tuple[str, int]] = []
        if opened.message is not None:
            named = targets(opened.message, header.api_version, self._topic_name)
            found = [(each.topic, each.partition) for each in islice(named, TARGETS_MAX)]
        state, outcome, end = self._state(span)
        return SpanView(
            seq=request.seq,
            connection=request.connection_id,
            api=api_name(header.api_key),
            api_version=header.api_version,
            client_id=header.client_id,
            start_ms=request.virtual_ms,
            start_ns=request.real_ns,
            end_ms=None if end is None else end.virtual_ms,
            end_ns=None if end is None else end.real_ns,
            response_seq=None if answer is None else answer.seq,
            bytes_in=len(request.frame),
            bytes_out=0 if answer is None else sum(map(len, answer.body or ())),
            state=state,
            outcome=outcome,
            errors=span.errors,
            rules=() if answer is None else answer.rules,
            targets=found,
            group=_one(facts.get("group")),
            transactional_id=_one(facts.get("transactional_id")),
            held_id=self._held.get(request.seq),
        )

    def _state(self, span: _Span) -> tuple[str, str, ResponseEntry | FactEntry | None]:
        """The state of a span, the reason for a missing answer, and the entry of its end."""
        request, answer = span.request, span.response
        if answer is not None:
            return (LOST if answer.outcome else ANSWERED), answer.outcome, answer
        if request.seq in self._held:
            return HELD, "", None
        lost = self._lost.get(request.connection_id)
        if lost is not None and lost.seq > request.seq:
            return LOST, f"the connection was {lost.facts.get('reason', 'closed')}", lost
        return WAITING, "", None

    def _topic_name(self, topic_id: bytes) -> str | None:
        return self._window.topic_name(topic_id) or self._window.former_topics.get(topic_id)

    def _lanes(self, spans: Iterable[SpanView]) -> list[LaneView]:
        """The lanes of the spans; without a filter also those without any."""
        numbers = {span.connection for span in spans}
        if self._matches is None:
            numbers |= {*self._first, *self._opened, *self._closed}
        return [self._lane(number) for number in sorted(numbers)]

    def _lane(self, number: int) -> LaneView:
        client = self._window.connection(number)
        request = self._first.get(number)
        fact = self._window.entry(self._opened.get(number, 0) or self._closed.get(number, 0))
        broker, client_id = -1, None
        if request is not None:
            broker = request.node_id
            client_id = decode_request_header(memoryview(request.frame))[0].client_id
        elif isinstance(fact, FactEntry):
            broker = fact.facts["broker"]
        software = source = principal = None
        if client is not None:
            software = f"{client.software_name} {client.software_version}".strip()
            source = f"{client.client_host}:{client.client_port}"
            principal = client.principal
        return LaneView(
            connection=number,
            broker=broker,
            client_id=client_id,
            client_software=software,
            source=source,
            principal=principal,
            opened_seq=self._opened.get(number),
            closed_seq=self._closed.get(number),
        )


def _one(value: Any) -> str | None:
    """The first of several values."""
    if isinstance(value, tuple):
        return str(value[0])
    return None if value is None else str(value)


def _sample(spans: list[_Span], limit: int) -> list[_Span]:
    """At most `limit` spans, by their numbers: see the module."""
    if len(spans) <= limit:
        return spans
    chosen = {span.request.seq: span for span in spans if span.stands_out}
    if len(chosen) > limit:
        return list(chosen.values())[-limit:]
    rest = [span for span in spans if span.request.seq not in chosen]
    longest = sorted(rest, key=lambda span: -span.lasted_ns)
    for span in longest[: (limit - len(chosen)) // LONGEST_PART]:
        chosen[span.request.seq] = span
    rest = [span for span in rest if span.request.seq not in chosen]
    room = limit - len(chosen)
    step = len(rest) / room if room else 1.0
    for at in range(room):
        span = rest[int(at * step)]
        chosen[span.request.seq] = span
    return [chosen[seq] for seq in sorted(chosen)]
