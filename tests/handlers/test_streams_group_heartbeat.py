"""StreamsGroupHeartbeat: features, topics, and internal topics that the broker creates."""

from __future__ import annotations

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.groups.streams.configured import CreatableTopic
from mockbroker.handlers.api_versions import api_versions_response
from mockbroker.handlers.create_topics import TOPICS_PER_SLICE
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.streams_group_heartbeat import KeyValue, TopicInfo
from tests.support.streams_node import StreamsNode, topology

LATER = {"mockbroker.auto.created.at.once": "false"}


@pytest.fixture
def node() -> StreamsNode:
    return StreamsNode()


def test_a_member_with_state_gets_its_tasks_with_its_first_heartbeat(node: StreamsNode) -> None:
    changelog = TopicInfo("c", topic_configs=[KeyValue("cleanup.policy", "compact")])
    answer = node.joins("g", "a", topology=topology("t", changelog=changelog))
    assert (answer.error_code, answer.status) == (ErrorCode.NONE, [])
    assert [each.partitions for each in answer.active_tasks] == [[0, 1, 2]]
    created = node.cluster.topics["c"]
    assert len(created.partitions) == 3
    assert created.configs.cleanup_policy == ("compact",)


def test_as_in_kafka_the_next_heartbeat_finds_the_internal_topics() -> None:
    node = StreamsNode(configs=LATER)
    answer = node.joins("g", "a", topology=topology("t", changelog=TopicInfo("c")))
    [status] = answer.status
    assert (status.status_code, status.status_detail) == (3, "Internal topics are missing: c")
    assert "c" in node.cluster.topics
    answer = node.beats("g", "a", answer.member_epoch, {})
    assert answer.status == []
    assert [each.partitions for each in answer.active_tasks] == [[0, 1, 2]]


def test_the_error_of_a_creation_is_told_for_two_heartbeat_intervals() -> None:
    node = StreamsNode(configs=LATER)
    changelog = TopicInfo("c", topic_configs=[KeyValue("no.such", "1")])
    answer = node.joins("g", "a", topology=topology("t", changelog=changelog))
    assert "failed" not in answer.status[0].status_detail
    answer = node.beats("g", "a", answer.member_epoch, {})
    assert answer.status[0].status_detail.startswith(
        "Internal topics are missing: c; Creation failed: c ("
    )
    creations = node.cluster.brokers[1].groups.topic_creations
    assert creations.errors(["c"], node.cluster.runtime.now_ms() + 9_999)
    assert not creations.errors(["c"], node.cluster.runtime.now_ms() + 10_000)


def test_very_many_internal_topics_are_created_in_slices(node: StreamsNode) -> None:
    names = [f"c{number}" for number in range(TOPICS_PER_SLICE + 1)]
    topics = topology("t")
    topics.subtopologies[0].state_changelog_topics = [TopicInfo(name) for name in names]
    node.joins("g", "a", topology=topics)
    for _ in range(3):
        node.cluster.runtime.timers.run_due(node.now_ms)
    assert node.cluster.topics.keys() >= set(names)
    creations = node.cluster.brokers[1].groups.topic_creations
    assert creations.errors(names, node.now_ms) == {}
    node.cluster.delete_topics([node.cluster.topics[name] for name in names])
    missing = [CreatableTopic(name, 1, 1, {}) for name in names]
    assert len(creations.begin(missing, node.now_ms)) == len(names), "the first creation has ended"


def test_topics_of_the_broker_itself_are_no_sources(node: StreamsNode) -> None:
    answer = node.joins("g", "a", topology=topology("__consumer_offsets"))
    assert answer.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert "Use of Kafka internal topics __consumer_offsets" in answer.error_message


def test_invalid_names_are_named(node: StreamsNode) -> None:
    answer = node.joins("g", "a", topology=topology("a b", "c"))
    assert answer.error_message == "Topic names a b are not valid topic names."


def test_without_the_feature_or_the_protocol_the_request_is_unsupported() -> None:
    node = StreamsNode(configs={"group.coordinator.rebalance.protocols": "classic,consumer"})
    assert node.joins("g", "a").error_code == ErrorCode.UNSUPPORTED_VERSION
    node = StreamsNode()
    node.cluster.features.set_levels({"streams.version": 0})
    assert node.joins("g", "a").error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(("release", "served"), [("4.1", False), ("4.2", True), ("4.3", True)])
def test_releases_since_4_2_advertise_streams_groups(release: str, served: bool) -> None:
    cluster = Cluster(now_ms=lambda: 0, seed=1, kafka_version=release)
    response = api_versions_response(cluster, 4)
    keys = {each.api_key for each in response.api_keys}
    assert (ApiKey.STREAMS_GROUP_HEARTBEAT in keys) == served
    assert (ApiKey.STREAMS_GROUP_DESCRIBE in keys) == served
    levels = {each.name: each.max_version_level for each in response.finalized_features}
    assert levels.get("streams.version", 0) == int(served)


def test_only_the_coordinator_answers() -> None:
    node = StreamsNode(offsets_topic=False)
    assert node.joins("g", "m").error_code == ErrorCode.NOT_COORDINATOR
