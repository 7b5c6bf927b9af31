"""confluent-kafka while leaders change: elections, outages, and what is lost or not."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from confluent_kafka import (
    ElectionType,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import NewTopic

from mockbroker_protocol import ApiKey, ErrorCode
from tests.support.librdkafka import (
    TIMEOUT_S,
    admin_client,
    flush,
    open_consumer,
    poll,
    produce,
    read_all,
    settings,
    values,
)
from tests.support.replicated import TOPIC, Brokers
from tests.support.request_log import RequestLog
from tests.support.waiting import wait_until


def elect(brokers: Brokers, kind: ElectionType) -> KafkaError | None:
    """Ask for an election; None when it was held."""
    partition = TopicPartition(TOPIC, 0)
    admin = admin_client(brokers.bootstrap)  # its futures fail when it is gone
    outcome = admin.elect_leaders(kind, [partition]).result(TIMEOUT_S)
    refused: KafkaError | None = outcome[partition]
    return refused


@pytest.mark.covers("S60", "S89", "S312")
def test_a_producer_loses_nothing_while_a_broker_shuts_down(brokers: Brokers) -> None:
    """Leader 3 of 3, 2, 1; after the graceful stop it is 2, under epoch 1, with ISR 2, 1."""
    brokers.create((3, 2, 1))
    assert brokers.metadata().leader == 3
    reports: list[tuple[int, KafkaError | None]] = []
    producer = Producer(settings(brokers.bootstrap, acks="all", enable_idempotence=True))
    for number in range(400):
        producer.produce(
            TOPIC,
            str(number),
            on_delivery=lambda error, message: reports.append((message.offset(), error)),
        )
        producer.poll(0)
        if number == 200:
            brokers.kafka.broker(3).stop()
    flush(producer)
    assert [error for _, error in reports if error is not None] == []
    told = brokers.metadata()
    assert (told.leader, told.isrs, told.replicas) == (2, [2, 1], [3, 2, 1])
    assert brokers.partition(lambda p: p.leader_epoch) == 1
    read = values(read_all(brokers.bootstrap, TOPIC, 400))
    assert read == [str(number) for number in range(400)]


@pytest.mark.covers("S59")
def test_the_next_leader_is_the_first_replica_in_sync_not_the_longest_log(
    brokers: Brokers,
) -> None:
    """AR 1, 2, 3; 2 is behind 3 and leads all the same: nothing committed is lost."""
    brokers.create((1, 2, 3))
    produce(brokers.bootstrap, TOPIC, ["a"])
    brokers.hold(2)
    produce(brokers.bootstrap, TOPIC, ["b"], acks=1)
    brokers.until(lambda: brokers.ends() == {1: 2, 2: 1, 3: 2})
    brokers.kafka.broker(1).stop(how="unclean")
    assert brokers.metadata().leader == 2
    brokers.release(2)
    brokers.until(lambda: brokers.ends()[3] == 1)
    assert values(read_all(brokers.bootstrap, TOPIC, 1)) == ["a"]


@pytest.mark.covers("S64", "S65")
def test_the_preferred_leader_is_elected_when_it_is_in_sync(brokers: Brokers) -> None:
    brokers.create((1, 2, 3))
    error = elect(brokers, ElectionType.PREFERRED)
    assert error is not None
    assert error.code() == KafkaError.ELECTION_NOT_NEEDED
    brokers.do(lambda cluster: cluster.move_leader(TOPIC, 0, 3))
    brokers.do(lambda cluster: cluster.shrink_isr(TOPIC, 0, nodes=[1]))
    error = elect(brokers, ElectionType.PREFERRED)
    assert error is not None
    assert error.code() == KafkaError.PREFERRED_LEADER_NOT_AVAILABLE
    assert brokers.metadata().leader == 3
    brokers.release(1)
    brokers.until(lambda: 1 in brokers.metadata().isrs)
    assert elect(brokers, ElectionType.PREFERRED) is None
    assert brokers.metadata().leader == 1


@pytest.mark.covers("S68")
def test_a_partition_whose_whole_isr_died_waits_and_has_all_its_records(brokers: Brokers) -> None:
    """No leader, no answer; what was acknowledged is there when a member of the ISR returns."""
    brokers.create((1, 2))
    produce(brokers.bootstrap, TOPIC, ["a", "b"])
    brokers.do(lambda cluster: cluster.shrink_isr(TOPIC, 0, nodes=[2]))
    brokers.kafka.broker(1).stop(how="unclean")
    brokers.release(2)
    told = brokers.metadata()
    assert told.leader == -1
    assert told.error is not None
    assert told.error.code() == KafkaError.LEADER_NOT_AVAILABLE
    with pytest.raises(KafkaException) as refused:
        produce(brokers.bootstrap, TOPIC, ["c"], message_timeout_ms=700, linger_ms=0)
    assert refused.value.args[0].code() == KafkaError._MSG_TIMED_OUT
    brokers.kafka.broker(1).start()
    assert values(read_all(brokers.bootstrap, TOPIC, 2)) == ["a", "b"]
    brokers.settle()


@pytest.mark.covers("S69")
def test_an_unclean_election_gives_a_leader_and_takes_records(brokers: Brokers) -> None:
    """B is three acknowledged records behind: those are gone, on A as well when it is back."""
    brokers.create((1, 2))
    produce(brokers.bootstrap, TOPIC, ["a"])
    brokers.do(lambda cluster: cluster.shrink_isr(TOPIC, 0, nodes=[2]))
    produce(brokers.bootstrap, TOPIC, ["b", "c", "d"], acks="all")
    brokers.kafka.broker(1).stop(how="unclean")
    assert elect(brokers, ElectionType.UNCLEAN) is None
    brokers.release(2)
    produce(brokers.bootstrap, TOPIC, ["x"])
    brokers.kafka.broker(1).start()
    brokers.settle()
    assert values(read_all(brokers.bootstrap, TOPIC, 2)) == ["a", "x"]
    assert brokers.ends() == {1: 2, 2: 2}


@pytest.mark.covers("S70")
def test_ten_thousand_records_survive_the_death_of_the_leader(
    brokers: Brokers, log: RequestLog
) -> None:
    """An idempotent producer and a consumer, both told where to go: 10,000 distinct records."""
    brokers.create((1, 2, 3), min_insync_replicas="2")
    total = 10_000
    seen: list[str] = []

    def consume() -> None:
        with open_consumer(brokers.bootstrap) as consumer:
            consumer.assign([TopicPartition(TOPIC, 0, 0)])
            seen.extend(values(poll(consumer, total, timeout_s=60)))

    reader = threading.Thread(target=consume)
    reader.start()
    producer = Producer(
        settings(brokers.bootstrap, acks="all", enable_idempotence=True, linger_ms=1)
    )
    for number in range(total):
        producer.produce(TOPIC, str(number))
        if number % 100 == 0:
            producer.poll(0.001)
        if number == 3000:
            wait_until(lambda: bool(log.of(ApiKey.PRODUCE)), what="the first batch")
            brokers.kafka.broker(1).stop(how="unclean")
        if number == 6000:
            wait_until(lambda: any(each.node_id != 1 for each in log.of(ApiKey.PRODUCE)))
            brokers.kafka.broker(1).start()
            brokers.settle()
            brokers.kafka.broker(2).stop(how="unclean")
    flush(producer)
    reader.join(60)
    assert len(Counter(seen)) == len(seen) == total
    assert seen == [str(number) for number in range(total)]
    assert len({each.node_id for each in log.of(ApiKey.PRODUCE)}) >= 2
    assert len(log.of(ApiKey.METADATA)) > 2


@pytest.mark.covers("S72")
def test_a_broker_that_is_back_leads_again_only_after_an_election(brokers: Brokers) -> None:
    brokers.create((3, 1, 2))
    brokers.kafka.broker(3).stop(how="unclean")
    assert brokers.metadata().leader == 1
    brokers.kafka.broker(3).start()
    brokers.settle()
    produce(brokers.bootstrap, TOPIC, ["a"])
    assert brokers.metadata().leader == 1
    assert elect(brokers, ElectionType.PREFERRED) is None
    assert brokers.metadata().leader == 3


@pytest.mark.covers("S62")
def test_the_controller_changes_when_its_broker_stops(brokers: Brokers) -> None:
    """Clients are told of another one, and it does what they ask for."""
    brokers.create((1, 2, 3))
    admin = admin_client(brokers.bootstrap)
    first = admin.describe_cluster().result(TIMEOUT_S).controller.id
    brokers.kafka.broker(first).stop()
    again = admin_client(brokers.bootstrap)
    second = again.describe_cluster().result(TIMEOUT_S).controller.id
    assert second not in (first, -1)
    created = again.create_topics([NewTopic("later", 1, 2)])["later"]
    assert created.result(TIMEOUT_S) is None


@pytest.mark.covers("S87")
def test_a_consumer_asks_where_the_epoch_ended_after_an_unclean_election(
    brokers: Brokers, log: RequestLog
) -> None:
    """It asks the leader, not the coordinator, finds its position gone, and resets as told."""
    brokers.create((1, 2))
    produce(brokers.bootstrap, TOPIC, ["a", "b"])
    brokers.do(lambda cluster: cluster.shrink_isr(TOPIC, 0, nodes=[2]))
    produce(brokers.bootstrap, TOPIC, ["c", "d"], acks="all")
    with open_consumer(
        brokers.bootstrap, auto_offset_reset="latest", topic_metadata_refresh_interval_ms=100
    ) as consumer:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        assert values(poll(consumer, 4)) == ["a", "b", "c", "d"]
        brokers.kafka.broker(1).stop(how="unclean")
        assert elect(brokers, ElectionType.UNCLEAN) is None
        brokers.release(2)
        brokers.until(lambda: bool(log.of(ApiKey.OFFSET_FOR_LEADER_EPOCH)))
        produce(brokers.bootstrap, TOPIC, ["x"])
        assert values(poll(consumer, 1)) == ["x"]
    asked = log.of(ApiKey.OFFSET_FOR_LEADER_EPOCH)
    assert {each.node_id for each in asked} == {2}


@pytest.mark.covers("S88")
def test_a_fetch_under_an_older_epoch_is_fenced_and_the_consumer_goes_on(
    brokers: Brokers, log: RequestLog
) -> None:
    """The leader stays; its epoch rises: 74, a look at the metadata, and on it goes."""
    brokers.create((1, 2))
    produce(brokers.bootstrap, TOPIC, ["a"])
    with open_consumer(brokers.bootstrap, fetch_wait_max_ms=200) as consumer:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        assert values(poll(consumer, 1)) == ["a"]
        brokers.do(lambda cluster: cluster.drop_leader(TOPIC, 0))
        brokers.do(lambda cluster: cluster.move_leader(TOPIC, 0, 1))
        produce(brokers.bootstrap, TOPIC, ["b"])
        assert values(poll(consumer, 1)) == ["b"]
    errors = {
        partition.error_code
        for each in log.of(ApiKey.FETCH)
        for topic in each.response.responses
        for partition in topic.partitions
    }
    assert ErrorCode.FENCED_LEADER_EPOCH in errors


@pytest.mark.covers("S81")
def test_divergence_ends_alike_on_every_replica_for_every_reader(brokers: Brokers) -> None:
    """A: m1 m2 m3, B: m1 m2, C: m1. A dies, B leads and takes m4 m5 m6, A returns."""
    brokers.create((1, 2, 3))
    produce(brokers.bootstrap, TOPIC, ["m1"])
    brokers.hold(3)
    produce(brokers.bootstrap, TOPIC, ["m2"], acks=1)
    brokers.until(lambda: brokers.ends()[2] == 2)
    brokers.hold(2)
    produce(brokers.bootstrap, TOPIC, ["m3"], acks=1)
    assert brokers.ends() == {1: 3, 2: 2, 3: 1}
    brokers.kafka.broker(1).stop(how="unclean")
    brokers.release(2, 3)
    produce(brokers.bootstrap, TOPIC, ["m4", "m5", "m6"])
    brokers.kafka.broker(1).start()
    brokers.settle()
    expected = ["m1", "m2", "m4", "m5", "m6"]
    assert values(read_all(brokers.bootstrap, TOPIC, 5)) == expected
    for node_id in (1, 3):
        brokers.do(lambda cluster, n=node_id: cluster.move_leader(TOPIC, 0, n))
        assert values(read_all(brokers.bootstrap, TOPIC, 5)) == expected
