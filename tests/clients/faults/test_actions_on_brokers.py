"""Brokers and the network in the hands of a rule: what a client sees."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, TopicPartition

from mockbroker import Cluster
from mockbroker.core.errors import ActionError
from mockbroker.core.validation import ValidationError
from tests.support.faulty import (
    begin,
    impatient_consumer,
    open_producer,
    polled,
    send,
    stored,
    warm,
)
from tests.support.librdkafka import TIMEOUT_S, addresses, admin_client, poll, values
from tests.support.waiting import wait_until


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster for each test: brokers do not come through it as they were."""
    with Cluster(brokers=3, configs={"unclean.leader.election.enable": "true"}) as running:
        yield running


def leader(kafka: Cluster, topic: str, partition: int = 0) -> int:
    """The leader that a client is told."""
    found = admin_client(kafka.bootstrap_servers).list_topics(topic, TIMEOUT_S)
    return int(found.topics[topic].partitions[partition].leader)


def brokers(kafka: Cluster) -> set[int]:
    """The brokers that a client is told."""
    found = admin_client(kafka.bootstrap_servers).list_topics(timeout=TIMEOUT_S)
    return set(found.brokers)


@pytest.mark.fault("stop_broker", "start_broker")
@pytest.mark.parametrize("how", ["controlled", "unclean"])
def test_a_broker_stops_and_comes_back(kafka: Cluster, topic: str, how: str) -> None:
    producer = open_producer(kafka, enable_idempotence=True)
    warm(producer, topic)
    kafka.act("stop_broker", node=1, how=how)
    assert send(producer, topic, "x").errors == []
    assert brokers(kafka) == {2, 3}
    assert leader(kafka, topic) in (2, 3)
    port = kafka.endpoint(2)
    kafka.act("start_broker", 1)
    assert brokers(kafka) == {1, 2, 3}
    assert kafka.endpoint(2) == port
    assert stored(kafka, topic) == ["warm", "x"]


@pytest.mark.fault("start_broker")
def test_a_broker_comes_back_on_another_port(kafka: Cluster, topic: str) -> None:
    producer = open_producer(kafka, enable_idempotence=True)
    warm(producer, topic)
    before = kafka.endpoint(1)
    kafka.act("stop_broker", 1)
    kafka.act("start_broker", node=1, new_port=True)
    wait_until(lambda: 1 in kafka.call(lambda c: c.topics[topic].partitions[0].isr))
    kafka.act("move_leader", topic=topic, partition=0, node=1)
    assert kafka.endpoint(1) != before
    assert send(producer, topic, "x").errors == []
    assert leader(kafka, topic) == 1


@pytest.mark.fault("pause_broker", "resume_broker")
def test_a_paused_broker_accepts_and_never_answers(kafka: Cluster, topic: str) -> None:
    producer = open_producer(kafka, socket_timeout_ms=60_000)
    warm(producer, topic)
    kafka.act("pause_broker", 1)
    delivery = begin(producer, topic, "waits")
    producer.poll(0.2)
    assert delivery.messages == []
    kafka.act("resume_broker", 1)
    assert polled(producer, delivery).errors == []


@pytest.mark.fault("add_broker", "remove_broker")
def test_brokers_join_and_leave(kafka: Cluster) -> None:
    kafka.act("add_broker", node=7, rack="r1")
    assert brokers(kafka) == {1, 2, 3, 7}
    kafka.act("remove_broker", 2)
    assert brokers(kafka) == {1, 3, 7}


@pytest.mark.fault("cut_network", "heal_network")
def test_a_broker_that_is_cut_off_loses_what_it_leads(kafka: Cluster, topic: str) -> None:
    """One that lost the controller is fenced; when the network heals it is back."""
    producer = open_producer(kafka, enable_idempotence=True)
    warm(producer, topic)
    kafka.act("cut_network", nodes=1)
    wait_until(lambda: leader_of(kafka, topic) in (2, 3))
    rest = admin_client(addresses(kafka, 2, 3))
    assert set(rest.list_topics(timeout=TIMEOUT_S).brokers) == {2, 3}
    assert len(kafka.call(lambda c: c.topics[topic].partitions[0].isr)) == 2
    kafka.act("heal_network")
    wait_until(lambda: len(kafka.call(lambda c: c.topics[topic].partitions[0].isr)) == 3)
    assert send(producer, topic, "x").errors == []


