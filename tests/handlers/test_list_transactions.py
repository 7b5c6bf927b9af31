"""ListTransactions and its filters."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.list_transactions import ListTransactionsRequest
from tests.support.txn_node import TV2, TxnNode

E = ErrorCode


@pytest.fixture
def node() -> TxnNode:
    """Transactions "idle" (Empty), "open" for two seconds (Ongoing), "done" (CompleteCommit)."""
    node = TxnNode()
    node.txn("idle")
    node.txn("open").add(0)
    done = node.txn("done")
    done.produce()
    done.end(version=TV2)
    node.advance(2000)
    return node


def listed(node: TxnNode, version: int = 2, **filters: Any) -> dict[str, str]:
    answer = node.ask(ListTransactionsRequest(**filters), version)
    assert answer.error_code == E.NONE
    return {line.transactional_id: line.transaction_state for line in answer.transaction_states}


EVERYTHING = {"idle": "Empty", "open": "Ongoing", "done": "CompleteCommit"}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_without_filters_everything_is_listed(node: TxnNode, version: int) -> None:
    assert listed(node, version) == EVERYTHING


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"state_filters": ["Ongoing", "CompleteCommit"]}, "open done"),
        ({"state_filters": ["Ongoing", "Odd"]}, "open"),
        ({"state_filters": ["Odd"]}, ""),
        ({"duration_filter": 0, "state_filters": ["Ongoing"]}, "open"),
        ({"duration_filter": 1999, "state_filters": ["Ongoing"]}, "open"),
        ({"duration_filter": 2000, "state_filters": ["Ongoing"]}, ""),
        ({"transactional_id_pattern": "i.*"}, "idle"),
        ({"transactional_id_pattern": "i"}, ""),
        ({"transactional_id_pattern": ""}, "idle open done"),
    ],
)
def test_filters_all_have_to_let_an_id_through(
    node: TxnNode, filters: dict[str, Any], names: str
) -> None:
    assert set(listed(node, **filters)) == set(names.split())


def test_producer_ids_can_be_asked_for(node: TxnNode) -> None:
    ids = [node.txn_shard(name).transactions[name].producer_id for name in ("idle", "done")]
    assert set(listed(node, producer_id_filters=[ids[1], 4242])) == {"done"}
    assert set(listed(node, producer_id_filters=ids)) == {"idle", "done"}


def test_what_is_no_state_is_told_back(node: TxnNode) -> None:
    request = ListTransactionsRequest(state_filters=["Empty", "Odd", "empty"])
    assert node.ask(request, 2).unknown_state_filters == ["Odd", "empty"]


def test_a_pattern_has_to_be_one_of_re2(node: TxnNode) -> None:
    for pattern in ("(", "(?=x)"):
        request = ListTransactionsRequest(transactional_id_pattern=pattern)
        assert node.ask(request, 2).error_code == E.INVALID_REGULAR_EXPRESSION


@pytest.mark.timeout(10)
def test_a_pattern_that_makes_backtracking_explode_is_answered_at_once() -> None:
    node = TxnNode()
    node.txn("a" * 3000)
    node.txn("aaz")
    assert listed(node, transactional_id_pattern="(a+)+z") == {"aaz": "Empty"}


def test_each_broker_lists_its_own() -> None:
    node = TxnNode(racks=(None, None, None))
    for i in range(9):
        node.txn(f"x{i}")
    lists = [
        {line.transactional_id for line in answer.transaction_states}
        for broker in (1, 2, 3)
        for answer in (node.ask(ListTransactionsRequest(), 2, broker=broker),)
    ]
    assert sum(map(len, lists)) == 9
    assert set.union(*lists) == {f"x{i}" for i in range(9)}


def test_a_broker_that_still_loads_says_so() -> None:
    node = TxnNode(racks=(None, None, None))
    p = node.txn()
    node.cluster.stop_broker(p.broker, "unclean")
    broker = node.coordinator_of("x")
    answer = node.ask(ListTransactionsRequest(), 2, broker=broker)
    assert answer.error_code == E.COORDINATOR_LOAD_IN_PROGRESS
