"""The runner of streams groups: creation, loading, other protocols, actions."""

from __future__ import annotations

import pytest

from mockbroker.core.configs.values import ClusterConfigs
from mockbroker.core.errors import ActionError
from mockbroker.core.groups.streams.events import SentTopology
from mockbroker.core.groups.streams.group import StreamsSettings
from mockbroker.core.groups.streams.shard import StreamsGroups
from mockbroker.core.groups.streams.topology import InternalTopic, Subtopology
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.streams_group_heartbeat import TopicInfo
from tests.support.group_node import join_request
from tests.support.streams_node import StreamsNode, topology


@pytest.fixture
def node() -> StreamsNode:
    return StreamsNode()


def test_a_group_is_the_same_after_its_coordinator_has_loaded_it(node: StreamsNode) -> None:
    node.joins("g", "a")
    before = node.streams_group()
    node.shard("g", 1).unload()
    after = node.streams_group()
    assert after is not before
    assert after.members == before.members
    assert (after.epoch, after.topology) == (before.epoch, before.topology)
    assert node.beats("g", "a", after.members["a"].epoch).error_code == ErrorCode.NONE


def test_a_deleted_group_stays_deleted(node: StreamsNode) -> None:
    node.joins("g", "a")
    node.beats("g", "a", -1)
    assert node.shard("g", 1).delete_group("g") is ErrorCode.NONE
    node.shard("g", 1).unload()
    assert "g" not in node.shard("g", 1).groups


def test_an_empty_classic_group_is_replaced_and_replaces(node: StreamsNode) -> None:
    shard = node.shard("g", 1)
    shard.check_commit("g", "", None, -1, unknown_group=ErrorCode.ILLEGAL_GENERATION)
    assert node.joins("g", "a").error_code == ErrorCode.NONE
    refused = node.ask(join_request("g"), 9)
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    node.beats("g", "a", -1)
    assert node.ask(join_request("g"), 3).error_code == ErrorCode.NONE
    assert shard.groups["g"].group_type == "classic"
    refused = node.joins("g", "a")
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert refused.error_message == "Group g is not a streams group."


def test_a_group_that_does_not_exist_is_not_found(node: StreamsNode) -> None:
    assert node.beats("g", "a", 1).error_message == "Streams group g not found."
    assert node.beats("g", "a", -1).error_message == "Group g not found."


def test_a_rebalance_raises_the_epoch(node: StreamsNode) -> None:
    node.joins("g", "a")
    group, runner = node.streams_group(), node.shard("g", 1).streams
    before = group.epoch
    runner.rebalance(group)
    assert group.epoch == before + 1
    assert node.beats("g", "a", group.members["a"].epoch, {"0": [0, 1, 2]}).member_epoch > before


def test_members_may_be_expired_but_not_kicked_or_fenced(node: StreamsNode) -> None:
    node.joins("g", "a")
    group, runner = node.streams_group(), node.shard("g", 1).streams
    with pytest.raises(ActionError, match="use expire_member for a"):
        runner.kick(group, ["a"])
    with pytest.raises(ActionError, match="it is a streams group"):
        runner.fence_instance(group, "i")
    runner.expire(group, ["a"])
    assert not group.members
    assert node.beats("g", "a", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_assignment_by_partitions_is_one_of_tasks(node: StreamsNode) -> None:
    node.joins("g", "a")
    group, runner = node.streams_group(), node.shard("g", 1).streams
    runner.assign(group, {"a": {"t": [1]}})
    owned = {"0": [0, 1, 2]}
    answer = node.beats("g", "a", group.members["a"].epoch, owned)
    assert [(each.subtopology_id, each.partitions) for each in answer.active_tasks] == [("0", [1])]
    with pytest.raises(ActionError, match="does not read 'other'"):
        runner.assign(group, {"a": {"other": [0]}})


def test_tasks_may_be_assigned_before_the_first_heartbeat_after_a_move(node: StreamsNode) -> None:
    node.joins("g", "a")
    node.shard("g", 1).unload()
    group, runner = node.streams_group(), node.shard("g", 1).streams
    runner.assign(group, {"a": {"t": [1]}})
    owned = {"0": [0, 1, 2]}
    answer = node.beats("g", "a", group.members["a"].epoch, owned)
    assert [(each.subtopology_id, each.partitions) for each in answer.active_tasks] == [("0", [1])]


def test_after_a_move_the_next_heartbeat_makes_the_assignment_that_was_delayed() -> None:
    node = StreamsNode(configs={"group.streams.initial.rebalance.delay.ms": "3000"})
    epoch = node.joins("g", "a").member_epoch
    node.advance(1_000)
    node.shard("g", 1).unload()
    node.shard("g", 1)
    node.advance(3_000)
    assert node.streams_group().targets == {}
    answer = node.beats("g", "a", epoch, {})
    assert [(each.subtopology_id, each.partitions) for each in answer.active_tasks] == [
        ("0", [0, 1, 2])
    ]


def test_an_assignment_by_an_action_outlives_the_initial_rebalance_delay() -> None:
    node = StreamsNode(configs={"group.streams.initial.rebalance.delay.ms": "3000"})
    epoch = node.joins("g", "a").member_epoch
    node.beats("g", "a", epoch, {})
    group, runner = node.streams_group(), node.shard("g", 1).streams
    runner.assign(group, {"a": {"t": [1]}})
    node.advance(3_000)
    assert group.initial_delay_until_ms is None
    assert group.target_of("a").active == {"0": frozenset({1})}


def test_settings_are_those_of_the_group(node: StreamsNode) -> None:
    node.cluster.configs.groups["g"] = {"streams.num.standby.replicas": "2"}
    node.cluster.configs.changed()
    runner = node.shard("g", 1).streams
    assert runner.settings("g").standby_replicas == 2
    assert runner.settings("h").standby_replicas == 0
    assert runner.settings("g").assignment_configs == {"num.standby.replicas": "2"}


def test_settings_without_configs_are_the_defaults_of_the_configs() -> None:
    assert StreamsGroups.read_settings(ClusterConfigs({}), "g") == StreamsSettings()


def test_an_expired_member_asks_for_no_shutdown(node: StreamsNode) -> None:
    node.joins("g", "a")
    epoch = node.joins("g", "b").member_epoch
    node.shard("g", 1).streams.expire(node.streams_group(), ["a"])
    assert [each.status_code for each in node.beats("g", "b", epoch, {}).status] == []


def test_a_joining_member_misses_the_internal_topics_that_are_gone(node: StreamsNode) -> None:
    topic = InternalTopic("c")
    sent = SentTopology(0, (Subtopology("0", ("t",), changelogs=(topic,)),))
    runner = node.shard("g", 1).streams
    assert [each.name for each in runner.missing_topics("g", sent)] == ["c"]
    node.joins("g", "a", topology=topology("t", changelog=TopicInfo("c")))
    assert runner.missing_topics("g", sent) == []
    node.cluster.delete_topic("c")
    assert [each.name for each in runner.missing_topics("g", sent)] == ["c"]
    newer = SentTopology(1, sent.subtopologies)
    assert runner.missing_topics("g", newer) == []
