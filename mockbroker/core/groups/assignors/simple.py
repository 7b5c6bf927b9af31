"""The simple assignor of share groups (KIP-932): balance first, then stickiness.

With more members than partitions a partition is *shared*: each has ceil(members / partitions)
members, and the load of two members differs by one at most. The steps, for all topics together if
all members subscribe to the same topics, otherwise for each topic alone:

1. Members lose partitions of topics to which they no longer subscribe.
2. Members with more than their share lose the first of their partitions.
3. Partitions with more members than the sharing lose the first of their members.
4. Partitions with fewer members get the next unfilled members in turn.

"First" and "next" are the order of Java's hash tables, so that the targets are Kafka's own. Only
partitions whose share state is initialized are assigned.

Source: SimpleAssignor, SimpleHomogeneousAssignmentBuilder, SimpleHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

from mockbroker.core.groups.assignors.base import (
    AssignorGroup,
    Target,
    member_order,
    topic_order,
)
from mockbroker.core.hashing.java_hash import uuid_hash
from mockbroker.core.hashing.java_hash_map import JavaHashMap, JavaHashSet, capacity_for

TopicPartition: TypeAlias = "tuple[bytes, int]"
P = TypeVar("P")
# The partitions of members by number, in the making.
_Shares: TypeAlias = "list[dict[bytes, set[int]]]"


def assign_simple(
    group: AssignorGroup, assignable: Mapping[bytes, frozenset[int]]
) -> dict[str, Target]:
    """New targets. `assignable` are the initialized partitions by topic id.

    A topic of which a member has lost all partitions stays in its target with an empty set, as in
    Kafka's record.
    """
    ids = member_order(group)
    topics = _subscribed_topics(group, ids)
    if not ids or not topics:
        return {}
    shares: _Shares = [
        {topic: set(ps) for topic, ps in group.members[each].target.items()} for each in ids
    ]
    targets = {
        topic: [
            p for p in range(group.partitions[topic]) if p in assignable.get(topic, frozenset())
        ]
        for topic in topics
    }
    if group.uniform:
        _assign_all(shares, targets)
    else:
        for topic in topics:
            members = [i for i, each in enumerate(ids) if topic in group.members[each].topics]
            _assign_topic(shares, topic, targets[topic], members)
    return {
        member_id: {topic: frozenset(ps) for topic, ps in share.items()}
        for member_id, share in zip(ids, shares, strict=True)
    }


def _subscribed_topics(group: AssignorGroup, ids: Sequence[str]) -> list[bytes]:
    if group.uniform:
        ids = ids[:1]
    return topic_order({topic for each in ids for topic in group.members[each].topics})


def _assign_all(shares: _Shares, targets: Mapping[bytes, Sequence[int]]) -> None:
    """All members subscribe to the same topics."""
    for share in shares:
        for topic in [topic for topic in share if topic not in targets]:
            del share[topic]
    wanted = [(topic, p) for topic, partitions in targets.items() for p in partitions]
    rounds: _Round[TopicPartition] = _Round(
        shares, range(len(shares)), wanted, _pair_hash, lambda pair: pair
    )
    for member, share in enumerate(shares):
        rounds.take_over(member, [(t, p) for t in topic_order(share) for p in sorted(share[t])])
    rounds.unfilled = {m for m in range(len(shares)) if rounds.lacks(m)}
    rounds.revoke_from_overfilled()
    rounds.unfilled |= rounds.revoke_overshared()
    rounds.assign_remaining()


def _assign_topic(
    shares: _Shares, topic: bytes, wanted: Sequence[int], members: Sequence[int]
) -> None:
    """The members differ in their topics: one topic, to which `members` subscribe."""
    rounds: _Round[int] = _Round(
        shares, members, wanted, lambda partition: partition, lambda partition: (topic, partition)
    )
    for member, share in enumerate(shares):
        rounds.take_over(member, sorted(share.get(topic, ())))
    rounds.revoke_from_overfilled()
    rounds.revoke_overshared()
    rounds.unfilled = {m for m in members if rounds.lacks(m)}
    rounds.assign_remaining()


class _Round(Generic[P]):
    """One distribution of `wanted` partitions to `members`; P is a partition's key in Java's maps.

    `shares` is changed in place.
    """

    __slots__ = (
        "_by_member",
        "_by_partition",
        "_counts",
        "_named",
        "_partition_hash",
        "_shares",
        "_sharing",
        "_wanted",
        "unfilled",
    )

    def __init__(
        self,
        shares: _Shares,
        members: Sequence[int],
        wanted: Sequence[P],
        partition_hash: Callable[[P], int],
        named: Callable[[P], TopicPartition],
    ) -> None:
        self._shares = shares
        self._wanted = wanted
        self._partition_hash = partition_hash
        self._named = named
        # How many members each partition should have, and how many partitions each member.
        self._sharing = -(-len(members) // len(wanted)) if wanted else 0
        precise = self._sharing * len(wanted) / len(members)
        self._counts = [0] * len(shares)
        for place, member in enumerate(members):
            count = math.ceil(precise * float(place + 1)) - math.ceil(precise * float(place))
            self._counts[member] = count
        self._by_partition: JavaHashMap[P, JavaHashSet[int]] = JavaHashMap(
            partition_hash, capacity_for(len(wanted))
        )
        self._by_member: dict[int, JavaHashSet[P]] = {}
        self.unfilled: set[int] = set()

    def take_over(self, member: int, partitions: Iterable[P]) -> None:
        """Start with the partitions that a member has."""
        for partition in partitions:
            self._members_of(partition).add(member)
            self._partitions_of(member).add(partition)

    def _members_of(self, partition: P) -> JavaHashSet[int]:
        return self._by_partition.compute_if_absent(partition, lambda: JavaHashSet(_own_hash))

    def _partitions_of(self, member: int) -> JavaHashSet[P]:
        found = self._by_member.get(member)
        if found is None:
            found = self._by_member[member] = JavaHashSet(self._partition_hash)
        return found

    def lacks(self, member: int) -> bool:
        """Whether the member has fewer partitions than it should have."""
        return len(self._by_member.get(member, ())) < self._counts[member]

    def _drop(self, member: int, partition: P) -> None:
        topic, index = self._named(partition)
        self._shares[member][topic].discard(index)
        self._by_member[member].discard(partition)
        self._by_partition[partition].discard(member)

    def revoke_from_overfilled(self) -> None:
        for member in sorted(self._by_member):
            partitions = self._by_member[member]
            excess = len(partitions) - self._counts[member]
            for partition in list(partitions)[: max(excess, 0)]:
                self._drop(member, partition)

    def revoke_overshared(self) -> set[int]:
        """Returns the members that have lost a partition."""
        losers: set[int] = set()
        for partition, members in self._by_partition.items():
            excess = len(members) - self._sharing
            for member in list(members)[: max(excess, 0)]:
                self._drop(member, partition)
                losers.add(member)
        return losers

    def assign_remaining(self) -> None:
        """One pass over the partitions, while the unfilled members take turns.

        A partition that all unfilled members have already keeps too few members. As in Kafka, a
        member that gets the partition is not noted with it: with few unfilled members its next turn
        may count as another member.
        """
        for partition in self._wanted:
            self._members_of(partition)
        if not self.unfilled:
            return
        turns = _Turns(self.unfilled)
        for partition, members in self._by_partition.items():
            missing = self._sharing - len(members)
            while missing > 0 and (member := turns.next()) is not None:
                if member not in members:
                    missing -= 1
                    self._give(member, partition)
                    turns.gave(done=not self.lacks(member))
            if turns.is_over():
                break

    def _give(self, member: int, partition: P) -> None:
        topic, index = self._named(partition)
        self._shares[member].setdefault(topic, set()).add(index)
        self._partitions_of(member).add(partition)


class _Turns:
    """The unfilled members, over and over, until a whole turn has given nothing."""

    __slots__ = ("_gave", "_left", "_members", "_place")

    def __init__(self, members: Iterable[int]) -> None:
        self._members = sorted(members)
        self._left = list(self._members)
        self._place = 0
        self._gave = False

    def next(self) -> int | None:
        """The next member, or None at the end of a turn that has given nothing."""
        if self._place == len(self._members):
            if not self._gave:
                return None
            self._members, self._place, self._gave = list(self._left), 0, False
            if not self._members:
                return None
        member = self._members[self._place]
        self._place += 1
        return member

    def gave(self, *, done: bool) -> None:
        """The member got a partition; if `done`, it has as many as it should have."""
        self._gave = True
        if done:
            self._left.remove(self._members[self._place - 1])

    def is_over(self) -> bool:
        return not self._left


def _pair_hash(pair: TopicPartition) -> int:
    """TopicIdPartition.hashCode, that of a record with two components."""
    return uuid_hash(pair[0]) * 31 + pair[1]


def _own_hash(value: int) -> int:
    return value
