"""Brokers that die, stop, come back and hand partitions over: the same on ours as on Kafka itself.

A script runs on three nodes of each. After every step both tell the same of each partition: leader,
epoch, ISR, eligible leaders, replicas, what is offline, and the errors of Metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from mockbroker import Cluster
from mockbroker.client.connection import Connection
from mockbroker.core.configs.alter import OpType
from mockbroker.core.configs.resources import ConfigResourceType
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mockbroker_protocol.messages.create_topics import (
    CreatableReplicaAssignment,
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
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.messages.unregister_broker import UnregisterBrokerRequest
from mockbroker_protocol.records import Record, build_batch
from tests.support.killed_nodes import NOTICED
from tests.support.real_kafka import SEVERAL_NODES, RealKafka
from tests.support.waiting import wait_until

TIMEOUT_S = 60.0
# Replicas and min.insync.replicas of each topic.
TOPICS = {
    "spread": ([1, 2, 3], 1),
    "strict": ([2, 3], 2),
    "alone": ([2], 1),
    "turned": ([3, 1, 2], 2),
    "moving": ([1, 2], 1),
}
BROKER_CONFIGS = NOTICED | {
    "log.retention.ms": "-1",  # the records are as old as can be, and a busy machine takes its time
}
PREFERRED, UNCLEAN = 0, 1


class State(NamedTuple):
    """What is told of one partition."""

    leader: int
    epoch: int
    isr: list[int]
    eligible: list[int]
    last_known: list[int]
    replicas: list[int]
    offline: list[int]
    metadata: tuple[int, int, list[int], list[int]]


class Nodes:
    """Three nodes, whoever plays them."""

    def __init__(
        self,
        address: Callable[[int], tuple[str, int]],
        stop: Callable[[int, bool], None],
        start: Callable[[int], None],
    ) -> None:
        self.address, self.stop, self.start = address, stop, start
        self.alive = {1, 2, 3}

    def ask(self, request: Any, version: int, node: int = 1) -> Any:
        connection = Connection(*self.address(node), "differ", timeout_s=TIMEOUT_S)
        try:
            return connection.send(request, version)
        finally:
            connection.close()

    # -- doing -------------------------------------------------------------------------------------

    def create(self) -> None:
        topics = [
            CreatableTopic(
                name,
                -1,
                -1,
                [CreatableReplicaAssignment(0, replicas)],
                [CreatableTopicConfig("min.insync.replicas", str(minimum))],
            )
            for name, (replicas, minimum) in TOPICS.items()
        ]
        response = self.ask(CreateTopicsRequest(topics), 7)
        assert [topic.error_code for topic in response.topics] == [0] * len(topics)

    def down(self, node: int, *, kill: bool) -> None:
        self.stop(node, kill)
        self.alive.discard(node)
        self.until(lambda states: all(node not in s.isr for s in states.values()))

    def up(self, node: int) -> None:
        self.start(node)
        self.alive.add(node)
        self.until(lambda states: all(sorted(s.isr) == sorted(s.replicas) for s in states.values()))

    def produce(self, topic: str, node: int, acks: int, *values: str) -> tuple[int, int]:
        """(error, base offset)."""
        batch = build_batch([Record(n, 1, None, v.encode()) for n, v in enumerate(values)])
        request = ProduceRequest(
            None,
            acks,
            5000,
            [TopicProduceData(topic, partition_data=[PartitionProduceData(0, batch)])],
        )
        (answer,) = self.ask(request, 9, node).responses[0].partition_responses
        return answer.error_code, answer.base_offset

    def delete_all(self, topic: str, node: int) -> tuple[int, int]:
        """(error, log start offset) of a DeleteRecords up to the high watermark."""
        asked = [DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, -1)])]
        (answer,) = self.ask(DeleteRecordsRequest(asked, 10_000), 2, node).topics[0].partitions
        return answer.error_code, answer.low_watermark

    def elect(self, kind: int, topic: str) -> int:
        return self.elect_often(kind, topic, 1)[0]

    def elect_often(self, kind: int, topic: str, times: int) -> list[int]:
        """The errors of a request that names the partition so many times."""
        request = ElectLeadersRequest(kind, [TopicPartitions(topic, [0] * times)], 10_000)
        results = self.ask(request, 2).replica_election_results
        return [partition.error_code for partition in results[0].partition_result]

    def unregister(self, node: int) -> int:
        """Take a broker's registration away; the error."""
        error: int = self.ask(UnregisterBrokerRequest(node), 0).error_code
        return error

    def reassign(self, topic: str, target: list[int]) -> int:
        request = AlterPartitionReassignmentsRequest(
            10_000, True, [ReassignableTopic(topic, [ReassignablePartition(0, target)])]
        )
        response = self.ask(request, 1)
        self.until(lambda states: states[topic].replicas == target)
        error: int = response.responses[0].partitions[0].error_code
        return error

    def set_min_isr(self, kind: ConfigResourceType, name: str, value: str | None) -> int:
        """Set the min.insync.replicas of a resource or, with None, delete it; the error."""
        op = OpType.DELETE if value is None else OpType.SET
        change = AlterableConfig("min.insync.replicas", op, value)
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(kind, name, [change])])
        error: int = self.ask(request, 1).responses[0].error_code
        return error

    # -- looking -----------------------------------------------------------------------------------

    def states(self) -> dict[str, State]:
        node = min(self.alive)
        described = self.ask(
            DescribeTopicPartitionsRequest([TopicRequest(name) for name in TOPICS]), 0, node
        )
        told = self.ask(MetadataRequest([MetadataRequestTopic(name=n) for n in TOPICS]), 12, node)
        metadata = {
            topic.name: (p.error_code, p.leader_id, p.isr_nodes, p.offline_replicas)
            for topic in told.topics
            for p in topic.partitions
        }
        return {
            topic.name: State(
                p.leader_id,
                p.leader_epoch,
                p.isr_nodes,
                p.eligible_leader_replicas,
                p.last_known_elr,
                p.replica_nodes,
                p.offline_replicas,
                metadata[topic.name],
            )
            for topic in described.topics
            for p in topic.partitions
        }

    def until(self, condition: Callable[[dict[str, State]], bool]) -> None:
        wait_until(lambda: condition(self.states()), TIMEOUT_S)

    def offsets(self, topic: str, node: int) -> tuple[int, int, int]:
        """(error, offset, leader epoch) of the latest offset, as one node tells it."""
        request = ListOffsetsRequest(
            -1, 0, [ListOffsetsTopic(topic, [ListOffsetsPartition(0, -1, -1)])]
        )
        (answer,) = self.ask(request, 7, node).topics[0].partitions
        return answer.error_code, answer.offset, answer.leader_epoch

    def fetch(self, topic: str, node: int, version: int = 12) -> Any:
        """What one node answers about the partition."""
        partitions = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)]
        request = FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic, partitions=partitions)])
        return self.ask(request, version, node).responses[0].partitions[0]

    def fetch_error(self, topic: str, node: int, version: int) -> int:
        error: int = self.fetch(topic, node, version).error_code
        return error

    def until_heard(self, topic: str, high_watermark: int) -> None:
        """Wait until every replica has heard of this watermark, one fetch after the leader."""
        replicas = TOPICS[topic][0]
        self.until(
            lambda _: all(self.fetch(topic, n).high_watermark == high_watermark for n in replicas)
        )

    def epoch_end(self, topic: str, node: int, epoch: int) -> tuple[int, int, int]:
        """(error, epoch, end offset) of OffsetForLeaderEpoch."""
        partition = OffsetForLeaderPartition(0, -1, epoch)
        request = OffsetForLeaderEpochRequest(
            topics=[OffsetForLeaderTopic(topic, [partition])], replica_id=-1
        )
        (answer,) = self.ask(request, 4, node).topics[0].partitions
        return answer.error_code, answer.leader_epoch, answer.end_offset


