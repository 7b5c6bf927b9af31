"""Brokers that move and die around a transaction: whoever coordinates or leads, nothing is lost and
nothing is half done.

Each client in each state of its transactional id. The clients of the second protocol of
transactions (Java 4.3, franz-go) and those of the first (all others) do the same here.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from mockbroker import Cluster
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.metadata.topic import TRANSACTION_STATE_TOPIC
from mockbroker.server.config import TopicSpec
from tests.support.python_transactions import Failed, Fenced, Make, TransactionalProducer
from tests.support.transactional_id import (
    ID,
    committed,
    coordinator,
    hold_markers,
    let_markers_go,
    state,
    wait_for_state,
)


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
STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")


def bring(kafka: Cluster, producer: TransactionalProducer, wanted: str) -> None:
    """Take the id to a state; what is decided stays so, since no marker comes through."""
    if wanted == "Empty":
        assert state(kafka) == "Empty"
        return
    producer.begin()
    producer.send("t", "first")
    if wanted != "Ongoing":
        if wanted.startswith("Prepare"):
            hold_markers(kafka)
        getattr(producer, "commit" if wanted.endswith("Commit") else "abort")()
    wait_for_state(kafka, wanted)


def go_on(kafka: Cluster, producer: TransactionalProducer, was: str) -> None:
    """End what is open, have what is decided carried through, and make one more transaction.

    Nothing is lost and nothing is half done.
    """
    if was == "Ongoing":
        producer.send("t", "second")
        producer.commit()
    let_markers_go(kafka)
    if was != "Empty":
        wait_for_state(kafka, "CompleteAbort" if was.endswith("Abort") else "CompleteCommit")
    producer.begin()
    producer.send("t", "next")
    producer.commit()
    wait_for_state(kafka, "CompleteCommit")
    expected = {"Ongoing": ["first", "second"], "PrepareCommit": ["first"]}
    expected["CompleteCommit"] = expected["PrepareCommit"]
    values = [*expected.get(was, []), "next"]
    assert committed(kafka, len(values)) == values


@pytest.mark.covers("S242", "S243")
@REPLICATED
@pytest.mark.parametrize("held", STATES)
def test_the_coordinator_moves(kafka: Cluster, make_any: Make, leader: int, held: str) -> None:
    """In each state: the next one knows all, and the producer finds it."""
    with make_any(kafka.bootstrap_servers, ID) as producer:
        bring(kafka, producer, held)
        other = next(n for n in (1, 2, 3) if n != coordinator(kafka))
        kafka.transaction(ID).move_coordinator(other)
        go_on(kafka, producer, held)
    assert coordinator(kafka) == other


@pytest.mark.covers("S242", "S243")
@REPLICATED
@pytest.mark.parametrize("held", STATES)
def test_the_coordinator_dies(kafka: Cluster, make_outliving: Make, leader: int, held: str) -> None:
    """In each state. Markers that were on their way may never have arrived: the next coordinator
    sends its own.
    """
    with make_outliving(kafka.bootstrap_servers, ID) as producer:
        bring(kafka, producer, held)
        kafka.broker(coordinator(kafka)).stop(how="unclean")
        go_on(kafka, producer, held)


@REPLICATED
@pytest.mark.parametrize("held", STATES)
def test_the_leader_of_a_partition_dies(
    kafka: Cluster, make_any: Make, leader: int, held: str
) -> None:
    """In each state: its successor has the producer's state from the log, and gets the marker."""
    with make_any(kafka.bootstrap_servers, ID) as producer:
        bring(kafka, producer, held)
        kafka.broker(leader).stop(how="unclean")
        go_on(kafka, producer, held)


@pytest.mark.covers("S243")
@REPLICATED
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_the_coordinator_stops_in_an_orderly_way(
    kafka: Cluster, make_outliving: Make, leader: int, end: str
) -> None:
    """And comes back, to coordinate again."""
    with make_outliving(kafka.bootstrap_servers, ID) as producer:
        producer.begin()
        producer.send("t", "first")
        first = coordinator(kafka)
        kafka.broker(first).stop()
        producer.send("t", "second")
        getattr(producer, end)()
        wait_for_state(kafka, "CompleteCommit" if end == "commit" else "CompleteAbort")
        kafka.broker(first).start()
        kafka.broker(coordinator(kafka)).stop()
        producer.begin()
        producer.send("t", "next")
        try:
            producer.commit()
        except Failed as error:
            # franz-go may still dial the coordinator that has stopped. It then cannot tell what
            # became of the transaction, and wants it aborted.
            if "unable to dial" not in str(error):
                raise
            producer.abort()
            producer.begin()
            producer.send("t", "next")
            producer.commit()
        wait_for_state(kafka, "CompleteCommit")
    expected = ["first", "second", "next"] if end == "commit" else ["next"]
    assert committed(kafka, len(expected)) == expected


@pytest.mark.covers("S238", "S245")
@REPLICATED
def test_the_coordinator_dies_while_it_fences(
    kafka: Cluster, make_outliving: Make, leader: int
) -> None:
    """What the first producer left open is aborted by whoever coordinates then, and the second one
    gets its epoch there; the first is shut out.
    """
    with make_outliving(kafka.bootstrap_servers, ID) as first:
        first.begin()
        first.send("t", "lost")
        hold_markers(kafka)
        with ThreadPoolExecutor(1) as pool:
            opening = pool.submit(make_outliving, kafka.bootstrap_servers, ID)
            wait_for_state(kafka, "PrepareAbort")
            kafka.broker(coordinator(kafka)).stop(how="unclean")
            let_markers_go(kafka)
            second = opening.result()
        with second:
            with pytest.raises(Fenced):
                first.commit()
            second.begin()
            second.send("t", "kept")
            second.commit()
            wait_for_state(kafka, "CompleteCommit")
    assert committed(kafka, 1) == ["kept"]
