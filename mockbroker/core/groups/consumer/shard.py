"""The consumer groups of one shard: their requests in, their effects out.

Source: GroupCoordinatorShard and GroupMetadataManager.getOrMaybeCreateConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.errors import ActionError
from mockbroker.core.groups import records as group_records
from mockbroker.core.groups.consumer.events import (
    ConsumerHeartbeat,
    ConsumerLeave,
    Downgrade,
    Effect,
    RegexesResolved,
    ResolveRegexes,
)
from mockbroker.core.groups.consumer.group import ConsumerGroup, ConsumerSettings
from mockbroker.core.groups.consumer.machine import handle
from mockbroker.core.groups.consumer.migration import downgraded, upgraded
from mockbroker.core.groups.consumer.records import RECORD_TYPES
from mockbroker.core.groups.consumer.states import MIGRATION_POLICIES
from mockbroker.core.groups.events import (
    NO_MEMBER_ID,
    ConsumerResult,
    Heartbeat,
    HeartbeatResult,
    Join,
    Leave,
    Sync,
)
from mockbroker.core.groups.group import CLASSIC, CONSUMER
from mockbroker.core.groups.modern.events import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    Store,
    Stored,
)
from mockbroker.core.groups.modern.runner import ModernRunner, group_ints
from mockbroker.core.groups.records import KeyValue
from mockbroker.core.groups.runner import ignore_result
from mockbroker.core.ids import uuid_text
from mockbroker.core.patterns import compile_pattern
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker.core.groups.shard import GroupShard

NONE = ErrorCode.NONE
MayMatch = Callable[[str], bool]


def _may_match_any(topic: str) -> bool:  # noqa: ARG001
    """Each topic may be matched without an authorizer."""
    return True


class ConsumerGroups(ModernRunner[ConsumerGroup, ConsumerSettings]):
    """Groups of the consumer protocol; members of the classic one may be in them."""

    __slots__ = ("_may_match",)

    group_type = CONSUMER
    group = ConsumerGroup

    def __init__(self, shard: GroupShard) -> None:
        super().__init__(shard)
        # During a heartbeat: whether the member may describe a topic.
        self._may_match: MayMatch = _may_match_any

    # ---------------------------------------------------------- requests of the consumer protocol

    def consumer_heartbeat(
        self, group_id: str, heartbeat: ConsumerHeartbeat, may_match: MayMatch | None = None
    ) -> None:
        """ConsumerGroupHeartbeat of a member that joins or stays.

        The group's regular expressions match only topics for which `may_match` returns True: those
        that the member may describe.
        """
        self._may_match = may_match or _may_match_any
        try:
            self.member_heartbeat(group_id, heartbeat)
        finally:
            self._may_match = _may_match_any

    def new_group(self, group_id: str, preceding: list[KeyValue]) -> ConsumerGroup:
        """Also the records of an upgrade are added to `preceding`."""
        former = self._shard.groups.get(group_id)
        if former is not None and former.group_type != CLASSIC:
            raise self.not_found(group_id, "")
        classic = self._shard.classic.get(group_id)
        if classic is None:
            return self._empty_group(group_id)
        preceding += classic.tombstone_records()
        if classic.is_empty():
            return self._empty_group(group_id)
        now_ms = self._shard.now_ms(group_id)
        group, changes = upgraded(classic, self.settings(group_id), self._topics, now_ms)
        preceding += (RECORD_TYPES.record_of(group_id, change) for change in changes)
        return group

    @staticmethod
    def refusal(error: ErrorCode, message: str | None) -> ConsumerResult:
        return ConsumerResult(error=error, message=message)

    # ----------------------------------------------------------- requests of the classic protocol

    def join(self, group: ConsumerGroup, join: Join) -> None:
        """JoinGroup. A classic group replaces an empty group."""
        if group.is_empty():
            self.replace_by_classic(group, join)
            return
        if join.member_id == NO_MEMBER_ID:
            member_id = uuid_text(self._runtime.ids.uuid())
            join = msgspec.structs.replace(join, new_member_id=member_id)
        self.run(group, join)

    def sync(self, group: ConsumerGroup, sync: Sync) -> None:
        self.run(group, sync)

    def heartbeat(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        results: list[HeartbeatResult] = []
        self.run(
            group,
            Heartbeat(
                callback=results.append,
                member_id=member_id,
                instance_id=instance_id,
                generation=generation,
            ),
        )
        return results[0].error

    def leave(self, group: ConsumerGroup, leave: Leave) -> None:
        self.run(group, leave)

    # ------------------------------------------------------------------------------------ settings

    @staticmethod
    def read_settings(configs: ClusterConfigs, group_id: str) -> ConsumerSettings:
        policy = configs.get("group.consumer.migration.policy")
        assignors = configs.get("group.consumer.assignors")
        assert isinstance(assignors, tuple)
        return ConsumerSettings(
            **group_ints(
                configs,
                group_id,
                "consumer",
                "session_timeout_ms",
                "heartbeat_interval_ms",
                "assignment_interval_ms",
            ),
            regex_refresh_interval_ms=configs.get_int("group.consumer.regex.refresh.interval.ms"),
            size_max=configs.get_int("group.consumer.max.size"),
            classic_size_max=configs.get_int("group.max.size"),
            assignors=assignors,
            migration=MIGRATION_POLICIES[str(policy).lower()],
        )

    # ------------------------------------------------------------------------------------- actions

    def expire(self, group: ConsumerGroup, member_ids: Sequence[str]) -> None:
        for member_id in member_ids:
            self._remove_member(group, member_id, None, LEAVE_EPOCH)

    def kick(self, group: ConsumerGroup, member_ids: Sequence[str]) -> None:
        for member_id in member_ids:
            instance_id = group.members[member_id].instance_id
            self._remove_member(group, member_id, instance_id, LEAVE_EPOCH)

    def fence_instance(self, group: ConsumerGroup, instance_id: str) -> None:
        member = group.static_member(instance_id)
        if member is None:
            raise ActionError(f"group {group.group_id!r} has no static member {instance_id!r}")
        self._remove_member(group, member.member_id, instance_id, STATIC_LEAVE_EPOCH)
        heartbeat = ConsumerHeartbeat(
            callback=ignore_result,
            member_id=self._runtime.ids.member_suffix(),
            epoch=0,
            instance_id=instance_id,
            rack_id=member.rack_id,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topic_names=member.topic_names,
            regex=member.regex or None,
            assignor=member.assignor,
            reported={},
            client_id=member.client_id,
            client_host=member.client_host,
        )
        self.consumer_heartbeat(group.group_id, heartbeat)

    def _remove_member(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, epoch: int
    ) -> None:
        # By id, because the removal of another member may have downgraded the group.
        leave = ConsumerLeave(
            callback=ignore_result, member_id=member_id, epoch=epoch, instance_id=instance_id
        )
        self.member_leave(group.group_id, leave)

    # -------------------------------------------------------------------------- events and effects

    def _handle(self, group: ConsumerGroup, event: object) -> list[Effect]:
        return handle(group, event, self._shard.now_ms(group.group_id))

    def _carry_out(self, group: ConsumerGroup, effect: object) -> None:
        if isinstance(effect, Downgrade):
            self._downgrade(group, effect)
            return
        assert isinstance(effect, ResolveRegexes)
        # Not if storing has failed and there is no group.
        if self._shard.groups.get(group.group_id) is group:
            self._resolve(group, effect)

    def _resolve(self, group: ConsumerGroup, effect: ResolveRegexes) -> None:
        names = [name for name in self._topics.names() if self._may_match(name)]
        topics: dict[str, frozenset[str]] = {}
        for regex in effect.regexes:
            matches = compile_pattern(regex).fullmatch
            topics[regex] = frozenset(name for name in names if matches(name))
        now_ms = self._shard.now_ms(group.group_id)
        resolved = RegexesResolved(topics, self._topics.version, now_ms)
        self._apply(group, self._handle(group, resolved))

    def _downgrade(self, group: ConsumerGroup, downgrade: Downgrade) -> None:
        now_ms = self._shard.now_ms(group.group_id)
        classic = downgraded(group, downgrade, self._shard.coordinator.settings, now_ms)
        records = group.tombstone_records()
        records.append(group_records.group_metadata(group.group_id, classic.image()))
        error, _ = self._shard.append(records)
        if error is not NONE:
            store = Store(changes=(), answer=downgrade.answer, retry=downgrade.retry)
            self._apply(group, self._handle(group, Stored(store, error)))
            return
        self._shard.classic.start_downgraded(classic, downgrade.rebalance)
        if downgrade.answer is not None:
            self._shard.answer(downgrade.answer.callback, downgrade.answer.result)
