"""The cluster as brokers see it that have lost the controller: as it was when they lost it.

Such a broker goes on answering. It leads what it led and follows whom it followed, tells clients of
brokers and leaders that may be gone by now, and takes records that nobody will ever see again. It
learns of no election, cannot shrink an ISR, and can create nothing: for all that it would need the
controller.

An isolated cluster is a `Cluster` of its own, with copies of topics, partitions and logs, that
shares the clock, the ids and the configs of the real one. Brokers that lost the controller together
are in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mockbroker.core.broker import Broker
from mockbroker.core.cluster import Cluster
from mockbroker.core.controller import Controller
from mockbroker.core.errors import ApiError
from mockbroker.core.log.manager import LogManager
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.partition import NO_LEADER, Partition
from mockbroker.core.replication.control import PartitionPlan
from mockbroker.core.replication.gears import Replication
from mockbroker.core.replication.replica import Replica
from mockbroker.core.topic import Topic
from mockbroker_protocol import ErrorCode


class IsolatedCluster(Cluster):
    """What the brokers `members` see of `real` from now on."""

    has_controller = False

    def __init__(self, real: Cluster, members: Sequence[Broker]) -> None:
        # Whatever else a cluster has is the same object for both.
        self.__dict__.update(real.__dict__)
        self.members = {broker.node_id: broker for broker in members}
        self.memo = {}
        self.recorder = None  # what happens here is lost anyway
        self.reassignments = {}
        self.on_topic_created = []
        self.on_topic_deleted = []
        self.on_configs_changed = []
        # Who is alive is a matter of what was known last, of the members as well.
        self.brokers = {node_id: broker.as_seen_now() for node_id, broker in real.brokers.items()}
        self.controller = Controller(self)
        self.controller.node_id, self.controller.epoch = real.controller_id, real.controller.epoch
        self.replication = Replication(self, real.replication.network)
        self.log_manager = LogManager(self)
        self.topics = {}
        for topic in real.topics.values():
            twin = topic.twin()
            twin.partitions = [self._twin(twin, partition) for partition in topic.partitions]
            self.topics[twin.name] = twin
        self.topics_by_id = {topic.topic_id: topic for topic in self.topics.values()}

    def _twin(self, topic: Topic, real: Partition) -> Partition:
        """A copy of a partition, with logs for the brokers that are here."""
        twin = Partition(
            topic=topic,
            index=real.index,
            replicas=list(real.replicas),
            isr=list(real.isr),
            leader_id=real.leader_id,
            leader_epoch=real.leader_epoch,
            cluster=self,
        )
        twin.elr, twin.last_known_elr = real.elr, real.last_known_elr
        here = [node_id for node_id in real.replicas if node_id in self.members]
        if not here:
            return twin
        if real.leader_id in self.members or real.leader_id == NO_LEADER:
            twin.adopt(real.log.fork(), real.high_watermark)
            twin.leader_epoch_start_offset = real.leader_epoch_start_offset
            twin.log.epochs.assign(real.leader_epoch, real.leader_epoch_start_offset)
            own = [n for n in real.replicas if n not in here or n in real.own_replicas]
        else:
            own = here
        now_ms = self.now_ms()
        for node_id in own:
            if node_id == real.leader_id:
                continue
            known = real.own_replicas.get(node_id)
            if node_id in self.members:
                copy = (known.log if known else real.log).fork()
            else:  # nobody can look into that one from here
                copy = ReplicaLog()
                copy.end_offset = known.fetched_offset if known else real.log.end_offset
            high_watermark = known.high_watermark if known else real.high_watermark
            twin.own_replicas[node_id] = Replica(node_id, copy, high_watermark, now_ms)
        return twin

    def begin(self) -> None:
        """Let the followers here go on, those whose leader is here as well."""
        for topic in self.topics.values():
            for partition in topic.partitions:
                if partition.own_replicas:
                    self.replication.assignment_changed(partition)
                if partition.leader_id in self.members:
                    self.leader_changed(partition)

    def process_of(self, node_id: int) -> Broker | None:
        return self.members.get(node_id)

    # -- what would need the controller ------------------------------------------------------------

    def add_topic(
        self,
        name: str,
        plans: Iterable[PartitionPlan],  # noqa: ARG002
        configs: Mapping[str, str],  # noqa: ARG002
    ) -> Topic:
        message = f"The controller cannot be reached, so {name!r} is not created."
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, message)
