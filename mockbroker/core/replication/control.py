"""What the controller checks before topics and partitions come to be (ReplicationControlManager).

The order of the checks is Kafka's, because it decides which error a request with two faults gets.
Plans are made first and carried out by `Cluster`, so that a request which only validates takes the
same path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.configs.control import check_topic_configs
from mockbroker.core.errors import ApiError
from mockbroker.core.replication.placement import UsableBroker, place_replicas
from mockbroker.core.topic import CLUSTER_METADATA_TOPIC, why_invalid_name
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.topic import Topic


class PartitionPlan(NamedTuple):
    """One partition to be: replicas with the preferred leader first, and the live ones of them."""

    replicas: list[int]
    isr: list[int]


def check_new_name(cluster: Cluster, name: str) -> None:
    """Raise ApiError when no topic may be created under `name`."""
    if name == CLUSTER_METADATA_TOPIC:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{name!r} is not for clients to create.")
    reason = why_invalid_name(name)
    if reason is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if name in cluster.topics:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"There is a topic {name!r} already.")
    # Metric names replace dots by underscores, so two such topics would share them.
    existing = cluster.colliding_topic(name)
    if existing is not None:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{name!r} and the topic {existing!r} would share their metrics.",
        )


def plan_topic(
    cluster: Cluster,
    name: str,
    partitions: int,
    replication_factor: int,
    *,
    assignments: Mapping[int, Sequence[int]] | Sequence[tuple[int, Sequence[int]]] = (),
    configs: Mapping[str, str | None],
) -> list[PartitionPlan]:
    """The partitions a new topic would get; -1 stands for the broker's default. Raises ApiError."""
    check_new_name(cluster, name)
    nulls = ",".join(key for key, value in configs.items() if value is None)
    if nulls:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"These configs need a value: {nulls}")
    check_topic_configs(cluster, {k: v for k, v in configs.items() if v is not None})
    if assignments:
        if replication_factor != -1:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "With replicas assigned by hand the replication factor must be -1.",
            )
        if partitions != -1:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "With replicas assigned by hand the number of partitions must be -1.",
            )
        pairs = assignments.items() if isinstance(assignments, Mapping) else assignments
        return _plan_manual(cluster, pairs)
    if replication_factor < -1 or replication_factor == 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "The replication factor is neither 1 or more nor -1.",
        )
    if partitions < -1 or partitions == 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            "The number of partitions is neither 1 or more nor -1.",
        )
    if partitions == -1:
        partitions = cluster.config_int("num.partitions")
    if replication_factor == -1:
        replication_factor = cluster.config_int("default.replication.factor")
    return _plan_placed(cluster, partitions, replication_factor)


def plan_more_partitions(
    cluster: Cluster, topic: Topic, count: int, assignments: Sequence[Sequence[int]] | None
) -> list[PartitionPlan]:
    """The partitions that bring `topic` to `count` of them. Raises ApiError."""
    present = len(topic.partitions)
    if count == present:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"The topic has {present} partitions already.")
    if count < present:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic has {present} partitions, which cannot become {count}.",
        )
    additional = count - present
    replication_factor = len(topic.partitions[0].replicas)
    if assignments is None:
        return _plan_placed(cluster, additional, replication_factor)
    if len(assignments) != additional:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{additional} partitions are to be added and {len(assignments)} assigned.",
        )
    plans = []
    for index, replicas in enumerate(assignments, start=present):
        check_replicas(cluster, replicas, replication_factor)
        plans.append(_manual_plan(cluster, index, replicas))
    return plans


def _plan_placed(cluster: Cluster, partitions: int, replication_factor: int) -> list[PartitionPlan]:
    brokers = [UsableBroker(b.node_id, b.rack, b.fenced) for b in cluster.brokers.values()]
    placed = place_replicas(brokers, partitions, replication_factor, cluster.ids)
    return [PartitionPlan(replicas, _alive(cluster, replicas)) for replicas in placed]


def _plan_manual(
    cluster: Cluster, assignments: Iterable[tuple[int, Sequence[int]]]
) -> list[PartitionPlan]:
    plans: dict[int, PartitionPlan] = {}
    replication_factor: int | None = None
    for index, replicas in assignments:
        if index in plans:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Partition {index} is assigned twice.",
            )
        check_replicas(cluster, replicas, replication_factor)
        replication_factor = len(replicas)
        plans[index] = _manual_plan(cluster, index, replicas)
    if sorted(plans) != list(range(len(plans))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The assigned partitions are not numbered from 0 without a gap.",
        )
    return [plans[index] for index in range(len(plans))]


def _manual_plan(cluster: Cluster, index: int, replicas: Sequence[int]) -> PartitionPlan:
    isr = _alive(cluster, replicas)
    if not isr:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"None of the brokers assigned to partition {index} is alive.",
        )
    return PartitionPlan(list(replicas), isr)


def check_replicas(
    cluster: Cluster, replicas: Sequence[int], replication_factor: int | None
) -> None:
    """Raise ApiError INVALID_REPLICA_ASSIGNMENT when `replicas` is no sound list of brokers."""
    invalid = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if not replicas:
        raise ApiError(invalid, "A partition needs one replica or more.")
    previous = None
    for node_id in sorted(replicas):
        if node_id not in cluster.brokers:
            raise ApiError(invalid, f"There is no broker {node_id}.")
        if node_id == previous:
            raise ApiError(invalid, f"Broker {node_id} stands twice among the replicas.")
        previous = node_id
    if replication_factor is not None and len(replicas) != replication_factor:
        raise ApiError(
            invalid,
            f"A partition of {len(replicas)} replicas would stand beside others of "
            f"{replication_factor}.",
        )


def _alive(cluster: Cluster, replicas: Sequence[int]) -> list[int]:
    brokers = cluster.brokers
    return [node_id for node_id in replicas if not brokers[node_id].fenced]
