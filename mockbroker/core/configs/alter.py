"""Changing the configs of a resource: which overrides it has, and which it would have afterwards.

A *resource* is a topic, a broker (or all of them), a group, a client metrics subscription or a
broker's loggers. `AlterConfigs` replaces all overrides of one, `IncrementalAlterConfigs` applies
operations to them; both then take the same checks in the same order as Kafka's broker and
controller do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple, TypeVar

from mockbroker.core.brokers.broker import Broker
from mockbroker.core.cluster import Cluster
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
from mockbroker.core.errors import ApiError
from mockbroker.core.metadata.topic import why_invalid_name
from mockbroker.core.replication.elections import clear_eligible_leaders
from mockbroker_protocol import ErrorCode

K = TypeVar("K", int, str)


class ResourceType(IntEnum):
    """Kinds of resources that have configs (ConfigResource.Type), by their code on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Op(IntEnum):
    """What an incremental change does to one config (AlterConfigOp.OpType)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One incremental change; `op` is checked when it is applied."""

    name: str
    op: int
    value: str | None


_TABLES: dict[ResourceType, Mapping[str, ConfigDef]] = {
    ResourceType.TOPIC: TOPIC_CONFIGS,
    ResourceType.BROKER: BROKER_CONFIGS,
    ResourceType.CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
    ResourceType.GROUP: GROUP_CONFIGS,
}


