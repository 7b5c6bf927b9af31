"""Images: immutable rows in dicts, so that a checkpoint shares the unchanged ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec.structs import replace

from mockbroker.core.ids import uuid_text
from mockbroker.core.views.configs import own_config_views
from mockbroker.core.views.groups import group_shards, group_views
from mockbroker.core.views.transactions import transaction_views

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.replication.partition import Partition

TopicPartition: TypeAlias = tuple[str, int]
Offsets: TypeAlias = dict[TopicPartition, int]


class PastBroker(msgspec.Struct, frozen=True, array_like=True):
    """A broker; names as in `BrokerView`."""

    node_id: int
    rack: str | None
    state: str | None
    fenced: bool | None
    registered: bool | None
    broker_epoch: int | None
    listeners: dict[str, str]


class PastTopic(msgspec.Struct, frozen=True, array_like=True):
    """A topic with the configs of its own."""

    name: str
    topic_id: str
    configs: dict[str, str]


class OpenTransaction(msgspec.Struct, frozen=True, array_like=True):
    """A transaction in a partition without its marker; the offset is None if it began before the
    journal.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int | None


class PastPartition(msgspec.Struct, frozen=True, array_like=True):
    """A partition. `lagging` are the log ends of followers that do not share the leader's log."""

    topic: str
    index: int
    leader_id: int | None = None
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    log_start_offset: int | None = None
    high_watermark: int | None = None
    log_end_offset: int | None = None
    lagging: tuple[tuple[int, int], ...] = ()
    open: tuple[OpenTransaction, ...] = ()

    @property
    def last_stable_offset(self) -> int | None:
        """The smaller one of high watermark and first open offset; None if one is unknown."""
        if self.high_watermark is None:
            return None
        firsts = [each.first_offset for each in self.open]
        if None in firsts:
            return None
        return min([self.high_watermark, *(first for first in firsts if first is not None)])


class PastMember(msgspec.Struct, frozen=True, array_like=True):
    """A member of a group; `assigned` is None until an answer has it."""

    member_id: str
    client_id: str | None
    host: str | None
    instance_id: str | None
    generation: int
    assigned: dict[str, tuple[int, ...]] | None


class PastGroup(msgspec.Struct, frozen=True, array_like=True):
    """A group with its members by id; None if those from before the journal are unknown."""

    group: str
    type: str | None
    state: str | None
    coordinator: int | None
    generation: int | None
    protocol: str | None
    members: dict[str, PastMember] | None


class PastTransaction(msgspec.Struct, frozen=True, array_like=True):
    """A transactional id; names as in `TransactionView`."""

    transactional_id: str
    state: str | None
    coordinator: int | None
    producer_id: int | None
    producer_epoch: int | None
    timeout_ms: int | None
    start_ms: int | None


class CapturedImage(msgspec.Struct, frozen=True, array_like=True):
    """An image as lists, for a file. `offsets` are (group, topic, partition, offset), `configs`
    those of other resources than topics: (type, name, configs).
    """

    controller_id: int
    brokers: list[PastBroker]
    topics: list[PastTopic]
    partitions: list[PastPartition]
    groups: list[PastGroup]
    offsets: list[tuple[str, str, int, int]]
    transactions: list[PastTransaction]
    cut: list[tuple[int, int]]
    delays: list[tuple[int, int, int]]
    configs: list[tuple[str, str, dict[str, str]]]


_DICTS = (
    "brokers",
    "topics",
    "configs",
    "partitions",
    "groups",
    "unloaded",
    "transactions",
    "delays",
)


