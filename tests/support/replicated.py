"""A replicated topic on a running cluster, and a view of its replicas, for tests with clients."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest
from confluent_kafka.admin import PartitionMetadata

from mockbroker import Cluster
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.replication.partition import Partition
from tests.support.librdkafka import TIMEOUT_S, admin_client

T = TypeVar("T")
TOPIC = "r"


class Brokers:
    """Three brokers and topic "r" with one partition, made by `create`."""

    def __init__(self, kafka: Cluster) -> None:
        self.kafka = kafka
        self.bootstrap = kafka.bootstrap_servers

    def create(
        self, replicas: Sequence[int] = (1, 2, 3), topic: str = TOPIC, **configs: str
    ) -> None:
        settings = {name.replace("_", "."): value for name, value in configs.items()}
        self.kafka.call(
            lambda cluster: cluster.create_topic(
                topic, assignments={0: list(replicas)}, configs=settings
            )
        )

    def do(self, action: Callable[[CoreCluster], T]) -> T:
        """Carry out an action in the cluster's thread."""
        return self.kafka.call(action)

    def hold(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.do(lambda c, n=node_id: c.lag_follower(TOPIC, 0, node=n))  # type: ignore[misc]

    def release(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.do(lambda c, n=node_id: c.lag_follower(TOPIC, 0, node=n, release=True))  # type: ignore[misc]

    def partition(self, look: Callable[[Partition], T], topic: str = TOPIC) -> T:
        """What `look` sees of the partition."""
        return self.do(lambda cluster: look(cluster.topics[topic].partitions[0]))

    def ends(self) -> dict[int, int]:
        """Log end offset of each replica."""

        def look(partition: Partition) -> dict[int, int]:
            copies = {node_id: partition.replica(node_id) for node_id in partition.replicas}
            return {node_id: copy.log.end_offset for node_id, copy in copies.items() if copy}

        return self.partition(look)

    def settle(self, topic: str = TOPIC) -> None:
        """Wait until every replica is in sync and shares the leader's log."""
        self.until(
            lambda: self.partition(
                lambda p: len(p.isr) == len(p.replicas) and not p.own_replicas, topic
            )
        )

    def metadata(self, topic: str = TOPIC) -> PartitionMetadata:
        """The partition as a fresh client is told."""
        found = admin_client(self.bootstrap).list_topics(topic, TIMEOUT_S).topics[topic]
        return found.partitions[0]

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait, in real time, until the condition holds; asking the cluster paces the loop."""
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline, "it never came to that"


@pytest.fixture
def brokers(kafka: Cluster) -> Brokers:
    """A view of `kafka` for tests of replication."""
    return Brokers(kafka)