def check_changes(names: Iterable[str], null_names: Iterable[str]) -> None:
    """Raise ApiError INVALID_REQUEST when a config is named twice or lacks the value it needs."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        seen.add(name)
    nulls = ",".join(null_names)
    if nulls:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {nulls}")


def alter_incrementally(
    cluster: Cluster,
    broker: Broker,
    resource: tuple[int, str],
    changes: list[Change],
    *,
    validate_only: bool,
) -> None:
    """Apply `changes` to a (type, name) resource, as asked of `broker`. Raises ApiError."""
    kind, name = resource
    check_changes(
        (change.name for change in changes),
        (c.name for c in changes if c.op != Op.DELETE and c.value is None),
    )
    if kind == ResourceType.BROKER_LOGGER:
        _alter_loggers(broker, name, changes, validate_only=validate_only)
        return
    known = _known_type(kind)
    if known is ResourceType.BROKER:
        _broker_name(broker, name)
        for change in changes:
            if change.op not in Op._value2member_map_:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.op}")
    overrides = dict(_overrides(cluster, known, name))
    for change in changes:
        _apply(known, overrides, change)
    written = [change.name for change in changes]
    _replace(cluster, broker, (known, name), overrides, written, validate_only=validate_only)


def replace_overrides(
    cluster: Cluster,
    broker: Broker,
    resource: tuple[int, str],
    overrides: Mapping[str, str],
    *,
    validate_only: bool,
) -> None:
    """Give a (type, name) resource exactly these overrides. Raises ApiError."""
    _replace(cluster, broker, resource, overrides, overrides, validate_only=validate_only)


def _replace(
    cluster: Cluster,
    broker: Broker,
    resource: tuple[int, str],
    overrides: Mapping[str, str],
    written: Collection[str],
    *,
    validate_only: bool,
) -> None:
    """Check the overrides of a resource and put them in force; `written` are named in the request.

    Kafka writes a broker's config down again even with the value that it has (KAFKA-14136).
    """
    kind, name = _known_type(resource[0]), resource[1]
    match kind:
        case ResourceType.TOPIC:
            _check_topic(cluster, name, overrides)
        case ResourceType.BROKER:
            node_id = _broker_name(broker, name)
            check_broker_configs(cluster.replication_control, overrides, node_id)
            before = _overrides(cluster, kind, name)
            check_min_isr_stays(cluster.replication_control, before, overrides, written, node_id)
        case ResourceType.GROUP:
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
    min_isr = _overrides(cluster, kind, name).get(MIN_ISR)
    _store(cluster, kind, name, dict(overrides))
    if kind is ResourceType.TOPIC and min_isr != overrides.get(MIN_ISR):
        clear_eligible_leaders(cluster.replication_control, [cluster.topics[name]])
    elif kind is ResourceType.BROKER and MIN_ISR in written:
        clear_eligible_leaders(cluster.replication_control, cluster.topics.values())


def _known_type(kind: int) -> ResourceType:
    try:
        known = ResourceType(kind)
    except ValueError:
        known = ResourceType.BROKER_LOGGER
    if known is ResourceType.BROKER_LOGGER:  # only incremental changes reach loggers
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
    return known


def _broker_name(broker: Broker, name: str) -> int | None:
    """The broker that a BROKER resource names: the receiving one, or None for all of them."""
    if not name:
        return None
    _check_node_id(broker, name, "Unexpected broker id, expected")
    return broker.node_id


def _check_node_id(broker: Broker, name: str, unexpected: str) -> None:
    """Raise ApiError unless `name` is the id of this broker."""
    node_id = parse_node_id(name)
    if node_id is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if node_id != broker.node_id:
        message = f"{unexpected} {broker.node_id}, but received {name}"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)


def parse_node_id(name: str) -> int | None:
    """A resource name as a node id, or None; leading zeros and a sign are fine, as in Java."""
    digits = name[1:] if name[:1] in ("+", "-") else name
    return int(name) if digits.isascii() and digits.isdigit() else None


def _check_topic(cluster: Cluster, name: str, overrides: Mapping[str, str]) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    reason = why_invalid_name(name)
    if reason is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    check_topic_configs(cluster.configs, overrides)
    if name not in cluster.topics:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def _overrides(cluster: Cluster, kind: ResourceType, name: str) -> Mapping[str, str]:
    match kind:
        case ResourceType.TOPIC:
            topic = cluster.topics.get(name)
            return {} if topic is None else topic.configs.overrides
        case ResourceType.BROKER:
            if not name:
                return cluster.configs.dynamic_default
            return cluster.configs.dynamic_broker.get(int(name), {})
        case ResourceType.GROUP:
            return cluster.configs.groups.get(name, {})
        case _:
            return cluster.configs.client_metrics.get(name, {})


def _store(cluster: Cluster, kind: ResourceType, name: str, overrides: dict[str, str]) -> None:
    configs = cluster.configs
    match kind:
        case ResourceType.TOPIC:
            cluster.replace_topic_configs(cluster.topics[name], overrides)
        case ResourceType.BROKER:
            if name:
                _put(configs.dynamic_broker, int(name), overrides)
            else:
                configs.dynamic_default = overrides
            cluster.configs_changed()
        case ResourceType.GROUP:
            _put(configs.groups, name, overrides)
            configs.changed()
        case _:
            _put(configs.client_metrics, name, overrides)
            configs.changed()


def _put(store: dict[K, dict[str, str]], key: K, overrides: dict[str, str]) -> None:
    """A resource without overrides is as if it had never been configured."""
    if overrides:
        store[key] = overrides
    else:
        store.pop(key, None)


def _apply(kind: ResourceType, overrides: dict[str, str], change: Change) -> None:
    """Apply one change to a set of overrides, in place."""
    name, op, value = change
    if op == Op.DELETE:
        overrides.pop(name, None)
        return
    assert value is not None
    if op == Op.SET:
        overrides[name] = value
    elif op in (Op.APPEND, Op.SUBTRACT):
        definition = _TABLES[kind].get(name)
        if definition is None or definition.type is not ConfigType.LIST:
            raise _not_a_list(kind, name, Op(op), unknown=definition is None)
        present = overrides.get(name, definition.default) or ""
        items = present.split(",") if present else []
        if op == Op.APPEND:
            for item in value.split(","):
                if item not in items:
                    items.append(item)
        else:
            for item in value.split(","):
                if item in items:
                    items.remove(item)
        overrides[name] = ",".join(items)
    else:
        # A broker checks the code itself; the controller stumbles over it.
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)


def _not_a_list(kind: ResourceType, name: str, op: Op, *, unknown: bool) -> ApiError:
    if unknown and kind is ResourceType.BROKER:
        reason = f"Unknown config name: {name}"
    elif kind is ResourceType.BROKER:
        reason = f"Config value {op.name.lower()} is not allowed for config key: {name}"
    else:
        reason = f"Can't {op.name} to key {name} because its type is not LIST."
    return ApiError(ErrorCode.INVALID_CONFIG, reason)


def _alter_loggers(
    broker: Broker, name: str, changes: list[Change], *, validate_only: bool
) -> None:
    _check_node_id(broker, name, "Unexpected node id. Expected")
    for change in changes:
        _check_logger(broker, change)
    if validate_only:
        return
    for logger, op, level in changes:
        root = broker.logger_levels["root"]
        broker.logger_levels[logger] = root if op == Op.DELETE or level is None else level


def _check_logger(broker: Broker, change: Change) -> None:
    logger, op, level = change
    if op not in Op._value2member_map_:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # a real broker stumbles over it
    if op in (Op.APPEND, Op.SUBTRACT):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"{Op(op).name} operation is not allowed for the BROKER_LOGGER resource",
        )
    if logger not in broker.logger_levels:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {logger} does not exist!")
    if op == Op.DELETE and logger == "root":
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"
        )
    if op == Op.SET and level not in LOG_LEVELS:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {logger} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(LOG_LEVELS)}",
        )
