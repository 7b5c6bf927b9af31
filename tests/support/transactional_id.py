"""One transactional id on a running cluster: who coordinates it, where it stands, what holds it."""

from __future__ import annotations

from confluent_kafka import TopicPartition

from mockbroker import Cluster
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.metadata.topic import TRANSACTION_STATE_TOPIC
from mockbroker.core.txn.shard import TransactionShard
from tests.support.librdkafka import open_consumer, poll, values
from tests.support.waiting import wait_until

ID = "moving"


def coordinator(kafka: Cluster) -> int:
    """The broker that leads the id's partition of __transaction_state."""

    def find(cluster: CoreCluster) -> int:
        index = cluster.find_coordinator_partition(ID, TRANSACTION_STATE_TOPIC)
        partition = cluster.partition(TRANSACTION_STATE_TOPIC, index)
        assert partition is not None
        return partition.leader_id

    return kafka.call(find)


def state(kafka: Cluster) -> str:
    """The id's state at its coordinator, or "nowhere" while there is none that has read the log."""

    def find(cluster: CoreCluster) -> str:
        for broker in cluster.brokers.values():
            shard = broker.transactions.shard_of(ID)
            if isinstance(shard, TransactionShard) and ID in shard.transactions:
                return shard.transactions[ID].state.value
        return "nowhere"

    return kafka.call(find)


def wait_for_state(kafka: Cluster, wanted: str) -> None:
    wait_until(lambda: state(kafka) == wanted, what=wanted)


def hold_markers(kafka: Cluster, topic: str = "t", partition: int = 0) -> None:
    """Let no marker come through to a partition: an end that is decided stays so."""
    kafka.faults.add(
        match={
            "between_brokers": True,
            "api": "WriteTxnMarkers",
            "topic": topic,
            "partition": partition,
        },
        do={"hold": {}},
    )


def let_markers_go(kafka: Cluster) -> None:
    kafka.faults.clear()


def committed(kafka: Cluster, count: int, partition: int = 0) -> list[str]:
    """So many records that a read_committed consumer gets."""
    with open_consumer(kafka.bootstrap_servers, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition("t", partition, 0)])
        return values(poll(consumer, count))


def stable_end(kafka: Cluster) -> int:
    partition = kafka.call(lambda cluster: cluster.partition("t", 0))
    assert partition is not None
    return partition.last_stable_offset
