"""Restores a cluster to an image, while clients are connected.

First the cluster is *cleared*: its topics are deleted, which answers waiting requests; coordinators
drop their groups and transactions, and rules end. Then the contents of the image are put in.
Connections stay. Numbers that must never repeat continue: topic ids, producer ids, broker epochs,
and the leader epochs of partitions that clients may have seen.

A changed partition gets a higher leader epoch. Clients take it for an election, and find the point
where their history diverges (KIP-320).

Idempotent producers have no such mechanism. After the capture their sequences ran ahead of those in
the image's log. A Java producer then takes a new epoch and continues; for librdkafka the error is
fatal, and a higher epoch in the log would cost it a record. The log can therefore *resume* the
present sequences of producers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from mockbroker.core.brokers.broker import Broker, BrokerSpec
from mockbroker.core.brokers.broker_life import PAUSED, REMOVED, RUNNING, STOPPED
from mockbroker.core.fetching.fetch_positions import FetchPositions
from mockbroker.core.log.dirs import LogDirs
from mockbroker.core.log.leader_epoch_cache import NO_EPOCH
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.metadata.topic import Topic
from mockbroker.core.replication.partition import NO_LEADER, Partition
from mockbroker.core.replication.replica import FollowerState, Replica
from mockbroker.core.replication.replication_control import Reassignment
from mockbroker.core.snapshot.image import PRISTINE
from mockbroker.core.snapshot.logs import copy_of
from mockbroker.core.snapshot.settings import put_settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mockbroker.core.cluster import Cluster
    from mockbroker.core.snapshot.image import (
        BrokerImage,
        ClusterImage,
        PartitionImage,
        TopicImage,
    )


# The sequences that idempotent producers continue after a restore: those of the image, where the
# log refuses anything else; or their present ones.
Producers = Literal["keep", "resume"]
KEEP: Producers = "keep"
RESUME: Producers = "resume"


class RestoreError(Exception):
    """The image does not fit the cluster; nothing was changed."""


def restore(cluster: Cluster, image: ClusterImage, producers: Producers = KEEP) -> None:
    """Make `cluster` equal to `image`. Raises RestoreError; then nothing has changed."""
    check_fits(cluster, image)
    former = {
        (topic.topic_id, partition.index): partition
        for topic in cluster.topics.values()
        for partition in topic.partitions
    }
    control = cluster.replication_control
    deleted_epoch, former_epochs = control.deleted_epoch, control.former_epochs
    control.former_epochs = {}
    clear(cluster)  # what it deletes is in `former`
    control.deleted_epoch, control.former_epochs = deleted_epoch, former_epochs
    cluster.runtime.ids.go_beyond(*image.ids)
    put_settings(cluster, image.settings)
    cluster.cluster_id = image.settings.cluster_id
    _put_brokers(cluster, image)
    for topic_image in image.topics:
        _put_topic(cluster, image, topic_image, former, producers)
    _keep_epochs(cluster, image, former.values())
    _start(cluster, image)
    if cluster.recorder is not None:
        cluster.recorder.begin_again()


def check_fits(cluster: Cluster, image: ClusterImage) -> None:
    """Raise RestoreError if the cluster cannot be restored to the image."""
    version = image.settings.kafka_version
    if version != cluster.profile.release:
        raise RestoreError(
            f"the snapshot is of a cluster that plays Kafka {version}; "
            f"this one plays {cluster.profile.release}"
        )


# -- clearing --------------------------------------------------------------------------------------


def clear(cluster: Cluster) -> None:
    """Drop topics, groups, transactions and rules; waiting requests are answered."""
    if cluster.fault_engine is not None:
        cluster.fault_engine.clear()
    network = cluster.replication.network
    if network.cut_links:
        network.heal()
        cluster.controller.links_changed(0)
    for broker in cluster.processes.values():
        broker.fail_state_requests()
    # Internal topics first, so that no tombstones are written for the others.
    for topic in sorted(cluster.topics.values(), key=_is_external):
        cluster.delete_topic(topic.name)
    for broker in cluster.processes.values():
        broker.drop_memory()
        broker.fetch_positions = FetchPositions()
    cluster.replication.reset()
    cluster.services.withheld_markers.clear()
    cluster.reassignments.clear()
    cluster.controller.cancel_fencing()
    if cluster.runtime.journal is not None:
        cluster.runtime.journal.clear()
        # Followers of the journal begin a new history.
        cluster.runtime.journal.fact(cluster.runtime.now_ms(), "action", change="restore")


def _is_external(topic: Topic) -> bool:
    return not topic.is_internal


# -- brokers ---------------------------------------------------------------------------------------


def _put_brokers(cluster: Cluster, image: ClusterImage) -> None:
    settings = image.settings
    wanted = {each.node_id: each for each in settings.brokers}
    for node_id in [n for n in cluster.processes if n not in wanted]:
        cluster.brokers.pop(node_id, None)
        gone = cluster.processes.pop(node_id)
        _set_state(cluster, gone, REMOVED)
    for each in settings.brokers:
        broker = cluster.processes.get(each.node_id)
        if broker is None:
            broker = cluster.new_broker(BrokerSpec(each.node_id, each.rack), each.epoch)
            broker.state = STOPPED
            cluster.processes[each.node_id] = broker
        _put_broker(cluster, broker, each)
    cluster.brokers.clear()
    cluster.brokers.update(
        (node_id, cluster.processes[node_id])
        for node_id, each in sorted(wanted.items())
        if each.registered
    )
    controller = cluster.controller
    cluster.image.controller_id = settings.controller_id
    controller.epoch = max(controller.epoch, settings.controller_epoch)
    controller.broker_epoch = max(controller.broker_epoch, settings.broker_epoch)
    cluster.metadata.changed()


def _put_broker(cluster: Cluster, broker: Broker, image: BrokerImage) -> None:
    broker.rack = image.rack
    broker.epoch = max(broker.epoch, image.epoch)
    broker.fenced, broker.shutting_down = image.fenced, image.shutting_down
    broker.stopped_how = image.stopped_how
    broker.logger_levels = dict(image.logger_levels)
    broker.log_dirs = LogDirs(cluster.configs)
    broker.log_dirs.failed.update(image.failed_dirs)
    if image.state != broker.state:
        if image.state == PAUSED and broker.state != RUNNING:
            _set_state(cluster, broker, RUNNING)  # its ports are open, as before the pause
        _set_state(cluster, broker, image.state)


def _set_state(cluster: Cluster, broker: Broker, state: str) -> None:
    broker.state = state
    for observer in cluster.on_broker_state:
        observer(broker)


# -- topics ----------------------------------------------------------------------------------------


def _put_topic(
    cluster: Cluster,
    image: ClusterImage,
    topic_image: TopicImage,
    former: dict[tuple[bytes, int], Partition],
    producers: Producers,
) -> None:
    topic = Topic(topic_image.name, topic_image.topic_id, cluster.configs, topic_image.overrides)
    for index, partition_image in enumerate(topic_image.partitions):
        partition = _partition(cluster, image, topic, index, partition_image)
        topic.partitions.append(partition)
        before = former.get((topic.topic_id, index))
        _raise_epoch(partition, before, _last_epoch(cluster, partition, before))
        if producers == RESUME:
            _resume_producers(partition, before)
    cluster.topic_control.add_topic(topic)


def _partition(
    cluster: Cluster, image: ClusterImage, topic: Topic, index: int, saved: PartitionImage
) -> Partition:
    partition = Partition(
        topic=topic,
        index=index,
        replicas=list(saved.replicas),
        isr=list(saved.isr),
        leader_id=saved.leader_id,
        leader_epoch=saved.leader_epoch,
        host=cluster.replication,
    )
    partition.partition_epoch = saved.partition_epoch
    partition.leader_epoch_start_offset = saved.leader_epoch_start_offset
    partition.elr, partition.last_known_elr = saved.elr, saved.last_known_elr
    if saved.log_id != PRISTINE:
        kept = image.logs[saved.log_id]
        partition.set_leader_log(copy_of(kept.log), kept.high_watermark)
        log = partition.log
        if saved.leader_id != NO_LEADER and log.epochs.latest < saved.leader_epoch:
            # Its leader had no image yet with its leadership: now it has.
            partition.leader_epoch_start_offset = log.end_offset
            log.epochs.assign(saved.leader_epoch, log.end_offset)
    for own in saved.own:
        kept = image.logs[own.log_id]
        replica = Replica(own.node_id, copy_of(kept.log), kept.high_watermark)
        partition.own_replicas[own.node_id] = replica
        if saved.leader_id not in (own.node_id, NO_LEADER):
            partition.followers[own.node_id] = FollowerState.reset(
                own.node_id, in_sync=own.node_id in saved.isr, now_ms=cluster.runtime.now_ms()
            )
    if saved.adding or saved.removing:
        cluster.reassignments[topic.topic_id, index] = Reassignment(
            list(saved.adding), list(saved.removing)
        )
    for node_id, path in saved.dirs:
        if node_id in cluster.brokers:
            cluster.brokers[node_id].log_dirs.set_dir(partition, path)
    return partition


def _last_epoch(cluster: Cluster, partition: Partition, former: Partition | None) -> int:
    """The highest leader epoch that the partition may have had until now, or -1. `former` is the
    partition before the restore.
    """
    if former is not None:
        return former.leader_epoch
    control = cluster.replication_control
    taken = control.former_epochs.get(partition.topic.topic_id, {})
    return taken.get(partition.index, control.deleted_epoch)


def _raise_epoch(partition: Partition, former: Partition | None, last_epoch: int) -> None:
    """Raise the leader epoch, so that clients that saw another state of the partition notice.

    `former` is the partition before the restore, `last_epoch` the highest leader epoch that it may
    have had.
    """
    if former is None:
        is_the_same = last_epoch < partition.leader_epoch  # no client has seen another state
    else:
        is_the_same = _is_unchanged(partition, former)
    if is_the_same:
        return
    partition.leader_epoch = max(partition.leader_epoch, last_epoch) + 1
    if partition.leader_id != NO_LEADER:
        log: ReplicaLog = partition.log
        partition.leader_epoch_start_offset = log.end_offset
        log.epochs.assign(partition.leader_epoch, log.end_offset)


def _keep_epochs(cluster: Cluster, image: ClusterImage, former: Iterable[Partition]) -> None:
    """Keep the leader epochs of the partitions that were there, or were deleted before, and are not
    in the image: another snapshot may bring such a partition back, and must not repeat them.
    """
    control = cluster.replication_control
    control.deleted_epoch = max(control.deleted_epoch, image.settings.deleted_epoch)
    taken, control.former_epochs = control.former_epochs, {}
    for partition in former:
        _keep_epoch(cluster, partition.topic.topic_id, partition.index, partition.leader_epoch)
    for epochs_of_topics in (taken, image.settings.former_epochs):
        for topic_id, epochs in epochs_of_topics.items():
            for index, epoch in epochs.items():
                _keep_epoch(cluster, topic_id, index, epoch)


def _keep_epoch(cluster: Cluster, topic_id: bytes, index: int, epoch: int) -> None:
    control = cluster.replication_control
    if topic_id not in cluster.topics_by_id:
        control.deleted_epoch = max(control.deleted_epoch, epoch)
    elif cluster.image.partition_by_id(topic_id, index) is None:
        kept = control.former_epochs.setdefault(topic_id, {})
        kept[index] = max(epoch, kept.get(index, NO_EPOCH))


def _resume_producers(partition: Partition, former: Partition | None) -> None:
    """Set the producers' present sequences in the logs."""
    for log in (partition.log, *(own.log for own in partition.own_replicas.values())):
        if former is None:
            log.producers.resume_from(None, 0)
        else:
            log.producers.resume_from(former.log.producers, former.high_watermark)


