"""The runner of groups whose members do not join by the classic protocol.

The configs of a group are read again when a config has changed. Requests of the classic protocol
are refused, as GroupMetadataManager does for share and streams groups; consumer groups override
that, because classic members may be in them.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from mockbroker.core.groups.events import (
    NO_MEMBER_ID,
    Join,
    JoinResult,
    Leave,
    Sync,
    SyncResult,
)
from mockbroker.core.groups.runner import G, GroupRunner, answer, unknown_members
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker.core.groups.shard import GroupShard

S = TypeVar("S")


class ModernRunner(GroupRunner[G], Generic[G, S]):
    """Groups of type G; S are the settings of one group."""

    __slots__ = ("_settings", "_settings_version", "_topics")

    def __init__(self, shard: GroupShard) -> None:
        super().__init__(shard)
        self._topics = shard.coordinator.topics
        self._settings: dict[str, S] = {}
        self._settings_version = -1

    @staticmethod
    @abstractmethod
    def read_settings(configs: ClusterConfigs, group_id: str) -> S:
        """The settings of one group in the current configs."""

    def settings(self, group_id: str) -> S:
        """The current settings of one group."""
        configs = self._shard.coordinator.configs
        if self._settings_version != configs.version:
            self._settings.clear()
            self._settings_version = configs.version
        settings = self._settings.get(group_id)
        if settings is None:
            settings = self._settings[group_id] = self.read_settings(configs, group_id)
        return settings

    def replace_by_classic(self, group: G, join: Join) -> None:
        """JoinGroup of an empty group: a new classic group replaces it."""
        shard, group_id = self._shard, group.group_id
        if join.member_id == NO_MEMBER_ID:
            error, _ = shard.append(group.tombstone_records())
            if error is not ErrorCode.NONE:
                answer(join.callback, JoinResult(error=error, member_id=NO_MEMBER_ID))
                return
            shard.remove_group(group_id)
        shard.classic.create_group(group_id, join)

    # -- requests of the classic protocol --------------------------------------------------------

    def join(self, group: G, join: Join) -> None:  # noqa: ARG002
        answer(join.callback, JoinResult(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))

    def sync(self, group: G, sync: Sync) -> None:  # noqa: ARG002
        answer(sync.callback, SyncResult(error=ErrorCode.UNKNOWN_MEMBER_ID))

    def heartbeat(
        self,
        group: G,  # noqa: ARG002
        member_id: str,  # noqa: ARG002
        instance_id: str | None,  # noqa: ARG002
        generation: int,  # noqa: ARG002
    ) -> ErrorCode:
        return ErrorCode.UNKNOWN_MEMBER_ID

    def leave(self, group: G, leave: Leave) -> None:  # noqa: ARG002
        answer(leave.callback, unknown_members(leave))
