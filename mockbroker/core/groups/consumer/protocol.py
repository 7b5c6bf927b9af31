"""The blobs of classic consumers, in the terms of consumer groups: topic ids and owned maps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct

import msgspec

from mockbroker.core.groups.consumer.topics import TopicSource
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
    """What a classic consumer subscribes to, what it says it owns, and where it is."""

    topics: frozenset[str]
    owned: Mapping[str, tuple[int, ...]]
    rack_id: str | None


def read_subscription(blob: bytes) -> Subscription:
    """Read a member's metadata. Raises DecodeError."""
    read = decode_subscription(blob)
    owned = {line.topic: tuple(line.partitions) for line in read.owned_partitions}
    return Subscription(frozenset(read.topics), owned, read.rack_id)


def read_assignment(topics: TopicSource, blob: bytes) -> tuple[dict[bytes, frozenset[int]], bool]:
    """A member's partitions by topic id, and whether its assignor left data of its own with them.

    Topics that are gone are left out. Raises DecodeError.
    """
    if not blob:
        return {}, False  # it has not got any yet
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
    """An assignment in the version in which the member wrote its subscription."""
    lines = []
    for topic_id, indexes in partitions.items():
        info = topics.by_id(topic_id)
        if info is not None:
            lines.append(TopicPartition(topic=info.name, partitions=sorted(indexes)))
    (version,) = _VERSION.unpack_from(subscription)
    message = ConsumerProtocolAssignment(assigned_partitions=lines)
    return encode_assignment(message, min(version, VERSION_MAX))
