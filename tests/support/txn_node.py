"""Requests of transactional producers to a cluster without sockets, as bytes both ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mockbroker.core.metadata.topic import TRANSACTION_STATE_TOPIC
from mockbroker.core.txn.machine import TransactionMetadata
from mockbroker.core.txn.shard import TransactionShard
from mockbroker_protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from mockbroker_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from mockbroker_protocol.messages.end_txn import EndTxnRequest
from mockbroker_protocol.messages.init_producer_id import InitProducerIdRequest
from mockbroker_protocol.messages.produce import ProduceRequest
from mockbroker_protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from mockbroker_protocol.records import (
    BatchHeader,
    Record,
    iter_records,
    parse_marker,
    split_batches,
)
from tests.support.group_node import GroupNode, Pending
from tests.support.requests import batch_of, produce_request

TV1, TV2 = 4, 5


class Txn:
    """A transactional producer: what it goes by, and its requests. `broker` is its coordinator."""

    def __init__(
        self, node: TxnNode, transactional_id: str = "x", broker: int | None = None
    ) -> None:
        self.node = node
        self.id = transactional_id
        self.broker = node.coordinator_of(transactional_id) if broker is None else broker
        self.pid = self.epoch = -1

    def send_init(self, version: int = 5, **fields: Any) -> Pending:
        values = {"transactional_id": self.id, "transaction_timeout_ms": 60_000}
        request = InitProducerIdRequest(**(values | fields))
        return self.node.send(request, version, broker=self.broker)

    def init(self, version: int = 5, **fields: Any) -> Any:
        answer = self.send_init(version, **fields).response
        if answer.error_code == 0:
            self.pid, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def add(self, *partitions: int, topic: str = "t", version: int = 3, **changed: Any) -> int:
        """The error code of the first partition."""
        answer = self.send_add(*partitions, topic=topic, version=version, **changed).response
        return int(
            answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        )

    def send_add(
        self, *partitions: int, topic: str = "t", version: int = 3, **changed: Any
    ) -> Pending:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=changed.get("pid", self.pid),
            v3_and_below_producer_epoch=changed.get("epoch", self.epoch),
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=list(partitions or (0,)))
            ],
        )
        return self.node.send(request, version, broker=self.broker)

    def batched(
        self, *partitions: int, verify: bool = True, **changed: Any
    ) -> AddPartitionsToTxnTransaction:
        """One transaction of an AddPartitionsToTxn that comes from a leader."""
        return AddPartitionsToTxnTransaction(
            transactional_id=self.id,
            producer_id=changed.get("pid", self.pid),
            producer_epoch=changed.get("epoch", self.epoch),
            verify_only=verify,
            topics=[AddPartitionsToTxnTopic(name="t", partitions=list(partitions or (0,)))],
        )

    def add_offsets(self, group: str = "g", version: int = 3) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.id,
            producer_id=self.pid,
            producer_epoch=self.epoch,
            group_id=group,
        )
        return int(self.node.ask(request, version, broker=self.broker).error_code)

    def produce_request(
        self, values: Sequence[bytes] = (b"v",), sequence: int = 0, **changed: Any
    ) -> ProduceRequest:
        batch = batch_of(
            *values,
            transactional=True,
            producer_id=changed.get("pid", self.pid),
            producer_epoch=changed.get("epoch", self.epoch),
            base_sequence=sequence,
        )
        key = (changed.get("topic", "t"), changed.get("partition", 0))
        return produce_request({key: batch}, transactional_id=changed.get("id", self.id))

    def send(
        self,
        values: Sequence[bytes] = (b"v",),
        sequence: int = 0,
        *,
        version: int = 12,
        broker: int | None = None,
        **changed: Any,
    ) -> Pending:
        """Produce to a partition's leader."""
        request = self.produce_request(values, sequence, **changed)
        if broker is None:
            key = (changed.get("topic", "t"), changed.get("partition", 0))
            partition = self.node.cluster.partition(*key)
            assert partition is not None
            broker = partition.leader_id
        return self.node.send(request, version, broker=broker)

    def produce(self, values: Sequence[bytes] = (b"v",), sequence: int = 0, **options: Any) -> Any:
        """The one partition's part of the answer, which must be there at once."""
        response = self.send(values, sequence, **options).response
        return response.responses[0].partition_responses[0]

    def commit_offset(
        self, offset: int, group: str = "g", *, version: int = 3, **changed: Any
    ) -> int:
        """TxnOffsetCommit of one partition; its error code."""
        answer = self.send_offset(offset, group, version=version, **changed).response
        return int(answer.topics[0].partitions[0].error_code)

    def send_offset(
        self, offset: int, group: str = "g", *, version: int = 3, **changed: Any
    ) -> Pending:
        line = TxnOffsetCommitRequestPartition(0, offset, -1, changed.pop("metadata", ""))
        values: dict[str, Any] = {
            "transactional_id": self.id,
            "group_id": group,
            "producer_id": self.pid,
            "producer_epoch": self.epoch,
            "topics": [TxnOffsetCommitRequestTopic("t", [line])],
        }
        request = TxnOffsetCommitRequest(**(values | changed))
        return self.node.send(request, version, broker=self.node.group_coordinator_of(group))

    def send_end(self, *, committed: bool = True, version: int = TV1, **changed: Any) -> Pending:
        request = EndTxnRequest(
            transactional_id=self.id,
            producer_id=changed.get("pid", self.pid),
            producer_epoch=changed.get("epoch", self.epoch),
            committed=committed,
        )
        return self.node.send(request, version, broker=self.broker)

    def end(self, *, committed: bool = True, version: int = TV1, **changed: Any) -> Any:
        """EndTxn, answered at once; its markers are not written yet. TV2's epoch is taken over."""
        answer = self.send_end(committed=committed, version=version, **changed).response
        if version >= TV2 and answer.error_code == 0:
            self.pid, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    @property
    def state(self) -> str:
        return self.machine.state.value

    @property
    def machine(self) -> TransactionMetadata:
        return self.node.txn_shard(self.id).transactions[self.id]


