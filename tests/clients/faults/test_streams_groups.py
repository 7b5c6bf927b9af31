"""Actions on streams groups, seen by members on the wire (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mockbroker import Cluster
from mockbroker.client import Client
from mockbroker.core.errors import ActionError
from tests.support.streams_member import StreamsMember, assign_at_once

STALE_TOPOLOGY, MISSING_INTERNAL_TOPICS, SHUTDOWN_APPLICATION = 0, 3, 4


@pytest.fixture
def member(kafka: Cluster, group: str, topic: str) -> Iterator[StreamsMember]:
    """The only member of its group, with both tasks."""
    kafka.call(lambda cluster: assign_at_once(cluster, group))
    with Client(kafka.bootstrap_servers) as client:
        member = StreamsMember(client, group, topic, "m1")
        member.until(active=[0, 1])
        yield member


@pytest.mark.fault("report_stale_topology")
def test_a_member_is_told_that_its_topology_is_stale(kafka, member):
    group = kafka.group(member.group)
    assert group.report_stale_topology() == ["m1"]
    member.beat()
    assert member.statuses == [STALE_TOPOLOGY]
    assert member.tasks["active"] == {"0": [0, 1]}
    group.report_stale_topology(release=True)
    member.beat()
    assert member.statuses == []


@pytest.mark.fault("lose_internal_topic")
def test_a_lost_internal_topic_takes_the_tasks_until_it_is_back(kafka, member):
    group = kafka.group(member.group)
    changelog = f"{member.group}-changelog"
    group.lose_internal_topic(changelog)
    member.until(active=[])
    assert member.statuses == [MISSING_INTERNAL_TOPICS]
    assert kafka.partitions(changelog)  # the topic itself is there
    with pytest.raises(ActionError, match=f"did you mean '{changelog}'"):
        group.lose_internal_topic(f"{changelog}s")
    group.lose_internal_topic(changelog, release=True)
    member.until(active=[0, 1])
    assert member.statuses == []


@pytest.mark.fault("assign_tasks")
def test_a_warm_up_is_forced(kafka, member, topic):
    """No assignor of Kafka 4.3 makes warm-up tasks; members do what they are told."""
    other = StreamsMember(member.client, member.group, topic, "m2")
    other.beat()
    group = kafka.group(member.group)
    group.assign_tasks({"m1": {"active": {"0": [1]}}, "m2": {"active": {}, "warmup": {"0": [1]}}})
    member.until(active=[1])
    member.beat()  # it has revoked the other task
    other.until(active=[], warmup=[1])
    tasks = {(each.kind, each.partition, each.member_id, each.state) for each in group.tasks()}
    assert tasks == {("active", 1, "m1", "assigned"), ("warmup", 1, "m2", "assigned")}
    with pytest.raises(ActionError, match="has no subtopology '7'"):
        group.assign_tasks({"m1": {"active": {"7": [0]}}})
    with pytest.raises(ActionError, match="has tasks 0 to 1, not 2"):
        group.assign_tasks({"m1": {"active": {"0": [2]}}})


@pytest.mark.fault("shut_down_application")
def test_members_are_told_to_shut_down(kafka, member):
    assert kafka.group(member.group).shut_down_application() == "m1"
    member.beat()
    assert member.statuses == [SHUTDOWN_APPLICATION]


def test_only_streams_groups_have_tasks(kafka, group, topic):
    with pytest.raises(ActionError, match="there is no group"):
        kafka.group(group).shut_down_application()
