"""Actions on share groups: what they change, and errors that name what there is."""

from __future__ import annotations

import pytest

from mockbroker.core.errors import ActionError
from mockbroker.core.validation import ValidationError
from tests.support.requests import batch_of
from tests.support.share import ShareNode, acquired, summary


@pytest.fixture
def node() -> ShareNode:
    """Two members with two records each, one of the second partition with none."""
    node = ShareNode()
    node.topic("t", 2)
    for value in (b"a", b"b", b"c", b"d"):
        node.produced(batch_of(value))
    assert acquired(node, "m1", most=2)
    assert acquired(node, "m2", most=2)
    return node


def test_locks_of_one_member_end(node):
    assert node.cluster.expire_acquisition_locks("g", "t", 0, member="m2") == 2
    assert summary(node.share()) == "0-1:acquired/1 2-3:available/1"
    with pytest.raises(ActionError, match=r"no record acquired by 'm2' in t-0; in flight it has"):
        node.cluster.expire_acquisition_locks("g", "t", 0, member="m2")


def test_members_release_what_they_have(node):
    assert node.cluster.release_records("g", "m*") == 4
    assert summary(node.share()) == "0-3:available/1"
    with pytest.raises(ActionError, match="members with records: none"):
        node.cluster.release_records("g")


def test_records_are_handed_out_archived_and_counted(node):
    assert node.cluster.hand_out_twice("g", "t", 0, offsets=[0]) == 1
    assert acquired(node, "m2") == [(0, 0, 2)]
    assert node.cluster.archive_records("g", "t", 0, [3]) == 1
    assert node.cluster.set_delivery_count("g", "t", 0, offsets=[1, 2]) == 2
    assert summary(node.share()) == "0:acquired/2 1-2:acquired/5 3:archived/1"
    with pytest.raises(ActionError, match="no record that is not final in t-0 at 3; in flight"):
        node.cluster.archive_records("g", "t", 0, [3])


def test_what_does_not_exist_is_named_with_what_does(node):
    cluster = node.cluster
    with pytest.raises(ActionError, match="'gg' has fetched records; did you mean 'g'"):
        cluster.release_records("gg")
    with pytest.raises(ActionError, match="has fetched from t-1; they have fetched from: t-0"):
        cluster.expire_acquisition_locks("g", "t", 1)
    with pytest.raises(ActionError, match="there is no topic 'tt'"):
        cluster.archive_records("g", "tt", 0, [0])
    with pytest.raises(ActionError, match="has partitions 0 to 1, not 2"):
        cluster.archive_records("g", "t", 2, [0])
    with pytest.raises(ActionError, match="no share coordinator yet: there is no topic __share"):
        cluster.move_share_coordinator("g", "t", 0, 1)
    for arguments in ({"offsets": []}, {"count": 0}, {"count": 40_000}):
        with pytest.raises(ValidationError):
            cluster.set_delivery_count("g", "t", 0, **arguments)
