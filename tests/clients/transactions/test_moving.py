"""Brokers that die in the middle of a transaction: whoever coordinates or leads, nothing is lost
and nothing is half done.

For each state of the coordinator a test holds it there and shows what producers and consumers see.
"""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition

from mockbroker.actors.config import TopicSpec
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.replication.network import Message
from mockbroker.core.topic import TRANSACTION_STATE_TOPIC
from mockbroker.core.txn.marker_sender import MARKER
from mockbroker_fixtures import Cluster
from tests.support.librdkafka import TIMEOUT_S, open_consumer, poll, values
from tests.support.python_transactions import ConfluentKafka, Failed, Make
from tests.support.waiting import wait_until

ID = "moving"
FOREVER_MS = 3_600_000


def coordinator(kafka: Cluster) -> int:
    """The broker that leads the id's partition of __transaction_state."""

    def find(cluster: CoreCluster) -> int:
        index = cluster.find_coordinator_partition(ID, TRANSACTION_STATE_TOPIC)
        partition = cluster.partition(TRANSACTION_STATE_TOPIC, index)
        assert partition is not None
        return partition.leader_id

    return kafka.call(find)


def state(kafka: Cluster) -> str:
    def find(cluster: CoreCluster) -> str:
        for broker in cluster.brokers.values():
            shard = broker.transactions.shard_of(ID)
            transactions = getattr(shard, "transactions", {})
            if ID in transactions:
                return str(transactions[ID].state.value)
        return "nowhere"

    return kafka.call(find)


def wait_for_state(kafka: Cluster, wanted: str) -> None:
    wait_until(lambda: state(kafka) == wanted, what=wanted)


def hold_markers(kafka: Cluster) -> None:
    """Let no marker arrive: an end that is decided stays so."""

    def late(message: Message) -> int | None:
        return FOREVER_MS if message.what == MARKER else None

    kafka.call(lambda cluster: cluster.replication.network.hooks.append(late))


def let_markers_go(kafka: Cluster) -> None:
    """From now on; those on their way stay there."""
    kafka.call(lambda cluster: cluster.replication.network.hooks.clear())


def committed(kafka: Cluster, count: int, partition: int = 0) -> list[str]:
    """So many records that a read_committed consumer gets."""
    with open_consumer(kafka.bootstrap_servers, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition("t", partition, 0)])
        return values(poll(consumer, count))


def stable_end(kafka: Cluster) -> int:
    partition = kafka.call(lambda cluster: cluster.partition("t", 0))
    assert partition is not None
    return partition.last_stable_offset


@pytest.fixture
def leader(kafka: Cluster) -> int:
    """The leader of t-0, on another broker than the id's coordinator."""

    def arrange(cluster: CoreCluster) -> int:
        topic = cluster.ensure_internal_topic(TRANSACTION_STATE_TOPIC)
        index = cluster.find_coordinator_partition(ID, TRANSACTION_STATE_TOPIC)
        leader_id = cluster.topics["t"].partitions[0].leader_id
        partition = topic.partitions[index]
        if partition.leader_id == leader_id:
            other = next(n for n in partition.isr if n != leader_id)
            partition.become_leader(other, partition.leader_epoch + 1, partition.isr)
        return leader_id

    return kafka.call(arrange)


REPLICATED = pytest.mark.mock_kafka(brokers=3, topics=[TopicSpec("t", 4, 3)])


@pytest.mark.covers("S243")
@REPLICATED
@pytest.mark.parametrize("how", ["controlled", "unclean"])
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_the_coordinator_dies_while_a_transaction_is_open(
    kafka: Cluster, outliving: Make, leader: int, how: str, end: str
) -> None:
    """The producer finds the next one, which knows of the transaction, and ends it there."""
    with outliving(kafka.bootstrap_servers, ID) as producer:
        producer.begin()
        producer.send("t", "before")
        kafka.stop_broker(coordinator(kafka), how=how)
        producer.send("t", "after")
        getattr(producer, end)()
        wait_for_state(kafka, "CompleteCommit" if end == "commit" else "CompleteAbort")
        producer.begin()
        producer.send("t", "next")
        producer.commit()
    expected = ["before", "after", "next"] if end == "commit" else ["next"]
    assert committed(kafka, len(expected)) == expected


@REPLICATED
def test_the_leader_of_a_partition_dies_while_a_transaction_is_open(
    kafka: Cluster, make: Make, leader: int
) -> None:
    with make(kafka.bootstrap_servers, ID) as producer:
        producer.begin()
        producer.send("t", "before")
        kafka.stop_broker(leader, how="unclean")
        producer.send("t", "after")
        producer.commit()
        wait_for_state(kafka, "CompleteCommit")
    assert committed(kafka, 2) == ["before", "after"]


@pytest.mark.covers("S242")
@REPLICATED
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_the_coordinator_dies_when_the_end_is_decided(
    kafka: Cluster, make: Make, leader: int, end: str
) -> None:
    """The markers were on their way, and none arrived: the next coordinator sends its own."""
    with make(kafka.bootstrap_servers, ID) as producer:
        hold_markers(kafka)
        producer.begin()
        producer.send("t", "v")
        getattr(producer, end)()
        assert state(kafka) == ("PrepareCommit" if end == "commit" else "PrepareAbort")
        assert stable_end(kafka) == 0
        let_markers_go(kafka)
        kafka.stop_broker(coordinator(kafka), how="unclean")
        wait_for_state(kafka, "CompleteCommit" if end == "commit" else "CompleteAbort")
    assert stable_end(kafka) == 2
    assert committed(kafka, 1) == ["v"] if end == "commit" else True


