"""Carrying markers from a transaction coordinator to the leaders of the partitions.

Each marker is a message through the network between brokers, and so is each answer: later than the
answer to EndTxn, and again until the leader has taken it. A marker that a leader refuses for good,
because another producer epoch or another coordinator has come since, is not sent again: the id
stays where it is until somebody takes it over.

Source: TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.broker_life import PAUSED, RUNNING
from mockbroker.core.replication.network import Message
from mockbroker.core.txn.markers import Errors, Marker, write_markers
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.timers import Timer
    from mockbroker.core.txn.events import SendMarkers, TopicPartition
    from mockbroker.core.txn.machine import TransactionalId
    from mockbroker.core.txn.shard import TransactionShard

RETRY_MS = 100
MARKER = "write_txn_markers"
ANSWER = "write_txn_markers answer"

# The partition may take the marker later, or its new leader may.
RETRIED = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
)


class Errand:
    """One marker on its way to one partition; `sent_ms` is when it last set out."""

    __slots__ = ("key", "marker", "sent_ms", "shard", "transaction")

    def __init__(
        self,
        shard: TransactionShard,
        transaction: TransactionalId,
        marker: Marker,
        key: TopicPartition,
    ) -> None:
        self.shard = shard
        self.transaction = transaction
        self.marker = marker
        self.key = key
        self.sent_ms = 0


class MarkerSender:
    """The markers that one broker's coordinator has under way."""

    __slots__ = ("_cluster", "_sweep", "broker_id", "under_way", "withheld")

    def __init__(self, cluster: Cluster, broker_id: int) -> None:
        self._cluster = cluster
        self.broker_id = broker_id
        self.under_way: dict[Errand, None] = {}
        self._sweep: Timer | None = None
        # Transactional ids whose markers do not set out, because a rule or a test says so.
        self.withheld: set[str] = set()

    def send(
        self, shard: TransactionShard, transaction: TransactionalId, order: SendMarkers
    ) -> None:
        """Have markers written to the partitions of an end that is decided."""
        marker = Marker(order.producer_id, order.epoch, order.committed, shard.epoch, order.version)
        for key in order.partitions:
            errand = Errand(shard, transaction, marker, key)
            self.under_way[errand] = None
            self._set_out(errand)
        self._watch_over()

    def _set_out(self, errand: Errand) -> None:
        """Send a marker to its partition's leader, as it is now."""
        if errand not in self.under_way:
            return
        if errand.shard.unloaded:
            del self.under_way[errand]  # whoever coordinates now sends markers of its own
            return
        if errand.transaction.transactional_id in self.withheld:
            return
        partition = self._cluster.image_of(self.broker_id).partition(*errand.key)
        if partition is None:
            self._done(errand)  # a deleted topic needs no marker
            return
        errand.sent_ms = self._cluster.now_ms()
        leader_id = partition.leader_id
        if leader_id not in self._cluster.processes:
            self._retry(errand)
            return
        self._cluster.replication.network.send(
            Message(self.broker_id, leader_id, MARKER, *errand.key),
            lambda: self._arrive(errand, leader_id),
            lost=lambda: self._retry(errand),
        )

    def send_withheld(self, transactional_id: str) -> None:
        """Let the markers of an id set out again, and those that were withheld now."""
        self.withheld.discard(transactional_id)
        for errand in list(self.under_way):
            if errand.transaction.transactional_id == transactional_id:
                self._set_out(errand)

    def _retry(self, errand: Errand) -> None:
        due_ms = self._cluster.now_ms() + RETRY_MS
        self._cluster.timers.call_at(due_ms, lambda: self._set_out(errand))

    def _arrive(self, errand: Errand, leader_id: int) -> None:
        """The marker is with the broker that led the partition when it was sent."""
        broker = self._cluster.processes.get(leader_id)
        if broker is None or broker.state not in (RUNNING, PAUSED):
            self._retry(errand)  # the connection broke, and the sender noticed
            return
        if broker.state == PAUSED:
            return  # nobody answers: the sender gives up waiting some time
        write_markers(
            self._cluster,
            broker,
            errand.marker,
            (errand.key,),
            lambda errors: self._answer(errand, leader_id, errors),
        )

    def _answer(self, errand: Errand, leader_id: int, errors: Errors) -> None:
        error = errors[errand.key]
        if leader_id == self.broker_id:
            self._take_answer(errand, error)
            return
        self._cluster.replication.network.send(
            Message(leader_id, self.broker_id, ANSWER, *errand.key),
            lambda: self._take_answer(errand, error),
        )

    def _take_answer(self, errand: Errand, error: int) -> None:
        if errand not in self.under_way:
            return  # an answer to what was sent again and has arrived since
        if error in RETRIED:
            self._retry(errand)
        elif error == ErrorCode.NONE:
            self._done(errand)
        else:
            del self.under_way[errand]

    def _done(self, errand: Errand) -> None:
        del self.under_way[errand]
        errand.shard.marked(errand.transaction, (errand.key,))

    # -- messages that were lost ------------------------------------------------------------------

    def _watch_over(self) -> None:
        """Look after request.timeout.ms whether something got no answer."""
        if self._sweep is None and self.under_way:
            timeout_ms = self._cluster.config_int("request.timeout.ms")
            due_ms = self._cluster.now_ms() + timeout_ms
            self._sweep = self._cluster.timers.call_at(due_ms, self._on_sweep)

    def _on_sweep(self) -> None:
        self._sweep = None
        overdue_ms = self._cluster.now_ms() - self._cluster.config_int("request.timeout.ms")
        for errand in list(self.under_way):
            if errand.sent_ms <= overdue_ms:
                self._set_out(errand)
        self._watch_over()
