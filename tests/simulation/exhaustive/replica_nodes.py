"""A broker with its replica of a partition, and the answers of a leader."""

from __future__ import annotations

from mockbroker.core.log.leader_epoch_cache import NO_OFFSET
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.log.segments import RollLimits
from mockbroker.core.replication.fetcher import (
    Answer,
    Diverged,
    Fetch,
    Fetched,
    FetcherRequest,
    OutOfRange,
    ReplicaFetcher,
)
from mockbroker.core.replication.replica import Replica
from mockbroker_protocol.records import BatchHeader

LIMITS = RollLimits(segment_bytes=1 << 20, segment_ms=1 << 40)
NOBODY = -1

# Epoch and number of each record of a log.
Records = tuple[tuple[int, int], ...]


class Node:
    """One broker with its replica, its view of the leadership, and its pending request."""

    __slots__ = (
        "alive",
        "answers",
        "confirmed",
        "died_at",
        "epoch",
        "epoch_start",
        "fetcher",
        "isr",
        "known",
        "leads",
        "node_id",
        "paused",
        "request",
    )

    def __init__(self, node_id: int, fetcher: ReplicaFetcher) -> None:
        self.node_id = node_id
        self.fetcher = fetcher
        self.alive = True
        self.died_at = NOBODY  # the last epoch in which it crashed
        self.epoch = NOBODY  # the leader epoch in its metadata
        self.leads = False
        self.isr: frozenset[int] = frozenset()  # the leader's ISR
        self.known: dict[int, int] = {}  # follower -> its last fetch offset
        self.epoch_start = 0
        self.request: FetcherRequest | None = None
        self.answers: tuple[Answer, ...] = ()  # in flight, the oldest first
        self.paused: int | None = None
        self.confirmed = False  # the current leader has answered a fetch

    @property
    def log(self) -> ReplicaLog:
        return self.fetcher.replica.log

    @property
    def high_watermark(self) -> int:
        return self.fetcher.replica.high_watermark

    def copy(self) -> Node:
        fetcher = self.fetcher
        replica = Replica(self.node_id, copied(self.log), self.high_watermark)
        made = ReplicaFetcher(replica, LIMITS, fetcher.truncation)
        made.state = fetcher.state
        made.following = fetcher.following
        made._number = fetcher._number
        made._settled = fetcher._settled
        node = Node(self.node_id, made)
        node.alive = self.alive
        node.died_at = self.died_at
        node.epoch = self.epoch
        node.leads = self.leads
        node.isr = self.isr
        node.known = dict(self.known)
        node.epoch_start = self.epoch_start
        node.request = self.request
        node.answers = self.answers
        node.paused = self.paused
        node.confirmed = self.confirmed
        return node


def copied(log: ReplicaLog) -> ReplicaLog:
    """A copy of a log that includes the epochs without records."""
    copy = log.fork()
    for epoch, start_offset in log.epochs.entries:
        if epoch > copy.epochs.latest:
            copy.epochs.assign(epoch, start_offset)
    return copy


def records(log: ReplicaLog) -> Records:
    """The epoch and number of each record; each batch has one record."""
    headers = map(BatchHeader, log.batches())
    return tuple((header.leader_epoch, header.max_timestamp) for header in headers)


def divergence_answer(fetch: Fetch, log: ReplicaLog) -> Answer | None:
    """The answer to a follower whose log has diverged, else None (Partition.readRecords)."""
    if fetch.last_epoch >= 0:
        epoch, end_offset = log.epochs.end_offset_for(fetch.last_epoch, log.end_offset)
        if end_offset == NO_OFFSET:
            return OutOfRange(fetch.number, log.start_offset, log.end_offset)
        if epoch < fetch.last_epoch or end_offset < fetch.offset:
            return Diverged(fetch.number, epoch, end_offset)
    if fetch.offset > log.end_offset:
        return OutOfRange(fetch.number, log.start_offset, log.end_offset)
    return None


def text_of(answer: Answer) -> object:
    """The content of an answer without its number."""
    if isinstance(answer, Fetched):
        batches = () if answer.records is None else answer.records.batches.batches()
        headers = map(BatchHeader, batches)
        return tuple((h.base_offset, h.leader_epoch) for h in headers), answer.high_watermark
    return tuple(answer)[1:]