@pytest.mark.fault("delay_network")
def test_slow_links_let_acks_all_wait(kafka: Cluster, topic: str) -> None:
    """The leader has the record at once; followers have it when the clock has gone on."""
    producer = open_producer(kafka, enable_idempotence=True)
    warm(producer, topic)
    kafka.clock.freeze()
    kafka.act("delay_network", nodes=[1, 2, 3], to=[1, 2, 3], by="2s")
    delivery = begin(producer, topic, "x")
    wait_until(lambda: kafka.call(lambda c: c.topics[topic].partitions[0].log.end_offset) == 2)
    assert kafka.call(lambda c: c.topics[topic].partitions[0].high_watermark) == 1
    assert not delivery.messages
    kafka.clock.thaw()
    kafka.clock.advance("5s")
    assert polled(producer, delivery).errors == []


@pytest.mark.fault("set_rack")
def test_a_broker_moves_to_another_rack(kafka: Cluster) -> None:
    kafka.act("set_rack", node=1, rack="east")
    admin = admin_client(kafka.bootstrap_servers)
    described = admin.describe_cluster().result(TIMEOUT_S)
    assert {node.id: node.rack for node in described.nodes} == {1: "east", 2: None, 3: None}


def leader_of(kafka: Cluster, topic: str) -> int:
    return kafka.call(lambda c: c.topics[topic].partitions[0].leader_id)


@pytest.mark.fault("cut_network", "heal_network")
@pytest.mark.parametrize(("both_ways", "arrived"), [(True, ["warm"]), (False, ["warm", "x"])])
def test_clients_are_cut_off(
    kafka: Cluster, topic: str, both_ways: bool, arrived: list[str]
) -> None:
    """Their requests do not arrive, or one way their answers; other clients notice nothing."""
    cut = open_producer(kafka, client_id="app-1", socket_timeout_ms=60_000)
    warm(cut, topic)
    kafka.act("cut_network", nodes=1, clients={"client_id": "app-*"}, both_ways=both_ways)
    delivery = begin(cut, topic, "x")
    wait_until(lambda: kafka.faults.rule("cut_network-1").hits > 0)
    cut.poll(0.05)
    assert delivery.messages == []
    assert stored(kafka, topic) == arrived
    assert send(open_producer(kafka, client_id="other"), topic, "y").errors == []
    kafka.act("heal_network")
    assert polled(cut, delivery).errors == []
    assert sorted(stored(kafka, topic)) == ["warm", "x", "y"]


@pytest.mark.fault("move_leader", "drop_leader", "shuffle_leaders")
def test_leaders_move_and_go(kafka: Cluster, topic: str) -> None:
    producer = open_producer(kafka, enable_idempotence=True)
    warm(producer, topic)
    kafka.act("move_leader", topic=topic, partition=0, node=3)
    assert leader(kafka, topic) == 3
    assert send(producer, topic, "x").errors == []
    kafka.act("drop_leader", topic=topic, partition=0)
    assert leader(kafka, topic) == -1
    delivery = begin(producer, topic, "y")
    kafka.act("shuffle_leaders", topic=topic)
    assert polled(producer, delivery).errors == []
    assert leader(kafka, topic) in (1, 2, 3)


@pytest.mark.fault("lag_follower", "shrink_isr", "hold_high_watermark")
def test_what_is_not_replicated_is_not_seen(kafka: Cluster, topic: str) -> None:
    """A follower that lags holds up acks=all until it is out of the ISR or catches up."""
    producer = open_producer(kafka, socket_timeout_ms=60_000)
    warm(producer, topic)
    kafka.act("lag_follower", topic=topic, partition=0, node=3)
    delivery = begin(producer, topic, "lags")
    wait_until(lambda: kafka.call(lambda c: c.topics[topic].partitions[0].log_end_offset) == 2)
    producer.poll(0.05)
    assert delivery.messages == []
    kafka.act("shrink_isr", topic=topic, partition=0, nodes=[3])
    polled(producer, delivery)
    kafka.act("lag_follower", topic=topic, partition=0, node=3, release=True)
    kafka.act("hold_high_watermark", topic)
    careless = open_producer(kafka, acks=1)
    assert send(careless, topic, "hidden").errors == []
    with impatient_consumer(kafka) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert values(poll(consumer, 2)) == ["warm", "lags"]
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S)[1] == 2
        kafka.act("hold_high_watermark", topic=topic, release=True)
        assert values(poll(consumer, 1)) == ["hidden"]


