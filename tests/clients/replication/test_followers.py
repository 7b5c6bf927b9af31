"""Consumers that read from followers, and brokers whose way to each other is slow."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import TopicPartition

from mockbroker import Cluster
from mockbroker_protocol import ApiKey
from tests.support.librdkafka import TIMEOUT_S, offsets, open_consumer, poll, produce, values
from tests.support.replicated import TOPIC, Brokers
from tests.support.request_log import RequestLog

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
RACKS = ("a", "b", "c")
DELAY_MS = 400


@pytest.mark.covers("S71")
@pytest.mark.mock_kafka(racks=RACKS, configs={"replica.selector.class": RACK_AWARE})
def test_a_consumer_reads_from_the_follower_in_its_rack(brokers: Brokers, log: RequestLog) -> None:
    """The leader's first answer names it; without a rack nobody is sent anywhere."""
    brokers.create((1, 2, 3))
    produce(brokers.bootstrap, TOPIC, ["a", "b"])
    for rack, reader in (("", 1), ("a", 1), ("b", 2), ("c", 3)):
        log.clear()
        with open_consumer(brokers.bootstrap, client_rack=rack) as consumer:
            consumer.assign([TopicPartition(TOPIC, 0, 0)])
            assert values(poll(consumer, 2)) == ["a", "b"]
        with_records = {
            each.node_id
            for each in log.of(ApiKey.FETCH)
            for topic in each.response.responses
            for partition in topic.partitions
            if partition.records
        }
        assert with_records == {reader}
        preferred = {
            partition.preferred_read_replica
            for each in log.of(ApiKey.FETCH)
            for topic in each.response.responses
            for partition in topic.partitions
        }
        assert preferred == ({-1, reader} if reader != 1 else {-1})


@pytest.mark.covers("S71")
@pytest.mark.mock_kafka(racks=RACKS)
def test_by_default_everybody_reads_from_the_leader(brokers: Brokers, log: RequestLog) -> None:
    brokers.create((1, 2, 3))
    produce(brokers.bootstrap, TOPIC, ["a"])
    with open_consumer(brokers.bootstrap, client_rack="b") as consumer:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        assert values(poll(consumer, 1)) == ["a"]
    assert {each.node_id for each in log.of(ApiKey.FETCH)} == {1}


@pytest.mark.covers("S288")
def test_on_a_slow_network_acks_all_waits_and_the_watermark_lags(brokers: Brokers) -> None:
    """Messages between brokers take a while: by that much acks=all is late, and consumers are."""
    brokers.create((1, 2, 3))
    brokers.do(lambda cluster: cluster.delay_network(1, by_ms=DELAY_MS))
    with open_consumer(brokers.bootstrap) as consumer, ThreadPoolExecutor() as pool:
        partition = TopicPartition(TOPIC, 0)
        begun = time.monotonic()
        produce(brokers.bootstrap, TOPIC, ["quick"], acks=1, linger_ms=0)
        assert brokers.ends()[1] == 1
        assert consumer.get_watermark_offsets(partition, TIMEOUT_S) in ((0, 0), (0, 1))
        waiting = pool.submit(produce, brokers.bootstrap, TOPIC, ["slow"], acks="all")
        waiting.result()
        assert time.monotonic() - begun >= DELAY_MS / 1000
        assert consumer.get_watermark_offsets(partition, TIMEOUT_S) == (0, 2)
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        assert offsets(poll(consumer, 2)) == [0, 1]
    brokers.do(lambda cluster: cluster.heal_network())
    brokers.settle()


@pytest.mark.covers("S288")
def test_on_a_network_that_is_too_slow_the_isr_shrinks_and_grows_again(brokers: Brokers) -> None:
    """A round trip takes longer than replica.lag.time.max.ms allows."""
    brokers.create((1, 2, 3))
    brokers.do(lambda cluster: cluster.delay_network(1, 3, by_ms=60_000))
    produce(brokers.bootstrap, TOPIC, ["a"], acks=1)
    brokers.kafka.clock.advance("50s")
    brokers.until(lambda: brokers.metadata().isrs == [1, 2])
    produce(brokers.bootstrap, TOPIC, ["b"], acks="all")
    brokers.do(lambda cluster: cluster.heal_network())
    brokers.kafka.clock.advance("61s")  # for what was sent before
    brokers.until(lambda: brokers.metadata().isrs == [1, 2, 3])
    brokers.settle()
    assert brokers.ends() == {1: 2, 2: 2, 3: 2}


LIMITS = {
    "replica.fetch.wait.max.ms": 100,
    "replica.fetch.min.bytes": 7,
    "replica.fetch.response.max.bytes": 4_000_000,
    "replica.fetch.max.bytes": 20_000,
}


@pytest.mark.covers("S58")
@pytest.mark.parametrize(
    ("configs", "limits"),
    [({}, (500, 1, 10_485_760, 1_048_576)), (LIMITS, tuple(LIMITS.values()))],
    ids=["Kafka's", "others"],
)
def test_followers_fetch_as_the_configs_say(
    configs: dict[str, int], limits: tuple[int, ...]
) -> None:
    """Each of their fetches stands in the journal, with its limits and the leader's epoch."""
    stepwise = {"mockbroker.replication": "stepwise", **configs}
    with Cluster(brokers=2, node_ids=[1, 2], configs=stepwise) as kafka:
        kafka.call(lambda cluster: cluster.create_topic(TOPIC, assignments={0: [1, 2]}))
        produce(kafka.bootstrap_servers, TOPIC, ["x" * 10_000] * 8, batch_num_messages=1)
        told = kafka.journal.wait(2, kind="follower", topic=TOPIC, broker=2)
        kafka.settle()
        told = kafka.journal.events(kind="follower", topic=TOPIC, broker=2)
    names = ("max_wait_ms", "min_bytes", "max_bytes", "partition_max_bytes")
    assert {tuple(each.message[name] for name in names) for each in told} == {limits}
    assert {each.message["current_leader_epoch"] for each in told} == {0}
    assert told[0].offset == 0
    assert [each.offset for each in told] == sorted(each.offset or 0 for each in told)
