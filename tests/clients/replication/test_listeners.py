"""Where brokers say that they are: clients go there, whatever address they began with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException

from mockbroker import Cluster
from mockbroker.core.brokers.broker import Endpoint
from mockbroker.server.config import ListenerSpec
from mockbroker_protocol import ErrorCode
from tests.support.librdkafka import (
    TIMEOUT_S,
    admin_client,
    offsets,
    produce,
    read_all,
)

INTERNAL, EXTERNAL = "INTERNAL", "EXTERNAL"
NOWHERE = "no-such-host.invalid"


@pytest.fixture
def two_listeners() -> Iterator[Cluster]:
    """Two brokers with two listeners; broker 1 leads partition 0, broker 2 partition 1."""
    listeners = [ListenerSpec(INTERNAL), ListenerSpec(EXTERNAL, advertised_host="localhost")]
    with Cluster(brokers=2, node_ids=[1, 2], listeners=listeners) as kafka:
        kafka.call(lambda cluster: cluster.create_topic("t", assignments={0: [1], 1: [2]}))
        yield kafka


@pytest.mark.covers("S284")
def test_clients_go_to_the_addresses_that_metadata_names(two_listeners: Cluster) -> None:
    """From 127.0.0.1 to localhost; the ports are those of the listener that was asked."""
    bootstrap = two_listeners.bootstrap(EXTERNAL)
    begun = {address.replace("localhost", "127.0.0.1") for address in bootstrap.split(",")}
    told = admin_client(",".join(begun)).list_topics(timeout=TIMEOUT_S).brokers
    assert {each.host for each in told.values()} == {"localhost"}
    assert {f"127.0.0.1:{each.port}" for each in told.values()} == begun
    inside = admin_client(two_listeners.bootstrap(INTERNAL)).list_topics(timeout=TIMEOUT_S)
    assert {each.host for each in inside.brokers.values()} == {"127.0.0.1"}


@pytest.mark.covers("S284")
def test_with_a_wrong_advertised_address_bootstrap_works_and_nothing_else() -> None:
    with Cluster(brokers=1, listeners=[ListenerSpec(advertised_host=NOWHERE)]) as kafka:
        kafka.topic("t").create(1)
        port = kafka.bootstrap_servers.rpartition(":")[2]
        servers = f"127.0.0.1:{port}"
        (told,) = admin_client(servers).list_topics(timeout=TIMEOUT_S).brokers.values()
        assert told.host == NOWHERE
        with pytest.raises(KafkaException) as failed:
            produce(servers, "t", ["a"], message_timeout_ms=700, linger_ms=0)
        assert failed.value.args[0].code() == KafkaError._MSG_TIMED_OUT


@pytest.mark.covers("S285")
def test_a_leader_without_the_listener_that_was_asked_is_not_told(two_listeners: Cluster) -> None:
    """Broker 2 has no external listener: LISTENER_NOT_FOUND outside, all is well inside."""
    bootstrap = two_listeners.bootstrap(EXTERNAL).split(",")[0]

    def take_away(cluster) -> None:  # type: ignore[no-untyped-def]
        del cluster.brokers[2].endpoints[EXTERNAL]
        cluster.metadata.changed()

    two_listeners.call(take_away)
    outside = admin_client(bootstrap).list_topics("t", TIMEOUT_S).topics["t"].partitions
    assert (outside[0].leader, outside[0].error) == (1, None)
    error = outside[1].error
    assert error is not None
    assert (outside[1].leader, error.code()) == (-1, ErrorCode.LISTENER_NOT_FOUND)
    inside = admin_client(two_listeners.bootstrap(INTERNAL)).list_topics("t", TIMEOUT_S)
    assert [each.leader for each in inside.topics["t"].partitions.values()] == [1, 2]


@pytest.mark.covers("S286")
def test_a_broker_whose_name_does_not_resolve_disturbs_no_other(two_listeners: Cluster) -> None:
    """Broker 2 advertises a name that nobody knows."""

    def rename(cluster) -> None:  # type: ignore[no-untyped-def]
        former = cluster.brokers[2].endpoints[INTERNAL]
        cluster.brokers[2].endpoints[INTERNAL] = Endpoint(NOWHERE, former.port)
        cluster.metadata.changed()

    two_listeners.call(rename)
    bootstrap = two_listeners.bootstrap(INTERNAL).split(",")[0]
    produce(bootstrap, "t", ["x"], partition=0)
    with pytest.raises(KafkaException) as failed:
        produce(bootstrap, "t", ["y"], partition=1, message_timeout_ms=700, linger_ms=0)
    assert failed.value.args[0].code() == KafkaError._MSG_TIMED_OUT
    assert offsets(read_all(bootstrap, "t", 1)) == [0]
