"""What happened to the cluster, told to whoever watches it: frozen facts, in the order they came
about.

`Cluster.on_event` is a list of callables; each gets every event. Nothing is recorded here: a
journal, a test or a rule keeps what it wants. Times are the cluster's, in ms since the epoch.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class BrokerChanged(msgspec.Struct, frozen=True, gc=False):
    """A step in a broker's life: "running", "paused", "stopped", "shutting down", "unreachable",
    "fenced", "unfenced" or "unregistered".
    """

    at_ms: int
    node_id: int
    change: str
    broker_epoch: int


class ControllerChanged(msgspec.Struct, frozen=True, gc=False):
    """Another broker is the active controller; -1 when none is."""

    at_ms: int
    node_id: int
    epoch: int


class LeaderChanged(msgspec.Struct, frozen=True):
    """A partition got a leader, lost it (-1), or kept it under a new epoch."""

    at_ms: int
    topic: str
    partition: int
    leader_id: int
    leader_epoch: int
    former_leader_id: int
    isr: tuple[int, ...]
    unclean: bool
    reason: str


class IsrChanged(msgspec.Struct, frozen=True):
    """The ISR shrank or grew; the high watermark is that of just before."""

    at_ms: int
    topic: str
    partition: int
    former: tuple[int, ...]
    isr: tuple[int, ...]
    high_watermark: int
    log_end_offset: int
    reason: str


class ReplicasChanged(msgspec.Struct, frozen=True):
    """A reassignment began, went on or ended; `former` are the replicas of before."""

    at_ms: int
    topic: str
    partition: int
    former: tuple[int, ...]
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class TopicsChanged(msgspec.Struct, frozen=True):
    """Topics came and went; `assignment` maps the new ones' partitions ("t-0") to replicas.

    What one request or action did is told together.
    """

    at_ms: int
    created: tuple[str, ...]
    deleted: tuple[str, ...]
    assignment: dict[str, tuple[int, ...]]


class PartitionsMoved(msgspec.Struct, frozen=True):
    """Partitions of a topic went from one state to another (see `replication.states`)."""

    at_ms: int
    topic: str
    partitions: tuple[int, ...]
    former: str
    state: str


class ReplicasMoved(msgspec.Struct, frozen=True):
    """The replicas that one broker has of a topic's partitions went from one state to another."""

    at_ms: int
    topic: str
    partitions: tuple[int, ...]
    node_id: int
    former: str
    state: str


class FollowerFetched(msgspec.Struct, frozen=True, gc=False):
    """A follower that has a log of its own (see `replication`) asked its leader for what comes at
    `offset`, as the configs `replica.fetch.*` say.
    """

    at_ms: int
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


class WatermarkMoved(msgspec.Struct, frozen=True, gc=False):
    """One replica's high watermark moved; told of replicas that share no log only, and where an
    action or a rule, the `cause`, put it somewhere.
    """

    at_ms: int
    topic: str
    partition: int
    node_id: int
    former: int
    high_watermark: int
    log_end_offset: int
    cause: str = ""


class LogTruncated(msgspec.Struct, frozen=True, gc=False):
    """A replica cut its log back to `offset`, which it had beyond."""

    at_ms: int
    topic: str
    partition: int
    node_id: int
    former_end_offset: int
    offset: int


class RecordsRemoved(msgspec.Struct, frozen=True, gc=False):
    """Records left the log of a partition's leader, from `first_offset` to `last_offset`.

    `reason` is one of retention, compaction, delete_records, topic_deleted, truncation,
    unclean_election, log_dir_failed; `cause` the rule or action that led to it at once, if any did.
    Where not all in between went, `ranges` holds what did: pairs of first and last offsets, as
    64-bit integers of this machine.
    """

    at_ms: int
    topic: str
    topic_id: str
    partition: int
    first_offset: int
    last_offset: int
    reason: str
    cause: str
    ranges: bytes = b""


class MarkerWritten(msgspec.Struct, frozen=True, gc=False):
    """A marker that ends a transaction in one partition was appended to its leader's log."""

    at_ms: int
    topic: str
    topic_id: str
    partition: int
    offset: int
    producer_id: int
    producer_epoch: int
    committed: bool


class TopicChanged(msgspec.Struct, frozen=True, gc=False):
    """A topic was "created" or "deleted"; `topic_id` as Kafka writes ids."""

    at_ms: int
    topic: str
    topic_id: str
    change: str
    partition_count: int


class PreferredElectionFailed(msgspec.Struct, frozen=True, gc=False):
    """The preferred leader was wanted and could not be had; `leader_id` is who leads instead."""

    at_ms: int
    topic: str
    partition: int
    preferred: int
    leader_id: int


class LogDirFailed(msgspec.Struct, frozen=True, gc=False):
    """A broker lost one of its log directories."""

    at_ms: int
    node_id: int
    path: str


class NetworkChanged(msgspec.Struct, frozen=True):
    """Links between brokers were cut, delayed or healed."""

    at_ms: int
    change: str
    from_nodes: tuple[int, ...]
    to_nodes: tuple[int, ...]
    delay_ms: int


class TransactionMoved(msgspec.Struct, frozen=True, gc=False):
    """A transactional id went from one state to another, by the names of DescribeTransactions."""

    at_ms: int
    transactional_id: str
    former: str
    state: str
    producer_id: int
    producer_epoch: int


class GroupMoved(msgspec.Struct, frozen=True, gc=False):
    """A group went from one state to another, by the names of DescribeGroups.

    `protocol` is "classic" or "consumer" (KIP-848). `generation` is that of a classic group, or the
    epoch of one of the new protocol. A `reason` is known of classic groups only.
    """

    at_ms: int
    group: str
    former: str
    state: str
    generation: int
    members: int
    reason: str
    protocol: str = "classic"


Event: TypeAlias = (
    BrokerChanged
    | ControllerChanged
    | LeaderChanged
    | IsrChanged
    | ReplicasChanged
    | TopicsChanged
    | PartitionsMoved
    | ReplicasMoved
    | FollowerFetched
    | WatermarkMoved
    | LogTruncated
    | RecordsRemoved
    | MarkerWritten
    | TopicChanged
    | PreferredElectionFailed
    | LogDirFailed
    | NetworkChanged
    | TransactionMoved
    | GroupMoved
)
