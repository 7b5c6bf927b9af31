"""Who is in a classic group: members, ids given out, instance ids, the leader, and the vote.

Counts are kept as members come and go, so that "has everybody joined" and "does everybody support
this protocol" cost the same for 5 members as for 5,000. Source: Kafka's ClassicGroup, whose maps
have no order; here the members' order is the order in which they were added, so that runs repeat.
"""

from __future__ import annotations

from collections.abc import Iterable

from mockbroker.core.groups.events import JoinedMember, Protocols
from mockbroker.core.groups.lazy_timers import LazyTimer


class Member(LazyTimer):
    """One member. `join_slot` and `sync_slot` hold the requests that wait for an answer."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join_slot",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_slot",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        super().__init__(member_id)
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.join_slot: object | None = None
        self.sync_slot: object | None = None
        self.is_new = False  # until its first join completes

    def metadata(self, protocol: str | None) -> bytes:
        """What the member sent with `protocol`; KeyError if it does not support it."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise KeyError(protocol)


class Roster:
    """The members of one group. Its methods keep the counts right."""

    __slots__ = (
        "_support",
        "awaiting_join",
        "leader",
        "members",
        "pending",
        "protocol_type",
        "static",
    )

    def __init__(self, protocol_type: str | None = None, leader: str | None = None) -> None:
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}  # instance id -> member id
        self.pending: dict[
            str, LazyTimer
        ] = {}  # ids given out with MEMBER_ID_REQUIRED, not joined yet
        self.protocol_type = protocol_type
        self.leader = leader
        self.awaiting_join = 0
        self._support: dict[str, int] = {}  # protocol -> members that offer it

    # ------------------------------------------------------------------------- coming and going

    def add(self, member: Member, protocol_type: str) -> None:
        """Take a member in. The first one decides the group's protocol type and leads it."""
        assert member.member_id not in self.members
        if not self.members:
            self.protocol_type = protocol_type
        if member.instance_id is not None:
            assert member.instance_id not in self.static
            self.static[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count(member.protocols, 1)

    def remove(self, member: Member) -> None:
        """Let a member go; if it led, the longest-standing member leads."""
        del self.members[member.member_id]
        self._count(member.protocols, -1)
        if member.join_slot is not None:
            self.awaiting_join -= 1
            member.join_slot = None
        if member.instance_id is not None:
            del self.static[member.instance_id]
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def replace_static(self, old: Member, member_id: str) -> Member:
        """Hand the place of a static member, whose requests are answered, to a new member id."""
        assert old.instance_id is not None
        assert old.join_slot is None
        assert old.sync_slot is None
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
        self.static[old.instance_id] = member_id
        if self.leader == old.member_id:
            self.leader = member_id
        return new

    def update(
        self,
        member: Member,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        """Note what a member that joins again offers now."""
        if member.protocols != protocols:
            self._count(member.protocols, -1)
            member.protocols = protocols
            self._count(protocols, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    # ------------------------------------------------------------------------------ the waiting

    def park_join(self, member: Member, slot: object) -> object | None:
        """Let a request wait for the end of the join phase; returns the older one it displaces."""
        older = member.join_slot
        if older is None:
            self.awaiting_join += 1
        member.join_slot = slot
        return older

    def take_join(self, member: Member) -> object | None:
        """The request that waits, which thereby no longer does; or None."""
        slot = member.join_slot
        if slot is not None:
            self.awaiting_join -= 1
            member.join_slot = None
        return slot

    def all_joined(self) -> bool:
        """Whether nobody is left to wait for: each member waits, each id given out is used."""
        return self.awaiting_join == len(self.members) and not self.pending

    def elect_joined_leader(self) -> bool:
        """Let somebody lead who has joined: the leader if it has, else the first who has.

        False when nobody has, or nobody is there.
        """
        if self.leader is None:
            return False
        if self.members[self.leader].join_slot is not None:
            return True
        for member in self.members.values():
            if member.join_slot is not None:
                self.leader = member.member_id
                return True
        return False

    # ---------------------------------------------------------------------------- the protocols

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether somebody with these protocols fits in beside the members there are."""
        size = len(self.members)
        return protocol_type == self.protocol_type and any(
            self._support.get(name, 0) == size for name in names
        )

    def vote(self) -> str:
        """The protocol of the next generation.

        Candidates are what all members support; each votes for the first of its own list among
        them. Of equals the one that was voted for first wins (Kafka leaves that to a hash map).
        """
        size = len(self.members)
        candidates = {name for name, count in self._support.items() if count == size}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next(name for name, _ in member.protocols if name in candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def _count(self, protocols: Protocols, change: int) -> None:
        support = self._support
        for name in {name for name, _ in protocols}:
            count = support.get(name, 0) + change
            if count:
                support[name] = count
            else:
                del support[name]

    # ------------------------------------------------------------------------------------ views

    def rebalance_timeout_ms(self) -> int:
        """How long the slowest member may take."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def listing(self, protocol: str | None) -> tuple[JoinedMember, ...]:
        """The member list for the leader."""
        return tuple(
            JoinedMember(m.member_id, m.instance_id, m.metadata(protocol))
            for m in self.members.values()
        )
