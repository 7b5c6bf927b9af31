"""Transactions as they lie in a log: records, some aborted, and markers that take an offset each.

The log is written by the broker's own hand here, so that the markers stand where a test wants them.
"""

from __future__ import annotations

from itertools import chain

import pytest

from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker_protocol.records import ControlType, Record, build_batch, build_marker
from tests.spark.steps import SparkKafka, sorted_reads

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.xdist_group("spark")]


def append_transaction(
    cluster: CoreCluster, topic: str, producer_id: int, values: list[bytes], end: ControlType
) -> None:
    """A whole transaction in partition 0: its records in one batch, then the marker."""
    partition = cluster.topics[topic].partitions[0]
    now_ms = cluster.runtime.now_ms()
    identity = {"producer_id": producer_id, "producer_epoch": 0}
    records = [Record(0, now_ms, None, value, ()) for value in values]
    batch = build_batch(records, base_sequence=0, transactional=True, **identity)
    partition.append_records(batch, now_ms)
    marker = memoryview(build_marker(end, coordinator_epoch=0, timestamp=now_ms, **identity))
    partition.log.append(marker, 0, now_ms, partition.leader_epoch)
    partition.log.producers.replay(marker)
    partition.advance_high_watermark()
    partition.notify()


@pytest.fixture
def transactions(steps: SparkKafka, topic: str) -> str:
    """A topic with offsets 0-1 committed, 2 a marker, 3-4 aborted, 5 and 8 markers, 6-7
    committed.
    """
    for producer_id, (values, end) in enumerate(
        [
            ([b"a", b"b"], ControlType.COMMIT),
            ([b"c", b"d"], ControlType.ABORT),
            ([b"e", b"f"], ControlType.COMMIT),
        ]
    ):
        steps.kafka.call(
            lambda cluster, p=producer_id, v=values, e=end: append_transaction(
                cluster, topic, p, v, e
            )
        )
    return topic


COMMITTED = [(0, 0, "a"), (0, 1, "b"), (0, 6, "e"), (0, 7, "f")]


@pytest.mark.covers("S332", "S333")
def test_a_read_of_committed_records_ends_at_a_marker(
    steps: SparkKafka, transactions: str, offset_fetching: str
) -> None:
    """The last offset of the range is a marker, which never comes; nobody waits for it."""
    frame = steps.read(transactions, kafka_isolation_level="read_committed", failOnDataLoss=True)
    assert sorted_reads(frame.collect()) == COMMITTED


@pytest.mark.covers("S333")
def test_a_read_of_uncommitted_records_has_the_aborted_ones_too(
    steps: SparkKafka, transactions: str
) -> None:
    found = sorted_reads(steps.read(transactions).collect())
    assert found == sorted([*COMMITTED, (0, 3, "c"), (0, 4, "d")])


@pytest.mark.covers("S332")
def test_a_stream_passes_markers_and_aborted_records(steps: SparkKafka, transactions: str) -> None:
    """Its checkpoint ends behind the last marker, and what comes later is not missed."""
    frame = steps.stream(transactions, kafka_isolation_level="read_committed", failOnDataLoss=True)
    assert list(chain.from_iterable(steps.read_available(frame))) == COMMITTED
    steps.fill(transactions, ["plain"], partition=0)
    assert steps.read_available(frame) == [[(0, 9, "plain")]]
