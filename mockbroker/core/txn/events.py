"""The events of a transactional id, their effects, and the results of its requests.

All are frozen. A *callback* takes the result of a request and sends the answer. The machine passes
it back with the result exactly once and never calls it. An event without a request has None.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from mockbroker.core.txn.states import TransactionState
from mockbroker_protocol import ErrorCode

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1

TopicPartition: TypeAlias = "tuple[str, int]"

# ------------------------------------------------------------------------------------- results


class InitResult(msgspec.Struct, frozen=True):
    """The producer id and epoch for the next requests."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH


class AddResult(msgspec.Struct, frozen=True):
    error: ErrorCode


class EndResult(msgspec.Struct, frozen=True):
    """With TV2, the producer id and epoch for the next transaction."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH


Result: TypeAlias = InitResult | AddResult | EndResult

# --------------------------------------------------------------------------------------- events


class InitProducer(msgspec.Struct, frozen=True, kw_only=True):
    """InitProducerId. `producer_id` and `epoch` are the producer's former ones, or both -1.

    `new_producer_id` is an unused producer id, or -1 unless `needs_producer_id`.
    `server_version` is the cluster's transaction.version, by which an open transaction is aborted.
    """

    callback: object
    timeout_ms: int
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH
    new_producer_id: int = NO_PRODUCER_ID
    server_version: int


class AddPartitions(msgspec.Struct, frozen=True, kw_only=True):
    """AddPartitionsToTxn or AddOffsetsToTxn; `version` is the client's transaction version."""

    callback: object
    producer_id: int
    epoch: int
    partitions: tuple[TopicPartition, ...]
    version: int


class EndTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """EndTxn; `version` is the client's transaction version: 2 since v5, 0 before."""

    callback: object
    producer_id: int
    epoch: int
    committed: bool
    version: int
    new_producer_id: int = NO_PRODUCER_ID


class Marked(msgspec.Struct, frozen=True):
    """These partitions have their marker, or no longer need one."""

    partitions: tuple[TopicPartition, ...]


class Expire(msgspec.Struct, frozen=True):
    """Remove the id if it was unused for `expiration_ms`."""

    expiration_ms: int


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """A deadline may have passed."""

    new_producer_id: int = NO_PRODUCER_ID
    server_version: int


class Loaded(msgspec.Struct, frozen=True):
    """The log is loaded. A decided end completes."""


class TransactionImage(msgspec.Struct, frozen=True, kw_only=True):
    """A transactional id in a record. Times are in ms since the epoch, -1 for none.

    `last_epoch` is not in the record. As in Kafka, a move of the coordinator loses it.
    """

    state: TransactionState
    producer_id: int
    epoch: int
    timeout_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    last_epoch: int = NO_PRODUCER_EPOCH
    partitions: tuple[TopicPartition, ...] = ()
    start_ms: int = NO_TIMESTAMP
    update_ms: int = NO_TIMESTAMP
    version: int = 0


class Persist(msgspec.Struct, frozen=True):
    """Store this image (None: a tombstone); `Persisted` follows with the result."""

    image: TransactionImage | None
    callback: object = None


class Persisted(msgspec.Struct, frozen=True):
    persist: Persist
    error: ErrorCode


Event: TypeAlias = (
    InitProducer | AddPartitions | EndTransaction | Marked | Expire | Tick | Loaded | Persisted
)

# -------------------------------------------------------------------------------------- effects


class Reply(msgspec.Struct, frozen=True):
    callback: object
    result: Result


class SendMarkers(msgspec.Struct, frozen=True, kw_only=True):
    """Send a marker to each partition; `version` is the transaction's."""

    producer_id: int
    epoch: int
    committed: bool
    partitions: tuple[TopicPartition, ...]
    version: int


class Remove(msgspec.Struct, frozen=True):
    """The tombstone of the id is stored."""


class Moved(msgspec.Struct, frozen=True):
    """The state has changed, for the journal."""

    previous: TransactionState
    state: TransactionState


Effect: TypeAlias = Reply | Persist | SendMarkers | Remove | Moved
