from __future__ import annotations

import pytest

from mockbroker import Cluster
from mockbroker.client import Client


def test_a_client_connects_when_it_is_first_needed():
    Client("127.0.0.1:1").close()


def test_a_bootstrap_that_is_no_address_is_refused_at_once():
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        Client("nowhere:at:all:x")


@pytest.mark.mock_kafka(brokers=1)
def test_a_single_broker_is_a_cluster_too(mock_kafka: Cluster):
    with Client(mock_kafka.bootstrap_servers) as client:
        client.produce("t", ["one", "two"])
        assert [found.record.value for found in client.consume("t")] == [b"one", b"two"]


def test_closing_twice_is_fine(mock_kafka: Cluster):
    client = Client(mock_kafka.bootstrap_servers)
    client.metadata()
    client.close()
    client.close()
