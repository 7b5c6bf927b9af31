"""The key of a transactional id's world.

Producer ids, epochs, times and the numbers of transactions are relative to those in force.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.txn.events import NO_PRODUCER_ID, TransactionImage
from mockbroker.core.txn.machine import EPOCH_MAX, TransactionMetadata
from mockbroker.core.txn.states import TransactionState
from tests.simulation.exhaustive.transaction_parties import (
    NEVER_OPENED,
    ProducerClient,
    WaitingRequest,
)

if TYPE_CHECKING:
    from tests.simulation.exhaustive.transactional_id import TransactionalIdWorld


def state_key(world: TransactionalIdWorld) -> object:
    return (
        world.server_version,
        tuple(_client(world, client) for client in world.clients),
        None if world.id is None else _machine(world, world.id),
        _image(world, world.log.image),
        None if world.on_the_way is None else _image(world, world.on_the_way.image),
        tuple(
            (partition, _pair(world, order.producer_id, order.epoch), order.version)
            for partition, order in sorted(world.errands.items())
        ),
        tuple(
            (partition, _pair(world, producer_id, entry.epoch), _number(world, entry.open))
            for (partition, producer_id), entry in sorted(world.entries.items())
            if entry.open or _matters(world, producer_id)
        ),
        tuple(_request(world, callback) for callback in world.waiting),
        tuple(
            (_pair(world, *pair), client)
            for pair, client in sorted(world.given.items())
            if _matters(world, pair[0]) and pair[1] >= (world.id.epoch if world.id else 0)
        ),
        world.log.decisions.get(world.log.transaction),
    )


def _matters(world: TransactionalIdWorld, producer_id: int) -> bool:
    known = {client.producer_id for client in world.clients}
    if world.id is not None:
        known |= {world.id.producer_id, world.id.next_producer_id, world.id.previous_producer_id}
    return producer_id in known and producer_id != NO_PRODUCER_ID


def _pair(world: TransactionalIdWorld, producer_id: int, epoch: int) -> object:
    """A producer id and epoch, as seen from those in force."""
    if world.id is None or producer_id == NO_PRODUCER_ID:
        return producer_id - world.next_producer_id, epoch
    return producer_id - world.id.producer_id, epoch - world.id.epoch


def _number(world: TransactionalIdWorld, transaction: int) -> object:
    """How long ago a transaction was opened, and what became of it."""
    if transaction == NEVER_OPENED:
        return None
    return world.log.transaction == transaction, world.log.decisions.get(transaction)


def _client(world: TransactionalIdWorld, client: ProducerClient) -> object:
    return (
        client.version,
        _pair(world, client.producer_id, client.epoch) if client.producer_id >= 0 else None,
        _number(world, client.transaction),
        client.callback is not None,
    )


def _request(world: TransactionalIdWorld, callback: WaitingRequest) -> object:
    return (
        callback.client,
        callback.kind,
        callback.lost,
        callback.committed,
        _pair(world, callback.producer_id, callback.epoch),
        _number(world, callback.transaction),
    )


def _machine(world: TransactionalIdWorld, transaction: TransactionMetadata) -> object:
    image = transaction.image()
    completion = transaction._completion
    retry_ms = transaction._retry_ms
    return (
        _image(world, image),
        _pair(world, transaction.previous_producer_id, 0),
        min(EPOCH_MAX - transaction.epoch, 4),
        transaction.last_epoch - transaction.epoch if transaction.last_epoch >= 0 else None,
        transaction.pending.value if transaction.pending else None,
        None if completion is None else _image(world, completion),
        None if retry_ms is None else retry_ms - world.now_ms,
        transaction._epoch_fence_failed,
        type(transaction._event).__name__,
    )


def _image(world: TransactionalIdWorld, image: TransactionImage | None) -> object:
    if image is None:
        return None
    open_ms = image.start_ms - world.now_ms if image.state is TransactionState.ONGOING else None
    return (
        image.state.value,
        _pair(world, image.producer_id, image.epoch),
        _pair(world, image.next_producer_id, 0) if image.next_producer_id >= 0 else None,
        image.partitions,
        open_ms,
        image.version,
    )
