"""Spark on topics that transactional producers write: committed, aborted, open, hanging."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest

from mockbroker import Cluster
from mockbroker.client import Connection
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.replication.partition import Partition
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from mockbroker_protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.spark.steps import Read, SparkKafka, finish, progress_of, sorted_reads
from tests.support import doc_examples
from tests.support.python_transactions import ConfluentKafka
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.xdist_group("spark")]

COMMITTED = {"kafka_isolation_level": "read_committed", "failOnDataLoss": True}


class Log:
    """Partition 0 of a topic: what is written to it, and how far it can be read."""

    def __init__(self, kafka: Cluster, topic: str) -> None:
        self.kafka = kafka
        self.topic = topic

    def __call__(self, cluster: CoreCluster) -> Partition:
        return cluster.topics[self.topic].partitions[0]

    def producer(self, transactional_id: str = "") -> ConfluentKafka:
        # Spark may take its time: no transaction times out meanwhile.
        bootstrap = self.kafka.bootstrap_servers
        return ConfluentKafka(bootstrap, transactional_id or self.topic, timeout_ms=900_000)

    def transact(self, producer: ConfluentKafka, *values: str, end: str = "commit") -> None:
        """One transaction, and its marker."""
        producer.begin()
        for value in values:
            producer.send(self.topic, value)
        getattr(producer, end)()
        self.settle()

    def settle(self) -> None:
        """Wait until no transaction is open."""
        wait_until(lambda: self.stable_end == self.end, what="the marker")

    @property
    def end(self) -> int:
        return self.kafka.call(lambda cluster: self(cluster).high_watermark)

    @property
    def stable_end(self) -> int:
        return self.kafka.call(lambda cluster: self(cluster).last_stable_offset)


@pytest.fixture
def log(kafka: Cluster, topic: str) -> Log:
    return Log(kafka, topic)


def read_available(steps: SparkKafka, frame: DataFrame) -> list[Read]:
    """What a run to the end adds under this test's checkpoint."""
    return list(chain.from_iterable(steps.read_available(frame)))


def last_progress(steps: SparkKafka, frame: DataFrame) -> dict[str, Any]:
    """How the last run with data saw itself."""
    query = steps.into([], frame).trigger(availableNow=True).start()
    finish(query)
    return [each for each in progress_of(query) if each["sources"][0]["endOffset"]][-1]


@pytest.mark.covers("S332", "S333")
def test_a_stream_gets_what_is_committed_and_waits_for_what_is_open(
    steps: SparkKafka, log: Log
) -> None:
    with log.producer() as producer, log.producer(f"{log.topic}-late") as late:
        log.transact(producer, "a", "b")
        log.transact(producer, "gone", end="abort")
        late.begin()
        late.send(log.topic, "late")
        producer.begin()
        producer.send(log.topic, "behind it")
        producer.commit()
        steps.fill(log.topic, ["plain"], partition=0)
        frame = steps.stream(log.topic, **COMMITTED)
        assert log.stable_end == 5
        assert read_available(steps, frame) == [(0, 0, "a"), (0, 1, "b")]
        assert read_available(steps, frame) == []
        late.commit()
        log.settle()
        assert read_available(steps, frame) == [
            (0, 5, "late"),
            (0, 6, "behind it"),
            (0, 8, "plain"),
        ]


@pytest.mark.covers("S332")
def test_lag_is_counted_to_the_last_stable_offset(steps: SparkKafka, log: Log) -> None:
    """Its own end is there. Markers and aborted records are in the offsets, not in the rows."""
    with log.producer() as producer:
        log.transact(producer, "a", "b")
        log.transact(producer, "gone", end="abort")
        producer.begin()
        producer.send(log.topic, "open")
        [source] = last_progress(steps, steps.stream(log.topic, **COMMITTED))["sources"]
        ends = {"0": 5, "1": 0, "2": 0, "3": 0}
        assert source["endOffset"] == {log.topic: ends}
        assert source["latestOffset"] == {log.topic: ends}
        assert source["numInputRows"] == 2
        assert (log.stable_end, log.end) == (5, 6)
        producer.abort()


