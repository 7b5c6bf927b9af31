"""AddOffsetsToTxn: the group's partition of __consumer_offsets is added."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ErrorCode
from tests.support.txn_node import TxnNode

E = ErrorCode


@pytest.mark.parametrize("version", range(5))
def test_the_partition_of_the_group_is_added(version: int) -> None:
    """ "test-group" belongs to partition 12."""
    p = TxnNode().txn()
    assert p.add_offsets("test-group", version) == E.NONE
    assert list(p.machine.partitions) == [("__consumer_offsets", 12)]


@pytest.mark.parametrize(("version", "error"), [(1, 47), (2, 90), (4, 90)])
def test_who_is_fenced_is_told_in_the_words_of_its_version(version: int, error: int) -> None:
    p = TxnNode().txn()
    p.epoch = 5
    assert p.add_offsets(version=version) == error


def test_ids_that_are_not_known_or_not_allowed() -> None:
    p = TxnNode().txn()
    p.id = "nobody"
    assert p.add_offsets() == E.INVALID_PRODUCER_ID_MAPPING
    p.id = ""
    assert p.add_offsets() == E.INVALID_REQUEST


def test_a_group_whose_topic_is_not_there_yet_has_a_partition_all_the_same() -> None:
    node = TxnNode(offsets_topic=False)
    p = node.txn()
    assert p.add_offsets("test-group") == E.NONE
    p.end()
    node.settle()
    assert p.state == "CompleteCommit"  # nobody leads it: no marker is needed
