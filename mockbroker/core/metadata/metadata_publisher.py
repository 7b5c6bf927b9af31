"""Publishes metadata images from the controller to the brokers.

A broker that reaches the controller has the newest image. A broker that loses the controller keeps
a frozen copy. When it reaches the controller again, it takes over the newest image and applies the
changes. A broker with an old image otherwise works like any other, but the controller does not
answer it.

Source: BrokerMetadataPublisher, ReplicaManager.applyDelta.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from mockbroker.core.metadata.topic import (
    GROUP_METADATA_TOPIC,
    INTERNAL_TOPICS,
    SHARE_GROUP_STATE_TOPIC,
)
from mockbroker.core.replication.replica import FollowerState, Replica

if TYPE_CHECKING:
    from mockbroker.core.brokers.broker import Broker
    from mockbroker.core.metadata.image import MetadataImage
    from mockbroker.core.metadata.metadata_cache import MetadataCache
    from mockbroker.core.metadata.topic import Topic
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.replication.replica_manager import ReplicaManager


class MetadataPublisher:
    """Publishes the newest image to brokers, or lets them keep an old one."""

    __slots__ = ("_cache", "_leader_changed", "_processes", "_replication")

    def __init__(
        self,
        cache: MetadataCache,
        processes: Mapping[int, Broker],
        replication: ReplicaManager,
        leader_changed: Callable[[Partition], None],
    ) -> None:
        """`leader_changed` loads or unloads the coordinators of a partition."""
        self._cache = cache
        self._processes = processes
        self._replication = replication
        self._leader_changed = leader_changed

    # -- losing the controller ---------------------------------------------------------------------

    def freeze(self, brokers: Iterable[Broker]) -> None:
        """Freeze the image of brokers: later changes are not published to them.

        Followers that shared a log with one of them get a replica of their own.
        """
        lost = {broker.node_id: broker for broker in brokers}
        if not lost:
            return
        frozen = self._cache.image.frozen()
        for broker in lost.values():
            broker.take_image(frozen)
        self._cache.all_have_newest_image = False
        for partition in frozen.partitions():
            if any(node_id in lost for node_id in partition.replicas):
                self._replication.assignment_changed(partition)

    def topics_deleted(self, topics: Collection[Topic]) -> None:
        """Topics are deleted: brokers with the newest image delete what groups stored of them."""
        newest = self._cache.image
        for broker in self._processes.values():
            if broker.image is newest:
                self._forget(broker, topics)

    def _forget(self, broker: Broker, topics: Collection[Topic]) -> None:
        """Delete committed offsets, and the states of share partitions."""
        if GROUP_METADATA_TOPIC in broker.image.topics:
            broker.groups.topics_deleted([topic.name for topic in topics])
        if broker.has_share_coordinator and SHARE_GROUP_STATE_TOPIC in broker.image.topics:
            broker.share_coordinator.topics_deleted({topic.topic_id for topic in topics})

    # -- finding the controller --------------------------------------------------------------------

    def publish(self, broker: Broker) -> None:
        """Give a broker the newest image, and apply the changes since its former one."""
        former, newest = broker.image, self._cache.image
        if former is newest:
            return
        broker.take_image(newest)
        self._cache.all_have_newest_image = all(b.image is newest for b in self._processes.values())
        for partition in former.partitions():
            self._apply(broker, partition)
        self._notify_former(former)
        for partition in newest.partitions():
            created = former.partition_by_id(*partition.key) is None
            if created and partition.leader_id == broker.node_id:
                partition.begin_epoch(new_leader=True)
                partition.notify()
        self._replication.broker_changed(broker.node_id)
        self._reload_coordinators(broker)
        known = former.topics.values()
        gone = [topic for topic in known if topic.topic_id not in newest.topics_by_id]
        if gone:
            self._forget(broker, gone)
        waiting, broker.awaiting_controller = broker.awaiting_controller, {}
        for call in waiting:
            call()

    def _notify_former(self, former: MetadataImage) -> None:
        """Notify the watchers of the objects that only the former image had."""
        newest, held = self._cache.image, self._cache.frozen_images()
        for known in former.partitions():
            if newest.partition_by_id(*known.key) is known:
                continue
            if all(image.partition_by_id(*known.key) is not known for image in held):
                known.deleted = True
            known.notify()

    def _reload_coordinators(self, broker: Broker) -> None:
        """Load the coordinators of the partitions that the broker leads, and unload the others."""
        for name in sorted(INTERNAL_TOPICS):  # in the same order in every process
            topic = broker.image.topics.get(name)
            for partition in topic.partitions if topic else ():
                self._leader_changed(partition)

    def _apply(self, broker: Broker, known: Partition) -> None:
        """Apply the newest image to a partition of the broker's former image."""
        node_id, newest = broker.node_id, self._cache.image
        current = newest.partition_by_id(*known.key)
        if current is known:
            return
        led = known.leader_id == node_id
        if led:
            for image in self._cache.images_sharing(known):
                self._cache.split_off(known, image)
        if current is None:
            if led:
                known.delete()
        elif led and current.leader_id == node_id:
            self._continue_leadership(known, current)
        elif node_id in current.replicas:
            self._keep_log(node_id, known, current)
        if led and current is not None and newest.partition_by_id(*known.key) is not known:
            known.copy_metadata_from(current)
            known.notify()
            known.deleted = True
            self._replication.forget(known)

    def _continue_leadership(self, known: Partition, current: Partition) -> None:
        """Continue the leader's leadership, under the same epoch or a later one. Its object
        replaces the one of the newest image; delayed operations on it wait for the high watermark
        as before.
        """
        node_id, now_ms = known.leader_id, self._replication.runtime.now_ms()
        leads_again = current.leader_epoch != known.leader_epoch
        known.copy_metadata_from(current)
        known.own_replicas = {n: r for n, r in current.own_replicas.items() if n != node_id}
        if current.log is not known.log:  # replicas that shared the other log keep a copy
            for n in current.replicas:
                if n != node_id and n not in known.own_replicas:
                    copy = Replica(n, current.log.fork(), current.high_watermark)
                    known.own_replicas[n] = copy
        followers = known.followers
        known.followers = {
            n: followers.get(n) or FollowerState.reset(n, in_sync=n in known.isr, now_ms=now_ms)
            for n in known.own_replicas
        }
        self._cache.image.put(known)
        current.deleted = True
        current.notify()
        if leads_again:
            known.begin_epoch(new_leader=True)
            known.notify()
        elif known.advance_high_watermark():
            known.notify()

    def _keep_log(self, node_id: int, known: Partition, current: Partition) -> None:
        """Keep the broker's own log for its replica."""
        if known.leader_id == node_id:
            current.own_replicas[node_id] = Replica(node_id, known.log, known.high_watermark)
        if current.leader_id == node_id:
            current.begin_epoch(new_leader=True)
            current.notify()
