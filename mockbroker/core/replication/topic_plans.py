"""The plans of new topics and partitions, and the controller's checks (ReplicationControlManager).

The checks have Kafka's order, which decides the error of a request with two faults. `topic_control`
carries plans out, so a request that only validates takes the same path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.configs.control import check_topic_configs
from mockbroker.core.errors import ApiError
from mockbroker.core.metadata.topic import CLUSTER_METADATA_TOPIC, why_invalid_name
from mockbroker.core.replication.placement import UsableBroker, place_replicas
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.metadata.topic import Topic
    from mockbroker.core.replication.replication_control import ReplicationControl

# The controller's largest batch for one request: each topic, partition, config or ACL is a record
# (QuorumController.MAX_RECORDS_PER_USER_OP).
MAX_RECORDS_PER_USER_OP = 10_000
EXCESSIVE_BATCH = "Unable to perform excessively large batch operation."


class PartitionPlan(NamedTuple):
    """A planned partition: its replicas, preferred leader first, and the live ones of them."""

    replicas: list[int]
    isr: list[int]


def check_new_name(control: ReplicationControl, name: str) -> None:
    """Raise ApiError if no topic can be created under `name`."""
    if name == CLUSTER_METADATA_TOPIC:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{name!r} is not for clients to create.")
    reason = why_invalid_name(name)
    if reason is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if name in control.image.topics:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    # Metric names replace dots by underscores, so two such topics would share them.
    existing = control.colliding_topic(name)
    if existing is not None:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {existing}",
        )


def plan_topic(
    control: ReplicationControl,
    name: str,
    partitions: int,
    replication_factor: int,
    *,
    assignments: Mapping[int, Sequence[int]] | Sequence[tuple[int, Sequence[int]]] = (),
    configs: Mapping[str, str | None],
) -> list[PartitionPlan]:
    """The planned partitions of a new topic; -1 stands for the broker's default. Raises
    ApiError.
    """
    check_new_name(control, name)
    nulls = [key for key, value in configs.items() if value is None]
    if nulls:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )
    check_topic_configs(control.configs, {k: v for k, v in configs.items() if v is not None})
    if assignments:
        if replication_factor != -1:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "A manual partition assignment was specified, but replication factor was not set "
                "to -1.",
            )
        if partitions != -1:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "A manual partition assignment was specified, but numPartitions was not set to -1.",
            )
        pairs = assignments.items() if isinstance(assignments, Mapping) else assignments
        return _plan_manual(control, pairs)
    if replication_factor < -1 or replication_factor == 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if partitions < -1 or partitions == 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    if partitions == -1:
        partitions = control.configs.get_int("num.partitions")
    if replication_factor == -1:
        replication_factor = control.configs.get_int("default.replication.factor")
    return _plan_placed(control, partitions, replication_factor)


def plan_more_partitions(
    control: ReplicationControl,
    topic: Topic,
    count: int,
    assignments: Sequence[Sequence[int]] | None,
) -> list[PartitionPlan]:
    """The planned partitions that bring `topic` to `count` of them. Raises ApiError."""
    present = len(topic.partitions)
    if count == present:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if count < present:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {count} would not be an "
            "increase.",
        )
    additional = count - present
    replication_factor = len(topic.partitions[0].replicas)
    if assignments is None:
        return _plan_placed(control, additional, replication_factor)
    if len(assignments) != additional:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only {len(assignments)} "
            "assignment(s) were specified.",
        )
    plans = []
    for index, replicas in enumerate(assignments, start=present):
        check_replicas(control, replicas, replication_factor)
        plans.append(_manual_plan(control, index, replicas))
    return plans


def _plan_placed(
    control: ReplicationControl, partitions: int, replication_factor: int
) -> list[PartitionPlan]:
    brokers = [UsableBroker(b.node_id, b.rack, b.fenced) for b in control.image.brokers.values()]
    try:
        placed = place_replicas(brokers, partitions, replication_factor, control.runtime.ids)
    except ApiError as error:
        raise ApiError(
            error.error,
            f"Unable to replicate the partition {replication_factor} time(s): {error.message}",
        ) from None
    plans = [PartitionPlan(replicas, _active(control, replicas)) for replicas in placed]
    if not all(isr for _, isr in plans):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): All brokers are "
            "currently fenced or in controlled shutdown.",
        )
    return plans


def _plan_manual(
    control: ReplicationControl, assignments: Iterable[tuple[int, Sequence[int]]]
) -> list[PartitionPlan]:
    plans: dict[int, PartitionPlan] = {}
    replication_factor: int | None = None
    for index, replicas in assignments:
        if index in plans:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        check_replicas(control, replicas, replication_factor)
        replication_factor = len(replicas)
        plans[index] = _manual_plan(control, index, replicas)
    if sorted(plans) != list(range(len(plans))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [plans[index] for index in range(len(plans))]


def _manual_plan(control: ReplicationControl, index: int, replicas: Sequence[int]) -> PartitionPlan:
    isr = _active(control, replicas)
    if not isr:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the manual partition assignment for partition {index} are "
            "fenced or in controlled shutdown.",
        )
    return PartitionPlan(list(replicas), isr)


def check_replicas(
    control: ReplicationControl, replicas: Sequence[int], replication_factor: int | None
) -> None:
    """Raise ApiError INVALID_REPLICA_ASSIGNMENT unless `replicas` is a valid list of brokers."""
    invalid = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if not replicas:
        raise ApiError(invalid, "The manual partition assignment includes an empty replica list.")
    previous = None
    for node_id in sorted(replicas):
        if node_id not in control.image.brokers:
            raise ApiError(
                invalid,
                f"The manual partition assignment includes broker {node_id}, but no such broker is "
                "registered.",
            )
        if node_id == previous:
            raise ApiError(
                invalid,
                f"The manual partition assignment includes the broker {node_id} more than once.",
            )
        previous = node_id
    if replication_factor is not None and len(replicas) != replication_factor:
        raise ApiError(
            invalid,
            "The manual partition assignment includes a partition with "
            f"{len(replicas)} replica(s), but this is not consistent with previous partitions, "
            f"which have {replication_factor} replica(s).",
        )


def _active(control: ReplicationControl, replicas: Sequence[int]) -> list[int]:
    """The replicas that may be in sync (ClusterControlManager.isActive)."""
    return [node_id for node_id in replicas if control.image.is_active(node_id)]
