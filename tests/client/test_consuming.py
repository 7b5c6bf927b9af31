from __future__ import annotations

import socket

import pytest

from mockbroker import Cluster
from mockbroker.client import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    BrokerError,
    Client,
    UnknownTopicError,
)
from mockbroker_protocol.records import Record


@pytest.fixture
def client(mock_kafka: Cluster):
    mock_kafka.topic("t").create(3)
    with Client(mock_kafka.bootstrap_servers) as client:
        yield client


def fill(client: Client, count: int, partition: int = 0) -> None:
    records = [Record(timestamp=1000 + n, value=b"%d" % n) for n in range(count)]
    client.produce("t", records, partition=partition)


@pytest.mark.covers("S18", "S27")
def test_offsets_are_listed_by_time_and_by_name(client: Client):
    fill(client, 10)
    assert {i: o.offset for i, o in client.list_offsets("t").items()} == {0: 10, 1: 0, 2: 0}
    assert client.list_offsets("t", EARLIEST)[0].offset == 0
    assert client.list_offsets("t", 1003, [0])[0].offset == 3
    assert client.list_offsets("t", 1003, [0])[0].timestamp == 1003
    assert client.list_offsets("t", MAX_TIMESTAMP, [0])[0].offset == 9
    assert client.list_offsets("t", 9999, [0])[0].offset == -1


@pytest.mark.covers("S26")
def test_a_fetch_inside_a_batch_gives_the_rest_of_it(client: Client):
    fill(client, 10)
    assert [record.offset for record in client.fetch("t", 0, 7)] == [7, 8, 9]


def test_a_fetch_at_the_end_gives_nothing(client: Client):
    assert client.fetch("t", 0, 0, max_wait_ms=1) == []


def test_a_fetch_outside_the_log_is_an_error(client: Client):
    with pytest.raises(BrokerError, match=r"fetch from t-0 at 5: .*OFFSET_OUT_OF_RANGE"):
        client.fetch("t", 0, 5)


@pytest.mark.covers("S163")
def test_all_partitions_of_all_leaders_are_read_to_their_ends(client: Client):
    for partition, count in enumerate((5, 0, 7)):
        fill(client, count, partition) if count else None
    found = list(client.consume("t"))
    offsets = {p: [f.record.offset for f in found if f.partition == p] for p in (0, 1, 2)}
    assert offsets == {0: [*range(5)], 1: [], 2: [*range(7)]}
    assert {f.topic for f in found} == {"t"}


def test_reading_starts_where_it_is_told_to(client: Client):
    fill(client, 10)
    fill(client, 10, 1)
    assert len(list(client.consume("t", start=8))) == 4
    assert list(client.consume("t", start=LATEST)) == []
    [only] = client.consume("t", partitions=[1], start={1: 9})
    assert (only.partition, only.record.offset) == (1, 9)


def test_what_comes_later_is_not_read_unless_followed(client: Client):
    fill(client, 3)
    records = client.consume("t")
    assert next(records).record.offset == 0
    fill(client, 3)
    assert [found.record.offset for found in records] == [1, 2]


def test_following_gives_what_comes_later_until_it_is_quiet(client: Client, mock_kafka: Cluster):
    records = client.consume("t", start=LATEST, follow=True, idle_timeout_s=2)
    with Client(mock_kafka.bootstrap_servers) as other:
        # The iterator asks for its offsets when it is made, so this is new to it.
        other.produce("t", [b"one"], partition=2)
    assert [found.record.value for found in records] == [b"one"]


def test_the_client_goes_on_after_an_iterator_was_left(client: Client):
    fill(client, 3)
    records = client.consume("t", follow=True)
    next(records)
    records.close()  # with Fetches under way, whose answers must reach nobody else
    assert len(client.metadata().brokers) == 3
    assert len(list(client.consume("t"))) == 3


def test_more_than_one_fetch_holds_is_read_on(client: Client):
    client.produce("t", [bytes(400_000)] * 8, partition=0)
    assert [found.record.offset for found in client.consume("t")] == [*range(8)]


def test_topics_and_partitions_that_do_not_exist_are_errors(client: Client):
    with pytest.raises(UnknownTopicError, match="there is no topic nosuch"):
        client.consume("nosuch")
    with pytest.raises(UnknownTopicError, match="t has no partition 3"):
        client.consume("t", partitions=[3])


def test_following_survives_connections_that_break(client: Client, mock_kafka: Cluster):
    fill(client, 1)
    records = client.consume("t", follow=True, idle_timeout_s=10)
    assert next(records).record.value == b"0"
    for connection in client.router._connections.values():
        connection._socket.shutdown(socket.SHUT_RDWR)
    with Client(mock_kafka.bootstrap_servers) as other:
        other.produce("t", [b"after"], partition=1)
    assert next(records).record.value == b"after"
    records.close()