def test_without_the_setting_open_and_aborted_records_are_read(steps: SparkKafka, log: Log) -> None:
    with log.producer() as producer:
        log.transact(producer, "gone", end="abort")
        producer.begin()
        producer.send(log.topic, "open")
        assert read_available(steps, steps.stream(log.topic)) == [(0, 0, "gone"), (0, 2, "open")]
        producer.abort()


@pytest.mark.covers("S332", "S333")
def test_ranges_may_begin_and_end_in_gaps(steps: SparkKafka, topic: str) -> None:
    """At markers and aborted records: no data is lost, and nobody waits for what never comes."""
    log = Log(steps.kafka, f"{topic}-single")
    steps.kafka.topic(log.topic).create()
    with log.producer() as producer:
        log.transact(producer, "a")  # 0, marker 1
        log.transact(producer, "gone", "gone too", end="abort")  # 2, 3, marker 4
        log.transact(producer, "b")  # 5, marker 6
    for start, end, expected in (
        (0, 2, ["a"]),
        (1, 4, []),
        (3, 7, ["b"]),
        (6, 7, []),
    ):
        frame = steps.read(
            log.topic,
            startingOffsets={log.topic: {"0": start}},
            endingOffsets={log.topic: {"0": end}},
            **COMMITTED,
        )
        assert [value for _, _, value in sorted_reads(frame.collect())] == expected, (start, end)


@pytest.mark.covers("S333")
def test_a_partition_without_a_committed_record_is_read_to_its_end(
    steps: SparkKafka, log: Log
) -> None:
    with log.producer() as producer:
        for _ in range(3):
            log.transact(producer, "gone", end="abort")
    frame = steps.stream(log.topic, **COMMITTED)
    progress = last_progress(steps, frame)
    assert progress["sources"][0]["endOffset"][log.topic]["0"] == 6
    assert progress["numInputRows"] == 0
    steps.fill(log.topic, ["plain"], partition=0)
    assert read_available(steps, frame) == [(0, 6, "plain")]


@contextmanager
def hanging(log: Log) -> Iterator[None]:
    """A transaction that its coordinator takes for committed, but the marker was lost."""
    transactional_id = f"{log.topic}-hanging"

    def believe(cluster: CoreCluster) -> None:
        [(shard, found)] = [
            (shard, shard.transactions[transactional_id])
            for broker in cluster.brokers.values()
            for shard in broker.transactions.shards()
            if not isinstance(shard, ErrorCode) and transactional_id in shard.transactions
        ]
        shard.marked(found, tuple(found.partitions))

    lost = log.kafka.faults.add(
        match={"between_brokers": True, "api": "WriteTxnMarkers", "topic": log.topic},
        do={"drop_request": {}},
    )
    try:
        with log.producer(transactional_id) as producer:
            producer.begin()
            producer.send(log.topic, "hangs")
            producer.commit()
            log.kafka.call(believe)
        yield
    finally:
        lost.remove()


def abort_as_an_administrator(log: Log) -> None:
    """As Java's Admin.abortTransaction: ask the leader who is open, send the marker yourself."""
    leader_id = log.kafka.call(lambda cluster: log(cluster).leader_id)
    with Connection(*log.kafka.endpoint(leader_id)) as leader:
        [topic] = leader.send(DescribeProducersRequest([TopicRequest(log.topic, [0])])).topics
        [hanging] = [
            each
            for each in topic.partitions[0].active_producers
            if each.current_txn_start_offset >= 0
        ]
        marker = WritableTxnMarker(
            producer_id=hanging.producer_id,
            producer_epoch=hanging.producer_epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(log.topic, [0])],
            coordinator_epoch=hanging.coordinator_epoch,
        )
        leader.send(WriteTxnMarkersRequest([marker]))


