"""A transaction from its beginning to its end: over many partitions, and in the right order."""

from __future__ import annotations

import pytest

from mockbroker import Cluster
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker_protocol.records import iter_records, parse_marker, split_batches
from tests.support.python_transactions import Make
from tests.support.transactional_id import ID, hold_markers, let_markers_go, wait_for_state
from tests.support.waiting import wait_until

PARTITIONS = (("t", 0), ("t", 1), ("u", 0))
THREE = pytest.mark.mock_kafka(brokers=3, topics={"t": 2, "u": 1})


def words(kafka: Cluster, topic: str, partition: int) -> list[str]:
    """What is in a partition below its last stable offset, markers in capitals."""

    def stored(cluster: CoreCluster) -> list[str]:
        found = cluster.partition(topic, partition)
        assert found is not None
        return [
            parse_marker(record).control_type.name
            if header.is_control
            else bytes(record.value or b"").decode()
            for batch in found.log.batches()
            for header, data in split_batches(bytes(batch))
            if header.base_offset < found.last_stable_offset
            for record in iter_records(header, data)
        ]

    return kafka.call(stored)


@pytest.mark.covers("S240")
@THREE
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_in_each_partition_all_or_nothing(kafka: Cluster, make_any: Make, end: str) -> None:
    """Before the end nothing of three partitions is stable. Afterwards each partition has all of
    its records at once, or shows that none counts, as soon as its own marker is there.
    """
    with make_any(kafka.bootstrap_servers, ID) as producer:
        producer.begin()
        for number, (topic, partition) in enumerate(PARTITIONS):
            producer.send(topic, f"{number} a", partition)
            producer.send(topic, f"{number} b", partition)
        assert [words(kafka, *key) for key in PARTITIONS] == [[], [], []]
        hold_markers(kafka, "t", 1)
        getattr(producer, end)()
        marker = end.upper()
        expected = [[f"{n} a", f"{n} b", marker] for n in range(3)]
        kafka.journal.wait(kind="transaction", state=f"Prepare{end.capitalize()}")
        wait_for_partitions(kafka, {0: expected[0], 1: [], 2: expected[2]})
        let_markers_go(kafka)
        wait_for_state(kafka, f"Complete{end.capitalize()}")
        assert [words(kafka, *key) for key in PARTITIONS] == expected


def wait_for_partitions(kafka: Cluster, expected: dict[int, list[str]]) -> None:
    wait_until(
        lambda: {n: words(kafka, *PARTITIONS[n]) for n in expected} == expected, what=str(expected)
    )


@pytest.mark.covers("S242")
@THREE
def test_first_the_decision_then_the_markers_then_the_completion(
    kafka: Cluster, make_any: Make
) -> None:
    """EndTxn is answered when the decision is stored; the markers set out after that, and the end
    is complete when all have been taken.
    """
    kafka.faults.add(
        match={"between_brokers": True, "api": "WriteTxnMarkers", "transactional_id": ID},
        do={"observe": {}},
    )
    with make_any(kafka.bootstrap_servers, ID) as producer:
        producer.begin()
        for topic, partition in PARTITIONS:
            producer.send(topic, "v", partition)
        producer.commit()
        wait_for_state(kafka, "CompleteCommit")
    for topic, partition in PARTITIONS:
        kafka.journal.in_order(
            {"kind": "transaction", "former": "Ongoing", "state": "PrepareCommit"},
            {"kind": "hop", "api": "WriteTxnMarkers", "topic": topic, "partition": partition},
            {"kind": "hop_answer", "error": "none", "topic": topic, "partition": partition},
            {"kind": "transaction", "former": "PrepareCommit", "state": "CompleteCommit"},
        )
    kafka.journal.in_order(
        {"kind": "request", "api": "EndTxn"},
        {"kind": "transaction", "former": "Ongoing", "state": "PrepareCommit"},
        {"kind": "response", "api": "EndTxn", "error": "none"},
    )
    kafka.journal.in_order(
        {"kind": "transaction", "former": "Ongoing", "state": "PrepareCommit"},
        {"kind": "transaction", "former": "PrepareCommit", "state": "CompleteCommit"},
    )
    assert [words(kafka, *key) for key in PARTITIONS] == [["v", "COMMIT"]] * 3
