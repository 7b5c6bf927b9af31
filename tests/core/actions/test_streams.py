"""Actions on streams groups: what members are told, and errors that name what there is."""

from __future__ import annotations

import pytest

from mockbroker.core.errors import ActionError
from mockbroker.core.groups.streams.states import StatusCode
from mockbroker_protocol.messages.streams_group_heartbeat import TopicInfo
from tests.support.streams_node import StreamsNode, topology


@pytest.fixture
def node() -> StreamsNode:
    """Member "a" of group "g" has the three tasks; the group has a changelog."""
    node = StreamsNode(configs={"group.streams.initial.rebalance.delay.ms": "0"})
    changelog = TopicInfo(name="g-changelog")
    node.topic("g-changelog", 3)
    node.joins("g", "a", topology=topology("t", changelog=changelog))
    return node


def beat(node: StreamsNode, active: dict[str, list[int]] | None = None) -> list[int]:
    member = node.streams_group().members["a"]
    answer = node.beats("g", "a", member.epoch, active)
    assert answer.error_code == 0
    return [each.status_code for each in answer.status or ()]


def test_a_stale_topology_is_told_until_it_is_released(node):
    assert node.cluster.report_stale_topology("g") == ["a"]
    assert beat(node) == [StatusCode.STALE_TOPOLOGY]
    assert node.cluster.report_stale_topology("g", release=True) == ["a"]
    assert beat(node) == []
    with pytest.raises(ActionError, match="has no member 'x'; it has: a"):
        node.cluster.report_stale_topology("g", member="x")


def test_the_fault_of_a_member_goes_with_it(node):
    node.cluster.report_stale_topology("g")
    node.beats("g", "a", -1)
    assert node.streams_group().stale_members == set()


def test_a_lost_internal_topic_is_not_created(node):
    node.cluster.lose_internal_topic("g", "g-changelog")
    assert beat(node) == [StatusCode.MISSING_INTERNAL_TOPICS]
    assert beat(node, {"0": []}) == [StatusCode.MISSING_INTERNAL_TOPICS]
    assert node.streams_group().members["a"].assigned.active == {}
    node.cluster.lose_internal_topic("g", "g-changelog", release=True)
    beat(node)
    assert node.streams_group().members["a"].assigned.active["0"].keys() == {0, 1, 2}
    with pytest.raises(ActionError, match="has not lost 'g-changelog'"):
        node.cluster.lose_internal_topic("g", "g-changelog", release=True)


def test_tasks_are_assigned_until_the_override_is_removed(node):
    node.cluster.assign_tasks("g", {"a": {"active": {"0": [1]}, "warmup": {"0": [2]}}})
    beat(node, {"0": [1]})
    member = node.streams_group().members["a"]
    assert member.assigned.active["0"].keys() == {1}
    node.cluster.assign_tasks("g", {})
    beat(node, {"0": [1]})
    assert node.streams_group().target_of("a").active == {"0": frozenset((0, 1, 2))}


def test_other_groups_are_refused(node):
    with pytest.raises(ActionError, match="there is no group 'gg'; did you mean 'g'"):
        node.cluster.shut_down_application("gg")
