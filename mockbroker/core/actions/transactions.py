"""Actions on transactions: fence the producer, time out, abort, withhold the markers.

Each causes the events of a client's request or of the coordinator's timers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from mockbroker.core.actions.registry import action
from mockbroker.core.errors import ActionError
from mockbroker.core.txn.events import Result
from mockbroker.core.txn.machine import EPOCHS_BUMPED_SINCE, TransactionMetadata
from mockbroker.core.txn.markers import Errors, Marker, write_markers
from mockbroker.core.txn.shard import TransactionShard
from mockbroker.core.txn.states import TransactionState
from mockbroker.core.validation import Count

if TYPE_CHECKING:
    from mockbroker.core.cluster_state import ClusterState

ABORT = False
NO_COORDINATOR_EPOCH = -1


class Transaction(msgspec.Struct, frozen=True):
    """One transactional id."""

    SHORT: ClassVar[str] = "transactional_id"

    transactional_id: str


class AbortTransaction(msgspec.Struct, frozen=True):
    """The open transaction of an id, or of a producer in one partition."""

    SHORT: ClassVar[str] = "transactional_id"

    transactional_id: str | None = None
    producer_id: Count | None = None
    topic: str | None = None
    partition: Count | None = None

    def __post_init__(self) -> None:
        hanging = (self.producer_id, self.topic, self.partition)
        if (self.transactional_id is None) is any(each is None for each in hanging):
            raise ValueError("give transactional_id, or producer_id, topic and partition")


class HangTransaction(Transaction, frozen=True, kw_only=True):
    """The markers of an id are withheld; `release` sends them."""

    release: bool = False


class TransactionActions:
    """Actions on transactions."""

    @action(Transaction)
    @staticmethod
    def fence_producer(cluster: ClusterState, wanted: Transaction) -> None:
        """Raise the epoch of a transactional id, as Admin.fenceProducers does.

        An open transaction is aborted. The next request of the former producer is refused.
        """
        shard, transaction = _transaction(cluster, wanted.transactional_id)
        shard.init(wanted.transactional_id, transaction.timeout_ms, -1, -1, _ignore_result)

    @action(Transaction)
    @staticmethod
    def expire_transaction(cluster: ClusterState, wanted: Transaction) -> None:
        """Time out an open transaction now."""
        shard, transaction = _open_transaction(cluster, wanted.transactional_id)
        transaction.start_ms = cluster.runtime.now_ms() - transaction.timeout_ms - 1
        shard.check_timeout(wanted.transactional_id)

    @action(AbortTransaction)
    @staticmethod
    def abort_transaction(cluster: ClusterState, wanted: AbortTransaction) -> None:
        """Abort an open transaction as EndTxn does; the producer gets no response.

        A hanging transaction in one partition is ended there by a marker, as with
        `kafka-transactions.sh abort` (KIP-664).
        """
        if wanted.transactional_id is None:
            _abort_hanging(cluster, wanted)
            return
        shard, transaction = _open_transaction(cluster, wanted.transactional_id)
        shard.end(
            wanted.transactional_id,
            transaction.producer_id,
            transaction.epoch,
            min(shard.server_version, EPOCHS_BUMPED_SINCE),
            _ignore_result,
            committed=ABORT,
        )

    @action(HangTransaction)
    @staticmethod
    def hang_transaction(cluster: ClusterState, wanted: HangTransaction) -> None:
        """Withhold the markers of a transactional id, or send the withheld ones.

        EndTxn is answered, but the last stable offset does not pass the transaction's records.
        """
        withheld = cluster.services.withheld_markers
        if not wanted.release:
            withheld.add(wanted.transactional_id)
            return
        withheld.discard(wanted.transactional_id)
        for broker in cluster.processes.values():
            broker.transactions.markers.send_withheld(wanted.transactional_id)


def _abort_hanging(cluster: ClusterState, wanted: AbortTransaction) -> None:
    topic, index, producer_id = wanted.topic, wanted.partition, wanted.producer_id
    assert topic is not None
    assert index is not None
    assert producer_id is not None
    partition = cluster.partition(topic, index)
    if partition is None:
        raise ActionError(f"there is no partition {topic}-{index}")
    broker = cluster.processes.get(partition.leader_id)
    if broker is None:
        raise ActionError(f"{topic}-{index} has no leader")
    producers = cluster.metadata.leader_object(partition).log.producers
    if not producers.has_ongoing_transaction(producer_id):
        raise ActionError(f"producer {producer_id} has no open transaction in {topic}-{index}")
    epoch = producers.entries[producer_id].epoch
    marker = Marker(producer_id, epoch, ABORT, NO_COORDINATOR_EPOCH, 0)
    write_markers(broker, marker, ((topic, index),), _ignore_errors)


# -- finding ---------------------------------------------------------------------------------------


def _transaction(
    cluster: ClusterState, transactional_id: str
) -> tuple[TransactionShard, TransactionMetadata]:
    shard = cluster.transaction_shard(transactional_id)
    if shard is None:
        raise ActionError(f"{transactional_id!r} has no coordinator just now")
    transaction = shard.transactions.get(transactional_id)
    if transaction is None:
        raise ActionError(f"there is no transactional id {transactional_id!r}")
    return shard, transaction


def _open_transaction(
    cluster: ClusterState, transactional_id: str
) -> tuple[TransactionShard, TransactionMetadata]:
    shard, transaction = _transaction(cluster, transactional_id)
    if transaction.state is not TransactionState.ONGOING or transaction.pending is not None:
        raise ActionError(
            f"{transactional_id!r} has no open transaction: it is {transaction.state.value}"
        )
    return shard, transaction


def _ignore_result(_: Result) -> None:
    """The callback of a request without a client."""


def _ignore_errors(_: Errors) -> None:
    """The callback of a marker; the log shows the result."""
