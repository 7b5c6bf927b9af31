"""The subscriptions and assignments of classic consumers, with topic ids for a consumer group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct

import msgspec

from mockbroker.core.groups.modern.topics import TopicSource
from mockbroker_protocol.consumer_protocol import (
    VERSION_MAX,
    ConsumerProtocolAssignment,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)

_VERSION = Struct(">h")


class Subscription(msgspec.Struct, frozen=True):
    """The subscribed topics, owned partitions and rack of a classic consumer."""

    topics: frozenset[str]
    owned: Mapping[str, tuple[int, ...]]
    rack_id: str | None


def read_subscription(blob: bytes) -> Subscription:
    """Decode a member's metadata. Raises DecodeError."""
    read = decode_subscription(blob)
    owned = {line.topic: tuple(line.partitions) for line in read.owned_partitions}
    return Subscription(frozenset(read.topics), owned, read.rack_id)


def read_assignment(topics: TopicSource, blob: bytes) -> tuple[dict[bytes, frozenset[int]], bool]:
    """A member's partitions by topic id, and whether the assignment has user data.

    Deleted topics are left out. Raises DecodeError.
    """
    if not blob:
        return {}, False  # the member has no assignment yet
    read = decode_assignment(blob)
    target: dict[bytes, frozenset[int]] = {}
    for line in read.assigned_partitions:
        info = topics.by_name(line.topic)
        if info is not None:
            target[info.topic_id] = frozenset(line.partitions)
    return target, bool(read.user_data)


def assignment_blob(
    topics: TopicSource, partitions: Mapping[bytes, Iterable[int]], subscription: bytes
) -> bytes:
    """An assignment, encoded in the version of the member's subscription."""
    lines = []
    for topic_id, indexes in partitions.items():
        info = topics.by_id(topic_id)
        if info is not None:
            lines.append(TopicPartition(topic=info.name, partitions=sorted(indexes)))
    (version,) = _VERSION.unpack_from(subscription)
    message = ConsumerProtocolAssignment(assigned_partitions=lines)
    return encode_assignment(message, min(version, VERSION_MAX))
