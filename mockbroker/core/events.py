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


class WatermarkMoved(msgspec.Struct, frozen=True, gc=False):
    """One replica's high watermark moved; told in gear two only (see `replication`)."""

    at_ms: int
    topic: str
    partition: int
    node_id: int
    former: int
    high_watermark: int
    log_end_offset: int


class LogTruncated(msgspec.Struct, frozen=True, gc=False):
    """A replica cut its log back to `offset`, which it had beyond."""

    at_ms: int
    topic: str
    partition: int
    node_id: int
    former_end_offset: int
    offset: int


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

    `generation` is that of a classic group, or the epoch of one of the new protocol. A `reason` is
    known of classic groups only.
    """

    at_ms: int
    group: str
    former: str
    state: str
    generation: int
    members: int
    reason: str


Event: TypeAlias = (
    BrokerChanged
    | ControllerChanged
    | LeaderChanged
    | IsrChanged
    | ReplicasChanged
    | TopicsChanged
    | PartitionsMoved
    | ReplicasMoved
    | WatermarkMoved
    | LogTruncated
    | PreferredElectionFailed
    | LogDirFailed
    | NetworkChanged
    | TransactionMoved
    | GroupMoved
)
