"""The Python clients against older releases and against each other's groups."""

from __future__ import annotations

from contextlib import closing

import pytest
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor

from mockbroker import Cluster
from mockbroker.client.connection import Connection
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.heartbeat import HeartbeatRequest
from mockbroker_protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.support.kafka_python import polled_aside, subscribe
from tests.support.librdkafka import open_consumer, owned, poll, produce, until
from tests.support.python_clients import CLIENTS, PythonClient, Sent
from tests.support.request_log import RequestLog

INVALID_GROUP_ID = 24

every_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


@pytest.mark.covers("S320", "S327")
@pytest.mark.parametrize(
    "release",
    [
        pytest.param(release, marks=pytest.mark.mock_kafka(kafka_version=release), id=release)
        for release in ("2.8", "3.4", "3.9", "4.3")
    ],
)
@every_client
def test_clients_keep_to_what_the_release_offers(
    kafka: Cluster, log: RequestLog, client: PythonClient, release: str
) -> None:
    """They are told less, use less, and read what they wrote in every codec."""
    for codec in ("none", "zstd"):
        client.write(kafka.bootstrap_servers, "t", [Sent(b"v")] * 5, codec)
    assert len(client.read(kafka.bootstrap_servers, "t", 10)) == 10
    highest = kafka.call(lambda cluster: dict(cluster.profile.max_versions))
    used = [each for each in log.of() if each.api != ApiKey.API_VERSIONS]
    assert {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA} <= {each.api for each in used}
    for each in used:
        assert each.version <= highest[each.api], each.api
    fetches = {each.version for each in log.of(ApiKey.FETCH)}
    assert max(fetches) <= {"2.8": 12, "3.4": 13, "3.9": 17, "4.3": 18}[release]


@pytest.mark.covers("S324")
@every_client
def test_nobody_is_throttled(kafka: Cluster, log: RequestLog, client: PythonClient) -> None:
    """Every response has the throttle time where its schema says so, and it is 0."""
    client.write(kafka.bootstrap_servers, "t", [Sent(b"v")] * 5)
    client.read(kafka.bootstrap_servers, "t", 5)
    with open_consumer(kafka.bootstrap_servers, group_id="g") as consumer:
        consumer.subscribe(["t"])
        poll(consumer, 5)
        consumer.commit(asynchronous=False)
    throttles = [
        each.response.throttle_time_ms
        for each in log.of()
        if hasattr(each.response, "throttle_time_ms")
    ]
    assert len(throttles) > 5
    assert set(throttles) == {0}


@pytest.mark.covers("S186", "S206")
def test_clients_of_different_kinds_share_a_group(kafka: Cluster) -> None:
    """librdkafka's range assignor reads kafka-python's subscription and the other way round."""
    other = KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers,
        group_id="g",
        auto_offset_reset="earliest",
        heartbeat_interval_ms=50,
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    config = {
        "group_id": "g",
        "heartbeat_interval_ms": 50,
        "partition_assignment_strategy": "range",
    }
    with closing(other), open_consumer(kafka.bootstrap_servers, **config) as one:
        subscribe(other, "t")
        one.subscribe(["t"])
        with polled_aside(other) as others:
            until(lambda: len(owned(one)) == len(other.assignment()) == 2, one)
            mine = owned(one)
            for partition in range(4):
                produce(kafka.bootstrap_servers, "t", [str(partition)], partition=partition)
            got = poll(one, 2)
            until(lambda: len(others) == 2, one)
        assert sorted(message.partition() for message in got) == mine
        assert {record.partition for record in others} == {0, 1, 2, 3} - set(mine)


@pytest.mark.covers("S321")
def test_the_coordinator_is_told_by_id_host_and_port(kafka: Cluster) -> None:
    """One at a time up to v3, several at once from v4 on; every broker knows."""
    kafka.call(lambda cluster: cluster.ensure_internal_topic("__consumer_offsets"))
    by_group: dict[str, set[tuple[int, str, int]]] = {"a": set(), "b": set()}
    for node_id in (1, 2, 3):
        with Connection(*kafka.endpoint(node_id)) as connection:
            for group, answers in by_group.items():
                one = connection.send(FindCoordinatorRequest(key=group), 3)
                assert (one.throttle_time_ms, one.error_code) == (0, 0)
                answers.add((one.node_id, one.host, one.port))
            many = connection.send(FindCoordinatorRequest(coordinator_keys=["a", "b"]), 4)
            assert many.throttle_time_ms == 0
            for each in many.coordinators:
                assert each.error_code == 0
                by_group[each.key].add((each.node_id, each.host, each.port))
    for answers in by_group.values():
        [(node_id, host, port)] = answers
        assert (host, port) == kafka.endpoint(node_id)


@pytest.mark.covers("S164")
def test_a_blank_group_id_is_refused_by_the_broker(kafka: Cluster) -> None:
    kafka.call(lambda cluster: cluster.ensure_internal_topic("__consumer_offsets"))
    join = JoinGroupRequest(
        group_id="",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    with Connection(*kafka.endpoint(1)) as connection:
        for request in (join, HeartbeatRequest(group_id="", member_id="m")):
            assert connection.send(request).error_code == INVALID_GROUP_ID


@pytest.mark.covers("S347")
@pytest.mark.mock_kafka(topics={"t": 1})
def test_two_thousand_partitions_stay_usable(kafka: Cluster) -> None:
    for n in range(20):
        kafka.topic(f"wide-{n}").create(100)
    for n in range(20):
        for partition in (0, 99):
            produce(kafka.bootstrap_servers, f"wide-{n}", ["v"], partition=partition)
    with open_consumer(kafka.bootstrap_servers, group_id="g") as consumer:
        consumer.subscribe([f"wide-{n}" for n in range(20)])
        assert len(poll(consumer, 40)) == 40
        assert len(consumer.assignment()) == 2000
