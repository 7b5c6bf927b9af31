"""Records of `__transaction_state`, one for each change of a transactional id.

The key has version 0, the value version 1, or 0 below transaction.version 1. A null value is a
tombstone. Source: TransactionLog.
"""

from __future__ import annotations

from typing import NamedTuple

from mockbroker.core.txn.events import TransactionImage
from mockbroker.core.txn.states import STATES_BY_CODE, STATUS_CODES, TransactionState
from mockbroker_protocol.exceptions import DecodeError
from mockbroker_protocol.internal_topics import TRANSACTION_STATE
from mockbroker_protocol.messages.transaction_state import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from mockbroker_protocol.records import Record

FLEXIBLE_SINCE = 1  # the first transaction.version with values of version 1


class TransactionRecord(NamedTuple):
    """A transactional id. None: the tombstone."""

    transactional_id: str
    image: TransactionImage | None


def key_of(transactional_id: str) -> bytes:
    """The key of a transactional id's records."""
    return TRANSACTION_STATE.encode_key(TransactionLogKey(transactional_id=transactional_id))


def value_of(image: TransactionImage, server_version: int) -> bytes:
    """The encoded image; `server_version` is the cluster's transaction.version."""
    topics: dict[str, list[int]] = {}
    for topic, partition in image.partitions:
        topics.setdefault(topic, []).append(partition)
    value = TransactionLogValue(
        producer_id=image.producer_id,
        previous_producer_id=image.previous_producer_id,
        next_producer_id=image.next_producer_id,
        producer_epoch=image.epoch,
        transaction_timeout_ms=image.timeout_ms,
        transaction_status=STATUS_CODES[image.state],
        transaction_partitions=None
        if image.state is TransactionState.EMPTY
        else [PartitionsSchema(topic=t, partition_ids=p) for t, p in topics.items()],
        transaction_last_update_timestamp_ms=image.update_ms,
        transaction_start_timestamp_ms=image.start_ms,
        client_transaction_version=image.version,
    )
    return TRANSACTION_STATE.encode_value(value, 1 if server_version >= FLEXIBLE_SINCE else 0)


def parse(record: Record) -> TransactionRecord | None:
    """The decoded record, or None if its type is unknown.

    Raises DecodeError or UnknownVersionError if the key or the value cannot be decoded.
    """
    if record.key is None:
        return None
    key = TRANSACTION_STATE.decode_key(record.key)
    if not isinstance(key, TransactionLogKey):
        return None
    value = TRANSACTION_STATE.decode_value(key, record.value)
    return TransactionRecord(key.transactional_id, None if value is None else _image(value))


def _image(value: TransactionLogValue) -> TransactionImage:
    state = STATES_BY_CODE.get(value.transaction_status)
    if state is None:
        raise DecodeError("transaction_status", 0, f"is {value.transaction_status}")
    return TransactionImage(
        state=state,
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        partitions=tuple(
            (entry.topic, partition)
            for entry in value.transaction_partitions or ()
            for partition in entry.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        update_ms=value.transaction_last_update_timestamp_ms,
        version=value.client_transaction_version,
    )
