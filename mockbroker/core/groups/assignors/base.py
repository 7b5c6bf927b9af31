"""The server-side assignors of KIP-848, and the terms they are given a group in.

An *assignor* is a pure function from a group's members, their subscriptions and their present
targets to new targets. Which of several equally good results it picks depends on the order in which
it meets members and topics; Kafka's assignors meet them in the order of Java's hash maps, and so do
these (`hash_order`), so that equal ids give equal assignments.

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
_LEAST_BUCKETS = 16


class AssignorMember(msgspec.Struct, frozen=True):
    """One member: its instance id, the ids of the topics it subscribes to, its present target."""

    instance_id: str | None
    topics: frozenset[bytes]
    target: Mapping[bytes, frozenset[int]]


class AssignorGroup(msgspec.Struct, frozen=True):
    """A group as assignors see it.

    `members` by id, in the order in which the group met them; `uniform`: all subscribe to the same
    topics; `partitions`: how many each subscribed topic has.
    """

    members: Mapping[str, AssignorMember]
    uniform: bool
    partitions: Mapping[bytes, int]


Assignor: TypeAlias = Callable[[AssignorGroup], dict[str, Target]]


def uuid_hash(uuid: bytes) -> int:
    """The hash code of Kafka's Uuid."""
    mixed = int.from_bytes(uuid[:8], "big") ^ int.from_bytes(uuid[8:], "big")
    return ((mixed >> 32) ^ mixed) & _MASK_32


def hash_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """Keys in the order in which a java.util.HashMap with just these keys iterates.

    Keys that fall in one bucket stay in the order they are given in, as in Java they stay in the
    order they were put in.
    """
    known = list(keys)
    buckets = _LEAST_BUCKETS
    while len(known) > buckets * 3 // 4:
        buckets *= 2
    return _by_bucket(known, hash_of, buckets)


def copied_order(keys: Iterable[int]) -> list[int]:
    """Integers in the order of a java.util.HashSet that was made of a collection in one go.

    Its table is a size larger where the set would just have fitted. Of those that fall in one
    bucket the smaller ones come first here; in Java, those that were assigned first.
    """
    known = sorted(keys)
    buckets = _LEAST_BUCKETS
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
    # Which of two topics of one bucket came first is not known here: the ids themselves decide.
    return hash_order(sorted(topics), uuid_hash)


def partition_order(partitions: Iterable[int]) -> list[int]:
    return copied_order(partitions)  # targets are read from records


def by_name() -> dict[str, Assignor]:
    """The assignors by the names that members and `group.consumer.assignors` use."""
    from mockbroker.core.groups.assignors.range import assign_range
    from mockbroker.core.groups.assignors.uniform import assign_uniform

    return {"uniform": assign_uniform, "range": assign_range}
