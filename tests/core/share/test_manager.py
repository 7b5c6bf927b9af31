"""Very many records of a member that leaves are released in turns."""

from __future__ import annotations

import pytest

from mockbroker.core.share.manager import ENDS_PER_TURN, RELEASES_PER_TURN
from mockbroker.core.share.states import RecordState
from mockbroker.handlers.base import Parked
from tests.support.requests import batch_of, done
from tests.support.share import GROUP, MEMBER, ShareNode, states_of, summary

MANY = 2 * RELEASES_PER_TURN + 10


@pytest.fixture
def node() -> ShareNode:
    """The only member has a record of each partition."""
    node = ShareNode()
    node.topic("t", MANY)
    for index in range(MANY):
        node.produced(batch_of(b"a"), partition=index)
    fetch(node, 0)
    assert released(node) == 0
    return node


def fetch(node: ShareNode, epoch: int, *indexes: int, member: str = MEMBER) -> None:
    wanted = [node.wanted(*(indexes or range(MANY)))] if epoch == 0 else []
    reply = node.share_fetch(epoch, *wanted, member=member)
    while isinstance(reply, Parked) and not reply.done:
        turn(node)
    assert done(reply).error_code == 0


def released(node: ShareNode) -> int:
    """How many of the records are available."""
    states = [states_of(share) for share in node.manager.all()]
    return sum((RecordState.AVAILABLE, 1) in of_one.values() for of_one in states)


def turn(node: ShareNode) -> None:
    node.cluster.runtime.timers.run_due(node.now_ms)


@pytest.mark.parametrize("closes", [True, False], ids=["connection", "final epoch"])
def test_they_are_released_in_turns(node: ShareNode, closes: bool) -> None:
    fetch(node, 0, 0, member="another")
    if closes:
        node.close()
    else:
        fetch(node, -1)
    found = [released(node)]
    for _ in range(2):
        turn(node)
        found.append(released(node))
    assert found == [RELEASES_PER_TURN, 2 * RELEASES_PER_TURN, MANY]


def test_share_partitions_without_members_end_once_all_is_released(node: ShareNode) -> None:
    node.close()
    turn(node)
    assert len(node.manager.all()) == MANY
    turn(node)
    assert node.manager.all() == []
    assert {str(state) for _, _, state in node.persister.states.values()} == {"{0: (0, 1)}"}


def test_share_partitions_end_in_turns_until_a_member_is_back() -> None:
    node = ShareNode()
    node.topic("t", 3 * ENDS_PER_TURN)
    fetch(node, 0, *range(3 * ENDS_PER_TURN))
    node.close()
    for _ in range(3 * ENDS_PER_TURN // RELEASES_PER_TURN - 1):
        assert len(node.manager.all()) == 3 * ENDS_PER_TURN
        turn(node)
    assert len(node.manager.all()) == 2 * ENDS_PER_TURN
    fetch(node, 0, 0)
    turn(node)
    assert len(node.manager.all()) == 2 * ENDS_PER_TURN + 1


def test_a_member_that_is_back_does_not_lose_what_it_gets_then(node: ShareNode) -> None:
    """Its partitions are released before it reads them again, and not once more later."""
    last = MANY - 1
    node.close()
    fetch(node, 0, last)
    assert summary(node.share(index=last)) == "0:acquired/2"
    for _ in range(3):
        turn(node)
    assert released(node) == last
    assert summary(node.share(index=last)) == "0:acquired/2"
    node.close()
    turn(node)
    assert node.manager.all() == []


def test_a_session_that_ends_again_meanwhile_is_released_with_the_former_one(
    node: ShareNode,
) -> None:
    node.close()
    fetch(node, 0, MANY - 1)
    node.close()
    for _ in range(3):
        turn(node)
    assert node.manager.all() == []
    assert node.persister.states[(GROUP, node.topic_id("t"), MANY - 1)][2] == {0: (0, 2)}


def test_a_process_that_ends_releases_nothing_more(node: ShareNode) -> None:
    node.close()
    node.manager.unload()
    writes = len(node.persister.writes)
    for _ in range(3):
        turn(node)
    assert len(node.persister.writes) == writes
