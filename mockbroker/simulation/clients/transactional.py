"""Transactional producers, also such that read, transform and write, and commit what they read."""

from __future__ import annotations

from mockbroker.simulation import history as happened
from mockbroker.simulation.clients.base import GROUP, RETRIABLE, TRANSACTION, Asking, GaveUp
from mockbroker.simulation.clients.producer import Writer
from mockbroker.simulation.clients.reading import Reading
from mockbroker.simulation.history import Commit, Transaction
from mockbroker.simulation.script import Script
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from mockbroker_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from mockbroker_protocol.messages.end_txn import EndTxnRequest
from mockbroker_protocol.messages.init_producer_id import InitProducerIdRequest
from mockbroker_protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

_CONCURRENT = frozenset((int(ErrorCode.CONCURRENT_TRANSACTIONS),))
# The producer is no longer the one with its transactional id: it must not go on.
_FENCED = frozenset(
    (
        int(ErrorCode.PRODUCER_FENCED),
        int(ErrorCode.INVALID_PRODUCER_EPOCH),
        int(ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        int(ErrorCode.INVALID_TXN_STATE),
    )
)
_LIVES_MAX = 6


class _Fatal(Exception):  # noqa: N818 - it names what happened
    """The producer may not go on; the application starts another."""


class TransactionalProducer(Writer, Reading):
    """One transaction after the other under one transactional id."""

    def topic_names(self) -> list[str]:
        own = self.settings.topics
        return [*own, self.settings.input] if self.settings.input else own

    def live(self) -> Script:
        self.transactional_id = self.settings.transactional_id
        self.ready = False
        lives = 0
        yield from self.refresh()
        for number in range(self.settings.operations):
            yield self.pause()
            if not self.ready:
                lives += 1
                if lives > _LIVES_MAX:
                    return
                try:
                    yield from self._init()
                except _Fatal:
                    continue
            self._count = number
            try:
                yield from self._transaction()
            except _Fatal:
                self.ready = False
                self.history.counts["producers fenced"] += 1
            except GaveUp:
                self.ready = False

    # -- the coordinator ---------------------------------------------------------------------------

    def _ask(self, api: ApiKey, request: object, error_of: object = None) -> Asking:
        assert self.transactional_id is not None
        response = yield from self.ask_coordinator(
            TRANSACTION, self.transactional_id, api, request, error_of, also_retry=_CONCURRENT
        )
        return response

    def _init(self) -> Asking:
        """A new epoch under the transactional id: whoever had it before is fenced."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.settings.transaction_timeout_ms,
        )
        response = yield from self._ask(ApiKey.INIT_PRODUCER_ID, request)
        if response.error_code:
            raise _Fatal
        self.history.counts["producers initialised"] += 1
        self.restart_sequences(response.producer_id, response.producer_epoch)
        self.ready = True
        if self.settings.input:
            yield from self.find_positions(self.settings.group, [self.settings.input])

    # -- one transaction ---------------------------------------------------------------------------

    def _transaction(self) -> Asking:
        self._incarnation = (self.producer_id, self.epoch)
        name = f"{self.name}#{self._count}@{self.history.now_ms()}"
        transaction = Transaction(name, self.settings.transactional_id)
        self._added: set[tuple[str, int]] = set()
        self.history.transactions.append(transaction)
        sound = True
        try:
            yield from self._fill(transaction)
        except GaveUp as gave_up:
            if gave_up.error in _FENCED:
                raise _Fatal from None
            sound = False
        commit = sound and self.rng.random() >= self.settings.abort_share
        yield from self._end(transaction, commit=commit)
        if not sound:
            self.ready = False  # a batch is missing: the sequence numbers begin anew

    def _fill(self, transaction: Transaction) -> Asking:
        positions: dict[tuple[str, int], int] = {}
        if self.settings.input:
            positions = yield from self._consume()
        for _ in range(self.rng.randint(1, 3)):
            topic = self.rng.choice(self.settings.topics)
            partition = self.choose_partition(topic)
            if partition is None:
                yield from self.refresh()
                continue
            if not self.versions.uses_tv2 and (topic, partition) not in self._added:
                yield from self._add_partition(topic, partition)
            yield from self.deliver(*self.new_batch(topic, partition, transaction))
            self._added.add((topic, partition))
        if positions:
            yield from self._commit_offsets(transaction, positions)

    def _add_partition(self, topic: str, partition: int) -> Asking:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.settings.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(topic, [partition])],
        )

        def error_of(response: object) -> int:
            topics = response.results_by_topic_v3_and_below  # type: ignore[attr-defined]
            return int(topics[0].results_by_partition[0].partition_error_code)

        response = yield from self._ask(ApiKey.ADD_PARTITIONS_TO_TXN, request, error_of)
        error = error_of(response)
        if error:
            raise GaveUp("add partitions", error)

    def _consume(self) -> Asking:
        """What comes next in the input; where each partition then stands."""
        yield from self.poll()
        return dict(self.positions)

    def _commit_offsets(
        self, transaction: Transaction, positions: dict[tuple[str, int], int]
    ) -> Asking:
        settings = self.settings
        ids = (self.producer_id, self.epoch)
        if not self.versions.uses_tv2:
            adding = AddOffsetsToTxnRequest(settings.transactional_id, *ids, settings.group)
            response = yield from self._ask(ApiKey.ADD_OFFSETS_TO_TXN, adding)
            if response.error_code:
                raise GaveUp("add offsets", response.error_code)
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in positions.items():
            topics.setdefault(topic, []).append(
                TxnOffsetCommitRequestPartition(partition, offset, -1, "")
            )
            commit = Commit(settings.group, topic, partition, offset, self.history.turn())
            commit.doubtful = True  # until the end is acknowledged; and an end may come late
            transaction.commits.append(commit)
            self.history.commits.append(commit)
        request = TxnOffsetCommitRequest(
            transactional_id=settings.transactional_id,
            group_id=settings.group,
            producer_id=ids[0],
            producer_epoch=ids[1],
            topics=[TxnOffsetCommitRequestTopic(name, rows) for name, rows in topics.items()],
        )

        def error_of(response: object) -> int:
            rows = [row for topic in response.topics for row in topic.partitions]  # type: ignore[attr-defined]
            return next((int(row.error_code) for row in rows if row.error_code), 0)

        response = yield from self.ask_coordinator(
            GROUP,
            settings.group,
            ApiKey.TXN_OFFSET_COMMIT,
            request,
            error_of,
            also_retry=_CONCURRENT | (RETRIABLE & _UNKNOWN_TOPIC),
        )
        error = error_of(response)
        if error:
            raise GaveUp("offsets", error)

    def _end(self, transaction: Transaction, *, commit: bool) -> Asking:
        if self.versions.uses_tv2 and not transaction.batches and not transaction.commits:
            transaction.state = happened.ABORTED  # the coordinator has never heard of it
            return
        if not self.versions.uses_tv2 and not self._added and not transaction.commits:
            transaction.state = happened.ABORTED
            return
        transaction.state = happened.COMMITTING if commit else happened.ABORTING
        request = EndTxnRequest(
            self.settings.transactional_id, self.producer_id, self.epoch, commit
        )
        response = yield from self._ask(ApiKey.END_TXN, request)
        if response.error_code:
            raise _Fatal
        transaction.state = happened.COMMITTED if commit else happened.ABORTED
        counts = self.history.counts
        counts["transactions committed" if commit else "transactions aborted"] += 1
        if commit:
            acked = self.history.turn()
            for each in transaction.commits:
                each.acked, each.doubtful = acked, False
                counts["offsets committed"] += 1
        if not commit and self.settings.input:
            yield from self.find_positions(self.settings.group, [self.settings.input])
        if self.versions.uses_tv2 and response.producer_id >= 0:
            self.restart_sequences(response.producer_id, response.producer_epoch)


_UNKNOWN_TOPIC = frozenset((int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),))