@pytest.mark.covers("S332")
def test_a_hanging_transaction_stops_a_stream_until_an_administrator_ends_it(
    steps: SparkKafka, log: Log
) -> None:
    """The query does not fail, and does not say that it waits."""
    steps.fill(log.topic, ["before"], partition=0)
    frame = steps.stream(log.topic, **COMMITTED)
    with hanging(log):
        steps.fill(log.topic, ["behind it"], partition=0)
        assert read_available(steps, frame) == [(0, 0, "before")]
        assert read_available(steps, frame) == []
        assert (log.stable_end, log.end) == (1, 3)
        abort_as_an_administrator(log)
    assert read_available(steps, frame) == [(0, 2, "behind it")]


def test_a_range_that_ends_behind_a_hanging_transaction_cannot_be_read(
    steps: SparkKafka, log: Log
) -> None:
    """Spark was told an end that is not stable, and takes what it does not get for lost."""
    with hanging(log):
        steps.fill(log.topic, ["behind it"], partition=0)
        end = {log.topic: {"0": 2, "1": 0, "2": 0, "3": 0}}
        frame = steps.read(
            log.topic, endingOffsets=end, kafkaConsumer_pollTimeoutMs=1000, **COMMITTED
        )
        with pytest.raises(Exception, match="may have been lost"):
            frame.collect()
        abort_as_an_administrator(log)
    assert sorted_reads(frame.collect()) == [(0, 1, "behind it")]


@pytest.mark.covers("S332", "S239")
def test_a_running_stream_follows_a_transactional_producer(steps: SparkKafka, log: Log) -> None:
    """Each commit in the next micro-batch, each record once; what is aborted never."""
    batches: list[list[Read]] = []
    frame = steps.stream(log.topic, kafka_fetch_max_wait_ms=5, **COMMITTED)
    query = steps.into(batches, frame).start()
    with log.producer() as producer:
        for n in range(5):
            log.transact(producer, f"gone {n}", end="abort")
            log.transact(producer, f"{n} a", f"{n} b")
            query.processAllAvailable()
    query.stop()
    found = list(chain.from_iterable(batches))
    assert [value for _, _, value in found] == [f"{n} {x}" for n in range(5) for x in "ab"]
    assert [offset for _, offset, _ in found] == [5 * n + 2 + m for n in range(5) for m in range(2)]


@pytest.mark.covers("S266")
def test_duplicates_of_an_at_least_once_writer_are_dropped_by_their_key(
    steps: SparkKafka, log: Log
) -> None:
    """What Spark's own sink may leave, and any other writer that tries again."""
    orders = [f"order {n}" for n in range(100)]
    steps.fill(log.topic, [*orders, *orders[40:60], *orders[55:]])
    values = steps.read(log.topic).selectExpr("CAST(value AS STRING) AS value")
    assert values.count() == 165
    assert sorted(row.value for row in values.dropDuplicates(["value"]).collect()) == sorted(orders)


def test_the_example_of_the_docs_reads_what_is_committed(steps: SparkKafka) -> None:
    steps.kafka.topic("bills").create()
    bills = Log(steps.kafka, "bills")
    read_bills = doc_examples.module("howto/applications.md", "read_bills.py").read_bills
    frame = read_bills(steps.spark, steps.kafka.bootstrap_servers)
    found: list[list[tuple[object, ...]]] = []

    def keep(batch: DataFrame, _number: int) -> None:
        found.append([tuple(row) for row in batch.collect()])

    with bills.producer() as producer:
        bills.transact(producer, "one coffee")
        bills.transact(producer, "gone", end="abort")
        bills.transact(producer, "one tea")
    finish(steps.writer(frame).foreachBatch(keep).trigger(availableNow=True).start())
    assert list(chain.from_iterable(found)) == [(0, 0, "one coffee"), (0, 4, "one tea")]
