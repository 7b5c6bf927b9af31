"""A broker with its copy of a partition, and what its log and the answers of a leader say."""

from __future__ import annotations

from mockbroker.core.log.epoch_cache import NO_OFFSET
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.log.segments import RollLimits
from mockbroker.core.replication.fetcher import (
    Answer,
    Diverged,
    Fetch,
    Fetched,
    OutOfRange,
    Question,
    ReplicaFetcher,
)
from mockbroker.core.replication.replica import Replica
from mockbroker_protocol.records import BatchHeader

LIMITS = RollLimits(segment_bytes=1 << 20, segment_ms=1 << 40)
NOBODY = -1

# Epoch and number of each record of a log.
Records = tuple[tuple[int, int], ...]


class Node:
    """One broker with its copy: what it knows of the leadership, and what it waits for."""

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
        "question",
    )

    def __init__(self, node_id: int, fetcher: ReplicaFetcher) -> None:
        self.node_id = node_id
        self.fetcher = fetcher
        self.alive = True
        self.died_at = NOBODY  # the last epoch in which it crashed
        self.epoch = NOBODY  # of the leadership that it has learnt of
        self.leads = False
        self.isr: frozenset[int] = frozenset()  # as the leader knows it
        self.known: dict[int, int] = {}  # follower -> the offset it fetched last
        self.epoch_start = 0
        self.question: Question | None = None
        self.answers: tuple[Answer, ...] = ()  # on their way, the oldest first
        self.paused: int | None = None
        self.confirmed = False  # this leader has answered with records, or with none to come

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
        node.question = self.question
        node.answers = self.answers
        node.paused = self.paused
        node.confirmed = self.confirmed
        return node


def copied(log: ReplicaLog) -> ReplicaLog:
    """A log of its own with the same contents, and with the epochs that wrote nothing yet."""
    copy = log.fork()
    for epoch, start_offset in log.epochs.entries:
        if epoch > copy.epochs.latest:
            copy.epochs.assign(epoch, start_offset)
    return copy


def records(log: ReplicaLog) -> Records:
    """What a log holds, offset by offset: each batch here has one record."""
    headers = map(BatchHeader, log.batches())
    return tuple((header.leader_epoch, header.max_timestamp) for header in headers)


def astray(fetch: Fetch, log: ReplicaLog) -> Answer | None:
    """What a follower is told whose history is another one (KafkaApis, Partition.readRecords)."""
    if fetch.last_epoch >= 0:
        epoch, end_offset = log.epochs.end_offset_for(fetch.last_epoch, log.end_offset)
        if end_offset == NO_OFFSET:
            return OutOfRange(fetch.number, log.start_offset, log.end_offset)
        if epoch < fetch.last_epoch or end_offset < fetch.offset:
            return Diverged(fetch.number, epoch, end_offset)
    if fetch.offset > log.end_offset:
        return OutOfRange(fetch.number, log.start_offset, log.end_offset)
    return None


def spelt(answer: Answer) -> object:
    """What an answer says, without its number."""
    if isinstance(answer, Fetched):
        taken = answer.taken
        records = (
            ()
            if taken is None
            else tuple(
                (BatchHeader(batch).base_offset, BatchHeader(batch).leader_epoch)
                for batch in taken.batches.batches()
            )
        )
        return records, answer.high_watermark
    return tuple(answer)[1:]
