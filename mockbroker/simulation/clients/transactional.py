"""Transactional producers, some of them consume-transform-produce."""

from __future__ import annotations

from typing import Any

from mockbroker.simulation import history as happened
from mockbroker.simulation.clients.base import GROUP, RETRIABLE, TRANSACTION, CallSequence, GaveUp
from mockbroker.simulation.clients.producer import Writer
from mockbroker.simulation.clients.reading import Reading
from mockbroker.simulation.history import Commit, Transaction, Unfenced
from mockbroker.simulation.script import Call, Disconnected, RequestTimedOut, Script, Sleep
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
from mockbroker_protocol.records import Record, build_batch

_CONCURRENT = frozenset((int(ErrorCode.CONCURRENT_TRANSACTIONS),))
# Errors after which the producer must not continue, because another has its transactional id.
_FENCED = frozenset(
    (
        int(ErrorCode.PRODUCER_FENCED),
        int(ErrorCode.INVALID_PRODUCER_EPOCH),
        int(ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        int(ErrorCode.INVALID_TXN_STATE),
    )
)
_LIVES_MAX = 6
_ZOMBIE_SHARES = (0.0, 0.04, 0.04, 0.25)  # of requests, one of these for a client
_ZOMBIE_MS = 12_000  # the longest pause after the transaction timeout
_UNVERIFIED_SHARE = 0.08
_LOOK_SHARE = 0.3
_PLAIN_COMMIT_SHARE = 0.1


class _Fatal(Exception):  # noqa: N818 - it names what happened
    """A fatal error of the producer; the application creates another."""


class TransactionalProducer(Writer, Reading):
    """One transaction after the other with one transactional id."""

    def topic_names(self) -> list[str]:
        own = self.settings.topics
        return [*own, self.settings.input] if self.settings.input else own

    def live(self) -> Script:
        self.transactional_id = self.settings.transactional_id
        self.ready = False
        self._zombie_share = self.rng.choice(_ZOMBIE_SHARES)
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

    def _ask(self, api: ApiKey, request: object, error_of: Any = None) -> CallSequence:
        assert self.transactional_id is not None
        ids, sent = (self.producer_id, self.epoch), self.history.turn()
        response = yield from self.ask_coordinator(
            TRANSACTION, self.transactional_id, api, request, error_of, also_retry=_CONCURRENT
        )
        error = response.error_code if error_of is None else error_of(response)
        if not error and api is not ApiKey.INIT_PRODUCER_ID:
            self.history.accepted(api.name, self.transactional_id, *ids, sent)
        return response

    def _maybe_become_zombie(self) -> CallSequence:
        """Sometimes pause for longer than the transaction timeout, and continue as a zombie."""
        if self.rng.random() < self._zombie_share:
            self.history.counts["zombie producers"] += 1
            yield Sleep(self.settings.transaction_timeout_ms + self.rng.randint(0, _ZOMBIE_MS))

    def _init(self) -> CallSequence:
        """InitProducerId: a new epoch, which fences the former producer."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.settings.transaction_timeout_ms,
        )
        response = yield from self._ask(ApiKey.INIT_PRODUCER_ID, request)
        if response.error_code:
            raise _Fatal
        self.history.counts["producers initialised"] += 1
        self._set_epoch(response)
        self.ready = True
        if self.settings.input:
            yield from self.find_positions(self.settings.group, [self.settings.input])

    def _set_epoch(self, response: Any) -> None:
        """Use the producer id and epoch of a response."""
        self.restart_sequences(response.producer_id, response.producer_epoch)
        self.history.epoch_given(self.settings.transactional_id, self.producer_id, self.epoch)

    # -- one transaction ---------------------------------------------------------------------------

    def _transaction(self) -> CallSequence:
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
        yield from self._maybe_become_zombie()
        yield from self._end(transaction, commit=commit)
        if not sound:
            self.ready = False  # a batch is missing, so the sequence numbers must restart

    def _fill(self, transaction: Transaction) -> CallSequence:
        positions: dict[tuple[str, int], int] = {}
        former: dict[tuple[str, int], int] = {}
        if self.settings.input:
            former = dict(self.positions)
            positions = yield from self._consume()
        for _ in range(self.rng.randint(1, 3)):
            topic = self.rng.choice(self.settings.topics)
            partition = self.choose_partition(topic)
            if partition is None:
                yield from self.refresh()
                continue
            if not self.versions.uses_tv2 and (topic, partition) not in self._added:
                if self._added:  # a zombie that is not fenced would begin another transaction
                    yield from self._maybe_become_zombie()
                yield from self._add_partition(topic, partition)
            yield from self._maybe_become_zombie()
            sent, batch = self.new_batch(topic, partition, transaction)
            turn = self.history.turn()
            yield from self.deliver(sent, batch)
            self.history.accepted(
                f"a batch for {topic}-{partition}",
                self.settings.transactional_id,
                sent.producer_id,
                sent.epoch,
                turn,
                (sent.topic_id, partition),
            )
            self._added.add((topic, partition))
        # The coordinator adds partitions once the former transaction is complete. No leader has it
        # open then, so the batch must be verified.
        if self._added and not self.versions.uses_tv2 and self.rng.random() < _UNVERIFIED_SHARE:
            yield from self._send_unverified_batch()
        if positions:
            yield from self._commit_offsets(transaction, positions)
            if self.rng.random() < _PLAIN_COMMIT_SHARE:
                yield from self._commit_outside(former)

    def _commit_outside(self, former: dict[tuple[str, int], int]) -> CallSequence:
        """Commit offsets outside the open transaction. They are later than the pending ones, so
        they stay when the transaction is committed.
        """
        present, self.positions = self.positions, former
        yield from self.commit(self.settings.group, "", -1)
        self.positions = present

    def _send_unverified_batch(self) -> CallSequence:
        """Send a batch for a partition that is not in the transaction, like a late batch of an
        earlier one. The leader verifies it and refuses it (KIP-890).
        """
        topic = self.rng.choice(self.settings.topics)
        partition = self.choose_partition(topic)
        leader = None if partition is None else self.leader(topic, partition)
        if partition is None or leader is None or (topic, partition) in self._added:
            return
        sequence = self._sequences.get((topic, partition), 0)
        batch = bytes(
            build_batch(
                [Record(0, self.history.now_ms(), b"k", b"stray")],
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                base_sequence=sequence,
                transactional=True,
            )
        )
        version, request = self.produce_request(topic, partition, leader, batch, -1)
        try:
            response = yield Call(
                leader.node_id, ApiKey.PRODUCE, version, request, self.patience_ms()
            )
        except (Disconnected, RequestTimedOut):
            return
        self.history.counts["unverified batches answered"] += 1
        if response.responses[0].partition_responses[0].error_code == 0:
            self._sequences[topic, partition] = sequence + 1
            self.history.unfenced.append(
                Unfenced(
                    f"a batch of producer {self.producer_id} epoch {self.epoch} was acknowledged "
                    f"in {topic}-{partition}, which was not added to the transaction",
                    (leader.topic_id, partition),
                )
            )

    def _add_partition(self, topic: str, partition: int) -> CallSequence:
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

    def _consume(self) -> CallSequence:
        """Poll the input; returns the positions after it."""
        yield from self.poll()
        return dict(self.positions)

    def _commit_offsets(
        self, transaction: Transaction, positions: dict[tuple[str, int], int]
    ) -> CallSequence:
        settings = self.settings
        ids = (self.producer_id, self.epoch)
        if not self.versions.uses_tv2:
            adding = AddOffsetsToTxnRequest(settings.transactional_id, *ids, settings.group)
            response = yield from self._ask(ApiKey.ADD_OFFSETS_TO_TXN, adding)
            if response.error_code:
                raise GaveUp("add offsets", response.error_code)
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        commits: list[Commit] = []
        sent = self.history.turn()
        for (topic, partition), offset in positions.items():
            topics.setdefault(topic, []).append(
                TxnOffsetCommitRequestPartition(partition, offset, -1, "")
            )
            commit = Commit(settings.group, topic, partition, offset, self.history.turn())
            commit.doubtful = True  # until the end is acknowledged; the end may arrive late
            commits.append(commit)
        transaction.commits += commits
        self.history.commits += commits
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

        unanswered = self.unanswered
        try:
            response = yield from self.ask_coordinator(
                GROUP,
                settings.group,
                ApiKey.TXN_OFFSET_COMMIT,
                request,
                error_of,
                also_retry=_CONCURRENT | (RETRIABLE & _UNKNOWN_TOPIC),
            )
        finally:
            for commit in commits:
                commit.repeated = self.unanswered > unanswered
        error = error_of(response)
        if error:
            raise GaveUp("offsets", error)
        self.history.accepted("TXN_OFFSET_COMMIT", settings.transactional_id, *ids, sent)
        written = self.history.turn()
        for commit in commits:
            if not commit.repeated:
                commit.written = written

    def _end(self, transaction: Transaction, *, commit: bool) -> CallSequence:
        if self.versions.uses_tv2 and not transaction.batches and not transaction.commits:
            transaction.state = happened.ABORTED  # the coordinator does not have it
            return
        if not self.versions.uses_tv2 and not self._added and not transaction.commits:
            transaction.state = happened.ABORTED
            return
        transaction.state = happened.COMMITTING if commit else happened.ABORTING
        request = EndTxnRequest(
            self.settings.transactional_id, self.producer_id, self.epoch, commit
        )
        if not self.versions.uses_tv2:
            self.history.ended_without_bump.add((self.producer_id, self.epoch))
        response = yield from self._ask(ApiKey.END_TXN, request)
        if response.error_code:
            raise _Fatal
        transaction.state = happened.COMMITTED if commit else happened.ABORTED
        counts = self.history.counts
        counts["transactions committed" if commit else "transactions aborted"] += 1
        if commit:
            acked = self.history.turn()
            for each in transaction.commits:
                each.acked, each.doubtful = acked, each.repeated
                counts["offsets committed"] += 1
        else:
            for each in transaction.commits:
                each.dropped = not each.repeated
        if self.versions.uses_tv2 and response.producer_id >= 0:
            self._set_epoch(response)
        if self.settings.input and (not commit or self.rng.random() < _LOOK_SHARE):
            yield from self.find_positions(self.settings.group, [self.settings.input])


_UNKNOWN_TOPIC = frozenset((int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),))
