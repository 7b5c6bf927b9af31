"""The consumer groups of one shard: their requests in, their effects out.

A request is put to the group's machine; what that wants stored goes into the shard's partition as
one batch, and only then is it applied and answered. A group comes into being with the first batch
of its own. If it takes the place of a classic group, that one's tombstone leads the same batch.

Source: GroupCoordinatorShard and GroupMetadataManager.getOrMaybeCreateConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.groups import records as group_records
from mockbroker.core.groups.consumer.events import (
    Answer,
    Change,
    ConsumerHeartbeat,
    ConsumerLeave,
    ConsumerResult,
    Downgrade,
    Effect,
    GroupChange,
    RegexesResolved,
    ResolveRegexes,
    Store,
    Stored,
    is_tombstone,
)
from mockbroker.core.groups.consumer.group import ConsumerGroup, ConsumerSettings
from mockbroker.core.groups.consumer.migration import downgraded, upgraded
from mockbroker.core.groups.consumer.records import record_of
from mockbroker.core.groups.consumer.regex import compile_regex
from mockbroker.core.groups.consumer.states import JOIN_EPOCH, MIGRATION_POLICIES
from mockbroker.core.groups.events import (
    NO_MEMBER_ID,
    Heartbeat,
    Join,
    Leave,
    Loaded,
    Sync,
    Tick,
    Unload,
)
from mockbroker.core.groups.records import KeyValue
from mockbroker.core.groups.states import State
from mockbroker.core.groups.told import tell_consumer
from mockbroker.core.ids import uuid_text
from mockbroker.core.timers import DueTimers
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.groups.shard import GroupShard

NONE = ErrorCode.NONE
MaySee = Callable[[str], bool]


def _sees_all(topic: str) -> bool:  # noqa: ARG001
    """Without an authorizer every topic may be seen."""
    return True


class ConsumerGroups:
    """By group id, in `groups`; no id is also that of a classic group of the shard."""

    __slots__ = (
        "_cluster",
        "_may_see",
        "_settings",
        "_settings_version",
        "_shard",
        "_timers",
        "_topics",
        "groups",
    )

    def __init__(self, shard: GroupShard, cluster: Cluster) -> None:
        self._shard = shard
        self._cluster = cluster
        self._topics = shard.coordinator.topics
        self._settings: dict[str, ConsumerSettings] = {}
        self._settings_version = -1
        self._timers = DueTimers()
        self.groups: dict[str, ConsumerGroup] = {}
        # While a member's heartbeat is taken: tells of a topic whether that member may see it.
        self._may_see: MaySee = _sees_all

    # -------------------------------------------------------------- members of the new protocol

    def heartbeat(
        self, group_id: str, beat: ConsumerHeartbeat, may_see: MaySee | None = None
    ) -> None:
        """ConsumerGroupHeartbeat of a member that joins or stays.

        `may_see` tells of a topic whether a regular expression of the group may match it: what
        this member may not describe is not looked up for it, nor for the others.
        """
        self._may_see = may_see or _sees_all
        try:
            self._beat(group_id, beat)
        finally:
            self._may_see = _sees_all

    def _beat(self, group_id: str, beat: ConsumerHeartbeat) -> None:
        now_ms = self._shard.now_ms(group_id)
        group = self.groups.get(group_id)
        prelude: list[KeyValue] = []
        if group is None:
            group = self._new(group_id, prelude, now_ms) if beat.epoch == JOIN_EPOCH else None
        if group is None:
            self._shard.answer(beat.slot, _refusal(ErrorCode.GROUP_ID_NOT_FOUND))
        else:
            self._run(group, beat, prelude)

    def leave(self, group_id: str, leave: ConsumerLeave) -> None:
        """ConsumerGroupHeartbeat of a member that leaves."""
        group = self.groups.get(group_id)
        if group is None:
            self._shard.answer(leave.slot, _refusal(ErrorCode.GROUP_ID_NOT_FOUND))
        else:
            self._run(group, leave)

    def _new(self, group_id: str, prelude: list[KeyValue], now_ms: int) -> ConsumerGroup | None:
        """A group of this id, and the records that go before its first; None if it may not be."""
        settings = self.settings(group_id)
        classic = self._shard.groups.get(group_id)
        if classic is None:
            return ConsumerGroup(group_id, settings, self._topics)
        prelude.append(group_records.group_tombstone(group_id))
        if classic.state is State.EMPTY:
            return ConsumerGroup(group_id, settings, self._topics)
        made = upgraded(classic, settings, self._topics, now_ms)
        if made is None:
            return None
        group, changes = made
        prelude += (record_of(group_id, change) for change in changes)
        return group

    def change(self, group_id: str, changes: tuple[Change, ...]) -> None:
        """Store and apply changes that nobody in the group has caused."""
        group = self.groups[group_id]
        self._perform(group, [Store(changes=changes)])
        self._rearm(group)

    # ---------------------------------------------------------- members of the classic protocol

    def join(self, group_id: str, join: Join) -> bool:
        """JoinGroup, if it is for a consumer group with members; an empty one makes room."""
        group = self.groups.get(group_id)
        if group is None:
            return False
        if group.is_empty():
            if join.member_id == NO_MEMBER_ID:
                tombstones = [record_of(group_id, change) for change in group.tombstones()]
                error, _ = self._shard.append(tombstones)
                if error is NONE:
                    self._forget(group_id)
            return False
        if join.member_id == NO_MEMBER_ID:
            member_id = uuid_text(self._cluster.ids.uuid())
            join = msgspec.structs.replace(join, new_member_id=member_id)
        self._run(group, join)
        return True

    def tell(self, group_id: str, event: Sync | Heartbeat | Leave) -> bool:
        """SyncGroup, Heartbeat or LeaveGroup, if it is for a consumer group."""
        group = self.groups.get(group_id)
        if group is None:
            return False
        self._run(group, event)
        return True

    # -------------------------------------------------------------------------------- whole groups

    def reads(self, group_id: str) -> Callable[[str], bool] | None:
        """Tells of a topic whether the group subscribes to it; None if it is no consumer group."""
        group = self.groups.get(group_id)
        return None if group is None else group.is_subscribed

    def check_partition(
        self,
        group_id: str,
        member_id: str,
        epoch: int,
        topic_id: bytes,
        partition: int,
        *,
        transactional: bool = False,
    ) -> ErrorCode:
        """Whether a commit that `GroupShard.check_commit` let pass may be for this partition."""
        group = self.groups.get(group_id)
        if group is None:
            return NONE
        return group.check_partition(
            member_id, epoch, topic_id, partition, transactional=transactional
        )

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether OffsetFetch may be answered to this member; groups of other kinds do not mind."""
        group = self.groups.get(group_id)
        return NONE if group is None else group.check_fetch(member_id, epoch)

    def delete(self, group_id: str) -> ErrorCode:
        """DeleteGroups: an Empty group goes, with all its offsets."""
        group = self.groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        error = group.check_delete()
        if error is NONE:
            tombstones = [record_of(group_id, change) for change in group.tombstones()]
            error = self._shard.append_end(group_id, tombstones)
        if error is NONE:
            self._forget(group_id)
        return error

    def settings(self, group_id: str) -> ConsumerSettings:
        """The configuration of one group, as of now."""
        configs = self._cluster.configs
        if self._settings_version != configs.version:
            self._settings.clear()
            self._settings_version = configs.version
        settings = self._settings.get(group_id)
        if settings is None:
            settings = self._settings[group_id] = _settings(self._cluster, group_id)
        return settings

    # ---------------------------------------------------------------------------- coming and going

    def replay(self, group_id: str, change: Change) -> None:
        """Take in a change that the log says. A group begins with anything but a tombstone."""
        group = self.groups.get(group_id)
        if group is None:
            if is_tombstone(change):
                return
            # A classic group without a record of its own may have come of the group's offsets.
            self._shard.forget_group(group_id)
            settings = self.settings(group_id)
            group = self.groups[group_id] = ConsumerGroup(group_id, settings, self._topics)
        group.apply((change,))
        if isinstance(change, GroupChange) and group.dead:
            self._forget(group_id)

    def start(self) -> None:
        """The log is read: sessions start to run."""
        for group in list(self.groups.values()):
            self._run(group, Loaded())

    def unload(self) -> None:
        """Let go of everything; nobody waits here."""
        for group in list(self.groups.values()):
            group.handle(Unload(), self._shard.now_ms(group.group_id))
            self._forget(group.group_id)

    def _forget(self, group_id: str) -> None:
        self.groups.pop(group_id, None)
        self._timers.forget(group_id)

    # ----------------------------------------------------------------------------------- the inside

    def _run(self, group: ConsumerGroup, event: object, prelude: Iterable[KeyValue] = ()) -> None:
        self._shard.touch()
        group.settings = self.settings(group.group_id)
        effects = group.handle(event, self._shard.now_ms(group.group_id))
        self._perform(group, effects, prelude)
        if self.groups.get(group.group_id) is group:
            self._rearm(group)

    def _perform(
        self, group: ConsumerGroup, effects: list[Effect], prelude: Iterable[KeyValue] = ()
    ) -> None:
        for effect in effects:
            if isinstance(effect, Answer):
                self._shard.answer(effect.slot, effect.result)
            elif isinstance(effect, Store):
                self._store(group, effect, prelude)
            elif isinstance(effect, ResolveRegexes):
                # Not if storing has failed and there is no group.
                if self.groups.get(group.group_id) is group:
                    self._resolve(group, effect)
            else:
                self._downgrade(group, effect)

    def _store(self, group: ConsumerGroup, store: Store, prelude: Iterable[KeyValue]) -> None:
        now_ms = self._shard.now_ms(group.group_id)
        group_id = group.group_id
        records = [*prelude, *(record_of(group_id, change) for change in store.changes)]
        watched = bool(self._cluster.on_event)
        former = (group.state, group.epoch) if watched else None
        error, _ = self._shard.append(records)
        if error is NONE and group_id not in self.groups:
            classic = self._shard.groups.get(group_id)
            if classic is not None:
                self._shard.displace(classic)
            self.groups[group_id] = group
        self._perform(group, group.handle(Stored(store, error), now_ms))
        if former is not None and former != (group.state, group.epoch):
            tell_consumer(self._cluster, group, former[0])

    def _resolve(self, group: ConsumerGroup, effect: ResolveRegexes) -> None:
        names = [name for name in self._topics.names() if self._may_see(name)]
        topics: dict[str, frozenset[str]] = {}
        for regex in effect.regexes:
            matches = compile_regex(regex).fullmatch
            topics[regex] = frozenset(name for name in names if matches(name))
        now_ms = self._shard.now_ms(group.group_id)
        resolved = RegexesResolved(topics, self._topics.version, now_ms)
        self._perform(group, group.handle(resolved, now_ms))

    def _downgrade(self, group: ConsumerGroup, plan: Downgrade) -> None:
        now_ms = self._shard.now_ms(group.group_id)
        group_id = group.group_id
        classic = downgraded(group, plan, self._shard.settings, now_ms)
        records = [record_of(group_id, change) for change in group.tombstones()]
        records.append(group_records.group_metadata(group_id, classic.image()))
        error, _ = self._shard.append(records)
        if error is not NONE:
            store = Store(changes=(), answer=plan.answer, retry=plan.retry)
            self._perform(group, group.handle(Stored(store, error), now_ms))
            return
        self._forget(group_id)
        self._shard.adopt(classic, plan.rebalance)
        if plan.answer is not None:
            self._shard.answer(plan.answer.slot, plan.answer.result)

    def rearm_anew(self, group_id: str) -> None:
        """Set a group's timer again, because the group lives by another time from now on."""
        group = self.groups.get(group_id)
        if group is not None:
            self._timers.forget(group_id)
            self._rearm(group)

    def _rearm(self, group: ConsumerGroup) -> None:
        """Have the cluster's timers call when the group is due, unless they will earlier anyway."""
        group_id = group.group_id
        times = self._cluster.time_scopes.of_group(group_id)
        self._timers.arm(times, group_id, group.deadline_ms(), self._on_timer)

    def _on_timer(self, group_id: str) -> None:
        self._run(self.groups[group_id], Tick())


def _settings(cluster: Cluster, group_id: str) -> ConsumerSettings:
    def own(name: str) -> int:
        value = cluster.configs.group_value(group_id, name)
        assert isinstance(value, int)
        return value

    policy = cluster.config("group.consumer.migration.policy")
    return ConsumerSettings(
        session_timeout_ms=own("consumer.session.timeout.ms"),
        heartbeat_interval_ms=own("consumer.heartbeat.interval.ms"),
        assignment_interval_ms=own("consumer.assignment.interval.ms"),
        regex_refresh_interval_ms=cluster.config_int("group.consumer.regex.refresh.interval.ms"),
        size_max=cluster.config_int("group.consumer.max.size"),
        classic_size_max=cluster.config_int("group.max.size"),
        assignors=tuple(cluster.config("group.consumer.assignors")),
        migration=MIGRATION_POLICIES[str(policy).lower()],
    )


def _refusal(error: ErrorCode) -> ConsumerResult:
    return ConsumerResult(error=error, message=error.sentence)
