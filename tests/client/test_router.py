from __future__ import annotations

import pytest

from mockbroker import Cluster
from mockbroker.client import (
    BootstrapError,
    BrokerError,
    Client,
    ConnectionClosedError,
    UnknownTopicError,
)
from mockbroker.client.router import Address, Router, parse_bootstrap
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.metadata import MetadataRequest
from tests.client.scripted import Peer, free_port, scripted_peer


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost", [("localhost", 9092)]),
        ("a:1,b:2", [("a", 1), ("b", 2)]),
        (" a:1 , b ", [("a", 1), ("b", 9092)]),
        ("[::1]:5", [("::1", 5)]),
        ("[::1]", [("::1", 9092)]),
    ],
)
def test_bootstrap_is_a_list_of_hosts_with_or_without_ports(text, addresses):
    assert parse_bootstrap(text) == [Address(*address) for address in addresses]


@pytest.mark.parametrize("text", ["", "a:b", "a:", "a:99999", "a:1,,b:2", ":9092"])
def test_bootstrap_that_is_no_such_list_is_refused(text):
    with pytest.raises(ValueError, match=r"is not HOST:PORT"):
        parse_bootstrap(text)


def test_one_reachable_bootstrap_server_is_enough(mock_kafka: Cluster):
    bootstrap = f"127.0.0.1:{free_port()},{mock_kafka.bootstrap_servers}"
    with Client(bootstrap) as client:
        assert len(client.metadata().brokers) == 3


def test_no_reachable_bootstrap_server_fails_at_once_and_names_them():
    ports = free_port(), free_port()
    router = Router(",".join(f"127.0.0.1:{port}" for port in ports))
    with pytest.raises(BootstrapError) as caught:
        router.retrying(router.metadata)
    assert all(f"127.0.0.1:{port}: connection refused" in str(caught.value) for port in ports)


def test_leaders_are_found(mock_kafka: Cluster):
    mock_kafka.topic("t").create(6)
    with Client(mock_kafka.bootstrap_servers) as client:
        leaders = {client.router.leader("t", index) for index in range(6)}
        assert leaders == {1, 2, 3}
        peers = {index: client.leader("t", index).peer for index in range(6)}
    expected = {"{}:{}".format(*mock_kafka.endpoint(node_id)) for node_id in leaders}
    assert set(peers.values()) == expected


def test_coordinators_are_found(mock_kafka: Cluster):
    with Client(mock_kafka.bootstrap_servers) as client:
        peer = client.coordinator("my-group").peer
    assert peer in {"{}:{}".format(*mock_kafka.endpoint(node_id)) for node_id in (1, 2, 3)}


def test_topics_and_partitions_that_do_not_exist_are_named(mock_kafka: Cluster):
    mock_kafka.topic("t").create(2)
    with Client(mock_kafka.bootstrap_servers) as client:
        with pytest.raises(UnknownTopicError, match=r"^there is no topic nosuch$"):
            client.router.partitions("nosuch")
        with pytest.raises(UnknownTopicError, match=r"t has no partition 2, only 0-1$"):
            client.router.leader("t", 2)


def test_asking_for_a_topic_does_not_create_it(mock_kafka: Cluster):
    with Client(mock_kafka.bootstrap_servers) as client:
        with pytest.raises(UnknownTopicError):
            client.router.topic("new")
        assert client.topics.all() == []


def test_an_unknown_node_is_no_broker(mock_kafka: Cluster):
    with (
        Client(mock_kafka.bootstrap_servers) as client,
        pytest.raises(BrokerError, match=r"broker 9: .*BROKER_NOT_AVAILABLE"),
    ):
        client.router.node(9)


def test_retriable_errors_are_tried_again_and_others_are_not(mock_kafka: Cluster):
    router = Router(mock_kafka.bootstrap_servers)
    outcomes = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT, None]
    tried: list[ErrorCode | None] = []

    def action() -> str:
        outcome = outcomes[len(tried)]
        tried.append(outcome)
        if outcome is not None:
            raise BrokerError(outcome, "it")
        return "done"

    assert router.retrying(action) == "done"
    assert tried == outcomes
    outcomes[:] = [ErrorCode.OFFSET_OUT_OF_RANGE]
    tried.clear()
    with pytest.raises(BrokerError, match="OFFSET_OUT_OF_RANGE"):
        router.retrying(action)
    assert len(tried) == 1


def test_retrying_ends_with_the_last_error_when_the_time_is_up(mock_kafka: Cluster):
    router = Router(mock_kafka.bootstrap_servers, timeout_s=0.1)

    def action() -> None:
        raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, "it")

    with pytest.raises(BrokerError, match="LEADER_NOT_AVAILABLE"):
        router.retrying(action)


def test_a_broken_connection_is_made_anew(mock_kafka: Cluster):
    with Client(mock_kafka.bootstrap_servers) as client:
        connection = client.router.any()
        connection.close()
        response = client.router.retrying(lambda: client.router.metadata([]))
        assert len(response.brokers) == 3
        assert client.router.any() is not connection


def test_a_dropped_connection_is_not_used_again():
    with scripted_peer(Peer.read_frame) as address:
        router = Router("{}:{}".format(*address))
        connection = router.any()
        with pytest.raises(ConnectionClosedError):
            connection.send(MetadataRequest(), 12)
        router.drop(connection)
        assert router._connections == {}
