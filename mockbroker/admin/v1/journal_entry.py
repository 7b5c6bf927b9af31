"""One entry of the journal: its bytes, what it is connected with, and what rules made of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall
from mockbroker.admin.v1.frames import FrameView, frame_view
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.core.cluster import Cluster
from mockbroker.core.events import OffsetCommitted
from mockbroker.core.faults.facts import Facts, KnownBroker
from mockbroker.core.faults.reasons import reason_of
from mockbroker.core.journal.entries import (
    AppendEntry,
    Entry,
    EventEntry,
    FactEntry,
    HopEntry,
    RequestEntry,
    ResponseEntry,
)
from mockbroker.core.journal.events import JournalEvent, one_line
from mockbroker.core.journal.journal import ConnectedClient, Journal
from mockbroker.core.journal.messages import decode_request
from mockbroker.core.journal.reader import JournalReader
from mockbroker.core.journal.slices import JournalSlice, slice_of
from mockbroker.pipeline.saved import SavedJournal, SavedPart
from mockbroker_protocol.headers import RequestHeader

LINKS_MAX = 200
# Effects are looked for among so many entries behind a cause.
SEARCHED_ENTRIES = 200_000
# An action writes its entry behind its effects.
ACTION_EFFECTS_MAX = 2_000

endpoints = ApiEndpoints()

ENTRY = "/v1/journal/entries/{seq:number}"
PROBLEMS = (404, 409)


class EntryView(msgspec.Struct, frozen=True):
    """One entry: its events, as `GET /v1/journal` has them, and its bytes on the wire, if any."""

    seq: int
    events: list[JournalEvent]
    frame: FrameView | None


class RelatedEntryView(msgspec.Struct, frozen=True):
    """Another entry that is connected with this one.

    `relation` is "request", "response", "append", "deliver", "completes" (a parked request of
    another client), "action", "fault", or the kind of an event that the handling led to.
    """

    relation: str
    seq: int
    kind: str
    text: str


class RuleReasonView(msgspec.Struct, frozen=True):
    """Whether a rule fired for a request, and why not."""

    rule: str
    fired: bool
    why: str


class RelatedEntriesView(msgspec.Struct, frozen=True):
    """Causes and effects of an entry, and the rules for a request.

    `left_out` counts effects beyond 200. The reasons are those of the rules now in force, by the
    match of each with the request; conditions on the state of the cluster hold for now.
    """

    seq: int
    causes: list[RelatedEntryView]
    effects: list[RelatedEntryView]
    left_out: int
    rules: list[RuleReasonView]


@endpoints.get(ENTRY, "One journal entry, with its bytes field by field", problems=PROBLEMS)
async def show(backend: AdminBackend, call: EndpointCall) -> EntryView:
    seq = call.path["seq"]
    part = await _part(backend, seq, seq)
    entry = _known(backend, part, seq)

    def opened() -> EntryView:
        reader = JournalReader(part, part.topic_name)
        return EntryView(seq, list(reader.open(entry)), frame_view(entry))

    return await backend.compute(opened)


@endpoints.get(
    f"{ENTRY}/links",
    "Causes and effects of a journal entry, and what the rules made of it",
    problems=PROBLEMS,
)
async def links(backend: AdminBackend, call: EndpointCall) -> RelatedEntriesView:
    seq = call.path["seq"]
    part = await _part(backend, seq, seq + SEARCHED_ENTRIES)
    entry = _known(backend, part, seq)
    if isinstance(entry, FactEntry) and "effects_after" in entry.facts:
        part = await _part(backend, entry.facts["effects_after"] + 1, seq)
    found = await backend.compute(lambda: _Links(part, entry).view())
    if isinstance(entry, RequestEntry) and not isinstance(backend.journal, SavedJournal):
        client = part.connection(entry.connection_id)
        names = {name for link in found.effects for name in _fired(part.entry(link.seq))}
        rules = await backend.cluster(lambda cluster: rule_reasons(cluster, entry, client, names))
        return msgspec.structs.replace(found, rules=rules)
    return found


def _fired(effect: Entry | None) -> Iterable[str]:
    """The rules that fired, as an effect of a request names them: a held one has no answer yet."""
    if isinstance(effect, ResponseEntry):
        return effect.rules
    if isinstance(effect, FactEntry) and effect.kind == "fault":
        rules: Iterable[str] = effect.facts["rules"]
        return rules
    return ()


async def _part(backend: AdminBackend, seq: int, until: int) -> JournalSlice | SavedPart:
    """The journal from an entry on, with the request that it answers or that caused it."""
    journal = backend.journal
    if isinstance(journal, SavedJournal):
        return journal.part(seq - 1, until)
    return await backend.read(lambda: _slice(backend, journal, seq, until))


def _slice(backend: AdminBackend, journal: Journal, seq: int, until: int) -> JournalSlice:
    entry = journal.entry(seq)
    requested = [] if entry is None else list(_causes(entry))
    return slice_of(journal, backend.topic_name, seq - 1, until, requested)


def _causes(entry: Entry) -> Iterator[int]:
    """The numbers of the entries that an entry names as its causes."""
    if isinstance(entry, ResponseEntry | AppendEntry | HopEntry) and entry.request_seq:
        yield entry.request_seq
    if isinstance(entry, ResponseEntry | EventEntry) and entry.cause_seq:
        yield entry.cause_seq
    if isinstance(entry, EventEntry) and isinstance(entry.event, OffsetCommitted):
        yield entry.event.request_seq
    if isinstance(entry, FactEntry):
        yield entry.facts.get("request_seq", 0)


def _known(backend: AdminBackend, part: JournalSlice | SavedPart, seq: int) -> Entry:
    entry = part.entry(seq)
    if entry is None:
        journal = backend.journal
        raise ProblemError(
            404,
            "not found",
            f"the journal has no entry {seq}; it has {journal.first_seq} to {journal.last_seq}",
        )
    return entry


class _Links:
    """Finds what an entry is connected with."""

    def __init__(self, part: JournalSlice | SavedPart, entry: Entry) -> None:
        self._part = part
        self._entry = entry
        self._reader = JournalReader(part, part.topic_name)
        self._effects: list[RelatedEntryView] = []
        self._left_out = 0

    def view(self) -> RelatedEntriesView:
        causes = [self._link(relation, each) for relation, each in self._causes()]
        self._find_effects()
        return RelatedEntriesView(self._entry.seq, causes, self._effects, self._left_out, [])

    def _link(self, relation: str, entry: Entry) -> RelatedEntryView:
        event = next(self._reader.open(entry, messages=False))
        text = one_line(event).partition(" ")[2]
        return RelatedEntryView(relation or event.kind, entry.seq, event.kind, text)

    def _causes(self) -> Iterator[tuple[str, Entry]]:
        for seq in dict.fromkeys(_causes(self._entry)):
            cause = self._part.entry(seq)
            if cause is not None:
                own = getattr(self._entry, "request_seq", 0) == seq
                completes = isinstance(self._entry, ResponseEntry) and not own
                yield "completes" if completes else "request", cause
        if isinstance(self._entry, EventEntry) and not self._entry.cause_seq:
            _, following = self._part.since(self._entry.seq, ACTION_EFFECTS_MAX)
            for entry in following:
                after = entry.facts.get("effects_after") if isinstance(entry, FactEntry) else None
                if after is not None and after < self._entry.seq:
                    yield "action", entry
                    return

    def _find_effects(self) -> None:
        seq = self._entry.seq
        if isinstance(self._entry, FactEntry):
            after = self._entry.facts.get("effects_after")
            if after is not None:
                self._effects_of_action(after)
            return
        for entry in self._part:
            relation = _relation(entry, seq)
            if relation is not None:
                self._add(relation, entry)

    def _effects_of_action(self, after: int) -> None:
        _, entries = self._part.since(after, ACTION_EFFECTS_MAX)
        for entry in entries:
            if entry.seq >= self._entry.seq:
                return
            self._add("", entry)

    def _add(self, relation: str, entry: Entry) -> None:
        if len(self._effects) == LINKS_MAX:
            self._left_out += 1
        else:
            self._effects.append(self._link(relation, entry))


def _relation(entry: Entry, seq: int) -> str | None:
    """How an entry follows from entry `seq`; None if it does not."""
    match entry:
        case ResponseEntry(request_seq=asked) if asked == seq:
            return "response"
        case ResponseEntry(cause_seq=cause) if cause == seq:
            return "completes"
        case AppendEntry(request_seq=asked) if asked == seq:
            return "append"
        case HopEntry(request_seq=asked) if asked == seq:
            return "response"
        case EventEntry(cause_seq=cause) if cause == seq:
            return entry.event.kind
        case EventEntry(event=OffsetCommitted(request_seq=asked)) if asked == seq:
            return entry.event.kind
        case FactEntry(kind=kind, facts=facts) if facts.get("request_seq") == seq:
            return kind
        case _:
            return None


def rule_reasons(
    cluster: Cluster, entry: RequestEntry, client: ConnectedClient | None, fired: set[str]
) -> list[RuleReasonView]:
    """Why each rule in force fired for a request or did not. Called in the cluster's thread."""
    found = [RuleReasonView(name, True, "it fired for this request") for name in sorted(fired)]
    opened = decode_request(entry.frame)
    broker = cluster.processes.get(entry.node_id)
    if cluster.faults is None or opened.message is None or broker is None or client is None:
        return found
    facts = Facts(_Recorded(broker, client, opened.header, entry.seq), opened.message)
    return found + [
        RuleReasonView(rule.name, False, reason_of(rule, facts, entry.virtual_ms))
        for rule in cluster.faults.rules.values()
        if rule.name not in fired
    ]


class _Recorded:
    """The surroundings of a request that was handled before."""

    def __init__(
        self, broker: KnownBroker, client: ConnectedClient, header: RequestHeader, seq: int
    ) -> None:
        self.broker = broker
        self.listener = client.listener
        self.header = header
        self.connection = client
        self.seq = seq
