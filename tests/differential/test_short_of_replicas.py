"""What a group coordinator answers while `__consumer_offsets` has too few replicas in sync.

The same questions on three nodes of ours and of Kafka's, of which one is killed and comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from mockbroker_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.differential.test_broker_life import BROKER_CONFIGS, TIMEOUT_S, Nodes, ours, real
from tests.support.group_node import (
    commit_request,
    fetch_request,
    heartbeat_request,
    join_request,
    leave_request,
    sync_request,
)
from tests.support.real_kafka import SEVERAL_NODES
from tests.support.waiting import wait_until

OFFSETS = "__consumer_offsets"
TOPIC = "spread"
SESSION_MS = 300_000  # longer than all that is waited for here
CONFIGS = BROKER_CONFIGS | {
    "min.insync.replicas": "3",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "1",  # one coordinator for all groups
    "offsets.commit.timeout.ms": "2000",
}


class Groups:
    """The groups of three nodes, all on one coordinator."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.coordinator = 1

    def find(self) -> None:
        """Wait until there is a coordinator that knows its groups."""

        def found() -> bool:
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
            (answer,) = self.nodes.ask(request, 4).coordinators
            self.coordinator = answer.node_id
            return answer.error_code == 0 and self.describe("g")[0] == 0

        wait_until(found, TIMEOUT_S)

    def ask(self, request: Any, version: int) -> Any:
        return self.nodes.ask(request, version, self.coordinator)

    def in_sync(self) -> int:
        request = MetadataRequest([MetadataRequestTopic(name=OFFSETS)])
        (topic,) = self.nodes.ask(request, 12, self.coordinator).topics
        return len(topic.partitions[0].isr_nodes)

    def until_in_sync(self, count: int) -> None:
        wait_until(lambda: self.in_sync() == count, TIMEOUT_S)

    # -- questions ---------------------------------------------------------------------------------

    def member(self, group: str) -> str:
        """A member whose JoinGroup is answered."""
        given: str = self.ask(join_request(group, session_timeout_ms=SESSION_MS), 9).member_id
        again = join_request(group, given, session_timeout_ms=SESSION_MS)
        assert self.ask(again, 9).error_code == 0
        return given

    def sync(self, group: str, member: str, generation: int = 1) -> int:
        request = sync_request(group, member, generation, {member: b"part"})
        return int(self.ask(request, 5).error_code)

    def beat(self, group: str, member: str) -> int:
        return int(self.ask(heartbeat_request(group, member, 1), 4).error_code)

    def commit(self, offset: int, group: str, member: str = "", generation: int = -1) -> int:
        request = commit_request({(TOPIC, 0): offset}, group, member, generation)
        return int(self.ask(request, 9).topics[0].partitions[0].error_code)

    def fetch(self, group: str, *, stable: bool) -> tuple[int, int]:
        request = fetch_request({TOPIC: [0]}, group, require_stable=stable)
        (answer,) = self.ask(request, 9).groups
        offset = answer.topics[0].partitions[0].committed_offset if answer.topics else -1
        return answer.error_code, offset

    def leave(self, group: str, member: str) -> tuple[int, list[int]]:
        answer = self.ask(leave_request(group, member), 5)
        return answer.error_code, [line.error_code for line in answer.members]

    def delete(self, *groups: str) -> list[int]:
        answer = self.ask(DeleteGroupsRequest(list(groups)), 2)
        return sorted(line.error_code for line in answer.results)

    def delete_offset(self, group: str) -> int:
        topics = [OffsetDeleteRequestTopic(TOPIC, [OffsetDeleteRequestPartition(0)])]
        return int(self.ask(OffsetDeleteRequest(group, topics), 0).error_code)

    def new_member(self, group: str, member: str = "m") -> int:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        )
        return int(self.ask(request, 1).error_code)

    def describe(self, group: str) -> tuple[int, str]:
        (answer,) = self.ask(DescribeGroupsRequest([group]), 5).groups
        return answer.error_code, answer.group_state


def script(nodes: Nodes) -> Iterator[tuple[str, object]]:
    """The steps, each with what both have to answer alike."""
    nodes.create()
    nodes.until(lambda states: all(s.leader > 0 for s in states.values()))
    groups = Groups(nodes)
    groups.find()
    groups.until_in_sync(3)
    member = groups.member("g")
    yield "healthy: sync", groups.sync("g", member)
    yield "healthy: commit", groups.commit(1, "g", member, 1)
    yield (
        "healthy: commits of groups without members",
        [groups.commit(1, group) for group in ("deleted", "trimmed")],
    )
    leaver = groups.member("left")
    yield "healthy: sync of another", groups.sync("left", leaver)

    killed = next(node for node in (3, 2) if node != groups.coordinator)
    nodes.down(killed, kill=True)
    groups.until_in_sync(2)
    yield "nothing is written: heartbeat", groups.beat("g", member)
    yield "nothing is written: stable offsets", groups.fetch("g", stable=True)
    joined = groups.member("late")
    yield "heartbeat behind a new group", groups.beat("g", member)
    yield "heartbeat of nobody", groups.beat("g", "nobody")
    yield "commit", groups.commit(2, "g", member, 1)
    yield "stable offsets", groups.fetch("g", stable=True)
    yield "other offsets", groups.fetch("g", stable=False)
    yield "leader's sync", groups.sync("late", joined)
    yield "leave", groups.leave("left", leaver)
    yield "leave of nobody", groups.leave("g", "nobody")
    yield "delete", groups.delete("deleted")
    yield "delete what has members", groups.delete("g")
    yield "delete offsets", groups.delete_offset("trimmed")
    yield "new protocol", groups.new_member("new")

    nodes.up(killed)
    groups.until_in_sync(3)
    yield "back: the commit counts", groups.fetch("g", stable=True)
    yield "back: heartbeat", groups.beat("g", member)
    yield "back: deleted", groups.fetch("deleted", stable=True)
    yield "back: trimmed", groups.fetch("trimmed", stable=True)
    yield "back: who left", groups.beat("left", leaver)
    yield "back: the round began anew", groups.describe("late")[1]
    yield "back: commit", groups.commit(3, "g", member, 1)


@pytest.mark.slow
@pytest.mark.real_kafka
@pytest.mark.xdist_group(SEVERAL_NODES)
def test_groups_that_are_short_of_replicas_are_answered_alike() -> None:
    """Both scripts run side by side; the first difference is shown with its step."""
    for mine, theirs in zip(run(ours), run(real), strict=True):
        assert mine == theirs


def run(players: Callable[[Mapping[str, str]], Iterator[Nodes]]) -> Iterator[tuple[str, object]]:
    for nodes in players(CONFIGS):
        yield from script(nodes)
