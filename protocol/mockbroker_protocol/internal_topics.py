"""Keys and values of the records in Kafka's internal topics.

A key begins with an int16, the type of record (`CoordinatorRecordType`), a value with an int16, its
version. The body follows in that layout. A null value deletes the record's key.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Any

from mockbroker_protocol.codec import named_codec
from mockbroker_protocol.exceptions import DecodeError
from mockbroker_protocol.types import Buffer

_INT16 = Struct(">h")


class InternalTopic:
    """The record types of one internal topic and the codecs of their keys and values."""

    __slots__ = ("_codes", "_names", "_schema", "_written", "name")

    def __init__(
        self, name: str, schema: str, names: dict[int, str], written: dict[str, int]
    ) -> None:
        self.name = name
        self._schema = schema
        self._names = names
        self._codes = {f"{record}Key": code for code, record in names.items()}
        self._written = written

    def encode_key(self, key: Any) -> bytes:
        """The bytes of a key struct, type in front. Raises EncodeError."""
        name = type(key).__name__
        body = named_codec(self._schema, name, 0).encode(key)
        return _INT16.pack(self._codes[name]) + body[0]

    def encode_value(self, value: Any, version: int | None = None) -> bytes:
        """The bytes of a value struct, version in front. Raises EncodeError.

        Without a version it is written as a 4.3 broker writes it.
        """
        name = type(value).__name__
        if version is None:
            version = self._written.get(name, 0)
        body = named_codec(self._schema, name, version).encode(value)
        return _INT16.pack(version) + body[0]

    def decode_key(self, buf: Buffer) -> Any:
        """The key struct in `buf`, or None for a type of record that is not declared.

        Raises DecodeError.
        """
        record = self._names.get(_prefix(buf, "type"))
        if record is None:
            return None
        return named_codec(self._schema, f"{record}Key", 0).decode(buf, 2)[0]

    def decode_value(self, key: Any, buf: Buffer | None) -> Any:
        """The value struct that belongs to `key`; None for a tombstone. Raises DecodeError."""
        if buf is None:
            return None
        name = type(key).__name__.removesuffix("Key") + "Value"
        return named_codec(self._schema, name, _prefix(buf, "version")).decode(buf, 2)[0]


def _prefix(buf: Buffer, path: str) -> int:
    try:
        value: int = _INT16.unpack_from(buf)[0]
    except error:
        raise DecodeError(path, 0, f"needs 2 bytes, {len(buf)} left") from None
    return value


CONSUMER_OFFSETS = InternalTopic(
    "__consumer_offsets",
    "consumer_offsets",
    {
        1: "OffsetCommit",
        2: "GroupMetadata",
        3: "ConsumerGroupMetadata",
        4: "ConsumerGroupPartitionMetadata",
        5: "ConsumerGroupMemberMetadata",
        6: "ConsumerGroupTargetAssignmentMetadata",
        7: "ConsumerGroupTargetAssignmentMember",
        8: "ConsumerGroupCurrentMemberAssignment",
        10: "ShareGroupMemberMetadata",
        11: "ShareGroupMetadata",
        12: "ShareGroupTargetAssignmentMetadata",
        13: "ShareGroupTargetAssignmentMember",
        14: "ShareGroupCurrentMemberAssignment",
        15: "ShareGroupStatePartitionMetadata",
        16: "ConsumerGroupRegularExpression",
        17: "StreamsGroupMetadata",
        19: "StreamsGroupMemberMetadata",
        20: "StreamsGroupTargetAssignmentMetadata",
        21: "StreamsGroupTargetAssignmentMember",
        22: "StreamsGroupCurrentMemberAssignment",
        23: "StreamsGroupTopology",
    },
    # Seen on a 4.3.1 broker: commits carry the topic id, which needs the flexible v4.
    {"OffsetCommitValue": 4, "GroupMetadataValue": 3},
)
"""Type 0, an offset commit of version 0, is never written; 9 and 18 were removed before release."""

TRANSACTION_STATE = InternalTopic(
    "__transaction_state", "transaction_state", {0: "TransactionLog"}, {"TransactionLogValue": 1}
)

SHARE_GROUP_STATE = InternalTopic(
    "__share_group_state", "share_group_state", {0: "ShareSnapshot", 1: "ShareUpdate"}, {}
)
