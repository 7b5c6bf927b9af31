"""The server-side assignors of KIP-848, and their input.

An *assignor* is a pure function from a group's members, their subscriptions and their current
targets to new targets. The iteration order of members and topics decides between equally good
results. Kafka's assignors iterate over Java's hash maps; these use the same order (`hash_order`),
so that equal ids give equal assignments.

Source: org.apache.kafka.coordinator.group.assignor and GroupSpecImpl.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from mockbroker.core.hashing.java_hash import string_hash, uuid_hash
from mockbroker.core.hashing.java_hash_map import hash_order, hash_set_order

Target: TypeAlias = "Mapping[bytes, frozenset[int]]"


class AssignorMember(msgspec.Struct, frozen=True):
    """One member: its instance id, the ids of its subscribed topics, its current target."""

    instance_id: str | None
    topics: frozenset[bytes]
    target: Mapping[bytes, frozenset[int]]


class AssignorGroup(msgspec.Struct, frozen=True):
    """The input of an assignor (GroupSpec).

    `members` are by id, the oldest first. `uniform`: all members subscribe to the same topics
    (SubscriptionType.HOMOGENEOUS). `partitions` are the partition counts of the subscribed topics.
    """

    members: Mapping[str, AssignorMember]
    uniform: bool
    partitions: Mapping[bytes, int]


Assignor: TypeAlias = Callable[[AssignorGroup], dict[str, Target]]


def member_order(group: AssignorGroup) -> list[str]:
    return hash_order(group.members, string_hash)


def topic_order(topics: Iterable[bytes]) -> list[bytes]:
    # The insertion order of two topics of one bucket is not known here: the ids decide.
    return hash_order(sorted(topics), uuid_hash)


def partition_order(partitions: Iterable[int]) -> list[int]:
    return hash_set_order(partitions)  # Kafka makes the set from the partitions of a record


def assignors_by_name() -> dict[str, Assignor]:
    """The assignors by the names that members and `group.consumer.assignors` use."""
    from mockbroker.core.groups.assignors.range import assign_range
    from mockbroker.core.groups.assignors.uniform import assign_uniform

    return {"uniform": assign_uniform, "range": assign_range}
