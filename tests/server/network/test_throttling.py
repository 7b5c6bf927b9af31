"""A client over its quota: its answer is sent at once, and its connection is then muted."""

from __future__ import annotations

import pytest

from mockbroker import Cluster
from mockbroker.core.quotas.client_quotas import entity_of
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.server.network.test_connection import Raw, api_versions, request
from tests.support.waiting import wait_until


@pytest.fixture
def kafka():
    with Cluster(brokers=1) as cluster:
        cluster.clock.freeze()
        yield cluster


def allow(kafka: Cluster, kind: str, name: str, **quotas: float) -> None:
    entity = entity_of([(kind, name)])
    kafka.call(lambda cluster: cluster.quotas.alter(entity, quotas, validate_only=False))


def throttled(kafka: Cluster) -> dict[str, int]:
    throttling = kafka.call(lambda cluster: cluster.quotas.throttling)
    assert throttling is not None
    return throttling.throttled


def create(partitions: int) -> bytes:
    """A permissive change of topics: done, and told to wait for, a second for each partition."""
    topic = CreatableTopic(f"topic-{partitions}", partitions, 1)
    message = CreateTopicsRequest([topic], timeout_ms=1000)
    return request(ApiKey.CREATE_TOPICS, 2, message)


def told_ms(raw: Raw) -> int:
    response, _ = response_codec(ApiKey.CREATE_TOPICS, 2).decode(memoryview(raw.frame()), 4)
    return response.throttle_time_ms


@pytest.mark.covers("S158")
def test_what_a_throttled_client_sends_waits_until_its_time_has_passed(kafka: Cluster) -> None:
    allow(kafka, "client-id", "raw", controller_mutation_rate=1.0)
    raw = Raw(kafka)
    raw.send(create(14) + api_versions(2))
    assert told_ms(raw) == 3000
    assert throttled(kafka) == {"controller_mutation_rate": 1}
    kafka.clock.advance("2999ms")
    raw.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        raw.frame()
    raw.socket.settimeout(10)
    kafka.clock.advance("1ms")
    assert raw.correlation_id() == 2
    raw.socket.close()


def test_other_clients_do_not_wait(kafka: Cluster) -> None:
    allow(kafka, "client-id", "raw", controller_mutation_rate=1.0)
    waiting, other = Raw(kafka), Raw(kafka)
    waiting.send(create(14) + api_versions(2))
    assert told_ms(waiting) == 3000
    other.send(api_versions(1))
    assert other.correlation_id() == 1
    for client in (waiting, other):
        client.socket.close()


def test_a_client_that_is_left_alone_is_not_taken_for_idle(kafka: Cluster) -> None:
    allow(kafka, "client-id", "raw", controller_mutation_rate=0.001)
    raw = Raw(kafka)
    raw.send(create(2) + api_versions(2))
    assert told_ms(raw) == 1_989_000
    kafka.clock.advance("33m", extend_sessions=False)
    kafka.clock.advance("9s", extend_sessions=False)
    assert raw.correlation_id() == 2
    raw.socket.close()


def test_a_cluster_stops_although_clients_are_left_alone() -> None:
    with Cluster(brokers=1) as kafka:
        kafka.clock.freeze()
        allow(kafka, "client-id", "raw", controller_mutation_rate=1.0)
        raw = Raw(kafka)
        raw.send(create(100) + api_versions(2))
        assert told_ms(raw) == 89_000
    assert raw.closed_without_an_answer()
    raw.socket.close()


def test_connections_that_come_too_fast_are_closed_late(kafka: Cluster) -> None:
    """Ten are served at once; the eleventh is accepted and hears nothing until it is closed."""
    allow(kafka, "ip", "127.0.0.1", connection_creation_rate=1.0)
    clients = [Raw(kafka) for _ in range(11)]
    for client in clients:
        client.send(api_versions(5))
    assert [client.correlation_id() for client in clients[:10]] == [5] * 10
    wait_until(lambda: kafka.server.stats.connections_opened == 11)
    assert kafka.server.stats.connections_closed == 0
    kafka.clock.advance("1s")
    assert clients[10].closed_without_an_answer()
    kafka.clock.advance("11s")
    later = Raw(kafka)
    later.send(api_versions(6))
    assert later.correlation_id() == 6
    for client in (*clients, later):
        client.socket.close()