def ours(configs: Mapping[str, str] = BROKER_CONFIGS) -> Iterator[Nodes]:
    with Cluster(brokers=3, node_ids=[1, 2, 3], configs=configs) as kafka:
        yield Nodes(
            kafka.endpoint,
            lambda node, kill: kafka.broker(node).stop(how="unclean" if kill else "controlled"),
            lambda node: kafka.broker(node).start(),
        )


def real(configs: Mapping[str, str] = BROKER_CONFIGS) -> Iterator[Nodes]:
    with RealKafka(brokers=3, configs=configs) as kafka:
        yield Nodes(
            lambda node: kafka.addresses[node],
            lambda node, kill: kafka.stop_node(node, kill=kill),
            kafka.start_node,
        )


def script(nodes: Nodes) -> Iterator[tuple[str, object]]:
    """The steps, each with what both have to tell alike after it."""
    nodes.create()
    nodes.until(lambda states: all(s.leader > 0 for s in states.values()))
    yield "created", nodes.states()
    for topic in TOPICS:
        nodes.until_heard(topic, 0)  # a broker hears that it leads after the controller has said so
        leader = nodes.states()[topic].leader
        yield f"{topic}: first records", nodes.produce(topic, leader, -1, "a", "b")
        nodes.until_heard(topic, 2)

    nodes.down(2, kill=True)
    yield "2 killed", nodes.states()
    yield "no leader: produce", nodes.produce("alone", 1, 1, "x")
    yield "no leader: fetch", [nodes.fetch_error("alone", 1, v) for v in (4, 12)]
    yield "no leader: offsets", nodes.offsets("alone", 1)
    yield "no leader: preferred election", nodes.elect(PREFERRED, "alone")
    yield "no leader: unclean election", nodes.elect(UNCLEAN, "alone")
    yield "too few in sync", nodes.produce("strict", 3, -1, "x")
    yield "too few for all, enough for one", nodes.produce("strict", 3, 1, "above")
    yield "not below the watermark", nodes.offsets("strict", 3)
    yield "goes on", nodes.produce("spread", 1, -1, "c")
    nodes.up(2)
    yield "2 is back", nodes.states()
    yield "all replicated", nodes.offsets("strict", 3)
    # It hears of the watermark with its next fetch; until then the offset is out of its range.
    wait_until(lambda: nodes.fetch_error("spread", 2, 12) != ErrorCode.OFFSET_OUT_OF_RANGE)
    yield "a follower's fetch", [nodes.fetch_error("spread", 2, v) for v in (10, 12)]

    yield "preferred: not needed", nodes.elect(PREFERRED, "spread")
    yield "preferred: strict", nodes.elect(PREFERRED, "strict")
    nodes.until(lambda states: states["strict"].leader == 2)
    yield "after elections", nodes.states()
    yield "under a new epoch", nodes.produce("strict", 2, -1, "d")
    for epoch in (-1, 0, 1, 2, 3, 9):
        yield f"end of epoch {epoch}", nodes.epoch_end("strict", 2, epoch)

    nodes.down(3, kill=False)
    yield "3 stopped", nodes.states()
    yield "the minimum as it is", nodes.set_min_isr(ConfigResourceType.TOPIC, "strict", "2")
    yield "eligible still", nodes.states()["strict"]
    yield "a higher minimum", nodes.set_min_isr(ConfigResourceType.TOPIC, "strict", "3")
    nodes.until(lambda states: states["strict"].eligible == [])
    yield "nobody is eligible", nodes.states()
    yield "the minimum as before", nodes.set_min_isr(ConfigResourceType.TOPIC, "strict", "2")
    yield "one broker's minimum", nodes.set_min_isr(ConfigResourceType.BROKER, "1", None)
    nodes.up(3)
    yield "3 is back", nodes.states()
    nodes.down(3, kill=False)
    yield "3 stopped again", nodes.states()
    yield "the cluster's minimum as it is", nodes.set_min_isr(ConfigResourceType.BROKER, "", "1")
    nodes.until(lambda states: states["strict"].eligible == [])
    yield "nobody is eligible again", nodes.states()
    nodes.up(3)
    yield "3 is back once more", nodes.states()

    yield "reassigned: one less", nodes.reassign("spread", [1, 3])
    yield "reassigned", nodes.states()
    yield "reassigned: turned round", nodes.reassign("spread", [3, 1])
    yield "reassigned: other brokers", nodes.reassign("moving", [2, 3])
    nodes.until(lambda states: states["moving"].leader == 2)
    yield "reassigned", nodes.states()
    yield "where it was", nodes.fetch_error("moving", 1, 12)
    yield "with all it had", nodes.offsets("moving", 2)

    nodes.down(3, kill=True)
    yield "3 killed", nodes.states()
    yield "3 unregistered", nodes.unregister(3)
    yield "nobody to unregister", nodes.unregister(3)
    yield "as it was", nodes.states()
    nodes.up(3)
    yield "3 is back again", nodes.states()
    yield "a live broker unregistered", nodes.unregister(3)
    nodes.until(lambda states: all(3 not in s.isr for s in states.values()))
    yield "without it", nodes.states()
    yield "it leads nothing", nodes.produce("turned", 3, 1, "x")[0]
    yield "it follows", nodes.fetch_error("turned", 3, 12)
    nodes.stop(3, True)
    nodes.up(3)
    yield "3 has registered", nodes.states()
    yield "preferred: twice in one request", nodes.elect_often(PREFERRED, "turned", 2)
    nodes.until(lambda states: states["turned"].leader == 3)
    yield "which raised the epoch twice", nodes.states()["turned"]


@pytest.mark.real_kafka
@pytest.mark.xdist_group(SEVERAL_NODES)
@pytest.mark.covers("S33", "S59", "S64", "S68", "S72", "S86", "S89", "S309")
@pytest.mark.slow
def test_brokers_live_and_die_with_the_same_consequences() -> None:
    """Both scripts run side by side; the first difference is shown with its step."""
    for mine, theirs in zip(run(ours), run(real), strict=True):
        assert mine == theirs


def run(players: Callable[[], Iterator[Nodes]]) -> Iterator[tuple[str, object]]:
    for nodes in players():
        yield from script(nodes)
