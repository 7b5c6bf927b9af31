"""Replication throttles: a replica that is not in the ISR comes as fast as its brokers allow."""

from __future__ import annotations

import pytest

from mockbroker.core.configs.alter import AlterConfigOp, OpType, alter_incrementally
from mockbroker.core.configs.resources import ConfigResourceType
from tests.support.replicas import Replicas

RECORD_BYTES = 10_000
RECORDS = 40
FETCH_ONE = {"replica.fetch.max.bytes": str(RECORD_BYTES)}
SIDES = ("leader", "follower")


def lagging(**topic_configs: str) -> Replicas:
    """Broker 3 is back and lacks 40 batches of 10 kB, of which a Fetch brings one."""
    node = Replicas(configs=FETCH_ONE, **topic_configs)
    node.cluster.stop_broker(3)
    for _ in range(RECORDS):
        node.sent("x" * RECORD_BYTES)
    return node


def alter(node: Replicas, name: str, value: str, broker: int | str = "") -> None:
    """A dynamic config of one broker, or of all."""
    at = node.cluster.brokers[int(broker or 1)]
    resource = (int(ConfigResourceType.BROKER), str(broker))
    alter_incrementally(
        node.cluster, at, resource, [AlterConfigOp(name, OpType.SET, value)], validate_only=False
    )


def copied(node: Replicas) -> int:
    return node.ends()[3]


def start(node: Replicas) -> None:
    node.cluster.start_broker(3)
    node.settle()


@pytest.mark.parametrize("side", SIDES)
def test_a_throttled_replica_copies_at_the_rate(side: str) -> None:
    """20 kB a second: two batches a second, within the windows of the measurement."""
    node = lagging(**{f"{side}_replication_throttled_replicas": "*"})
    alter(node, f"{side}.replication.throttled.rate", str(2 * RECORD_BYTES))
    start(node)
    assert copied(node) <= 4
    node.advance(10_000)
    assert 15 <= copied(node) <= 25
    assert node.leadership() == (1, 0, [1, 2])
    node.advance(30_000)
    assert node.leadership() == (1, 0, [1, 2, 3])
    assert list(node.cluster.replication.throttled) == [f"{side}.replication.throttled.rate"]


@pytest.mark.parametrize("side", SIDES)
def test_only_listed_replicas_are_throttled(side: str) -> None:
    """The list names the broker that counts: the leader on one side, the follower on the other."""
    other = {"leader": "0:3,0:2", "follower": "0:1,0:2"}[side]
    node = lagging(**{f"{side}_replication_throttled_replicas": other})
    alter(node, f"{side}.replication.throttled.rate", "1")
    start(node)
    assert copied(node) == RECORDS


@pytest.mark.parametrize("side", SIDES)
def test_a_named_replica_is_throttled_by_its_own_broker(side: str) -> None:
    """The rate of one broker holds there and nowhere else."""
    broker = {"leader": 1, "follower": 3}[side]
    node = lagging(**{f"{side}_replication_throttled_replicas": f"0:{broker}"})
    alter(node, f"{side}.replication.throttled.rate", "1", 2)
    start(node)
    assert copied(node) == RECORDS
    node = lagging(**{f"{side}_replication_throttled_replicas": f"0:{broker}"})
    node.cluster.start_broker(3)
    node.cluster.stop_broker(3)
    for _ in range(RECORDS):
        node.sent("y" * RECORD_BYTES)
    before = copied(node)
    node.cluster.start_broker(3)
    alter(node, f"{side}.replication.throttled.rate", "1", broker)
    node.settle()
    node.advance(5_000)
    assert before <= copied(node) < before + RECORDS


def test_a_member_of_the_isr_never_waits() -> None:
    """Acknowledgements depend on it."""
    node = Replicas(
        configs={"mockbroker.replication": "stepwise"},
        leader_replication_throttled_replicas="*",
        follower_replication_throttled_replicas="*",
    )
    for side in SIDES:
        alter(node, f"{side}.replication.throttled.rate", "1")
    for number in range(5):
        assert node.sent("x" * RECORD_BYTES).base_offset == number
    assert node.leadership() == (1, 0, [1, 2, 3])


def test_a_raised_rate_lets_the_replica_come() -> None:
    """The waiting replica asks again after its back-off."""
    node = lagging(follower_replication_throttled_replicas="*")
    alter(node, "follower.replication.throttled.rate", "1")
    start(node)
    node.advance(5_000)
    assert copied(node) < 3
    alter(node, "follower.replication.throttled.rate", "1000000000")
    node.advance(2_000)
    assert node.leadership() == (1, 0, [1, 2, 3])
