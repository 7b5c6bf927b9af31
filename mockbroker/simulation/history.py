"""What the clients of a simulation did and were told: the witness that the laws hear.

Everything is noted as it happens, in the order of the cluster's time. What a client was *told* (an
acknowledgement, an answer) counts; what it merely sent may or may not have happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

# How a transaction ended, as its producer was told.
OPEN = "open"
COMMITTING = "committing"
COMMITTED = "committed"
ABORTING = "aborting"
ABORTED = "aborted"
UNKNOWN = "unknown"


class Sent:
    """One batch that a producer sent, as often as it took.

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
    """One transaction: what was sent in it, and how it ended as far as its producer knows."""

    __slots__ = ("batches", "commits", "name", "state", "transactional_id")

    def __init__(self, name: str, transactional_id: str) -> None:
        self.name = name
        self.transactional_id = transactional_id
        self.state = OPEN
        self.batches: list[Sent] = []
        self.commits: list[Commit] = []


class Commit:
    """An offset that somebody wanted to commit. `sent` and `acked` are turns of the history; -1
    without an acknowledgement. One that was `doubtful` was sent once without an answer: that
    request may be carried out much later. In a transaction it is acknowledged with the end;
    `written` is the turn by which it was in the log already, and `dropped` says that the
    transaction was aborted. `topic_id` is the id of the topic that its client knew, empty where
    that does not matter.
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


class Found:
    """A committed offset that somebody was told of; -1 where there was none. `asked` and `told`
    are turns of the history.
    """

    __slots__ = ("asked", "at_ms", "group", "offset", "partition", "told", "topic")

    def __init__(
        self,
        group: str,
        topic: str,
        partition: int,
        offset: int,
        asked: int,
        told: int,
        at_ms: int,
    ) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.asked = asked
        self.told = told
        self.at_ms = at_ms


class Read:
    """A batch that a consumer was given: its place and checksum, and how many records of it were
    handed to the application.
    """

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


class AbortsTold(NamedTuple):
    """What a read_committed Fetch told with records between two offsets: the aborted transactions,
    as producer ids and first offsets.
    """

    client: str
    topic: str
    topic_id: bytes
    partition: int
    begin: int
    end: int
    aborted: frozenset[tuple[int, int]]


class Given(NamedTuple):
    """A producer id and epoch that somebody was given for a transactional id, and the turn."""

    producer_id: int
    epoch: int
    told: int


class Owned:
    """What a member of a group was assigned, as an answer said. A static `member` goes by its
    instance id, a dynamic one by its member id.
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
    """One request of a member of a group, and its answer, as far as laws need it.

    `sent` and `told` are turns of the history, `told` -1 without an answer. One that was `doubtful`
    was sent once without an answer: that request may be carried out much later. `generation` is the
    generation or member epoch that was sent, `generation_told` the one that was answered, -1 where
    there is none. `what` is "join", "sync", "heartbeat", "commit" or "leave".
    """

    __slots__ = (
        "assigned",
        "assignments",
        "client",
        "doubtful",
        "error",
        "generation",
        "generation_told",
        "group",
        "instance",
        "instances",
        "leads",
        "listed",
        "member",
        "member_told",
        "owned",
        "protocol",
        "sent",
        "sent_ms",
        "told",
        "told_ms",
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
        self.told = self.told_ms = -1
        self.error = 0
        self.doubtful = False
        self.leads = False  # is to send assignments
        self.member_told = ""
        self.generation_told = -1
        self.listed: tuple[str, ...] = ()  # dynamic members that a leader was told of
        self.instances: tuple[tuple[str, str], ...] = ()  # static ones: instance and member id
        self.assignments: dict[str, bytes] = {}  # what a leader sent, by member
        self.assigned: bytes | frozenset[tuple[bytes, int]] | None = None  # what it was told
        self.owned: frozenset[tuple[bytes, int]] | None = None  # what it said it has

    @property
    def succeeded(self) -> bool:
        """Whether an answer without an error has come."""
        return self.told >= 0 and not self.error


class Unfenced(NamedTuple):
    """What no broker may do for a producer, in a sentence. `partition` has the topic id and the
    index of the partition if its leader refuses the batch by its own log.
    """

    sentence: str
    partition: tuple[bytes, int] | None = None


class History:
    """All that clients did, in order. `counts` says how often what happened.

    Much can happen in a millisecond, so what has to be put in order is numbered: by `turn`.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms
        self.sent: list[Sent] = []
        self.acked: list[Sent] = []
        self.transactions: list[Transaction] = []
        self.commits: list[Commit] = []
        self.found: list[Found] = []
        self.reads: list[Read] = []
        self.owned: list[Owned] = []
        self.group_calls: list[GroupCall] = []
        self.rebalance_ms: dict[str, int] = {}  # the longest rebalance timeout in each group
        # Who leads, as metadata said: by topic id, partition and leader epoch.
        self.leaders: dict[tuple[bytes, int, int], set[int]] = {}
        self.aborts: list[AbortsTold] = []
        self.given: dict[str, list[Given]] = {}  # by transactional id
        # What was acknowledged although somebody else had been given the transactional id before
        # it was sent, what was acknowledged that nobody had added, and epochs that were given
        # twice.
        self.unfenced: list[Unfenced] = []
        # Producer ids and epochs that were given, also in a time that never was: a producer that
        # has one goes on with it after a snapshot was restored.
        self._ever_given: set[tuple[int, int]] = set()
        self._given_twice: set[tuple[int, int]] = set()
        # Batches whose sequence a leader called out of order, though their producer left no gap.
        self.disordered: list[Sent] = []
        # Answers that cannot be answers to what was asked, in a sentence each.
        self.misfits: list[str] = []
        self.counts: Counter[str] = Counter()
        self._turns = 0

    def turn(self) -> int:
        """A number that is larger than all before."""
        self._turns += 1
        return self._turns

    def sequence_refused(self, sent: Sent, leader_epoch: int) -> None:
        """Whoever led under an epoch has called a batch out of order. One that has been deposed
        and cut off lacks what its successor has taken.
        """
        told = (
            epoch
            for topic_id, partition, epoch in self.leaders
            if (topic_id, partition) == (sent.topic_id, sent.partition)
        )
        if max(told, default=-1) <= leader_epoch:
            self.disordered.append(sent)

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
        """A request of a member is about to be sent."""
        call = GroupCall(
            what, protocol, group, client, member, instance, generation, self.turn(), self.now_ms()
        )
        self.group_calls.append(call)
        return call

    def group_answer(self, call: GroupCall, error: int) -> None:
        """It was answered."""
        call.told, call.told_ms, call.error = self.turn(), self.now_ms(), int(error)

    def leader_told(self, topic_id: bytes, partition: int, epoch: int, leader_id: int) -> None:
        """Metadata named a leader. Answers without topic ids or epochs, of old versions, and those
        that name none, are no witness.
        """
        if leader_id >= 0 and epoch >= 0 and any(topic_id):
            self.leaders.setdefault((topic_id, partition, epoch), set()).add(leader_id)

    def epoch_given(self, transactional_id: str, producer_id: int, epoch: int) -> None:
        """A producer is the one with its transactional id from now on.

        No broker can tell two producers of one id and epoch apart: it takes the first batch of the
        second for a retry of the first. So nothing follows from what either was told.
        """
        given = self.given.setdefault(transactional_id, [])
        if any((each.producer_id, each.epoch) == (producer_id, epoch) for each in given):
            self.unfenced.append(
                Unfenced(
                    f"{transactional_id} was given epoch {epoch} of producer {producer_id} twice"
                )
            )
        given.append(Given(producer_id, epoch, self.turn()))
        if (producer_id, epoch) in self._ever_given:
            self._given_twice.add((producer_id, epoch))
            for sent in self.sent:
                self._void_ambiguous(sent)
        self._ever_given.add((producer_id, epoch))

    def _void_ambiguous(self, sent: Sent) -> None:
        if (sent.producer_id, sent.epoch) in self._given_twice:
            sent.voided = sent.voided or "epoch given twice"

    def batch_sent(self, sent: Sent) -> None:
        """A producer is about to send a batch for the first time."""
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
        """A request of a producer was acknowledged, which it had first sent at turn `sent`. For a
        batch, `partition` is where it was written.
        """
        for given in reversed(self.given.get(transactional_id, ())):
            if given.told < sent:
                if given.producer_id == producer_id and given.epoch > epoch:
                    sentence = (
                        f"{what} under epoch {epoch} of producer {producer_id} was acknowledged, "
                        f"and {transactional_id} was given epoch {given.epoch} before"
                    )
                    self.unfenced.append(Unfenced(sentence, partition))
                return
