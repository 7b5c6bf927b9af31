"""Decoding entries: from bytes to events, in the reader's time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from mockbroker.core.events import ConfigsChanged, OffsetCommitted, TopicsChanged
from mockbroker.core.faults.rules import api_name
from mockbroker.core.journal.deliveries import FetchOffsets, VisibleBatches
from mockbroker.core.journal.entries import (
    AppendEntry,
    Entry,
    EventEntry,
    FactEntry,
    HopEntry,
    RequestEntry,
    ResponseEntry,
)
from mockbroker.core.journal.events import JournalEvent
from mockbroker.core.journal.journal import ConnectedClient, Gap, client_fields
from mockbroker.core.journal.messages import (
    DecodedRequest,
    decode_request,
    decode_response,
    error_names,
    facts_of,
)
from mockbroker.core.journal.plain import plain
from mockbroker_protocol import ApiKey
from mockbroker_protocol.entities import targets
from mockbroker_protocol.headers import RequestHeader
from mockbroker_protocol.records import BatchHeader, RecordsError, iter_records

_RENAMED = {"node_id": "broker", "high_watermark": "offset", "producer_ids": "producer_id"}
_EVENT_FIELDS = frozenset(JournalEvent.__struct_fields__)
# Decoded requests that are kept, because their answers are read next.
_OPENED_KEPT = 64


class ReadableJournal(Protocol):
    """A journal as its readers see it: of a running cluster, or saved."""

    @property
    def former_topics(self) -> Mapping[bytes, str]:
        """The names of deleted topics, by id."""
        ...

    def entry(self, seq: int) -> Entry | None:
        """The entry with this number; None without it."""
        ...

    def since(self, after: int = 0, limit: int | None = None) -> tuple[Gap | None, list[Entry]]:
        """At most `limit` entries behind number `after`, and the gap before them, if any."""
        ...

    def connection(self, connection_id: int) -> ConnectedClient | None:
        """A connection by its id, if it is known."""
        ...


class JournalReader:
    """Decodes the entries of one journal, in the thread that writes it.

    `topic_name` maps the ids of topics to their names. Entries are read in their order. If the
    beginning of a Fetch session is missing, its offsets are unknown, and deliveries count from the
    first batch.
    """

    def __init__(self, journal: ReadableJournal, topic_name: Callable[[bytes], str | None]) -> None:
        self._journal = journal
        self._known_topic = topic_name
        self._opened: dict[int, DecodedRequest] = {}
        self._last_seq = 0
        self._fetches: FetchOffsets[tuple[str, int]] = FetchOffsets(
            lambda topic, topic_id, partition: (
                topic or self._topic_name(topic_id) or topic_id.hex(),
                partition,
            )
        )

    @property
    def last_seq(self) -> int:
        """The number of the entry that was read last."""
        return self._last_seq

    def events(
        self,
        after: int = 0,
        limit: int | None = None,
        *,
        messages: bool = True,
        facts_only: bool = False,
    ) -> Iterator[JournalEvent]:
        """The events behind entry `after`, of at most `limit` entries, oldest first.

        Without `messages` the decoded requests and answers are left out. With `facts_only` no entry
        with bytes of the wire is opened: of `WIRE_KINDS` there are no events. A gap comes first.
        """
        gap, entries = self._journal.since(after, limit)
        if after != self._last_seq or gap is not None:
            self._fetches.clear()
        if gap is not None:
            yield self._gap(gap, entries)
        for entry in entries:
            if facts_only and not isinstance(entry, EventEntry | FactEntry):
                self._last_seq = entry.seq
                continue
            yield from self.open(entry, messages=messages)

    def open(self, entry: Entry, *, messages: bool = True) -> Iterator[JournalEvent]:
        """The events of one entry."""
        self._last_seq = entry.seq
        if isinstance(entry, RequestEntry):
            yield self._request(entry, messages)
        elif isinstance(entry, ResponseEntry):
            yield from self._response(entry, messages)
        elif isinstance(entry, AppendEntry):
            yield self._append(entry)
        elif isinstance(entry, HopEntry):
            yield self._hop(entry, messages)
        elif isinstance(entry, EventEntry):
            yield self._event(entry)
        elif isinstance(entry, FactEntry):
            if entry.kind == "connection" and entry.facts["change"] == "closed":
                self._fetches.connection_closed(entry.facts["connection"])
            yield _event_of(entry, entry.kind, entry.facts)

    def _topic_name(self, topic_id: bytes) -> str | None:
        return self._known_topic(topic_id) or self._journal.former_topics.get(topic_id)

    def _gap(self, gap: Gap, entries: Sequence[Entry]) -> JournalEvent:
        at = entries[0] if entries else None
        return JournalEvent(
            seq=gap.last_seq,
            kind="gap",
            virtual_ms=at.virtual_ms if at else 0,
            real_ns=at.real_ns if at else 0,
            first_seq=gap.first_seq,
            last_seq=gap.last_seq,
            reason=gap.reason,
        )

    # -- requests ----------------------------------------------------------------------------------

    def _request(self, entry: RequestEntry, messages: bool) -> JournalEvent:
        opened = self._open(entry)
        message = opened.message
        if message is not None and opened.header.api_key == ApiKey.FETCH:
            self._fetches.request(entry.connection_id, message)
        return JournalEvent(
            kind="request",
            reason=opened.error or None,
            bytes=len(entry.frame),
            targets=self._targets(message, opened.header.api_version),
            message=plain(message) if messages and message is not None else {},
            **self._client_of(entry, opened.header),
            **opened.facts(),
        )

    def _open(self, entry: RequestEntry) -> DecodedRequest:
        known = self._opened.get(entry.seq)
        if known is None:
            while len(self._opened) >= _OPENED_KEPT:
                self._opened.pop(next(iter(self._opened)), None)
            known = self._opened[entry.seq] = decode_request(entry.frame)
        return known

    def _client_of(
        self, entry: RequestEntry | ResponseEntry, header: RequestHeader
    ) -> dict[str, Any]:
        connection = self._journal.connection(entry.connection_id)
        return {
            "seq": entry.seq,
            "virtual_ms": entry.virtual_ms,
            "real_ns": entry.real_ns,
            "broker": entry.node_id,
            "connection": entry.connection_id,
            "api": api_name(header.api_key),
            "api_version": header.api_version,
            "correlation_id": header.correlation_id,
            "client_id": header.client_id,
            **({} if connection is None else client_fields(connection)),
        }

    def _targets(self, message: Any, version: int) -> tuple[tuple[str, int], ...]:
        if message is None:
            return ()
        found = targets(message, version, self._topic_name)
        return tuple([(each.topic, each.partition) for each in found])

    # -- answers -----------------------------------------------------------------------------------

    def _response(self, entry: ResponseEntry, messages: bool) -> Iterator[JournalEvent]:
        origin = self._journal.entry(entry.request_seq)
        if isinstance(origin, RequestEntry):
            opened = self._open(origin)
            elapsed_ns = entry.real_ns - origin.real_ns
        else:
            header = RequestHeader(entry.api_key, entry.api_version, entry.correlation_id, None)
            opened = DecodedRequest(header, None)
            elapsed_ns = None
        message = decode_response(entry)
        fields = {
            **self._client_of(entry, opened.header),
            **opened.facts(),
            "request_seq": entry.request_seq,
            "cause_seq": entry.cause_seq or None,
            "rules": entry.rules,
        }
        yield JournalEvent(
            kind="response",
            outcome=entry.outcome or None,
            elapsed_ns=elapsed_ns,
            bytes=sum(map(len, entry.body or ())),
            targets=self._targets(message, entry.api_version)
            or self._targets(opened.message, entry.api_version),
            errors=error_names(message),
            message=plain(message) if messages and message is not None else {},
            **fields,
        )
        if message is None or entry.api_key != ApiKey.FETCH:
            return
        fetched = self._fetches.response(entry.connection_id, opened.message, message)
        if entry.outcome:
            return  # a truncated answer delivers nothing
        part = 0
        isolation_level = getattr(opened.message, "isolation_level", 0)
        for (topic, partition), offset, data in fetched:
            fetch_offset = offset or 0
            batches = list(VisibleBatches(data, fetch_offset, isolation_level))
            if batches:
                part += 1
                headers = [header for header, _ in batches]
                fields |= {
                    "kind": "deliver",
                    "part": part,
                    "topic": topic,
                    "partition": partition,
                    "first_offset": max(fetch_offset, headers[0].base_offset),
                    "last_offset": headers[-1].last_offset,
                    "records": sum(
                        _count(header, batch, fetch_offset) for header, batch in batches
                    ),
                    "bytes": sum(header.size for header in headers),
                }
                yield JournalEvent(**fields)

    def _of_request(self, request_seq: int) -> dict[str, Any]:
        """The fields of an event that come from its request; none once that is removed."""
        request = self._journal.entry(request_seq)
        if not isinstance(request, RequestEntry):
            return {}
        opened = self._open(request)
        return {**self._client_of(request, opened.header), **opened.facts()}

    def _append(self, entry: AppendEntry) -> JournalEvent:
        fields = self._of_request(entry.request_seq)
        if entry.producer_id >= 0:
            fields["producer_id"] = entry.producer_id
            fields["producer_epoch"] = entry.producer_epoch
            fields["base_sequence"] = entry.base_sequence
        fields |= {
            "kind": "append",
            "seq": entry.seq,
            "virtual_ms": entry.virtual_ms,
            "real_ns": entry.real_ns,
            "broker": entry.node_id,
            "request_seq": entry.request_seq or None,
            "topic": entry.topic,
            "partition": entry.partition,
            "first_offset": entry.first_offset,
            "last_offset": entry.last_offset,
            "records": entry.records,
            "bytes": entry.batch_bytes,
            "transactional": entry.transactional,
        }
        return JournalEvent(**fields)

    def _hop(self, entry: HopEntry, messages: bool) -> JournalEvent:
        message = entry.message
        asked = self._journal.entry(entry.request_seq) if entry.request_seq else entry
        request = asked.message if isinstance(asked, HopEntry) else None
        fields = {} if request is None else facts_of(request, entry.api_version)
        if entry.transactional_id:
            fields["transactional_id"] = entry.transactional_id
        return JournalEvent(
            seq=entry.seq,
            kind="hop_answer" if entry.request_seq else "hop",
            virtual_ms=entry.virtual_ms,
            real_ns=entry.real_ns,
            broker=entry.receiver,
            from_broker=entry.sender,
            to_broker=entry.receiver,
            api=api_name(entry.api_key),
            api_version=entry.api_version,
            request_seq=entry.request_seq or None,
            targets=self._targets(message, entry.api_version)
            or self._targets(request, entry.api_version),
            errors=error_names(message) if entry.request_seq else (),
            outcome=entry.outcome or None,
            rules=entry.rules,
            message=plain(message) if messages and message is not None else {},
            **fields,
        )

    def _event(self, entry: EventEntry) -> JournalEvent:
        event = entry.event
        facts = {name: getattr(event, name) for name in event.__struct_fields__ if name != "at_ms"}
        facts.setdefault("change", type(event).__name__)
        fields: dict[str, Any] = {}
        if isinstance(event, OffsetCommitted):
            fields = self._of_request(event.request_seq)
        elif isinstance(event, TopicsChanged):
            fields["targets"] = tuple((each.topic, -1) for each in (*event.created, *event.deleted))
            facts |= {name: msgspec.to_builtins(facts[name]) for name in ("created", "deleted")}
        elif isinstance(event, ConfigsChanged):
            fields = _resource(event)
            facts["configs"] = msgspec.to_builtins(event.configs)
        elif "partitions" in facts:
            fields["targets"] = tuple((facts["topic"], index) for index in facts.pop("partitions"))
        elif facts.get("ranges"):
            facts["ranges"] = ranges_of(facts["ranges"])
        if entry.cause_seq:
            fields["cause_seq"] = entry.cause_seq
        return _event_of(entry, event.kind, facts, fields)


def _resource(event: ConfigsChanged) -> dict[str, Any]:
    """The field of an event that names the resource, so that filters find it."""
    match event.resource_type:
        case "broker":
            return {"broker": int(event.resource_name)} if event.resource_name else {}
        case "topic" | "group":
            return {event.resource_type: event.resource_name}
        case _:
            return {}


def _event_of(
    entry: Entry, kind: str, facts: Mapping[str, object], fields: Mapping[str, Any] | None = None
) -> JournalEvent:
    """An event with the facts that it has fields for; the other facts are its message."""
    found: dict[str, Any] = dict(fields or {})
    message: dict[str, object] = {}
    for name, value in facts.items():
        field = _RENAMED.get(name, name)
        if field in _EVENT_FIELDS and _fits(field, value):
            found[field] = value
        else:
            message[name] = value
    found |= {
        "seq": entry.seq,
        "kind": kind,
        "virtual_ms": entry.virtual_ms,
        "real_ns": entry.real_ns,
        "message": message,
    }
    return JournalEvent(**found)


def ranges_of(packed: bytes) -> list[tuple[int, int]]:
    """The first and last offsets in the `ranges` of a `RecordsRemoved`."""
    numbers = memoryview(packed).cast("q")
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _count(header: BatchHeader, batch: memoryview, fetch_offset: int) -> int:
    """The number of records of a batch at `fetch_offset` or above."""
    if header.base_offset >= fetch_offset:
        return header.count
    try:
        return sum(record.offset >= fetch_offset for record in iter_records(header, batch))
    except RecordsError:
        return 0


def _fits(field: str, value: object) -> bool:
    """Whether the event's field of this name accepts the fact."""
    return isinstance(value, str) if field in ("state", "former", "change", "reason") else True
