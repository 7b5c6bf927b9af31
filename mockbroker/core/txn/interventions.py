"""What people, tests and rules may do to transactions: fence their producer, let them run out of
time, abort them, withhold their markers.

Each goes the way that a client's request or the coordinator's own clock would go. Raises
ActionError, and then nothing has changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.errors import ActionError
from mockbroker.core.topic import TRANSACTION_STATE_TOPIC
from mockbroker.core.txn.events import Result
from mockbroker.core.txn.machine import EPOCHS_BUMPED_SINCE, TransactionalId
from mockbroker.core.txn.markers import Errors, Marker, write_markers
from mockbroker.core.txn.shard import TransactionShard
from mockbroker.core.txn.states import State
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.txn.marker_sender import MarkerSender

ABORT = False
NO_COORDINATOR_EPOCH = -1


def fence_producer(cluster: Cluster, transactional_id: str) -> None:
    """Raise the epoch of a transactional id, as an administrator does who fences producers.

    What is open is aborted; the producer that is there is told so with its next request.
    """
    shard, transaction = _transaction(cluster, transactional_id)
    shard.init(transactional_id, transaction.timeout_ms, -1, -1, _nobody)


def expire_transaction(cluster: Cluster, transactional_id: str) -> None:
    """Let a transaction that is open have run out of time, now."""
    shard, transaction = _transaction(cluster, transactional_id)
    if transaction.state is not State.ONGOING or transaction.pending is not None:
        raise ActionError(
            f"{transactional_id!r} has no open transaction: it is {transaction.state.value}"
        )
    transaction.start_ms = cluster.now_ms() - transaction.timeout_ms - 1
    shard.look_at(transactional_id)


def abort_transaction(cluster: Cluster, transactional_id: str) -> None:
    """Abort a transaction that is open, as its producer would; that one does not know."""
    shard, transaction = _transaction(cluster, transactional_id)
    if transaction.state is not State.ONGOING or transaction.pending is not None:
        raise ActionError(
            f"{transactional_id!r} has no open transaction: it is {transaction.state.value}"
        )
    shard.end(
        transactional_id,
        transaction.producer_id,
        transaction.epoch,
        min(shard.server_version, EPOCHS_BUMPED_SINCE),
        _nobody,
        committed=ABORT,
    )


def abort_hanging(cluster: Cluster, topic: str, index: int, producer_id: int) -> None:
    """Write the marker that ends a producer's open transaction in one partition, as
    `kafka-transactions.sh abort` does with one that hangs (KIP-664).
    """
    partition = cluster.partition(topic, index)
    if partition is None:
        raise ActionError(f"there is no partition {topic}-{index}")
    broker = cluster.processes.get(partition.leader_id)
    if broker is None:
        raise ActionError(f"{topic}-{index} has no leader")
    producers = cluster.led(partition).log.producers
    if not producers.has_ongoing_transaction(producer_id):
        raise ActionError(f"producer {producer_id} has no open transaction in {topic}-{index}")
    marker = Marker(
        producer_id, producers.entries[producer_id].epoch, ABORT, NO_COORDINATOR_EPOCH, 0
    )
    write_markers(cluster, broker, marker, ((topic, index),), _no_errors)


def hang_transaction(cluster: Cluster, transactional_id: str, *, hang: bool = True) -> None:
    """Withhold the markers of a transactional id's ends from now on, or send those withheld.

    An end is decided and told, and its records stay beyond the last stable offset all the same.
    """
    for broker in cluster.processes.values():
        sender: MarkerSender = broker.transactions.markers
        if hang:
            sender.withheld.add(transactional_id)
        else:
            sender.send_withheld(transactional_id)


# -- finding ---------------------------------------------------------------------------------------


def _transaction(
    cluster: Cluster, transactional_id: str
) -> tuple[TransactionShard, TransactionalId]:
    index = cluster.find_coordinator_partition(transactional_id, TRANSACTION_STATE_TOPIC)
    partition = cluster.partition(TRANSACTION_STATE_TOPIC, index)
    leader = None if partition is None else cluster.brokers.get(partition.leader_id)
    shard = None if leader is None else leader.transactions.shard_of(transactional_id)
    if shard is None or isinstance(shard, ErrorCode):
        raise ActionError(f"{transactional_id!r} has no coordinator just now")
    transaction = shard.transactions.get(transactional_id)
    if transaction is None:
        raise ActionError(f"there is no transactional id {transactional_id!r}")
    return shard, transaction


def _nobody(_: Result) -> None:
    """Takes the answer to what no client has asked."""


def _no_errors(_: Errors) -> None:
    """The partition says how it went by what it holds."""
