"""What happens to a cluster, as events: frozen structs, emitted in the order of what happened.

`Runtime.on_event` is a list of callables; each gets every event. Nothing is recorded here: a
journal, a test or a rule keeps what it wants. Times are the cluster's, in ms since the epoch.

An event is declared here alone: the journal shows every field of it, and the pipeline writes it
into the table `cluster` unless it has a table of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import msgspec

# The kinds of events: the name that journal filters use, and what an event of the kind is.
KINDS: Mapping[str, str] = {
    "follower": "a follower asked its leader for records (only where followers lag)",
    "watermark": "a high watermark moved, or a log was cut",
    "remove": "records left the log of a partition",
    "marker": "a marker that ends a transaction was written into a partition",
    "topics": "topics were created or deleted",
    "commit": "a coordinator took an offset that a group committed",
    "offset_removed": "a group's committed offset is gone: it expired or was deleted",
    "group": "a group went from one state to another",
    "transaction": "a transactional id went from one state to another",
    "election": "a leader, an ISR, the replicas or the controller changed",
    "partition": "partitions of a topic went from one state to another",
    "replica": "replicas that a broker has of a topic went from one state to another",
    "broker": "a step in a broker's life, its disks or its network",
}


class Event(msgspec.Struct, frozen=True, tag=True):
    """Anything that happened to the cluster, at `at_ms`.

    A subclass sets `kind`, one of `KINDS`, or its declaration raises TypeError. Its name tells it
    from the others in a file.
    """

    kind: ClassVar[str]
    at_ms: int

    def __init_subclass__(cls) -> None:
        if vars(cls).get("kind") not in KINDS:
            raise TypeError(f"{cls.__name__} does not set its kind, one of {', '.join(KINDS)}")


class BrokerChanged(Event, frozen=True, gc=False):
    """A step in a broker's life: "running", "paused", "stopped", "shutting down", "unreachable",
    "fenced", "unfenced" or "unregistered".
    """

    kind: ClassVar[str] = "broker"
    node_id: int
    change: str
    broker_epoch: int


class ControllerChanged(Event, frozen=True, gc=False):
    """Another broker is the active controller; -1 when none is."""

    kind: ClassVar[str] = "election"
    node_id: int
    epoch: int


class LeaderChanged(Event, frozen=True):
    """A partition got a leader, lost it (-1), or kept it under a new epoch."""

    kind: ClassVar[str] = "election"
    topic: str
    partition: int
    leader_id: int
    leader_epoch: int
    former_leader_id: int
    isr: tuple[int, ...]
    unclean: bool
    reason: str


class IsrChanged(Event, frozen=True):
    """The ISR shrank or grew; the high watermark is that of just before."""

    kind: ClassVar[str] = "election"
    topic: str
    partition: int
    former: tuple[int, ...]
    isr: tuple[int, ...]
    high_watermark: int
    log_end_offset: int
    reason: str


class ReplicasChanged(Event, frozen=True):
    """A reassignment began, went on or ended; `former` are the replicas of before."""

    kind: ClassVar[str] = "election"
    topic: str
    partition: int
    former: tuple[int, ...]
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class PartitionsMoved(Event, frozen=True):
    """Partitions of a topic went from one state to another (see `replication.states`)."""

    kind: ClassVar[str] = "partition"
    topic: str
    partitions: tuple[int, ...]
    former: str
    state: str


class ReplicasMoved(Event, frozen=True):
    """The replicas that one broker has of a topic's partitions went from one state to another."""

    kind: ClassVar[str] = "replica"
    topic: str
    partitions: tuple[int, ...]
    node_id: int
    former: str
    state: str


class FollowerFetched(Event, frozen=True, gc=False):
    """A follower that has a log of its own (see `replication`) asked its leader for what comes at
    `offset`, as the configs `replica.fetch.*` say.
    """

    kind: ClassVar[str] = "follower"
    topic: str
    partition: int
    node_id: int
    leader_id: int
    current_leader_epoch: int
    offset: int
    last_fetched_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partition_max_bytes: int


class WatermarkMoved(Event, frozen=True, gc=False):
    """One replica's high watermark moved. Only of replicas that share no log, and of one that an
    action or a rule, the `cause`, has set.
    """

    kind: ClassVar[str] = "watermark"
    topic: str
    partition: int
    node_id: int
    former: int
    high_watermark: int
    log_end_offset: int
    cause: str = ""


