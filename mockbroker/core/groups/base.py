"""The state of a classic group, its checks, and its answers to members.

The lowest of three layers of one class: `ClassicGroupBase` holds the state, `ClassicGroupRebalance`
runs the join and sync phases, `ClassicGroup` handles the events. Each calls only itself and the
layer below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeVar

import msgspec

from mockbroker.core.groups.events import (
    NO_LEADER,
    NO_MEMBER_ID,
    Effect,
    GroupImage,
    JoinResult,
    MemberImage,
    Moved,
    Reply,
    SyncResult,
)
from mockbroker.core.groups.group import CLASSIC, CONSUMER_PROTOCOL_TYPE, commit_age_ms
from mockbroker.core.groups.lazy_timers import LazyTimerHeap
from mockbroker.core.groups.members import Member, Roster
from mockbroker.core.groups.records import KeyValue, group_tombstone
from mockbroker.core.groups.states import (
    ANSWERS,
    HEARTBEAT_ANSWERS,
    TRANSITIONS,
    RequestAction,
    RequestKind,
    State,
    Trigger,
)
from mockbroker.core.groups.subscriptions import subscribed_topics
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.groups.offsets import OffsetAndMetadata

NONE = ErrorCode.NONE
G = TypeVar("G", bound="ClassicGroupBase")


class ClassicGroupSettings(msgspec.Struct, kw_only=True):
    """The broker configs group.initial.rebalance.delay.ms and group.max.size."""

    initial_rebalance_delay_ms: int = 0
    size_max: int = 2_147_483_647


class ClassicGroupBase:
    """State and checks of one group. Public attributes are for reading."""

    group_type: ClassVar[str] = CLASSIC

    __slots__ = (
        "_clock_target_ms",
        "_initial_remaining_ms",
        "_join_deadline_ms",
        "_new_member_added",
        "_out",
        "_previous_state",
        "_session_timers",
        "_sync_deadline_ms",
        "generation",
        "group_id",
        "pending_sync",
        "protocol_name",
        "roster",
        "settings",
        "state",
        "state_timestamp_ms",
        "subscriptions",
    )

    def __init__(self, group_id: str, settings: ClassicGroupSettings, now_ms: int) -> None:
        self.group_id = group_id
        self.settings = settings
        self.state = State.EMPTY
        self.state_timestamp_ms = now_ms
        self.generation = 0
        self.protocol_name: str | None = None
        self.roster = Roster()
        # Members of this generation that have not sent SyncGroup; a dict for its order.
        self.pending_sync: dict[str, None] = {}
        # The members' metadata for the generation's protocol; None before the first generation.
        self.subscriptions: tuple[bytes, ...] | None = None
        self._previous_state = State.DEAD
        self._session_timers = LazyTimerHeap()
        self._join_deadline_ms: int | None = None
        self._sync_deadline_ms: int | None = None
        # Of an initial rebalance: the running delay and the remaining one.
        self._initial_remaining_ms: tuple[int, int] | None = None
        self._new_member_added = False
        # The target of a clock advance: members' timers armed before it start there.
        self._clock_target_ms = 0
        self._out: list[Effect] = []

    @classmethod
    def restore(
        cls: type[G], group_id: str, settings: ClassicGroupSettings, image: GroupImage, now_ms: int
    ) -> G:
        """The group of a stored `image`, without timers and waiting requests.

        A Loaded event, once the whole log is read, starts the sessions.
        """
        group = cls(group_id, settings, now_ms)
        if image.state_timestamp_ms >= 0:
            group.state_timestamp_ms = image.state_timestamp_ms
        group.generation = image.generation
        group.protocol_name = image.protocol
        group.roster = Roster(image.protocol_type or None, image.leader)
        for line in image.members:
            member = Member(
                line.member_id,
                line.instance_id,
                line.client_id,
                line.client_host,
                line.rebalance_timeout_ms,
                line.session_timeout_ms,
                ((image.protocol or "", line.subscription),),
                line.assignment,
            )
            group.roster.add(member, image.protocol_type)
        if image.members:
            group.state = State.STABLE
        group.subscriptions = tuple(line.subscription for line in image.members)
        return group

    # ----------------------------------------------------------------------------------- checks

    @property
    def members(self) -> Mapping[str, Member]:
        return self.roster.members

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        return self.roster.protocol_type or ""

    @property
    def protocol(self) -> str | None:
        return self.protocol_name

    @property
    def generation_or_epoch(self) -> int:
        return self.generation

    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    def is_consumer(self) -> bool:
        """Whether members speak the consumer protocol, whose subscriptions a broker can read."""
        return self.roster.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member may be reading `topic`; groups of other protocol types read nothing."""
        topics = subscribed_topics(self)
        return self.is_consumer() if topics is None else topic in topics

    def tombstone_records(self) -> list[KeyValue]:
        return [group_tombstone(self.group_id)]

    def offset_age(self) -> Callable[[OffsetAndMetadata], int] | None:
        """Since the transition to Empty; in a simple group, and in a Stable consumer group with
        readable subscriptions, since the commit.
        """
        if self.roster.protocol_type is None:
            return commit_age_ms
        if self.state is State.EMPTY:
            return partial(_same_age_ms, self.state_timestamp_ms)
        known = self.state is State.STABLE and subscribed_topics(self) is not None
        return commit_age_ms if known else None

    def image(self, assignments: Mapping[str, bytes] | None = None) -> GroupImage:
        """The group for a record; `assignments`, if given, replaces those of the members."""
        roster = self.roster
        protocol = self.protocol_name
        return GroupImage(
            roster.protocol_type or "",
            self.generation,
            protocol,
            roster.leader,
            self.state_timestamp_ms,
            tuple(
                MemberImage(
                    m.member_id,
                    m.instance_id,
                    m.client_id,
                    m.client_host,
                    m.rebalance_timeout_ms,
                    m.session_timeout_ms,
                    m.metadata(protocol),
                    m.assignment if assignments is None else assignments.get(m.member_id, b""),
                )
                for m in roster.members.values()
            ),
        )

    def validate_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """NONE, UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if the instance has a newer member."""
        if instance_id is not None:
            holder = self.roster.static.get(instance_id)
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if holder != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        if member_id not in self.roster.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return NONE

    def heartbeat(
        self, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> ErrorCode:
        """The answer to a Heartbeat. One of the current generation renews the member's session."""
        verdict = HEARTBEAT_ANSWERS[self.state]
        if self.state is State.DEAD:
            return verdict
        error = self.validate_member(member_id, instance_id)
        if error is not NONE:
            return error
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self._renew(self.roster.members[member_id], now_ms)
        return verdict

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        now_ms: int,
        *,
        transactional: bool = False,
        version: int = 0,  # noqa: ARG002 (only for consumer groups)
    ) -> ErrorCode:
        """Whether offsets may be committed; a member's own commit renews its session."""
        state = self.state
        if state is State.DEAD or (generation < 0 and state is State.EMPTY):
            verdict = ANSWERS[state][RequestKind.PLAIN_COMMIT]
            assert isinstance(verdict, ErrorCode)
            return verdict
        known = generation >= 0 or member_id != NO_MEMBER_ID or instance_id is not None
        if known:
            error = self.validate_member(member_id, instance_id)
            if error is not NONE:
                return error
            if generation != self.generation:
                return ErrorCode.ILLEGAL_GENERATION
        kind = (
            RequestKind.TXN_COMMIT
            if transactional
            else RequestKind.COMMIT
            if known
            else RequestKind.PLAIN_COMMIT
        )
        verdict = ANSWERS[state][kind]
        assert isinstance(verdict, ErrorCode)
        if verdict is NONE and not transactional:
            self._renew(self.roster.members[member_id], now_ms)
        return verdict

    def check_partition(
        self,
        member_id: str,  # noqa: ARG002
        epoch: int,  # noqa: ARG002
        topic_id: bytes,  # noqa: ARG002
        partition: int,  # noqa: ARG002
        *,
        transactional: bool = False,  # noqa: ARG002
    ) -> ErrorCode:
        """A member may commit for any partition."""
        return NONE

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:  # noqa: ARG002
        """Anybody may fetch offsets."""
        return NONE

    def check_offset_delete(self) -> ErrorCode:
        verdict = ANSWERS[self.state][RequestKind.DELETE_OFFSETS]
        if isinstance(verdict, ErrorCode):
            return verdict
        assert verdict is RequestAction.UNSUBSCRIBED
        return NONE if self.is_consumer() else ErrorCode.NON_EMPTY_GROUP

    def check_delete(self) -> ErrorCode:
        verdict = ANSWERS[self.state][RequestKind.DELETE_GROUP]
        assert isinstance(verdict, ErrorCode)
        return verdict

    # ------------------------------------------------------------------------- transitions, timers

    def _move(self, trigger: Trigger, reason: str, now_ms: int) -> None:
        """The only place that writes the state."""
        previous, self.state = self.state, TRANSITIONS[self.state][trigger]
        self._previous_state = previous
        self.state_timestamp_ms = now_ms
        self._out.append(Moved(previous, self.state, self.generation, reason))

    def _renew(self, member: Member, now_ms: int) -> None:
        self._session_timers.arm(member, self._timer_start_ms(now_ms) + member.session_timeout_ms)

    def _timer_start_ms(self, now_ms: int) -> int:
        """The time from which a member's timer counts: not before the end of a clock advance."""
        return max(now_ms, self._clock_target_ms)

    def spare(self, connected: Callable[[str], bool], by_ms: int, now_ms: int) -> None:
        """Extend the timers of connected members by `by_ms`, because the clock is about to advance;
        also those armed during the advance.
        """
        spared = [each for each in self.roster.members.values() if connected(each.member_id)]
        if not spared:
            return
        self._clock_target_ms = now_ms + by_ms
        for member in spared:
            self._session_timers.postpone(member, by_ms)
        if self._join_deadline_ms is not None and self._initial_remaining_ms is None:
            self._join_deadline_ms += by_ms
        if self._sync_deadline_ms is not None:
            self._sync_deadline_ms += by_ms

    def _joined(
        self, member: Member, *, leader: str | None = None, skip_assignment: bool = False
    ) -> JoinResult:
        """The answer of success; only the leader gets the members, unless `leader` is given."""
        roster = self.roster
        lists = leader is None and roster.leader == member.member_id
        return JoinResult(
            error=NONE,
            member_id=member.member_id,
            generation=self.generation,
            protocol_type=roster.protocol_type,
            protocol_name=self.protocol_name,
            leader=(roster.leader or NO_LEADER) if leader is None else leader,
            skip_assignment=skip_assignment,
            members=roster.listing(self.protocol_name) if lists else (),
        )

    def _synced(self, member: Member) -> SyncResult:
        return SyncResult(
            error=NONE,
            protocol_type=self.roster.protocol_type,
            protocol_name=self.protocol_name,
            assignment=member.assignment,
        )

    def _remove_member(self, member: Member) -> None:
        """Remove a member and answer its waiting requests."""
        self._fail_waiting_requests(member, ErrorCode.UNKNOWN_MEMBER_ID, NO_MEMBER_ID)
        self._session_timers.cancel(member)
        self.roster.remove(member)
        self.pending_sync.pop(member.member_id, None)

    def _remove_pending_member(self, member_id: str) -> bool:
        timer = self.roster.pending.pop(member_id, None)
        if timer is None:
            return False
        self._session_timers.cancel(timer)
        return True

    def _fail_waiting_requests(self, member: Member, error: ErrorCode, member_id: str) -> None:
        slot = self.roster.take_join(member)
        if slot is not None:
            self._out.append(Reply(slot, join_error(error, member_id)))
        slot, member.sync_slot = member.sync_slot, None
        if slot is not None:
            self._out.append(Reply(slot, SyncResult(error=error)))


def join_error(error: ErrorCode, member_id: str) -> JoinResult:
    return JoinResult(error=error, member_id=member_id)


def _same_age_ms(since_ms: int, _: OffsetAndMetadata) -> int:
    return since_ms
