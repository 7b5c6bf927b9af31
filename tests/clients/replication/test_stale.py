"""What is known too late: brokers dead and told of, silent and found out, gone and asked."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer, TopicPartition

from mockbroker import Cluster
from mockbroker.client.connection import Connection
from mockbroker_protocol.messages.metadata import MetadataRequest
from tests.support.librdkafka import (
    TIMEOUT_S,
    Delivery,
    flush,
    open_consumer,
    poll,
    produce,
    settings,
    values,
)
from tests.support.replicated import TOPIC, Brokers
from tests.support.waiting import wait_until

STALE_MS = 9_000


@pytest.mark.covers("S73")
def test_metadata_names_a_dead_leader_until_the_controller_finds_out(
    kafka: Cluster, brokers: Brokers
) -> None:
    """For nine seconds of the cluster's clock it stands as leader and member of the ISR. A client
    connects there in vain, asks again, is told the same, and recovers afterwards.
    """
    brokers.create((1, 2, 3))
    kafka.clock.freeze()
    mark = kafka.journal.last_seq
    brokers.do(lambda cluster: cluster.stop_broker(1, "unclean", fence_after_ms=STALE_MS))
    producer = Producer(
        settings(
            brokers.bootstrap,
            client_id="late",
            reconnect_backoff_max_ms=100,
            retry_backoff_ms=50,
            topic_metadata_refresh_interval_ms=200,
        )
    )
    delivery = Delivery()
    producer.produce(TOPIC, "a", partition=0, on_delivery=delivery)
    asked = {"kind": "response", "api": "Metadata", "topic": TOPIC, "after_seq": mark}
    told = kafka.journal.wait(3, timeout_s=TIMEOUT_S, **asked)
    for answer in told:
        [topic] = answer.message["topics"]
        [partition] = topic["partitions"]
        assert (partition["leader_id"], partition["isr_nodes"]) == (1, [1, 2, 3])
    producer.poll(0)
    assert delivery.messages == []
    kafka.clock.advance(STALE_MS)
    flush(producer)
    assert (delivery.errors, delivery.offsets) == ([], [0])
    now = brokers.metadata()
    assert (now.leader, sorted(now.isrs)) == (2, [2, 3])
    kafka.clock.thaw()


@pytest.mark.covers("S282")
def test_a_broker_that_is_not_heard_of_is_fenced_when_its_session_is_over(
    kafka: Cluster, brokers: Brokers
) -> None:
    """4,002 ms of silence and 2,583 ms more, of a session of 6,000 ms: it is fenced on the way, at
    the time that the journal tells, and unfenced when it is heard of again. (With a quorum a broker
    keeps its registration meanwhile; a new one, as ZooKeeper's sessions were, comes with a new
    process.) A client sees it come and go.
    """
    brokers.create((1, 2, 3))

    def live() -> list[int]:
        """As broker 1 tells; broker 2 hears of nothing."""
        with Connection(*kafka.endpoint(1), timeout_s=TIMEOUT_S) as connection:
            return sorted(each.node_id for each in connection.send(MetadataRequest(), 12).brokers)

    def epoch() -> int:
        return brokers.do(lambda cluster: cluster.brokers[2].epoch)

    kafka.clock.freeze()
    mark, began_ms, registered = kafka.journal.last_seq, kafka.clock.now_ms, epoch()
    brokers.do(lambda cluster: cluster.cut_network(2, fence_after_ms=6_000))
    kafka.clock.advance(4_002)
    assert live() == [1, 2, 3]
    kafka.clock.advance(2_583)
    assert live() == [1, 3]
    brokers.do(lambda cluster: cluster.heal_network())
    kafka.clock.advance(100)
    assert live() == [1, 2, 3]
    assert epoch() == registered
    told = kafka.journal.events(kind="broker", broker=2, after_seq=mark)
    steps = [(each.virtual_ms - began_ms, each.change) for each in told]
    assert steps == [(0, "unreachable"), (6_000, "fenced"), (6_585, "unfenced")]
    kafka.broker(2).stop(how="unclean")
    kafka.broker(2).start()
    assert epoch() > registered
    kafka.clock.thaw()


@pytest.mark.covers("S161")
def test_a_consumer_without_brokers_tries_again_in_moderation(
    kafka: Cluster, brokers: Brokers
) -> None:
    """It assigned its partition by hand, and looks up a coordinator all the same. While no broker
    lets it in, it follows its backoff; when they are back, it goes on reading.
    """
    brokers.create((1, 2, 3))
    produce(brokers.bootstrap, TOPIC, ["a"])
    with open_consumer(
        brokers.bootstrap,
        client_id="lonely",
        group_id="by-hand",
        reconnect_backoff_ms=100,
        reconnect_backoff_max_ms=1000,
    ) as consumer:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        assert values(poll(consumer, 1)) == ["a"]
        found = {"kind": "request", "api": "FindCoordinator", "client_id": "lonely"}
        kafka.journal.wait(1, **found)
        for node_id in (1, 2, 3):
            kafka.broker(node_id).stop(how="unclean")
        refused = kafka.faults.add(do={"refuse_connection": {}})
        began_s = time.monotonic()
        for node_id in (3, 2, 1):  # whose ports only let the attempts be counted
            kafka.broker(node_id).start()
        wait_until(lambda: consumer.poll(0.05) is None and refused.hits >= 6, what="six attempts")
        took_s = time.monotonic() - began_s
        assert refused.hits / took_s < 50
        refused.remove()
        produce(brokers.bootstrap, TOPIC, ["b"])
        assert values(poll(consumer, 1)) == ["b"]
