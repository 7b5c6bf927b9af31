"""Opening entries: from bytes and facts to events, when somebody looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mockbroker.core import events as cluster_events
from mockbroker.core.faults.rules import api_name
from mockbroker.core.journal.entries import (
    AppendEntry,
    Buffer,
    Entry,
    FactEntry,
    RequestEntry,
    ResponseEntry,
)
from mockbroker.core.journal.events import JournalEvent
from mockbroker.core.journal.exchange import error_names, parts_of
from mockbroker.core.journal.journal import Gap, Journal
from mockbroker.core.journal.plain import plain
from mockbroker.core.message_facts import SCALARS, scalars, targets
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.exceptions import DecodeError, UnknownVersionError
from mockbroker_protocol.headers import RequestHeader, decode_request_header

# What kind of event each of the cluster's own is.
KIND_OF: Mapping[type, str] = {
    cluster_events.BrokerChanged: "broker",
    cluster_events.ControllerChanged: "election",
    cluster_events.LeaderChanged: "election",
    cluster_events.IsrChanged: "election",
    cluster_events.ReplicasChanged: "election",
    cluster_events.TopicsChanged: "topics",
    cluster_events.PartitionsMoved: "partition",
    cluster_events.ReplicasMoved: "replica",
    cluster_events.PreferredElectionFailed: "election",
    cluster_events.FollowerFetched: "follower",
    cluster_events.WatermarkMoved: "watermark",
    cluster_events.LogTruncated: "watermark",
    cluster_events.RecordsRemoved: "remove",
    cluster_events.MarkerWritten: "marker",
    cluster_events.TopicChanged: "topic",
    cluster_events.LogDirFailed: "broker",
    cluster_events.NetworkChanged: "broker",
    cluster_events.TransactionMoved: "transaction",
    cluster_events.GroupMoved: "group",
}
_RENAMED = {"node_id": "broker", "high_watermark": "offset"}
_EVENT_FIELDS = frozenset(JournalEvent.__struct_fields__)
_FACT_FIELDS = frozenset(SCALARS.values()) & _EVENT_FIELDS
# What clients put where they have nothing to say.
_NOTHING = {"producer_id": -1, "producer_epoch": -1, "generation": -1, "member": ""}
# Requests that stay decoded, because their answers are read next.
_OPENED_KEPT = 64


class Exchange(msgspec.Struct, frozen=True):
    """A request as it was read, opened once."""

    header: RequestHeader
    message: Any
    error: str


class JournalReader:
    """Opens the entries of one journal, in the thread that writes it. `topic_name` tells the name
    behind a topic id.
    """

    def __init__(self, journal: Journal, topic_name: Callable[[bytes], str | None]) -> None:
        self._journal = journal
        self._known_topic = topic_name
        self._opened: dict[int, Exchange] = {}

    def events(
        self, after: int = 0, limit: int | None = None, *, messages: bool = True
    ) -> Iterator[JournalEvent]:
        """The events behind entry `after`, of at most `limit` entries, oldest first.

        Without `messages` the decoded requests and answers are left out. A gap comes first, if
        there is one.
        """
        gap, entries = self._journal.since(after, limit)
        if gap is not None:
            yield self._gap(gap, entries)
        for entry in entries:
            yield from self.open(entry, messages=messages)

    def open(self, entry: Entry, *, messages: bool = True) -> Iterator[JournalEvent]:
        """The events that one entry holds."""
        if isinstance(entry, RequestEntry):
            yield self._request(entry, messages)
        elif isinstance(entry, ResponseEntry):
            yield from self._response(entry, messages)
        elif isinstance(entry, AppendEntry):
            yield self._append(entry)
        else:
            yield self._fact(entry)

    def _topic_name(self, topic_id: bytes) -> str | None:
        return self._known_topic(topic_id) or self._journal.former_topics.get(topic_id)

    def _gap(self, gap: Gap, entries: Sequence[Entry]) -> JournalEvent:
        at = entries[0] if entries else None
        return JournalEvent(
            seq=gap.last,
            kind="gap",
            virtual_ms=at.virtual_ms if at else 0,
            real_ns=at.real_ns if at else 0,
            first_seq=gap.first,
            last_seq=gap.last,
        )

    # -- requests ----------------------------------------------------------------------------------

    def _request(self, entry: RequestEntry, messages: bool) -> JournalEvent:
        opened = self._open(entry)
        message = opened.message
        return JournalEvent(
            kind="request",
            reason=opened.error or None,
            bytes=len(entry.frame),
            targets=self._targets(message),
            message=plain(message) if messages and message is not None else {},
            **self._who(entry, opened.header),
            **_facts(message),
        )

    def _open(self, entry: RequestEntry) -> Exchange:
        known = self._opened.get(entry.seq)
        if known is None:
            while len(self._opened) >= _OPENED_KEPT:
                self._opened.pop(next(iter(self._opened)), None)
            known = self._opened[entry.seq] = _decode_request(entry.frame)
        return known

    def _who(self, entry: RequestEntry | ResponseEntry, header: RequestHeader) -> dict[str, Any]:
        peer = self._journal.connection(entry.connection_id)
        known: dict[str, Any] = {}
        if peer is not None:
            known["source"] = f"{peer.client_host}:{peer.client_port}"
            known["client_software"] = f"{peer.software_name} {peer.software_version}"
            known["principal"] = peer.principal
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
            **known,
        }

    def _targets(self, message: Any) -> tuple[tuple[str, int], ...]:
        if message is None:
            return ()
        return tuple((each.topic, each.partition) for each in targets(message, self._topic_name))

    # -- answers -----------------------------------------------------------------------------------

    def _response(self, entry: ResponseEntry, messages: bool) -> Iterator[JournalEvent]:
        asked = self._asked(entry)
        request = asked.message if asked is not None else None
        header = asked.header if asked is not None else _header_of(entry)
        message = None if entry.body is None else _decode_body(entry)
        origin = self._journal.entry(entry.request_seq)
        who = self._who(entry, header)
        who["request_seq"] = entry.request_seq
        who["rules"] = entry.rules
        facts = _facts(request)
        yield JournalEvent(
            kind="response",
            outcome=entry.outcome or None,
            elapsed_ns=None if origin is None else entry.real_ns - origin.real_ns,
            bytes=sum(map(len, entry.body or ())),
            targets=self._targets(message) or self._targets(request),
            errors=error_names(message),
            message=plain(message) if messages and message is not None else {},
            **who,
            **facts,
        )
        if message is None:
            return
        found = parts_of(entry.api_key, request, message, self._topic_name)
        for part, fields in enumerate(found, 1):
            # What was committed is, but an answer that did not come whole has brought nothing.
            if not entry.outcome or fields["kind"] != "deliver":
                yield JournalEvent(**{**who, **facts, **fields, "part": part})

    def _asked(self, entry: ResponseEntry) -> Exchange | None:
        request = self._journal.entry(entry.request_seq)
        if not isinstance(request, RequestEntry):
            return None
        return self._open(request)

    def _append(self, entry: AppendEntry) -> JournalEvent:
        asked = self._journal.entry(entry.request_seq)
        fields: dict[str, Any] = {}
        if isinstance(asked, RequestEntry):
            opened = self._open(asked)
            fields = {**self._who(asked, opened.header), **_facts(opened.message)}
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
            "last_offset": entry.first_offset + entry.last_offset_delta,
            "records": entry.records,
            "bytes": entry.batch_bytes,
            "transactional": entry.transactional,
        }
        return JournalEvent(**fields)

    # -- the rest ----------------------------------------------------------------------------------

    def _fact(self, entry: FactEntry) -> JournalEvent:
        fact = entry.fact
        kind = entry.kind
        if isinstance(fact, msgspec.Struct):
            kind = KIND_OF[type(fact)]
            told: dict[str, Any] = {name: getattr(fact, name) for name in fact.__struct_fields__}
            told["change"] = told.get("change", type(fact).__name__)
            if told.get("ranges"):
                told["ranges"] = ranges_of(told["ranges"])
        else:
            told = dict(self._journal.facts_of(entry))
        fields: dict[str, Any] = {}
        message: dict[str, Any] = {}
        if "partitions" in told and "topic" in told:
            fields["targets"] = tuple((told["topic"], index) for index in told.pop("partitions"))
        for name, value in told.items():
            field = _RENAMED.get(name, name)
            if field == "at_ms":
                continue
            if field in _EVENT_FIELDS and field not in fields and _fits(field, value):
                fields[field] = value
            else:
                message[name] = value
        return JournalEvent(
            seq=entry.seq,
            kind=kind,
            virtual_ms=entry.virtual_ms,
            real_ns=entry.real_ns,
            message=message,
            **fields,
        )


def ranges_of(packed: bytes) -> list[tuple[int, int]]:
    """The first and last offsets that a `RecordsRemoved` holds in its `ranges`."""
    numbers = memoryview(packed).cast("q")
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _facts(message: Any) -> dict[str, Any]:
    if message is None:
        return {}
    return {
        name: value
        for name, value in scalars(message).items()
        if name in _FACT_FIELDS and _NOTHING.get(name) != value
    }


def _decode_request(frame: Buffer) -> Exchange:
    view = memoryview(frame)
    header, position = decode_request_header(view)
    try:
        codec = request_codec(ApiKey(header.api_key), header.api_version)
        message, _ = codec.decode(view, position)
    except (DecodeError, UnknownVersionError) as error:
        return Exchange(header, None, str(error))
    return Exchange(header, message, "")


def _header_of(entry: ResponseEntry) -> RequestHeader:
    return RequestHeader(entry.api_key, entry.api_version, entry.correlation_id, None)


def _decode_body(entry: ResponseEntry) -> Any:
    """The answer, or None where its bytes are not one: a rule may have seen to that."""
    body = b"".join(entry.body or ())
    try:
        codec = response_codec(ApiKey(entry.api_key), entry.api_version)
        message, _ = codec.decode(memoryview(body), 0)
    except DecodeError:
        return None
    return message


def _fits(field: str, value: object) -> bool:
    """Whether a fact may stand in the event's field of its name."""
    return isinstance(value, str) if field in ("state", "former", "change", "reason") else True
