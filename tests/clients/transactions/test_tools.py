"""Kafka's own tools on transactions: kafka-transactions, and what reads `__transaction_state`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from mockbroker import Cluster
from tests.differential.session import Session
from tests.differential.transacting import TV1, TV2, Producer, java_partition
from tests.support.tour import Tour
from tests.support.transactional_clients import Tours
from tests.support.transactional_id import stable_end

pytestmark = [
    pytest.mark.java,
    pytest.mark.mock_kafka(
        brokers=1, configs={"transaction.partition.verification.enable": "false"}
    ),
]

TOOLS = "org.apache.kafka.tools"


@pytest.fixture
def java(tours: Tours) -> Tour:
    return tours["4.3.1"]


@pytest.fixture
def session(kafka: Cluster) -> Iterator[Session]:
    session = Session("by-hand", kafka.endpoint(1), 1)
    yield session
    session.close()


def run(java: Tour, kafka: Cluster, main: str, *args: str) -> str:
    words = ["--bootstrap-server", kafka.bootstrap_servers, *args]
    ended: dict[str, Any] = java("tool", main=f"{TOOLS}.{main}", args=words, stdin="")
    assert ended["exit"] == 0, ended
    return str(ended["out"])


def rows(printed: str) -> list[dict[str, str]]:
    """The lines of a table, by the names in its head."""
    head, *lines = (line.split() for line in printed.splitlines() if line.strip())
    return [dict(zip(head, line, strict=False)) for line in lines]


def transactions(java: Tour, kafka: Cluster, *args: str) -> list[dict[str, str]]:
    return rows(run(java, kafka, "TransactionsCommand", *args))


@pytest.mark.covers("S254")
def test_an_open_transaction_is_listed_and_described(
    java: Tour, kafka: Cluster, session: Session
) -> None:
    p = Producer(session)
    p.init()
    (line,) = transactions(java, kafka, "list")
    assert (line["TransactionalId"], line["TransactionState"]) == (p.id, "Empty")
    session.ask(p.produce("t"), 12)
    (line,) = transactions(java, kafka, "describe", "--transactional-id", p.id)
    expected = {
        "TransactionalId": p.id,
        "TransactionState": "Ongoing",
        "ProducerId": str(p.pid),
        "ProducerEpoch": "0",
        "TransactionTimeoutMs": "60000",
        "TopicPartitions": "t-0",
    }
    assert expected.items() <= line.items()
    where = ("--topic", "t", "--partition", "0")
    (line,) = transactions(java, kafka, "describe-producers", *where)
    assert (line["ProducerId"], line["CurrentTransactionStartOffset"]) == (str(p.pid), "0")
    assert transactions(java, kafka, "list", "--duration-filter", "3600000") == []


def test_a_transaction_that_hangs_is_found_and_aborted(
    java: Tour, kafka: Cluster, session: Session
) -> None:
    """A batch of TV1 that came after its transaction's marker (nobody verified it)."""
    p = Producer(session)
    p.init()
    session.ask(p.add("t"), 3)
    session.ask(p.end(committed=False), TV1)
    p.settle()
    session.ask(p.produce("t"), 11)
    assert stable_end(kafka) == 1
    where = ("--topic", "t", "--partition", "0")
    limit = ("--max-transaction-timeout", "0")
    (line,) = transactions(java, kafka, "find-hanging", "--broker-id", "1", *limit)
    found = (line["Topic"], line["Partition"], line["ProducerId"], line["StartOffset"])
    assert found == ("t", "0", str(p.pid), "1")
    run(java, kafka, "TransactionsCommand", "abort", *where, "--start-offset", "1")
    assert stable_end(kafka) == 3
    assert transactions(java, kafka, "find-hanging", "--broker-id", "1", *limit) == []


def test_a_consumer_reads_the_transaction_log(java: Tour, kafka: Cluster, session: Session) -> None:
    """With the formatter that Kafka has for it: every state that the id went through."""
    p = Producer(session)
    p.init()
    session.ask(p.produce("t"), 12)
    session.ask(p.end(), TV2)
    p.settle()
    partition = java_partition(p.id)
    printed = run(
        java,
        kafka,
        "consumer.ConsoleConsumer",
        *("--topic", "__transaction_state", "--partition", str(partition)),
        *("--offset", "earliest", "--max-messages", "4"),
        *("--formatter", f"{TOOLS}.consumer.TransactionLogMessageFormatter"),
    )
    records = json.loads("[" + printed.strip().replace("}{", "},{") + "]")
    assert {record["key"]["data"]["transactionalId"] for record in records} == {p.id}
    values = [record["value"]["data"] for record in records]
    assert [value["transactionStatus"] for value in values] == [0, 1, 2, 4]
    assert [value["producerEpoch"] for value in values] == [0, 0, 1, 1]
    assert {value["producerId"] for value in values} == {p.pid}
    lines = [{"topic": "t", "partitionIds": [0]}]
    assert [value["transactionPartitions"] for value in values] == [None, lines, lines, []]
