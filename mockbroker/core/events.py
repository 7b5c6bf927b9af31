"""The events of a cluster: frozen structs, emitted in order.

`Runtime.on_event` is a list of callables; each gets all events. Times are the cluster's, in ms
since the epoch. This module has the only declaration of an event: the journal shows all its fields,
and the pipeline writes it to the table `cluster` unless it has its own table.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import msgspec

# The kinds of events: the name in journal filters, and its description.
KINDS: Mapping[str, str] = {
    "follower": "a follower sent a Fetch to its leader (only followers that lag)",
    "watermark": "a high watermark moved, or a log was truncated",
    "remove": "records were removed from the log of a partition",
    "marker": "a transaction marker was written to a partition",
    "producer": "a partition forgot idempotent or transactional producers",
    "topics": "topics were created or deleted",
    "configs": "configs of a topic, brokers, a group or client metrics were set or deleted",
    "commit": "a coordinator wrote a committed offset of a group",
    "offset_removed": "a group's committed offset expired or was deleted",
    "group": "a group went from one state to another",
    "transaction": "a transactional id went from one state to another",
    "share": "records of a share group were acquired, acknowledged, released or archived",
    "share_start": "the start offset of a share partition was set, or moved",
    "share_session": "a share session was opened or closed",
    "task": "a member of a streams group got a task, must give one up, or has none of it any more",
    "status": "a member of a streams group was sent a status",
    "election": "a leader, an ISR, the replicas or the controller changed",
    "partition": "partitions of a topic went from one state to another",
    "replica": "replicas that a broker has of a topic went from one state to another",
    "broker": "a broker's process, registration, log directories or links changed",
    "unanswered": "a request gets no response, as from Kafka; its client waits for its timeout",
}

# The reasons of `RecordsRemoved` from the start of a log, and of records that a new leader lacks.
START_REMOVALS = ("retention", "delete_records")
TRUNCATION, UNCLEAN_ELECTION, LOG_DIR_FAILED = "truncation", "unclean_election", "log_dir_failed"
LOSSES = (TRUNCATION, UNCLEAN_ELECTION, LOG_DIR_FAILED)


class Event(msgspec.Struct, frozen=True, tag=True):
    """An event of the cluster, at `at_ms`.

    A subclass sets `kind`, one of `KINDS`; otherwise its declaration raises TypeError. In a file
    the name of the class is the tag of the event.
    """

    kind: ClassVar[str]
    at_ms: int

    def __init_subclass__(cls) -> None:
        if vars(cls).get("kind") not in KINDS:
            raise TypeError(f"{cls.__name__} does not set its kind, one of {', '.join(KINDS)}")


class BrokerChanged(Event, frozen=True, gc=False):
    """A broker is now "running", "paused", "stopped", "shutting down", "unreachable", "fenced",
    "unfenced" or "unregistered".
    """

    kind: ClassVar[str] = "broker"
    node_id: int
    change: str
    broker_epoch: int


class RequestUnanswered(Event, frozen=True):
    """A request gets no response, because Kafka's broker would fail without one; `reason` is why.
    Its connection stays open and serves no further requests.
    """

    kind: ClassVar[str] = "unanswered"
    node_id: int
    connection: int
    client_id: str
    api: str
    version: int
    correlation_id: int
    reason: str


class ControllerChanged(Event, frozen=True, gc=False):
    """Another broker is the active controller; -1 for none."""

    kind: ClassVar[str] = "election"
    node_id: int
    epoch: int
    former_node_id: int


class LeaderChanged(Event, frozen=True):
    """A partition got a leader, lost it (-1), or kept it with a new epoch.

    `reason` says why the controller changed the partition, as in `IsrChanged`: created, unfenced,
    preferred_election or unclean_election; controlled_shutdown, session_expired, power_lost,
    registered_anew, unregistered, unclean_shutdown or log_dir_failed of a broker; caught_up or
    lagging of a follower; the actions' moved, shuffled, shrunk and dropped.
    """

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
    """The ISR shrank or expanded; the high watermark is the one before."""

    kind: ClassVar[str] = "election"
    topic: str
    partition: int
    former: tuple[int, ...]
    isr: tuple[int, ...]
    high_watermark: int
    log_end_offset: int
    reason: str


class ReplicasChanged(Event, frozen=True):
    """A reassignment began, progressed or ended; `former` are the replicas before."""

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
    """The replicas of a topic on one broker went from one state to another."""

    kind: ClassVar[str] = "replica"
    topic: str
    partitions: tuple[int, ...]
    node_id: int
    former: str
    state: str


class FollowerFetched(Event, frozen=True, gc=False):
    """A follower with its own log (see `replication`) sent a Fetch from `offset` to its leader,
    with the configs `replica.fetch.*`.
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
    """One replica's high watermark moved. Emitted only for replicas that share no log, and if an
    action or a rule, the `cause`, has set it.
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
    """A replica truncated its log to `offset`. `cause` is the rule or action that caused it
    directly, if any.
    """

    kind: ClassVar[str] = "watermark"
    topic: str
    partition: int
    node_id: int
    former_end_offset: int
    offset: int
    cause: str = ""


class RecordsRemoved(Event, frozen=True, gc=False):
    """Records were removed from the leader's log, from `first_offset` to `last_offset`.

    `reason` is retention, compaction, delete_records or topic_deleted; of records that a new leader
    lacks it is log_dir_failed if that was the reason of the election, unclean_election if it was
    unclean, or else truncation. `cause` is the rule or action that caused it directly, if any. If
    not all records in between were removed, `ranges` has the removed ones: pairs of first and last
    offsets, as native 64-bit integers.
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
    """A transaction marker was appended to the leader's log of a partition."""

    kind: ClassVar[str] = "marker"
    topic: str
    topic_id: str
    partition: int
    leader_epoch: int
    offset: int
    producer_id: int
    producer_epoch: int
    committed: bool


