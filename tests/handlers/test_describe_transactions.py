"""DescribeTransactions through a transaction's life."""

from __future__ import annotations

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    TransactionState,
)
from tests.support.hops import add_hop_rule
from tests.support.txn_node import TxnNode

E = ErrorCode


def describe(node: TxnNode, *ids: str, broker: int = 1) -> list[TransactionState]:
    request = DescribeTransactionsRequest(transactional_ids=list(ids))
    return list(node.ask(request, broker=broker).transaction_states)


def test_an_open_transaction_shows_since_when_and_where() -> None:
    node = TxnNode()
    p = node.txn()
    (line,) = describe(node, "x")
    assert (line.transaction_state, line.transaction_start_time_ms) == ("Empty", -1)
    node.advance(500)
    p.add(0, 2)
    (line,) = describe(node, "x")
    assert (line.error_code, line.transaction_state) == (E.NONE, "Ongoing")
    assert (line.producer_id, line.producer_epoch) == (p.pid, 0)
    assert (line.transaction_timeout_ms, line.transaction_start_time_ms) == (60_000, node.now_ms)
    assert [(topic.topic, topic.partitions) for topic in line.topics] == [("t", [0, 2])]


def test_while_it_ends_the_partitions_that_lack_a_marker_are_shown() -> None:
    node = TxnNode()
    p = node.txn()
    p.add(0, 1)
    add_hop_rule(node.cluster, {"delay": 1000}, api="WriteTxnMarkers", partition=1)
    p.end()
    node.settle()
    (line,) = describe(node, "x")
    assert line.transaction_state == "PrepareCommit"
    assert [(topic.topic, topic.partitions) for topic in line.topics] == [("t", [1])]
    node.advance(1000)
    (line,) = describe(node, "x")
    assert (line.transaction_state, line.topics) == ("CompleteCommit", [])


def test_each_id_has_its_own_error() -> None:
    node = TxnNode(racks=(None, None, None))
    here = node.txn().broker
    there = next(n for n in (1, 2, 3) if n != here)
    lines = describe(node, "x", "", broker=there)
    assert [line.error_code for line in lines] == [E.NOT_COORDINATOR, E.INVALID_REQUEST]
    unknown = next(f"y{i}" for i in range(99) if node.coordinator_of(f"y{i}") == here)
    (line,) = describe(node, unknown, broker=here)
    assert (line.error_code, line.transactional_id) == (E.TRANSACTIONAL_ID_NOT_FOUND, unknown)
