from __future__ import annotations

import pytest

from mockbroker import Cluster
from mockbroker.client import BrokerError, Client, UnknownTopicError
from mockbroker.client.producing import BATCH_BYTES_MAX
from mockbroker.core.hashing.murmur2 import murmur2_partition
from mockbroker_protocol.records import CompressionType, Record


@pytest.fixture
def client(mock_kafka: Cluster):
    mock_kafka.topic("t").create(4)
    with Client(mock_kafka.bootstrap_servers) as client:
        yield client


@pytest.mark.covers("S317")
def test_what_is_produced_is_stored_as_it_was_given(mock_kafka: Cluster, client: Client):
    record = Record(timestamp=1234, key=b"k", value=None, headers=(("h", b"x"), ("n", None)))
    [produced] = client.produce("t", [record], partition=2)
    assert (produced.partition, produced.base_offset, produced.count) == (2, 0, 1)
    [stored] = mock_kafka.records("t", 2)
    assert (stored.key, stored.value) == (b"k", None)
    assert client.fetch("t", 2, 0) == [record]


def test_bare_values_get_the_time_of_now(client: Client):
    client.produce("t", [b"bytes", "text"], partition=0)
    records = client.fetch("t", 0, 0)
    assert [record.value for record in records] == [b"bytes", b"text"]
    assert all(record.timestamp > 1_700_000_000_000 for record in records)


@pytest.mark.parametrize("codec", list(CompressionType))
def test_every_codec_is_accepted_and_read_back(client: Client, codec: CompressionType):
    values = [b"%d" % number * 50 for number in range(100)]
    client.produce("t", values, partition=1, codec=codec)
    assert [record.value for record in client.fetch("t", 1, 0)] == values


def test_keys_decide_the_partition(client: Client):
    keys = [b"key-%d" % number for number in range(30)]
    client.produce("t", [Record(key=key) for key in keys])
    for found in client.consume("t"):
        assert found.record.key is not None
        assert found.partition == murmur2_partition(found.record.key, 4)


def test_keyless_records_take_the_partitions_in_turn(client: Client):
    partitions = [client.produce("t", [b"x", b"y"])[0].partition for _ in range(5)]
    assert partitions == [0, 1, 2, 3, 0]


def test_large_amounts_are_cut_into_batches_that_the_broker_takes(client: Client):
    values = [bytes(300_000)] * 7
    produced = client.produce("t", values, partition=0)
    assert [batch.count for batch in produced] == [2, 2, 2, 1]
    assert [batch.base_offset for batch in produced] == [0, 2, 4, 6]
    assert BATCH_BYTES_MAX - 100_000 < 3 * 300_000


def test_a_record_beyond_the_limit_is_refused_by_the_broker(client: Client):
    with pytest.raises(BrokerError, match=r"produce to t-0: .*MESSAGE_TOO_LARGE"):
        client.produce("t", [bytes(2_000_000)], partition=0)


@pytest.mark.covers("S99")
def test_without_acknowledgements_nothing_is_answered(mock_kafka: Cluster, client: Client):
    [produced] = client.produce("t", [b"x"], partition=0, acks=0)
    assert produced.base_offset == -1
    mock_kafka.expect_records("t", 1)


def test_a_missing_topic_is_created_when_the_cluster_does_so(client: Client):
    [produced] = client.produce("new", [b"x"])
    assert produced.base_offset == 0


@pytest.mark.mock_kafka(configs={"auto.create.topics.enable": "false"})
def test_a_missing_topic_is_an_error_when_it_does_not(mock_kafka: Cluster):
    with (
        Client(mock_kafka.bootstrap_servers, timeout_s=2) as client,
        pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"),
    ):
        client.produce("new", [b"x"])


def test_a_missing_partition_is_an_error(client: Client):
    with pytest.raises(UnknownTopicError, match="t has no partition 9"):
        client.produce("t", [b"x"], partition=9)
