"""Actions on configs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from mockbroker.core.actions.registry import action
from mockbroker.core.configs.alter import alter_incrementally, set_or_deleted
from mockbroker.core.configs.resources import ConfigResourceType
from mockbroker.core.errors import ActionError
from mockbroker_protocol.types import parse_integer

if TYPE_CHECKING:
    from mockbroker.core.cluster_state import ClusterState

Kind = Literal["topic", "broker", "group", "client_metrics"]


class AlterConfigs(msgspec.Struct, frozen=True):
    """Configs of a topic, a broker, a group or a client metrics subscription (KIP-714); null
    deletes one. The name of a broker is its id, or "" for all brokers.
    """

    kind: Kind
    name: str
    configs: dict[str, str | None]


class ConfigActions:
    """Actions on configs."""

    @action(AlterConfigs)
    @staticmethod
    def alter_configs(cluster: ClusterState, wanted: AlterConfigs) -> None:
        """Set and delete configs, as IncrementalAlterConfigs."""
        broker = None
        if wanted.kind == "broker" and wanted.name:
            node_id = parse_integer(wanted.name)
            if node_id is None or node_id not in cluster.brokers:
                raise ActionError(f"there is no broker {wanted.name!r}")
            broker = cluster.brokers[node_id]
        alter_incrementally(
            cluster,
            broker,
            (ConfigResourceType[wanted.kind.upper()], wanted.name),
            set_or_deleted(wanted.configs),
            validate_only=False,
        )
