"""The requests and answers of a simulation's clients, which the laws check.

They are noted in the order of the cluster's time. A request without an answer may or may not have
been carried out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

# The state of a transaction, by the answers to its producer.
OPEN = "open"
COMMITTING = "committing"
COMMITTED = "committed"
ABORTING = "aborting"
ABORTED = "aborted"
UNKNOWN = "unknown"


class Sent:
    """One batch of a producer, with its retries.

    `crc` is the checksum of the batch, by which the log has it. Where it was acknowledged,
    `base_offset` is its offset and `node_id` the broker; -1 until then. `voided` says why it may be
    gone, "" as long as it may not.
    """

    __slots__ = (
        "acked_ms",
        "acks",
        "base_offset",
        "client",
        "count",
        "crc",
        "epoch",
        "node_id",
        "partition",
        "producer_id",
        "sent_ms",
        "topic",
        "topic_id",
        "transaction",
        "values",
        "voided",
    )

    def __init__(
        self,
        client: str,
        topic: str,
        topic_id: bytes,
        partition: int,
        values: list[bytes],
        acks: int,
        transaction: Transaction | None,
        sent_ms: int,
    ) -> None:
        self.client = client
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.values = values
        self.count = len(values)
        self.acks = acks
        self.transaction = transaction
        self.sent_ms = sent_ms
        self.crc = 0
        self.producer_id = self.epoch = -1
        self.base_offset = -1
        self.acked_ms = -1
        self.node_id = -1
        self.voided = ""


class Transaction:
    """One transaction: its batches and commits, and its state as its producer has it."""

    __slots__ = ("batches", "commits", "name", "state", "transactional_id")

    def __init__(self, name: str, transactional_id: str) -> None:
        self.name = name
        self.transactional_id = transactional_id
        self.state = OPEN
        self.batches: list[Sent] = []
        self.commits: list[Commit] = []


class Commit:
    """A commit of one offset. `sent` and `acked` are turns of the history; -1 without an
    acknowledgement. `doubtful`: one request had no answer, and may be carried out much later. In a
    transaction the commit is acknowledged with the end of the transaction; `written` is the turn
    of the answer to TxnOffsetCommit, and `dropped` means that the transaction was aborted.
    `topic_id` is the topic's id in the client's metadata, or empty.
    """

    __slots__ = (
        "acked",
        "doubtful",
        "dropped",
        "group",
        "offset",
        "partition",
        "repeated",
        "sent",
        "topic",
        "topic_id",
        "voided",
        "written",
    )

    def __init__(
        self,
        group: str,
        topic: str,
        partition: int,
        offset: int,
        sent: int,
        topic_id: bytes = b"",
    ) -> None:
        self.group = group
        self.topic_id = topic_id
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.sent = sent
        self.acked = -1
        self.written = -1
        self.doubtful = False
        # Sent again after a request without an answer: before TV2 that request may arrive while a
        # later transaction of the same epoch is open, and is then a part of it.
        self.repeated = False
        self.dropped = False
        self.voided = False


class FetchedOffset:
    """A committed offset in an OffsetFetch answer; -1 without one. `sent` and `answered` are
    the turns of the request and the answer.
    """

    __slots__ = ("answered", "at_ms", "group", "offset", "partition", "sent", "topic")

    def __init__(
        self,
        group: str,
        topic: str,
        partition: int,
        offset: int,
        sent: int,
        answered: int,
        at_ms: int,
    ) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.sent = sent
        self.answered = answered
        self.at_ms = at_ms


class Read:
    """A batch that a consumer has read: its place and checksum."""

    __slots__ = (
        "at_ms",
        "base_offset",
        "client",
        "committed",
        "crc",
        "partition",
        "producer_id",
        "topic",
        "topic_id",
        "voided",
    )

    def __init__(
        self,
        client: str,
        topic: str,
        topic_id: bytes,
        partition: int,
        base_offset: int,
        crc: int,
        producer_id: int,
        *,
        committed: bool,
        at_ms: int,
    ) -> None:
        self.client = client
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.base_offset = base_offset
        self.crc = crc
        self.producer_id = producer_id
        self.committed = committed
        self.at_ms = at_ms
        self.voided = ""


class AnsweredAborts(NamedTuple):
    """The aborted transactions in a read_committed Fetch answer with records between two offsets,
    as producer ids and first offsets.
    """

    client: str
    topic: str
    topic_id: bytes
    partition: int
    begin: int
    end: int
    aborted: frozenset[tuple[int, int]]


class Drained(NamedTuple):
    """A share group whose last member got no more records from these partitions."""

    group: str
    partitions: tuple[tuple[bytes, int], ...]


class Disordered(NamedTuple):
    """A batch that a broker has refused with OUT_OF_ORDER_SEQUENCE_NUMBER, and the turns of the
    request and the answer.
    """

    sent: Sent
    node_id: int
    requested: int
    answered: int


class IssuedEpoch(NamedTuple):
    """A producer id and epoch that InitProducerId returned for a transactional id, and the turn."""

    producer_id: int
    epoch: int
    answered: int


class Owned:
    """The assignment of a member in an answer. `member` is the instance id of a static member, and
    the member id of a dynamic one.
    """

    __slots__ = ("at_ms", "client", "epoch", "group", "member", "partitions", "protocol")

    def __init__(
        self,
        protocol: str,
        group: str,
        member: str,
        client: str,
        epoch: int,
        partitions: frozenset[tuple[str, int]],
        at_ms: int,
    ) -> None:
        self.protocol = protocol
        self.group = group
        self.member = member
        self.client = client
        self.epoch = epoch
        self.partitions = partitions
        self.at_ms = at_ms


class GroupCall:
    """A request of a group member, and its answer.

    `sent` and `answered` are the turns of request and answer; `answered` is -1 without an answer.
    `doubtful`: one request had no answer, and may be carried out much later. `generation` is the
    generation or member epoch in the request, `answered_generation` that in the answer, -1 without
    one. `what` is "join", "sync", "heartbeat", "commit" or "leave".
    """

    __slots__ = (
        "answered",
        "answered_generation",
        "answered_member",
        "answered_ms",
        "assigned",
        "assignments",
        "client",
        "doubtful",
        "error",
        "generation",
        "group",
        "instance",
        "instances",
        "leads",
        "listed",
        "member",
        "owned",
        "protocol",
        "sent",
        "sent_ms",
        "what",
    )

    def __init__(
        self,
        what: str,
        protocol: str,
        group: str,
        client: str,
        member: str,
        instance: str | None,
        generation: int,
        sent: int,
        sent_ms: int,
    ) -> None:
        self.what = what
        self.protocol = protocol
        self.group = group
        self.client = client
        self.member = member
        self.instance = instance
        self.generation = generation
        self.sent = sent
        self.sent_ms = sent_ms
        self.answered = self.answered_ms = -1
        self.error = 0
        self.doubtful = False
        self.leads = False  # is the leader of the group
        self.answered_member = ""
        self.answered_generation = -1
        self.listed: tuple[str, ...] = ()  # dynamic members in the leader's JoinGroup answer
        self.instances: tuple[tuple[str, str], ...] = ()  # static ones: instance and member id
        self.assignments: dict[str, bytes] = {}  # in the leader's SyncGroup, by member
        self.assigned: bytes | frozenset[tuple[bytes, int]] | None = None  # in the answer
        self.owned: frozenset[tuple[bytes, int]] | None = None  # in the request

    @property
    def succeeded(self) -> bool:
        """Whether an answer without an error has come."""
        return self.answered >= 0 and not self.error


class Unfenced(NamedTuple):
    """An acknowledgement that fencing forbids, in a sentence. `partition` has the topic id and
    index if the leader must refuse the batch by its own log.
    """

    sentence: str
    partition: tuple[bytes, int] | None = None


class History:
    """All requests and answers of clients, in order, and counts of them.

    Turns are numbers that give an order within one millisecond.
    """

    def __init__(self, now_ms: Callable[[], int], *, limits_precede_reads: bool = False) -> None:
        """`limits_precede_reads`: brokers note the high watermark and the last stable offset of an
        answer before they read its records, which may then lie above them (Partition.readRecords).
        """
        self.now_ms = now_ms
        self.limits_precede_reads = limits_precede_reads
        self.sent: list[Sent] = []
        self.acked: list[Sent] = []
        self.transactions: list[Transaction] = []
        self.commits: list[Commit] = []
        self.found: list[FetchedOffset] = []
        self.reads: list[Read] = []
        self.owned: list[Owned] = []
        self.group_calls: list[GroupCall] = []
        self.rebalance_ms: dict[str, int] = {}  # the longest rebalance timeout in each group
        # The leaders in Metadata answers, by topic id, partition and leader epoch.
        self.leaders: dict[tuple[bytes, int, int], set[int]] = {}
        self.aborts: list[AnsweredAborts] = []
        self.given: dict[str, list[IssuedEpoch]] = {}  # by transactional id
        # Acknowledged requests of fenced producers, acknowledged batches in partitions that were
        # not added to the transaction, and epochs that were returned twice.
        self.unfenced: list[Unfenced] = []
        # All returned producer ids and epochs, also those after a snapshot that was restored: their
        # producers continue to use them.
        self._ever_given: set[tuple[int, int]] = set()
        self._given_twice: set[tuple[int, int]] = set()
        # Producer ids and epochs whose transaction was ended by an EndTxn that raises no epoch.
        self.ended_without_bump: set[tuple[int, int]] = set()
        self.running: set[str] = set()  # the clients that have not ended
        self.drained: list[Drained] = []
        self.draining: set[str] = set()  # the share groups whose last member has not ended
        # Consecutive batches that were called out of order.
        self.disordered: list[Disordered] = []
        # Answers that do not fit their requests, in a sentence each.
        self.misfits: list[str] = []
        self.counts: Counter[str] = Counter()
        self._turns = 0

    def turn(self) -> int:
        """The next turn."""
        self._turns += 1
        return self._turns

    def group_call(
        self,
        what: str,
        protocol: str,
        group: str,
        client: str,
        member: str,
        instance: str | None,
        generation: int,
    ) -> GroupCall:
        """Note a member's request before it is sent."""
        call = GroupCall(
            what, protocol, group, client, member, instance, generation, self.turn(), self.now_ms()
        )
        self.group_calls.append(call)
        return call

    def group_answer(self, call: GroupCall, error: int) -> None:
        """Note the answer."""
        call.answered, call.answered_ms, call.error = self.turn(), self.now_ms(), int(error)

    def leader_told(self, topic_id: bytes, partition: int, epoch: int, leader_id: int) -> None:
        """Note a leader in a Metadata answer that has topic ids and leader epochs."""
        if leader_id >= 0 and epoch >= 0 and any(topic_id):
            self.leaders.setdefault((topic_id, partition, epoch), set()).add(leader_id)

    def epoch_given(self, transactional_id: str, producer_id: int, epoch: int) -> None:
        """InitProducerId has returned a producer id and epoch.

        Brokers cannot distinguish two producers with one id and epoch: the first batch of the
        second looks like a retry. So their acknowledgements prove nothing.
        """
        given = self.given.setdefault(transactional_id, [])
        again = any((each.producer_id, each.epoch) == (producer_id, epoch) for each in given)
        if again and (producer_id, epoch) not in self.ended_without_bump:
            self.unfenced.append(
                Unfenced(
                    f"{transactional_id} was given epoch {epoch} of producer {producer_id} twice"
                )
            )
        given.append(IssuedEpoch(producer_id, epoch, self.turn()))
        if (producer_id, epoch) in self._ever_given:
            self._given_twice.add((producer_id, epoch))
            for sent in self.sent:
                self._void_ambiguous(sent)
        self._ever_given.add((producer_id, epoch))

    def _void_ambiguous(self, sent: Sent) -> None:
        if (sent.producer_id, sent.epoch) in self._given_twice:
            sent.voided = sent.voided or "epoch given twice"

    def batch_sent(self, sent: Sent) -> None:
        """Note a batch before it is sent for the first time."""
        self.sent.append(sent)
        if self._given_twice:
            self._void_ambiguous(sent)

    def accepted(
        self,
        what: str,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        sent: int,
        partition: tuple[bytes, int] | None = None,
    ) -> None:
        """A request of a producer was acknowledged that was first sent at turn `sent`. `partition`
        is that of a batch.
        """
        for given in reversed(self.given.get(transactional_id, ())):
            if given.answered < sent:
                retried = (
                    what == "END_TXN"
                    and given.epoch == epoch + 1
                    and (producer_id, given.epoch) in self.ended_without_bump
                )
                if given.producer_id == producer_id and given.epoch > epoch and not retried:
                    sentence = (
                        f"{what} under epoch {epoch} of producer {producer_id} was acknowledged, "
                        f"and {transactional_id} was given epoch {given.epoch} before"
                    )
                    self.unfenced.append(Unfenced(sentence, partition))
                return
