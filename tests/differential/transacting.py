"""Transactional producers, for the cases that are about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker_protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from mockbroker_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from mockbroker_protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from mockbroker_protocol.messages.describe_transactions import DescribeTransactionsRequest
from mockbroker_protocol.messages.end_txn import EndTxnRequest
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.init_producer_id import InitProducerIdRequest
from mockbroker_protocol.messages.offset_fetch import OffsetFetchRequest
from mockbroker_protocol.messages.produce import ProduceRequest
from mockbroker_protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.differential.cases.offsets import committed as committed_offset
from tests.differential.dialogue import batch, list_offsets, produce_request
from tests.differential.dialogue import make_topic as make_any_topic
from tests.differential.session import Session

TRANSACTION = 1
READ_COMMITTED = 1
PARTITIONS = 50  # of __transaction_state and of __consumer_offsets
TV1, TV2 = 4, 5  # versions of EndTxn


def make_topic(session: Session, suffix: str = "", partitions: int = 1) -> str:
    """A topic whose segments do not roll: records are of 2023, markers of now, and a real broker
    answers a Fetch from one segment at a time.
    """
    return make_any_topic(session, suffix, partitions, {"segment.ms": str(2**63 - 1)})


class Producer:
    """A transactional producer of a case: the id and epoch it goes by."""

    def __init__(self, session: Session, suffix: str = "") -> None:
        self.session = session
        self.id = f"{session.name}{suffix}"
        self.pid = -1
        self.epoch = -1
        find_transaction_coordinator(session, self.id)

    def init(self, version: int = 5, *, timeout_ms: int = 60_000, label: str = "") -> Any:
        """InitProducerId without an id; recorded."""
        answer = self.session.ask(self.init_request(timeout_ms), version, label=label)
        if answer.error_code == 0:
            self.pid, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def init_request(self, timeout_ms: int = 60_000) -> InitProducerIdRequest:
        return InitProducerIdRequest(transactional_id=self.id, transaction_timeout_ms=timeout_ms)

    def add(
        self, *topics: str, partitions: Sequence[int] = (0,), version: int = 3, **changed: Any
    ) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=changed.get("id", self.id),
            v3_and_below_producer_id=changed.get("pid", self.pid),
            v3_and_below_producer_epoch=changed.get("epoch", self.epoch),
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=list(partitions)) for topic in topics
            ],
        )

    def batched(
        self, *topics: str, partitions: Sequence[int] = (0,), verify: bool = True, **changed: Any
    ) -> AddPartitionsToTxnTransaction:
        return AddPartitionsToTxnTransaction(
            transactional_id=changed.get("id", self.id),
            producer_id=changed.get("pid", self.pid),
            producer_epoch=changed.get("epoch", self.epoch),
            verify_only=verify,
            topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=list(partitions)) for topic in topics
            ],
        )

    def add_offsets(self, group: str, **changed: Any) -> AddOffsetsToTxnRequest:
        return AddOffsetsToTxnRequest(
            transactional_id=changed.get("id", self.id),
            producer_id=changed.get("pid", self.pid),
            producer_epoch=changed.get("epoch", self.epoch),
            group_id=group,
        )

    def end(self, *, committed: bool = True, **changed: Any) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=changed.get("id", self.id),
            producer_id=changed.get("pid", self.pid),
            producer_epoch=changed.get("epoch", self.epoch),
            committed=committed,
        )

    def produce(
        self,
        topic: str,
        sequence: int = 0,
        values: Sequence[bytes | None] = (b"v",),
        *,
        transactional: bool = True,
        partition: int = 0,
        **changed: Any,
    ) -> ProduceRequest:
        request = produce_request(
            topic,
            batch(
                values,
                transactional=transactional,
                producer_id=changed.get("pid", self.pid),
                producer_epoch=changed.get("epoch", self.epoch),
                base_sequence=sequence,
            ),
            partition=partition,
        )
        request.transactional_id = changed.get("id", self.id)
        return request

    def offsets(
        self,
        group: str,
        topic: str,
        offset: int = 5,
        *,
        partition: int = 0,
        metadata: str | None = "",
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        **changed: Any,
    ) -> TxnOffsetCommitRequest:
        line = TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=metadata
        )
        return TxnOffsetCommitRequest(
            transactional_id=changed.get("id", self.id),
            group_id=group,
            producer_id=changed.get("pid", self.pid),
            producer_epoch=changed.get("epoch", self.epoch),
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[line])],
        )

    def finish(self, version: int = TV2, *, committed: bool = True, label: str = "") -> Any:
        """EndTxn, recorded, and wait until it is complete. With TV2 the new epoch is taken."""
        answer = self.session.ask(self.end(committed=committed), version, label=label)
        self.settle()
        if version >= TV2 and answer.error_code == 0:
            self.pid, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def settle(self) -> None:
        """Wait until no end is under way."""
        describe = DescribeTransactionsRequest(transactional_ids=[self.id])
        while (
            self.session.quietly(describe, 0)
            .transaction_states[0]
            .transaction_state.startswith("Prepare")
        ):
            pass

    def describe(self, label: str = "") -> None:
        """What DescribeTransactions says of the id; the start only as being there or not."""

        def edit(answer: Any) -> Any:
            for line in answer.transaction_states:
                line.transaction_start_time_ms = min(line.transaction_start_time_ms, 0)
            return answer

        request = DescribeTransactionsRequest(transactional_ids=[self.id])
        self.session.ask(request, 0, label=label, edit=edit)


def find_transaction_coordinator(session: Session, transactional_id: str) -> None:
    """Wait until the coordinator of an id is there and has loaded."""
    find = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[transactional_id])
    while session.quietly(find, 4).coordinators[0].error_code != 0:
        pass
    probe = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    while session.quietly(probe, 0).transaction_states[0].error_code not in (0, 105):
        pass
    idempotent = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
    while session.quietly(idempotent, 4).error_code != 0:
        pass


def producer(session: Session, suffix: str = "") -> Producer:
    """A producer that has its first epoch."""
    made = Producer(session, suffix)
    made.init()
    return made


def read(topic: str, isolation: int = READ_COMMITTED, offset: int = 0) -> FetchRequest:
    """A Fetch of everything that is there, at once."""
    partition = FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, log_start_offset=-1
    )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        isolation_level=isolation,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )


def look(session: Session, topic: str, label: str = "") -> None:
    """What consumers of both isolation levels see, and how far it goes."""
    for isolation in (0, READ_COMMITTED):
        session.ask(read(topic, isolation), 12, label=f"{label} {isolation}")
        session.ask(list_offsets(topic, -1, isolation=isolation), 7, label=label)


def producers(session: Session, topic: str, label: str = "") -> None:
    """DescribeProducers; times only as being there or not."""

    def edit(answer: Any) -> Any:
        for line in answer.topics:
            for partition in line.partitions:
                for each in partition.active_producers:
                    each.last_timestamp = min(each.last_timestamp, 0)
        return answer

    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    session.ask(request, 0, label=label, edit=edit)


def stable_offset(group: str, topic: str, *, require: bool = True) -> OffsetFetchRequest:
    """What a group has committed; `require` has it refused while a transaction is open."""
    request = committed_offset(group, topic, 0)
    request.require_stable = require
    return request


def java_partition(key: str) -> int:
    """Which of 50 partitions a key belongs to."""
    return coordinator_partition(key, PARTITIONS)
