"""Images as views: the fields of the views of a running cluster, null where they are unknown."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker.core.metadata.topic import (
    GROUP_METADATA_TOPIC,
    INTERNAL_TOPICS,
    TRANSACTION_STATE_TOPIC,
)
from mockbroker.core.views.configs import OwnConfigsView
from mockbroker.core.views.groups import lag_to
from mockbroker.pipeline.past.image import PastCluster, PastPartition

_ABSENT = PastPartition("", -1)


class PastClusterView(msgspec.Struct, frozen=True, gc=False):
    """As `ClusterView`."""

    cluster_id: str | None
    controller_id: int | None
    now_ms: int
    brokers: int
    topics: int
    partitions: int
    under_replicated: int
    offline: int


class PastBrokerView(msgspec.Struct, frozen=True, gc=False):
    """As `BrokerView`; null is unknown."""

    node_id: int
    rack: str | None
    state: str | None
    fenced: bool | None
    registered: bool | None
    controller: bool
    broker_epoch: int | None
    listeners: dict[str, str]
    leads: int
    replicas: int
    in_sync: int


class PastTopicView(msgspec.Struct, frozen=True, gc=False):
    """As `TopicView`; null is unknown."""

    name: str
    topic_id: str
    internal: bool
    partitions: int
    replication_factor: int | None
    records: int | None
    configs: dict[str, str]


class PastReplicaView(msgspec.Struct, frozen=True, gc=False):
    """As `ReplicaView`; null is unknown."""

    node_id: int
    in_sync: bool | None
    log_start_offset: int | None
    log_end_offset: int | None
    high_watermark: int | None
    shares_log: bool | None


class PastProducerView(msgspec.Struct, frozen=True, gc=False):
    """A producer with an open transaction in a partition; its start is null if it is older than the
    journal.
    """

    producer_id: int
    epoch: int
    transaction_start: int | None


class PastPartitionView(msgspec.Struct, frozen=True, gc=False):
    """As `PartitionView`; null is unknown."""

    topic: str
    partition: int
    leader_id: int | None
    leader_epoch: int | None
    isr: list[int] | None
    log_start_offset: int | None
    high_watermark: int | None
    last_stable_offset: int | None
    log_end_offset: int | None
    replicas: list[PastReplicaView]
    producers: list[PastProducerView]


class PastMemberView(msgspec.Struct, frozen=True, gc=False):
    """As `MemberView`; null is unknown. Of a streams group `assigned` has tasks by subtopology."""

    member_id: str
    client_id: str | None
    host: str | None
    instance_id: str | None
    connected: bool | None
    assigned: dict[str, list[int]] | None


class PastGroupView(msgspec.Struct, frozen=True, gc=False):
    """As `GroupView`; null is unknown."""

    group: str
    type: str | None
    state: str | None
    coordinator: int | None
    generation: int | None
    protocol: str | None
    members: list[PastMemberView] | None


class PastLagView(msgspec.Struct, frozen=True, gc=False):
    """As `LagView`; null is unknown."""

    group: str
    topic: str
    partition: int
    committed: int
    last_stable_offset: int | None
    high_watermark: int | None
    log_end_offset: int | None
    lag: int | None
    lag_read_committed: int | None
    pending: bool
    kind: str


class PastTransactionView(msgspec.Struct, frozen=True, gc=False):
    """As `TransactionView`; null is unknown. `partitions` are those with records."""

    transactional_id: str
    state: str | None
    coordinator: int | None
    producer_id: int | None
    producer_epoch: int | None
    timeout_ms: int | None
    start_ms: int | None
    partitions: list[tuple[str, int]]


class PastOpenTransactionView(msgspec.Struct, frozen=True, gc=False):
    """As `OpenTransactionView`; it hangs if no known transactional id has the producer's
    transaction.
    """

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    first_offset: int | None
    hangs: bool


class PastLinkView(
    msgspec.Struct, frozen=True, gc=False, rename={"sender": "from", "receiver": "to"}
):
    """As `LinkView`, without rules."""

    sender: int
    receiver: int
    up: bool
    delay_ms: int


def cluster_view(image: PastCluster, cluster_id: str | None) -> PastClusterView:
    partitions = image.partitions.values()
    return PastClusterView(
        cluster_id=cluster_id,
        controller_id=image.controller_id,
        now_ms=image.at_ms,
        brokers=sum(each.registered is not False for each in image.brokers.values()),
        topics=len(image.topics),
        partitions=len(partitions),
        under_replicated=sum(len(each.isr or ()) < len(each.replicas or ()) for each in partitions),
        offline=sum(each.leader_id is not None and each.leader_id < 0 for each in partitions),
    )


def broker_views(image: PastCluster) -> list[PastBrokerView]:
    """All known brokers, by id."""
    counts = {node_id: [0, 0, 0] for node_id in image.brokers}
    for partition in image.partitions.values():
        if partition.leader_id in counts:
            counts[partition.leader_id][0] += 1
        for node_id in partition.replicas or ():
            if node_id in counts:
                counts[node_id][1] += 1
                counts[node_id][2] += node_id in (partition.isr or ())
    return [
        PastBrokerView(
            node_id=node_id,
            rack=broker.rack,
            state=broker.state,
            fenced=broker.fenced,
            registered=broker.registered,
            controller=image.controller_id == node_id,
            broker_epoch=broker.broker_epoch,
            listeners=broker.listeners,
            leads=counts[node_id][0],
            replicas=counts[node_id][1],
            in_sync=counts[node_id][2],
        )
        for node_id, broker in sorted(image.brokers.items())
    ]


def own_config_views(image: PastCluster) -> list[OwnConfigsView]:
    """All resources but topics that are known to have configs of their own."""
    return [
        OwnConfigsView(*resource, configs) for resource, configs in sorted(image.configs.items())
    ]


def topic_views(image: PastCluster) -> list[PastTopicView]:
    """All topics, by name."""
    by_topic: dict[str, list[PastPartition]] = {name: [] for name in image.topics}
    for partition in image.partitions.values():
        if partition.topic in by_topic:
            by_topic[partition.topic].append(partition)
    found = []
    for name in sorted(by_topic):
        partitions = by_topic[name]
        first = partitions[0].replicas if partitions else None
        found.append(
            PastTopicView(
                name=name,
                topic_id=image.topics[name].topic_id,
                internal=name in INTERNAL_TOPICS,
                partitions=len(partitions),
                replication_factor=None if first is None else len(first),
                records=_sum(partitions),
                configs=image.topics[name].configs,
            )
        )
    return found


def _sum(partitions: list[PastPartition]) -> int | None:
    total = 0
    for each in partitions:
        if each.log_end_offset is None or each.log_start_offset is None:
            return None
        total += each.log_end_offset - each.log_start_offset
    return total


def partition_views(image: PastCluster, topic: str | None = None) -> list[PastPartitionView]:
    """All partitions, or those of one topic."""
    return [
        _partition(each)
        for key, each in sorted(image.partitions.items())
        if topic is None or key[0] == topic
    ]


def _partition(partition: PastPartition) -> PastPartitionView:
    isr, mark, stable = partition.isr, partition.high_watermark, partition.high_watermark
    if partition.open:
        stable = partition.last_stable_offset
    return PastPartitionView(
        partition.topic,
        partition.index,
        partition.leader_id,
        partition.leader_epoch,
        None if isr is None else list(isr),
        partition.log_start_offset,
        mark,
        stable,
        partition.log_end_offset,
        [_replica(partition, node_id) for node_id in partition.replicas or ()],
        [
            PastProducerView(each.producer_id, each.producer_epoch, each.first_offset)
            for each in partition.open
        ],
    )


def _replica(partition: PastPartition, node_id: int) -> PastReplicaView:
    isr, mark, end = partition.isr, partition.high_watermark, partition.log_end_offset
    in_sync = None if isr is None else node_id in isr
    if not in_sync:
        end = None  # its own, which its next fetch has
    shares = None
    for lagging, offset in partition.lagging:
        if lagging == node_id:
            shares, end = False, offset
    own = mark if mark is None or end is None or mark <= end else end
    own = None if end is None else own
    return PastReplicaView(node_id, in_sync, partition.log_start_offset, end, own, shares)


def group_views(image: PastCluster, group: str | None = None) -> list[PastGroupView]:
    """All groups, or one, by id."""
    coordinator = _coordinators(image, GROUP_METADATA_TOPIC)
    return [
        PastGroupView(
            group=name,
            type=each.type,
            state=each.state,
            coordinator=coordinator(name),
            generation=each.generation,
            protocol=each.protocol,
            members=None
            if each.members is None
            else [
                PastMemberView(
                    member.member_id,
                    member.client_id,
                    member.host,
                    member.instance_id,
                    None,
                    None
                    if member.assigned is None
                    else {topic: list(indexes) for topic, indexes in member.assigned.items()},
                )
                for member in each.members.values()
            ],
        )
        for name, each in sorted(image.groups.items())
        if group is None or name == group
    ]


def lag_views(image: PastCluster, group: str | None = None) -> list[PastLagView]:
    """The lag of all groups, or of one, by partition."""
    pending = {key for found in image.pending.values() for key in found}
    views = []
    for name, offsets in sorted(image.offsets.items()):
        if group is not None and name != group:
            continue
        for (topic, index), committed in sorted(offsets.items()):
            partition = image.partitions.get((topic, index), _ABSENT)
            mark, stable = partition.high_watermark, partition.last_stable_offset
            views.append(
                PastLagView(
                    group=name,
                    topic=topic,
                    partition=index,
                    committed=committed,
                    last_stable_offset=stable,
                    high_watermark=mark,
                    log_end_offset=partition.log_end_offset,
                    lag=None if mark is None else lag_to(mark, committed),
                    lag_read_committed=None if stable is None else lag_to(stable, committed),
                    pending=(name, topic, index) in pending,
                    kind="committed",
                )
            )
    return views


def transaction_views(image: PastCluster) -> list[PastTransactionView]:
    """All transactional ids, by id."""
    by_producer: dict[int, list[tuple[str, int]]] = {}
    for key, partition in sorted(image.partitions.items()):
        for each in partition.open:
            by_producer.setdefault(each.producer_id, []).append(key)
    coordinator = _coordinators(image, TRANSACTION_STATE_TOPIC)
    return [
        PastTransactionView(
            transactional_id=name,
            state=each.state,
            coordinator=coordinator(name),
            producer_id=each.producer_id,
            producer_epoch=each.producer_epoch,
            timeout_ms=each.timeout_ms,
            start_ms=each.start_ms,
            partitions=by_producer.get(-1 if each.producer_id is None else each.producer_id, []),
        )
        for name, each in sorted(image.transactions.items())
    ]


def open_transaction_views(image: PastCluster) -> list[PastOpenTransactionView]:
    """All open transactions, by partition."""
    known = {
        each.producer_id
        for each in image.transactions.values()
        if each.state in ("Ongoing", "PrepareCommit", "PrepareAbort", None)
    }
    return [
        PastOpenTransactionView(
            topic=topic,
            partition=index,
            producer_id=each.producer_id,
            producer_epoch=each.producer_epoch,
            first_offset=each.first_offset,
            hangs=each.producer_id not in known,
        )
        for (topic, index), partition in sorted(image.partitions.items())
        for each in partition.open
    ]


def _coordinators(image: PastCluster, topic: str) -> Callable[[str], int | None]:
    """The coordinator of a group or transactional id: the leader of the partition that has it."""
    leaders = [each.leader_id for key, each in sorted(image.partitions.items()) if key[0] == topic]

    def coordinator(key: str) -> int | None:
        return leaders[coordinator_partition(key, len(leaders))] if leaders else None

    return coordinator


def link_views(image: PastCluster) -> list[PastLinkView]:
    """The link of each ordered pair of brokers."""
    nodes = sorted(image.brokers)
    return [
        PastLinkView(a, b, (a, b) not in image.cut, image.delays.get((a, b), 0))
        for a in nodes
        for b in nodes
        if a != b
    ]
