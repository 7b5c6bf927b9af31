"""What the controller checks before configs change (ConfigurationControlManager and its
validators).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mockbroker.core.config_defs import TOPIC_CONFIGS, ConfigValue
from mockbroker.core.errors import ApiError, ConfigError
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster


def check_topic_configs(cluster: Cluster, overrides: Mapping[str, str]) -> None:
    """Raise ApiError INVALID_CONFIG unless `overrides` are sound topic configs (LogConfig)."""
    values: dict[str, ConfigValue] = {}
    for name, text in overrides.items():
        definition = TOPIC_CONFIGS.get(name)
        if definition is None:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
        try:
            values[name] = definition.parse(text)
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, error.reason) from None
    if not values:
        return

    def number(name: str) -> int:
        value = values[name] if name in values else cluster.configs.topic_default(name)
        assert isinstance(value, int)
        return value

    if number("min.compaction.lag.ms") > number("max.compaction.lag.ms"):
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            "conflict topic config setting min.compaction.lag.ms "
            f"({number('min.compaction.lag.ms')}) > max.compaction.lag.ms "
            f"({number('max.compaction.lag.ms')})",
        )
