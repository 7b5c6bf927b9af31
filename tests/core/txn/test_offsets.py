"""Offsets of a transaction are written for the producer's newest epoch only."""

from __future__ import annotations

import pytest

from mockbroker.core.events import Event, OffsetCommitted
from mockbroker.core.groups.offsets import OffsetAndMetadata
from mockbroker.core.log.verification import VerificationGuard
from mockbroker.core.txn.offsets import commit_pending
from mockbroker_protocol import ErrorCode
from tests.support.txn_node import TV2, TxnNode

E = ErrorCode


@pytest.fixture
def node() -> TxnNode:
    """A cluster that does not ask the coordinator of the transaction, so that the log decides."""
    return TxnNode(configs={"transaction.partition.verification.enable": "false"})


def test_offsets_of_an_older_epoch_are_refused_by_the_log(node: TxnNode) -> None:
    """As in ProducerAppendInfo, with the code of a Produce."""
    p = node.txn()
    old = p.epoch
    p.add_offsets()
    assert p.commit_offset(5, version=4) == E.NONE
    p.end(version=TV2)
    node.settle()
    assert p.epoch > old
    assert p.commit_offset(6, version=4, producer_epoch=old) == E.INVALID_PRODUCER_EPOCH
    p.add_offsets()
    assert p.commit_offset(7, version=4) == E.NONE


def test_nothing_is_written_for_no_offsets(node: TxnNode) -> None:
    p = node.txn()
    before = len(node.stored("__consumer_offsets"))
    assert p.send_offset(5, version=4, topics=[]).response.topics == []
    assert len(node.stored("__consumer_offsets")) == before


def test_offsets_of_a_transaction_are_told_as_such(node: TxnNode) -> None:
    events: list[Event] = []
    node.cluster.runtime.on_event.append(events.append)
    p = node.txn()
    p.add_offsets()
    p.commit_offset(5, version=4)
    told = [each for each in events if isinstance(each, OffsetCommitted)]
    assert [(each.group, each.transactional) for each in told] == [("g", True)]


def test_offsets_with_a_guard_that_is_no_longer_in_force_are_refused(node: TxnNode) -> None:
    p = node.txn()
    shard, runtime = node.shard("g"), node.cluster.runtime
    producers = shard.partition.log.producers

    def commit(guard: VerificationGuard) -> int:
        commits = [("t", 0, OffsetAndMetadata(5))]
        return commit_pending(
            runtime, shard, "g", commits, producer_id=p.pid, epoch=p.epoch, guard=guard
        )

    assert commit(VerificationGuard(p.epoch, 0, 0, bumps=False)) == E.INVALID_TXN_STATE
    assert node.stored("__consumer_offsets") == []
    guard = producers.start_verification(p.pid, p.epoch, 0, node.now_ms, bumps=False)
    assert isinstance(guard, VerificationGuard)
    assert commit(guard) == E.NONE
