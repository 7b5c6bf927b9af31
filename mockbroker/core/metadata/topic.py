"""A topic: its id, its partitions and its configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mockbroker.core.configs.values import ClusterConfigs, TopicConfigs

if TYPE_CHECKING:
    from mockbroker.core.replication.partition import Partition

GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = frozenset(
    (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC)
)

TOPIC_NAME_CHARS_MAX = 249
_LEGAL_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def why_invalid_name(name: str) -> str | None:
    """The reason why `name` is invalid as a topic's name (Topic.validate); None if it is valid."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > TOPIC_NAME_CHARS_MAX:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length "
            f"{TOPIC_NAME_CHARS_MAX}"
        )
    if not _LEGAL_CHARS.issuperset(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'"
        )
    return None


class Topic:
    """One topic. `version` grows with every change; `memo` holds answers derived from that
    version.
    """

    __slots__ = ("configs", "is_internal", "memo", "name", "partitions", "topic_id", "version")

    def __init__(
        self,
        name: str,
        topic_id: bytes,
        cluster_configs: ClusterConfigs,
        overrides: Mapping[str, str],
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.is_internal = name in INTERNAL_TOPICS
        self.partitions: list[Partition] = []
        self.configs = TopicConfigs(cluster_configs, overrides)
        self.version = 0
        # Encoded answers and other derived data; dropped when the topic changes.
        self.memo: dict[object, object] = {}

    def frozen(self) -> Topic:
        """A copy of the topic for a frozen image. Configs are shared."""
        frozen = object.__new__(Topic)
        frozen.name, frozen.topic_id = self.name, self.topic_id
        frozen.is_internal = self.is_internal
        frozen.partitions = list(self.partitions)
        frozen.configs = self.configs
        frozen.version, frozen.memo = self.version, {}
        return frozen

    def touch(self) -> None:
        """Drop derived data: the topic, a leader or an ISR changed."""
        self.version += 1
        self.memo.clear()

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {len(self.partitions)} partitions)"
