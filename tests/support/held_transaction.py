"""A transactional id kept in any of its states, on a real cluster of one broker, over sockets."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from mockbroker import Cluster
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from mockbroker.core.txn.shard import TransactionShard
from mockbroker.core.txn.states import TransactionState
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.describe_transactions import DescribeTransactionsRequest
from tests.differential.session import Session
from tests.differential.transacting import TV2, Producer, java_partition
from tests.support.transactional_id import hold_markers, let_markers_go
from tests.support.waiting import wait_until

# An end that is decided waits for its markers; Dead and PrepareEpochFence are only ever on the way.
PENDING = (
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
    TransactionState.DEAD,
    TransactionState.PREPARE_EPOCH_FENCE,
)
_NUMBERS = itertools.count(1)


class Held:
    """A producer whose transactional id is kept in one state, until `release`.

    `name` is the id, the topic (partition 0 is in the transaction, 1 is not) and the group, of
    which the transaction commits offset 5.
    """

    def __init__(self, kafka: Cluster, state: TransactionState) -> None:
        self.kafka = kafka
        self.name = f"held-{next(_NUMBERS)}"
        self.session = Session(self.name, kafka.endpoint(1), 1)
        self.p = Producer(self.session)
        kafka.topic(self.name).create(2)
        self._finish: Callable[[], Any] | None = None
        self._index = java_partition(self.p.id)
        self.p.init()
        self.p.init()
        self._bring(state)

    def _bring(self, state: TransactionState) -> None:
        p, session = self.p, self.session
        if state in (TransactionState.EMPTY, TransactionState.DEAD):
            if state is TransactionState.DEAD:
                self._hold_records()
                self.kafka.call(lambda _: list(self.shard.expire(0)))
                self._wait_until_pending(TransactionState.DEAD)
            return
        session.ask(p.produce(self.name), 12)
        session.ask(p.offsets(self.name, self.name), 5)
        if state is TransactionState.PREPARE_EPOCH_FENCE:
            self._hold_records()
            other = Producer(session)
            self._finish = session.start(other.init_request(), 5, "other")
            self._wait_until_pending(TransactionState.PREPARE_ABORT)
        elif state is not TransactionState.ONGOING:
            if state in PENDING:
                hold_markers(self.kafka, self.name)
                hold_markers(self.kafka, GROUP_METADATA_TOPIC, self._index)
            committed = state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
            answer = session.ask(p.end(committed=committed), TV2)
            p.epoch = answer.producer_epoch
            self.wait_for(state)

    def _hold_records(self) -> None:
        self.kafka.partition(TRANSACTION_STATE_TOPIC, self._index).hold_high_watermark()

    def _wait_until_pending(self, pending: TransactionState) -> None:
        wait_until(lambda: self.kafka.call(lambda _: self.machine.pending) is pending)

    def wait_for(self, state: TransactionState) -> None:
        wait_until(lambda: self.state == state.value, what=state.value)

    @property
    def shard(self) -> TransactionShard:
        shard = self.kafka.server.cluster.brokers[1].transactions.shard_of(self.p.id)
        assert isinstance(shard, TransactionShard)
        return shard

    @property
    def machine(self) -> Any:
        return self.shard.transactions[self.p.id]

    @property
    def described(self) -> Any:
        request = DescribeTransactionsRequest(transactional_ids=[self.p.id])
        return self.session.quietly(request, 0).transaction_states[0]

    @property
    def state(self) -> str:
        return str(self.described.transaction_state)

    def release(self) -> None:
        self.kafka.partition(TRANSACTION_STATE_TOPIC, self._index).hold_high_watermark(release=True)
        if self._finish is not None:
            assert self._finish().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
            self._finish = None

    def close(self) -> None:
        # Other transactions commit offsets in the same partition, by chance.
        let_markers_go(self.kafka)
        self.release()
        self.session.close()
