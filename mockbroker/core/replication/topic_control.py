"""The controller creates, extends and deletes topics.

A new topic is a plan first (`topic_plans`), so that a request which only validates takes the same
path. An internal topic is created on first use, with partitions, replication factor and configs
from the broker configs for it.

Source: ReplicationControlManager; AutoTopicCreationManager for internal topics.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from mockbroker.core.errors import ApiError
from mockbroker.core.garbage import no_collections
from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker.core.log.emitters import emit_topic_deleted
from mockbroker.core.log.leader_epoch_cache import NO_EPOCH
from mockbroker.core.metadata.topic import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
    Topic,
)
from mockbroker.core.replication.elections import elect_first_leaders
from mockbroker.core.replication.partition import NO_LEADER, Partition
from mockbroker.core.replication.topic_plans import PartitionPlan, plan_more_partitions, plan_topic
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.replication.replication_control import ReplicationControl
    from mockbroker.core.replication.states import StateChangeLog

_INTERNAL_PREFIXES = {
    GROUP_METADATA_TOPIC: "offsets.topic",
    TRANSACTION_STATE_TOPIC: "transaction.state.log",
    SHARE_GROUP_STATE_TOPIC: "share.coordinator.state.topic",
}


class TopicControl:
    """Changes the topics of the newest image. `publish_deletion` brings the deletion of
    topics to the brokers.
    """

    __slots__ = (
        "_configs",
        "_control",
        "_metadata",
        "_publish_deletion",
        "_replication",
        "_states",
    )

    def __init__(
        self,
        control: ReplicationControl,
        states: StateChangeLog,
        publish_deletion: Callable[[Collection[Topic]], None],
    ) -> None:
        self._control = control
        self._configs = control.configs
        self._metadata = control.metadata
        self._replication = control.replication
        self._states = states
        self._publish_deletion = publish_deletion

    # -- creating ----------------------------------------------------------------------------------

    def create(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        *,
        assignments: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> Topic:
        """Create a topic; -1 stands for the brokers' default. Raises ApiError as for
        CreateTopics.
        """
        configs = configs or {}
        plans = plan_topic(
            self._control,
            name,
            partitions,
            replication_factor,
            assignments=assignments or {},
            configs=configs,
        )
        return self.add(name, plans, configs)

    def add(self, name: str, plans: Iterable[PartitionPlan], configs: Mapping[str, str]) -> Topic:
        """Carry out a topic's plan, which `plan_topic` has checked."""
        topic = Topic(name, self._control.runtime.ids.uuid(), self._configs, configs)
        self._grow(topic, plans)
        self.add_topic(topic)
        elect_first_leaders(self._control, topic.partitions)
        return topic

    def add_topic(self, topic: Topic) -> None:
        """Add a topic with its partitions to the cluster."""
        name, image = topic.name, self._metadata.image
        image.topics[name] = topic
        image.topics_by_id[topic.topic_id] = topic
        self._replication.partitions_created(topic.partitions)
        self._control.name_added(name)
        self._metadata.changed(topic)
        for observer in self._metadata.on_topic_created:
            observer(topic)

    def add_partitions(
        self, topic: Topic, count: int, assignments: Sequence[Sequence[int]] | None = None
    ) -> None:
        """Bring `topic` to `count` partitions in all. Raises ApiError as for CreatePartitions."""
        present = len(topic.partitions)
        self._grow(topic, plan_more_partitions(self._control, topic, count, assignments))
        added = topic.partitions[present:]
        self._replication.partitions_created(added)
        self._metadata.changed(topic)
        self._states.partitions_created(added)
        elect_first_leaders(self._control, added)

    @no_collections()
    def _grow(self, topic: Topic, plans: Iterable[PartitionPlan]) -> None:
        waits = self._configs.get_int("mockbroker.partition.creation.ms") > 0
        former_epochs = self._control.former_epochs.pop(topic.topic_id, {})
        for replicas, isr in plans:
            index = len(topic.partitions)
            former_epoch = former_epochs.pop(index, NO_EPOCH)
            topic.partitions.append(
                Partition(
                    topic=topic,
                    index=index,
                    replicas=replicas,
                    isr=isr,
                    leader_id=NO_LEADER if waits else isr[0],
                    leader_epoch=former_epoch if waits else former_epoch + 1,
                    host=self._replication,
                )
            )
        if former_epochs:
            self._control.former_epochs[topic.topic_id] = former_epochs

    # -- deleting ----------------------------------------------------------------------------------

    def delete(self, name: str) -> None:
        """Delete a topic with its partitions. Raises ApiError for an unknown topic."""
        topic = self._metadata.image.topics.get(name)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self.delete_all((topic,))

    def delete_all(self, topics: Collection[Topic]) -> None:
        """Delete topics of the newest image with their partitions, as one change: what groups
        stored of them is deleted together.
        """
        for topic in topics:
            self._remove(topic)
        self._publish_deletion(topics)
        for topic in topics:
            self._delete_partitions(topic)

    def _remove(self, topic: Topic) -> None:
        """Remove a topic from the newest image."""
        control, metadata = self._control, self._metadata
        for partition in list(topic.partitions):
            metadata.unshare(partition)  # a broker without the controller keeps its partitions
        del metadata.image.topics[topic.name]
        del metadata.image.topics_by_id[topic.topic_id]
        for partition in topic.partitions:
            partition.wake_resting()
        control.name_removed(topic.name)
        metadata.changed(topic)
        emit_topic_deleted(control.runtime, topic)
        for observer in metadata.on_topic_deleted:
            observer(topic)

    def _delete_partitions(self, topic: Topic) -> None:
        control, metadata = self._control, self._metadata
        former_epochs = control.former_epochs.pop(topic.topic_id, {})
        epochs = (partition.leader_epoch for partition in topic.partitions)
        control.deleted_epoch = max(control.deleted_epoch, *former_epochs.values(), *epochs)
        for partition in topic.partitions:
            control.reassignments.pop(partition.key, None)
            for node_id in partition.replicas:
                if (process := metadata.processes.get(node_id)) is not None:
                    process.log_dirs.remove(partition)
            partition.delete()

    # -- internal topics ---------------------------------------------------------------------------

    def ensure_internal(self, name: str) -> Topic:
        """The internal topic of this name, created on first use."""
        topic = self._metadata.image.topics.get(name)
        if topic is not None:
            return topic
        partitions, factor, configs = self._internal_settings(name)
        return self.create(name, partitions, factor, configs=configs)

    def auto_create(self, name: str) -> Topic:
        """Create a topic for a Metadata request. Raises ApiError as for CreateTopics."""
        if name in _INTERNAL_PREFIXES:
            return self.ensure_internal(name)
        return self.create(name)

    def coordinator_partition(self, key: str, topic: str = GROUP_METADATA_TOPIC) -> int:
        """The partition of an internal topic that owns a group id or transactional id.

        Before the topic exists, its configured number of partitions counts.
        """
        found = self._metadata.image.topics.get(topic)
        count = self._internal_settings(topic)[0] if found is None else len(found.partitions)
        return coordinator_partition(key, count)

    def _internal_settings(self, name: str) -> tuple[int, int, dict[str, str]]:
        """The partitions, replication factor and configs of a new internal topic."""
        prefix, config = _INTERNAL_PREFIXES[name], self._configs.get
        configs = {"segment.bytes": str(config(f"{prefix}.segment.bytes"))}
        configs["compression.type"] = "producer"
        if name == SHARE_GROUP_STATE_TOPIC:
            configs["cleanup.policy"] = "delete"
            configs["retention.ms"] = "-1"
        else:
            configs["cleanup.policy"] = "compact"
        if name != GROUP_METADATA_TOPIC:
            configs["min.insync.replicas"] = str(config(f"{prefix}.min.isr"))
        if name == TRANSACTION_STATE_TOPIC:
            configs["compression.type"] = "uncompressed"
            configs["unclean.leader.election.enable"] = "false"
        partitions = self._configs.get_int(f"{prefix}.num.partitions")
        return partitions, self._configs.get_int(f"{prefix}.replication.factor"), configs
