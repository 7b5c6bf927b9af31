"""WriteTxnMarkers: an administrator ends a hanging transaction."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.support.txn_node import TxnNode

E = ErrorCode


def marker(
    pid: int, epoch: int = 0, *partitions: int, committed: bool = False, version: int = 0
) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=pid,
        producer_epoch=epoch,
        transaction_result=committed,
        topics=[WritableTxnMarkerTopic("t", list(partitions or (0,)))],
        coordinator_epoch=0,
        transaction_version=version,
    )


def errors(node: TxnNode, *markers: WritableTxnMarker, version: int = 2) -> dict[int, list[int]]:
    """Producer id -> error codes of its partitions."""
    answer = node.ask(WriteTxnMarkersRequest(markers=list(markers)), version)
    return {
        line.producer_id: [p.error_code for topic in line.topics for p in topic.partitions]
        for line in answer.markers
    }


@pytest.mark.parametrize("version", [1, 2])
def test_a_transaction_that_hangs_is_ended_where_it_hangs(version: int) -> None:
    """The partition has an open transaction that no coordinator knows of."""
    node = TxnNode(configs={"transaction.partition.verification.enable": "false"})
    p = node.txn()
    p.produce(version=11)
    assert p.state == "Empty"
    partition = node.cluster.partition("t", 0)
    assert partition is not None
    assert partition.last_stable_offset == 0
    assert errors(node, marker(p.pid), version=version) == {p.pid: [E.NONE]}
    assert partition.last_stable_offset == 2
    assert node.words() == ["v", "ABORT"]


def test_each_partition_of_each_marker_has_its_error() -> None:
    node = TxnNode()
    p, q = node.txn("p"), node.txn("q")
    p.produce()
    assert errors(node, marker(p.pid, 0, 0, 9), marker(q.pid, 3, 1, committed=True)) == {
        p.pid: [E.NONE, E.UNKNOWN_TOPIC_OR_PARTITION],
        q.pid: [E.NONE],
    }
    assert (node.words(0), node.words(1)) == (["v", "ABORT"], ["COMMIT"])


def test_the_transactions_version_is_looked_at_since_v2() -> None:
    """An end of TV2 has an epoch of its own."""
    node = TxnNode()
    p = node.txn()
    p.produce()
    line = marker(p.pid, 0, version=2)
    assert errors(node, line) == {p.pid: [E.INVALID_PRODUCER_EPOCH]}
    assert errors(node, line, version=1) == {p.pid: [E.NONE]}


def test_a_request_without_markers_is_answered() -> None:
    assert TxnNode().ask(WriteTxnMarkersRequest(), 1).markers == []
