"""The offsets of a partition as confluent-kafka and the brokers' own view have them."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition

from mockbroker import Cluster
from mockbroker.core.replication.partition import Partition
from tests.support.librdkafka import TIMEOUT_S, delete_records, open_consumer, poll, produce


@pytest.mark.covers("S23")
def test_the_six_offsets_of_a_partition_stand_in_order(kafka: Cluster) -> None:
    """log start <= committed <= position <= last stable offset <= high watermark <= log end."""
    bootstrap = kafka.bootstrap_servers
    produce(bootstrap, "t", map(str, range(20)))
    delete_records(bootstrap, "t", 2)
    with open_consumer(bootstrap, group_id="g") as consumer:
        consumer.subscribe(["t"])
        [*_, fifth] = poll(consumer, 5)
        consumer.commit(message=fifth, asynchronous=False)
        poll(consumer, 6)
        [position] = consumer.position([TopicPartition("t", 0)])
        [committed] = consumer.committed([TopicPartition("t", 0)], TIMEOUT_S)
    log_start, stable, high, end = kafka.call(lambda cluster: offsets_of(cluster.partition("t", 0)))
    seen = [log_start, committed.offset, position.offset, stable, high, end]
    assert seen == sorted(seen) == [2, 7, 13, 20, 20, 20]


def offsets_of(partition: Partition | None) -> tuple[int, int, int, int]:
    assert partition is not None
    return (
        partition.log_start_offset,
        partition.last_stable_offset,
        partition.high_watermark,
        partition.log_end_offset,
    )


@pytest.mark.covers("S1")
@pytest.mark.mock_kafka(topics={})
def test_every_replica_ends_where_the_leader_does(kafka: Cluster) -> None:
    kafka.topic("three").create(1, 3)
    [*_, last] = produce(kafka.bootstrap_servers, "three", map(str, range(10))).offsets
    assert last == 9
    ends = kafka.call(
        lambda cluster: {
            node_id: cluster.topics["three"].partitions[0].replica(node_id).log.end_offset
            for node_id in cluster.brokers
        }
    )
    assert ends == {1: 10, 2: 10, 3: 10}
