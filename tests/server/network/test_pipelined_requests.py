"""The next request of a client completes its waiting Fetch."""

from __future__ import annotations

import select

import pytest

from mockbroker import Cluster
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.list_groups import ListGroupsRequest
from tests.server.network.test_connection import TIMEOUT_S, Raw, request, waits
from tests.support.waiting import wait_until

# Longer than a test may wait for an answer.
LONG_MS = int(TIMEOUT_S * 10_000)
FETCH = FetchRequest(
    max_wait_ms=LONG_MS,
    min_bytes=1,
    topics=[FetchTopic(topic="orders", partitions=[FetchPartition(partition=0)])],
)


@pytest.fixture
def kafka():
    with Cluster(brokers=1, topics={"orders": 1}) as cluster:
        yield cluster


@pytest.fixture
def raw(kafka: Cluster):
    client = Raw(kafka)
    yield client
    client.socket.close()


def fetch(correlation_id: int) -> bytes:
    return request(ApiKey.FETCH, 12, FETCH, correlation_id)


def ask(correlation_id: int) -> bytes:
    return request(ApiKey.LIST_GROUPS, 4, ListGroupsRequest(), correlation_id)


def test_a_fetch_that_waits_is_answered_when_the_next_request_comes(
    raw: Raw, kafka: Cluster
) -> None:
    """Both are answered, in order, long before the Fetch would have been."""
    for number in (1, 3):  # the same socket is watched again
        raw.send(fetch(number))
        wait_until(lambda: waits(kafka))
        raw.send(ask(number + 1))
        assert [raw.correlation_id(), raw.correlation_id()] == [number, number + 1]


def test_a_fetch_waits_as_in_kafka_where_it_does_not_make_way() -> None:
    with Cluster(
        brokers=1, topics={"orders": 1}, configs={"mockbroker.fetch.makes.way": "false"}
    ) as strict:
        client = Raw(strict)
        client.send(fetch(1) + ask(2))
        wait_until(lambda: waits(strict))
        assert not select.select([client.socket], [], [], 0)[0]
        client.socket.close()


def test_a_fetch_with_the_next_request_behind_it_does_not_begin_to_wait(raw: Raw) -> None:
    raw.send(fetch(1) + ask(2))
    assert [raw.correlation_id(), raw.correlation_id()] == [1, 2]


def test_a_client_that_goes_away_is_no_next_request(raw: Raw, kafka: Cluster) -> None:
    """A half-closed connection still waits for its answer, and costs nothing meanwhile."""
    raw.send(fetch(1))
    wait_until(lambda: waits(kafka))
    raw.socket.shutdown(1)
    other = Raw(kafka)
    other.send(fetch(1) + ask(2))
    assert [other.correlation_id(), other.correlation_id()] == [1, 2]
    assert waits(kafka)
    other.socket.close()


def test_rules_keep_the_time_that_they_give_a_fetch(raw: Raw, kafka: Cluster) -> None:
    """What a rule delays stays delayed, whatever comes behind it."""
    kafka.clock.freeze()
    rule = kafka.faults.add(match={"api": "Fetch"}, do={"delay": "5s"})
    raw.send(fetch(1) + ask(2))
    rule.wait()
    wait_until(lambda: waits(kafka))
    answered, _, _ = select.select([raw.socket], [], [], 0)
    assert not answered
    kafka.clock.advance("5s")
    kafka.clock.advance(LONG_MS)
    assert [raw.correlation_id(), raw.correlation_id()] == [1, 2]
