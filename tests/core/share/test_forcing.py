"""Changes of records in flight that no member has asked for."""

from __future__ import annotations

import pytest

from mockbroker.core.share import forcing
from mockbroker.core.share.acknowledgement import (
    NOT_OWNER_OF_BATCH,
    AcknowledgementBatch,
    acknowledge,
    expire,
)
from mockbroker_protocol import ErrorCode
from tests.support.requests import batch_of
from tests.support.share import ShareNode, acknowledged, acquired, summary

ACCEPT, RELEASE = 1, 2


@pytest.fixture
def node() -> ShareNode:
    node = ShareNode()
    node.topic("t")
    node.produced(batch_of(b"a", b"b", b"c", b"d"))
    node.share()
    return node


def test_chosen_locks_end_and_the_rest_of_their_batch_stays_acquired(node):
    share = node.share()
    acquired(node)
    assert expire(share, forcing.is_acquired, {1, 2, 9}) == 2
    assert summary(share) == "0:acquired/1 1-2:available/1 3:acquired/1"
    assert expire(share, forcing.acquired_by(lambda member: member == "other")) == 0


@pytest.mark.parametrize("offset", [0, 1, 2, 3])
def test_a_record_anywhere_in_a_batch_can_be_chosen(node, offset):
    share = node.share()
    acquired(node)
    assert expire(share, forcing.is_acquired, {offset}) == 1
    assert share.next_fetch_offset() == offset


@pytest.mark.parametrize("offsets", [{9}, set()])
def test_a_batch_of_which_nothing_is_chosen_stays_whole(node, offsets):
    """The words of an error tell."""
    share = node.share()
    acquired(node)
    assert expire(share, forcing.is_acquired, offsets) == 0
    assert acknowledged(share, (0, 3, [ACCEPT]), member="m2")[1] == NOT_OWNER_OF_BATCH


def test_a_batch_that_is_chosen_whole_stays_whole(node):
    share = node.share()
    acquired(node)
    assert expire(share, forcing.is_acquired, {0, 1, 2, 3}) == 4
    acquired(node)
    assert acknowledged(share, (0, 3, [ACCEPT]), member="m2")[1] == NOT_OWNER_OF_BATCH


def test_an_archived_record_stays_archived_for_the_next_leader(node):
    share = node.share()
    acquired(node)
    acknowledged(share, (1, 1, [RELEASE]))
    assert forcing.archive(share, {1, 2}) == 2
    assert summary(share) == "0:acquired/1 1-2:archived/1 3:acquired/1"
    assert acknowledged(share, (2, 2, [ACCEPT]))[0] is ErrorCode.INVALID_RECORD_STATE
    _, _, offsets = node.persister.states[share.key]
    assert {offset: state for offset, (state, _) in offsets.items() if state == 4} == {1: 4, 2: 4}
    assert forcing.archive(share, {1, 2}) == 0
    assert share.delivery_complete_count == 2


def test_archived_records_at_the_start_move_it(node):
    share = node.share()
    acquired(node)
    assert forcing.archive(share, {0, 1}) == 2
    assert share.start_offset == 2
    assert forcing.archive(share, None) == 2
    assert (share.start_offset, len(share.batches)) == (4, 0)


def test_the_last_delivery_is_forced_or_any_count_is_set(node):
    share = node.share()
    acquired(node)
    acknowledged(share, (3, 3, [RELEASE]))
    assert forcing.set_delivery_count(share, {0, 3}, None) == 2
    assert forcing.set_delivery_count(share, {1}, 2) == 1
    assert summary(share) == ("0:acquired/5 1:acquired/2 2:acquired/1 3:available/4")
    _, _, offsets = node.persister.states[share.key]
    assert offsets[3] == (0, 4)
    acknowledged(share, (0, 2, [RELEASE]))
    assert summary(share) == "0:archived/5 1:available/2 2:available/1 3:available/4"
    assert share.start_offset == 1


def test_a_record_that_is_handed_out_again_is_the_next_members(node):
    share = node.share()
    acquired(node)
    written = len(node.persister.writes)
    assert forcing.hand_out_again(share, {2}, lambda member: member == "m1") == 1
    assert acquired(node, "m2") == [(2, 2, 2)]
    assert len(node.persister.writes) == written
    assert acknowledged(share, (2, 2, [ACCEPT]))[0] is ErrorCode.INVALID_RECORD_STATE
    assert acknowledged(share, (2, 2, [ACCEPT]), member="m2") is None


def test_a_record_whose_acknowledgement_is_being_written_is_left_out(node):
    share = node.share()
    acquired(node)
    node.persister.holds = True
    done: list[object] = []
    acknowledge(share, "m1", [AcknowledgementBatch(0, 3, [ACCEPT])], done.append)
    assert forcing.archive(share, None) == 0
    assert forcing.set_delivery_count(share, None, 3) == 0
    assert forcing.hand_out_again(share, None, lambda _: True) == 0
    node.persister.answer()
    assert done == [None]
