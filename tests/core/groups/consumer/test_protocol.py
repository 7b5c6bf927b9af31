"""Blobs of classic consumers in terms of topic ids."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.consumer.protocol import (
    assignment_blob,
    read_assignment,
    read_subscription,
)
from mockbroker_protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from mockbroker_protocol.exceptions import DecodeError
from tests.support.consumer_playbook import Topics, topic_id


def test_a_subscription_says_what_is_wanted_owned_and_where() -> None:
    blob = encode_subscription(
        ConsumerProtocolSubscription(
            topics=["t", "u"], owned_partitions=[TopicPartition("t", [1, 2])], rack_id="r"
        )
    )
    read = read_subscription(blob)
    assert (read.topics, read.owned, read.rack_id) == (frozenset("tu"), {"t": (1, 2)}, "r")
    with pytest.raises(DecodeError):
        read_subscription(b"\0")


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_is_written_in_the_members_own_version(version: int) -> None:
    topics = Topics(t=3)
    subscription = encode_subscription(ConsumerProtocolSubscription(topics=["t"]), version)
    owned = {topic_id("t"): {2: 1, 0: 1}, topic_id("gone"): {0: 1}}
    blob = assignment_blob(topics, owned, subscription)
    assert blob[:2] == subscription[:2]
    (line,) = decode_assignment(blob).assigned_partitions
    assert (line.topic, line.partitions) == ("t", [0, 2])


def test_what_is_assigned_is_read_by_topic_id() -> None:
    parts = [TopicPartition("t", [0, 2]), TopicPartition("gone", [1])]
    message = ConsumerProtocolAssignment(assigned_partitions=parts, user_data=b"x")
    assert read_assignment(Topics(t=3), encode_assignment(message)) == (
        {topic_id("t"): frozenset({0, 2})},
        True,
    )
    assert read_assignment(Topics(), b"") == ({}, False)
    with pytest.raises(DecodeError):
        read_assignment(Topics(), b"\0\0\0")
