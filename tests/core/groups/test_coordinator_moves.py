"""Coordinators that move, load and are unloaded, by actions and by the death of brokers."""

from __future__ import annotations

import pytest

from mockbroker.core.coordinator.shard import RECORDS_PER_TURN
from mockbroker.core.errors import ActionError
from mockbroker.core.events import Event, GroupMoved
from mockbroker.core.groups.shard import GroupShard
from mockbroker.core.replication.partition import Partition
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
from tests.support.group_node import (
    SESSION_MS,
    GroupNode,
    commit_request,
    fetch_request,
    heartbeat_request,
    join_request,
    sync_request,
)

E = ErrorCode
MANY = 2 * RECORDS_PER_TURN + 10


@pytest.fixture
def node() -> GroupNode:
    return GroupNode(racks=(None, None, None))


def home(node: GroupNode) -> Partition:
    index = node.cluster.find_coordinator_partition("g")
    return node.cluster.topics["__consumer_offsets"].partitions[index]


def stable(node: GroupNode) -> str:
    """A group with one member, which has its assignment and a committed offset."""
    broker = home(node).leader_id
    member = node.ask(join_request(), broker=broker).member_id
    node.ask(join_request("g", member), broker=broker)
    node.ask(sync_request("g", member, 1, {member: b"part"}), broker=broker)
    node.ask(commit_request({("t", 0): 7}, "g", member, 1), broker=broker)
    return member


def committed(node: GroupNode) -> int:
    answer = node.ask(fetch_request({"t": [0]}), broker=home(node).leader_id)
    offset: int = answer.groups[0].topics[0].partitions[0].committed_offset
    return offset


def beat(node: GroupNode, member: str, broker: int = 0) -> int:
    answer = node.ask(heartbeat_request("g", member, 1), broker=broker or home(node).leader_id)
    error: int = answer.error_code
    return error


def another(node: GroupNode) -> int:
    return next(n for n in home(node).isr if n != home(node).leader_id)


@pytest.mark.covers("S79", "S277")
def test_a_group_goes_on_at_the_broker_that_its_coordinator_moved_to(node):
    """Same members, generation and offsets; the one before is no coordinator any more."""
    member = stable(node)
    former, following = home(node).leader_id, another(node)
    node.cluster.move_coordinator("g", following)
    node.advance(0)
    assert home(node).leader_id == following
    assert beat(node, member, former) == E.NOT_COORDINATOR
    assert beat(node, member) == E.NONE
    assert committed(node) == 7


def test_a_coordinator_that_dies_is_followed_by_another_with_all_that_was_acknowledged(node):
    member = stable(node)
    node.cluster.stop_broker(home(node).leader_id, "unclean")
    node.advance(0)
    assert (beat(node, member), committed(node)) == (E.NONE, 7)


def test_a_member_that_does_not_notice_the_move_loses_its_session_on_the_new_coordinator(node):
    """Nobody asks the new one; it has read its log all the same, and sessions run."""
    stable(node)
    node.cluster.move_coordinator("g", another(node))
    node.advance(0)
    node.advance(SESSION_MS)
    (group,) = node.ask(DescribeGroupsRequest(["g"]), broker=home(node).leader_id).groups
    assert (group.group_state, group.members) == ("Empty", [])


def test_a_coordinator_that_takes_its_time_to_load_says_so():
    """Heartbeats are told nothing is wrong, as Kafka does; commits have to wait."""
    node = GroupNode(racks=(None,) * 3, configs={"mockbroker.coordinator.load.ms": "500"})
    node.ask(commit_request({("t", 0): 7}), broker=home(node).leader_id)
    node.advance(500)
    member = stable(node)
    node.cluster.move_coordinator("g", another(node))
    node.advance(0)
    node.advance(499)
    assert beat(node, member) == E.NONE
    answer = node.ask(commit_request({("t", 0): 8}, "g", member, 1), broker=home(node).leader_id)
    assert answer.topics[0].partitions[0].error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    node.advance(1)
    assert committed(node) == 7


def with_a_long_log() -> GroupNode:
    """One partition of groups: several turns read its log, and several more start the groups."""
    configs = {"offsets.topic.num.partitions": "1"}
    node = GroupNode(racks=(None,) * 3, configs=configs)
    stable(node)
    for number in range(MANY):
        request = commit_request({("t", 0): number}, f"simple-{number}")
        assert (
            node.ask(request, broker=home(node).leader_id).topics[0].partitions[0].error_code == 0
        )
    return node


def turn(node: GroupNode) -> bool:
    """One turn of the load; False if there is none."""
    timers = node.cluster.runtime.timers
    return bool(timers.run_due(node.now_ms))


