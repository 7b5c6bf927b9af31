"""The server-side assignors of KIP-848, and their input.

An *assignor* is a pure function from a group's members, their subscriptions and their current
targets to new targets. The iteration order of members and topics decides between equally good
results. Kafka's assignors iterate over Java's hash maps; these use the same order (`hash_order`),
so that equal ids give equal assignments.

Source: org.apache.kafka.coordinator.group.assignor and GroupSpecImpl.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias, TypeVar

import msgspec

from mockbroker.core.hashing.java_hash import string_hash

K = TypeVar("K")

Target: TypeAlias = "Mapping[bytes, frozenset[int]]"

_MASK_32 = 0xFFFFFFFF
_BUCKETS_MIN = 16


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


def uuid_hash(uuid: bytes) -> int:
    """Uuid.hashCode of Kafka."""
    mixed = int.from_bytes(uuid[:8], "big") ^ int.from_bytes(uuid[8:], "big")
    return ((mixed >> 32) ^ mixed) & _MASK_32


def hash_order(
    keys: Iterable[K], hash_of: Callable[[K], int], buckets: int = _BUCKETS_MIN
) -> list[K]:
    """Keys in the iteration order of a java.util.HashMap to which they were added one by one.

    Keys of one bucket keep their order in `keys`. `buckets` is the size of the map's first table.
    """
    known = list(keys)
    while len(known) > buckets * 3 // 4:
        buckets *= 2
    return _by_bucket(known, hash_of, buckets)


def hash_set_order(keys: Iterable[int]) -> list[int]:
    """Integers in the iteration order of a java.util.HashSet that was made from a collection.

    Its table may be larger than that of a set to which they were added one by one. Keys of one
    bucket are in ascending order here; in Java the first assigned key is first.
    """
    known = sorted(keys)
    buckets = _BUCKETS_MIN
    while int(len(known) / 0.75) + 1 > buckets:
        buckets *= 2
    return _by_bucket(known, lambda key: key, buckets)


def _by_bucket(keys: Iterable[K], hash_of: Callable[[K], int], buckets: int) -> list[K]:
    def bucket(key: K) -> int:
        code = hash_of(key) & _MASK_32
        return (code ^ (code >> 16)) & (buckets - 1)

    return sorted(keys, key=bucket)


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
