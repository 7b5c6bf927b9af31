"""A classic group: its members, its state, and the checks that need no more than these.

`groups.machine` handles the events of the group. Counts are kept as members come and go, so that
"has everybody joined" and "does everybody support this protocol" cost the same for 5 members as for
5,000. Members are in the order in which they were added, so that runs repeat; Kafka's maps have no
order.

Source: ClassicGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import msgspec

from mockbroker.core.groups.events import (
    NO_LEADER,
    NO_MEMBER_ID,
    Effect,
    GroupImage,
    JoinedMember,
    JoinResult,
    MemberImage,
    Moved,
    Protocols,
    Reply,
    SyncResult,
)
from mockbroker.core.groups.group import CLASSIC, CONSUMER_PROTOCOL_TYPE, commit_timestamp_ms
from mockbroker.core.groups.lazy_timers import LazyTimer, LazyTimerHeap
from mockbroker.core.groups.members import Member
from mockbroker.core.groups.records import KeyValue, group_tombstone
from mockbroker.core.groups.states import (
    ANSWERS,
    HEARTBEAT_ANSWERS,
    TRANSITIONS,
    ClassicGroupState,
    RequestAction,
    RequestKind,
    Trigger,
)
from mockbroker.core.groups.subscriptions import subscribed_topics
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.groups.offsets import OffsetAndMetadata

NONE = ErrorCode.NONE


class ClassicGroupSettings(msgspec.Struct, kw_only=True):
    """The broker configs group.initial.rebalance.delay.ms and group.max.size."""

    initial_rebalance_delay_ms: int = 0
    size_max: int = 2_147_483_647


class ClassicGroup:
    """One group. Only the group itself, `machine` and `rebalance` write its attributes."""

    group_type: ClassVar[str] = CLASSIC

    __slots__ = (
        "_clock_target_ms",
        "_supported_protocols",
        "effects",
        "generation",
        "group_id",
        "initial_remaining_ms",
        "join_deadline_ms",
        "leader",
        "members",
        "members_awaiting_join",
        "new_member_added",
        "pending_join_members",
        "pending_sync_members",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "session_timers",
        "settings",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscriptions",
        "sync_deadline_ms",
    )

    def __init__(self, group_id: str, settings: ClassicGroupSettings, now_ms: int) -> None:
        self.group_id = group_id
        self.settings = settings
        self.state = ClassicGroupState.EMPTY
        self.state_timestamp_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}  # instance id -> member id
        # Member ids that were returned with MEMBER_ID_REQUIRED and have not joined.
        self.pending_join_members: dict[str, LazyTimer] = {}
        # Members of this generation that have not sent SyncGroup; a dict for its order.
        self.pending_sync_members: dict[str, None] = {}
        self.members_awaiting_join = 0
        # The members' metadata for the generation's protocol; None before the first generation.
        self.subscriptions: tuple[bytes, ...] | None = None
        self.previous_state = ClassicGroupState.DEAD
        self.session_timers = LazyTimerHeap()
        self.join_deadline_ms: int | None = None
        self.sync_deadline_ms: int | None = None
        # Of an initial rebalance: the running delay and the remaining one.
        self.initial_remaining_ms: tuple[int, int] | None = None
        self.new_member_added = False
        self._supported_protocols: dict[str, int] = {}  # protocol -> members that support it
        # The target of a clock advance: members' timers armed before it start there.
        self._clock_target_ms = 0
        self.effects: list[Effect] = []

    @classmethod
    def restore(
        cls, group_id: str, settings: ClassicGroupSettings, image: GroupImage, now_ms: int
    ) -> ClassicGroup:
        """The group of a stored `image`, without timers and waiting requests.

        A Loaded event, once the whole log is read, starts the sessions.
        """
        group = cls(group_id, settings, now_ms)
        if image.state_timestamp_ms >= 0:
            group.state_timestamp_ms = image.state_timestamp_ms
        group.generation = image.generation
        group.protocol_type = image.protocol_type or None
        group.protocol_name = image.protocol
        group.leader = image.leader
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
            group.add_member(member, image.protocol_type)
        if image.members:
            group.state = ClassicGroupState.STABLE
        group.subscriptions = tuple(line.subscription for line in image.members)
        return group

    # ----------------------------------------------------------------------------------- checks

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol(self) -> str | None:
        return self.protocol_name

    @property
    def generation_or_epoch(self) -> int:
        return self.generation

    def is_empty(self) -> bool:
        return self.state is ClassicGroupState.EMPTY

    def is_consumer(self) -> bool:
        """Whether members speak the consumer protocol, whose subscriptions a broker can read."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member may be reading `topic`; groups of other protocol types read nothing."""
        topics = subscribed_topics(self)
        return self.is_consumer() if topics is None else topic in topics

    def tombstone_records(self) -> list[KeyValue]:
        return [group_tombstone(self.group_id)]

    def retention_start(self) -> Callable[[OffsetAndMetadata], int] | None:
        """The age counts from the transition to Empty. In a simple group, and in a Stable group
        with readable subscriptions, it counts from the commit.
        """
        if self.protocol_type is None:
            return commit_timestamp_ms
        if self.state is ClassicGroupState.EMPTY:
            return partial(_constant_ms, self.state_timestamp_ms)
        known = self.state is ClassicGroupState.STABLE and subscribed_topics(self) is not None
        return commit_timestamp_ms if known else None

    def image(self, assignments: Mapping[str, bytes] | None = None) -> GroupImage:
        """The group for a record; `assignments`, if given, replaces those of the members."""
        protocol = self.protocol_name
        return GroupImage(
            self.protocol_type or "",
            self.generation,
            protocol,
            self.leader,
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
                for m in self.members.values()
            ),
        )

    def validate_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """NONE, UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if the instance has a newer member."""
        if instance_id is not None:
            owner = self.static_members.get(instance_id)
            if owner is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if owner != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        if member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return NONE

    def heartbeat(
        self, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> ErrorCode:
        """The answer to a Heartbeat. One of the current generation renews the member's session."""
        answer = HEARTBEAT_ANSWERS[self.state]
        if self.state is ClassicGroupState.DEAD:
            return answer
        error = self.validate_member(member_id, instance_id)
        if error is not NONE:
            return error
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self.renew_session(self.members[member_id], now_ms)
        return answer

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
        if state is ClassicGroupState.DEAD or (generation < 0 and state is ClassicGroupState.EMPTY):
            answer = ANSWERS[state][RequestKind.PLAIN_COMMIT]
            assert isinstance(answer, ErrorCode)
            return answer
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
        answer = ANSWERS[state][kind]
        assert isinstance(answer, ErrorCode)
        if answer is NONE and not transactional:
            self.renew_session(self.members[member_id], now_ms)
        return answer

    def check_partition(
        self,
        member_id: str,  # noqa: ARG002
        epoch: int,  # noqa: ARG002
        topic: str,  # noqa: ARG002
        topic_id: bytes,  # noqa: ARG002
        partition: int,  # noqa: ARG002
        *,
        transactional: bool = False,  # noqa: ARG002
    ) -> ErrorCode:
        """A member may commit for any partition."""
        return NONE

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:  # noqa: ARG002
        """Every client may fetch offsets."""
        return NONE

    def check_offset_delete(self) -> ErrorCode:
        answer = ANSWERS[self.state][RequestKind.DELETE_OFFSETS]
        if isinstance(answer, ErrorCode):
            return answer
        assert answer is RequestAction.UNSUBSCRIBED
        return NONE if self.is_consumer() else ErrorCode.NON_EMPTY_GROUP

    def check_delete(self) -> ErrorCode:
        answer = ANSWERS[self.state][RequestKind.DELETE_GROUP]
        assert isinstance(answer, ErrorCode)
        return answer

    # ------------------------------------------------------------------------- transitions, timers

    def transition_to(self, trigger: Trigger, reason: str, now_ms: int) -> None:
        """Only this method writes the state."""
        previous, self.state = self.state, TRANSITIONS[self.state][trigger]
        self.previous_state = previous
        self.state_timestamp_ms = now_ms
        self.effects.append(Moved(previous, self.state, self.generation, reason))

    def renew_session(self, member: Member, now_ms: int) -> None:
        self.session_timers.arm(member, self.timer_start_ms(now_ms) + member.session_timeout_ms)

    def timer_start_ms(self, now_ms: int) -> int:
        """The time from which a member's timer counts: not before the end of a clock advance."""
        return max(now_ms, self._clock_target_ms)

    def deadline_ms(self) -> int | None:
        """The time of the next Tick, which may find no timer expired; None without timers."""
        earliest = self.session_timers.next_ms()
        for deadline_ms in (self.join_deadline_ms, self.sync_deadline_ms):
            if deadline_ms is not None and (earliest is None or deadline_ms < earliest):
                earliest = deadline_ms
        return earliest

    def extend_deadlines(self, connected: Callable[[str], bool], by_ms: int, now_ms: int) -> None:
        """Extend the timers of connected members by `by_ms`, because the clock is about to advance;
        also those armed during the advance.
        """
        extended = [each for each in self.members.values() if connected(each.member_id)]
        if not extended:
            return
        self._clock_target_ms = now_ms + by_ms
        for member in extended:
            self.session_timers.postpone(member, by_ms)
        if self.join_deadline_ms is not None and self.initial_remaining_ms is None:
            self.join_deadline_ms += by_ms
        if self.sync_deadline_ms is not None:
            self.sync_deadline_ms += by_ms

    def join_result(
        self, member: Member, *, leader: str | None = None, skip_assignment: bool = False
    ) -> JoinResult:
        """The response without an error. The leader's has the members, unless `leader` is given."""
        lists = leader is None and self.leader == member.member_id
        return JoinResult(
            error=NONE,
            member_id=member.member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=(self.leader or NO_LEADER) if leader is None else leader,
            skip_assignment=skip_assignment,
            members=self.joined_members(self.protocol_name) if lists else (),
        )

    def sync_result(self, member: Member) -> SyncResult:
        return SyncResult(
            error=NONE,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            assignment=member.assignment,
        )

    def fail_waiting_requests(self, member: Member, error: ErrorCode, member_id: str) -> None:
        callback = self.take_join_callback(member)
        if callback is not None:
            self.effects.append(Reply(callback, JoinResult(error=error, member_id=member_id)))
        callback, member.sync_callback = member.sync_callback, None
        if callback is not None:
            self.effects.append(Reply(callback, SyncResult(error=error)))

    # ---------------------------------------------------------------------------------- members

    def add_member(self, member: Member, protocol_type: str) -> None:
        """Add a member. The first one sets the group's protocol type and becomes the leader."""
        assert member.member_id not in self.members
        if not self.members:
            self.protocol_type = protocol_type
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member.protocols, 1)

    def remove_member(self, member: Member) -> None:
        """Remove a member and answer its waiting requests with UNKNOWN_MEMBER_ID.

        If it was the leader, the member that was added first becomes the leader.
        """
        self.fail_waiting_requests(member, ErrorCode.UNKNOWN_MEMBER_ID, NO_MEMBER_ID)
        self.session_timers.cancel(member)
        del self.members[member.member_id]
        self._count_protocols(member.protocols, -1)
        if member.instance_id is not None:
            del self.static_members[member.instance_id]
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)
        self.pending_sync_members.pop(member.member_id, None)

    def remove_pending_member(self, member_id: str) -> bool:
        timer = self.pending_join_members.pop(member_id, None)
        if timer is None:
            return False
        self.session_timers.cancel(timer)
        return True

    def replace_static_member(self, old: Member, member_id: str) -> Member:
        """Replace a static member, whose requests are answered, by one with a new id."""
        assert old.instance_id is not None
        assert old.join_callback is None
        assert old.sync_callback is None
        del self.members[old.member_id]
        new = Member(
            member_id,
            old.instance_id,
            old.client_id,
            old.client_host,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
            old.protocols,
            old.assignment,
        )
        self.members[member_id] = new
        self.static_members[old.instance_id] = member_id
        if self.leader == old.member_id:
            self.leader = member_id
        return new

    def update_member(
        self,
        member: Member,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        """Update a member that sends JoinGroup again."""
        if member.protocols != protocols:
            self._count_protocols(member.protocols, -1)
            member.protocols = protocols
            self._count_protocols(protocols, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    # ------------------------------------------------------------------------ waiting JoinGroups

    def park_join(self, member: Member, callback: object) -> object | None:
        """Let a JoinGroup wait for the end of the join phase; returns the one it replaces."""
        older = member.join_callback
        if older is None:
            self.members_awaiting_join += 1
        member.join_callback = callback
        return older

    def take_join_callback(self, member: Member) -> object | None:
        """Remove and return the waiting JoinGroup, or None."""
        callback = member.join_callback
        if callback is not None:
            self.members_awaiting_join -= 1
            member.join_callback = None
        return callback

    def has_all_members_joined(self) -> bool:
        """Whether each member waits in JoinGroup and no returned member id is unused."""
        return self.members_awaiting_join == len(self.members) and not self.pending_join_members

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has joined, else elect the first member that has joined.

        Returns False if no member has joined.
        """
        if self.leader is None:
            return False
        if self.members[self.leader].join_callback is not None:
            return True
        for member in self.members.values():
            if member.join_callback is not None:
                self.leader = member.member_id
                return True
        return False

    # -------------------------------------------------------------------------------- protocols

    def supports_protocols(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether all members support one of these protocols, of the group's protocol type."""
        size = len(self.members)
        return protocol_type == self.protocol_type and any(
            self._supported_protocols.get(name, 0) == size for name in names
        )

    def select_protocol(self) -> str:
        """The protocol of the next generation.

        All members support each candidate. A member votes for the first candidate in its list.
        Among equals the first one that got a vote wins; in Kafka the order of a hash map decides.
        """
        size = len(self.members)
        candidates = {name for name, count in self._supported_protocols.items() if count == size}
        votes = Counter(
            next(name for name, _ in member.protocols if name in candidates)
            for member in self.members.values()
        )
        return max(votes, key=votes.__getitem__)

    def _count_protocols(self, protocols: Protocols, change: int) -> None:
        support = self._supported_protocols
        for name in {name for name, _ in protocols}:
            count = support.get(name, 0) + change
            if count:
                support[name] = count
            else:
                del support[name]

    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def joined_members(self, protocol: str | None) -> tuple[JoinedMember, ...]:
        """The member list for the leader."""
        return tuple(
            JoinedMember(m.member_id, m.instance_id, m.metadata(protocol))
            for m in self.members.values()
        )


def join_error(error: ErrorCode, member_id: str) -> JoinResult:
    return JoinResult(error=error, member_id=member_id)


def _constant_ms(since_ms: int, _: OffsetAndMetadata) -> int:
    return since_ms
