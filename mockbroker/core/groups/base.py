"""What a classic group is made of, what it can be asked, and how its members are answered.

The lowest of three layers of one class: `GroupBase` holds the state, `GroupRounds` runs the rounds,
`ClassicGroup` takes in the requests. Each calls only itself and the layer below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

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
from mockbroker.core.groups.leases import LeaseHeap
from mockbroker.core.groups.members import Member, Roster
from mockbroker.core.groups.states import (
    ANSWERS,
    HEARTBEAT_ANSWERS,
    TRANSITIONS,
    Ask,
    State,
    Step,
    Trigger,
)
from mockbroker_protocol import ErrorCode

CONSUMER_PROTOCOL_TYPE = "consumer"

NONE = ErrorCode.NONE
G = TypeVar("G", bound="GroupBase")


class GroupSettings(msgspec.Struct, kw_only=True):
    """The broker's configuration as far as groups look at it: group.initial.rebalance.delay.ms,
    group.max.size.
    """

    initial_rebalance_delay_ms: int = 0
    size_max: int = 2_147_483_647


class GroupBase:
    """State, questions and answers of one group. Public attributes are for reading."""

    __slots__ = (
        "_initial_remaining_ms",
        "_join_deadline_ms",
        "_leases",
        "_member_joined_meanwhile",
        "_out",
        "_patient_until_ms",
        "_previous_state",
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

    def __init__(self, group_id: str, settings: GroupSettings, now_ms: int) -> None:
        self.group_id = group_id
        self.settings = settings
        self.state = State.EMPTY
        self.state_timestamp_ms = now_ms
        self.generation = 0
        self.protocol_name: str | None = None
        self.roster = Roster()
        # Members of this generation that have not sent SyncGroup; a dict for its order.
        self.pending_sync: dict[str, None] = {}
        # What the members of this generation sent with its protocol; None before the first one.
        self.subscriptions: tuple[bytes, ...] | None = None
        self._previous_state = State.DEAD
        self._leases = LeaseHeap()
        self._join_deadline_ms: int | None = None
        self._sync_deadline_ms: int | None = None
        self._initial_remaining_ms: tuple[int, int] | None = None  # (delay that runs, what is left)
        self._member_joined_meanwhile = False
        # Until when the clock is being moved on, for members that are there and cannot keep up.
        self._patient_until_ms = 0
        self._out: list[Effect] = []

    @classmethod
    def restore(
        cls: type[G], group_id: str, settings: GroupSettings, image: GroupImage, now_ms: int
    ) -> G:
        """The group that `image` was taken of, without what is never stored: waits and timers.

        Give it a Loaded event once all of the log is read, so that sessions start to run.
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

    # -------------------------------------------------------------------------------- questions

    def answer(self, ask: Ask) -> ErrorCode | Step:
        """What the group's state says to a question."""
        return ANSWERS[self.state][ask]

    def is_consumer(self) -> bool:
        """Whether members speak the consumer protocol, whose subscriptions a broker can read."""
        return self.roster.protocol_type == CONSUMER_PROTOCOL_TYPE

    def image(self, assignments: Mapping[str, bytes] | None = None) -> GroupImage:
        """The group as it is to be stored; `assignments`, if given, replaces the members' own."""
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
        """A Heartbeat's answer; every one that comes from a member of this generation renews it."""
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
    ) -> ErrorCode:
        """Whether offsets may be committed; a member's own commit renews it."""
        state = self.state
        if state is State.DEAD or (generation < 0 and state is State.EMPTY):
            verdict = ANSWERS[state][Ask.PLAIN_COMMIT]
            assert isinstance(verdict, ErrorCode)
            return verdict
        known = generation >= 0 or member_id != NO_MEMBER_ID or instance_id is not None
        if known:
            error = self.validate_member(member_id, instance_id)
            if error is not NONE:
                return error
            if generation != self.generation:
                return ErrorCode.ILLEGAL_GENERATION
        ask = Ask.TXN_COMMIT if transactional else Ask.COMMIT if known else Ask.PLAIN_COMMIT
        verdict = ANSWERS[state][ask]
        assert isinstance(verdict, ErrorCode)
        if verdict is NONE and not transactional:
            self._renew(self.roster.members[member_id], now_ms)
        return verdict

    # ------------------------------------------------------------------------------- the inside

    def _move(self, trigger: Trigger, reason: str, now_ms: int) -> None:
        """The only place that writes the state."""
        previous, self.state = self.state, TRANSITIONS[self.state][trigger]
        self._previous_state = previous
        self.state_timestamp_ms = now_ms
        self._out.append(Moved(previous, self.state, self.generation, reason))

    def _renew(self, member: Member, now_ms: int) -> None:
        self._leases.arm(member, self._patient(now_ms) + member.session_timeout_ms)

    def _patient(self, now_ms: int) -> int:
        """From when a wait for a member counts: not before the clock has been moved on."""
        return max(now_ms, self._patient_until_ms)

    def spare(self, connected: Callable[[str], bool], by_ms: int, now_ms: int) -> None:
        """The clock is about to be moved on by `by_ms`: wait that much longer for the members that
        are connected, also in what begins before it has arrived.
        """
        spared = [each for each in self.roster.members.values() if connected(each.member_id)]
        if not spared:
            return
        self._patient_until_ms = now_ms + by_ms
        for member in spared:
            self._leases.postpone(member, by_ms)
        if self._join_deadline_ms is not None and self._initial_remaining_ms is None:
            self._join_deadline_ms += by_ms
        if self._sync_deadline_ms is not None:
            self._sync_deadline_ms += by_ms

    def _joined(
        self, member: Member, *, leader: str | None = None, skip_assignment: bool = False
    ) -> JoinResult:
        """The answer of success; the member list goes to the leader alone, if it knows it leads."""
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

    def _drop(self, member: Member) -> None:
        """Take a member out, with whatever it waits for."""
        self._answer_parked(member, ErrorCode.UNKNOWN_MEMBER_ID, NO_MEMBER_ID)
        self._leases.cancel(member)
        self.roster.remove(member)
        self.pending_sync.pop(member.member_id, None)

    def _drop_pending(self, member_id: str) -> bool:
        lease = self.roster.pending.pop(member_id, None)
        if lease is None:
            return False
        self._leases.cancel(lease)
        return True

    def _answer_parked(self, member: Member, error: ErrorCode, member_id: str) -> None:
        slot = self.roster.take_join(member)
        if slot is not None:
            self._out.append(Reply(slot, join_error(error, member_id)))
        slot, member.sync_slot = member.sync_slot, None
        if slot is not None:
            self._out.append(Reply(slot, SyncResult(error=error)))


def join_error(error: ErrorCode, member_id: str) -> JoinResult:
    return JoinResult(error=error, member_id=member_id)