class ProducersExpired(Event, frozen=True):
    """The leader of a partition forgot producers that had written nothing there for
    `producer.id.expiration.ms`. The next append of a producer or DescribeProducers finds that out.
    The partition then takes their next batch at any sequence. A retry of a batch that is in the log
    is then there twice, as in Kafka (`ProducerStateManager`).
    """

    kind: ClassVar[str] = "producer"
    topic: str
    topic_id: str
    partition: int
    node_id: int
    producer_ids: tuple[int, ...]


class ChangedTopic(msgspec.Struct, frozen=True):
    """A created or deleted topic: its name, its id in Kafka's text form, the replicas of each
    partition, and its own configs.
    """

    topic: str
    topic_id: str
    assignment: tuple[tuple[int, ...], ...]
    configs: Mapping[str, str] = {}


class TopicsChanged(Event, frozen=True):
    """Topics were created or deleted by one request or action.

    A topic that was deleted and created again is in both, with two ids. The event precedes all
    other events of the created topics.
    """

    kind: ClassVar[str] = "topics"
    created: tuple[ChangedTopic, ...]
    deleted: tuple[ChangedTopic, ...]


class ChangedConfig(msgspec.Struct, frozen=True):
    """A config that was set or deleted: its value before and its new one, null for the default.
    `[hidden]` stands for the value of a password, and of a broker config that no table has.
    """

    name: str
    former: str | None
    value: str | None


class ConfigsChanged(Event, frozen=True):
    """Configs of one resource were set or deleted by a request, an action or a restore.

    `resource_type` is topic, broker, group or client_metrics; a broker with an empty
    `resource_name` stands for all brokers. `configs` have the former and the new `value` of each
    changed config. The configs of a new topic are in `TopicsChanged`.
    """

    kind: ClassVar[str] = "configs"
    resource_type: str
    resource_name: str
    configs: tuple[ChangedConfig, ...]


class PreferredElectionFailed(Event, frozen=True, gc=False):
    """The preferred leader was not elected; `leader_id` is the current leader."""

    kind: ClassVar[str] = "election"
    topic: str
    partition: int
    preferred: int
    leader_id: int


class LogDirFailed(Event, frozen=True, gc=False):
    """A log directory of a broker failed."""

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
    both_ways: bool


class TransactionMoved(Event, frozen=True, gc=False):
    """A transactional id went from one state to another; names as in DescribeTransactions."""

    kind: ClassVar[str] = "transaction"
    node_id: int
    transactional_id: str
    former: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int


