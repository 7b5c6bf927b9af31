"""What a share consumer hears of the leaders of three brokers: hints, sessions, what a new leader
hands out again, and what is said where nobody leads. The same on ours as on Kafka itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import pytest

from mockbroker.client.connection import Connection
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from mockbroker_protocol.messages.share_fetch import ShareFetchRequest
from tests.differential.cases.consumer_groups import GROUP_RESOURCE
from tests.differential.cases.share_groups import beat
from tests.differential.sharing import ACCEPT, RELEASE, Wanted, ack_topic, fetch_topic
from tests.differential.test_broker_life import (
    BROKER_CONFIGS,
    PREFERRED,
    TIMEOUT_S,
    Nodes,
    ours,
    real,
)
from tests.differential.test_differential import differences
from tests.support.real_kafka import SEVERAL_NODES
from tests.support.waiting import wait_until

GROUP, MEMBER = "g", "m"
TOPICS = ("spread", "alone")
CONFIGS = BROKER_CONFIGS | {
    "group.share.assignment.interval.ms": "0",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # Each waits for the other between two steps, while what it has handed out stays locked.
    "group.share.record.lock.duration.ms": "600000",
    "group.share.max.record.lock.duration.ms": "600000",
}


class Consumer:
    """A member of a share group, with a connection and a share session at each broker."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.member = MEMBER
        self.ids: dict[str, bytes] = {}
        self._connections: dict[int, Connection] = {}
        self._epochs: dict[int, int] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def join(self) -> None:
        """Read from the start, and wait until every share partition is initialized."""
        earliest = AlterableConfig("share.auto.offset.reset", 0, "earliest")
        resource = AlterConfigsResource(GROUP_RESOURCE, GROUP, [earliest])
        answer = self.nodes.ask(IncrementalAlterConfigsRequest([resource]), 1)
        assert answer.responses[0].error_code == 0
        asked = MetadataRequest([MetadataRequestTopic(name=name) for name in TOPICS])
        self.ids = {topic.name: topic.topic_id for topic in self.nodes.ask(asked, 12).topics}

        def has_both() -> bool:
            find = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
            (found,) = self.nodes.ask(find, 6).coordinators
            if found.error_code:
                return False
            joining = beat(GROUP, MEMBER, 0, *TOPICS)
            answer = self.nodes.ask(joining, 1, found.node_id)
            lines = answer.assignment.topic_partitions if answer.assignment else []
            return len(lines) == len(TOPICS)

        wait_until(has_both, TIMEOUT_S)

    def fetch(self, node: int, topic: str, wanted: Wanted, epoch: int | None = None) -> Any:
        """What a broker answers; None for an epoch is the session's next one."""
        request = ShareFetchRequest(
            group_id=GROUP,
            member_id=self.member,
            share_session_epoch=self._next(node, epoch),
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=500,
            batch_size=500,
            topics=[fetch_topic(self.ids[topic], wanted)],
        )
        return self._told(self._connection(node).send(request, 2))

    def acknowledge(self, node: int, topic: str, wanted: Wanted, epoch: int | None = None) -> Any:
        request = ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=self.member,
            share_session_epoch=self._next(node, epoch),
            topics=[ack_topic(self.ids[topic], wanted)],
        )
        return self._told(self._connection(node).send(request, 2))

    def until_acquired(self, node: int, topic: str) -> Any:
        """Open a session again and again until the partition has records to hand out.

        A broker hears of its leadership, and reads the state, a moment after the metadata has it.
        """
        answers: list[Any] = []

        def acquired() -> bool:
            answers[:] = [self.fetch(node, topic, {0: []}, epoch=0)]
            return any(
                partition["acquired_records"]
                for row in answers[0]["responses"]
                for partition in row["partitions"]
            )

        wait_until(acquired, TIMEOUT_S)
        return answers[0]

    def _next(self, node: int, epoch: int | None) -> int:
        given = self._epochs.get(node, 0) if epoch is None else epoch
        self._epochs[node] = given + 1
        return given

    def _connection(self, node: int) -> Connection:
        if node not in self._connections:
            self._connections[node] = Connection(
                *self.nodes.address(node), "differ", timeout_s=TIMEOUT_S
            )
        return self._connections[node]

    def forget(self, node: int) -> None:
        """End the connection, and the session with it."""
        self._connections.pop(node).close()

    def _told(self, answer: Any) -> Any:
        """The answer without what each peer draws: addresses, topic ids and record bytes."""
        told = msgspec.to_builtins(answer)
        told["node_endpoints"] = sorted(line["node_id"] for line in told["node_endpoints"])
        for row in told["responses"]:
            row.pop("topic_id")
            for partition in row["partitions"]:
                if "records" in partition:
                    partition["records"] = bool(partition["records"])
        return told


