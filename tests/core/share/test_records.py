"""Records of `__share_group_state`, in Kafka's bytes."""

from __future__ import annotations

import pytest

from mockbroker.core.share.records import (
    SharePartitionKey,
    ShareSnapshot,
    ShareState,
    ShareUpdate,
    encode,
    parse,
)
from mockbroker.core.share.state_batches import StateBatch
from mockbroker_protocol.exceptions import DecodeError
from mockbroker_protocol.records import Record

KEY = SharePartitionKey("g", bytes(range(16)), 3)
KEY_HEX = "000167" + bytes(range(16)).hex() + "00000003"
STATE = ShareState(
    snapshot_epoch=1,
    start_offset=5,
    delivery_complete_count=2,
    batches=(StateBatch(6, 9, 1, 2),),
    leader_epoch=7,
    state_epoch=4,
    created_ms=10,
    written_ms=11,
)


def test_a_snapshot_has_the_whole_state() -> None:
    record = encode(ShareSnapshot(KEY, STATE), 99)
    assert record.timestamp == 99
    assert record.key is not None
    assert bytes(record.key).hex() == "0000" + KEY_HEX
    assert record.value is not None
    assert bytes(record.value).hex() == (
        "0000"  # version
        "00000001"
        "00000004"
        "00000007"
        "0000000000000005"
        "000000000000000a"
        "000000000000000b"
        "02"
        "0000000000000006"
        "0000000000000009"
        "02"
        "0001"
        "00"
        "01"
        "00"
        "04"
        "00000002"  # the tagged delivery-complete count
    )
    assert parse(record) == ShareSnapshot(KEY, STATE)


def test_an_update_has_neither_state_epoch_nor_times() -> None:
    update = STATE._replace(state_epoch=0, created_ms=0, written_ms=0, delivery_complete_count=-1)
    record = encode(ShareUpdate(KEY, update), 99)
    assert record.key is not None
    assert bytes(record.key).hex() == "0001" + KEY_HEX
    assert record.value is not None
    assert bytes(record.value).hex() == (
        "00000000000100000007000000000000000502000000000000000600000000000000090200010000"
    )
    assert parse(record) == ShareUpdate(KEY, update)


def test_a_tombstone_is_a_snapshot_without_a_value() -> None:
    record = encode(ShareSnapshot(KEY, None), 99)
    assert record.value is None
    assert parse(record) == ShareSnapshot(KEY, None)


def test_records_of_other_types_are_none_and_broken_ones_are_errors() -> None:
    assert parse(Record(key=None, value=b"x")) is None
    assert parse(Record(key=b"\x00\x63", value=b"x")) is None
    update = encode(ShareUpdate(KEY, STATE), 0)
    assert parse(Record(key=update.key, value=None)) is None
    with pytest.raises(DecodeError):
        parse(Record(key=b"\x00\x00\x00\x09", value=None))


def test_an_update_is_merged_into_the_state() -> None:
    update = ShareState(1, -1, -1, (StateBatch(4, 6, 1, 4),), leader_epoch=-1)
    merged = STATE.merged(update)
    assert merged == STATE._replace(
        delivery_complete_count=-1, batches=(StateBatch(5, 6, 1, 4), StateBatch(7, 9, 1, 2))
    )
    merged = STATE.merged(update._replace(start_offset=8, leader_epoch=9))
    assert (merged.start_offset, merged.leader_epoch) == (8, 9)
    assert merged.batches == (StateBatch(8, 9, 1, 2),)
