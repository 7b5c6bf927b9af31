"""What the clients of a simulation did and were told: the witness that the laws hear.

Everything is noted as it happens, in the order of the cluster's time. What a client was *told* (an
acknowledgement, an answer) counts; what it merely sent may or may not have happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

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
    request may be carried out much later.
    """

    __slots__ = ("acked", "doubtful", "group", "offset", "partition", "sent", "topic", "voided")

    def __init__(self, group: str, topic: str, partition: int, offset: int, sent: int) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.sent = sent
        self.acked = -1
        self.doubtful = False
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
        # Who leads, as metadata said: by topic id, partition and leader epoch.
        self.leaders: dict[tuple[bytes, int, int], set[int]] = {}
        self.counts: Counter[str] = Counter()
        self._turns = 0

    def turn(self) -> int:
        """A number that is larger than all before."""
        self._turns += 1
        return self._turns

    def leader_told(self, topic_id: bytes, partition: int, epoch: int, leader_id: int) -> None:
        """Metadata named a leader. Answers without topic ids or epochs, of old versions, and those
        that name none, are no witness.
        """
        if leader_id >= 0 and epoch >= 0 and any(topic_id):
            self.leaders.setdefault((topic_id, partition, epoch), set()).add(leader_id)