class GroupMoved(Event, frozen=True, gc=False):
    """A group went from one state to another at the coordinator `node_id`; names as in
    DescribeGroups.

    `protocol` is the group's type: classic, consumer (KIP-848), share (KIP-932) or streams
    (KIP-1071). `generation` is the generation of a classic group or the epoch of another one. Only
    classic groups have a `reason`.
    """

    kind: ClassVar[str] = "group"
    node_id: int
    group: str
    former: str
    state: str
    generation: int
    members: int
    reason: str
    protocol: str = "classic"


class GroupLoaded(Event, frozen=True, gc=False):
    """The coordinator `node_id` loaded a group from its partition; names as in `GroupMoved`."""

    kind: ClassVar[str] = "group"
    node_id: int
    group: str
    state: str
    generation: int
    members: int
    protocol: str


class OffsetCommitted(Event, frozen=True, gc=False):
    """A group coordinator wrote a committed offset, for request `request_seq` of the journal.

    A `transactional` offset takes effect when its transaction is committed, others take effect
    before they are replicated.
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


class ShareRecordsMoved(Event, frozen=True, gc=False):
    """Records of a share group, from `first_offset` to `last_offset`, had one event at the leader
    `node_id`, and are in `state` now.

    `change` is one of acquired, accepted, released, rejected, gap, renewed, session_ended,
    lock_expired, removed, aborted; of actions: archived, counted, handed_out. A change that is
    written first is emitted when it is written. If its write takes time, `writing` precedes it,
    with the new state; `rolled_back` follows a write that failed. `reason` says why records are
    archived: rejected, gap, delivery_limit, log_start, compaction, transaction_aborted; empty if an
    action archives them. `delivery_limit` is that of the group. `cause` is the rule or action that
    caused it directly, if any.
    """

    kind: ClassVar[str] = "share"
    node_id: int
    group: str
    member: str
    topic: str
    topic_id: str
    partition: int
    state_epoch: int
    change: str
    first_offset: int
    last_offset: int
    state: str
    delivery_count: int
    delivery_limit: int
    reason: str
    cause: str


class ShareStartMoved(Event, frozen=True, gc=False):
    """The start offset of a share partition is `offset` now.

    `change` is one of `initialized` and `deleted` (its state, at the share coordinator `node_id`),
    `loaded` (the leader `node_id` has read the state), `reset` (the state has no offset, and
    `share.auto.offset.reset` gives it) and `moved`. `reason` says why it moved: `final` (the
    records before it are), `log_start`, or `acquired` (there was no record before the first one
    that was acquired). Unknown offsets are -1.
    """

    kind: ClassVar[str] = "share_start"
    node_id: int
    group: str
    topic: str
    topic_id: str
    partition: int
    state_epoch: int
    change: str
    former_offset: int
    offset: int
    reason: str
    cause: str


class ShareSessionChanged(Event, frozen=True, gc=False):
    """A member of a share group `opened` or `closed` its share session with the broker `node_id`.

    `reason` says why it was closed: final_epoch, connection, replaced, broker_stopped.
    """

    kind: ClassVar[str] = "share_session"
    node_id: int
    group: str
    member: str
    change: str
    reason: str


class StreamsTasksMoved(Event, frozen=True):
    """Tasks of one subtopology were `assigned` to a member, are `revoking` (the member must give
    them up), or are `revoked` (no longer the member's), at the coordinator `node_id`.

    `role` is active, standby or warmup; `tasks` are the partitions; `member_epoch` is the member's.
    """

    kind: ClassVar[str] = "task"
    node_id: int
    group: str
    member: str
    member_epoch: int
    change: str
    role: str
    subtopology: str
    tasks: tuple[int, ...]


class StreamsStatusSent(Event, frozen=True, gc=False):
    """An answer of the coordinator `node_id` to a heartbeat has a status."""

    kind: ClassVar[str] = "status"
    node_id: int
    group: str
    member: str
    status: str
    detail: str


if TYPE_CHECKING:
    AnyEvent: TypeAlias = Event
else:
    AnyEvent = reduce(or_, Event.__subclasses__())  # the union that msgspec decodes
