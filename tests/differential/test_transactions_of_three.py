"""Transactions among three brokers: who may be asked, and what the next coordinator and the next
leader know. The same on ours as on Kafka itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from mockbroker import Cluster
from mockbroker_protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from mockbroker_protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from mockbroker_protocol.messages.describe_transactions import DescribeTransactionsRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.differential.cases.transactions_data import marker
from tests.differential.dialogue import list_offsets
from tests.differential.normalise import Normaliser, load_rules
from tests.differential.session import Exchange, Session
from tests.differential.test_differential import differences
from tests.differential.transacting import (
    READ_COMMITTED,
    TRANSACTION,
    TV1,
    TV2,
    Producer,
    look,
    producers,
    read,
    stable_offset,
)
from tests.support.killed_nodes import NOTICED
from tests.support.real_kafka import SEVERAL_NODES, RealKafka
from tests.support.waiting import wait_until

TIMEOUT_S = 90.0
NODES = (1, 2, 3)
TOPIC = "data"
LEADER, COORDINATOR, GROUP_COORDINATOR = 1, 2, 3
GROUP = 0
KEY = "chosen-key-"
CONFIGS = NOTICED | {
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
}


class Player(NamedTuple):
    """Three nodes, whoever plays them."""

    address: Callable[[int], tuple[str, int]]
    kill: Callable[[int], None]
    start: Callable[[int], None]


class World:
    """A connection to each node, and all that came back over them, in order."""

    def __init__(self, player: Player) -> None:
        self.player = player
        self.exchanges: list[Exchange] = []
        self.sessions: dict[int, Session] = {}
        for node in NODES:
            self.connect(node)

    def connect(self, node: int) -> Session:
        session = Session("three", self.player.address(node), node)
        session.exchanges = self.exchanges
        self.sessions[node] = session
        return session

    def create(self) -> None:
        """A topic on all three, and both internal ones."""
        replicas = [CreatableReplicaAssignment(0, list(NODES))]
        # Records are of 2023 and markers of now: a real broker would begin a new segment.
        configs = [CreatableTopicConfig("segment.ms", str(2**63 - 1))]
        request = CreateTopicsRequest([CreatableTopic(TOPIC, -1, -1, replicas, configs)])
        assert self.sessions[1].quietly(request, 7).topics[0].error_code == 0
        for kind in (GROUP, TRANSACTION):
            wait_until(lambda kind=kind: self.found("any", kind) is not None, TIMEOUT_S)
        self.wait_until_in_sync()

    def found(self, key: str, kind: int) -> int | None:
        """Who coordinates, or None while nobody does."""
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        session = next(iter(self.sessions.values()))
        (coordinator,) = session.quietly(request, 4).coordinators
        ready = coordinator.error_code == 0 and coordinator.node_id in self.sessions
        return int(coordinator.node_id) if ready else None

    def key(self, node: int, kind: int) -> str:
        """A transactional id, or a group, that a node coordinates."""
        keys = (f"{KEY}{n}" for n in itertools.count())
        return next(key for key in keys if self.found(key, kind) == node)

    def wait_until_in_sync(self) -> None:
        """Every partition that is there has three replicas in its ISR, and they are told of."""
        names = [TOPIC, "__consumer_offsets", "__transaction_state"]
        request = MetadataRequest([MetadataRequestTopic(name=name) for name in names])

        def in_sync() -> bool:
            return all(
                len(partition.isr_nodes) == len(NODES) and partition.error_code == 0
                for session in self.sessions.values()
                for topic in session.quietly(request, 12).topics
                for partition in topic.partitions
            )

        wait_until(in_sync, TIMEOUT_S)

    def coordinator_of(self, p: Producer) -> Session:
        """The session with whoever coordinates the id and has read its log."""
        request = DescribeTransactionsRequest(transactional_ids=[p.id])
        sessions: list[Session] = []

        def ready() -> bool:
            node = self.found(p.id, TRANSACTION)
            if node is None:
                return False
            session = self.sessions[node]
            sessions[:] = [session]
            return session.quietly(request, 0).transaction_states[0].error_code == 0

        wait_until(ready, TIMEOUT_S)
        return sessions[0]

    def leader(self) -> Session:
        request = MetadataRequest([MetadataRequestTopic(name=TOPIC)])
        sessions: list[Session] = []

        def ready() -> bool:
            session = next(iter(self.sessions.values()))
            (partition,) = session.quietly(request, 12).topics[0].partitions
            sessions[:] = [s for s in self.sessions.values() if s.node_id == partition.leader_id]
            # Metadata may name a leader that does not know yet.
            ask = list_offsets(TOPIC, -1)
            return any(s.quietly(ask, 7).topics[0].partitions[0].error_code == 0 for s in sessions)

        wait_until(ready, TIMEOUT_S)
        return sessions[0]

    def kill(self, node: int) -> None:
        self.sessions.pop(node).close()
        self.player.kill(node)

    def start(self, node: int) -> None:
        self.player.start(node)
        self.connect(node)
        self.wait_until_in_sync()


@contextmanager
def ours() -> Iterator[Player]:
    with Cluster(brokers=3, node_ids=list(NODES), configs=CONFIGS) as kafka:
        yield Player(
            kafka.endpoint,
            lambda node: kafka.broker(node).stop(how="unclean"),
            lambda node: kafka.broker(node).start(),
        )


@contextmanager
def real() -> Iterator[Player]:
    with RealKafka(brokers=3, configs=CONFIGS) as kafka:
        yield Player(
            lambda node: kafka.addresses[node],
            lambda node: kafka.stop_node(node, kill=True),
            kafka.start_node,
        )


def play(world: World) -> None:
    world.create()
    session = world.sessions[COORDINATOR]
    session.name = world.key(COORDINATOR, TRANSACTION)
    p = Producer(session)
    group = world.key(GROUP_COORDINATOR, GROUP)
    p.init()
    ask_the_wrong_ones(world, p, group)
    lead = world.sessions[LEADER]
    lead.ask(p.produce(TOPIC), 12, label="opens")
    world.sessions[GROUP_COORDINATOR].ask(p.offsets(group, TOPIC), 5, label="offsets")
    describe(p, "open")
    producers(lead, TOPIC, "open")
    the_coordinator_dies(world, p, group)
    the_leader_dies(world, p)


def ask_the_wrong_ones(world: World, p: Producer, group: str) -> None:
    """What is asked of a broker that does not coordinate, or does not lead."""
    for node in (LEADER, GROUP_COORDINATOR):
        other = world.sessions[node]
        other.ask(p.init_request(), 5)
        for version in (1, 3):
            other.ask(p.add(TOPIC), version)
        for verify in (True, False):
            lines = [p.batched(TOPIC, verify=verify)]
            other.ask(AddPartitionsToTxnRequest(transactions=lines), 5)
        other.ask(p.add_offsets(group), 3)
        for version in (TV1, TV2):
            other.ask(p.end(), version)
        other.ask(DescribeTransactionsRequest(transactional_ids=[p.id]), 0)
    for node in (LEADER, COORDINATOR):
        for version in (3, 5):
            world.sessions[node].ask(p.offsets(group, TOPIC), version, label="not the group's")
    for node in (COORDINATOR, GROUP_COORDINATOR):
        follower = world.sessions[node]
        for version in (9, 11):
            follower.ask(p.produce(TOPIC), version, label="not the leader")
        producers(follower, TOPIC, "not the leader")
        follower.ask(marker(TOPIC, p.pid, p.epoch), 1, label="not the leader")


def the_coordinator_dies(world: World, p: Producer, group: str) -> None:
    """In the middle of a transaction; the next one ends it, and has its marker taken."""
    lead = world.sessions[LEADER]
    world.kill(COORDINATOR)
    p.session = world.coordinator_of(p)
    describe(p, "at the next coordinator")
    lead.ask(p.produce(TOPIC, 1), 12, label="goes on")
    old = p.epoch
    p.finish(TV2, label="committed at the next coordinator")
    describe(p, "committed")
    p.session.ask(p.end(epoch=old), TV2, label="a retry")
    producers(lead, TOPIC, "of the next coordinator")
    coordinator_epoch = 0  # before the first one died
    stale = marker(TOPIC, p.pid, p.epoch + 3, coordinator_epoch=coordinator_epoch)
    lead.ask(stale, 1, label="a marker of the dead coordinator")
    settled(world.sessions[GROUP_COORDINATOR], group)
    look(lead, TOPIC, "committed")
    world.start(COORDINATOR)


def settled(session: Session, group: str) -> None:
    """The offset that was committed in the transaction is in force."""
    request = stable_offset(group, TOPIC)
    wait_until(
        lambda: session.quietly(request, 7).topics[0].partitions[0].error_code == 0, TIMEOUT_S
    )
    session.ask(request, 7, label="the group's offset")


def the_leader_dies(world: World, p: Producer) -> None:
    """Its successor has the producer's state from the log: what is open is open there."""
    lead = world.leader()
    lead.ask(p.produce(TOPIC), 12, label="opens another")
    world.kill(lead.node_id)
    lead = world.leader()
    p.session = world.coordinator_of(p)
    producers(lead, TOPIC, "at the next leader")
    lead.ask(p.produce(TOPIC), 12, label="retried at the next leader")
    lead.ask(p.produce(TOPIC, 2), 12, label="a gap at the next leader")
    lead.ask(p.produce(TOPIC, 1), 12, label="goes on at the next leader")
    p.finish(TV2, committed=False, label="aborted")
    describe(p, "aborted")
    # The marker says how often the coordinator has changed: once, or with this leader again.
    for isolation in (0, READ_COMMITTED):
        lead.ask(read(TOPIC, isolation), 12, label=f"aborted {isolation}", edit=without_records)
        lead.ask(list_offsets(TOPIC, -1, isolation=isolation), 7, label=f"aborted {isolation}")


