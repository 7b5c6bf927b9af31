"""confluent-kafka and followers that lag: what is acknowledged, and what consumers see."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.support.librdkafka import (
    TIMEOUT_S,
    offsets,
    open_consumer,
    poll,
    produce,
    read_all,
    values,
)
from tests.support.replicated import TOPIC, Brokers


def numbers(begin: int, end: int) -> list[str]:
    return [str(number) for number in range(begin, end)]


@pytest.mark.covers("S1", "S2")
def test_a_consumer_sees_what_the_whole_isr_has_and_the_rest_when_it_has_it_too(
    brokers: Brokers,
) -> None:
    """Followers at 115 and 116, the leader at 120: 115 records, then the other five."""
    brokers.create()
    produce(brokers.bootstrap, TOPIC, numbers(0, 115))
    brokers.hold(2)
    produce(brokers.bootstrap, TOPIC, ["115"], acks=1)
    brokers.until(lambda: brokers.ends()[3] == 116)
    brokers.hold(3)
    produce(brokers.bootstrap, TOPIC, numbers(116, 120), acks=1)
    assert brokers.ends() == {1: 120, 2: 115, 3: 116}
    partition = TopicPartition(TOPIC, 0, 0)
    with open_consumer(brokers.bootstrap) as consumer:
        assert consumer.get_watermark_offsets(partition, TIMEOUT_S) == (0, 115)
        consumer.assign([partition])
        assert values(poll(consumer, 115)) == numbers(0, 115)
        assert poll(consumer, 1, timeout_s=0.5) == []
        brokers.release(2, 3)
        assert values(poll(consumer, 5)) == numbers(115, 120)
        assert consumer.get_watermark_offsets(partition, TIMEOUT_S) == (0, 120)


@pytest.mark.covers("S52")
@pytest.mark.parametrize("min_isr", ["1", "2"])
def test_acks_all_takes_as_long_as_the_slowest_follower(brokers: Brokers, min_isr: str) -> None:
    """One is 700 ms late; the leader alone is quick, and min.insync.replicas does not help."""
    brokers.create(min_insync_replicas=min_isr)
    brokers.do(lambda cluster: cluster.lag_follower(TOPIC, 0, node=3, by_ms=700))

    def seconds(**settings: object) -> float:
        begun = time.monotonic()
        produce(brokers.bootstrap, TOPIC, ["a value"], linger_ms=0, **settings)
        return time.monotonic() - begun

    assert any(seconds(acks=1) < 0.7 for _ in range(10))  # a busy machine is slow at times
    assert seconds(acks="all") >= 0.7


@pytest.mark.covers("S53", "S54")
def test_with_too_few_in_sync_acks_all_fails_and_appends_nothing(brokers: Brokers) -> None:
    """Replicas on 2 brokers and a minimum of 2: one broker down is one too many. acks=1 goes on."""
    brokers.create((1, 2), min_insync_replicas="2")
    brokers.create((1, 2, 3), topic="roomy", min_insync_replicas="2")
    brokers.kafka.broker(2).stop(how="unclean")
    with pytest.raises(KafkaException) as refused:
        produce(brokers.bootstrap, TOPIC, ["x"], acks="all", message_send_max_retries=0)
    assert refused.value.args[0].code() == KafkaError.NOT_ENOUGH_REPLICAS
    assert brokers.ends()[1] == 0
    produce(brokers.bootstrap, TOPIC, ["y"], acks=1)
    produce(brokers.bootstrap, "roomy", ["z"], acks="all")
    assert offsets(read_all(brokers.bootstrap, "roomy", 1)) == [0]


@pytest.mark.covers("S55")
def test_metadata_tells_the_isr_as_it_shrinks_and_grows(brokers: Brokers) -> None:
    """3,1,2 -> 3 -> 2,3: the third one stays out."""
    brokers.do(lambda c: c.configs.static.update({"replica.lag.time.max.ms": "300"}))
    brokers.do(lambda c: c.configs_changed())
    brokers.create((3, 1, 2))
    produce(brokers.bootstrap, TOPIC, numbers(0, 115))
    brokers.kafka.clock.freeze()
    brokers.hold(1, 2)
    produce(brokers.bootstrap, TOPIC, numbers(115, 120), acks=1)
    assert brokers.metadata().isrs == [3, 1, 2]
    brokers.kafka.clock.thaw()
    brokers.until(lambda: brokers.metadata().isrs == [3])
    brokers.release(2)
    brokers.until(lambda: brokers.metadata().isrs == [2, 3])
    assert brokers.partition(lambda p: (p.leader_id, p.leader_epoch)) == (3, 0)


@pytest.mark.covers("S56")
def test_a_silent_follower_comes_back_into_the_isr(brokers: Brokers) -> None:
    brokers.do(lambda c: c.configs.static.update({"replica.lag.time.max.ms": "300"}))
    brokers.do(lambda c: c.configs_changed())
    brokers.create()
    brokers.hold(3)
    produce(brokers.bootstrap, TOPIC, ["a"], acks=1)
    brokers.until(lambda: brokers.metadata().isrs == [1, 2])
    brokers.release(3)
    brokers.until(lambda: brokers.metadata().isrs == [1, 2, 3])
