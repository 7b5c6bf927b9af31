"""From the entries of a journal to notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mockbroker.core.ids import uuid_text
from mockbroker.core.journal.entries import (
    AppendEntry,
    Entry,
    FactEntry,
    RequestEntry,
    ResponseEntry,
)
from mockbroker.core.journal.journal import Journal
from mockbroker.core.journal.journal import Peer as JournalPeer
from mockbroker.pipeline.spool.notes import (
    FORMAT,
    Answered,
    Appended,
    Asked,
    Begin,
    Fact,
    KnownTopic,
    Lost,
    Note,
    Peer,
    as_facts,
    pieces,
)
from mockbroker.pipeline.spool.secrets import (
    HIDDEN_ANSWERS,
    shown_errors,
    shown_request,
)
from mockbroker_protocol import ApiKey

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster

# Answers behind which more is known of a client.
INTRODUCTIONS = frozenset((int(ApiKey.API_VERSIONS), int(ApiKey.SASL_AUTHENTICATE)))


def begin_of(cluster: Cluster, run: str, real_ns: int, last_seq: int) -> Begin:
    """What a cluster is like now, for the start of a run."""
    topics = [
        KnownTopic(
            topic.name,
            uuid_text(topic.topic_id),
            [(each.leader_id, each.leader_epoch) for each in topic.partitions],
        )
        for topic in cluster.topics.values()
    ]
    return Begin(FORMAT, run, cluster.cluster_id, cluster.now_ms(), real_ns, last_seq, topics)


def note_of(entry: Entry) -> Note:
    """The note that holds an entry, secrets left out."""
    if isinstance(entry, RequestEntry):
        frame, hidden = shown_request(entry.frame)
        return Asked(*entry[:5], frame, hidden)  # type: ignore[arg-type]
    if isinstance(entry, ResponseEntry):
        body, errors = pieces(entry.body), None
        if body is not None and entry.api_key in HIDDEN_ANSWERS:
            errors = shown_errors(entry.api_key, entry.api_version, body)
            body = []
        rules = list(entry.rules)
        return Answered(*entry[:9], body, entry.outcome, rules, errors)
    if isinstance(entry, AppendEntry):
        return Appended(*entry)
    name, fact = as_facts(entry.fact)
    return Fact(entry.seq, entry.virtual_ms, entry.real_ns, entry.kind, name, fact)


def peer_note(peer: JournalPeer) -> Peer:
    """Who is at the other end, as known now."""
    software = f"{peer.software_name} {peer.software_version}"
    return Peer(peer.id, peer.client_host, peer.client_port, peer.principal, software)


def notes_of_memory(cluster: Cluster, journal: Journal, run: str, real_ns: int) -> list[Note]:
    """All that a journal still holds, as a run of its own; the last note is missing.

    Topics that came or went meanwhile are told by its entries, so the beginning is worked out
    backwards from what there is now. Called in the cluster's thread.
    """
    gap, entries = journal.since(0)
    begin = begin_of(cluster, run, real_ns, entries[0].seq - 1 if entries else journal.last_seq)
    notes: list[Note] = [_as_it_was(begin, entries)]
    if gap is not None:
        notes.append(Lost(gap.first, gap.last, "the journal had no room for it"))
    seen: set[int] = set()
    for entry in entries:
        connection_id = getattr(entry, "connection_id", None)
        if connection_id is not None and connection_id not in seen:
            seen.add(connection_id)
            peer = journal.connection(connection_id)
            if peer is not None:
                notes.append(peer_note(peer))
        notes.append(note_of(entry))
    return notes


def _as_it_was(begin: Begin, entries: Sequence[Entry]) -> Begin:
    topics = {topic.topic_id: topic for topic in begin.topics}
    for fact in reversed(_told(entries, "TopicChanged")):
        topic_id: str = fact["topic_id"]
        if fact["change"] == "created":
            topics.pop(topic_id, None)
        else:
            leaders = [(-1, 0)] * fact["partition_count"]
            topics[topic_id] = KnownTopic(fact["topic"], topic_id, leaders)
    former: dict[tuple[str, int], tuple[int, int]] = {}
    for fact in _told(entries, "LeaderChanged"):  # the first change tells what was before it
        place = (fact["topic"], fact["partition"])
        former.setdefault(place, (fact["former_leader_id"], fact["leader_epoch"] - 1))
    known = [
        KnownTopic(
            topic.name,
            topic.topic_id,
            [former.get((topic.name, at), leader) for at, leader in enumerate(topic.leaders)],
        )
        for topic in topics.values()
    ]
    first = entries[0] if entries else None
    return Begin(
        begin.format,
        begin.run,
        begin.cluster_id,
        begin.virtual_ms if first is None else first.virtual_ms,
        begin.real_ns if first is None else first.real_ns,
        begin.last_seq,
        known,
    )


def _told(entries: Sequence[Entry], name: str) -> list[dict[str, Any]]:
    """The events of one class among the entries."""
    return [
        as_facts(entry.fact)[1]
        for entry in entries
        if isinstance(entry, FactEntry) and type(entry.fact).__name__ == name
    ]
