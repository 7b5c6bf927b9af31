"""Which broker has heard what: metadata on its way from the controller to the brokers.

A broker that hears the controller has the newest image. When it loses the controller it keeps a
frozen copy; when it finds the controller again, it takes the newest image over and applies what has
changed meanwhile. Nothing else tells the two apart: a broker with an old image is a broker like any
other, whose messages to the controller get no answer.

A partition is one object for all images that agree on it. Before the controller changes one, `own`
parts it from the frozen images that have it. The broker that leads keeps the object, because its
log, watermarks and delayed operations belong to it.

Source: BrokerMetadataPublisher, ReplicaManager.applyDelta.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mockbroker.core.replication.replica import FollowerState, Replica
from mockbroker.core.topic import INTERNAL_TOPICS

if TYPE_CHECKING:
    from mockbroker.core.broker import Broker
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.image import Image
    from mockbroker.core.partition import Partition


class MetadataPublisher:
    """The images of one cluster's brokers. `all_hear` while every broker has the newest one."""

    __slots__ = ("_cluster", "all_hear")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.all_hear = True

    def _frozen(self) -> list[Image]:
        """The images that differ from the newest, each once."""
        if self.all_hear:
            return []
        newest = self._cluster.image
        found = {id(b.image): b.image for b in self._cluster.processes.values()}
        return [image for image in found.values() if image is not newest]

    def partitions(self) -> Iterator[Partition]:
        """Every partition object of every image, each once."""
        newest = self._cluster.image
        for topic in list(newest.topics.values()):
            yield from list(topic.partitions)
        seen: set[Partition] = set()
        for image in self._frozen():
            for topic in image.topics.values():
                for partition in list(topic.partitions):
                    if newest.partition_by_id(*partition.key) is partition or partition in seen:
                        continue
                    seen.add(partition)
                    yield partition

    # -- losing the controller ---------------------------------------------------------------------

    def lose(self, brokers: Iterable[Broker]) -> None:
        """Let brokers keep the image that they have; from now on they hear of no change.

        Followers that shared a log with one of them have a replica of their own from now on.
        """
        cluster = self._cluster
        lost = {broker.node_id: broker for broker in brokers}
        if not lost:
            return
        frozen = cluster.image.frozen()
        for broker in lost.values():
            broker.image = frozen
        self.all_hear = False
        for topic in frozen.topics.values():
            for partition in topic.partitions:
                if any(node_id in lost for node_id in partition.replicas):
                    cluster.replication.assignment_changed(partition)

    # -- changing what others know otherwise -------------------------------------------------------

    def own(self, partition: Partition) -> Partition:
        """The newest image's object for a partition, which no frozen image has any longer.

        Where the leader has a frozen image, it keeps the object, and the newest image gets a
        likeness; else the frozen images get one.
        """
        newest = self._cluster.image
        if self.all_hear:
            return partition
        current = newest.partition_by_id(*partition.key)
        if current is None:
            return partition
        holders = self._holders(current)
        if not holders:
            return current
        leader = self._cluster.processes.get(current.leader_id)
        if leader is None or all(leader.image is not image for image in holders):
            for image in holders:
                self._part(current, image)
            return current
        own = dict(current.own_replicas)
        own[leader.node_id] = Replica(leader.node_id, current.log, current.high_watermark)
        likeness = current.likeness(own)
        newest.put(likeness)
        current.own_replicas = self._held_by(current, holders)
        return likeness

    def knows(self, node_id: int, partition: Partition) -> bool:
        """Whether this is the object that a broker's image has of the partition."""
        if self.all_hear:
            return not partition.deleted
        image = self._cluster.image_of(node_id)
        return image.partition_by_id(*partition.key) is partition

    def _holders(self, partition: Partition) -> list[Image]:
        """The frozen images that have this very object."""
        key = partition.key
        return [image for image in self._frozen() if image.partition_by_id(*key) is partition]

    def _held_by(self, partition: Partition, images: list[Image]) -> dict[int, Replica]:
        """The replicas of the brokers that have one of these images."""
        processes = self._cluster.processes
        return {
            node_id: replica
            for node_id, replica in partition.own_replicas.items()
            if node_id in processes and any(processes[node_id].image is image for image in images)
        }

    def _part(self, partition: Partition, image: Image) -> None:
        """Give a frozen image an object of its own, with the replicas of its brokers."""
        image.put(partition.likeness(self._held_by(partition, [image])))

    # -- finding the controller --------------------------------------------------------------------

    def hear(self, broker: Broker) -> None:
        """Let a broker take the newest image over, and apply what has changed meanwhile."""
        former, newest = broker.image, self._cluster.image
        if former is newest:
            return
        broker.image = newest
        self.all_hear = all(b.image is newest for b in self._cluster.processes.values())
        for topic in former.topics.values():
            for partition in list(topic.partitions):
                self._apply(broker, partition)
        for topic in newest.topics.values():
            for partition in topic.partitions:
                created = former.partition_by_id(*partition.key) is None
                if created and partition.leader_id == broker.node_id:
                    partition.begin_epoch(new_leader=True)
                    partition.notify()
        self._cluster.replication.broker_changed(broker.node_id)
        self._tell_coordinators(broker)
        waiting, broker.awaiting_controller = broker.awaiting_controller, {}
        for go in waiting:
            go()

    def _tell_coordinators(self, broker: Broker) -> None:
        """Have the broker's coordinators look after what it leads, and let go of the rest."""
        for name in sorted(INTERNAL_TOPICS):  # in the same order in every process
            topic = broker.image.topics.get(name)
            for partition in topic.partitions if topic else ():
                self._cluster.leader_changed(partition)

    def _apply(self, broker: Broker, known: Partition) -> None:
        """Let the broker believe what the newest image says of a partition that it knew."""
        node_id, newest = broker.node_id, self._cluster.image
        current = newest.partition_by_id(*known.key)
        if current is known:
            return
        led = known.leader_id == node_id
        if led:
            for image in self._holders(known):
                self._part(known, image)
        if current is None:
            if led:
                known.delete()
        elif led and (current.leader_id, current.leader_epoch) == (node_id, known.leader_epoch):
            self._lead_on(known, current)
        elif node_id in current.replicas:
            self._bring_log(node_id, known, current)
        if led and current is not None and newest.partition_by_id(*known.key) is not known:
            known.take_metadata(current)
            known.notify()
            known.deleted = True
            self._cluster.replication.forget(known)

    def _lead_on(self, known: Partition, current: Partition) -> None:
        """The leader leads under the same epoch: its object is everybody's again."""
        node_id, now_ms = known.leader_id, self._cluster.now_ms()
        known.take_metadata(current)
        known.own_replicas = {n: r for n, r in current.own_replicas.items() if n != node_id}
        followers = known.followers
        known.followers = {
            n: followers.get(n) or FollowerState.unknown(n, in_sync=n in known.isr, now_ms=now_ms)
            for n in known.own_replicas
        }
        self._cluster.image.put(known)
        current.deleted = True
        current.notify()
        if known.advance_high_watermark():
            known.notify()

    def _bring_log(self, node_id: int, known: Partition, current: Partition) -> None:
        """What the broker has in its log is what its replica is."""
        if known.leader_id == node_id:
            current.own_replicas[node_id] = Replica(node_id, known.log, known.high_watermark)
        if current.leader_id == node_id:
            current.begin_epoch(new_leader=True)
            current.notify()