def test_a_long_log_is_read_in_turns() -> None:
    """Requests are served in between: those to the coordinator hear that it loads."""
    node = with_a_long_log()
    former = home(node).leader_id
    node.cluster.move_coordinator("g", another(node))
    answers = []
    while turn(node):
        commit = commit_request({("t", 0): 8}, "late")
        answer = node.ask(commit, broker=home(node).leader_id)
        answers.append(answer.topics[0].partitions[0].error_code)
    assert set(answers[:-1]) == {E.COORDINATOR_LOAD_IN_PROGRESS}
    assert len(answers) > MANY // RECORDS_PER_TURN
    assert answers[-1] == E.NONE
    assert committed(node) == 7
    shard = node.shard(broker=home(node).leader_id)
    assert shard.groups.keys() == {"g", "late", *(f"simple-{number}" for number in range(MANY))}
    assert not isinstance(node.cluster.brokers[former].groups.shard_of("g"), GroupShard)


@pytest.mark.parametrize("turns", [1, 2, 3, 5])
def test_a_load_ends_when_the_coordinator_moves_on_meanwhile(turns: int) -> None:
    node = with_a_long_log()
    former, following = home(node).leader_id, another(node)
    node.cluster.move_coordinator("g", following)
    for _ in range(turns):
        assert turn(node)
    begun = node.cluster.brokers[following].groups.shard(home(node))
    assert begun == E.COORDINATOR_LOAD_IN_PROGRESS
    node.cluster.move_coordinator("g", former)
    while turn(node):
        pass
    assert node.cluster.brokers[following].groups.loaded() == []
    assert committed(node) == 7
    assert len(node.shard(broker=former).groups) == MANY + 1


def test_a_coordinator_can_be_made_to_load_anew(node):
    member = stable(node)
    node.cluster.unload_coordinator("g", load_ms=100)
    node.advance(99)
    joined = node.ask(join_request("g", member), broker=home(node).leader_id)
    assert joined.error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    node.advance(1)
    assert beat(node, member) == E.NONE


def test_a_load_that_is_overtaken_by_another_move_comes_to_nothing(node):
    member = stable(node)
    former = home(node).leader_id
    node.cluster.unload_coordinator("g", load_ms=100)
    node.cluster.move_coordinator("g", another(node))
    node.advance(200)
    assert beat(node, member, former) == E.NOT_COORDINATOR
    node.cluster.move_coordinator("g", former)
    node.advance(0)
    assert beat(node, member) == E.NONE


@pytest.mark.parametrize(
    ("action", "arguments", "why"),
    [
        ("move_coordinator", ("g", 9), "9 is not a replica of __consumer_offsets"),
        ("move_coordinator", ("x", 1, "transaction"), "no topic __transaction_state"),
    ],
)
def test_what_is_refused_says_why(node, action, arguments, why):
    with pytest.raises(ActionError, match=why):
        getattr(node.cluster, action)(*arguments)


def test_a_broker_that_has_not_heard_that_it_coordinates_has_nothing_to_unload(node):
    former = home(node).leader_id
    heir = another(node)
    node.cluster.cut_network(heir, to=node.cluster.controller_id, fence_after_ms=60_000)
    node.cluster.move_coordinator("g", heir)
    assert (home(node).leader_id, former != heir) == (heir, True)
    with pytest.raises(ActionError, match="does not lead the partition of 'g'"):
        node.cluster.unload_coordinator("g")
    assert not node.cluster.brokers[heir].groups.loaded()


def test_a_coordinator_without_a_leader_cannot_be_unloaded(node):
    node.cluster.drop_leader("__consumer_offsets", home(node).index)
    with pytest.raises(ActionError, match="has no leader"):
        node.cluster.unload_coordinator("g")


def moved(node: GroupNode) -> list[str]:
    """The states that the group goes to from now on."""
    states: list[str] = []

    def note(event: Event) -> None:
        if isinstance(event, GroupMoved):
            states.append(event.state)

    node.cluster.runtime.on_event.append(note)
    return states


def test_the_coordinator_of_a_broker_that_was_removed_is_gone(node):
    """Another broker of its id has a coordinator of its own, and the group ends once."""
    stable(node)
    broker = home(node).leader_id
    for other in {1, 2, 3} - {broker}:
        node.cluster.stop_broker(other)
    node.cluster.remove_broker(broker)
    for other in {1, 2, 3} - {broker}:
        node.cluster.start_broker(other)
    node.cluster.add_broker(broker)
    node.advance(0)
    node.cluster.move_leader("__consumer_offsets", home(node).index, broker)
    node.advance(0)
    states = moved(node)
    node.cluster.create_topic("other", 1)
    node.cluster.delete_topic("other")
    node.advance(2 * SESSION_MS)
    assert states == ["PreparingRebalance", "Empty"]


def test_a_coordinator_without_the_controller_forgets_a_topic_when_it_hears_of_its_end(node):
    """Source: GroupCoordinatorService.onMetadataUpdate, which gets what the broker has heard."""
    controller = node.cluster.controller_id
    stable(node)
    if home(node).leader_id == controller:
        node.cluster.move_coordinator("g", another(node))
        node.advance(0)
    node.cluster.cut_network(home(node).leader_id, to=controller, fence_after_ms=60_000)
    node.cluster.delete_topic("t")
    assert committed(node) == 7
    node.cluster.heal_network()
    node.advance(0)
    assert committed(node) == -1
