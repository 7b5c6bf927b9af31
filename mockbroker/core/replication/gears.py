"""Which followers share the leader's log, and which have a copy of their own to keep up.

Replication has two gears. In the first, a follower is nothing but the leader's log: it has every
record the moment the leader has it, at no cost. In the second it has a copy, fetches over the
network between brokers, and hears of the high watermark one fetch late. A follower is put into the
second gear by whatever may keep it from being caught up: its broker is down or paused, the way to
the leader is cut or slow, a rule holds it or lets it lag, its directory is gone, it has just been
added, or the cluster runs with `mockbroker.replication=stepwise`. It returns to the first when it
has caught up and nothing of that is left.

With no follower in the second gear an append does nothing here at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.broker_life import RUNNING
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.partition import NO_LEADER, Partition
from mockbroker.core.replication.network import Network
from mockbroker.core.replication.partition import PartitionReplication
from mockbroker.core.replication.replica import NEVER, Replica

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mockbroker.core.cluster import Cluster

STEPWISE = "stepwise"


class Replication:
    """The replicas of one cluster, and the network that they fetch over."""

    __slots__ = ("_cluster", "_geared", "_held", "_lag_ms", "_limited", "_stepwise", "network")

    def __init__(self, cluster: Cluster, network: Network | None = None) -> None:
        self._cluster = cluster
        self.network = network or Network(cluster.timers, cluster.now_ms)
        self._geared: dict[Partition, PartitionReplication] = {}
        self._stepwise: bool = cluster.config("mockbroker.replication") == STEPWISE
        # Rules: followers that do not fetch, and those that get answers late.
        self._held: set[tuple[Partition, int]] = set()
        self._lag_ms: dict[tuple[Partition, int], int] = {}
        self._limited: set[Partition] = set()  # those whose high watermark is held

    # -- what is possible --------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Whether everything that is written is on every replica at once."""
        return not self._geared and not self._limited

    @property
    def is_stepwise(self) -> bool:
        """Whether every follower has a copy of its own, always."""
        return self._stepwise

    def is_running(self, node_id: int) -> bool:
        """Whether the process of a broker is there and not paused."""
        broker = self._cluster.brokers.get(node_id)
        return broker is not None and broker.state == RUNNING

    def may_be_in_sync(self, partition: Partition, node_id: int) -> bool:
        """Whether the controller would take a broker into the ISR (KIP-841)."""
        broker = self._cluster.brokers.get(node_id)
        return broker is not None and broker.active and broker.log_dirs.has(partition)

    def can_fetch(self, partition: Partition, node_id: int) -> bool:
        """Whether a follower can ask its leader: both run, and both ways between them are up."""
        leader_id = partition.leader_id
        return (
            self.is_running(leader_id)
            and self.is_running(node_id)
            and self.network.is_up(node_id, leader_id)
            and self.network.is_up(leader_id, node_id)
            and (partition, node_id) not in self._held
            and node_id not in self._cluster.isolation
            and self._cluster.brokers[node_id].log_dirs.has(partition)
            and self._cluster.brokers[leader_id].log_dirs.has(partition)
        )

    def needs_own_copy(self, partition: Partition, node_id: int) -> bool:
        """Whether a follower has to be in the second gear."""
        if partition.leader_id == NO_LEADER:
            return False  # nothing is appended: the last leader's log is as good as a copy
        return (
            self._stepwise
            or node_id not in partition.isr
            or not self.is_running(node_id)
            or not self.network.is_direct(node_id, partition.leader_id)
            or (partition, node_id) in self._held
            or (partition, node_id) in self._lag_ms
            or not self._cluster.brokers[node_id].log_dirs.has(partition)
        )

    def lag_ms(self, partition: Partition, node_id: int) -> int:
        """How late a follower gets its leader's answers, by rule."""
        return self._lag_ms.get((partition, node_id), 0)

    # -- rules -------------------------------------------------------------------------------------

    def hold(self, partition: Partition, node_id: int) -> None:
        """Let a follower fetch no more until it is released."""
        self._held.add((partition, node_id))
        self.assignment_changed(partition)

    def lag(self, partition: Partition, node_id: int, by_ms: int) -> None:
        """Let a follower get every answer of its leader `by_ms` late until it is released."""
        self._lag_ms[partition, node_id] = by_ms
        self.assignment_changed(partition)

    def release(self, partition: Partition, node_id: int) -> None:
        """No rule holds the follower back any more."""
        self._held.discard((partition, node_id))
        self._lag_ms.pop((partition, node_id), None)
        self.assignment_changed(partition)

    def drop_rules(self) -> None:
        """No rule is in force any more. For clusters whose partitions are all gone."""
        self._held.clear()
        self._lag_ms.clear()
        self._limited.clear()
        self.network.heal()

    def limit(self, partition: Partition, offset: int) -> None:
        """Let the high watermark not go beyond `offset`."""
        partition.high_watermark_limit = offset
        self._limited.add(partition)

    def unlimit(self, partition: Partition) -> None:
        """Let the high watermark go to where it belongs."""
        partition.high_watermark_limit = None
        self._limited.discard(partition)
        if partition.advance_high_watermark():
            partition.notify()

    # -- changes -----------------------------------------------------------------------------------

    def partitions_created(self, partitions: Iterable[Partition]) -> None:
        """New partitions: a broker that is not there has no more than an empty copy."""
        several_dirs = len(next(iter(self._cluster.brokers.values())).log_dirs.paths) > 1
        for partition in partitions:
            if several_dirs:
                for node_id in partition.replicas:
                    self._cluster.brokers[node_id].log_dirs.place_of(partition)
            if self._stepwise or len(partition.isr) < len(partition.replicas):
                self.assignment_changed(partition)

    def replace_replicas(self, partition: Partition, replicas: list[int]) -> None:
        """Let other brokers hold the partition: newcomers start empty, leavers lose their copy."""
        former, partition.replicas = partition.replicas, replicas
        for node_id in former:
            if node_id not in replicas:
                partition.own_replicas.pop(node_id, None)
                self._held.discard((partition, node_id))
                self._lag_ms.pop((partition, node_id), None)
                broker = self._cluster.brokers.get(node_id)
                if broker is not None:
                    broker.log_dirs.forget(partition)
        for node_id in replicas:
            if node_id not in former:
                partition.own_replicas[node_id] = Replica(node_id, ReplicaLog(), 0, NEVER)

    def assignment_changed(self, partition: Partition) -> None:
        """The leader, the ISR, the replicas or a rule changed: let followers fetch or stop."""
        now_ms = self._cluster.now_ms()
        if self._cluster.recorder is not None:
            self._cluster.recorder.partition_changed(partition)
        for node_id in partition.replicas:
            if (
                node_id != partition.leader_id
                and node_id not in partition.own_replicas
                and self.needs_own_copy(partition, node_id)
            ):
                replica = Replica(node_id, partition.log.fork(), partition.high_watermark, now_ms)
                partition.own_replicas[node_id] = replica
        geared = self._geared.get(partition)
        if geared is None:
            if not partition.own_replicas:
                return
            geared = self._geared[partition] = PartitionReplication(self._cluster, partition)
        geared.reconcile()

    def let_go(self, partition: Partition) -> None:
        """A follower went back to the first gear; with the last one there is nothing left to do."""
        if self._cluster.recorder is not None:
            self._cluster.recorder.partition_changed(partition)
        if not partition.own_replicas:
            self.forget(partition)

    def forget(self, partition: Partition) -> None:
        """The partition is gone, or is in the first gear altogether."""
        if partition.deleted:
            self._limited.discard(partition)
        geared = self._geared.pop(partition, None)
        if geared is not None:
            geared.close()

    def broker_changed(self, node_id: int) -> None:
        """A broker, or the way to it, came or went."""
        for topic in list(self._cluster.topics.values()):
            for partition in topic.partitions:
                if node_id in partition.replicas:
                    self.assignment_changed(partition)

    def links_changed(self) -> None:
        """Ways between brokers were cut, slowed down or healed."""
        for topic in list(self._cluster.topics.values()):
            for partition in topic.partitions:
                if len(partition.replicas) > 1:
                    self.assignment_changed(partition)