def without_records(answer: Any) -> Any:
    answer.responses[0].partitions[0].records = None
    return answer


def describe(p: Producer, label: str) -> None:
    """What DescribeTransactions says, but for the group's partition, which is drawn otherwise."""

    def edit(answer: Any) -> Any:
        (line,) = answer.transaction_states
        line.transaction_start_time_ms = min(line.transaction_start_time_ms, 0)
        line.transactional_id = ""
        line.topics = sorted(line.topics, key=lambda topic: topic.topic)
        for topic in line.topics:
            topic.partitions = [0 for _ in topic.partitions]
        return answer

    request = DescribeTransactionsRequest(transactional_ids=[p.id])
    p.session.ask(request, 0, label=label, edit=edit)


@pytest.mark.slow
@pytest.mark.real_kafka
@pytest.mark.xdist_group(SEVERAL_NODES)
@pytest.mark.java
@pytest.mark.covers("S243")
def test_three_brokers_answer_about_transactions_as_three_of_kafka() -> None:
    mine, theirs = played(ours), played(real)
    found = list(differences(theirs, mine))
    if found:
        pytest.fail(f"{len(found)} differences:\n" + "\n".join(found[:40]), False)


def played(open_player: Any) -> list[object]:
    with open_player() as player:
        world = World(player)
        try:
            play(world)
        finally:
            for session in world.sessions.values():
                session.close()
    normaliser = Normaliser(load_rules())
    return [without_keys(normaliser.exchange(exchange)) for exchange in world.exchanges]


def without_keys(found: object) -> object:
    """Ids and groups are chosen by who coordinates them, which is drawn."""
    if isinstance(found, dict):
        return {key: without_keys(value) for key, value in found.items()}
    if isinstance(found, list):
        return [without_keys(each) for each in found]
    return "a key" if isinstance(found, str) and found.startswith(KEY) else found
