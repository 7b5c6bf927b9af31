"""EndTxn: the answers of each version."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ErrorCode
from tests.support.txn_node import TV1, TV2, TxnNode

E = ErrorCode


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_ends(version: int, committed: bool) -> None:
    node = TxnNode()
    p = node.txn()
    p.add(0)
    answer = p.end(version=version, committed=committed)
    expected = (p.pid, 1) if version >= TV2 else (-1, -1)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (E.NONE, *expected)
    node.settle()
    assert p.state == ("CompleteCommit" if committed else "CompleteAbort")


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (0, E.INVALID_PRODUCER_EPOCH),
        (1, E.INVALID_PRODUCER_EPOCH),
        (2, E.PRODUCER_FENCED),
        (4, E.PRODUCER_FENCED),
        (5, E.PRODUCER_FENCED),
    ],
)
def test_old_producers_know_being_fenced_by_another_word(version: int, error: ErrorCode) -> None:
    p = TxnNode().txn()
    p.add(0)
    assert p.end(version=version, epoch=7).error_code == error


@pytest.mark.parametrize("version", [TV1, TV2])
def test_ids_that_are_not_known_or_not_allowed(version: int) -> None:
    p = TxnNode().txn()
    assert p.end(version=version, pid=99).error_code == E.INVALID_PRODUCER_ID_MAPPING
    p.id = "nobody"
    assert p.end(version=version).error_code == E.INVALID_PRODUCER_ID_MAPPING
    p.id = ""
    assert p.end(version=version).error_code == E.INVALID_REQUEST


@pytest.mark.covers("S250")
def test_calls_in_the_wrong_state_are_refused() -> None:
    """Without a transaction, twice, as somebody else, and while the end before is not complete."""
    node = TxnNode()
    p = node.txn()
    assert p.end().error_code == E.INVALID_TXN_STATE
    p.add(0)
    assert p.end().error_code == E.NONE
    assert p.add(0) == E.CONCURRENT_TRANSACTIONS
    node.settle()
    assert p.end().error_code == E.NONE  # with TV1 that is the first one again
    assert p.end(committed=False).error_code == E.INVALID_TXN_STATE
    p.id = "nobody"
    assert p.add(0) == E.INVALID_PRODUCER_ID_MAPPING
