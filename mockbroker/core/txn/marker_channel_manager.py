"""Carrying markers from a transaction coordinator to the leaders of the partitions.

Each marker is a WriteTxnMarkers of its own on the network between brokers: later than the answer to
EndTxn, and again until the leader has taken it. A marker that a leader refuses for good,
because another producer epoch or another coordinator has come since, is not sent again: the id
stays where it is until somebody takes it over.

With `mockbroker.transaction.marker.delay.ms` the markers of a transaction set out one after the
other, each that much later than the one before. A real coordinator takes its time as well: clients
that go on at once meet CONCURRENT_TRANSACTIONS.

Source: TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mockbroker.core.replication.network import Hop
from mockbroker.core.timing.timers import DueTimers
from mockbroker.core.txn.markers import Errors, Marker, write_markers
from mockbroker_protocol import ApiKey, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mockbroker.core.services import Services
    from mockbroker.core.txn.events import SendMarkers, TopicPartition
    from mockbroker.core.txn.machine import TransactionalId
    from mockbroker.core.txn.markers import MarkerReceiver
    from mockbroker.core.txn.shard import TransactionShard
    from mockbroker_protocol.messages.write_txn_markers import (
        WriteTxnMarkersRequest,
        WriteTxnMarkersResponse,
    )

RETRY_MS = 100
DELAY_MS = "mockbroker.transaction.marker.delay.ms"

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


class PendingMarker:
    """One marker on its way to one partition, with the latest `hop`; `sent_ms` is when that set
    out. One that is `withheld` waits for `send_withheld`.
    """

    __slots__ = ("hop", "key", "marker", "sent_ms", "shard", "transaction", "withheld")

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
        self.hop: MarkerHop | None = None
        self.sent_ms = 0
        self.withheld = False


class MarkerHop(Hop):
    """One errand on its way to the leader of its partition; the answer to it is an error code.

    Once the errand has set out again, this hop was sent over a connection that is closed by now:
    nothing comes of it. A marker that came after its transaction would end the producer's next one.
    """

    __slots__ = ("_markers", "errand")

    API = ApiKey.WRITE_TXN_MARKERS

    def __init__(
        self, markers: TransactionMarkerChannelManager, errand: PendingMarker, leader_id: int
    ) -> None:
        super().__init__(markers.broker_id, leader_id)
        self._markers = markers
        self.errand = errand

    @property
    def transactional_id(self) -> str:
        return self.errand.transaction.transactional_id

    def arrive(self) -> None:
        self._markers.arrived(self)

    def take(self, answer: int) -> None:
        if self.errand.hop is self:
            self._markers.answered(self.errand, answer)

    def lost(self) -> None:
        """What is not answered is found by the sweep after request.timeout.ms."""

    def unreached(self) -> None:
        if self.errand.hop is self:
            self._markers.retry(self.errand)

    def refused(self, error: ErrorCode) -> int:
        return error

    def request(self) -> WriteTxnMarkersRequest:
        from mockbroker_protocol.messages import write_txn_markers as messages

        marker, (topic, index) = self.errand.marker, self.errand.key
        return messages.WriteTxnMarkersRequest(
            [
                messages.WritableTxnMarker(
                    producer_id=marker.producer_id,
                    producer_epoch=marker.epoch,
                    transaction_result=marker.committed,
                    topics=[messages.WritableTxnMarkerTopic(topic, [index])],
                    coordinator_epoch=marker.coordinator_epoch,
                    transaction_version=marker.version,
                )
            ]
        )

    def response(self, answer: int) -> WriteTxnMarkersResponse:
        from mockbroker_protocol.messages import write_txn_markers as messages

        topic, index = self.errand.key
        told = messages.WritableTxnMarkerPartitionResult(index, int(answer))
        topics = [messages.WritableTxnMarkerTopicResult(topic, [told])]
        producer_id = self.errand.marker.producer_id
        return messages.WriteTxnMarkersResponse(
            [messages.WritableTxnMarkerResult(producer_id, topics)]
        )


class TransactionMarkerChannelManager:
    """The markers that one broker's coordinator has under way."""

    __slots__ = (
        "_brokers",
        "_configs",
        "_metadata",
        "_network",
        "_runtime",
        "_timers",
        "broker_id",
        "under_way",
        "withheld",
    )

    def __init__(
        self,
        services: Services,
        broker_id: int,
        brokers: Mapping[int, MarkerReceiver],
        stands_still: Callable[[], bool],
    ) -> None:
        self._runtime = services.runtime
        self._configs = services.configs
        self._metadata = services.metadata
        self._network = services.network
        self._brokers = brokers
        self.broker_id = broker_id
        self.under_way: dict[PendingMarker, None] = {}
        # One timer for each marker that is to be sent, and one (None) for the sweep of lost ones.
        self._timers: DueTimers[PendingMarker | None] = DueTimers(stands_still)
        # Transactional ids whose markers do not set out, because a rule or a test says so.
        self.withheld: set[str] = set()

    def send(
        self, shard: TransactionShard, transaction: TransactionalId, order: SendMarkers
    ) -> None:
        """Have markers written to the partitions of an end that is decided."""
        marker = Marker(order.producer_id, order.epoch, order.committed, shard.epoch, order.version)
        delay_ms, due_ms = self._configs.get_int(DELAY_MS), self._runtime.now_ms()
        for key in order.partitions:
            errand = PendingMarker(shard, transaction, marker, key)
            self.under_way[errand] = None
            if delay_ms:
                due_ms = errand.sent_ms = due_ms + delay_ms
                self._set_out_at(due_ms, errand)
            else:
                self._set_out(errand)
        self._watch_over()

    def _set_out_at(self, due_ms: int, errand: PendingMarker) -> None:
        self._timers.arm(self._runtime.timers, errand, due_ms, self._set_out)

    def _set_out(self, errand: PendingMarker | None) -> None:
        """Send a marker to its partition's leader, as it is now."""
        if errand is None or errand not in self.under_way:
            return
        if errand.shard.unloaded:
            del self.under_way[errand]  # whoever coordinates now sends markers of its own
            return
        errand.withheld = errand.transaction.transactional_id in self.withheld
        if errand.withheld:
            return
        partition = self._metadata.image_of(self.broker_id).partition(*errand.key)
        if partition is None:
            self._done(errand)  # a deleted topic needs no marker
            return
        errand.sent_ms = self._runtime.now_ms()
        leader_id = partition.leader_id
        if leader_id not in self._brokers:
            self.retry(errand)
            return
        errand.hop = MarkerHop(self, errand, leader_id)
        self._network.send(errand.hop)

    def send_withheld(self, transactional_id: str) -> None:
        """Let the markers of an id set out again, and those that were withheld now.

        One that is on its way already is not sent twice: the second could come after the producer's
        next transaction has begun, and end it (the hazard that KIP-890 ended).
        """
        self.withheld.discard(transactional_id)
        for errand in list(self.under_way):
            if errand.withheld and errand.transaction.transactional_id == transactional_id:
                self._set_out(errand)

    def retry(self, errand: PendingMarker) -> None:
        """Let a marker set out again soon, to whoever leads then."""
        self._set_out_at(self._runtime.now_ms() + RETRY_MS, errand)

    def arrived(self, hop: MarkerHop) -> None:
        """A marker is with the broker that led its partition when it was sent."""
        errand = hop.errand
        if errand.hop is not hop:
            return

        def written(errors: Errors) -> None:
            self._network.answer(hop, errors[errand.key])

        write_markers(self._brokers[hop.receiver], errand.marker, (errand.key,), written)

    def resume(self) -> None:
        """The broker's process was resumed."""
        self._timers.resume()

    def unload(self) -> None:
        """The broker's process ends."""
        self._timers.clear()
        self.under_way.clear()

    def answered(self, errand: PendingMarker, error: int) -> None:
        """The leader has answered."""
        if errand not in self.under_way:
            return  # an answer to what was sent again and has arrived since
        if error in RETRIED:
            self.retry(errand)
        elif error == ErrorCode.NONE:
            self._done(errand)
        else:
            del self.under_way[errand]

    def _done(self, errand: PendingMarker) -> None:
        del self.under_way[errand]
        errand.shard.marked(errand.transaction, (errand.key,))

    # -- messages that were lost ------------------------------------------------------------------

    def _watch_over(self) -> None:
        """Look after request.timeout.ms whether something got no answer."""
        if self.under_way:
            timeout_ms = self._configs.get_int("request.timeout.ms")
            due_ms = self._runtime.now_ms() + timeout_ms
            self._timers.arm(self._runtime.timers, None, due_ms, self._on_sweep)

    def _on_sweep(self, _: PendingMarker | None) -> None:
        overdue_ms = self._runtime.now_ms() - self._configs.get_int("request.timeout.ms")
        for errand in list(self.under_way):
            if errand.sent_ms <= overdue_ms:
                self._set_out(errand)
        self._watch_over()
