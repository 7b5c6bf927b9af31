"""Members of groups of the new protocol (confluent-kafka with `group.protocol=consumer`).

They are the members of `tests.support.members`, but for what the brokers decide now: how often to
beat, when a session ends, who gets what.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mockbroker import Cluster
from mockbroker.core.groups.consumer.group import ConsumerGroup
from tests.support.members import Member, Members, Partition

# The brokers' part, made short: librdkafka beats no sooner than it is told to.
CONFIGS = {
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.assignment.interval.ms": 0,
}

# What clients of the new protocol may not set.
NOT_THEIRS = {"heartbeat_interval_ms": None, "session_timeout_ms": None}


class NewMembers(Members):
    """The members of a test; closed when it ends."""

    def __call__(self, group: str, *topics: str, **config: Any) -> Member:
        """A new member of the new protocol, subscribed but never polled."""
        return super().__call__(
            group, *topics, **(NOT_THEIRS | {"group_protocol": "consumer"} | config)
        )

    def classic(self, group: str, *topics: str, **config: Any) -> Member:
        """A new member of the classic protocol."""
        return super().__call__(group, *topics, **config)

    def settle(
        self, *members: Member, partitions: int, polling: Any = None
    ) -> dict[str, list[Partition]]:
        """As in a classic group: these are all members, the group is Stable, and everybody owns
        what it was given.
        """
        group = members[0].group

        def by_name() -> dict[str, list[Partition]]:
            return {member.name: sorted(member.owned) for member in members}

        def settled() -> bool:
            owned = [each for member in members for each in member.owned]
            if len(owned) != partitions or len(set(owned)) != partitions:
                return False
            found = look(self.kafka, group)
            return (found.state, found.owned) == ("Stable", by_name())

        what = f"{partitions} partitions owned by {len(members)} members of {group}"
        self.until(settled, what, polling=polling)
        return by_name()


class NewLook(NamedTuple):
    """A group as its coordinator sees it; `owned` is what each client id was assigned."""

    state: str
    epoch: int
    owned: dict[str, list[Partition]]
    members: dict[str, str]  # client id -> member id


def look(kafka: Cluster, group: str) -> NewLook:
    """The group's state, epoch and assignments; Dead when there is none of the new protocol."""
    return kafka.call(lambda cluster: _look(cluster, group))


def _look(cluster: Any, group: str) -> NewLook:
    topic = cluster.topics["__consumer_offsets"]
    partition = topic.partitions[cluster.find_coordinator_partition(group)]
    shard = cluster.brokers[partition.leader_id].groups.shard_of(group)
    found: ConsumerGroup | None = shard.consumers.get(group)
    if found is None:
        return NewLook("Dead", -1, {}, {})
    names = {topic_id: topic.name for topic_id, topic in cluster.topics_by_id.items()}
    owned = {
        member.client_id: sorted(
            (names[topic_id], index)
            for topic_id, partitions in member.assigned.items()
            for index in partitions
        )
        for member in found.members.values()
    }
    members = {member.client_id: member.member_id for member in found.members.values()}
    return NewLook(found.state.value, found.epoch, owned, members)