class TxnNode(GroupNode):
    """A cluster with both internal topics, and topic "t" with three partitions."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.cluster.ensure_internal_topic(TRANSACTION_STATE_TOPIC)

    def txn(self, transactional_id: str = "x") -> Txn:
        """A producer that has its first epoch."""
        made = Txn(self, transactional_id)
        assert made.init().error_code == 0
        return made

    def settle(self) -> None:
        """Let arrive what is on its way, in no time."""
        self.advance(0)

    def coordinator_of(self, transactional_id: str) -> int:
        return self._leader(TRANSACTION_STATE_TOPIC, transactional_id)

    def group_coordinator_of(self, group: str) -> int:
        return self._leader("__consumer_offsets", group)

    def _leader(self, topic: str, key: str) -> int:
        index = self.cluster.find_coordinator_partition(key, topic)
        partition = self.cluster.partition(topic, index)
        assert partition is not None
        return partition.leader_id

    def txn_shard(self, transactional_id: str = "x") -> TransactionShard:
        broker = self.cluster.brokers[self.coordinator_of(transactional_id)]
        shard = broker.transactions.shard_of(transactional_id)
        assert isinstance(shard, TransactionShard)
        return shard

    def stored(self, topic: str, index: int = 0) -> list[tuple[BatchHeader, Record]]:
        """The records of a partition with the headers of their batches."""
        partition = self.cluster.partition(topic, index)
        assert partition is not None
        return [
            (header, record)
            for stored in partition.log.batches()
            for header, batch in split_batches(bytes(stored))
            for record in iter_records(header, batch)
        ]

    def words(self, index: int = 0, topic: str = "t") -> list[str]:
        """The partition in words: values of records, and COMMIT or ABORT for markers."""
        return [
            parse_marker(record).control_type.name
            if header.is_control
            else bytes(record.value or b"").decode()
            for header, record in self.stored(topic, index)
        ]
