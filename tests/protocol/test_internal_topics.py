"""Records of the internal topics: type and version prefixes around the declared bodies."""

from __future__ import annotations

import pytest

from mockbroker_protocol.exceptions import DecodeError, UnknownVersionError
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from mockbroker_protocol.messages.consumer_offsets import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from mockbroker_protocol.messages.transaction_state import TransactionLogKey, TransactionLogValue


def test_an_offset_commit_is_key_1_and_value_4() -> None:
    """As a 4.3 broker writes it: flexible, the topic id in tag 0."""
    key = OffsetCommitKey(group="g", topic="t", partition=2)
    assert CONSUMER_OFFSETS.encode_key(key).hex() == "000100016700017400000002"
    value = OffsetCommitValue(
        offset=5, leader_epoch=3, metadata="m", commit_timestamp=9, topic_id=b"\1" * 16
    )
    data = CONSUMER_OFFSETS.encode_value(value)
    assert data.hex() == ("0004000000000000000500000003026d0000000000000009010010" + "01" * 16)
    assert CONSUMER_OFFSETS.decode_key(CONSUMER_OFFSETS.encode_key(key)) == key
    assert CONSUMER_OFFSETS.decode_value(key, memoryview(data)) == value


def test_a_value_may_be_written_in_an_older_version() -> None:
    """v1 carries an expiry, v3 a leader epoch."""
    value = OffsetCommitValue(offset=5, metadata="", commit_timestamp=9, expire_timestamp=10)
    data = CONSUMER_OFFSETS.encode_value(value, version=1)
    assert data.hex() == "0001000000000000000500000000000000000009000000000000000a"
    assert CONSUMER_OFFSETS.decode_value(OffsetCommitKey(), data) == value


def test_group_metadata_is_key_2_and_value_3() -> None:
    """Still not flexible in 4.3."""
    key = GroupMetadataKey(group="g")
    value = GroupMetadataValue(protocol_type="consumer", generation=4, protocol=None, leader=None)
    data = CONSUMER_OFFSETS.encode_value(value)
    assert CONSUMER_OFFSETS.encode_key(key).hex() == "0002000167"
    assert data.startswith(b"\0\3\0\x08consumer\0\0\0\4\xff\xff\xff\xff")
    assert CONSUMER_OFFSETS.decode_value(key, data) == value


def test_records_of_consumer_groups_are_known() -> None:
    """Key type 3, value v0."""
    key = ConsumerGroupMetadataKey(group_id="g")
    data = CONSUMER_OFFSETS.encode_value(ConsumerGroupMetadataValue(epoch=6))
    assert CONSUMER_OFFSETS.encode_key(key).hex() == "0003000167"
    assert CONSUMER_OFFSETS.decode_value(key, data).epoch == 6


def test_a_transaction_is_key_0_and_value_1() -> None:
    """v1 is flexible and has the producer ids before and after in tags."""
    key = TransactionLogKey(transactional_id="tx")
    value = TransactionLogValue(producer_id=7, producer_epoch=1, previous_producer_id=6)
    data = TRANSACTION_STATE.encode_value(value)
    assert TRANSACTION_STATE.encode_key(key).hex() == "000000027478"
    assert data[:2] == b"\0\1"
    assert TRANSACTION_STATE.decode_key(b"\0\0\0\2tx") == key
    assert TRANSACTION_STATE.decode_value(key, data) == value


def test_a_tombstone_has_no_value_and_an_unknown_type_no_key() -> None:
    """A later release may keep other records there."""
    assert CONSUMER_OFFSETS.decode_value(OffsetCommitKey(), None) is None
    assert CONSUMER_OFFSETS.decode_key(b"\x70\0\0\1g") is None


def test_damaged_records_say_where() -> None:
    """Any client may write into an internal topic that it is allowed to."""
    with pytest.raises(DecodeError, match="type at byte 0"):
        CONSUMER_OFFSETS.decode_key(b"\0")
    with pytest.raises(DecodeError, match="topic at byte 5"):
        CONSUMER_OFFSETS.decode_key(b"\0\1\0\1g")
    with pytest.raises(UnknownVersionError):
        CONSUMER_OFFSETS.decode_value(OffsetCommitKey(), b"\0\x09")
