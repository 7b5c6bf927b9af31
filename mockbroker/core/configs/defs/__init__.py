"""Every topic, broker and group config of Kafka 4.3: name, type, default, accepted values, update
mode.

The tables were taken from the broker's own ConfigDefs and are compared with them by the oracle
tests. `broker_*` hold the broker's, by the part of the broker they steer; `topic` and `group` the
others, with the broker configs that stand behind them.
"""

from __future__ import annotations

from mockbroker.core.configs.defs.broker_coordinators import COORDINATORS
from mockbroker.core.configs.defs.broker_security import SECURITY
from mockbroker.core.configs.defs.broker_server import SERVER
from mockbroker.core.configs.defs.broker_storage import STORAGE
from mockbroker.core.configs.defs.group import CLIENT_METRICS, GROUP, GROUP_SYNONYMS
from mockbroker.core.configs.defs.kinds import (
    ConfigDef,
    ConfigType,
    ConfigValue,
    UpdateMode,
    to_text,
)
from mockbroker.core.configs.defs.topic import TOPIC, TOPIC_SYNONYMS

BROKER_CONFIGS: dict[str, ConfigDef] = {
    definition.name: definition for definition in (*SERVER, *STORAGE, *COORDINATORS, *SECURITY)
}
TOPIC_CONFIGS: dict[str, ConfigDef] = {definition.name: definition for definition in TOPIC}
GROUP_CONFIGS: dict[str, ConfigDef] = {definition.name: definition for definition in GROUP}
CLIENT_METRICS_CONFIGS: dict[str, ConfigDef] = {
    definition.name: definition for definition in CLIENT_METRICS
}

__all__ = [
    "BROKER_CONFIGS",
    "CLIENT_METRICS_CONFIGS",
    "GROUP_CONFIGS",
    "GROUP_SYNONYMS",
    "TOPIC_CONFIGS",
    "TOPIC_SYNONYMS",
    "ConfigDef",
    "ConfigType",
    "ConfigValue",
    "UpdateMode",
    "to_text",
]
