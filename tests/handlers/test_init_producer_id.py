"""InitProducerId with and without a transactional id."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.init_producer_id import InitProducerIdRequest
from tests.support.ask import ask as send
from tests.support.requests import Node
from tests.support.txn_node import Txn, TxnNode

E = ErrorCode


def ask(node: Node, *, broker: int = 1, **fields):
    fields = {"transactional_id": None, "transaction_timeout_ms": 2147483647, **fields}
    request = InitProducerIdRequest(**fields)
    return send(node, ApiKey.INIT_PRODUCER_ID, request, 5, broker=broker)


@pytest.mark.covers("S116")
def test_each_request_gets_an_id_of_its_own_at_epoch_0_on_every_broker():
    node = Node(racks=(None, None))
    answers = [ask(node, broker=broker) for broker in (1, 2, 1, 2)]
    assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
    assert {answer.producer_epoch for answer in answers} == {0}
    assert len({answer.producer_id for answer in answers}) == 4
    assert min(answer.producer_id for answer in answers) >= 0


def test_an_id_that_the_producer_holds_already_is_not_looked_at():
    node = Node()
    first = ask(node)
    again = ask(node, producer_id=first.producer_id, producer_epoch=0)
    assert (again.error_code, again.producer_epoch) == (ErrorCode.NONE, 0)
    assert again.producer_id != first.producer_id


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": "x"}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_refusals(fields, error):
    answer = ask(Node(), **fields)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (error, -1, -1)


@pytest.mark.parametrize("version", range(6))
def test_a_transactional_id_keeps_its_producer_id_and_counts_epochs(version: int) -> None:
    p = Txn(TxnNode())
    answers = [p.init(version) for _ in range(3)]
    assert {(a.error_code, a.producer_id) for a in answers} == {(E.NONE, p.pid)}
    assert [a.producer_epoch for a in answers] == [0, 1, 2]


@pytest.mark.parametrize(
    ("timeout_ms", "error"),
    [
        (0, E.INVALID_TRANSACTION_TIMEOUT),
        (-1, E.INVALID_TRANSACTION_TIMEOUT),
        (1, E.NONE),
        (5000, E.NONE),
        (5001, E.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_a_timeout_has_bounds(timeout_ms: int, error: ErrorCode) -> None:
    """transaction.max.timeout.ms is 15 minutes unless configured."""
    node = TxnNode(configs={"transaction.max.timeout.ms": "5000"})
    assert Txn(node).init(transaction_timeout_ms=timeout_ms).error_code == error
    assert Txn(TxnNode()).init(transaction_timeout_ms=900_000).error_code == E.NONE


@pytest.mark.parametrize(("version", "error"), [(3, 47), (4, 90)])
def test_who_is_fenced_is_told_in_the_words_of_its_version(version: int, error: int) -> None:
    p = TxnNode().txn()
    answer = p.init(version, producer_id=p.pid + 1, producer_epoch=0)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (error, -1, -1)


@pytest.mark.covers("S238")
def test_what_an_earlier_producer_left_open_is_aborted() -> None:
    """Three records: a marker behind them, the next epoch, and readers move past."""
    node = TxnNode()
    p = node.txn()
    p.produce((b"1", b"2", b"3"))
    q = Txn(node)
    assert q.init().error_code == E.CONCURRENT_TRANSACTIONS
    node.settle()
    assert (q.init().error_code, q.pid, q.epoch) == (E.NONE, p.pid, p.epoch + 2)
    assert node.words() == ["1", "2", "3", "ABORT"]
    partition = node.cluster.partition("t", 0)
    assert partition is not None
    assert partition.last_stable_offset == 4


@pytest.mark.covers("S245")
def test_a_zombie_is_shut_out_everywhere() -> None:
    node = TxnNode()
    p = node.txn()
    p.add(0)
    p.produce(version=11)
    q = Txn(node)
    q.init()
    node.settle()
    q.init()
    for version in (11, 12):
        answer = p.produce((b"zombie",), sequence=1, version=version)
        assert answer.error_code == E.INVALID_PRODUCER_EPOCH
    assert p.add(1) == E.PRODUCER_FENCED
    assert p.add_offsets() == E.PRODUCER_FENCED
    assert p.end().error_code == E.PRODUCER_FENCED
    assert p.commit_offset(1, version=5) == E.INVALID_PRODUCER_EPOCH
    assert "zombie" not in node.words()