def _is_unchanged(partition: Partition, former: Partition) -> bool:
    return (
        partition.leader_id == former.leader_id
        and partition.leader_epoch == former.leader_epoch
        and partition.log.end_offset == former.log.end_offset
    )


# -- starting --------------------------------------------------------------------------------------


def _start(cluster: Cluster, image: ClusterImage) -> None:
    """Start followers, coordinators and timers."""
    controller = cluster.controller
    for broker in cluster.brokers.values():
        if broker.state == RUNNING and broker.fenced:
            controller.unfence(broker)  # the restore has restored its links
    for topic in cluster.topics.values():
        for partition in topic.partitions:
            if partition.log.end_offset or partition.own_replicas:
                _start_partition(cluster, partition)
            elif cluster.replication.is_stepwise:
                cluster.replication.assignment_changed(partition)
            if partition.leader_id != partition.replicas[0]:
                controller.balance.leader_changed(partition)
    for each in image.settings.brokers:
        process = cluster.processes[each.node_id]
        if each.fence_at_ms is not None and process.state != RUNNING:
            controller.fence_at(process, each.fence_at_ms)
    controller.heartbeats.reconcile()
    cluster.metadata.changed()


def _start_partition(cluster: Cluster, partition: Partition) -> None:
    if partition.own_replicas or cluster.replication.is_stepwise:
        cluster.replication.assignment_changed(partition)
    if partition.leader_id != NO_LEADER:
        partition.advance_high_watermark()  # a rule may have limited it
    cluster.log_manager.schedule(partition)
    if partition.topic.is_internal:
        cluster.leader_changed(partition)
