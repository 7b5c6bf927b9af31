"""States of a transactional id, held: what clients see meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import TopicPartition

from mockbroker import Cluster
from mockbroker_protocol import ApiKey, ErrorCode
from tests.differential.session import Session
from tests.differential.transacting import TV1, Producer
from tests.support.librdkafka import TIMEOUT_S, open_consumer, poll, values
from tests.support.python_transactions import ConfluentKafka, Make
from tests.support.request_log import RequestLog
from tests.support.tour import POMS
from tests.support.transactional_clients import Tours
from tests.support.transactional_id import (
    ID,
    committed,
    hold_markers,
    let_markers_go,
    stable_end,
    state,
    wait_for_state,
)
from tests.support.waiting import wait_until
from tests.support.watched import fill


def was_told_to_wait(log: RequestLog) -> bool:
    """Whether a producer, by either protocol, was told CONCURRENT_TRANSACTIONS."""
    added = [
        line.partition_error_code
        for each in log.of(ApiKey.ADD_PARTITIONS_TO_TXN)
        for topic in each.response.results_by_topic_v3_and_below
        for line in topic.results_by_partition
    ]
    produced = [
        line.error_code
        for each in log.of(ApiKey.PRODUCE)
        for topic in each.response.responses
        for line in topic.partition_responses
    ]
    return ErrorCode.CONCURRENT_TRANSACTIONS in (*added, *produced)


@pytest.mark.covers("S10", "S250")
@pytest.mark.mock_kafka(brokers=1)
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_while_an_end_is_held_its_records_are_hidden_and_the_next_one_waits(
    kafka: Cluster, log: RequestLog, make_any: Make, end: str
) -> None:
    """EndTxn was answered, but no marker comes: readers stand still, also before what others have
    committed behind it; and the producer's next transaction is told CONCURRENT_TRANSACTIONS, which
    every client takes patiently.
    """
    with make_any(kafka.bootstrap_servers, ID) as producer:
        producer.begin()
        producer.send("t", "held")
        hold_markers(kafka)
        getattr(producer, end)()
        with open_consumer(kafka.bootstrap_servers, isolation_level="read_committed") as consumer:
            consumer.assign([TopicPartition("t", 0, 0)])
            fill(kafka, "t", 1, 0)
            decided = "PrepareCommit" if end == "commit" else "PrepareAbort"
            assert (state(kafka), stable_end(kafka)) == (decided, 0)
            assert poll(consumer, 1, 0.2) == []
            with ThreadPoolExecutor(1) as pool:
                producer.begin()
                sending = pool.submit(producer.send, "t", "next", 1)
                wait_until(lambda: was_told_to_wait(log), what="the refusal")
                assert (state(kafka), sending.done()) == (decided, False)
                let_markers_go(kafka)
                assert sending.result() == 0
            expected = ["held", "0"] if end == "commit" else ["0"]
            assert values(poll(consumer, len(expected))) == expected
        producer.commit()
        wait_for_state(kafka, "CompleteCommit")
    assert committed(kafka, 1, partition=1) == ["next"]


@pytest.mark.java
@pytest.mark.mock_kafka(brokers=1, configs={"transaction.partition.verification.enable": "false"})
@pytest.mark.parametrize("version", list(POMS))
def test_a_transaction_that_hangs_holds_readers_until_an_administrator_ends_it(
    kafka: Cluster, tours: Tours, version: str
) -> None:
    """As before KIP-890: a batch of TV1 that comes after its transaction's marker opens one of
    which no coordinator knows. DescribeProducers shows where, Admin.abortTransaction ends it.
    """
    session = Session("late", kafka.endpoint(1), 1)
    late = Producer(session)
    late.init()
    session.ask(late.add("t"), 3)
    session.ask(late.end(committed=False), TV1)
    late.settle()
    answer = session.ask(late.produce("t"), 11)
    assert answer.responses[0].partition_responses[0].error_code == 0
    fill(kafka, "t", 1, 0)
    where = {"bootstrap": kafka.bootstrap_servers}
    java = tours[version]
    described = java("admin.describeTransactions", ids=[late.id], **where)[late.id]
    assert (described["state"], described["partitions"]) == ("CompleteAbort", [])
    (hanging,) = java("admin.describeProducers", partitions=["t-0"], **where)["t-0"]
    assert (hanging["id"], hanging["txnStart"]) == (late.pid, 1)
    assert stable_end(kafka) == 1
    java(
        "admin.abortTransaction",
        partition="t-0",
        producerId=hanging["id"],
        epoch=hanging["epoch"],
        coordinatorEpoch=hanging["coordinatorEpoch"],
        **where,
    )
    assert stable_end(kafka) == 4
    assert committed(kafka, 1) == ["0"]
    (ended,) = java("admin.describeProducers", partitions=["t-0"], **where)["t-0"]
    assert ended["txnStart"] is None
    java("admin.close", **where)
    session.close()


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