@REPLICATED
def test_the_leader_of_a_partition_dies_when_the_end_is_decided(
    kafka: Cluster, make: Make, leader: int
) -> None:
    """Its successor gets the marker."""
    with make(kafka.bootstrap_servers, ID) as producer:
        producer.begin()
        producer.send("t", "v")
        kafka.call(
            lambda cluster: cluster.replication.network.hooks.append(
                lambda message: 500 if message.what == MARKER else None
            )
        )
        producer.commit()
        assert state(kafka) == "PrepareCommit"
        let_markers_go(kafka)
        kafka.stop_broker(leader, how="unclean")
        wait_for_state(kafka, "CompleteCommit")
    assert committed(kafka, 1) == ["v"]


@REPLICATED
def test_brokers_die_between_transactions(kafka: Cluster, outliving: Make, leader: int) -> None:
    """In CompleteCommit, and in Empty before the first."""
    with outliving(kafka.bootstrap_servers, ID) as producer:
        assert state(kafka) == "Empty"
        first = coordinator(kafka)
        kafka.stop_broker(first, how="unclean")
        producer.begin()
        producer.send("t", "a")
        producer.commit()
        wait_for_state(kafka, "CompleteCommit")
        kafka.start_broker(first)
        second = coordinator(kafka)
        kafka.stop_broker(second, how="unclean")
        producer.begin()
        producer.send("t", "b")
        producer.commit()
        wait_for_state(kafka, "CompleteCommit")
    assert committed(kafka, 2) == ["a", "b"]


# ------------------------------------------------------------------ each state, held and looked at


@pytest.mark.mock_kafka(brokers=1)
def test_while_an_end_is_held_its_records_are_hidden_and_the_next_one_waits(
    kafka: Cluster,
) -> None:
    """PrepareCommit: EndTxn was answered, read_committed stands still, others' records too."""
    with ConfluentKafka(kafka.bootstrap_servers, ID, timeout_ms=2000) as producer:
        hold_markers(kafka)
        producer.begin()
        producer.send("t", "hidden")
        producer.commit()
        with ConfluentKafka(kafka.bootstrap_servers, "another") as other:
            other.begin()
            other.send("t", "behind it")
            let_markers_go(kafka)
            other.commit()
        assert (state(kafka), stable_end(kafka)) == ("PrepareCommit", 0)
        with open_consumer(kafka.bootstrap_servers, isolation_level="read_committed") as consumer:
            consumer.assign([TopicPartition("t", 0, 0)])
            assert poll(consumer, 1, 0.5) == []
        producer.begin()
        with pytest.raises(Failed):
            producer.send("t", "next", partition=1)


@pytest.mark.mock_kafka(brokers=1)
def test_a_transaction_that_hangs_holds_readers_until_an_administrator_ends_it(
    kafka: Cluster,
) -> None:
    """The coordinator takes the marker for written, but the partition never got it."""
    with ConfluentKafka(kafka.bootstrap_servers, ID) as producer:
        hold_markers(kafka)
        producer.begin()
        producer.send("t", "hangs")
        producer.commit()

    def believe(cluster: CoreCluster) -> None:
        shard = cluster.brokers[1].transactions.shard_of(ID)
        transaction = shard.transactions[ID]  # type: ignore[union-attr]
        shard.marked(transaction, tuple(transaction.partitions))  # type: ignore[union-attr]

    kafka.call(believe)
    assert (state(kafka), stable_end(kafka)) == ("CompleteCommit", 0)


@pytest.mark.covers("S14", "S15", "S13")
@pytest.mark.mock_kafka(brokers=1)
def test_the_lag_of_readers_of_both_isolation_levels(kafka: Cluster) -> None:
    """Committed 3, open from 5, high watermark 10: 7 or 2. After the end 8, markers counted."""
    partition = TopicPartition("t", 0)

    def lag(isolation: str) -> int:
        with open_consumer(
            kafka.bootstrap_servers, group_id=f"g-{isolation}", isolation_level=isolation
        ) as consumer:
            consumer.commit(offsets=[TopicPartition("t", 0, 3)], asynchronous=False)
            committed_offset = consumer.committed([partition], TIMEOUT_S)[0].offset
            return int(consumer.get_watermark_offsets(partition, TIMEOUT_S)[1] - committed_offset)

    with (
        ConfluentKafka(kafka.bootstrap_servers, ID) as producer,
        ConfluentKafka(kafka.bootstrap_servers, "before") as before,
    ):
        before.begin()
        for n in range(4):
            before.send("t", str(n))
        before.commit()
        wait_until(lambda: stable_end(kafka) == 5, what="the marker")
        producer.begin()
        for n in range(5):
            producer.send("t", str(n))
        assert (lag("read_uncommitted"), lag("read_committed")) == (7, 2)
        producer.commit()
        wait_until(lambda: stable_end(kafka) == 11, what="the marker")
        assert (lag("read_uncommitted"), lag("read_committed")) == (8, 8)