class LogTruncated(Event, frozen=True, gc=False):
    """A replica cut its log back to `offset`, which it had beyond."""

    kind: ClassVar[str] = "watermark"
    topic: str
    partition: int
    node_id: int
    former_end_offset: int
    offset: int


class RecordsRemoved(Event, frozen=True, gc=False):
    """Records left the log of a partition's leader, from `first_offset` to `last_offset`.

    `reason` is one of retention, compaction, delete_records, topic_deleted, truncation,
    unclean_election, log_dir_failed; `cause` the rule or action that led to it at once, if any did.
    Where not all in between went, `ranges` holds what did: pairs of first and last offsets, as
    64-bit integers of this machine.
    """

    kind: ClassVar[str] = "remove"
    topic: str
    topic_id: str
    partition: int
    first_offset: int
    last_offset: int
    reason: str
    cause: str
    ranges: bytes = b""


class MarkerWritten(Event, frozen=True, gc=False):
    """A marker that ends a transaction in one partition was appended to its leader's log."""

    kind: ClassVar[str] = "marker"
    topic: str
    topic_id: str
    partition: int
    leader_epoch: int
    offset: int
    producer_id: int
    producer_epoch: int
    committed: bool


class ChangedTopic(msgspec.Struct, frozen=True):
    """A topic that came or went: its name, its id as Kafka writes ids, and the replicas of each
    partition, in the order of the partitions.
    """

    topic: str
    topic_id: str
    assignment: tuple[tuple[int, ...], ...]


class TopicsChanged(Event, frozen=True):
    """Topics were created or deleted; what one request or action did is one event.

    A topic that was deleted and created again is in both, under two ids. The event comes before
    all others that concern the topics it creates.
    """

    kind: ClassVar[str] = "topics"
    created: tuple[ChangedTopic, ...]
    deleted: tuple[ChangedTopic, ...]


class PreferredElectionFailed(Event, frozen=True, gc=False):
    """The preferred leader was wanted and could not be had; `leader_id` is who leads instead."""

    kind: ClassVar[str] = "election"
    topic: str
    partition: int
    preferred: int
    leader_id: int


class LogDirFailed(Event, frozen=True, gc=False):
    """A broker lost one of its log directories."""

    kind: ClassVar[str] = "broker"
    node_id: int
    path: str


class NetworkChanged(Event, frozen=True):
    """Links between brokers were cut, delayed or healed."""

    kind: ClassVar[str] = "broker"
    change: str
    from_nodes: tuple[int, ...]
    to_nodes: tuple[int, ...]
    delay_ms: int


class TransactionMoved(Event, frozen=True, gc=False):
    """A transactional id went from one state to another, by the names of DescribeTransactions."""

    kind: ClassVar[str] = "transaction"
    transactional_id: str
    former: str
    state: str
    producer_id: int
    producer_epoch: int


class GroupMoved(Event, frozen=True, gc=False):
    """A group went from one state to another, by the names of DescribeGroups.

    `protocol` is "classic" or "consumer" (KIP-848). `generation` is that of a classic group, or the
    epoch of one of the new protocol. A `reason` is known of classic groups only.
    """

    kind: ClassVar[str] = "group"
    group: str
    former: str
    state: str
    generation: int
    members: int
    reason: str
    protocol: str = "classic"


class OffsetCommitted(Event, frozen=True, gc=False):
    """A group coordinator wrote a committed offset, for request `request_seq` of the journal.

    One that is `transactional` is in force once its transaction is committed; others are at once,
    whether or not they are replicated yet.
    """

    kind: ClassVar[str] = "commit"
    node_id: int
    request_seq: int
    group: str
    topic: str
    partition: int
    offset: int
    transactional: bool


class OffsetRemoved(Event, frozen=True, gc=False):
    """A group coordinator wrote the tombstone of a committed offset.

    `reason` is one of retention, delete_offsets, group_deleted, topic_deleted.
    """

    kind: ClassVar[str] = "offset_removed"
    node_id: int
    group: str
    topic: str
    partition: int
    reason: str


if TYPE_CHECKING:
    AnyEvent: TypeAlias = Event
else:
    AnyEvent = reduce(or_, Event.__subclasses__())  # the union that msgspec decodes
