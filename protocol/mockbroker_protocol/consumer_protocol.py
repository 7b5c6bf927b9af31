"""The blobs that consumers pass each other through a classic group: subscription and assignment.

Each is an int16 version and the body in that version. A version above the highest known one is read
as that, and bytes left over are ignored, so that newer members can be understood
(`org.apache.kafka.clients.consumer.internals.ConsumerProtocol`).
"""

from __future__ import annotations

from struct import Struct

from mockbroker_protocol.codec import named_codec
from mockbroker_protocol.exceptions import DecodeError
from mockbroker_protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from mockbroker_protocol.types import Buffer

__all__ = ["ConsumerProtocolAssignment", "ConsumerProtocolSubscription", "TopicPartition"]

VERSION_MAX = 3
_VERSION = Struct(">h")


def _decode(name: str, buf: Buffer) -> object:
    if len(buf) < _VERSION.size:
        raise DecodeError("version", 0, f"needs 2 bytes, {len(buf)} left")
    version: int = _VERSION.unpack_from(buf)[0]
    if version < 0:
        raise DecodeError("version", 0, f"version {version}")
    return named_codec("consumer_protocol", name, min(version, VERSION_MAX)).decode(buf, 2)[0]


def _encode(name: str, message: object, version: int) -> bytes:
    body = named_codec("consumer_protocol", name, version).encode(message)
    return _VERSION.pack(version) + body[0]


def decode_subscription(buf: Buffer) -> ConsumerProtocolSubscription:
    """Read a member's metadata from JoinGroup. Raises DecodeError."""
    message = _decode("ConsumerProtocolSubscription", buf)
    assert isinstance(message, ConsumerProtocolSubscription)
    return message


def encode_subscription(
    subscription: ConsumerProtocolSubscription, version: int = VERSION_MAX
) -> bytes:
    """Write a member's metadata for JoinGroup. Raises EncodeError."""
    return _encode("ConsumerProtocolSubscription", subscription, version)


def decode_assignment(buf: Buffer) -> ConsumerProtocolAssignment:
    """Read a member's assignment from SyncGroup. Raises DecodeError."""
    message = _decode("ConsumerProtocolAssignment", buf)
    assert isinstance(message, ConsumerProtocolAssignment)
    return message


def encode_assignment(assignment: ConsumerProtocolAssignment, version: int = VERSION_MAX) -> bytes:
    """Write a member's assignment for SyncGroup. Raises EncodeError."""
    return _encode("ConsumerProtocolAssignment", assignment, version)
