"""Changes of the configs of a resource.

AlterConfigs replaces all overrides of a resource, IncrementalAlterConfigs applies operations to
them. Both then run the checks of Kafka's broker and controller, in the same order.

Source: ConfigAdminManager, ConfigurationControlManager.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.configs.control import (
    LOG_LEVELS,
    MIN_ISR,
    check_broker_configs,
    check_client_metrics_configs,
    check_group_configs,
    check_min_isr_stays,
    check_topic_configs,
)
from mockbroker.core.configs.defs import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigDef,
    ConfigType,
)
from mockbroker.core.configs.resources import ConfigResourceType, overrides_of, set_overrides
from mockbroker.core.errors import ApiError
from mockbroker.core.metadata.topic import why_invalid_name
from mockbroker.core.replication.elections import clear_eligible_leaders
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.types import parse_integer

if TYPE_CHECKING:
    from mockbroker.core.brokers.broker import Broker
    from mockbroker.core.cluster_state import ClusterState


class OpType(IntEnum):
    """The operation of an incremental change (AlterConfigOp.OpType)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterConfigOp(NamedTuple):
    """One incremental change; `op` is checked when it is applied."""

    name: str
    op: int
    value: str | None


def set_or_deleted(configs: Mapping[str, str | None]) -> list[AlterConfigOp]:
    """The changes that set each config to its value, or delete it if that is None."""
    return [
        AlterConfigOp(name, OpType.DELETE if value is None else OpType.SET, value)
        for name, value in configs.items()
    ]


_TABLES: dict[ConfigResourceType, Mapping[str, ConfigDef]] = {
    ConfigResourceType.TOPIC: TOPIC_CONFIGS,
    ConfigResourceType.BROKER: BROKER_CONFIGS,
    ConfigResourceType.CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
    ConfigResourceType.GROUP: GROUP_CONFIGS,
}


