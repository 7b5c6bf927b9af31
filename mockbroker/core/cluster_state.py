"""The parts of one cluster, constructed on one runtime and one metadata image.

`topics`, `topics_by_id` and `brokers` are those of the newest metadata image, which the controller
changes. A broker that cannot reach the controller has an older image (see `image`). A broker
answers clients from its own image.

The parts do not import this module. `cluster` adds actions and rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from mockbroker.core.brokers.broker import Broker, BrokerSpec
from mockbroker.core.brokers.controller import Controller
from mockbroker.core.configs.values import ClusterConfigs, static_configs
from mockbroker.core.groups.member_connections import MemberConnections
from mockbroker.core.ids import uuid_text
from mockbroker.core.log.manager import LogManager
from mockbroker.core.metadata.features import Features
from mockbroker.core.metadata.image import MetadataImage
from mockbroker.core.metadata.metadata_cache import MetadataCache
from mockbroker.core.metadata.metadata_publisher import MetadataPublisher
from mockbroker.core.metadata.profiles import profile_of
from mockbroker.core.metadata.topic import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
    Topic,
)
from mockbroker.core.quotas.client_quotas import ClientQuotas
from mockbroker.core.replication.elections import alter_partition
from mockbroker.core.replication.network import Network
from mockbroker.core.replication.partition import NO_LEADER, Partition
from mockbroker.core.replication.replica_manager import ReplicaManager
from mockbroker.core.replication.replication_control import ReplicationControl
from mockbroker.core.replication.states import StateChangeLog
from mockbroker.core.replication.topic_control import TopicControl
from mockbroker.core.runtime import Runtime
from mockbroker.core.security.acls import AclStore
from mockbroker.core.security.authorizer import configured
from mockbroker.core.security.delegation_tokens import DelegationTokens
from mockbroker.core.services import Services
from mockbroker.core.telemetry.telemetry import Telemetry
from mockbroker.core.timing.domain_timers import ClockDomains
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker.core.security.sasl.scram_credential import ScramCredential
    from mockbroker.core.txn.shard import TransactionShard

DEFAULT_BROKERS = tuple(BrokerSpec(node_id) for node_id in (1, 2, 3))


class ClientLinks(Protocol):
    """The links between clients and brokers, which an action can cut."""

    def cut(
        self, nodes: int | list[int], clients: Mapping[str, object], *, both_ways: bool
    ) -> None:
        """Drop messages from `clients`, given as in a rule's `match`, to the brokers; with
        `both_ways` also back.
        """
        ...

    def heal(self) -> None:
        """Restore all links."""
        ...


class ChangeRecorder(Protocol):
    """The recorder of changes for a snapshot on disk (see `snapshot.recorder`)."""

    def partition_changed(self, partition: Partition) -> None:
        """The metadata, the log, a watermark or a replica of the partition changed."""
        ...

    def topic_changed(self, topic: Topic) -> None:
        """The topic, its configs, a leader or an ISR changed."""
        ...

    def begin_again(self) -> None:
        """Discard the recorded changes, and record the whole cluster again."""
        ...


class ClusterState:
    """One Kafka cluster. Time, ids and randomness come from `runtime`.

    `now_ms` returns the cluster's time in ms since the epoch. Equal seeds and equal requests give
    equal ids (see `Runtime`). Raises ConfigError for invalid `configs` (static broker configs).
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
        self.runtime = Runtime(now_ms, seed)
        self.clock_domains = ClockDomains(self.runtime.timers, self.runtime.now_ms)
        self.cluster_id = uuid_text(self.runtime.ids.uuid())
        self.configs = ClusterConfigs(static_configs(configs or {}, len(brokers)))
        # The typed value of a broker config; its type is that of the config's definition.
        self.config: Callable[[str], Any] = self.configs.get
        self.config_int = self.configs.get_int
        if self.profile.feature_level("eligible.leader.replicas.version") > 0:
            # With KIP-966 the controller writes this config, so that all brokers have one value.
            min_isr = str(self.configs.get("min.insync.replicas"))
            self.configs.dynamic_default["min.insync.replicas"] = min_isr
        # All brokers, and the brokers that are registered with the controller.
        self.processes: dict[int, Broker] = {}
        self.brokers: dict[int, Broker] = {}
        self.image = MetadataImage({}, self.brokers, NO_LEADER)
        self.topics = self.image.topics
        self.topics_by_id = self.image.topics_by_id
        self.metadata = MetadataCache(self.image, self.processes)
        # Called with a topic after its creation, its deletion, or a change of its configs.
        self.on_topic_created = self.metadata.on_topic_created
        self.on_topic_deleted = self.metadata.on_topic_deleted
        self.on_configs_changed = self.metadata.on_configs_changed
        self.services = Services(
            self.runtime,
            self.profile,
            self.features,
            self.configs,
            self.clock_domains,
            self.metadata,
            Network(self.runtime.timers, self.runtime.now_ms, self.processes),
            withheld_markers=set(),
            member_connections=MemberConnections(),
            ensure_internal_topic=self.ensure_internal_topic,
        )
        self.member_connections = self.services.member_connections
        self.log_manager = LogManager(self.services)
        self.replication = ReplicaManager(self.services, self.log_manager)
        self.replication_control = ReplicationControl(self.services, self.replication)
        self.replication.on_alter_partition = partial(alter_partition, self.replication_control)
        self.reassignments = self.replication_control.reassignments
        self.publisher = MetadataPublisher(
            self.metadata, self.processes, self.replication, self.leader_changed
        )
        self.controller = Controller(
            self.services, self.replication_control, self.publisher, self.processes, self.brokers
        )
        self.replication_control.on_leader_elected.append(self.leader_changed)
        for spec in sorted(brokers):
            broker = self.new_broker(spec, self.controller.next_broker_epoch())
            self.processes[spec.node_id] = self.brokers[spec.node_id] = broker
        self.image.controller_id = next(iter(self.brokers))
        self.quotas = ClientQuotas(self.config_int)
        self.telemetry = Telemetry(self.runtime, self.configs)
        self.acls = AclStore()
        # None, as without `authorizer.class.name`, allows all operations.
        self.authorizer = configured(self.configs.static, self.acls)
        self.delegation_tokens = DelegationTokens(self.runtime, self.configs)
        # SCRAM credentials: user -> mechanism code -> credential.
        self.scram_credentials: dict[str, dict[int, ScramCredential]] = {}
        # Called with a broker that is started, stopped, paused, resumed or removed.
        self.on_broker_state = self.controller.on_broker_state
        self.on_broker_state.append(self.services.network.broker_changed)
        self.on_broker_state.append(self.quotas.broker_changed)
        self.states = StateChangeLog(self.replication_control)
        self.runtime.after_event.append(self.states.follow)
        self.topic_control = TopicControl(
            self.replication_control, self.states, self.publisher.topics_deleted
        )
        self.create_topic = self.topic_control.create
        self.delete_topic = self.topic_control.delete
        self.delete_topics = self.topic_control.delete_all
        self.find_coordinator_partition = self.topic_control.coordinator_partition
        # The recorder of changes, if there is one.
        self.recorder: ChangeRecorder | None = None

    # -- reading -----------------------------------------------------------------------------------

    def partition(self, topic: str, index: int) -> Partition | None:
        """The partition in the newest image, or None if it does not exist."""
        return self.image.partition(topic, index)

    def coordinator(self, key: str, topic: str = GROUP_METADATA_TOPIC) -> Broker | None:
        """The coordinator of a group or a transactional id; None without a registered leader."""
        partition = self.partition(topic, self.find_coordinator_partition(key, topic))
        return None if partition is None else self.brokers.get(partition.leader_id)

    def group_shard(self, group_id: str) -> GroupShard | None:
        """The loaded shard of a group; None without a coordinator."""
        broker = self.coordinator(group_id)
        shard = None if broker is None else broker.groups.shard_of(group_id)
        return None if isinstance(shard, ErrorCode) else shard

    def transaction_shard(self, transactional_id: str) -> TransactionShard | None:
        """The loaded shard of a transactional id; None without a coordinator."""
        broker = self.coordinator(transactional_id, TRANSACTION_STATE_TOPIC)
        shard = None if broker is None else broker.transactions.shard_of(transactional_id)
        return None if isinstance(shard, ErrorCode) else shard

    def serves(self, api_key: int, api_version: int) -> bool:
        """Whether the cluster's Kafka release has this version of the API."""
        return api_version <= self.profile.max_versions.get(api_key, -1)

    @property
    def controller_id(self) -> int:
        """The active controller, or -1 without a live broker.

        Metadata responses have this id. Any live broker forwards controller requests (KIP-590).
        """
        return self.image.controller_id

    @property
    def elr_enabled(self) -> bool:
        """Whether eligible leader replicas are enabled (KIP-966)."""
        return self.replication_control.elr_enabled

    # -- brokers -----------------------------------------------------------------------------------

    def new_broker(self, spec: BrokerSpec, epoch: int) -> Broker:
        """A new broker that is not registered with the controller yet."""
        return Broker(spec, epoch, self.services, self.processes)

    @property
    def client_links(self) -> ClientLinks:
        """The links between clients and brokers; implemented by the subclass with rules."""
        raise NotImplementedError

    # -- changing ----------------------------------------------------------------------------------

    def configs_changed(self) -> None:
        """Resolve the configs of all topics again. Must be called after a change of brokers'
        configs.
        """
        self.configs.changed()
        for topic in self.topics.values():
            topic.configs.resolve()
            self._topic_configs_changed(topic)
        self.metadata.changed()

    def replace_topic_configs(self, topic: Topic, overrides: Mapping[str, str]) -> None:
        """Replace the overrides of `topic` by validated ones."""
        topic.configs.replace(overrides)
        self._topic_configs_changed(topic)
        self.metadata.changed(topic)

    def _topic_configs_changed(self, topic: Topic) -> None:
        for observer in self.on_configs_changed:
            observer(topic)

    def record_with(self, recorder: ChangeRecorder) -> None:
        """Set the recorder of changes."""
        self.recorder = self.metadata.recorder = self.replication.recorder = recorder

    def ensure_internal_topic(self, name: str) -> Topic:
        """The internal topic of this name, created on first use. Raises ApiError."""
        return self.topic_control.ensure_internal(name)

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id, or None."""
        topic = self.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def leader_changed(self, partition: Partition) -> None:
        """Load and unload coordinators after a change of a partition's leader or epoch."""
        leader = self.processes.get(partition.leader_id)
        if (
            leader is None
            or not partition.topic.is_internal
            or not self.metadata.is_leader_object(partition)
        ):
            return
        if partition.topic.name == TRANSACTION_STATE_TOPIC:
            leader.transactions.on_leadership_change(partition)
        elif partition.topic.name == GROUP_METADATA_TOPIC:
            leader.groups.on_leadership_change(partition)
        elif partition.topic.name == SHARE_GROUP_STATE_TOPIC:
            leader.share_coordinator.on_leadership_change(partition)

    def extend_connected_sessions(self, by_ms: int) -> None:
        """Extend the sessions of connected members, which cannot send heartbeats in an advance."""
        for broker in self.brokers.values():
            if broker.has_groups:
                broker.groups.extend_connected_sessions(self.member_connections, by_ms)
