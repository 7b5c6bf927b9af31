"""Sends the markers of a transaction coordinator to the leaders of the partitions.

Each marker is one WriteTxnMarkers on the network between brokers. It is sent after the answer to
EndTxn, and again until the leader has appended it. A marker with an old producer epoch or
coordinator epoch is refused and not sent again; the state of the id then stays until the next
InitProducerId.

With `mockbroker.transaction.marker.delay.ms` the markers of a transaction are sent one after the
other with this delay. Clients that continue at once get CONCURRENT_TRANSACTIONS, as in Kafka.

Source: TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from mockbroker.core.replication.network import Hop
from mockbroker.core.timing.timers import DueTimers
from mockbroker.core.timing.turns import in_turns
from mockbroker.core.txn.markers import Errors, Marker, write_markers
from mockbroker_protocol import ApiKey, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mockbroker.core.services import Services
    from mockbroker.core.txn.events import SendMarkers, TopicPartition
    from mockbroker.core.txn.machine import TransactionMetadata
    from mockbroker.core.txn.markers import MarkerReceiver
    from mockbroker.core.txn.shard import TransactionShard
    from mockbroker_protocol.messages.write_txn_markers import (
        WriteTxnMarkersRequest,
        WriteTxnMarkersResponse,
    )

RETRY_MS = 100
MARKERS_PER_TURN = 500
DELAY_MS = "mockbroker.transaction.marker.delay.ms"

# Retriable errors: a later attempt, or the new leader, may append the marker.
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
    """A marker for one partition that is not appended yet.

    `hop` is the latest attempt, sent at `sent_ms`. A `withheld` marker waits for `send_withheld`.
    """

    __slots__ = ("hop", "key", "marker", "sent_ms", "shard", "transaction", "withheld")

    def __init__(
        self,
        shard: TransactionShard,
        transaction: TransactionMetadata,
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
    """The WriteTxnMarkers of one marker; its answer is an error code.

    After a retry, this hop has no effect, because its connection is closed. A marker that arrives
    after its transaction would end the producer's next transaction.
    """

    __slots__ = ("_markers", "pending")

    API = ApiKey.WRITE_TXN_MARKERS

    def __init__(
        self, markers: TransactionMarkerChannelManager, pending: PendingMarker, leader_id: int
    ) -> None:
        super().__init__(markers.broker_id, leader_id)
        self._markers = markers
        self.pending = pending

    @property
    def transactional_id(self) -> str:
        return self.pending.transaction.transactional_id

    def handle_request(self) -> None:
        self._markers.arrived(self)

    def handle_answer(self, answer: int) -> None:
        if self.pending.hop is self:
            self._markers.answered(self.pending, answer)

    def lost(self) -> None:
        """The sweep finds a hop without an answer after request.timeout.ms."""

    def disconnected(self) -> None:
        if self.pending.hop is self:
            self._markers.retry(self.pending)

    def error_answer(self, error: ErrorCode) -> int:
        return error

    def request(self) -> WriteTxnMarkersRequest:
        from mockbroker_protocol.messages import write_txn_markers as messages

        marker, (topic, index) = self.pending.marker, self.pending.key
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

        topic, index = self.pending.key
        partition_result = messages.WritableTxnMarkerPartitionResult(index, int(answer))
        topics = [messages.WritableTxnMarkerTopicResult(topic, [partition_result])]
        producer_id = self.pending.marker.producer_id
        return messages.WriteTxnMarkersResponse(
            [messages.WritableTxnMarkerResult(producer_id, topics)]
        )


class TransactionMarkerChannelManager:
    """The pending markers of one broker's coordinator."""

    __slots__ = (
        "_brokers",
        "_configs",
        "_is_paused",
        "_metadata",
        "_network",
        "_runtime",
        "_timers",
        "_withheld",
        "broker_id",
        "pending_markers",
    )

    def __init__(
        self,
        services: Services,
        broker_id: int,
        brokers: Mapping[int, MarkerReceiver],
        is_paused: Callable[[], bool],
    ) -> None:
        self._runtime = services.runtime
        self._configs = services.configs
        self._metadata = services.metadata
        self._network = services.network
        self._brokers = brokers
        self.broker_id = broker_id
        self.pending_markers: dict[PendingMarker, None] = {}
        # One timer for each marker to send, and one (None) for the sweep of unanswered ones.
        self._timers: DueTimers[PendingMarker | None] = DueTimers(is_paused)
        self._is_paused = is_paused
        self._withheld = services.withheld_markers

    def send(
        self, shard: TransactionShard, transaction: TransactionMetadata, order: SendMarkers
    ) -> None:
        """Send the markers of a prepared commit or abort to its partitions."""
        marker = Marker(order.producer_id, order.epoch, order.committed, shard.epoch, order.version)
        delay_ms, due_ms = self._configs.get_int(DELAY_MS), self._runtime.now_ms()
        markers = [PendingMarker(shard, transaction, marker, key) for key in order.partitions]
        self.pending_markers.update(dict.fromkeys(markers))
        if delay_ms:
            for pending in markers:
                due_ms = pending.sent_ms = due_ms + delay_ms
                self._send_at(due_ms, pending)
        else:
            in_turns(self._runtime.timers, self._send_all(markers))
        self._arm_sweep()

    def _send_all(self, markers: Sequence[PendingMarker]) -> Iterator[None]:
        """Send markers, very many in turns. If the broker is paused meanwhile, the rest waits."""
        for start in range(0, len(markers), MARKERS_PER_TURN):
            if start:
                yield
            waits = start > 0 and self._is_paused()
            for pending in markers[start : start + MARKERS_PER_TURN]:
                if waits:
                    self._send_at(self._runtime.now_ms(), pending)
                else:
                    self._send(pending)

    def _send_at(self, due_ms: int, pending: PendingMarker) -> None:
        self._timers.arm(self._runtime.timers, pending, due_ms, self._send)

    def _send(self, pending: PendingMarker | None) -> None:
        """Send a marker to the current leader of its partition."""
        if pending is None or pending not in self.pending_markers:
            return
        if pending.shard.unloaded:
            del self.pending_markers[pending]  # the new coordinator sends its own markers
            return
        pending.withheld = pending.transaction.transactional_id in self._withheld
        if pending.withheld:
            return
        partition = self._metadata.image_of(self.broker_id).partition(*pending.key)
        if partition is None:
            self._done(pending)  # a deleted topic needs no marker
            return
        pending.sent_ms = self._runtime.now_ms()
        leader_id = partition.leader_id
        if leader_id not in self._brokers:
            self.retry(pending)
            return
        pending.hop = MarkerHop(self, pending, leader_id)
        self._network.send(pending.hop)

    def send_withheld(self, transactional_id: str) -> None:
        """Send the withheld markers of an id.

        A marker is not sent twice, because the second could end the producer's next transaction
        (the hazard that KIP-890 removes).
        """
        for pending in list(self.pending_markers):
            if pending.withheld and pending.transaction.transactional_id == transactional_id:
                self._send(pending)

    def retry(self, pending: PendingMarker) -> None:
        """Send a marker again after RETRY_MS, to the leader at that time."""
        self._send_at(self._runtime.now_ms() + RETRY_MS, pending)

    def arrived(self, hop: MarkerHop) -> None:
        """Append a marker on its receiver, the leader at the time of sending."""
        pending = hop.pending
        if pending.hop is not hop:
            return

        def written(errors: Errors) -> None:
            self._network.answer(hop, errors[pending.key])

        write_markers(self._brokers[hop.receiver], pending.marker, (pending.key,), written)

    def resume(self) -> None:
        """Resume the broker: run the timers that fell due while it was paused."""
        self._timers.resume()

    def unload(self) -> None:
        """Drop all markers, because the broker's process ends."""
        self._timers.clear()
        self.pending_markers.clear()

    def answered(self, pending: PendingMarker, error: int) -> None:
        """Complete, retry or drop a marker after the leader's answer."""
        if pending not in self.pending_markers:
            return  # an answer to an earlier hop was NONE
        if error in RETRIED:
            self.retry(pending)
        elif error == ErrorCode.NONE:
            self._done(pending)
        else:
            del self.pending_markers[pending]

    def _done(self, pending: PendingMarker) -> None:
        del self.pending_markers[pending]
        pending.shard.marked(pending.transaction, (pending.key,))

    # -- lost messages -----------------------------------------------------------------------------

    def _arm_sweep(self) -> None:
        """Arm the sweep, which sends unanswered markers again."""
        if self.pending_markers:
            timeout_ms = self._configs.get_int("request.timeout.ms")
            due_ms = self._runtime.now_ms() + timeout_ms
            self._timers.arm(self._runtime.timers, None, due_ms, self._on_sweep)

    def _on_sweep(self, _: PendingMarker | None) -> None:
        overdue_ms = self._runtime.now_ms() - self._configs.get_int("request.timeout.ms")
        for pending in list(self.pending_markers):
            if pending.sent_ms <= overdue_ms:
                self._send(pending)
        self._arm_sweep()