class PastCluster:
    """The state of a cluster at one entry. `is_complete`: it had an image to begin with."""

    def __init__(self) -> None:
        self.at_ms = 0
        self.real_ns = 0
        self.is_complete = False
        self.controller_id: int | None = None
        self.brokers: dict[int, PastBroker] = {}
        self.topics: dict[str, PastTopic] = {}
        # The configs of brokers, groups and client metrics subscriptions: (type, name) -> configs.
        self.configs: dict[tuple[str, str], dict[str, str]] = {}
        self.partitions: dict[TopicPartition, PastPartition] = {}
        self.groups: dict[str, PastGroup] = {}
        self.unloaded: dict[str, PastGroup] = {}  # groups that a coordinator has given up
        self.offsets: dict[str, Offsets] = {}  # by group
        # Committed offsets of open transactions: producer id -> (group, topic, partition) -> offset
        self.pending: dict[int, dict[tuple[str, str, int], int]] = {}
        self.transactions: dict[str, PastTransaction] = {}
        self.cut: frozenset[tuple[int, int]] = frozenset()
        self.delays: dict[tuple[int, int], int] = {}

    def set_configs(
        self, resource_type: str, name: str, values: Iterable[tuple[str, str | None]]
    ) -> None:
        """Set own configs of a resource, or delete those whose value is None. An unknown topic has
        been deleted.
        """
        if resource_type == "topic":
            topic = self.topics.get(name)
            if topic is not None:
                self.topics[name] = replace(topic, configs=_changed(topic.configs, values))
            return
        configs = _changed(self.configs.pop((resource_type, name), {}), values)
        if configs:
            self.configs[resource_type, name] = configs

    def copy(self) -> PastCluster:
        """An image that changes on its own; rows are shared."""
        made = PastCluster()
        made.__dict__.update(self.__dict__)
        for name in _DICTS:
            setattr(made, name, dict(getattr(self, name)))
        made.offsets = {group: dict(offsets) for group, offsets in self.offsets.items()}
        made.pending = {producer: dict(found) for producer, found in self.pending.items()}
        return made

    @classmethod
    def of(cls, captured: CapturedImage) -> PastCluster:
        """The image that was captured."""
        made = cls()
        made.is_complete = True
        made.controller_id = captured.controller_id
        made.brokers = {each.node_id: each for each in captured.brokers}
        made.topics = {each.name: each for each in captured.topics}
        made.configs = {(kind, name): configs for kind, name, configs in captured.configs}
        made.partitions = {(each.topic, each.index): each for each in captured.partitions}
        made.groups = {each.group: each for each in captured.groups}
        for group, topic, partition, offset in captured.offsets:
            made.offsets.setdefault(group, {})[topic, partition] = offset
        made.transactions = {each.transactional_id: each for each in captured.transactions}
        made.cut = frozenset(captured.cut)
        made.delays = {(sender, receiver): by_ms for sender, receiver, by_ms in captured.delays}
        return made


def _changed(
    configs: Mapping[str, str], values: Iterable[tuple[str, str | None]]
) -> dict[str, str]:
    made: dict[str, str | None] = {**configs, **dict(values)}
    return {name: value for name, value in made.items() if value is not None}


def capture(cluster: Cluster) -> CapturedImage:
    """The present image of a cluster. Called in its thread."""
    network = cluster.services.network
    nodes = list(cluster.processes)
    links = [(a, b) for a in nodes for b in nodes if a != b]
    return CapturedImage(
        controller_id=cluster.controller_id,
        brokers=[
            PastBroker(
                broker.node_id,
                broker.rack,
                broker.state,
                broker.fenced,
                broker.node_id in cluster.brokers,
                broker.epoch,
                {name: f"{at.host}:{at.port}" for name, at in broker.endpoints.items()},
            )
            for broker in cluster.processes.values()
        ],
        topics=[
            PastTopic(topic.name, uuid_text(topic.topic_id), topic.configs.overrides)
            for topic in cluster.topics.values()
        ],
        partitions=[
            _partition(each) for topic in cluster.topics.values() for each in topic.partitions
        ],
        groups=list(_groups(cluster)),
        offsets=[
            (group, topic, index, value.offset)
            for shard in group_shards(cluster)
            for group, topics in shard.offsets.committed.items()
            for topic, partitions in topics.items()
            for index, value in partitions.items()
        ],
        transactions=[
            PastTransaction(
                view.transactional_id,
                view.state,
                view.coordinator,
                view.producer_id,
                view.producer_epoch,
                view.timeout_ms,
                view.start_ms,
            )
            for view in transaction_views(cluster)
        ],
        cut=sorted(network.cut_links),
        delays=[(a, b, by_ms) for a, b in links if (by_ms := network.delay_ms(a, b))],
        configs=[msgspec.structs.astuple(view) for view in own_config_views(cluster)],
    )


def _partition(partition: Partition) -> PastPartition:
    log = partition.log
    return PastPartition(
        topic=partition.topic.name,
        index=partition.index,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        isr=tuple(partition.isr),
        replicas=tuple(partition.replicas),
        log_start_offset=partition.log_start_offset,
        high_watermark=partition.high_watermark,
        log_end_offset=partition.log_end_offset,
        lagging=tuple(
            (node_id, state.fetched_offset) for node_id, state in partition.followers.items()
        ),
        open=tuple(
            OpenTransaction(producer_id, entry.epoch, entry.transaction_start)
            for producer_id, entry in log.producers.entries.items()
            if entry.transaction_start >= 0
        ),
    )


def _groups(cluster: Cluster) -> Iterable[PastGroup]:
    for view in group_views(cluster):
        yield PastGroup(
            view.group,
            view.type,
            view.state,
            view.coordinator,
            view.generation,
            view.protocol,
            {
                member.member_id: PastMember(
                    member.member_id,
                    member.client_id,
                    member.host,
                    member.instance_id,
                    view.generation,
                    _frozen(member.assigned),
                )
                for member in view.members
            },
        )


def _frozen(assigned: Mapping[str, list[int]] | None) -> dict[str, tuple[int, ...]] | None:
    if assigned is None:
        return None
    return {topic: tuple(partitions) for topic, partitions in assigned.items()}
