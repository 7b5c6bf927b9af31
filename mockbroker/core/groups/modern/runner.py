"""The runner of groups whose members do not join by the classic protocol.

A request is passed to the group's state machine. Its changes are appended to the shard's partition
as one batch, then applied, then answered. The first batch creates the group. If the group replaces
a classic group, the batch begins with the tombstone of the classic group.

The configs of a group are read again when a config has changed. Requests of the classic protocol
are refused, as GroupMetadataManager does for share and streams groups; consumer groups override
that, because classic members may be in them.

Source: GroupCoordinatorShard, GroupCoordinatorService and GroupMetadataManager.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from mockbroker.core.errors import ActionError, ApiError
from mockbroker.core.groups.emitters import emit_moved
from mockbroker.core.groups.events import (
    NO_MEMBER_ID,
    Join,
    JoinResult,
    Leave,
    Reply,
    Result,
    Sync,
    SyncResult,
    Unload,
)
from mockbroker.core.groups.group import required_members
from mockbroker.core.groups.modern.events import (
    JOIN_EPOCH,
    GroupChange,
    Store,
    Stored,
    StoredChange,
    TargetAssignmentChange,
    TargetEpochChange,
)
from mockbroker.core.groups.modern.group import ModernGroup
from mockbroker.core.groups.records import KeyValue
from mockbroker.core.groups.runner import Assignments, GroupRunner, answer, unknown_members
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker_protocol.records import Record

S = TypeVar("S")
G = TypeVar("G", bound=ModernGroup[Any, Any, Any, Any])
NONE = ErrorCode.NONE


class MemberHeartbeat(Protocol):
    """The heartbeat of a member that joins or stays."""

    @property
    def callback(self) -> object: ...

    @property
    def epoch(self) -> int: ...


class MemberLeave(Protocol):
    """The heartbeat of a member that leaves."""

    @property
    def callback(self) -> object: ...


class Observed(NamedTuple):
    """A group before a change, for the journal. `members` only if their changes are events."""

    state: Enum
    epoch: int
    members: dict[str, Any]


class ModernRunner(GroupRunner[G], Generic[G, S]):
    """Groups of type G; S are the settings of one group."""

    group: ClassVar[type[ModernGroup[Any, Any, Any, Any]]]

    __slots__ = ("_settings", "_settings_version", "_topics")

    def __init__(self, shard: GroupShard) -> None:
        super().__init__(shard)
        self._topics = shard.coordinator.topics
        self._settings: dict[str, S] = {}
        self._settings_version = -1

    # ------------------------------------------------------------------------------------ settings

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

    # ------------------------------------------------------------------- requests of the protocol

    def member_heartbeat(self, group_id: str, heartbeat: MemberHeartbeat) -> None:
        """A member joins or stays. The first member creates the group."""
        preceding: list[KeyValue] = []
        try:
            group = self.get(group_id)
            if group is None:
                noun = self.group_type.capitalize()
                if heartbeat.epoch != JOIN_EPOCH:
                    raise self.not_found(group_id, f"{noun} group {group_id} not found.")
                group = self.new_group(group_id, preceding)
        except ApiError as refused:
            self._refuse(heartbeat.callback, refused)
        else:
            self._run(group, heartbeat, preceding)

    def member_leave(self, group_id: str, leave: MemberLeave) -> None:
        """A member leaves."""
        group = self.get(group_id)
        if group is None:
            self._refuse(leave.callback, self.not_found(group_id, f"Group {group_id} not found."))
        else:
            self.run(group, leave)

    def not_found(self, group_id: str, message: str) -> ApiError:
        """The error for a group that does not exist, with `message`, or has another type."""
        if group_id in self._shard.groups:
            message = f"Group {group_id} is not a {self.group_type} group."
        return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)

    @abstractmethod
    def new_group(self, group_id: str, preceding: list[KeyValue]) -> G:
        """A new group, which is not in the shard's table yet. The records that remove a group with
        this id are added to `preceding`.

        Raises ApiError if a group with this id cannot be replaced.
        """

    def _empty_group(self, group_id: str) -> G:
        new: Any = self.group
        group: G = new(group_id, self.settings(group_id), self._topics)
        return group

    @staticmethod
    @abstractmethod
    def refusal(error: ErrorCode, message: str | None) -> Result:
        """The answer to a refused heartbeat."""

    def _refuse(self, callback: object, refused: ApiError) -> None:
        self._shard.answer(callback, self.refusal(refused.error, refused.message))

    # ----------------------------------------------------------- requests of the classic protocol

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

    def replace_by_classic(self, group: G, join: Join) -> None:
        """JoinGroup of an empty group: a new classic group replaces it."""
        shard, group_id = self._shard, group.group_id
        if join.member_id == NO_MEMBER_ID:
            error, _ = shard.append(group.tombstone_records())
            if error is not NONE:
                answer(join.callback, JoinResult(error=error, member_id=NO_MEMBER_ID))
                return
            shard.remove_group(group_id)
        shard.classic.create_group(group_id, join)

    # -------------------------------------------------------------------------------- whole groups

    def unload(self, group: G) -> None:
        self._handle(group, Unload())  # no request waits

    def on_deleted(self, group: G) -> None:
        self._handle(group, Unload())

    def replay_record(self, record: Record, now_ms: int) -> None:
        """Apply a change from the log. A change that is no tombstone creates the group."""
        stored = self.group.record_types.parse(record)
        assert stored is not None
        group_id, change = stored
        group = self.get(group_id)
        if group is None:
            if change.is_tombstone:
                return
            # It replaces the simple group that the offsets of this group have created.
            group = self._empty_group(group_id)
            self._shard.put_group(group)
        group.timers.now_ms = now_ms
        group.apply((change,))
        if isinstance(change, GroupChange) and group.dead:
            self._shard.remove_group(group_id)

    # ------------------------------------------------------------------------------------- actions

    def rebalance(self, group: G) -> None:
        self.store_changes(group, (group.next_epoch(),))

    def kick(self, group: G, member_ids: Sequence[str]) -> None:
        self.expire(group, member_ids)

    def assign(self, group: G, assignments: Assignments) -> None:
        targets: dict[str, object] = {}
        for pattern, topics in assignments.items():
            target = {self._topic_id(topic): frozenset(ps) for topic, ps in topics.items()}
            targets.update(dict.fromkeys(required_members(group, pattern), target))
        self.store_targets(group, targets)

    def _topic_id(self, name: str) -> bytes:
        topic = self._topics.by_name(name)
        if topic is None:
            raise ActionError(f"there is no topic {name!r}")
        return topic.topic_id

    def store_targets(self, group: G, targets: dict[str, Any]) -> None:
        """Override the targets of some members; without any, the assignor runs again."""
        change = group.next_epoch()
        changes: list[StoredChange] = [change]
        changes += (TargetAssignmentChange(*each) for each in targets.items())
        if targets:
            changes.append(TargetEpochChange(change.epoch, self._runtime.now_ms()))
        self.store_changes(group, tuple(changes))

    def store_changes(self, group: G, changes: tuple[StoredChange, ...]) -> None:
        """Store and apply the changes of an action."""
        self._apply(group, [Store(changes=changes)])

    # -------------------------------------------------------------------------- events and effects

    def run(self, group: G, event: object) -> None:
        self._run(group, event, ())

    def _run(self, group: G, event: object, preceding: Iterable[KeyValue]) -> None:
        """Handle an event. The records in `preceding` are stored before those of the group."""
        shard = self._shard
        shard.mark_changed()
        group.settings = self.settings(group.group_id)
        self._apply(group, self._handle(group, event), preceding)
        if shard.groups.get(group.group_id) is group:
            shard.rearm(group)

    @abstractmethod
    def _handle(self, group: G, event: object) -> Sequence[object]:
        """The effects of an event."""

    def _apply(
        self, group: G, effects: Sequence[object], preceding: Iterable[KeyValue] = ()
    ) -> None:
        for effect in effects:
            if isinstance(effect, Reply):
                self._reply(group, effect)
            elif isinstance(effect, Store):
                self._store(group, effect, preceding)
            else:
                self._carry_out(group, effect)

    def _reply(self, group: G, reply: Reply) -> None:  # noqa: ARG002
        self._shard.answer(reply.callback, reply.result)

    def _carry_out(self, group: G, effect: object) -> None:
        """Carry out an effect that only this protocol has."""

    def _store(self, group: G, store: Store, preceding: Iterable[KeyValue]) -> None:
        before = self._observed(group) if self._runtime.on_event else None
        error, created = self._append(group, store.changes, preceding)
        self._apply(group, self._handle(group, Stored(store, error, created)))
        if before is not None:
            self._emit(group, before)

    def _append(
        self, group: G, changes: Iterable[StoredChange], preceding: Iterable[KeyValue] = ()
    ) -> tuple[ErrorCode, bool]:
        """Append changes as one batch, which puts a new group into the table: the error, and
        whether the group is new.
        """
        shard, group_id = self._shard, group.group_id
        record_of = self.group.record_types.record_of
        error, _ = shard.append([*preceding, *(record_of(group_id, each) for each in changes)])
        created = error is NONE and shard.groups.get(group_id) is not group
        if created:
            classic = shard.classic.get(group_id)
            if classic is not None:
                shard.classic.unload_upgraded(classic)
            shard.put_group(group)
        return error, created

    def _observed(self, group: G) -> Observed:
        return Observed(group.state, group.epoch, {})

    def _emit(self, group: G, before: Observed) -> None:
        if (before.state, before.epoch) != (group.state, group.epoch):
            emit_moved(
                self._runtime,
                self._node_id,
                group,
                str(before.state.value),
                group.state_name,
                group.epoch,
            )

    @property
    def _node_id(self) -> int:
        return self._shard.coordinator.broker_id


def group_ints(configs: ClusterConfigs, group_id: str, noun: str, *names: str) -> dict[str, int]:
    """Group configs by the names of the settings: `consumer` and `size_max` are
    `consumer.size.max`.
    """
    found: dict[str, int] = {}
    for name in names:
        value = configs.group_value(group_id, f"{noun}.{name.replace('_', '.')}")
        assert isinstance(value, int)
        found[name] = value
    return found
