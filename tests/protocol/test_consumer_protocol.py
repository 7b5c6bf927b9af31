"""Subscription and assignment blobs, and tolerance towards newer members."""

from __future__ import annotations

import pytest

from mockbroker_protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from mockbroker_protocol.exceptions import DecodeError


def test_a_subscription_of_version_0_is_the_known_bytes() -> None:
    """What old clients send: topics and user data."""
    subscription = ConsumerProtocolSubscription(topics=["a", "b"], user_data=b"\x07")
    data = encode_subscription(subscription, version=0)
    assert data.hex() == "0000000000020001610001620000000107"
    assert decode_subscription(data) == subscription


def test_a_subscription_of_version_3_has_everything() -> None:
    """Owned partitions, generation and rack came with v1, v2 and v3."""
    subscription = ConsumerProtocolSubscription(
        topics=["a"],
        owned_partitions=[TopicPartition("a", [0, 1])],
        generation_id=4,
        rack_id="r",
    )
    data = encode_subscription(subscription)
    assert data.startswith(b"\0\3")
    assert decode_subscription(memoryview(data)) == subscription


def test_an_assignment_is_the_known_bytes() -> None:
    """Null user data is a length of -1."""
    assignment = ConsumerProtocolAssignment(assigned_partitions=[TopicPartition("t", [0, 2])])
    data = encode_assignment(assignment, version=0)
    assert data.hex() == "000000000001000174000000020000000000000002ffffffff"
    assert decode_assignment(data) == assignment


def test_a_version_yet_unknown_is_read_as_the_highest_known_and_its_extras_ignored() -> None:
    """Kafka's ConsumerProtocol promises that to members of mixed releases."""
    data = encode_subscription(ConsumerProtocolSubscription(topics=["a"], rack_id="r"))
    newer = b"\0\x09" + data[2:] + b"whatever"
    assert decode_subscription(newer).rack_id == "r"


@pytest.mark.parametrize(
    ("data", "path"), [("", "version"), ("00", "version"), ("ffff", "version"), ("0000", "topics")]
)
def test_a_blob_that_cannot_be_read_says_where(data: str, path: str) -> None:
    """A negative version is none."""
    with pytest.raises(DecodeError) as caught:
        decode_subscription(bytes.fromhex(data))
    assert caught.value.path == path
