"""What three share coordinators answer: who may be asked, what is written while replicas are
missing, and what the next coordinator knows. The same on ours as on Kafka itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import pytest

from mockbroker.core.share.coordinator import coordinator_key
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.differential.test_broker_life import BROKER_CONFIGS, TIMEOUT_S, Nodes, ours, real
from tests.differential.test_differential import differences
from tests.support.real_kafka import SEVERAL_NODES
from tests.support.share_states import (
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    delete_request,
    initialize_request,
    read_request,
    summary_request,
    write_request,
)
from tests.support.waiting import wait_until

STATES, TOPIC = "__share_group_state", "spread"
CONFIGS = BROKER_CONFIGS | {
    "min.insync.replicas": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "3",
    "share.coordinator.state.topic.num.partitions": "1",  # one coordinator for all
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
}


class Coordinators:
    """The share coordinators of three nodes; one of them coordinates all share partitions."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.coordinator = 1
        self.topic_id = bytes(16)

    def find(self) -> None:
        """Wait until there is a coordinator that has read its log and knows the topic."""
        alive = min(self.nodes.alive)

        def found() -> bool:
            request = MetadataRequest([MetadataRequestTopic(name=TOPIC)])
            self.topic_id = self.nodes.ask(request, 12, alive).topics[0].topic_id
            key = coordinator_key("g", self.topic_id, 0)
            find = FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
            (answer,) = self.nodes.ask(find, 6, alive).coordinators
            if answer.error_code or answer.node_id not in self.nodes.alive:
                return False
            self.coordinator = answer.node_id
            summary = self.nodes.ask(summary_request(self.topic_id), 1, self.coordinator)
            return bool(summary.results[0].partitions[0].error_code == 0)

        wait_until(found, TIMEOUT_S)

    def until_in_sync(self, count: int) -> None:
        request = MetadataRequest([MetadataRequestTopic(name=STATES)])

        def in_sync() -> bool:
            (topic,) = self.nodes.ask(request, 12, self.coordinator).topics
            return len(topic.partitions[0].isr_nodes) == count

        wait_until(in_sync, TIMEOUT_S)

    def ask(self, request: Any, version: int = 0, node: int | None = None) -> Any:
        """The result for the only share partition of the request."""
        answer = self.nodes.ask(request, version, node or self.coordinator)
        return msgspec.to_builtins(answer.results[0].partitions[0])

    def state(self) -> list[Any]:
        return [
            self.ask(read_request(self.topic_id, leader_epoch=-1)),
            self.ask(summary_request(self.topic_id), 1),
        ]

    def everything(self, node: int | None = None) -> list[Any]:
        """The five requests, those that write included."""
        topic_id = self.topic_id
        return [
            self.ask(initialize_request(topic_id, state_epoch=2), node=node),
            self.ask(write_request(topic_id, {0: [(0, 0, AVAILABLE, 9)]}), 1, node),
            self.ask(read_request(topic_id, leader_epoch=8), node=node),
            self.ask(summary_request(topic_id), 1, node),
            self.ask(delete_request(topic_id), node=node),
        ]

    def write(self, first: int, last: int, state: int) -> Any:
        batches = {0: [(first, last, state, 1)]}
        return self.ask(write_request(self.topic_id, batches, complete=last), 1)


def script(nodes: Nodes) -> Iterator[tuple[str, object]]:
    """The steps, each with what both have to answer alike."""
    nodes.create()
    nodes.until(lambda states: all(s.leader > 0 for s in states.values()))
    states = Coordinators(nodes)
    states.find()
    states.until_in_sync(3)
    for node in sorted(nodes.alive - {states.coordinator}):
        yield "not the coordinator", states.everything(node)
    yield "initialized", states.ask(initialize_request(states.topic_id, start=3))
    yield "written", [states.write(n, n + 2, ACKNOWLEDGED) for n in range(3, 9)]
    yield "state", states.state()

    killed = next(node for node in (3, 2) if node != states.coordinator)
    nodes.down(killed, kill=True)
    states.until_in_sync(2)
    yield "short of replicas", states.everything()
    yield "state, short of replicas", states.state()
    nodes.up(killed)
    states.until_in_sync(3)
    yield "back: what was written counts", states.state()
    yield "back: initialized", states.ask(initialize_request(states.topic_id, start=3))
    yield "back: written", states.write(20, 22, ARCHIVED)

    # With two replicas the next coordinator of Kafka may not know that all is replicated.
    former = states.coordinator
    nodes.down(former, kill=True)
    nodes.up(former)
    states.find()
    states.until_in_sync(3)
    yield "next coordinator", states.coordinator != former
    yield "next coordinator: state", states.state()
    yield "next coordinator: everything", states.everything()


@pytest.mark.slow
@pytest.mark.real_kafka
@pytest.mark.xdist_group(SEVERAL_NODES)
def test_share_coordinators_of_three_nodes_answer_alike() -> None:
    """Both scripts run side by side; the first difference is shown with its step."""
    for (step, mine), (_, theirs) in zip(run(ours), run(real), strict=True):
        assert list(differences(theirs, mine)) == [], step


def run(players: Callable[[Mapping[str, str]], Iterator[Nodes]]) -> Iterator[tuple[str, object]]:
    for nodes in players(CONFIGS):
        yield from script(nodes)
