"""The cluster: its brokers, topics and configs, and the ids, timers and clock they share.

`topics`, `topics_by_id` and `brokers` are those of the newest metadata image, which the controller
changes. A broker that cannot hear the controller has an older one (see `image`); what a broker
tells its clients comes from its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mockbroker.core.actions import Actions
from mockbroker.core.broker import Broker, BrokerSpec
from mockbroker.core.configs.values import ClusterConfigs, static_configs
from mockbroker.core.controller import Controller
from mockbroker.core.errors import ApiError
from mockbroker.core.events import Event
from mockbroker.core.features import Features
from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker.core.ids import IdSource, uuid_text
from mockbroker.core.image import Image
from mockbroker.core.log.epoch_cache import NO_EPOCH
from mockbroker.core.log.manager import LogManager, RetentionResult
from mockbroker.core.log.told import tell_topic_created, tell_topic_deleted
from mockbroker.core.metadata_publisher import MetadataPublisher
from mockbroker.core.partition import NO_LEADER, Partition, PartitionKey
from mockbroker.core.presence import Presence
from mockbroker.core.profiles import profile_of
from mockbroker.core.quotas.client_quotas import ClientQuotas
from mockbroker.core.replication.control import PartitionPlan, plan_more_partitions, plan_topic
from mockbroker.core.replication.elections import ELR_FEATURE, Reassignment, elect_first_leaders
from mockbroker.core.replication.replica_manager import ReplicaManager
from mockbroker.core.replication.states import StateLog
from mockbroker.core.security.acls import AclStore
from mockbroker.core.security.authorizer import configured
from mockbroker.core.security.delegation_tokens import DelegationTokens
from mockbroker.core.telemetry.telemetry import Telemetry
from mockbroker.core.time_scopes import TimeScopes
from mockbroker.core.timers import TimerHeap
from mockbroker.core.topic import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
    Topic,
)
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.faults.cluster_actions import ClockControl
    from mockbroker.core.faults.engine import FaultEngine
    from mockbroker.core.journal.journal import Journal
    from mockbroker.core.log.compaction import CompactionResult
    from mockbroker.core.security.sasl.scram_credential import ScramCredential
    from mockbroker.core.snapshot.recorder import Recorder

DEFAULT_BROKERS = tuple(BrokerSpec(node_id) for node_id in (1, 2, 3))


class Cluster(Actions):
    """One Kafka cluster. Its state machines are pure: time, ids and randomness are handed in.

    `now_ms` gives the cluster's time in ms since the epoch. Equal seeds and equal requests give
    equal ids; without a seed the time of the start serves, so that a new cluster is not taken for
    an old one. Raises ConfigError when `configs` (static broker configs, as text) do not fit.
    """

    def __init__(
        self,
        brokers: Sequence[BrokerSpec] = DEFAULT_BROKERS,
        configs: Mapping[str, str] | None = None,
        seed: int | None = None,
        now_ms: Callable[[], int] = lambda: 0,
        kafka_version: str = "4.3",
    ) -> None:
        self.profile = profile_of(kafka_version)
        self.features = Features(self.profile.features)
        self.now_ms = now_ms
        self.ids = IdSource(now_ms() if seed is None else seed)
        self.timers = TimerHeap()
        self.time_scopes = TimeScopes(self)
        self.presence = Presence()
        self.cluster_id = uuid_text(self.ids.uuid())
        # Every broker's process, and those of them that are registered with the controller.
        self.processes: dict[int, Broker] = {}
        self.brokers: dict[int, Broker] = {}
        self.image = Image({}, self.brokers, NO_LEADER)
        self.topics = self.image.topics
        self.topics_by_id = self.image.topics_by_id
        self.metadata = MetadataPublisher(self)
        self.configs = ClusterConfigs(static_configs(configs or {}, len(brokers)))
        if self.profile.feature_level("eligible.leader.replicas.version") > 0:
            # With KIP-966 the controller writes this one down, to see the same value on every
            # broker.
            min_isr = str(self.configs.get("min.insync.replicas"))
            self.configs.dynamic_default["min.insync.replicas"] = min_isr
        self.controller = Controller(self)
        for spec in sorted(brokers):
            broker = Broker(self, spec, self.controller.next_broker_epoch())
            self.processes[spec.node_id] = self.brokers[spec.node_id] = broker
        self.image.controller_id = next(iter(self.brokers))
        self.replication = ReplicaManager(self)
        # Whether appends look at every record rather than at headers alone where those suffice.
        self.walks_all_records = self.configs.get("record.validation") == "always"
        self._unified_names: dict[str, set[str]] = {}
        # The last leader epochs of partitions of deleted topics, which a snapshot may bring back.
        self.former_epochs: dict[PartitionKey, int] = {}
        # Reassignments that wait for replicas to come in sync, by topic id and partition.
        self.reassignments: dict[tuple[bytes, int], Reassignment] = {}
        self.quotas = ClientQuotas(self.config_int)
        self.telemetry = Telemetry(self)
        self.acls = AclStore()
        # None, as without `authorizer.class.name`, lets everyone do everything.
        self.authorizer = configured(self.configs.static, self.acls)
        self.delegation_tokens = DelegationTokens(self)
        # SCRAM credentials: user -> mechanism code -> credential.
        self.scram_credentials: dict[str, dict[int, ScramCredential]] = {}
        # Called with the topic after it was created, after it was dropped, or after its configs
        # changed.
        self.on_topic_created: list[Callable[[Topic], None]] = []
        self.on_topic_deleted: list[Callable[[Topic], None]] = []
        self.on_configs_changed: list[Callable[[Topic], None]] = []
        self.log_manager = LogManager(self)
        # Called with a broker whose process starts, stops, is paused, resumed or removed.
        self.on_broker_state: list[Callable[[Broker], None]] = [self.quotas.broker_changed]
        # Called with everything that happens (see `events`).
        self.on_event: list[Callable[[Event], None]] = []
        self.states = StateLog(self)
        # The fault engine, and the same while it has rules: what requests look at is `faults`.
        self.fault_engine: FaultEngine | None = None
        self.faults: FaultEngine | None = None
        # What steers the clock by which `now_ms` goes; the run that serves the cluster sets it.
        self.clock_control: ClockControl | None = None
        # Who writes down what changes, if anybody does.
        self.recorder: Recorder | None = None
        self.journal: Journal | None = None
        self.cause = ""  # the rule or action that is being carried out

    # -- reading -----------------------------------------------------------------------------------

    def partition(self, topic: str, index: int) -> Partition | None:
        """The partition in the newest image, or None when the topic or the index is unknown."""
        return self.image.partition(topic, index)

    def image_of(self, node_id: int) -> Image:
        """A broker's metadata image; the newest one for a broker that is not there."""
        broker = self.processes.get(node_id)
        return self.image if broker is None else broker.image

    def hears_controller(self, node_id: int) -> bool:
        """Whether there is such a broker, and it has the newest image."""
        broker = self.processes.get(node_id)
        return broker is not None and broker.image is self.image

    def is_led_here(self, partition: Partition) -> bool:
        """Whether this object is the one that the partition's leader has."""
        leader_id = partition.leader_id
        return leader_id in self.processes and self.metadata.knows(leader_id, partition)

    def led(self, partition: Partition) -> Partition:
        """The object of a partition that its leader has, if the leader knows of its leadership."""
        known = self.image_of(partition.leader_id).partition_by_id(*partition.key)
        return known if known and known.leader_id == partition.leader_id else partition

    def config(self, name: str) -> Any:
        """The typed value of a broker config; its type is that of the config's definition."""
        return self.configs.get(name)

    def config_int(self, name: str) -> int:
        """The value of a broker config that is an integer."""
        value = self.configs.get(name)
        assert isinstance(value, int)
        return value

    def serves(self, api_key: int, api_version: int) -> bool:
        """Whether the release this cluster plays knows this version of the API."""
        return api_version <= self.profile.max_versions.get(api_key, -1)

    @property
    def controller_id(self) -> int:
        """The broker that is the active controller, or -1 while none is alive.

        Clients are told to send controller requests there, though any live broker would do: each
        forwards what is for the controller (KIP-590).
        """
        return self.image.controller_id

    @property
    def elr_enabled(self) -> bool:
        """Whether eligible leader replicas are kept (KIP-966)."""
        return self.features.level(ELR_FEATURE) > 0

    def find_coordinator_partition(self, key: str, topic: str = GROUP_METADATA_TOPIC) -> int:
        """The partition of an internal topic that owns a group id or transactional id.

        Answers as well before the topic exists, with the number of partitions it is going to have.
        """
        found = self.topics.get(topic)
        if found is not None:
            return coordinator_partition(key, len(found.partitions))
        return coordinator_partition(key, self._internal_topic_settings(topic)[0])

    def colliding_topic(self, name: str) -> str | None:
        """A topic whose name equals `name` once dots are underscores, or None."""
        if "." not in name and "_" not in name:
            return None
        return min(self._unified_names.get(name.replace(".", "_"), ()), default=None)

    # -- changing ----------------------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        *,
        assignments: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> Topic:
        """Create a topic; -1 stands for the brokers' default. Raises ApiError as CreateTopics
        would.
        """
        configs = configs or {}
        plans = plan_topic(
            self,
            name,
            partitions,
            replication_factor,
            assignments=assignments or {},
            configs=configs,
        )
        return self.add_topic(name, plans, configs)

    def add_topic(
        self, name: str, plans: Iterable[PartitionPlan], configs: Mapping[str, str]
    ) -> Topic:
        """Carry out a topic's plan, already checked by `plan_topic`."""
        topic = Topic(name, self.ids.uuid(), self.configs, configs)
        self._grow(topic, plans)
        self.adopt_topic(topic)
        elect_first_leaders(self, topic.partitions)
        return topic

    def adopt_topic(self, topic: Topic) -> None:
        """Let a topic that has its partitions be one of the cluster's."""
        name = topic.name
        self.topics[name] = topic
        self.topics_by_id[topic.topic_id] = topic
        self.replication.partitions_created(topic.partitions)
        if "." in name or "_" in name:
            self._unified_names.setdefault(name.replace(".", "_"), set()).add(name)
        self.metadata_changed(topic)
        tell_topic_created(self, topic)
        for observer in self.on_topic_created:
            observer(topic)

    def add_partitions(
        self, topic: Topic, count: int, assignments: Sequence[Sequence[int]] | None = None
    ) -> None:
        """Bring `topic` to `count` partitions in all. Raises ApiError as CreatePartitions would."""
        present = len(topic.partitions)
        self._grow(topic, plan_more_partitions(self, topic, count, assignments))
        added = topic.partitions[present:]
        self.replication.partitions_created(added)
        self.metadata_changed(topic)
        self.states.partitions_created(added)
        elect_first_leaders(self, added)

    def _grow(self, topic: Topic, plans: Iterable[PartitionPlan]) -> None:
        waits = self.config_int("mockbroker.partition.creation.ms") > 0
        for replicas, isr in plans:
            index = len(topic.partitions)
            former_epoch = self.former_epochs.pop((topic.topic_id, index), NO_EPOCH)
            topic.partitions.append(
                Partition(
                    topic=topic,
                    index=index,
                    replicas=replicas,
                    isr=isr,
                    leader_id=NO_LEADER if waits else isr[0],
                    leader_epoch=former_epoch if waits else former_epoch + 1,
                    cluster=self,
                )
            )

    def delete_topic(self, name: str) -> None:
        """Delete a topic and all that hangs on it. Raises ApiError when there is none."""
        topic = self.topics.get(name)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        for partition in list(topic.partitions):
            self.metadata.own(partition)  # a broker that cannot hear of it keeps what it has
        del self.topics[name]
        del self.topics_by_id[topic.topic_id]
        unified = name.replace(".", "_")
        if unified in self._unified_names:
            self._unified_names[unified].discard(name)
        self.metadata_changed(topic)
        tell_topic_deleted(self, topic)
        for observer in self.on_topic_deleted:
            observer(topic)
        for partition in topic.partitions:
            if partition.leader_epoch > 0:
                self.former_epochs[partition.key] = partition.leader_epoch
            self.reassignments.pop((topic.topic_id, partition.index), None)
            for node_id in partition.replicas:
                if (process := self.processes.get(node_id)) is not None:
                    process.log_dirs.forget(partition)
            partition.delete()

    def ensure_internal_topic(self, name: str) -> Topic:
        """The internal topic of this name, created on first use (AutoTopicCreationManager)."""
        topic = self.topics.get(name)
        if topic is not None:
            return topic
        partitions, factor, configs = self._internal_topic_settings(name)
        return self.create_topic(name, partitions, factor, configs=configs)

    def auto_create_topic(self, name: str) -> Topic:
        """Create a topic that a client named in Metadata. Raises ApiError as CreateTopics would."""
        if name in _INTERNAL_PREFIXES:
            return self.ensure_internal_topic(name)
        return self.create_topic(name)

    def _internal_topic_settings(self, name: str) -> tuple[int, int, dict[str, str]]:
        prefix = _INTERNAL_PREFIXES[name]
        configs = {"segment.bytes": str(self.config(f"{prefix}.segment.bytes"))}
        configs["compression.type"] = "producer"
        if name == SHARE_GROUP_STATE_TOPIC:
            configs["cleanup.policy"] = "delete"
            configs["retention.ms"] = "-1"
        else:
            configs["cleanup.policy"] = "compact"
        if name != GROUP_METADATA_TOPIC:
            configs["min.insync.replicas"] = str(self.config(f"{prefix}.min.isr"))
        if name == TRANSACTION_STATE_TOPIC:
            configs["compression.type"] = "uncompressed"
            configs["unclean.leader.election.enable"] = "false"
        return (
            self.config_int(f"{prefix}.num.partitions"),
            self.config_int(f"{prefix}.replication.factor"),
            configs,
        )

    def configs_changed(self) -> None:
        """Call after an edit of the brokers' configs: topics take their defaults anew."""
        self.configs.changed()
        for topic in self.topics.values():
            topic.configs.resolve()
            self._topic_configs_changed(topic)
        self.metadata_changed()

    def replace_topic_configs(self, topic: Topic, overrides: Mapping[str, str]) -> None:
        """Give `topic` this set of overrides, already checked."""
        topic.configs.replace(overrides)
        self._topic_configs_changed(topic)
        self.metadata_changed(topic)

    def _topic_configs_changed(self, topic: Topic) -> None:
        for observer in self.on_configs_changed:
            observer(topic)

    def keep_journal(self, journal: Journal) -> None:
        """From now on everything that happens is written down."""
        self.journal = journal
        self.on_event.append(journal.event)
        self.on_topic_deleted.append(journal.topic_deleted)

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id, or None where there is none."""
        topic = self.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def tell(self, event: Event) -> None:
        """Let whoever watches the cluster know."""
        for observer in self.on_event:
            observer(event)
        self.states.follow(event)

    def leader_changed(self, partition: Partition) -> None:
        """A partition has another leader or epoch: coordinators on it move."""
        leader = self.processes.get(partition.leader_id)
        if leader is None or not partition.topic.is_internal or not self.is_led_here(partition):
            return
        if partition.topic.name == TRANSACTION_STATE_TOPIC:
            leader.transactions.partition_heard(partition)
        elif partition.topic.name == GROUP_METADATA_TOPIC:
            leader.groups.partition_heard(partition)

    # -- upkeep of logs ----------------------------------------------------------------------------

    def run_retention(
        self, topic: str | None = None, partition: int | None = None
    ) -> list[RetentionResult]:
        """Apply retention now, to all topics or to those named; what was removed.

        Raises ApiError for an unknown topic or partition.
        """
        return self.log_manager.run_retention(topic, partition)

    def run_compaction(
        self, topic: str | None = None, partition: int | None = None, *, roll: bool = True
    ) -> list[CompactionResult]:
        """Compact now, at one go, all compacted topics or those named; what was removed.

        With `roll` the active segments are closed first, so that all that is stable is compacted;
        without, they are left alone as Kafka's cleaner does. Raises ApiError for an unknown topic
        or partition, and for a topic without cleanup.policy=compact.
        """
        return self.log_manager.start_compaction(topic, partition, roll=roll).run()

    def spare_connected_members(self, by_ms: int) -> None:
        """Before the clock is moved on: clients that are there would have sent heartbeats."""
        self.presence.forget_the_gone()
        for broker in self.brokers.values():
            if broker.has_groups:
                broker.groups.spare_connected(self.presence, by_ms)

    def metadata_changed(self, topic: Topic | None = None) -> None:
        """A topic, leader, ISR, broker or endpoint changed: cached answers are stale.

        Name the topic when it alone is concerned; without one every topic is.
        """
        self.image.epoch += 1
        self.image.memo.clear()
        if topic is not None:
            topic.touch()
            if self.recorder is not None:
                self.recorder.topic_changed(topic)
            return
        for every in self.topics.values():
            every.touch()


_INTERNAL_PREFIXES = {
    GROUP_METADATA_TOPIC: "offsets.topic",
    TRANSACTION_STATE_TOPIC: "transaction.state.log",
    SHARE_GROUP_STATE_TOPIC: "share.coordinator.state.topic",
}
