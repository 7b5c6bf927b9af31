"""The classic groups of one shard: their requests in, their effects out.

The runner passes a request to the group's state machine and carries out its effects: it answers
requests, appends records to the shard's partition, and passes the outcome back to the machine.

Source: GroupMetadataManager, classicGroup*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.errors import ActionError
from mockbroker.core.groups import records as group_records
from mockbroker.core.groups.classic import ClassicGroup
from mockbroker.core.groups.emitters import emit_moved
from mockbroker.core.groups.events import (
    NO_MEMBER_ID,
    Delete,
    Effect,
    EndSession,
    Event,
    Join,
    JoinResult,
    Leave,
    Leaver,
    LeaveResult,
    Loaded,
    Persist,
    Persisted,
    Rebalance,
    Reply,
    Sync,
    SyncResult,
    Unload,
)
from mockbroker.core.groups.group import CLASSIC, members_matching, required_members
from mockbroker.core.groups.machine import handle
from mockbroker.core.groups.records import GroupMetadataRecord
from mockbroker.core.groups.runner import Assignments, GroupRunner, answer, ignore_result
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker_protocol.records import Record

NONE = ErrorCode.NONE


class ClassicGroups(GroupRunner[ClassicGroup]):
    """Groups of the classic protocol, and those that only keep offsets."""

    __slots__ = ("_assignment_overrides", "_settings")

    group_type = CLASSIC

    def __init__(self, shard: GroupShard) -> None:
        super().__init__(shard)
        self._settings = shard.coordinator.settings
        # Replaces assignments of the leader by those of `assign`, by group.
        self._assignment_overrides: dict[str, Callable[[Sync], Sync]] = {}

    # -- whole groups ----------------------------------------------------------------------------

    def create_group(self, group_id: str, join: Join) -> None:
        """JoinGroup of an unknown group. It creates the group if the member has no id."""
        shard = self._shard
        if join.member_id != NO_MEMBER_ID:
            error = JoinResult(error=ErrorCode.UNKNOWN_MEMBER_ID, member_id=join.member_id)
            answer(join.callback, error)
        else:
            now_ms = shard.now_ms(group_id)
            group = shard.groups[group_id] = ClassicGroup(group_id, self._settings, now_ms)
            record = group_records.new_group(group_id, now_ms)
            error_code, _ = shard.append((record,))
            if error_code is not NONE:
                del shard.groups[group_id]
                answer(join.callback, JoinResult(error=error_code, member_id=NO_MEMBER_ID))
                return
            self.run(group, join)
        self._fail_unless_replicated(join.callback, JoinResult)

    def create_simple_group(self, group_id: str, now_ms: int) -> ClassicGroup:
        """Create a group that has only offsets and no record of its own (isSimpleGroup)."""
        shard = self._shard
        group = shard.groups[group_id] = ClassicGroup(group_id, self._settings, now_ms)
        shard.mark_changed()
        return group

    def replay_record(self, record: Record, now_ms: int) -> None:
        stored = group_records.parse(record)
        assert isinstance(stored, GroupMetadataRecord)
        group_id = stored.group_id
        if stored.image is not None:
            group = ClassicGroup.restore(group_id, self._settings, stored.image, now_ms)
            self._shard.put_group(group)
        elif self.get(group_id) is not None:
            self._shard.remove_group(group_id)

    def start_downgraded(self, group: ClassicGroup, rebalance: str | None) -> None:
        """Start a group whose downgrade from a consumer group is in the log."""
        self._shard.put_group(group)
        self.run(group, Loaded(rebalance))

    def unload_upgraded(self, group: ClassicGroup) -> None:
        """Unload a group that was upgraded; members that wait are answered to join again."""
        self.run(group, Unload(ErrorCode.REBALANCE_IN_PROGRESS))
        self._shard.remove_group(group.group_id)

    def unload(self, group: ClassicGroup) -> None:
        self.run(group, Unload())

    def on_deleted(self, group: ClassicGroup) -> None:
        self.run(group, Delete())

    # -- requests --------------------------------------------------------------------------------

    def join(self, group: ClassicGroup, join: Join) -> None:
        self.run(group, join)
        self._fail_unless_replicated(join.callback, JoinResult)

    def sync(self, group: ClassicGroup, sync: Sync) -> None:
        if sync.assignments and group.group_id in self._assignment_overrides:
            sync = self._assignment_overrides[group.group_id](sync)
        self.run(group, sync)
        self._fail_unless_replicated(sync.callback, SyncResult)

    def heartbeat(
        self, group: ClassicGroup, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        shard = self._shard
        error = group.heartbeat(member_id, instance_id, generation, shard.now_ms(group.group_id))
        shard.rearm(group)
        return error

    def leave(self, group: ClassicGroup, leave: Leave) -> None:
        results: list[LeaveResult] = []
        self.run(group, Leave(results.append, leave.members))
        self._shard.answer(leave.callback, results[0])

    def _fail_unless_replicated(
        self, callback: object, kind: type[JoinResult | SyncResult]
    ) -> None:
        """Answer a waiting request with an error if the records before it are not replicated in
        time.
        """
        shard = self._shard
        if not shard.is_replicated:
            shard.when_replicated(
                lambda error: answer(callback, kind(error=error)) if error else None
            )

    # -- actions ---------------------------------------------------------------------------------

    def rebalance(self, group: ClassicGroup) -> None:
        if not group.members:
            raise ActionError(f"group {group.group_id!r} has no members")
        self.run(group, Rebalance("requested by an action"))

    def expire(self, group: ClassicGroup, member_ids: Sequence[str]) -> None:
        for member_id in member_ids:
            self.run(group, EndSession(member_id))

    def kick(self, group: ClassicGroup, member_ids: Sequence[str]) -> None:
        leavers = tuple(Leaver(each, group.members[each].instance_id) for each in member_ids)
        self.leave(group, Leave(ignore_result, leavers))

    def fence_instance(self, group: ClassicGroup, instance_id: str) -> None:
        member_id = group.static_members.get(instance_id)
        if member_id is None:
            raise ActionError(f"group {group.group_id!r} has no static member {instance_id!r}")
        member = group.members[member_id]
        self.join(
            group,
            Join(
                callback=ignore_result,
                member_id="",
                new_member_id=f"{instance_id}-{self._runtime.ids.member_suffix()}",
                instance_id=instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                session_timeout_ms=member.session_timeout_ms,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                protocol_type=group.protocol_type or "",
                protocols=member.protocols,
                member_id_required=False,
            ),
        )

    def assign(self, group: ClassicGroup, assignments: Assignments) -> None:
        for pattern in assignments:
            required_members(group, pattern)
        self._assignment_overrides.pop(group.group_id, None)
        if assignments:
            encoded = {pattern: _encoded(topics) for pattern, topics in assignments.items()}
            self._assignment_overrides[group.group_id] = partial(_with_overrides, group, encoded)
        self.run(group, Rebalance("an assignment was set by an action"))

    # -- events and effects ----------------------------------------------------------------------

    def run(self, group: ClassicGroup, event: Event) -> None:
        shard = self._shard
        shard.mark_changed()
        effects = handle(group, event, shard.now_ms(group.group_id))
        self._apply(group, effects)
        shard.rearm(group)

    def _apply(self, group: ClassicGroup, effects: list[Effect]) -> None:
        shard = self._shard
        for effect in effects:
            if isinstance(effect, Reply):
                answer(effect.callback, effect.result)
            elif isinstance(effect, Persist):
                record = group_records.group_metadata(group.group_id, effect.image)
                failed, _ = shard.append((record,))
                shard.when_replicated(partial(self._persisted, group, effect), failed)
            else:
                emit_moved(
                    self._runtime,
                    shard.coordinator.broker_id,
                    group,
                    effect.previous.value,
                    effect.state.value,
                    effect.generation,
                    effect.reason,
                )

    def _persisted(self, group: ClassicGroup, persist: Persist, error: ErrorCode) -> None:
        self.run(group, Persisted(persist, error))


def _with_overrides(group: ClassicGroup, overrides: Mapping[str, bytes], sync: Sync) -> Sync:
    """A leader's SyncGroup with the overridden assignments."""
    assignments = dict(sync.assignments)
    for pattern, assignment in overrides.items():
        for member_id in members_matching(group, pattern):
            assignments[member_id] = assignment
    return msgspec.structs.replace(sync, assignments=assignments)


def _encoded(topics: Mapping[str, Sequence[int]]) -> bytes:
    """An assignment in the format of the consumer protocol."""
    from mockbroker_protocol.consumer_protocol import encode_assignment
    from mockbroker_protocol.messages.consumer_protocol import (
        ConsumerProtocolAssignment,
        TopicPartition,
    )

    return encode_assignment(
        ConsumerProtocolAssignment(
            assigned_partitions=[
                TopicPartition(topic, list(partitions)) for topic, partitions in topics.items()
            ]
        ),
        0,
    )