def check_changes(names: Iterable[str], null_names: Iterable[str]) -> None:
    """Raise ApiError INVALID_REQUEST for a duplicate name, or a null value."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        seen.add(name)
    nulls = list(null_names)
    if nulls:  # one of them may be the empty name
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(nulls)}"
        )


def alter_incrementally(
    cluster: ClusterState,
    broker: Broker | None,
    resource: tuple[int, str],
    changes: list[AlterConfigOp],
    *,
    validate_only: bool,
) -> None:
    """Apply `changes` to a (type, name) resource. Raises ApiError.

    `broker` got the request. It may be None for other resources: a cluster may have no broker.
    """
    kind, name = resource
    check_changes(
        (change.name for change in changes),
        (c.name for c in changes if c.op != OpType.DELETE and c.value is None),
    )
    if kind == ConfigResourceType.BROKER_LOGGER:
        assert broker is not None
        _alter_loggers(broker, name, changes, validate_only=validate_only)
        return
    known = _known_type(kind)
    if known is ConfigResourceType.BROKER:
        _broker_name(broker, name)
        for change in changes:
            if change.op not in OpType._value2member_map_:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.op}")
    overrides = dict(overrides_of(cluster, known, name))
    for change in changes:
        _apply(known, overrides, change)
    written = [change.name for change in changes]
    _replace(cluster, broker, (known, name), overrides, written, validate_only=validate_only)


def replace_overrides(
    cluster: ClusterState,
    broker: Broker,
    resource: tuple[int, str],
    overrides: Mapping[str, str],
    *,
    validate_only: bool,
) -> None:
    """Replace the overrides of a (type, name) resource. Raises ApiError."""
    _replace(cluster, broker, resource, overrides, overrides, validate_only=validate_only)


def _replace(
    cluster: ClusterState,
    broker: Broker | None,
    resource: tuple[int, str],
    overrides: Mapping[str, str],
    written: Collection[str],
    *,
    validate_only: bool,
) -> None:
    """Check and set the overrides of a resource; `written` are the names in the request.

    Kafka writes a broker's config again even if its value does not change (KAFKA-14136).
    """
    kind, name = _known_type(resource[0]), resource[1]
    match kind:
        case ConfigResourceType.TOPIC:
            _check_topic(cluster, name, overrides)
        case ConfigResourceType.BROKER:
            node_id = _broker_name(broker, name)
            check_broker_configs(cluster.replication_control, overrides, node_id)
            before = overrides_of(cluster, kind, name)
            check_min_isr_stays(cluster.replication_control, before, overrides, written, node_id)
        case ConfigResourceType.GROUP:
            if not name:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."
                )
            check_group_configs(cluster.configs, overrides)
        case _:
            if not name:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
            check_client_metrics_configs(overrides)
    if validate_only:
        return
    min_isr = overrides_of(cluster, kind, name).get(MIN_ISR)
    set_overrides(cluster, kind, name, overrides)
    if kind is ConfigResourceType.TOPIC and min_isr != overrides.get(MIN_ISR):
        clear_eligible_leaders(cluster.replication_control, [cluster.topics[name]])
    elif kind is ConfigResourceType.BROKER and MIN_ISR in written:
        clear_eligible_leaders(cluster.replication_control, cluster.topics.values())


def _known_type(kind: int) -> ConfigResourceType:
    try:
        known = ConfigResourceType(kind)
    except ValueError:
        known = ConfigResourceType.BROKER_LOGGER
    if known is ConfigResourceType.BROKER_LOGGER:  # only incremental changes reach loggers
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
    return known


def _broker_name(broker: Broker | None, name: str) -> int | None:
    """The broker of a BROKER resource: the receiver of the request, or None for all brokers."""
    if not name:
        return None
    assert broker is not None
    _check_node_id(broker, name, "Unexpected broker id, expected")
    return broker.node_id


def _check_node_id(broker: Broker, name: str, unexpected: str) -> None:
    """Raise ApiError unless `name` is the id of this broker."""
    node_id = parse_integer(name)
    if node_id is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if node_id != broker.node_id:
        message = f"{unexpected} {broker.node_id}, but received {name}"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)


def _check_topic(cluster: ClusterState, name: str, overrides: Mapping[str, str]) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    reason = why_invalid_name(name)
    if reason is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    check_topic_configs(cluster.configs, overrides)
    if name not in cluster.topics:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def _apply(kind: ConfigResourceType, overrides: dict[str, str], change: AlterConfigOp) -> None:
    """Apply one change to a set of overrides, in place."""
    name, op, value = change
    if op == OpType.DELETE:
        overrides.pop(name, None)
        return
    assert value is not None
    if op == OpType.SET:
        overrides[name] = value
    elif op in (OpType.APPEND, OpType.SUBTRACT):
        definition = _TABLES[kind].get(name)
        if definition is None or definition.type is not ConfigType.LIST:
            raise _not_a_list(kind, name, OpType(op), unknown=definition is None)
        present = overrides.get(name, definition.default) or ""
        items = present.split(",") if present else []
        if op == OpType.APPEND:
            for item in value.split(","):
                if item not in items:
                    items.append(item)
        else:
            for item in value.split(","):
                if item in items:
                    items.remove(item)
        overrides[name] = ",".join(items)
    else:
        # Brokers check the code; the controller throws an exception.
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)


def _not_a_list(kind: ConfigResourceType, name: str, op: OpType, *, unknown: bool) -> ApiError:
    if unknown and kind is ConfigResourceType.BROKER:
        reason = f"Unknown config name: {name}"
    elif kind is ConfigResourceType.BROKER:
        reason = f"Config value {op.name.lower()} is not allowed for config key: {name}"
    else:
        reason = f"Can't {op.name} to key {name} because its type is not LIST."
    return ApiError(ErrorCode.INVALID_CONFIG, reason)


def _alter_loggers(
    broker: Broker, name: str, changes: list[AlterConfigOp], *, validate_only: bool
) -> None:
    _check_node_id(broker, name, "Unexpected node id. Expected")
    for change in changes:
        _check_logger(broker, change)
    if validate_only:
        return
    for logger, op, level in changes:
        root = broker.logger_levels["root"]
        broker.logger_levels[logger] = root if op == OpType.DELETE or level is None else level


def _check_logger(broker: Broker, change: AlterConfigOp) -> None:
    logger, op, level = change
    if op not in OpType._value2member_map_:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka throws an exception
    if op in (OpType.APPEND, OpType.SUBTRACT):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"{OpType(op).name} operation is not allowed for the BROKER_LOGGER resource",
        )
    if logger not in broker.logger_levels:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {logger} does not exist!")
    if op == OpType.DELETE and logger == "root":
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"
        )
    if op == OpType.SET and level not in LOG_LEVELS:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {logger} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(LOG_LEVELS)}",
        )
