"""The journal of a cluster in memory, as the entries of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mockbroker.core.events import LeaderChanged, TopicsChanged
from mockbroker.core.ids import uuid_text
from mockbroker.core.journal.entries import Entry, EventEntry, RequestEntry
from mockbroker.core.journal.journal import ConnectedClient, Journal
from mockbroker.pipeline.past.image import capture
from mockbroker.pipeline.spool.format import (
    FORMAT,
    ClientIdentified,
    InitialTopic,
    RunEnded,
    RunStarted,
    SpoolEntry,
)

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster


def client_identified(connection: ConnectedClient) -> ClientIdentified:
    """The client of a connection, with its present properties."""
    return ClientIdentified(
        *(getattr(connection, name) for name in ClientIdentified.__struct_fields__)
    )


def finished_run(cluster: Cluster, journal: Journal, run: str, real_ns: int) -> list[SpoolEntry]:
    """All entries of a journal, as a run that ends now. Called in the cluster's thread."""
    image = capture(cluster)
    end = RunEnded(journal.last_seq, cluster.runtime.now_ms(), real_ns, image)
    return [*run_until_now(cluster, journal, run, real_ns), end]


def run_until_now(cluster: Cluster, journal: Journal, run: str, real_ns: int) -> list[SpoolEntry]:
    """All entries of a journal, as a run that continues. Called in the cluster's thread.

    The topics at its start are the present ones without the changes in the entries.
    """
    gap, entries = journal.since(0)
    found: list[SpoolEntry] = [_run_started(cluster, journal, run, real_ns, entries)]
    if gap is not None:
        found.append(gap)
    identified: set[int] = set()
    for entry in entries:
        if isinstance(entry, RequestEntry) and entry.connection_id not in identified:
            identified.add(entry.connection_id)
            connection = journal.connection(entry.connection_id)
            if connection is not None:
                found.append(client_identified(connection))
        found.append(entry)
    return found


def _run_started(
    cluster: Cluster, journal: Journal, run: str, real_ns: int, entries: Sequence[Entry]
) -> RunStarted:
    virtual_ms, last_seq = cluster.runtime.now_ms(), journal.last_seq
    if entries:
        first = entries[0]
        virtual_ms, real_ns, last_seq = first.virtual_ms, first.real_ns, first.seq - 1
    topics = _initial_topics(cluster, entries)
    tracked = list(journal.tracked.values())
    return RunStarted(
        FORMAT, run, cluster.cluster_id, virtual_ms, real_ns, last_seq, topics, tracked
    )


def _initial_topics(cluster: Cluster, entries: Sequence[Entry]) -> list[InitialTopic]:
    """The topics before the first of the entries."""
    topics = {
        uuid_text(topic.topic_id): (
            topic.name,
            [(each.leader_id, each.leader_epoch) for each in topic.partitions],
        )
        for topic in cluster.topics.values()
    }
    leaders: dict[tuple[str, int], tuple[int, int]] = {}
    for entry in reversed(entries):
        event = entry.event if isinstance(entry, EventEntry) else None
        if isinstance(event, TopicsChanged):
            for topic in event.created:
                topics.pop(topic.topic_id, None)
            for topic in event.deleted:
                topics[topic.topic_id] = topic.topic, [(-1, 0)] * len(topic.assignment)
        elif isinstance(event, LeaderChanged):
            former = event.former_leader_id, event.leader_epoch - 1
            leaders[event.topic, event.partition] = former
    return [
        InitialTopic(
            name, topic_id, [leaders.get((name, index), now) for index, now in enumerate(present)]
        )
        for topic_id, (name, present) in topics.items()
    ]
