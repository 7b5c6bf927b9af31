"""Automatic elections of preferred leaders, and of leaders for leaderless partitions."""

from __future__ import annotations

import pytest

from mockbroker.core.brokers.broker import BrokerSpec
from mockbroker.core.cluster import Cluster
from mockbroker.core.events import LeaderChanged, PreferredElectionFailed
from mockbroker.core.replication.leader_balance import imbalance
from tests.support.replicas import Replicas
from tests.support.requests import Node

INTERVAL_MS = 300_000


@pytest.mark.covers("S72")
def test_a_broker_that_comes_back_leads_again_after_the_next_check():
    """A produced record alone changes nothing; the check does, under the next epoch."""
    node = Replicas()
    node.cluster.stop_broker(1, "unclean")
    node.cluster.start_broker(1)
    node.sent("a")
    node.advance(INTERVAL_MS - 1)
    assert node.leadership() == (2, 1, [1, 2, 3])
    node.advance(1)
    assert node.leadership() == (1, 2, [1, 2, 3])
    deadline = node.cluster.runtime.timers.deadline_ms()
    assert deadline is None or deadline != node.now_ms + INTERVAL_MS


def test_without_automatic_balance_leaders_stay():
    node = Replicas(configs={"auto.leader.rebalance.enable": "false"})
    node.cluster.move_leader("t", 0, 3)
    node.advance(3 * INTERVAL_MS)
    assert node.partition.leader_id == 3


def test_the_interval_is_configurable():
    node = Replicas(configs={"leader.imbalance.check.interval.seconds": "2"})
    node.cluster.move_leader("t", 0, 3)
    node.advance(2000)
    assert node.partition.leader_id == 1


class Imbalance(Node):
    """Brokers 0 to 2; broker 2 is preferred for 39 partitions and leads all but some."""

    def __init__(self, missing: int, kafka_version: str) -> None:
        super().__init__()
        specs = [BrokerSpec(node_id) for node_id in range(3)]
        self.cluster = Cluster(
            specs, seed=1, now_ms=lambda: self.now_ms, kafka_version=kafka_version
        )
        lost = [("T-TEST-SNP", 2), ("T-TEST", 0), ("T-TRADE-SNP", 2), ("T-TRADE", 1)]
        self.lost = [*lost, ("T-CAPTURE", 1)][:missing]
        for name in ("T-TEST-SNP", "T-TEST", "T-TRADE-SNP", "T-TRADE", "T-CAPTURE"):
            self.cluster.create_topic(name, assignments={i: [2, 0, 1] for i in range(3)})
        self.cluster.create_topic("other", assignments={i: [2, 1, 0] for i in range(24)})
        self.elected: list[tuple[str, int]] = []
        for name, index in self.lost:
            self.cluster.move_leader(name, index, 0)
        self.cluster.runtime.on_event.append(self._note)

    def _note(self, event: object) -> None:
        if isinstance(event, LeaderChanged):
            self.elected.append((event.topic, event.partition))


@pytest.mark.covers("S66")
def test_a_broker_leads_its_partitions_again_when_more_than_a_tenth_is_missing():
    """5 of 39, a share of 0.1282051282051282, as the log of a broker before KRaft has it."""
    node = Imbalance(5, "2.8")
    missing, preferred = imbalance(node.cluster.image)[2]
    assert missing / preferred == 0.1282051282051282
    node.advance(INTERVAL_MS)
    assert sorted(node.elected) == sorted(node.lost)
    assert imbalance(node.cluster.image) == {2: (0, 39)}


@pytest.mark.covers("S66")
@pytest.mark.parametrize(("version", "moved"), [("2.8", 0), ("4.3", 3)])
def test_less_than_a_tenth_is_ignored_before_kraft(version, moved):
    """3 of 39; a 4.x controller knows no such share and brings every leader back."""
    node = Imbalance(3, version)
    node.advance(INTERVAL_MS)
    assert len(node.elected) == moved


@pytest.mark.covers("S67")
def test_a_preferred_election_that_fails_leaves_the_leader_in_charge():
    """The preferred broker 2 is out of sync, and the leader 0 dead, though nobody noticed yet."""
    node = Node()
    node.cluster = Cluster(
        [BrokerSpec(n) for n in range(3)],
        {"leader.imbalance.check.interval.seconds": "5"},
        seed=1,
        now_ms=lambda: node.now_ms,
    )
    (partition,) = node.cluster.create_topic("T-TEST", assignments={0: [2, 0]}).partitions
    node.cluster.move_leader("T-TEST", 0, 0)
    node.cluster.shrink_isr("T-TEST", 0, nodes=[2])
    events: list[object] = []
    node.cluster.runtime.on_event.append(events.append)
    node.cluster.stop_broker(0, "unclean", fence_after_ms=9000)
    node.advance(5000)
    failed = [event for event in events if isinstance(event, PreferredElectionFailed)]
    assert failed == [PreferredElectionFailed(node.now_ms, "T-TEST", 0, 2, 0)]
    assert partition.leader_id == 0
    node.advance(4000)
    assert (partition.leader_id, partition.isr) == (-1, [])


def test_a_topic_that_allows_unclean_elections_later_gets_a_leader_at_the_next_check():
    """As when another broker is unfenced; a change of the config alone elects nobody."""
    node = Replicas()
    node.cluster.shrink_isr("t", 0, nodes=[2, 3])
    node.cluster.stop_broker(1, "unclean")
    configs = {"unclean.leader.election.enable": "true"}
    node.cluster.replace_topic_configs(node.partition.topic, configs)
    node.advance(INTERVAL_MS - 1)
    assert node.partition.leader_id == -1
    node.advance(1)
    assert node.leadership() == (2, 2, [2])


def test_a_topic_that_allows_unclean_elections_later_gets_a_leader_with_the_next_broker():
    node = Replicas()
    node.cluster.stop_broker(3)
    node.cluster.shrink_isr("t", 0, nodes=[2])
    node.cluster.stop_broker(1, "unclean")
    configs = {"unclean.leader.election.enable": "true"}
    node.cluster.replace_topic_configs(node.partition.topic, configs)
    node.cluster.start_broker(3)
    assert node.leadership() == (2, 2, [2])


def test_a_preferred_leader_that_is_not_in_sync_yet_is_elected_at_a_later_check():
    node = Replicas()
    node.cluster.stop_broker(1, "unclean")
    node.advance(INTERVAL_MS)
    assert node.leadership()[0] == 2
    node.cluster.start_broker(1)
    node.advance(INTERVAL_MS)
    assert node.leadership() == (1, 2, [1, 2, 3])


def test_no_unclean_election_is_scheduled_while_each_partition_has_a_leader():
    node = Replicas(configs={"unclean.leader.election.interval.ms": "1234"})
    node.cluster.move_leader("t", 0, 3)
    assert node.cluster.runtime.timers.deadline_ms() != node.now_ms + 1234


def test_a_partition_that_stays_leaderless_is_looked_at_again_at_each_later_check():
    node = Replicas(configs={"leader.imbalance.check.interval.seconds": "86400"})
    node.cluster.shrink_isr("t", 0, nodes=[2, 3])
    node.cluster.stop_broker(1, "unclean")
    node.advance(INTERVAL_MS)
    assert node.partition.leader_id == -1
    configs = {"unclean.leader.election.enable": "true"}
    node.cluster.replace_topic_configs(node.partition.topic, configs)
    node.advance(INTERVAL_MS)
    assert node.leadership() == (2, 2, [2])