def script(nodes: Nodes, consumer: Consumer) -> Iterator[tuple[str, object]]:
    """The steps, each with what both have to answer alike."""
    nodes.create()
    for topic in TOPICS:
        nodes.until_heard(topic, 0)
    nodes.produce("spread", 1, -1, *"abcdef")
    nodes.produce("alone", 2, -1, "a", "b")
    nodes.until_heard("spread", 6)
    consumer.join()

    first = consumer.until_acquired(1, "spread")
    yield "acquired at the leader", first
    for node in (2, 3):
        yield f"fetch at {node}", consumer.fetch(node, "spread", {0: []}, epoch=0)
        yield "with its session", consumer.fetch(node, "spread", {0: []})
        accept: Wanted = {0: [(0, 1, [ACCEPT])]}
        yield "acknowledges in a fetch", consumer.fetch(node, "spread", accept)
        yield "acknowledges", consumer.acknowledge(node, "spread", accept)
    yield "two of six", consumer.acknowledge(1, "spread", {0: [(0, 1, [ACCEPT])]})
    yield "one back", consumer.acknowledge(1, "spread", {0: [(2, 2, [RELEASE])]})

    nodes.down(1, kill=True)
    consumer.forget(1)
    leader = nodes.states()["spread"].leader
    yield "the next leader", leader
    consumer.member = "another"
    yield "no session", consumer.fetch(leader, "spread", {0: []}, epoch=4)
    yield (
        "no session to acknowledge",
        consumer.acknowledge(leader, "spread", {0: [(3, 3, [ACCEPT])]}, epoch=5),
    )
    consumer.member = MEMBER
    yield "acquired at the next leader", consumer.until_acquired(leader, "spread")
    yield "another one", consumer.acknowledge(leader, "spread", {0: [(3, 3, [ACCEPT])]})

    nodes.up(1)
    yield "handed back", nodes.elect(PREFERRED, "spread")
    nodes.until(lambda states: states["spread"].leader == 1)
    wait_until(lambda: hinted(consumer.fetch(leader, "spread", {0: []}, epoch=0)) == 1, TIMEOUT_S)
    yield "fetch at the former leader", consumer.fetch(leader, "spread", {0: []})
    yield "acknowledges there", consumer.acknowledge(leader, "spread", {0: [(4, 4, [ACCEPT])]})
    yield "acquired at the first", consumer.until_acquired(1, "spread")

    yield "another leader", consumer.fetch(1, "alone", {0: []})
    nodes.down(2, kill=True)
    wait_until(lambda: hinted(consumer.fetch(1, "alone", {0: []}, epoch=0)) == -1, TIMEOUT_S)
    yield "no leader", consumer.fetch(1, "alone", {0: []})
    yield "no leader: acknowledges", consumer.acknowledge(1, "alone", {0: [(0, 0, [ACCEPT])]})

    yield "one replica less", nodes.reassign("spread", [1, 3])
    nodes.until(lambda states: nodes.offsets("spread", 1)[2] == states["spread"].epoch)
    yield "the same leader in a new epoch", nodes.states()["spread"]
    nodes.produce("spread", 1, -1, "g")
    yield "acquired in the new epoch", consumer.until_acquired(1, "spread")
    nodes.produce("spread", 1, -1, "h")
    yield "without the next record", nodes.delete_all("spread", 1)
    for again in range(3):
        yield f"below the log start, {again}", consumer.fetch(1, "spread", {0: []})


def hinted(answer: Any) -> int:
    """The leader that a fetch of one partition names."""
    leader: int = answer["responses"][0]["partitions"][0]["current_leader"]["leader_id"]
    return leader


@pytest.mark.slow
@pytest.mark.real_kafka
@pytest.mark.xdist_group(SEVERAL_NODES)
def test_leaders_of_three_brokers_answer_share_consumers_alike() -> None:
    """The first difference is shown with its step."""
    for (step, mine), (_, theirs) in zip(run(ours), run(real), strict=True):
        assert list(differences(theirs, mine)) == [], step


def run(players: Callable[[Mapping[str, str]], Iterator[Nodes]]) -> Iterator[tuple[str, object]]:
    for nodes in players(CONFIGS):
        consumer = Consumer(nodes)
        try:
            yield from script(nodes, consumer)
        finally:
            consumer.close()
