"""Transactional ids, and the open transactions of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.metadata.topic import TRANSACTION_STATE_TOPIC
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster


class TransactionView(msgspec.Struct, frozen=True):
    """One transactional id on its coordinator. `start_ms` is -1 without a transaction."""

    transactional_id: str
    state: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int
    partitions: list[tuple[str, int]]


class OpenTransactionView(msgspec.Struct, frozen=True):
    """A transaction with records in a partition but without a marker.

    It *hangs* if no coordinator has the transaction: it has no end.
    """

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    first_offset: int
    hangs: bool


def transaction_views(cluster: Cluster) -> list[TransactionView]:
    """All transactional ids with a loaded coordinator, by id."""
    if TRANSACTION_STATE_TOPIC not in cluster.topics:
        return []
    found = [
        TransactionView(
            transactional_id=transaction.transactional_id,
            state=transaction.state.value,
            coordinator=broker.node_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.epoch,
            timeout_ms=transaction.timeout_ms,
            start_ms=transaction.start_ms,
            partitions=list(transaction.partitions),
        )
        for broker in cluster.brokers.values()
        for shard in broker.transactions.shards()
        if not isinstance(shard, ErrorCode)
        for transaction in shard.transactions.values()
    ]
    return sorted(found, key=lambda view: view.transactional_id)


def open_transaction_views(cluster: Cluster) -> list[OpenTransactionView]:
    """All open transactions, by partition."""
    known = {
        (view.producer_id, partition)
        for view in transaction_views(cluster)
        for partition in view.partitions
    }
    return [
        OpenTransactionView(
            topic=topic.name,
            partition=partition.index,
            producer_id=producer_id,
            producer_epoch=entry.epoch,
            first_offset=entry.transaction_start,
            hangs=(producer_id, (topic.name, partition.index)) not in known,
        )
        for topic in cluster.topics.values()
        for partition in topic.partitions
        for producer_id, entry in partition.log.producers.entries.items()
        if entry.transaction_start >= 0
    ]
