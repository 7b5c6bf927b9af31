"""What coordinators know of transactions that are not over, and of the markers of those."""

from __future__ import annotations

from collections.abc import Iterator

from mockbroker.core.cluster import Cluster
from mockbroker.core.events import MarkerWritten
from mockbroker.core.txn.events import TopicPartition
from mockbroker.core.txn.machine import EPOCHS_BUMPED_SINCE, TransactionMetadata
from mockbroker.core.txn.shard import TransactionShard
from mockbroker.core.txn.states import TransactionState
from mockbroker.simulation import observe
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import BatchHeader

_PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


def open_transactions(cluster: Cluster) -> list[TransactionMetadata]:
    """The transactional ids with a transaction that is not over."""
    return [
        transaction
        for broker in cluster.brokers.values()
        for shard in broker.transactions.shards()
        if not isinstance(shard, ErrorCode)
        for transaction in shard.transactions.values()
        if transaction.state is TransactionState.ONGOING or transaction.state in _PREPARED
    ]


def is_superseded(cluster: Cluster, transaction: TransactionMetadata) -> bool:
    """Whether the end of a transaction is decided under an epoch that is over in one of its
    partitions, because its coordinator has gone back to what it was. A leader refuses the marker
    there for good, and the transaction stays as it is
    (TransactionMarkerRequestCompletionHandler, INVALID_PRODUCER_EPOCH).
    """
    if transaction.state not in _PREPARED:
        return False
    for key in transaction.partitions:
        partition = cluster.partition(*key)
        if partition is None:
            continue
        entry = partition.log.producers.entries.get(transaction.producer_id)
        if entry is None:
            continue
        # Since transaction.version 2 an end has an epoch of its own, under which nothing begins.
        begun = (
            transaction.version >= EPOCHS_BUMPED_SINCE
            and entry.epoch == transaction.epoch
            and entry.transaction_start >= 0
        )
        if begun or entry.epoch > transaction.epoch:
            return True
    return False


def decided(cluster: Cluster) -> Iterator[tuple[TransactionMetadata, list[TopicPartition]]]:
    """The transactions whose end is decided, as the coordinators of the newest epochs have them,
    and the partitions to which no marker is on its way. Nothing is read on account of that.
    """
    topic = cluster.topics.get(observe.TRANSACTIONS)
    for partition in () if topic is None else topic.partitions:
        broker = cluster.processes.get(partition.leader_id)
        shard = None if broker is None else observe.shard_of(broker, partition)
        if broker is None or not isinstance(shard, TransactionShard):
            continue
        if shard.epoch != partition.leader_epoch or not observe.fits(broker, shard):
            continue
        for transaction in shard.transactions.values():
            if transaction.state in _PREPARED:
                sent = {
                    pending.key
                    for pending in broker.transactions.markers.pending_markers
                    if pending.transaction is transaction
                }
                yield transaction, [key for key in transaction.partitions if key not in sent]


def is_verifying_after(cluster: Cluster, marker: MarkerWritten) -> bool:
    """Whether the leader that has just written a marker still has the coordinator asked about a
    batch that its producer sent before.
    """
    partition = cluster.partition(marker.topic, marker.partition)
    if partition is None:
        return False
    for view in observe.replicas(cluster, partition):
        producers = view.log.producers
        is_writer = view.leads and view.leader_epoch == marker.leader_epoch
        if is_writer and view.log.end_offset == marker.offset + 1:
            entry = producers.entries.get(marker.producer_id)
            if entry is not None and marker.producer_id in producers.guards:
                # A former leader that is cut off may have something else at this offset.
                *_, last = map(BatchHeader, view.log.batches())
                is_the_marker = last.is_control and last.producer_id == marker.producer_id
                return is_the_marker and entry.epoch == marker.producer_epoch
    return False
