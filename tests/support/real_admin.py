"""An administrator of real brokers: carries out steps of plans, looks whether everything is at
rest, and reads logs.

All requests name versions of Kafka 4.3. A broker that does not answer is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mockbroker.client.connection import Connection
from mockbroker.client.errors import ClientError
from mockbroker.simulation.logs import LogView, ObservedBatch, batches_of
from mockbroker.simulation.plan import TopicSettings
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mockbroker_protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from mockbroker_protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mockbroker_protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from mockbroker_protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.init_producer_id import InitProducerIdRequest
from mockbroker_protocol.messages.list_groups import ListGroupsRequest
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mockbroker_protocol.messages.list_transactions import ListTransactionsRequest
from mockbroker_protocol.messages.metadata import MetadataRequest
from tests.support.real_kafka import RealKafka
from tests.support.waiting import wait_until

ANSWER_TIMEOUT_S = 10.0
TIMEOUT_MS = 5_000
READY_S = 60.0
TRANSACTION = 1  # the kind of coordinator
EARLIEST, LATEST = -2, -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
FETCH_BYTES = 1 << 20
OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
RESTING_STATES = ("Stable", "Empty", "Dead")


class RealAdmin:
    """One connection to each broker. `topics` are those whose logs count."""

    def __init__(self, kafka: RealKafka, topics: list[str]) -> None:
        self._kafka = kafka
        self._topics = topics
        self._connections: dict[int, Connection] = {}
        self._stranded: set[tuple[str, int]] = set()

    def close(self) -> None:
        """Close all connections."""
        for node in list(self._connections):
            self.forget(node)

    def forget(self, node: int) -> None:
        """A broker is about to go: do not ask it over the old connection."""
        connection = self._connections.pop(node, None)
        if connection is not None:
            connection.close()

    def _ask(self, node: int, request: Any, version: int) -> Any:
        """One broker's answer. Raises ClientError."""
        connection = self._connections.get(node)
        try:
            if connection is None:
                host, port = self._kafka.addresses[node]
                connection = Connection(host, port, "admin", timeout_s=ANSWER_TIMEOUT_S)
                self._connections[node] = connection
            return connection.send(request, version)
        except ClientError:
            self.forget(node)
            raise

    def _ask_any(self, request: Any, version: int) -> Any:
        """The answer of the first broker that gives one. Raises ClientError."""
        *others, last = self._kafka.running
        for node in others:
            try:
                return self._ask(node, request, version)
            except ClientError:
                continue
        return self._ask(last, request, version)

    def _metadata(self) -> Any:
        return self._ask_any(MetadataRequest(topics=None), 12)

    # -- steps -------------------------------------------------------------------------------------

    def create_topics(self, topics: list[TopicSettings]) -> None:
        """Create topics and wait until each broker knows who leads them."""
        rows = [
            CreatableTopic(
                each.name,
                each.partitions,
                each.replication_factor,
                [],
                [CreatableTopicConfig(name, value) for name, value in each.configs.items()],
            )
            for each in topics
        ]
        answer = self._ask_any(CreateTopicsRequest(rows, TIMEOUT_MS), 7)
        for topic in answer.topics:
            assert topic.error_code == 0, f"{topic.name}: {topic.error_message}"
        wait_until(lambda: not list(self._unsettled_partitions(internal=False)), READY_S, "topics")

    def move_leader(self, topic: str, partition: int, node: int) -> bool:
        """Make one of the replicas the preferred one, and elect it; whether both was possible."""
        try:
            found = self._partition(topic, partition)
            if found is None or node not in found.replica_nodes:
                return False
            order = [node, *(each for each in found.replica_nodes if each != node)]
            moved = self._ask_any(
                AlterPartitionReassignmentsRequest(
                    TIMEOUT_MS,
                    topics=[ReassignableTopic(topic, [ReassignablePartition(partition, order)])],
                ),
                0,
            )
            chosen = [TopicPartitions(topic, [partition])]
            elected = self._ask_any(ElectLeadersRequest(0, chosen, TIMEOUT_MS), 2)
        except ClientError:
            return False
        results = [
            row for each in elected.replica_election_results for row in each.partition_result
        ]
        return not moved.error_code and all(row.error_code == 0 for row in results)

    def delete_records(self, topic: str, partition: int, before_offset: int) -> bool:
        """Delete what lies before an offset, on the leader; whether that was possible."""
        rows = [DeleteRecordsTopic(topic, [DeleteRecordsPartition(partition, before_offset)])]
        try:
            found = self._partition(topic, partition)
            if found is None or found.leader_id < 0:
                return False
            answer = self._ask(found.leader_id, DeleteRecordsRequest(rows, TIMEOUT_MS), 2)
        except ClientError:
            return False
        return bool(answer.topics[0].partitions[0].error_code == 0)

    def fence_producer(self, transactional_id: str) -> bool:
        """Take the transactional id over, as Kafka's `fenceProducers`; whether it was possible."""
        try:
            answer = self._ask_any(
                FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[transactional_id]), 4
            )
            (found,) = answer.coordinators
            if found.error_code:
                return False
            request = InitProducerIdRequest(transactional_id, TIMEOUT_MS)
            taken = self._ask(found.node_id, request, 4)
        except ClientError:
            return False
        return bool(taken.error_code == 0)

    def _partition(self, topic: str, partition: int) -> Any:
        rows = [
            row
            for each in self._metadata().topics
            if each.name == topic
            for row in each.partitions
            if row.partition_index == partition
        ]
        return rows[0] if rows else None

    # -- rest --------------------------------------------------------------------------------------

    def unsettled(self) -> list[str]:
        """What is not at rest yet, in a sentence each, as far as the wire tells."""
        try:
            self._find_stranded()
            found = [
                *self._unsettled_partitions(internal=True),
                *self._groups_at_work(),
                *self._held_offsets(),
            ]
            if not self._stranded:  # a marker cannot be written where nobody leads
                found += self._open_transactions()
        except ClientError as error:
            return [f"a broker does not answer: {error}"]
        return found

    def _find_stranded(self) -> None:
        """Find the partitions where nobody is elected, since only brokers are eligible that hold no
        replica any more since a reassignment.
        """
        self._stranded.clear()
        request = DescribeTopicPartitionsRequest([TopicRequest(n) for n in self._topics], 1_000)
        for topic in self._ask_any(request, 0).topics:
            for row in topic.partitions:
                eligible = {*(row.eligible_leader_replicas or ())}
                if row.leader_id < 0 and eligible and not eligible & {*row.replica_nodes}:
                    self._stranded.add((topic.name, row.partition_index))

    def _unsettled_partitions(self, *, internal: bool) -> Iterator[str]:
        """As each of the brokers knows them."""
        nodes = list(self._kafka.addresses)
        for node in nodes:
            metadata = self._ask(node, MetadataRequest(topics=None), 12)
            known = sorted(broker.node_id for broker in metadata.brokers)
            if known != nodes:
                yield f"broker {node} knows brokers {known}"
            found = self._counted(metadata, internal=internal)
            names = {topic.name for topic in found}
            yield from (f"{name} is unknown to {node}" for name in set(self._topics) - names)
            for topic in found:
                for row in topic.partitions:
                    if (topic.name, row.partition_index) in self._stranded:
                        continue
                    name = f"{topic.name}-{row.partition_index}"
                    if row.error_code or row.leader_id < 0:
                        why = self._eligible(topic, row)
                        yield f"{name} has no leader for broker {node}: {why}"
                    absent = sorted({*row.replica_nodes} - {*row.isr_nodes})
                    if absent:
                        yield f"{name}: replicas {absent} are not in the ISR {row.isr_nodes}"

    def _eligible(self, topic: Any, row: Any) -> str:
        """Who could lead a partition, as the controller has it."""
        request = DescribeTopicPartitionsRequest([TopicRequest(topic.name)], 100, None)
        for each in self._ask_any(request, 0).topics[0].partitions:
            if each.partition_index == row.partition_index:
                return (
                    f"{ErrorCode(row.error_code).name}, replicas {each.replica_nodes}, ISR "
                    f"{each.isr_nodes}, ELR {each.eligible_leader_replicas}, last known ELR "
                    f"{each.last_known_elr}, leader epoch {each.leader_epoch}"
                )
        return ErrorCode(row.error_code).name

    def _open_transactions(self) -> Iterator[str]:
        for node in self._kafka.addresses:
            answer = self._ask(node, ListTransactionsRequest(), 0)
            if answer.error_code:
                yield f"transactions of {node}: {ErrorCode(answer.error_code).name}"
            for each in answer.transaction_states:
                if each.transaction_state in OPEN_STATES:
                    yield f"transaction {each.transactional_id} is {each.transaction_state}"

    def _groups_at_work(self) -> Iterator[str]:
        for node in self._kafka.addresses:
            answer = self._ask(node, ListGroupsRequest(), 5)
            if answer.error_code:
                yield f"groups of {node}: {ErrorCode(answer.error_code).name}"
            for each in answer.groups:
                if each.group_state not in RESTING_STATES:
                    yield f"group {each.group_id} is {each.group_state}"

    def _held_offsets(self) -> Iterator[str]:
        for topic, row in self._rows(internal=True):
            where = (row.leader_id, topic.name, row.partition_index)
            committed = self._offset(*where, LATEST, READ_COMMITTED)
            end = self._offset(*where, LATEST, READ_UNCOMMITTED)
            if committed < 0 or committed != end:
                yield (
                    f"{topic.name}-{row.partition_index}: the last stable offset {committed} is "
                    f"below the high watermark {end}"
                )

    def _rows(self, *, internal: bool) -> Iterator[tuple[Any, Any]]:
        """The partitions that somebody may lead."""
        for topic in self._counted(self._metadata(), internal=internal):
            for row in topic.partitions:
                if (topic.name, row.partition_index) not in self._stranded:
                    yield topic, row

    def _counted(self, metadata: Any, *, internal: bool) -> list[Any]:
        """The topics that count; those of others, and those that come and go, do not."""
        return [
            topic
            for topic in metadata.topics
            if topic.name in self._topics or (internal and topic.is_internal)
        ]

    def _offset(self, node: int, topic: str, partition: int, timestamp: int, isolation: int) -> int:
        """An offset; -1 where the broker does not tell it."""
        request = ListOffsetsRequest(
            -1,
            isolation,
            [ListOffsetsTopic(topic, [ListOffsetsPartition(partition, -1, timestamp)])],
        )
        (row,) = self._ask(node, request, 7).topics[0].partitions
        return -1 if row.error_code else int(row.offset)

    # -- logs --------------------------------------------------------------------------------------

    def logs(self) -> list[LogView]:
        """The whole logs of the topics, read from their leaders. Raises ClientError."""
        found = []
        for topic, row in self._rows(internal=False):
            where = (row.leader_id, topic.name, row.partition_index)
            start = self._offset(*where, EARLIEST, READ_UNCOMMITTED)
            end = self._offset(*where, LATEST, READ_UNCOMMITTED)
            batches = list(self._batches(*where, start, end))
            found.append(
                LogView(
                    topic.name,
                    topic.topic_id,
                    row.partition_index,
                    False,
                    row.leader_id,
                    start,
                    end,
                    False,
                    batches,
                )
            )
        return found

    def _batches(
        self, node: int, topic: str, partition: int, start: int, end: int
    ) -> Iterator[ObservedBatch]:
        at = start
        while at < end:
            request = FetchRequest(
                max_wait_ms=0,
                isolation_level=READ_UNCOMMITTED,
                topics=[
                    FetchTopic(
                        topic,
                        partitions=[
                            FetchPartition(
                                partition, fetch_offset=at, partition_max_bytes=FETCH_BYTES
                            )
                        ],
                    )
                ],
            )
            row = self._ask(node, request, 12).responses[0].partitions[0]
            assert row.error_code == 0, f"{topic}-{partition}: {ErrorCode(row.error_code).name}"
            before = at
            for batch in batches_of(row.records or b""):
                if batch.last_offset >= at:
                    yield batch
                    at = batch.last_offset + 1
            assert at > before, f"{topic}-{partition} has nothing at {at}, and ends at {end}"
