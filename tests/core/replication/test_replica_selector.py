"""The replica that a consumer is sent to by its rack (KIP-392)."""

from __future__ import annotations

import pytest

from mockbroker.core.replication.replica_selector import RACK_AWARE, preferred_replica
from tests.support.requests import Node, batch_of

BY_RACK = {"replica.selector.class": RACK_AWARE}
RACKS = ("a", "b", "b", "c")


def led_by_1(configs: dict[str, str] | None = None) -> Node:
    """Broker 1 leads in rack a; 2 and 3 follow in b, 4 in c. There are two records."""
    node = Node(racks=RACKS, configs=BY_RACK if configs is None else configs)
    node.topic().append_records(batch_of(b"1", b"2"), node.now_ms)
    return node


def preferred(node: Node, rack_id: str, offset: int = 1) -> int:
    partition = node.cluster.topics["t"].partitions[0]
    return preferred_replica(node.cluster, partition, rack_id, offset)


@pytest.mark.parametrize(
    ("rack_id", "node_id"), [("a", -1), ("b", 3), ("c", 4), ("d", -1), ("", -1)]
)
def test_a_consumer_goes_to_a_replica_of_its_rack_and_else_to_the_leader(
    rack_id: str, node_id: int
) -> None:
    assert preferred(led_by_1(), rack_id) == node_id


def test_without_a_selector_by_racks_consumers_stay_at_the_leader() -> None:
    assert preferred(led_by_1({}), "b") == -1


@pytest.mark.parametrize("offset", [0, 1, 2, 3])
def test_a_replica_is_preferred_while_it_has_the_offset(offset: int) -> None:
    node = led_by_1()
    node.cluster.topics["t"].partitions[0].delete_records(1)
    assert preferred(node, "c", offset) == (4 if 1 <= offset <= 2 else -1)


def test_the_replica_with_the_furthest_log_end_by_the_leaders_knowledge_is_preferred() -> None:
    node = led_by_1()
    node.cluster.lag_follower("t", 0, node=3)
    assert preferred(node, "b", 2) == 3
    partition = node.cluster.topics["t"].partitions[0]
    partition.append_records(batch_of(b"3"), node.now_ms, acks=1)
    assert (preferred(node, "b", 2), preferred(node, "b", 3)) == (2, 2)
    partition.delete_records(2)
    assert partition.followers[3].fetched_log_start == 0
    assert preferred(node, "b", 1) == 3


def test_neither_a_fenced_replica_nor_one_outside_of_the_isr_is_preferred() -> None:
    node = led_by_1()
    node.cluster.brokers[4].fenced = True
    assert preferred(node, "c") == -1
    node.cluster.topics["t"].partitions[0].set_isr([1, 2, 4])
    assert preferred(node, "b") == 2


def test_a_replica_whose_broker_has_left_the_cluster_is_not_preferred() -> None:
    node = led_by_1()
    del node.cluster.image.brokers[4]
    assert preferred(node, "c") == -1