@pytest.mark.fault("set_high_watermark")
def test_the_high_watermark_goes_back(kafka: Cluster, topic: str) -> None:
    send(open_producer(kafka), topic, "a", "b", "c")
    where = TopicPartition(topic, 0)
    with impatient_consumer(kafka) as consumer:
        assert consumer.get_watermark_offsets(where, TIMEOUT_S)[1] == 3
        kafka.act("set_high_watermark", topic=topic, partition=0, offset=1)
        assert consumer.get_watermark_offsets(where, TIMEOUT_S)[1] == 1


@pytest.mark.fault("elect_unclean")
def test_an_unclean_election_loses_records(kafka: Cluster, topic: str) -> None:
    """The follower that leads now has not got the last of them."""
    producer = open_producer(kafka, acks=1)
    warm(producer, topic)
    kafka.act("lag_follower", topic=topic, partition=0, node=2)
    kafka.act("lag_follower", topic=topic, partition=0, node=3)
    assert send(producer, topic, "lost").errors == []
    kafka.act("elect_unclean", topic=topic, partition=0, node=2)
    assert leader(kafka, topic) == 2
    with impatient_consumer(kafka) as consumer:
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S)[1] == 1
    assert stored(kafka, topic) == ["warm"]


@pytest.mark.fault("fail_log_dir")
def test_a_full_disk_takes_the_log_directory(kafka: Cluster, topic: str) -> None:
    """It was the broker's last one, so the broker is gone, and others lead."""
    producer = open_producer(kafka, enable_idempotence=True)
    warm(producer, topic)
    kafka.act("fail_log_dir", 1)
    assert send(producer, topic, "x").errors == []
    assert leader(kafka, topic) in (2, 3)


@pytest.mark.fault("set_clock")
def test_the_clock_stands_still_and_moves_on(kafka: Cluster, topic: str) -> None:
    kafka.act("set_clock", freeze=True)
    rule = kafka.faults.add(match={"api": "Produce", "topic": topic}, do={"delay": "1h"})
    producer = open_producer(kafka, socket_timeout_ms=60_000, message_timeout_ms=0)
    delivery = begin(producer, topic, "x")
    rule.wait()
    kafka.act("set_clock", advance="1h")
    assert polled(producer, delivery).errors == []
    kafka.act("set_clock", rate=1000)
    delivery = begin(producer, topic, "y")
    assert polled(producer, delivery).errors == []  # in 3.6 s
    kafka.act("set_clock", rate=1)


@pytest.mark.parametrize(
    ("action", "arguments", "said"),
    [
        ("stop_broker", {"node": 9}, "there is no broker 9; there are: 1, 2, 3"),
        ("move_leader", {"topic": "no", "partition": 0, "node": 1}, "there is no topic 'no'"),
        ("kick_member", {"group": "nobody"}, "group 'nobody' has no coordinator just now"),
        ("set_quota", {"key": "producer_byte_rate"}, "give user, client_id or ip"),
    ],
)
def test_what_cannot_be_done_says_why(
    kafka: Cluster, action: str, arguments: dict[str, object], said: str
) -> None:
    with pytest.raises(ActionError, match=said):
        kafka.act(action, arguments)


@pytest.mark.parametrize(
    ("action", "arguments", "said"),
    [
        ("stop_brokr", {}, "unknown action .*did you mean 'stop_broker'"),
        ("stop_broker", {"nod": 1}, "stop_broker.nod: unknown field; did you mean 'node'"),
        ("stop_broker", {"node": "one"}, "stop_broker.node: expected an integer, not 'one'"),
        ("move_leader", {"topic": "t", "partition": 0}, "move_leader.node: this field is needed"),
    ],
)
def test_wrong_arguments_are_named(
    kafka: Cluster, action: str, arguments: dict[str, object], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        kafka.act(action, arguments)


def test_a_client_gives_up_where_no_broker_is_left(kafka: Cluster) -> None:
    client = admin_client(kafka.bootstrap_servers)
    assert len(client.list_topics(timeout=TIMEOUT_S).brokers) == 3
    for node in (1, 2, 3):
        kafka.act("stop_broker", node=node, how="unclean")
    with pytest.raises(KafkaException):
        client.list_topics(timeout=0.3)
