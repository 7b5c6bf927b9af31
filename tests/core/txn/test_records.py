"""Records of transactional ids go into the log as Kafka writes them, and come back whole."""

from __future__ import annotations

import pytest

from mockbroker.core.txn.records import TransactionRecord, key_of, parse, value_of
from mockbroker.core.txn.states import STATUS_CODES, TransactionState
from mockbroker_protocol.exceptions import DecodeError, UnknownVersionError
from mockbroker_protocol.records import Record
from tests.support.txn_play import image


@pytest.mark.parametrize("state", TransactionState)
@pytest.mark.parametrize("server_version", [0, 1, 2])
def test_what_is_written_is_read(state: TransactionState, server_version: int) -> None:
    """Below transaction.version 1 producer ids of before and after, and the version, are lost."""
    written = image(
        state,
        previous_producer_id=6,
        next_producer_id=8,
        partitions=() if state is TransactionState.EMPTY else (("t", 0), ("t", 3), ("u", 1)),
    )
    value = value_of(written, server_version)
    assert value[:2] == (b"\0\0" if server_version == 0 else b"\0\1")
    read = parse(Record(key=key_of("x"), value=value))
    assert read is not None
    lost = {"last_epoch": -1}
    if server_version == 0:
        lost |= {"previous_producer_id": -1, "next_producer_id": -1, "version": 0}
    expected = image(state, partitions=written.partitions, previous_producer_id=6)
    for name in expected.__struct_fields__:
        assert getattr(read.image, name) == lost.get(name, getattr(written, name)), name


def test_an_empty_id_has_no_partitions_at_all() -> None:
    """Null, not an empty list."""
    value = value_of(image(), 2)
    # version, producer id, epoch, timeout, status, partitions: compact null
    assert value[:18].hex() == "0001" + "0000000000000007" + "0005" + "0000ea60" + "00" + "00"
    assert STATUS_CODES[TransactionState.EMPTY] == 0


def test_a_tombstone_has_no_image() -> None:
    assert parse(Record(key=key_of("x"), value=None)) == TransactionRecord("x", None)


def test_a_record_of_another_kind_is_passed_over() -> None:
    assert parse(Record(key=None, value=b"x")) is None
    assert parse(Record(key=b"\0\7", value=b"x")) is None


@pytest.mark.parametrize(
    "value", [b"", b"\0\1\0", b"\0\x63" + bytes(40), value_of(image(), 2).replace(b"`\0", b"`\x2a")]
)
def test_what_cannot_be_read_is_an_error(value: bytes) -> None:
    with pytest.raises((DecodeError, UnknownVersionError)):
        parse(Record(key=key_of("x"), value=value))
