"""The uniform assignor for members that subscribe to different topics.

A member keeps its partitions of the topics to which it still subscribes. Unassigned partitions go,
topic by topic, to the subscriber with the fewest partitions. Then partitions move, again topic by
topic, from the most loaded subscribers to the least loaded ones, until no move improves the
balance.

Topics with more partitions for each subscriber come first, because later topics can make up for
their imbalance.

Source: UniformHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

from mockbroker.core.groups.assignors.base import AssignorGroup, Target, member_order

ITERATIONS_MAX = 16  # Kafka assumes that each halves the imbalance
UNOWNED = -1


def assign_heterogeneous(group: AssignorGroup) -> dict[str, Target]:
    """New targets; empty if no member subscribes to a topic that exists."""
    return _Builder(group).build()


class _Builder:
    """The assignment of one call. A member is its index in `order`."""

    def __init__(self, group: AssignorGroup) -> None:
        self.group = group
        self.order = member_order(group)
        self.sizes = [0] * len(self.order)
        self.subscribers: dict[bytes, list[int]] = {}
        for index, member_id in enumerate(self.order):
            for topic_id in sorted(group.members[member_id].topics):
                self.subscribers.setdefault(topic_id, []).append(index)
        self.owners: dict[bytes, list[int]] = {
            topic_id: [UNOWNED] * group.partitions[topic_id] for topic_id in self.subscribers
        }

    def build(self) -> dict[str, Target]:
        if not self.subscribers:
            return {}
        self._keep()
        topics = sorted(self.subscribers, key=self._topic_rank)
        for topic_id in topics:
            self._assign_unassigned(topic_id)
        self._balance([t for t in topics if len(self.subscribers[t]) > 1])
        targets: list[dict[bytes, set[int]]] = [{} for _ in self.order]
        for topic_id, owners in self.owners.items():
            for partition, owner in enumerate(owners):
                targets[owner].setdefault(topic_id, set()).add(partition)
        return {
            member_id: {topic_id: frozenset(ps) for topic_id, ps in target.items()}
            for member_id, target in zip(self.order, targets, strict=True)
        }

    def _topic_rank(self, topic_id: bytes) -> tuple[float, int, int, int]:
        count = len(self.subscribers[topic_id])
        # Kafka's Uuid compares its halves as signed numbers.
        high = int.from_bytes(topic_id[:8], "big", signed=True)
        low = int.from_bytes(topic_id[8:], "big", signed=True)
        return -(self.group.partitions[topic_id] / count), count, high, low

    def _keep(self) -> None:
        for index, member_id in enumerate(self.order):
            member = self.group.members[member_id]
            for topic_id, partitions in member.target.items():
                if topic_id in member.topics:
                    self.sizes[index] += len(partitions)
                    for partition in partitions:
                        self.owners[topic_id][partition] = index

    def _assign_unassigned(self, topic_id: bytes) -> None:
        balancer = _Balancer(self.sizes, self.subscribers[topic_id])
        for partition, owner in enumerate(self.owners[topic_id]):
            if owner == UNOWNED:
                self._assign(topic_id, partition, balancer.least_loaded())

    def _balance(self, topics: list[bytes]) -> None:
        last_moved: bytes | None = None
        for _ in range(ITERATIONS_MAX):
            for topic_id in topics:
                if topic_id == last_moved:
                    return  # no move since this topic's last turn
                if self._balance_topic(topic_id) or last_moved is None:
                    last_moved = topic_id

    def _balance_topic(self, topic_id: bytes) -> int:
        """Move partitions of one topic; returns the number of moves."""
        balancer = _Balancer(self.sizes, self.subscribers[topic_id])
        if balancer.imbalance <= 1:
            return 0
        held: dict[int, list[int]] = {}
        for partition, owner in enumerate(self.owners[topic_id]):
            held.setdefault(owner, []).append(partition)
        moved = 0
        while not balancer.is_balanced():
            from_member = balancer.most_loaded()
            while from_member is not None and not held.get(from_member):
                balancer.exclude_most_loaded()
                from_member = balancer.most_loaded()
            if from_member is None:
                break
            partition = held[from_member].pop()
            to_member = balancer.least_loaded()
            if balancer.is_balanced():
                break
            self._assign(topic_id, partition, to_member)
            moved += 1
        return moved

    def _assign(self, topic_id: bytes, partition: int, index: int) -> None:
        owners = self.owners[topic_id]
        if owners[partition] != UNOWNED:
            self.sizes[owners[partition]] -= 1
        owners[partition] = index
        self.sizes[index] += 1


class _Balancer:
    """The subscribers of one topic, sorted by load (MemberAssignmentBalancer).

    The least loaded subscribers are a range at the left with equal loads. Once each of them has one
    more partition, the range grows to the right over the subscribers with that load. The most
    loaded are such a range at the right, without the subscribers that own no partition of the
    topic.
    """

    def __init__(self, sizes: list[int], subscribers: list[int]) -> None:
        self.sizes = sizes
        self.members = sorted(subscribers, key=lambda index: (sizes[index], index))
        first, last = sizes[self.members[0]], sizes[self.members[-1]]
        self.imbalance = last - first
        self._least_end = 0
        self._least_level = first - 1
        self._least_next = 0
        self._most_start = self._most_end = len(self.members)
        self._most_level = last + 1
        self._most_next = len(self.members) - 1

    def least_loaded(self) -> int:
        """The subscriber that gets the next partition."""
        members = self.members
        if self._least_next >= self._least_end:
            self._least_level += 1
            while (
                self._least_end < len(members)
                and self.sizes[members[self._least_end]] == self._least_level
            ):
                self._least_end += 1
            self._least_next = 0
        self._least_next += 1
        return members[self._least_next - 1]

    def most_loaded(self) -> int | None:
        """The subscriber that loses the next partition; None if all are excluded."""
        members = self.members
        if self._most_next < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                # The whole range was excluded: continue with the next subscriber.
                self._most_level = self.sizes[members[self._most_start - 1]]
            else:
                self._most_level -= 1
            while (
                self._most_start > 0
                and self.sizes[members[self._most_start - 1]] == self._most_level
            ):
                self._most_start -= 1
            self._most_next = self._most_end - 1
        if self._most_next < 0:
            return None
        self._most_next -= 1
        return members[self._most_next + 1]

    def exclude_most_loaded(self) -> None:
        """Exclude the last result of `most_loaded` from the range."""
        members, at, end = self.members, self._most_next + 1, self._most_end - 1
        members[at], members[end] = members[end], members[at]
        self._most_end = end

    def is_balanced(self) -> bool:
        return self._most_level - self._least_level <= 1
