"""Producers without transactions, idempotent or not."""

from __future__ import annotations

from contextlib import suppress

from mockbroker.simulation.clients.base import (
    ATTEMPTS_MAX,
    RETRIABLE,
    CallSequence,
    GaveUp,
    Leader,
    SimulatedClient,
)
from mockbroker.simulation.history import Disordered, Sent, Transaction
from mockbroker.simulation.script import Call, Disconnected, RequestTimedOut, Script
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.init_producer_id import InitProducerIdRequest
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.records import Record, build_batch

_TOPIC_IDS_SINCE = 13
_CRC = slice(17, 21)  # of a batch
_DONE = frozenset((0, int(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)))
_OUT_OF_ORDER = int(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
_PRODUCE_TIMEOUT_MS = 3_000
_EXPIRED_SHARE = 0.3
_ZOMBIE_SHARE = 0.04


class Writer(SimulatedClient):
    """The base of all producers: batches, sequence numbers and retries."""

    producer_id = -1
    epoch = -1
    transactional_id: str | None = None

    def restart_sequences(self, producer_id: int, epoch: int) -> None:
        """Use this producer id and epoch from now on; each partition begins at sequence 0."""
        self.producer_id, self.epoch = producer_id, epoch
        self._sequences: dict[tuple[str, int], int] = {}

    _written = 0

    def choose_partition(self, topic: str) -> int | None:
        """A random partition of a topic; None if the metadata has none."""
        known = self.partitions_of(topic)
        return self.rng.choice(known) if known else None

    def new_batch(
        self, topic: str, partition: int, transaction: Transaction | None = None
    ) -> tuple[Sent, bytes]:
        """A batch of one to three records with unique values."""
        count = self.rng.choice((1, 1, 1, 2, 3))
        values = []
        for _ in range(count):
            self._written += 1
            values.append(f"{self.name}:{self._written}".encode())
        leader = self.leader(topic, partition)
        sent = Sent(
            self.name,
            topic,
            b"" if leader is None else leader.topic_id,
            partition,
            values,
            self.settings.acks,
            transaction,
            self.history.now_ms(),
        )
        sequence = -1
        if self.producer_id >= 0:
            sequence = self._sequences.get((topic, partition), 0)
            self._sequences[topic, partition] = sequence + count
        now_ms = self.history.now_ms()
        batch = bytes(
            build_batch(
                [Record(offset, now_ms, b"k", value) for offset, value in enumerate(values)],
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                base_sequence=sequence,
                transactional=transaction is not None,
            )
        )
        sent.crc = int.from_bytes(batch[_CRC], "big")
        sent.producer_id, sent.epoch = self.producer_id, self.epoch
        self.history.batch_sent(sent)
        if transaction is not None:
            transaction.batches.append(sent)
        return sent, batch

    def produce_request(
        self, topic: str, partition: int, leader: Leader, batch: bytes, acks: int
    ) -> tuple[int, ProduceRequest]:
        """The version and the Produce request of a batch."""
        version = self.versions.of(ApiKey.PRODUCE)
        by_id = version >= _TOPIC_IDS_SINCE
        request = ProduceRequest(
            self.transactional_id,
            acks,
            _PRODUCE_TIMEOUT_MS,
            [
                TopicProduceData(
                    "" if by_id else topic,
                    leader.topic_id if by_id else bytes(16),
                    [PartitionProduceData(partition, memoryview(batch))],
                )
            ],
        )
        return version, request

    def deliver(self, sent: Sent, batch: bytes) -> CallSequence:
        """Send a batch until it is acknowledged. Raises GaveUp with the last error."""
        topic, partition = sent.topic, sent.partition
        error = 0
        for attempt in range(ATTEMPTS_MAX):
            leader = self.leader(topic, partition)
            if leader is None:
                yield self.backoff(attempt)
                yield from self.refresh()
                continue
            version, request = self.produce_request(topic, partition, leader, batch, sent.acks)
            requested = self.history.turn()
            try:
                response = yield Call(
                    leader.node_id, ApiKey.PRODUCE, version, request, self.patience_ms()
                )
            except (Disconnected, RequestTimedOut) as silence:
                if sent.acks == 0:
                    return
                late = isinstance(silence, RequestTimedOut) and self.rng.random() < _EXPIRED_SHARE
                if late:  # delivery.timeout.ms has passed; the batch may still be in flight
                    self.history.counts["batches expired"] += 1
                    break
                yield self.backoff(attempt)
                yield from self.refresh()
                continue
            if response is None:
                return
            answer = response.responses[0].partition_responses[0]
            error = answer.error_code
            if error in _DONE:
                self._acknowledged(sent, leader, answer.base_offset)
                return
            if error == _OUT_OF_ORDER:
                sent.topic_id = leader.topic_id
                self.history.disordered.append(
                    Disordered(sent, leader.node_id, requested, self.history.turn())
                )
            if error not in RETRIABLE:
                break
            yield self.backoff(attempt)
            yield from self.refresh()
        raise GaveUp(f"{topic}-{partition}", error)

    def _acknowledged(self, sent: Sent, leader: Leader, base_offset: int) -> None:
        history = self.history
        history.counts["batches acknowledged"] += 1
        if base_offset < 0:
            return  # acks=0, or a duplicate without a known offset
        sent.base_offset = base_offset
        sent.topic_id, sent.node_id = leader.topic_id, leader.node_id
        sent.acked_ms = history.now_ms()
        history.acked.append(sent)


class Producer(Writer):
    """Produces one batch at a time."""

    def live(self) -> Script:
        yield from self.refresh()
        if self.settings.idempotent:
            yield from self._init()
        for _ in range(self.settings.operations):
            yield self.pause()
            topic = self.rng.choice(self.settings.topics)
            partition = self.choose_partition(topic)
            if partition is None:
                yield from self.refresh()
                continue
            try:
                yield from self.deliver(*self.new_batch(topic, partition))
            except GaveUp:
                self.history.counts["batches given up"] += 1
                if self.settings.idempotent:  # the next batch must not leave a gap
                    yield from self._bump_epoch()
                continue
            if self.settings.idempotent and self.rng.random() < _ZOMBIE_SHARE:
                yield from self._send_fenced_batch(topic, partition)

    def _bump_epoch(self) -> CallSequence:
        """Continue with the next epoch, which the client may choose (KIP-360), or a new id."""
        if self.rng.random() < 0.5:
            self.restart_sequences(self.producer_id, self.epoch + 1)
        else:
            yield from self._init()

    def _send_fenced_batch(self, topic: str, partition: int) -> CallSequence:
        """Send a batch with a new epoch, then a late one with the former epoch.

        Only its epoch is wrong: its sequence is the next one.
        """
        former = self.epoch
        self.restart_sequences(self.producer_id, former + 1)
        sent, batch = self.new_batch(topic, partition)
        try:
            yield from self.deliver(sent, batch)
        except GaveUp:
            yield from self._init()
            return
        leader = self.leader(topic, partition)
        if leader is None:
            return
        late = bytes(
            build_batch(
                [Record(0, self.history.now_ms(), b"k", b"late")],
                producer_id=self.producer_id,
                producer_epoch=former,
                base_sequence=sent.count,
            )
        )
        version, request = self.produce_request(topic, partition, leader, late, -1)
        with suppress(Disconnected, RequestTimedOut):
            yield Call(leader.node_id, ApiKey.PRODUCE, version, request, self.patience_ms())
            self.history.counts["late batches answered"] += 1

    def _init(self) -> CallSequence:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        version = self.versions.of(ApiKey.INIT_PRODUCER_ID)
        for attempt in range(ATTEMPTS_MAX):
            try:
                response = yield Call(
                    self.any_node(), ApiKey.INIT_PRODUCER_ID, version, request, self.patience_ms()
                )
            except (Disconnected, RequestTimedOut):
                yield self.backoff(attempt)
                continue
            if response.error_code == 0:
                self.restart_sequences(response.producer_id, response.producer_epoch)
                return
            yield self.backoff(attempt)
        raise GaveUp("producer id")
