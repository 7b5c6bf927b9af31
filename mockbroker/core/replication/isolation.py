"""Which brokers have lost the controller, and what becomes of them.

When links between brokers are cut, the largest group of brokers that still reach each other keeps
the controller; of equal groups the one that had it. A broker outside that cannot reach the
controller is *isolated*: its session expires and it is fenced, its partitions get other leaders,
and it goes on in a world of its own (see `isolated_cluster`). When it is back, it is a follower
like any other: what it took meanwhile is cut off its logs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mockbroker.core.broker import Broker
from mockbroker.core.broker_life import STOPPED
from mockbroker.core.partition import NO_LEADER, Partition
from mockbroker.core.replication.replica import Replica

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.replication.isolated_cluster import IsolatedCluster


class Isolation:
    """The worlds of isolated brokers, by broker."""

    __slots__ = ("_cluster", "_worlds")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._worlds: dict[int, IsolatedCluster] = {}

    def __contains__(self, node_id: int) -> bool:
        return node_id in self._worlds

    def links_changed(self, fence_after_ms: int) -> None:
        """Some links went down or came up: see who has lost or found the controller."""
        cluster = self._cluster
        alive = [b.node_id for b in cluster.brokers.values() if b.state != STOPPED]
        self._seat_controller(alive)
        lost = [node_id for node_id in alive if not self.reaches_controller(node_id)]
        for node_id in [n for n in self._worlds if n not in lost]:
            self._come_back(cluster.brokers[node_id])
        self._isolate([cluster.brokers[n] for n in lost if n not in self._worlds], fence_after_ms)
        cluster.replication.links_changed()

    def reaches_controller(self, node_id: int) -> bool:
        """Whether a broker and the controller can talk to each other."""
        network = self._cluster.replication.network
        controller_id = self._cluster.controller_id
        return node_id == controller_id or (
            network.is_up(node_id, controller_id) and network.is_up(controller_id, node_id)
        )

    def _seat_controller(self, alive: list[int]) -> None:
        """Let the largest group have the controller."""
        groups = self._groups(alive)
        controller = self._cluster.controller
        if groups:
            size = max(map(len, groups))
            largest = [group for group in groups if len(group) == size]
            if all(controller.node_id not in group for group in largest):
                controller.take_over(min(largest[0]))

    def _groups(self, alive: list[int]) -> list[set[int]]:
        """The brokers in groups that reach each other, directly or over others."""
        network = self._cluster.replication.network
        rest = set(alive)
        groups = []
        while rest:
            group: set[int] = set()
            found = {min(rest)}
            while found:
                rest -= found
                group |= found
                found = {
                    other
                    for node_id in found
                    for other in rest
                    if network.is_up(node_id, other) and network.is_up(other, node_id)
                }
            groups.append(group)
        return groups

    # -- leaving -----------------------------------------------------------------------------------

    def _isolate(self, brokers: list[Broker], fence_after_ms: int) -> None:
        if not brokers:
            return
        from mockbroker.core.replication.isolated_cluster import IsolatedCluster

        world = IsolatedCluster(self._cluster, brokers)
        for broker in brokers:
            self._worlds[broker.node_id] = world
            broker.look_at(world)
        world.begin()
        for broker in brokers:
            self._cluster.controller.lose(broker, fence_after_ms)

    # -- coming back -------------------------------------------------------------------------------

    def leave_world(self, broker: Broker) -> None:
        """The broker's process ends: what it has in its logs is what it will start with."""
        if broker.node_id in self._worlds:
            self._bring_home(broker)

    def _come_back(self, broker: Broker) -> None:
        self._bring_home(broker)
        self._cluster.controller.find(broker)

    def _bring_home(self, broker: Broker) -> None:
        world = self._worlds.pop(broker.node_id)
        broker.look_at(self._cluster)
        for topic in world.topics.values():
            for twin in topic.partitions:
                if broker.node_id in twin.replicas:
                    self._bring_log_home(broker.node_id, twin)

    def _bring_log_home(self, node_id: int, twin: Partition) -> None:
        """Let the broker's copy in the real cluster be what it has become meanwhile."""
        real = self._cluster.partition_by_id(twin.topic.topic_id, twin.index)
        copy = twin.replica(node_id)
        assert copy is not None
        log, high_watermark = copy.log.fork(), copy.high_watermark
        if real is None or node_id not in real.replicas:
            twin.delete()
            return
        if real.leader_id == node_id:
            real.own_replicas[node_id] = Replica(node_id, log, high_watermark)
            real.switch_log(node_id)
            real.log.epochs.assign(real.leader_epoch, real.leader_epoch_start_offset)
        elif real.leader_id != NO_LEADER or node_id in real.own_replicas:
            real.own_replicas[node_id] = Replica(node_id, log, high_watermark)
        _Echo(twin).partition_changed(real)


class _Echo:
    """Lets those who wait at a partition of a world that is no more hear of the real one."""

    __slots__ = ("_twin",)

    def __init__(self, twin: Partition) -> None:
        self._twin = twin

    def partition_changed(self, partition: Partition) -> None:
        """The real partition's watcher, until nobody waits any more."""
        twin = self._twin
        twin.leader_id, twin.leader_epoch = partition.leader_id, partition.leader_epoch
        twin.isr, twin.deleted = partition.isr, partition.deleted
        twin.own_replicas = partition.own_replicas
        twin.adopt(partition.log, partition.high_watermark)
        twin.notify()
        if twin.watched:
            partition.watch(self)
        else:
            partition.unwatch(self)


def links_between(
    left: Iterable[int], right: Iterable[int], *, both_ways: bool
) -> set[tuple[int, int]]:
    """The links from each broker on one side to each on the other."""
    left, right = set(left), set(right)
    links = {(a, b) for a in left for b in right if a != b}
    return links | {(b, a) for a, b in links} if both_ways else links
