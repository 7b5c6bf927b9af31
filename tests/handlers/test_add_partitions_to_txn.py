"""AddPartitionsToTxn in the form of producers and in that of leaders."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tests.support.txn_node import TxnNode

E = ErrorCode


def errors(answer: AddPartitionsToTxnResponse) -> dict[str, dict[int, int]]:
    """Transactional id -> partition of "t" -> error code."""
    return {
        line.transactional_id: {
            result.partition_index: result.partition_error_code
            for topic in line.topic_results
            for result in topic.results_by_partition
        }
        for line in answer.results_by_transaction
    }


@pytest.fixture
def node() -> TxnNode:
    return TxnNode()


@pytest.mark.parametrize("version", range(4))
def test_a_producer_adds_its_partitions(node: TxnNode, version: int) -> None:
    p = node.txn()
    (topic,) = p.send_add(0, 2, version=version).response.results_by_topic_v3_and_below
    assert topic.name == "t"
    assert [
        (line.partition_index, line.partition_error_code) for line in topic.results_by_partition
    ] == [(0, E.NONE), (2, E.NONE)]
    assert list(p.machine.partitions) == [("t", 0), ("t", 2)]


def test_what_does_not_exist_keeps_the_others_out(node: TxnNode) -> None:
    p = node.txn()
    (topic,) = p.send_add(0, 9).response.results_by_topic_v3_and_below
    assert [line.partition_error_code for line in topic.results_by_partition] == [
        E.OPERATION_NOT_ATTEMPTED,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert p.state == "Empty"


def test_producers_do_not_add_internal_topics(node: TxnNode) -> None:
    """Whether they exist or not; leaders, who know better, may."""
    p = node.txn()
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=p.id,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic("__consumer_offsets", [0]),
            AddPartitionsToTxnTopic("t", [0]),
        ],
    )
    internal, ordinary = node.ask(request, 3).results_by_topic_v3_and_below
    assert internal.results_by_partition[0].partition_error_code == E.TOPIC_AUTHORIZATION_FAILED
    assert ordinary.results_by_partition[0].partition_error_code == E.OPERATION_NOT_ATTEMPTED
    assert p.state == "Empty"


@pytest.mark.parametrize(("version", "error"), [(1, 47), (2, 90), (3, 90)])
def test_old_producers_know_being_fenced_by_another_word(
    node: TxnNode, version: int, error: int
) -> None:
    assert node.txn().add(0, version=version, epoch=5) == error


def test_an_empty_id_is_no_id(node: TxnNode) -> None:
    p = node.txn()
    p.id = ""
    assert p.add(0) == E.INVALID_REQUEST


# --------------------------------------------------------------------------------------- leaders


def ask(
    node: TxnNode, *lines: AddPartitionsToTxnTransaction, version: int = 5
) -> dict[str, dict[int, int]]:
    return errors(node.ask(AddPartitionsToTxnRequest(transactions=list(lines)), version))


@pytest.mark.parametrize("version", [4, 5])
def test_leaders_verify_many_transactions_at_once(node: TxnNode, version: int) -> None:
    p, q = node.txn("p"), node.txn("q")
    p.add(0)
    assert ask(node, p.batched(0, 1), q.batched(0), version=version) == {
        "p": {0: E.NONE, 1: E.TRANSACTION_ABORTABLE},
        "q": {0: E.TRANSACTION_ABORTABLE},
    }
    assert q.state == "Empty"


def test_leaders_add(node: TxnNode) -> None:
    """By whom a partition was added shows in the record: the client's transaction version."""
    p, q = node.txn("p"), node.txn("q")
    assert ask(node, p.batched(0, verify=False), q.batched(0)) == {
        "p": {0: E.NONE},
        "q": {0: E.TRANSACTION_ABORTABLE},
    }
    q.add(0)
    assert (p.machine.version, q.machine.version) == (2, 0)


@pytest.mark.parametrize(
    ("changed", "error"),
    [({"pid": 99}, E.INVALID_PRODUCER_ID_MAPPING), ({"epoch": 5}, E.PRODUCER_FENCED)],
)
def test_the_producer_has_to_be_the_one(
    node: TxnNode, changed: dict[str, int], error: ErrorCode
) -> None:
    p = node.txn()
    for verify in (True, False):
        assert ask(node, p.batched(verify=verify, **changed)) == {"x": {0: error}}


def test_while_an_end_is_not_complete(node: TxnNode) -> None:
    p = node.txn()
    p.add(0)
    p.end()
    for verify in (True, False):
        assert ask(node, p.batched(verify=verify)) == {"x": {0: E.CONCURRENT_TRANSACTIONS}}


def test_a_request_about_nothing_is_never_answered(node: TxnNode) -> None:
    """As with a real broker, which answers together with the last transaction."""
    assert node.send(AddPartitionsToTxnRequest(), 5).parked
