"""What a request costs in a large cluster, as a multiple of what it costs in a small one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from bench import process, raw, swarm
from bench.model import TIMES, Figures, Measure, Running, Scale
from bench.workloads.groups import HEARTBEAT, alone, find_coordinators, play
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.heartbeat import HeartbeatRequest
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockbroker_protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.records import Record, build_batch

TOPIC = "bench-flat"
FEW_PARTITIONS = 10
TOPIC_PARTITIONS = 100
METADATA, PRODUCE, LIST_OFFSETS, FETCH = 9, 8, 5, 11
OFFSET_COMMIT, OFFSET_FETCH = 7, 5
LATEST = -1
PARTS = 20


class _Flat:
    fresh = True
    excluded: Mapping[str, str] = {
        "real": "takes minutes to make the topics",
        "librdkafka-mock": "cannot be told how many partitions to make",
    }

    def prepare(self) -> None:
        """Nothing to build."""


class FlatPartitions(_Flat):
    """Metadata of a topic, a Produce, a ListOffsets and a Fetch, among 10 partitions and 10,000."""

    name = "flat-partitions"
    measures: tuple[Measure, ...] = (
        Measure("flat-partitions", "CPU of a request, 10,000 partitions against 10", TIMES),
    )

    def run(self, running: Running, scale: Scale) -> Figures:
        running.peer.create_topics(running, [TOPIC], FEW_PARTITIONS)
        requests = partition_requests()
        with raw.RawConnection(leader(running.address)) as connection:
            few = _cost(running, connection, requests, scale.round_trips)
            count = scale.partitions // TOPIC_PARTITIONS
            topics = [f"{TOPIC}-{number}" for number in range(count)]
            running.peer.create_topics(running, topics, TOPIC_PARTITIONS)
            many = _cost(running, connection, requests, scale.round_trips)
        return {"flat-partitions": many / few}


class FlatGroups(_Flat):
    """A Heartbeat, an OffsetCommit and an OffsetFetch, beside no other group and beside 1,000."""

    name = "flat-groups"
    measures: tuple[Measure, ...] = (
        Measure("flat-groups", "CPU of a request, 1,000 groups against 1", TIMES),
    )

    def run(self, running: Running, scale: Scale) -> Figures:
        running.peer.create_topics(running, [TOPIC], FEW_PARTITIONS)
        group = "bench-flat-group"
        groups = [f"{group}-{number}" for number in range(scale.groups)]
        coordinators = find_coordinators(running.address, [group, *groups])
        with raw.RawConnection(coordinators[group]) as connection:
            joined = play(connection, alone(group))
            requests = group_requests(group, joined.generation_id, joined.member_id)
            few = _cost(running, connection, requests, scale.round_trips)
            swarm.drive((coordinators[each], alone(each)) for each in groups)
            many = _cost(running, connection, requests, scale.round_trips)
        return {"flat-groups": many / few}


def _cost(
    running: Running, connection: raw.RawConnection, requests: Sequence[bytes], count: int
) -> float:
    """CPU seconds of one round of the requests, in the part of all rounds where it was least.

    Others on the machine cost a process CPU time too, by what they push out of the caches.
    """
    rounds = max(count // len(requests) // PARTS, 1)
    costs = []
    for _ in range(PARTS):
        before = process.cpu_seconds(running.pids)
        for _ in range(rounds):
            for request in requests:
                connection.round_trip(request)
        costs.append((process.cpu_seconds(running.pids) - before) / rounds)
    return min(costs)


def leader(address: swarm.Address, topic: str = TOPIC) -> swarm.Address:
    """The broker that leads partition 0 of a topic."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    frame = raw.request(ApiKey.METADATA, METADATA, request)
    with raw.RawConnection(address) as connection:
        found = raw.answer(ApiKey.METADATA, METADATA, connection.round_trip(frame))
    [leader] = [each.leader_id for each in found.topics[0].partitions if not each.partition_index]
    [broker] = [each for each in found.brokers if each.node_id == leader]
    return broker.host, broker.port


def partition_requests() -> list[bytes]:
    batch = build_batch([Record(timestamp=time.time_ns() // 1_000_000, value=bytes(100))])
    produced = TopicProduceData(
        name=TOPIC, partition_data=[PartitionProduceData(index=0, records=bytes(batch))]
    )
    fetched = FetchTopic(topic=TOPIC, partitions=[FetchPartition(partition_max_bytes=1)])
    listed = ListOffsetsTopic(name=TOPIC, partitions=[ListOffsetsPartition(timestamp=LATEST)])
    named = MetadataRequestTopic(name=TOPIC)
    return [
        raw.request(ApiKey.METADATA, METADATA, MetadataRequest(topics=[named])),
        raw.request(
            ApiKey.PRODUCE,
            PRODUCE,
            ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[produced]),
        ),
        raw.request(ApiKey.LIST_OFFSETS, LIST_OFFSETS, ListOffsetsRequest(topics=[listed])),
        raw.request(ApiKey.FETCH, FETCH, FetchRequest(max_bytes=1, topics=[fetched])),
    ]


def group_requests(group: str, generation: int, member_id: str) -> list[bytes]:
    committed = OffsetCommitRequestTopic(
        name=TOPIC,
        partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1)],
    )
    beat = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
    commit = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[committed],
    )
    asked = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
    fetch = OffsetFetchRequest(group_id=group, topics=[asked])
    return [
        raw.request(ApiKey.HEARTBEAT, HEARTBEAT, beat),
        raw.request(ApiKey.OFFSET_COMMIT, OFFSET_COMMIT, commit),
        raw.request(ApiKey.OFFSET_FETCH, OFFSET_FETCH, fetch),
    ]
