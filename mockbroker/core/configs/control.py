"""The checks of the controller and the brokers before a change of configs.

Each check gets all new overrides of a resource, because some configs depend on each other, and
raises ApiError with Kafka's error code.

Source: ControllerConfigurationValidator, LogConfig, GroupConfig, ClientMetricsConfigs,
DynamicBrokerConfig, RuntimeLoggerManager.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from mockbroker.core.configs.defs import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigValue,
    UpdateMode,
)
from mockbroker.core.configs.values import LISTENER_PREFIX
from mockbroker.core.errors import ApiError, ConfigError
from mockbroker.core.patterns import InvalidPatternError, compile_pattern
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker.core.replication.replication_control import ReplicationControl

MIN_ISR = "min.insync.replicas"
LOG_LEVELS = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")


# -- topics ----------------------------------------------------------------------------------------


def check_topic_configs(configs: ClusterConfigs, overrides: Mapping[str, str]) -> None:
    """Raise ApiError INVALID_CONFIG unless `overrides` are sound topic configs (LogConfig)."""
    values: dict[str, ConfigValue] = {}
    for name in overrides:
        if name not in TOPIC_CONFIGS:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    for name, text in overrides.items():
        try:
            values[name] = TOPIC_CONFIGS[name].parse(text)
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None
    if not values:
        return
    _check_compaction_lags(configs, values)
    if values.get("remote.storage.enable") and not configs.get("remote.log.storage.system.enable"):
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            "Topics cannot use tiered storage, because the brokers have it switched off.",
        )


def _check_compaction_lags(configs: ClusterConfigs, values: Mapping[str, ConfigValue]) -> None:
    lags = []
    for name in ("min.compaction.lag.ms", "max.compaction.lag.ms"):
        value = values[name] if name in values else configs.topic_default(name)
        assert isinstance(value, int)
        lags.append(value)
    if lags[0] > lags[1]:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({lags[0]}) > "
            f"max.compaction.lag.ms ({lags[1]})",
        )


# -- groups ----------------------------------------------------------------------------------------

# The bounds of group configs: name -> (broker config of the minimum, of the maximum).
_GROUP_BOUNDS: Mapping[str, tuple[str | None, str | None]] = {
    **{
        f"{kind}.{name}": (f"group.{kind}.min.{name}", f"group.{kind}.max.{name}")
        for kind in ("consumer", "share", "streams")
        for name in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
    },
    **{
        f"share.{name}": (f"group.share.min.{name}", f"group.share.max.{name}")
        for name in (
            "record.lock.duration.ms",
            "delivery.count.limit",
            "partition.max.record.locks",
        )
    },
    "streams.num.standby.replicas": (None, "group.streams.max.standby.replicas"),
}


def check_group_configs(configs: ClusterConfigs, overrides: Mapping[str, str]) -> None:
    """Raise ApiError INVALID_CONFIG unless `overrides` are sound group configs (GroupConfig)."""
    values: dict[str, ConfigValue] = {}
    for name in overrides:
        if name not in GROUP_CONFIGS:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
    for name, text in overrides.items():
        try:
            values[name] = GROUP_CONFIGS[name].parse(text)
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None
    for name, value in values.items():
        if name in _GROUP_BOUNDS and isinstance(value, int):
            _check_bounds(configs, name, value)
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if session in values or heartbeat in values:
            timeout, interval = (
                values[name] if name in values else configs.get(f"group.{name}")
                for name in (session, heartbeat)
            )
            if isinstance(timeout, int) and isinstance(interval, int) and timeout <= interval:
                raise ApiError(
                    ErrorCode.INVALID_CONFIG, f"{session} must be greater than {heartbeat}"
                )


def _check_bounds(configs: ClusterConfigs, name: str, value: int) -> None:
    low, high = _GROUP_BOUNDS[name]
    if low is not None and value < configs.get_int(low):
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{name} must be greater than or equal to {low}")
    if high is not None and value > configs.get_int(high):
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{name} must be less than or equal to {high}")


# -- client metrics --------------------------------------------------------------------------------

_CLIENT_MATCHERS = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def check_client_metrics_configs(overrides: Mapping[str, str]) -> None:
    """Raise ApiError unless `overrides` make a sound subscription (ClientMetricsConfigs)."""
    for name, text in overrides.items():
        definition = CLIENT_METRICS_CONFIGS.get(name)
        if definition is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}"
            )
        try:
            value = definition.parse(text)
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None
        if isinstance(value, int) and not 100 <= value <= 3_600_000:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Invalid value {value} for {name}, interval must be between 100 and 3600000 (1 "
                "hour)",
            )
        if name == "match" and isinstance(value, tuple):
            for pattern in value:
                _check_client_pattern(pattern)


def _check_client_pattern(pattern: str) -> None:
    name, separator, expression = pattern.partition("=")
    if separator and name.strip() in _CLIENT_MATCHERS:
        try:
            compile_pattern(expression.strip())
        except InvalidPatternError:
            pass
        else:
            return
    raise ApiError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")


# -- brokers ---------------------------------------------------------------------------------------

# Configs of one listener, with that prefix (DynamicBrokerConfig.DYNAMIC_SECURITY_CONFIGS).
_LISTENER_SECURITY = tuple(
    f"ssl.{name}"
    for name in (
        "key.password",
        "keystore.certificate.chain",
        "keystore.key",
        "keystore.location",
        "keystore.password",
        "keystore.type",
        "truststore.certificates",
        "truststore.location",
        "truststore.password",
        "truststore.type",
    )
)
# Thread pools may at most double or halve at once (DynamicThreadPool).
_THREAD_COUNTS = frozenset(
    (
        "background.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
    )
)


CLEANER_THREADS = "log.cleaner.threads"


def check_broker_configs(
    control: ReplicationControl, overrides: Mapping[str, str], node_id: int | None
) -> None:
    """Raise ApiError unless `overrides` are valid dynamic configs; `node_id` None: of all brokers.

    Unknown names are valid, because they may be those of a plug-in.
    """
    known = {name: d for name in overrides if (d := BROKER_CONFIGS.get(name)) is not None}
    fixed = [name for name, d in known.items() if d.mode is UpdateMode.READ_ONLY]
    _refuse_names(fixed, "Cannot update these configs dynamically")
    _refuse_names(
        [name for name in known if name in _LISTENER_SECURITY],
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix",
    )
    for name, definition in known.items():
        try:
            value = definition.parse(overrides[name])
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None
        if isinstance(value, int) and (name in _THREAD_COUNTS or name == CLEANER_THREADS):
            _check_thread_count(control, name, value, node_id)
    if node_id is None:
        _refuse_names(
            [
                name
                for name in overrides
                if name.startswith(LISTENER_PREFIX)
                or (name in known and known[name].mode is UpdateMode.PER_BROKER)
            ],
            "Cannot update these configs at default cluster level, broker id must be specified",
        )


def _refuse_names(names: list[str], reason: str) -> None:
    if names:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{reason}: [{', '.join(names)}]")


def _check_thread_count(
    control: ReplicationControl, name: str, value: int, node_id: int | None
) -> None:
    node = control.image.controller_id if node_id is None else node_id
    current = control.configs.get_for(node, name)
    assert isinstance(current, int)
    if node_id is None and name in control.configs.dynamic_broker.get(node, {}):
        return  # the broker's own value stays in force
    if name == CLEANER_THREADS:
        if value == 0:  # Kafka divides the cleaner's buffers by it before it checks the value
            raise ApiError(ErrorCode.INVALID_REQUEST, "/ by zero")
        few = f"Log cleaner threads cannot be reduced to less than half the current value {current}"
        many = (
            "Log cleaner threads cannot be increased to more than double the current value "
            f"{current}"
        )
    else:
        failed = f"Dynamic thread count update validation failed for {name}={value}, value should"
        few = f"{failed} be at least half the current value {current}"
        many = f"{failed} not be greater than double the current value {current}"
    if value > current * 2 or value < current // 2:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "Invalid value org.apache.kafka.common.config.ConfigException: "
            f"{few if value < current else many} for configuration Invalid dynamic configuration",
        )


def check_min_isr_stays(
    control: ReplicationControl,
    before: Mapping[str, str],
    after: Mapping[str, str],
    written: Container[str],
    node_id: int | None,
) -> None:
    """Raise ApiError INVALID_CONFIG if min.insync.replicas would differ between brokers.

    With eligible leader replicas the controller needs one value for all brokers (KIP-966). A
    request must not even delete the unset config of one broker
    (ConfigurationControlManager.isDisallowedBrokerMinIsrTransition).
    """
    if not control.elr_enabled:
        return
    if node_id is not None and (MIN_ISR in written or before.get(MIN_ISR) != after.get(MIN_ISR)):
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.",
        )
    if node_id is None and MIN_ISR in before and MIN_ISR not in after:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled.",
        )
