"""A follower's requests to its leader as Kafka's messages, in each version that brokers send."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.replication.fetcher import (
    Diverged,
    EpochEnd,
    Fetch,
    Fetched,
    OffsetForLeaderEpoch,
    OutOfRange,
    RefusedPartition,
)
from mockbroker.core.replication.follower_hops import (
    AnyFollowerHop,
    FetchHop,
    OffsetForLeaderEpochHop,
)
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.codec import request_codec, response_codec
from tests.support.replicas import Replicas

NO_TOPIC_ID = bytes(16)


@pytest.fixture
def node() -> Replicas:
    """Follower 2 has the record `a` and a high watermark of 1; the leader 1 has `a` and `b`."""
    node = Replicas()
    node.sent("a")
    node.hold(2)
    node.send("b", acks=1)
    return node


def fetch_hop(node: Replicas, version: int) -> FetchHop:
    request = Fetch(7, 1, 0, 1, 0, 0)
    hop = FetchHop(
        node.cluster.replication, node.partition, node.partition.own_replicas[2], request
    )
    hop.version = version
    return hop


def epoch_hop(node: Replicas) -> OffsetForLeaderEpochHop:
    request = OffsetForLeaderEpoch(7, 1, 4, 3)
    replica = node.partition.own_replicas[2]
    hop = OffsetForLeaderEpochHop(node.cluster.replication, node.partition, replica, request)
    hop.version = 4
    return hop


def request_of(hop: AnyFollowerHop) -> Any:
    """What a broker reads that gets the request."""
    codec = request_codec(hop.API, hop.version)
    request, _ = codec.decode(memoryview(b"".join(codec.encode(hop.request()))), 0)
    return request


def response_of(hop: AnyFollowerHop, answer: Any) -> Any:
    """What the follower reads that gets the response."""
    codec = response_codec(hop.API, hop.version)
    response, _ = codec.decode(memoryview(b"".join(codec.encode(hop.response(answer)))), 0)
    return response


@pytest.mark.parametrize("version", range(11, 18))
def test_a_fetch_names_its_topic_and_its_sender_in_every_version(
    node: Replicas, version: int
) -> None:
    request = request_of(fetch_hop(node, version))
    (topic,) = request.topics
    by_name = ("t", NO_TOPIC_ID) if version < 13 else ("", node.partition.topic.topic_id)
    assert (topic.topic, topic.topic_id) == by_name
    epoch = node.cluster.processes[2].epoch
    state = (request.replica_state.replica_id, request.replica_state.replica_epoch)
    by_id = (2, (-1, -1)) if version < 15 else (-1, (2, epoch))
    assert (request.replica_id, state) == by_id


def test_a_fetch_has_the_followers_offsets_and_the_limits_of_the_configs(node: Replicas) -> None:
    request = request_of(fetch_hop(node, 17))
    config = node.cluster.config_int
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (
        config("replica.fetch.wait.max.ms"),
        config("replica.fetch.min.bytes"),
        config("replica.fetch.response.max.bytes"),
    )
    ((partition,),) = (topic.partitions for topic in request.topics)
    assert (partition.partition, partition.current_leader_epoch) == (0, 0)
    assert (partition.fetch_offset, partition.last_fetched_epoch) == (1, 0)
    assert partition.log_start_offset == 0
    assert partition.partition_max_bytes == config("replica.fetch.max.bytes")


@pytest.mark.parametrize("version", range(11, 18))
def test_a_fetch_response_names_its_topic_in_every_version(node: Replicas, version: int) -> None:
    (topic,) = response_of(fetch_hop(node, version), Fetched(7, None, 1, 0)).responses
    by_name = ("t", NO_TOPIC_ID) if version < 13 else ("", node.partition.topic.topic_id)
    assert (topic.topic, topic.topic_id) == by_name


def test_a_fetch_response_has_what_the_leader_answers(node: Replicas) -> None:
    def told(answer: Any) -> Any:
        (topic,) = response_of(fetch_hop(node, 17), answer).responses
        (partition,) = topic.partitions
        assert partition.partition_index == 0
        return partition

    records = node.partition.log.read_slice(1, 1 << 20)
    fetched = told(Fetched(7, records, 2, 1))
    assert (fetched.high_watermark, fetched.log_start_offset) == (2, 1)
    assert fetched.last_stable_offset == node.partition.last_stable_offset == 1
    assert bytes(fetched.records) == b"".join(list(node.partition.log.batches())[1:])
    empty = told(Fetched(7, None, 2, 1))
    assert (empty.error_code, bytes(empty.records)) == (0, b"")
    diverged = told(Diverged(7, 3, 5))
    assert (diverged.diverging_epoch.epoch, diverged.diverging_epoch.end_offset) == (3, 5)
    assert (diverged.error_code, diverged.high_watermark) == (0, -1)
    outside = told(OutOfRange(7, 4, 9))
    assert outside.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert outside.log_start_offset == 4
    assert told(RefusedPartition(7, 74)).error_code == 74


def test_an_offset_for_leader_epoch_has_the_epochs_and_its_response_the_end(node: Replicas) -> None:
    hop = epoch_hop(node)
    request = request_of(hop)
    ((partition,),) = (topic.partitions for topic in request.topics)
    assert (request.replica_id, request.topics[0].topic) == (2, "t")
    assert (partition.current_leader_epoch, partition.leader_epoch) == (4, 3)
    response = response_of(hop, EpochEnd(7, 2, 5))
    ((result,),) = (topic.partitions for topic in response.topics)
    assert response.topics[0].topic == "t"
    assert (result.partition, result.leader_epoch, result.end_offset) == (0, 2, 5)
    ((result,),) = (topic.partitions for topic in response_of(hop, RefusedPartition(7, 75)).topics)
    assert (result.error_code, result.end_offset) == (75, -1)
